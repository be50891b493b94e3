//! Compiled programs against the evaluator.

use broadloom_cpu::Cpu;
use broadloom_device::Device;
use broadloom_interp::Interp;
use broadloom_stream::Program;
use broadloom_stream::compiled::{Compiled, Statistics, Summary};
use broadloom_stream::eval::{Limits, Memory, Settings};

mod graphs;

fn devices() -> [Device; 2] {
    [
        Device::new(Interp::new(broadloom_interp::Options::default())),
        Device::new(Cpu::new(broadloom_cpu::Options::default()).expect("a CPU")),
    ]
}

fn compile(text: &str) -> Program {
    let mut host = Memory::default();
    Program::compile("x.str", text, &mut host, &Limits::default()).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Runs a program on the evaluator and on a device. Returns the summary of the latter.
fn check(text: &str, iterations: u64, device: &Device) -> (Summary, Statistics) {
    let program = compile(text);
    let settings = Settings { iterations: Some(iterations), ..Settings::default() };
    let mut expected = Memory::default();
    let wanted = program.run(&mut expected, &settings);
    let compiled = Compiled::new(&program, device).unwrap_or_else(|failure| panic!("{failure}\n{text}"));
    let mut host = Memory::default();
    let found = compiled.run(&mut host, &settings);
    let outcome = |result: Result<_, broadloom_stream::Failure>| result.map_err(|failure| failure.to_string());
    assert_eq!(outcome(found), outcome(wanted), "{text}");
    assert_eq!(host.output, expected.output, "{text}\n{:?}", compiled.nodes());
    let statistics = compiled.statistics();
    (compiled.summary(), statistics)
}

const PIPELINE: &str = "
void->void pipeline Top {
    add void->int filter { int n; work push 1 { push(n++); } }
    add int->int filter { work push 1 pop 1 { int x = pop(); push(x * x - 3); } }
    add int->float filter { work push 2 pop 3 { float a = pop() * 0.5; push(a + pop()); push(a / (1 + pop() & 7)); } }
    add float->float filter {
        float[4] h = {0.5, 0.25, -1, 2};
        work push 1 pop 1 peek 4 { float s = 0; for (int i = 0; i < 4; i++) s += h[i] * peek(i); push(s); pop(); }
    }
    add float->void filter { work pop 1 { println(pop()); } }
}";

#[test]
fn a_pipeline_is_one_kernel() {
    for device in devices() {
        let (summary, statistics) = check(PIPELINE, 50, &device);
        assert!(statistics.states >= 45 && statistics.repeated == 0, "{statistics:?}");
        assert_eq!((summary.kernels, summary.copies, summary.on_host), (1, 0, 1), "{summary:?}");
    }
}

/// Random programs print the same lines on a device, the last steady states on it.
#[test]
fn random_graphs_agree_with_the_evaluator() {
    let [interp, cpu] = devices();
    let limits = Limits { schedule: 1 << 10, steps: 20_000_000, ..Limits::default() };
    let (mut compared, mut kernels, mut states) = (0, 0, 0);
    for seed in 0..160 {
        let text = graphs::Random { state: seed * 6007 + 5, stateful: 6 }.program(3);
        let mut host = Memory::default();
        match Program::compile("random.str", &text, &mut host, &limits) {
            Ok(_) => {}
            Err(failure) if failure.to_string().contains("S0504") => continue,
            Err(failure) => panic!("seed {seed}: {failure}\n{text}"),
        }
        let (summary, statistics) = check(&text, 6, if seed % 32 == 0 { &cpu } else { &interp });
        assert_eq!(statistics.repeated, 0, "seed {seed}\n{text}");
        compared += 1;
        kernels += summary.kernels;
        states += statistics.states;
    }
    assert!(compared > 60 && kernels > compared && states > compared as u64, "{compared} {kernels} {states}");
}
