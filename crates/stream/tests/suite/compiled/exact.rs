//! Accurate floats on a CPU: each bit of the output is the evaluator's. Output does not wait for kernels.

use super::{compile, devices};
use broadloom_cpu::Cpu;
use broadloom_device::Device;
use broadloom_random::Random;
use broadloom_stream::compiled::{Compiled, Options};
use broadloom_stream::eval::{Memory, Settings};
use std::time::Duration;

const PARTS: &str = "
float->float filter Fir(int n, int down) {
    float[n] h;
    init { for (int i = 0; i < n; i++) h[i] = sin(0.37 * (i + 1)) / (i + 1.5); }
    work push 1 pop down peek n {
        float s = 0;
        for (int i = 0; i < n; i++) s += h[i] * peek(i);
        push(s);
        for (int i = 0; i < down; i++) pop();
    }
}
float->float filter Sum(int n) { work push 1 pop n { float s = 0; for (int i = 0; i < n; i++) s += pop(); push(s); } }
float->float filter Expand(int n) { work push n pop 1 { push(pop()); for (int i = 1; i < n; i++) push(0); } }
float->float filter Smooth { float y; work push 1 pop 1 { y = 0.3 * pop() + 0.7 * y; push(y); } }
float->float filter HeavySmooth {
    float y;
    work push 1 pop 1 peek 64 {
        float s = 0;
        for (int i = 0; i < 64; i++) s += peek(i) * peek(i) / (i + 1);
        y = 0.3 * s + 0.7 * y;
        push(y);
        pop();
    }
}
float->float splitjoin Bands(int n) {
    split duplicate;
    for (int i = 0; i < n; i++) add Fir(9 + i, 1);
    join roundrobin;
}";

/// Programs whose floats a compiler would like to add in another order.
const PROGRAMS: [&str; 8] = [
    "add Fir(64, 1);",
    "add Fir(300, 1);",
    "add Fir(21, 5); add Fir(7, 1);",
    "add Expand(3); add Fir(33, 2);",
    "add Bands(4); add Sum(4);",
    "add Sum(1024);",
    "add Smooth(); add Fir(16, 1);",
    "add HeavySmooth();",
];

fn program(filters: &str) -> String {
    let ends = ["add FileReader<float>(\"in\");", "add FileWriter<float>(\"out\");"].join(filters);
    format!("{PARTS}\nvoid->void pipeline Top {{ {ends} }}")
}

/// Returns a host with an input of noise.
fn noise(items: usize) -> Memory {
    let mut random = Random::new(7);
    let items = (0..items).flat_map(|_| (random.below(2_000_001u32) as f32 / 1e6 - 1.0).to_le_bytes()).collect();
    let host = Memory::default();
    host.files.lock().unwrap().insert("in".to_owned(), items);
    host
}

/// Runs a program on the evaluator and on a device, up to the end of the input. The bytes must be equal. Returns the
/// steady states on the device.
fn same(filters: &str, items: usize, device: &Device, options: Options) -> u64 {
    let program = compile(&program(filters));
    let (mut expected, mut found) = (noise(items), noise(items));
    program.run(&mut expected, &Settings::default()).unwrap();
    let compiled = Compiled::with(&program, device, options).unwrap();
    compiled.run(&mut found, &Settings::default()).unwrap();
    let output = |host: &Memory| host.files.lock().unwrap().get("out").cloned();
    assert!(output(&found) == output(&expected), "{filters}, {items} items");
    compiled.statistics().states
}

#[test]
fn every_bit_is_the_evaluators() {
    let device = Device::new(Cpu::new(broadloom_cpu::Options::default()).expect("a CPU"));
    for filters in PROGRAMS {
        assert!(same(filters, 5000, &device, Options::default()) > 0, "{filters}");
    }
}

/// The evaluator runs steady states until the kernels are ready, which may be never.
#[test]
fn output_does_not_wait_for_kernels() {
    let options = Options { patience: Some(Duration::ZERO), ..Options::default() };
    for device in devices() {
        for items in [0, 3, 40, 1700] {
            same("add Fir(24, 1); add Sum(3);", items, &device, options);
        }
    }
}

/// A row of more stateful filters than one kernel takes becomes several kernels.
#[test]
fn long_rows_of_stateful_filters_run_on_the_device() {
    let device = Device::new(Cpu::new(broadloom_cpu::Options::default()).expect("a CPU"));
    assert!(same("for (int i = 0; i < 600; i++) add Smooth();", 300, &device, Options::default()) > 0);
}
