//! Compiled programs against the evaluator.

use crate::graphs;
use broadloom_cpu::Cpu;
use broadloom_device::Device;
use broadloom_interp::Interp;
use broadloom_stream::Program;
use broadloom_stream::compiled::{Compiled, Options, Ports, Precision, Resident, Session, Statistics, Summary};
use broadloom_stream::eval::{Limits, Memory, Settings};

mod ahead;
mod beside;
mod convolution;
mod ends;
mod exact;
mod files;
mod growth;
mod reductions;

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

/// Options of fast floats: sums may be added in another order.
const FAST: Options =
    Options { precision: Precision::Fast, latency: None, straight: false, timed: false, prefetch: None, patience: None };

/// Runs a program on the evaluator and on a device. Returns the summary and the statistics of the latter.
fn check(text: &str, iterations: u64, device: &Device) -> (Summary, Statistics) {
    check_with(text, iterations, device, Options::default())
}

/// Does the same as [`check`] with options.
fn check_with(text: &str, iterations: u64, device: &Device, options: Options) -> (Summary, Statistics) {
    let program = compile(text);
    let settings = Settings { iterations: Some(iterations), ..Settings::default() };
    let mut expected = Memory::default();
    let wanted = program.run(&mut expected, &settings);
    let compiled = Compiled::with(&program, device, options).unwrap_or_else(|failure| panic!("{failure}\n{text}"));
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
        assert!(statistics.states >= 45 && statistics.handed_back == 0, "{statistics:?}");
        assert_eq!((summary.kernels, summary.copies, summary.on_host), (1, 0, 1), "{summary:?}");
    }
}

/// Fast floats are computed by the machine; accurate floats equal the evaluator's.
#[test]
fn floats_are_as_accurate_as_asked_for() {
    let text = "
void->void pipeline Top {
    add void->float filter { int n; work push 1 { push(n * 0.37 + 0.5); n++; } }
    add float->float filter { work push 1 pop 1 { float x = pop(); push(sqrt(x) / (x * x + 3) + log(x) * exp(-x)); } }
    add float->void filter { work pop 1 { println(pop()); } }
}";
    let program = compile(text);
    let settings = Settings { iterations: Some(100), ..Settings::default() };
    let mut expected = Memory::default();
    program.run(&mut expected, &settings).unwrap();
    let numbers = |text: &str| text.lines().map(|line| line.parse::<f64>().unwrap()).collect::<Vec<f64>>();
    for device in devices() {
        for (precision, division) in [(Precision::Accurate, "div.rn.f32"), (Precision::Fast, "div.full")] {
            let compiled = Compiled::with(&program, &device, Options { precision, ..Options::default() }).unwrap();
            assert!(compiled.ptx().unwrap().contains(division), "{precision:?}");
            let mut host = Memory::default();
            compiled.run(&mut host, &settings).unwrap();
            let (found, wanted) = (numbers(&host.output), numbers(&expected.output));
            assert_eq!(found.len(), wanted.len());
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-5 * b.abs().max(0.1);
            assert!(found.iter().zip(&wanted).all(near), "{precision:?}: {found:?} {wanted:?}");
        }
    }
}

/// Random programs print the same lines on a device, where the last steady states run.
#[test]
fn random_graphs_agree_with_the_evaluator() {
    let [interp, cpu] = devices();
    let limits = Limits { schedule: 1 << 10, steps: 20_000_000, ..Limits::default() };
    let (mut compared, mut kernels, mut states) = (0, 0, 0);
    let setting = |name: &str, default: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (first, count) = (setting("BROADLOOM_STREAM_SEED", 0), setting("BROADLOOM_STREAM_GRAPHS", 200));
    for seed in first..first + count {
        let random = broadloom_random::Random::new(seed);
        let text = graphs::Random { random, stateful: 6, reductions: 12 }.program(3);
        let mut host = Memory::default();
        match Program::compile("random.str", &text, &mut host, &limits) {
            Ok(_) => {}
            Err(failure) if failure.to_string().contains("S0504") => continue,
            Err(failure) => panic!("seed {seed}: {failure}\n{text}"),
        }
        let (summary, statistics) = check(&text, 6, if seed % 32 == 0 { &cpu } else { &interp });
        assert_eq!(statistics.handed_back, 0, "seed {seed}\n{text}");
        compared += 1;
        kernels += summary.kernels;
        states += statistics.states;
    }
    assert!(compared > 60 && kernels > compared && states > compared as u64, "{compared} {kernels} {states}");
}

/// Splitters and joiners become index arithmetic, equal branches become one actor, permutations need no
/// copies.
#[test]
fn structure_of_splitjoins() {
    let [interp, _] = devices();
    let around = |inner: &str, helpers: &str| {
        format!(
            "void->void pipeline Top {{
                 add void->int filter {{ int n; work push 4 {{ for (int i = 0; i < 4; i++) push(n * 4 + i); n++; }} }}
                 {inner}
                 add int->void filter {{ work pop 1 {{ println(pop()); }} }}
             }}
             int->int filter Twice {{ work push 2 pop 2 {{ push(pop() * 2); push(pop() * 2 + 1); }} }}
             int->int filter Odd(int k) {{ work push 1 pop 2 {{ push(pop() + k * pop()); }} }}
             {helpers}"
        )
    };
    let equal = "add splitjoin {
        split roundrobin(4);
        for (int i = 0; i < 3; i++) add pipeline { add Twice; add Odd(3); }
        join roundrobin(2);
    }";
    let (summary, statistics) = check(&around(equal, ""), 20, &interp);
    assert_eq!((summary.kernels, summary.copies, summary.actors), (1, 0, 3), "{summary:?}");
    assert!(statistics.states == 20 && statistics.handed_back == 0, "{statistics:?}");
    let different = "add splitjoin {
        split duplicate;
        for (int i = 0; i < 3; i++) add Odd(i);
        join roundrobin(1, 2, 1);
    }"
    .replace("duplicate", "roundrobin(2, 4, 2)");
    let (summary, _) = check(&around(&different, ""), 20, &interp);
    assert_eq!((summary.kernels, summary.copies, summary.actors), (1, 0, 4), "{summary:?}");
    // A permutation, and a nested one, between filters.
    let permutation = "add Twice; add Turn(2); add Turn(3); add Twice;";
    let turn = "int->int pipeline Turn(int n) {
        add splitjoin { split roundrobin(1); for (int i = 0; i < n; i++) add Identity<int>; join roundrobin(4); }
        add splitjoin { split roundrobin(4); for (int i = 0; i < n; i++) add Half; join roundrobin(4); }
    }
    int->int splitjoin Half { split roundrobin(2); add Identity<int>; add Identity<int>; join roundrobin(1); }";
    let (summary, _) = check(&around(permutation, turn), 20, &interp);
    assert_eq!((summary.kernels, summary.copies, summary.actors), (1, 0, 3), "{summary:?}");
    // Items that pass no filter are copied, because no other actor puts them in order.
    let passing = "add splitjoin { split duplicate; add Identity<int>; add Twice; join roundrobin(1, 1); }";
    let (summary, _) = check(&around(passing, ""), 20, &interp);
    assert_eq!((summary.kernels, summary.copies), (1, 1), "{summary:?}");
}

/// The Fourier transform of the examples, enlarged, is one kernel.
#[test]
fn a_fourier_transform_is_one_kernel() {
    let text = include_str!("../../../../../examples/stream/fft.str").replace("int n = 16", "int n = 64");
    for device in devices() {
        let program = compile(&text);
        let compiled = Compiled::new(&program, &device).unwrap();
        let summary = compiled.summary();
        assert!(summary.kernels == 1 && summary.copies == 0, "{}", compiled.explain());
        check(&text, 3, &device);
    }
    // Stages with few firings are shared round by round.
    let long = text.replace("int n = 64", "int n = 512");
    let program = compile(&long);
    let [interp, _] = devices();
    let compiled = Compiled::new(&program, &interp).unwrap();
    assert_eq!(compiled.summary().kernels, 1, "{}", compiled.explain());
    assert!(compiled.explain().contains("share the rounds of its firings"), "{}", compiled.explain());
    check(&long, 2, &interp);
}

/// A failing firing ends with the evaluator's message and output.
#[test]
fn failing_firings_end_as_on_the_evaluator() {
    let [interp, _] = devices();
    let text = "void->void pipeline Top {
        add void->int filter { int n; work push 1 { push(n++); } }
        add int->int filter { int[4] a = {1, 2, 3, 4}; work push 1 pop 1 { int x = pop(); push(100 / (12 - x) + a[x & 3]); } }
        add int->void filter { work pop 1 { println(pop()); } }
    }";
    let (_, statistics) = check(text, 40, &interp);
    assert_eq!(statistics.handed_back, 1);
    let (_, statistics) = check(text, 10, &interp);
    assert_eq!(statistics.handed_back, 0);
}

/// An endless loop is stopped on the device with the evaluator's message.
#[test]
fn endless_loops_are_stopped() {
    let [_, cpu] = devices();
    for work in [
        "int x = pop(); while (x < 5) { if (x > 9) x--; } push(x);",
        "int x = pop(); for (int i = 0; 0 < 4; i++) x += i; push(x);",
        "int x = pop(); for (int i = 0; i < 2000000; i++) for (int j = 0; j < 2000000; j++) x += i * j; push(x);",
    ] {
        let text = format!(
            "void->void pipeline Top {{
                add void->int filter {{ int n; work push 1 {{ push(n++); }} }}
                add int->int filter {{ work push 1 pop 1 {{ {work} }} }}
                add int->void filter {{ work pop 1 {{ println(pop()); }} }}
            }}"
        );
        let program = compile(&text);
        let limits = Limits { firing: 100_000, ..Limits::default() };
        let settings = Settings { iterations: Some(4), limits, ..Settings::default() };
        let compiled = Compiled::new(&program, &cpu).unwrap_or_else(|failure| panic!("{failure}"));
        let failure = compiled.run(&mut Memory::default(), &settings).expect_err("a message").to_string();
        assert!(failure.contains("S0501") && failure.contains("stopped after 100000 steps"), "{failure}");
        assert!(failure.contains("in firing 1 of"), "{failure}");
    }
}

/// Items on the device stay there, and the state of filters is kept between calls.
#[test]
fn sessions_take_buffers_of_the_device() {
    let text = "void->void pipeline Top {
        add FileReader<float>(\"in\");
        add float->float filter { work push 1 pop 1 peek 3 { push(pop() + peek(1)); } }
        add float->float filter { float s; work push 1 pop 2 { s = (float) ((int) (s * 3 + pop() * pop()) % 1009); push(s); } }
        add FileWriter<float>(\"out\");
    }";
    let program = compile(text);
    let input: Vec<f32> = (0..4096).map(|i| (i * 7 % 31) as f32).collect();
    for device in devices() {
        let compiled = Compiled::new(&program, &device).unwrap();
        let (mut whole, mut pieces) = (Ports::default(), Ports::default());
        let expected: Vec<f32> = Session::new(&compiled, &mut whole).unwrap().feed::<f32, f32>(&input).unwrap();
        let mut session = Session::new(&compiled, &mut pieces).unwrap();
        // The first items fill those that the first filter peeks.
        let mut found: Vec<f32> = session.feed::<f32, f32>(&input[..4]).unwrap();
        for piece in input[4..].chunks_exact(2046) {
            let buffer = device.upload(piece).unwrap();
            for made in session.feed_buffer::<f32, f32>(&buffer).unwrap() {
                found.extend(made.read().unwrap());
            }
        }
        assert_eq!(found, expected);
    }
}

/// The latency option bounds batches, and the explanation covers every technique.
#[test]
fn explanations_tell_of_techniques_and_latency() {
    let [interp, _] = devices();
    let program = compile(PIPELINE);
    let compiled = Compiled::with(&program, &interp, Options { latency: Some(3), ..Options::default() }).unwrap();
    assert_eq!(compiled.largest_batch(), 3);
    let text = compiled.explain();
    assert!(text.contains("a batch has at most 3 steady states, the latency that is asked for"), "{text}");
    for technique in [
        "collapse of branches: no",
        "vertical fusion: yes",
        "horizontal fusion: no",
        "staging in shared memory: ",
        "padding against bank conflicts: ",
        "helper threads: ",
        "prefetch: no",
        "unrolling: yes",
        "high traffic",
    ] {
        assert!(text.contains(technique), "{technique}\n{text}");
    }
    let mut host = Memory::default();
    compiled.run(&mut host, &Settings { iterations: Some(20), ..Settings::default() }).unwrap();
    assert!(compiled.statistics().batches >= 6, "{:?}", compiled.statistics());
}

/// Filters that add up many items have a block for each firing, and several if the loop is long.
#[test]
fn sums_and_histograms_are_reductions() {
    let program = |filter: &str| {
        format!(
            "void->void pipeline Top {{
                 add void->int filter {{ int n; work push 8 {{ for (int i = 0; i < 8; i++) push(n++ * 37 % 1001); }} }}
                 add int->int filter {{ work push 1 pop 1 {{ push(pop() + 1); }} }}
                 add int->int filter {{ {filter} }}
                 add int->void filter {{ work pop 1 {{ println(pop()); }} }}
             }}"
        )
    };
    let histogram = |items: u32| {
        format!(
            "work push 17 pop {items} {{
                 int[16] h; int all = 3;
                 for (int i = 0; i < {items}; i++) {{ int x = pop(); h[x & 15]++; if (x > 500) h[(x >> 4) & 15] += 2; all += x; }}
                 push(all); for (int i = 0; i < 16; i++) push(h[i]);
             }}"
        )
    };
    let sums = |items: u32| {
        format!(
            "work push 4 pop {items} {{
                 float f = 0.5; int odd = 0; int mask = -1; int x = 0; int bits = 0;
                 for (int i = 0; i < {items}; i++) {{ f += peek(i) % 7; if (peek(i) % 2 == 1) odd++; mask = mask & (peek(i) | i); bits = bits ^ peek(i); }}
                 for (int i = 0; i < {items}; i++) pop();
                 push((int) (f * 2)); push(odd); push(mask); push(bits);
             }}"
        )
    };
    for device in devices() {
        for (filter, states) in [(histogram(512), 5), (histogram(8704), 1), (sums(400), 5), (sums(8712), 1)] {
            let text = program(&filter);
            let (summary, statistics) = check_with(&text, states, &device, FAST);
            assert!(summary.on_host == 1 && statistics.handed_back == 0, "{summary:?} {statistics:?}\n{filter}");
            let compiled = compile(&text);
            let explained = Compiled::with(&compiled, &device, FAST).unwrap().explain();
            assert!(explained.contains("reduction: yes"), "{explained}");
        }
    }
    // Rounds that read their own sums stay in order.
    let running = "work push 1 pop 300 { int s = 0; for (int i = 0; i < 300; i++) { s += pop(); if (s > 90) s += 1; } push(s); }";
    let (_, statistics) = check(&program(running), 4, &devices()[0]);
    assert_eq!(statistics.handed_back, 0);
}

/// Filters with any kind of state and feedbackloops run on the device. Neighbours among them share a kernel.
#[test]
fn stateful_filters_run_on_the_device() {
    let program = |inner: &str| {
        format!(
            "struct Pair {{ float low; int[3] count; }}
             void->void pipeline Top {{
                 add void->int filter {{ int n; work push 1 {{ push(n++); }} }}
                 add int->int filter {{ work push 2 pop 1 {{ int x = pop(); push(x * 3 % 17); push(x); }} }}
                 {inner}
                 add int->int filter {{ work push 1 pop 1 peek 3 {{ push(peek(2) - pop()); }} }}
                 add int->void filter {{ work pop 1 {{ println(pop()); }} }}
             }}"
        )
    };
    let delay_line = "add int->int filter {
        int[40] line; int at; boolean odd;
        work push 1 pop 1 { int old = line[at]; line[at] = pop(); at = (at + 1) % 40; odd = !odd; push(odd ? old : -old); } }";
    let scrambler = "add int->int filter {
        int s = 1; float f; double d; complex c; bit b; Pair p;
        void turn(int by) { s = (s * 31 + by) % 1009; p.count[s % 3]++; }
        prework push 1 { s = 5; push(s); }
        work push 1 pop 2 peek 3 {
            turn(pop()); f += 0.5 * peek(1); d += f; c = c * (0.5 + 0.25i) + f; b = (s & 1); p.low = f;
            push(s + (int) (f + (float) d) % 100 + (int) c.real % 50 + p.count[1] + b + iter()); pop(); } }";
    let echo = |delay: u32| {
        format!(
            "add int->int feedbackloop {{
                 join roundrobin(1, 1);
                 body pipeline {{
                     add int->int filter {{ work push 1 pop 2 {{ push((pop() + 3 * pop()) % 1001); }} }}
                     add splitjoin {{ split duplicate; add Identity<int>; add int->int filter {{ work push 1 pop 1 {{ push(pop() / 2); }} }}
                                      join roundrobin(1, 1); }}
                 }}
                 split roundrobin(1, 1);
                 loop int->int filter {{ work push 1 pop 1 {{ push(pop() + 1); }} }}
                 for (int i = 0; i < {delay}; i++) enqueue i;
             }}"
        )
    };
    let [interp, cpu] = devices();
    let cases = [
        (delay_line.to_owned(), 3),
        (scrambler.to_owned(), 3),
        (format!("{delay_line} {scrambler}"), 3),
        (echo(1), 3),
        (echo(600), 3),
        (format!("{} {scrambler}", echo(7)), 3),
    ];
    for (inner, kernels) in &cases {
        let text = program(inner);
        for device in [&interp, &cpu] {
            let (summary, statistics) = check(&text, 65, device);
            assert!(statistics.states > 60 && statistics.handed_back == 0, "{statistics:?}\n{inner}");
            // Cheap neighbours are in the kernel of the island.
            assert!(summary.kernels <= *kernels && (summary.on_host, summary.islands) == (1, 1), "{summary:?}\n{inner}");
        }
    }
    // A delay of 600 items lets the threads of a block share the firings.
    let wide = compile(&program(&echo(600)));
    let compiled = Compiled::new(&wide, &interp).unwrap();
    assert!(compiled.explain().contains("share the firings of 256 units"), "{}", compiled.explain());
    // A failing firing ends as on the evaluator.
    let failing = "add int->int filter { int s = 9; work push 1 pop 1 { s -= 1; push(pop() / s); } }";
    let (_, statistics) = check(&program(failing), 40, &interp);
    assert_eq!(statistics.handed_back, 1);
}

/// Running sums, linear recurrences, extremes and counters become scans on machines with many threads.
#[test]
fn recurrences_are_scans() {
    let [interp, cpu] = devices();
    let program = |filter: &str| {
        format!(
            "void->void pipeline Top {{
                 add void->int filter {{ int n; work push 1 {{ push(n++ * 37 % 1001 - 400); }} }}
                 add int->int filter {{ work push 1 pop 1 {{ push(pop() + 1); }} }}
                 {filter}
                 add int->void filter {{ work pop 1 {{ println(pop()); }} }}
             }}"
        )
    };
    let ints = [
        "int s; work push 1 pop 1 { s += pop(); push(s); }",
        "int y = 7; work push 1 pop 1 { y = 3 * y + pop(); push(y / 5); }",
        "int a; int b = 1; int n; work push 2 pop 3 peek 4 {
             int t = a + b + pop(); a = b - 2 * a; b = t + peek(2); n++; push(a ^ n); push(b); pop(); pop(); }",
        "int low = 1000; int high; int bits; work push 3 pop 1 {
             int x = pop(); if (x < low) low = x; if (x > high) high = x; bits = bits ^ x; push(low); push(high + iter()); push(bits); }",
    ];
    for filter in ints {
        let text = program(&format!("add int->int filter {{ {filter} }}"));
        let (summary, statistics) = check(&text, 150, &interp);
        assert!(
            summary.scans == 1 && summary.on_host == 1 && statistics.handed_back == 0,
            "{summary:?} {statistics:?}\n{filter}"
        );
        let (summary, _) = check(&text, 40, &cpu);
        assert!(summary.scans == 0 && summary.islands == 1, "one core runs cheap firings in order: {summary:?}");
    }
    // Several tiles, and state that is kept between batches.
    let text = program(&format!("add int->int filter {{ {} }}", ints[1]));
    let long = compile(&text.replace("n++ * 37 % 1001 - 400", "n++ % 1001"));
    let compiled = Compiled::with(&long, &interp, Options { latency: Some(4500), ..Options::default() }).unwrap();
    let settings = Settings { iterations: Some(5_000), ..Settings::default() };
    let (mut expected, mut found) = (Memory::default(), Memory::default());
    long.run(&mut expected, &settings).unwrap();
    compiled.run(&mut found, &settings).unwrap();
    assert!(found.output == expected.output && compiled.statistics().batches == 2, "{:?}", compiled.statistics());
    // Floats are added in a different order.
    let text = program(
        "add int->float filter { work push 1 pop 1 { push(pop() * 0.25); } }
         add float->float filter { float y; float z = 1; work push 1 pop 1 { float x = pop(); y = 0.9 * y + 0.1 * x; z = 0.5 * z + y; push(z); } }
         add float->int filter { work push 1 pop 1 { push((int) (pop() * 16 + 8000.5)); } }",
    );
    let floats = compile(&text);
    let compiled = Compiled::new(&floats, &interp).unwrap();
    assert_eq!(compiled.summary().scans, 1, "{}", compiled.explain());
    let settings = Settings { iterations: Some(400), ..Settings::default() };
    let (mut expected, mut found) = (Memory::default(), Memory::default());
    floats.run(&mut expected, &settings).unwrap();
    compiled.run(&mut found, &settings).unwrap();
    for (a, b) in found.output.lines().zip(expected.output.lines()) {
        assert!((a.parse::<i32>().unwrap() - b.parse::<i32>().unwrap()).abs() <= 1, "{a} {b}");
    }
    // A recurrence that grows without bound stays in order.
    let text = program("add int->int filter { float y; work push 1 pop 1 { y = 1.5 * y + pop(); push((int) y); } }");
    let (summary, _) = check(&text, 30, &interp);
    assert_eq!((summary.scans, summary.islands), (0, 1));
}

/// Linear filters are combined if that takes fewer products.
#[test]
fn linear_filters_are_combined() {
    let text = "void->void pipeline Top {
        add void->float filter { int n; work push 1 { push(n++ * 37 % 101 * 0.25); } }
        add float->float splitjoin {
            split duplicate;
            for (int i = 0; i < 4; i++) add pipeline { add Window(20 + i, 0.5 * i); add Scale(i - 1.5); }
            join roundrobin(1);
        }
        add float->float filter { work push 1 pop 4 { float s = 1; for (int i = 0; i < 4; i++) s += pop(); push(s); } }
        add float->float filter { work push 1 pop 3 { push(pop() * 2); pop(); pop(); } }
        add float->float filter { work push 1 pop 1 { float x = pop(); push(x * x); } }
        add float->void filter { work pop 1 { println(pop()); } }
    }
    float->float filter Window(int taps, float shift) {
        float[taps] h;
        init { for (int i = 0; i < taps; i++) h[i] = (i + shift) / (taps * taps); }
        work push 1 pop 1 peek taps { float s = 0; for (int i = 0; i < taps; i++) s += h[i] * peek(i); push(s); pop(); }
    }
    float->float filter Scale(float by) { work push 1 pop 1 { push(pop() * by + 0.25); } }";
    let program = compile(text);
    let settings = Settings { iterations: Some(40), ..Settings::default() };
    let mut expected = Memory::default();
    program.run(&mut expected, &settings).unwrap();
    for device in devices() {
        let compiled = Compiled::with(&program, &device, FAST).unwrap();
        let summary = compiled.summary();
        // The actors: the source, all linear filters, the square.
        assert_eq!((summary.actors, summary.filters, summary.on_host), (3, 12, 1), "{}", compiled.explain());
        let mut found = Memory::default();
        compiled.run(&mut found, &settings).unwrap();
        assert_eq!(compiled.statistics().handed_back, 0);
        for (a, b) in found.output.lines().zip(expected.output.lines()) {
            let (a, b): (f64, f64) = (a.parse().unwrap(), b.parse().unwrap());
            assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{a} {b}");
        }
        assert_eq!(found.output.lines().count(), expected.output.lines().count());
    }
}

/// Several printing stages print in the order of the schedule.
#[test]
fn output_of_several_stages_is_in_order() {
    let [interp, _] = devices();
    let text = "void->void pipeline Top {
        add void->int filter { int n; work push 1 { println(\"source \" + n); push(n++); } }
        add int->int filter { work push 1 pop 2 { push(pop() * pop()); } }
        add int->int filter { int s; work push 1 pop 1 { s = s * 3 + pop(); println(\"middle \" + s); push(s); } }
        add int->int filter { work push 1 pop 1 peek 3 { push(peek(2) - pop()); } }
        add int->void filter { work pop 1 { println(pop()); } }
    }";
    let (summary, statistics) = check(text, 30, &interp);
    assert!(summary.kernels == 2 && statistics.states > 20 && statistics.handed_back == 0, "{summary:?} {statistics:?}");
}

/// A session takes pieces of any length and gives the output of one piece.
#[test]
fn sessions_are_fed_in_pieces() {
    let text = "void->void pipeline Top {
        add FileReader<float>(\"in\");
        add float->float filter {
            work push 2 pop 3 peek 7 { float s = 0; for (int i = 0; i < 7; i++) s += i * peek(i); push(s); push(pop()); pop(); pop(); }
        }
        add FileWriter<float>(\"out\");
    }";
    let program = compile(text);
    let input: Vec<f32> = (0..1000).map(|i| (i * i % 97) as f32).collect();
    let mut host = Memory::default();
    let bytes = input.iter().flat_map(|item| item.to_le_bytes()).collect();
    host.files.lock().unwrap().insert("in".into(), bytes);
    program.run(&mut host, &Settings::default()).unwrap();
    let files = host.files.lock().unwrap();
    let expected: Vec<f32> = files["out"].chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect();
    for device in devices() {
        let compiled = Compiled::new(&program, &device).unwrap();
        let mut ports = Ports::default();
        let mut session = Session::new(&compiled, &mut ports).unwrap();
        let mut found: Vec<f32> = vec![];
        let mut rest = &input[..];
        for length in [1, 2, 5, 0, 300, 17, 1000] {
            let (piece, behind) = rest.split_at(length.min(rest.len()));
            found.extend(session.feed::<f32, f32>(piece).unwrap());
            rest = behind;
        }
        assert!(session.feed::<i32, f32>(&[1]).is_err());
        assert!(session.feed_buffer::<f32, f32>(&device.upload(&[1.0f32; 4]).unwrap()).is_err(), "no whole steady states");
        assert_eq!(found[..], expected[..found.len()]);
        assert!(found.len() + 4 >= expected.len(), "{} of {}", found.len(), expected.len());
    }
}

fn compile_stream(text: &str, stream: &str) -> Result<Program, broadloom_stream::Failure> {
    Program::compile_stream(&[("x.str", text)], stream, &mut Memory::default(), &Limits::default())
}

/// A stream of a program is compiled alone, with files around it. Resident runs, restructured and straight,
/// give the output of a session.
#[test]
fn resident_runs_agree_with_sessions() {
    let fm_radio = include_str!("../../../../../examples/stream/fm_radio.str");
    let filter_bank = include_str!("../../../../../examples/stream/filter_bank.str");
    let sort = include_str!("../../../../../examples/stream/bitonic_sort.str");
    let cases = [
        (fm_radio, "Receiver(250000, 2, 8)", 20),
        (filter_bank, "FilterBank(3, 7)", 40),
        (filter_bank, "FilterBank(8, 32)", 20),
        (sort, "BitonicSort(8)", 5),
    ];
    let input: Vec<f32> = (0..400).map(|i| (i * i % 61) as f32 / 8.0).collect();
    let [interp, _] = devices();
    for (text, stream, states) in cases {
        let program = compile_stream(text, stream).unwrap_or_else(|failure| panic!("{failure}"));
        let restructured = Compiled::new(&program, &interp).unwrap();
        let straight = Compiled::with(&program, &interp, Options { straight: true, ..Options::default() }).unwrap();
        assert_eq!(straight.summary().kernels, straight.summary().actors, "{stream}");
        assert!(restructured.summary().kernels < straight.summary().kernels, "{stream}");
        let mut ports = Ports::default();
        let expected: Vec<f32> = Session::new(&restructured, &mut ports).unwrap().feed(&input).unwrap();
        for compiled in [&restructured, &straight] {
            let resident = Resident::new(compiled).unwrap();
            let window = |states| {
                let first = resident.first_input() as usize;
                interp.upload(&input[first..first + resident.input_items(states) as usize]).unwrap()
            };
            let output = interp.zeros::<f32>(resident.output_items(states) as usize).unwrap();
            // Two runs, the second on a later window.
            for states in [states, states / 2] {
                let first = resident.first_output() as usize;
                resident.run(&window(states), &output, states).unwrap();
                resident.check().unwrap();
                let items = resident.output_items(states) as usize;
                // Combined linear filters round differently.
                let near = |(found, wanted): (&f32, &f32)| (found - wanted).abs() <= 1e-4 * wanted.abs().max(1.0);
                let found = output.read().unwrap();
                assert!(found[..items].iter().zip(&expected[first..first + items]).all(near), "{stream}: {found:?}");
            }
            assert!(resident.run(&window(states / 2), &output, states + 1).is_err());
        }
    }
}

/// Streams that cannot be compiled alone, and programs that cannot run on buffers of the device, are refused.
#[test]
fn resident_runs_are_refused() {
    let [interp, _] = devices();
    let sort = include_str!("../../../../../examples/stream/bitonic_sort.str");
    let refused = |text: &str, stream: &str| compile_stream(text, stream).unwrap_err().to_string();
    assert!(refused(sort, "Bitonic(8)").contains("there is no stream `Bitonic`"));
    assert!(refused(sort, "Rows(8)").contains("the input of `Rows` has no items that a file can hold"));
    assert!(refused(sort, "BitonicSort(8").contains("error[S0004]"));
    let prints = "float->float filter Say { work push 1 pop 1 { println(peek(0)); push(pop()); } }";
    let program = compile_stream(prints, "Say").unwrap();
    let compiled = Compiled::new(&program, &interp).unwrap();
    let refusal = Resident::new(&compiled).map(|_| ()).unwrap_err().to_string();
    assert!(refusal.contains("resident run needs"), "{refusal}");
}

/// Returns whether floats are equal except for their last digits.
fn near(found: &[u8], expected: &[u8]) -> bool {
    let floats = |bytes: &[u8]| -> Vec<f32> { bytes.as_chunks().0.iter().map(|word| f32::from_le_bytes(*word)).collect() };
    let (found, expected) = (floats(found), floats(expected));
    let most = expected.iter().fold(0.0f32, |most, one| most.max(one.abs()));
    found.len() == expected.len() && found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-6 * most)
}

/// Runs a stream on the evaluator and, with data on each device, restructured and straight. All must give the
/// same words. Returns the summary of the restructured one on a machine with threads.
fn agree(text: &str, stream: &str, states: u64, input: &dyn Fn(usize) -> u32) -> Summary {
    agree_as(text, stream, states, input, &|found, expected| found == expected)
}

/// Does the same as [`agree`], but compares the words of the restructured program with a function.
fn agree_as(text: &str, stream: &str, states: u64, input: &dyn Fn(usize) -> u32, same: &dyn Fn(&[u8], &[u8]) -> bool) -> Summary {
    let program = compile_stream(text, stream).unwrap_or_else(|failure| panic!("{failure}"));
    let mut last = None;
    for device in devices() {
        for straight in [true, false] {
            let compiled = Compiled::with(&program, &device, Options { straight, ..Options::default() }).unwrap();
            let resident = Resident::new(&compiled).unwrap();
            let words: Vec<u32> = (0..resident.input_bytes(states) as usize / 4).map(input).collect();
            let output = device.zeros::<u32>(resident.output_bytes(states) as usize / 4).unwrap();
            resident.run(&device.upload(&words).unwrap(), &output, states).unwrap();
            resident.check().unwrap();
            let mut host = Memory::default();
            host.files.lock().unwrap().insert("input".into(), words.iter().flat_map(|word| word.to_le_bytes()).collect());
            program.run(&mut host, &Settings { iterations: Some(states), ..Settings::default() }).unwrap();
            let expected: Vec<u8> = host.files.lock().unwrap()["output"].clone();
            let found: Vec<u8> = output.read().unwrap().iter().flat_map(|word| word.to_le_bytes()).collect();
            let agrees = if straight { found == expected } else { same(&found, &expected) };
            assert!(agrees, "{stream} on {}, straight: {straight}", device.machine().id);
            last = Some(compiled.summary()).filter(|_| !straight && device.machine().id == "interp").or(last);
        }
    }
    last.unwrap()
}

/// Units that splitters and joiners make large are divided into parts. These become parallel filters in one
/// kernel. Permutations are copied neither at their readers nor at their writers.
#[test]
fn large_units_are_divided() {
    let float = |i: usize| ((i * i % 97) as f32 / 8.0 - 5.0).to_bits();
    // Products of linear filters are fused with their sums.
    let dct = agree_as(include_str!("../../../../../examples/stream/dct.str"), "ImageDct(2048)", 2, &float, &near);
    assert_eq!((dct.kernels, dct.copies, dct.actors), (1, 0, 2), "{dct:?}");
    let product = agree(include_str!("../../../../../examples/stream/matrix_multiply.str"), "MatrixMultiply(16)", 3, &float);
    assert_eq!((product.kernels, product.copies), (1, 0), "{product:?}");
    let blocked = include_str!("../../../../../examples/stream/blocked_matrix_multiply.str");
    let product = agree(blocked, "BlockedMatrixMultiply(16, 4)", 3, &float);
    assert_eq!((product.kernels, product.copies), (1, 0), "{product:?}");
}

/// Branches of a splitter that deals single items become one filter. The counts of a histogram are summed by
/// the kernel that counts.
#[test]
fn branches_of_single_items_collapse() {
    let word = |i: usize| (i as u32).wrapping_mul(2_654_435_761);
    let histogram = agree(include_str!("../../../../../examples/stream/histogram.str"), "Histogram(40, 300)", 2, &word);
    assert_eq!((histogram.kernels, histogram.actors), (1, 2), "{histogram:?}");
    let float = |i: usize| ((i * i % 97) as f32).to_bits();
    let sort = agree(include_str!("../../../../../examples/stream/bitonic_sort.str"), "BitonicSort(32)", 9, &float);
    assert_eq!((sort.kernels, sort.copies), (1, 0), "{sort:?}");
    assert!(sort.actors < sort.filters * 2 / 3, "{sort:?}");
}

/// Functions that are exact for floats are computed in single precision, one instruction for each minimum.
/// Lanes of vectors load and store rows by quads.
#[test]
fn sorts_compare_in_single_precision() {
    let text = include_str!("../../../../../examples/stream/bitonic_sort.str");
    let program = compile_stream(text, "BitonicSort(32)").unwrap();
    for device in devices() {
        let ptx = Compiled::new(&program, &device).unwrap().ptx().unwrap();
        let count = |word: &str| ptx.lines().filter(|line| line.trim_start().starts_with(word)).count();
        assert_eq!((count("min.NaN.f32"), count("max.NaN.f32"), count("selp"), count("cvt.f64")), (240, 240, 0, 0));
        assert_eq!((count("ld.global.v4.f32"), count("st.global.v4.f32")), (8, 8), "{}", device.machine().id);
    }
}

/// Stages of a Fourier transform that exchange items in small groups run in registers. Several stages share a
/// barrier, and the words of a complex number are accessed together.
#[test]
fn stages_run_in_components() {
    let float = |i: usize| ((i * i % 97) as f32 / 8.0 - 5.0).to_bits();
    let text = include_str!("../../../../../examples/stream/fft.str");
    let fft = agree(text, "Fft(256)", 3, &float);
    assert_eq!((fft.kernels, fft.copies), (1, 0), "{fft:?}");
    agree(text, "Fft(1024)", 5, &float);
    let program = compile_stream(text, "Fft(1024)").unwrap();
    for device in devices() {
        let compiled = Compiled::new(&program, &device).unwrap();
        let (explained, ptx) = (compiled.explain(), compiled.ptx().unwrap());
        assert!(
            explained.contains("a thread runs groups of firings of 4 filters in registers, 64 of them in a unit"),
            "{explained}"
        );
        let count = |word: &str| ptx.lines().filter(|line| line.trim_start().starts_with(word)).count();
        assert_eq!((count("bar.sync"), count("ld.shared.f32"), count("st.shared.f32")), (2, 0, 0), "{ptx}");
    }
}

/// Rounds of a block product compute their places by one sum of digits, not by the steps of splitters for
/// each item.
#[test]
fn rounds_share_the_places_of_their_words() {
    let float = |i: usize| ((i * i % 97) as f32 / 8.0 - 5.0).to_bits();
    let text = include_str!("../../../../../examples/stream/blocked_matrix_multiply.str");
    agree(text, "BlockedMatrixMultiply(32, 8)", 2, &float);
    let program = compile_stream(text, "BlockedMatrixMultiply(32, 8)").unwrap();
    for device in devices() {
        let ptx = Compiled::new(&program, &device).unwrap().ptx().unwrap();
        let count = |word: &str| ptx.lines().filter(|line| line.trim_start().starts_with(word)).count();
        assert!(count("rem.") + count("div.") < 16, "{ptx}");
    }
}

/// Contiguous windows have no padding, so that taps differ by constants. Strided windows have padding.
#[test]
fn windows_side_by_side_have_no_padding() {
    let text = "float->float filter Square { work push 1 pop 1 { float x = pop(); push(x * x); } }
        float->float filter Fir(int step) {
            work push 1 pop step peek 32 {
                float sum = 0;
                for (int i = 0; i < 32; i++) sum += (i + 1) * peek(i);
                push(sum);
                for (int i = 0; i < step; i++) pop();
            }
        }
        float->float pipeline Windows { add Square; add Fir(1); add Square; add Fir(8); }";
    let program = compile_stream(text, "Windows").unwrap();
    let [interp, _] = devices();
    let ptx = Compiled::new(&program, &interp).unwrap().ptx().unwrap();
    let shifts = ptx.lines().filter(|line| line.trim_start().starts_with("shr.")).count();
    assert!((32..48).contains(&shifts), "{shifts} shifts for two filters of 32 taps\n{ptx}");
}

/// A bank of linear filters that go down and up in rate becomes one linear filter. Each band alone would take
/// more products as one filter, but all of them together take fewer.
#[test]
fn a_bank_of_linear_filters_is_one_filter() {
    let text = include_str!("../../../../../examples/stream/filter_bank.str");
    let program = compile_stream(text, "FilterBank(8, 32)").unwrap();
    for device in devices() {
        let compiled = Compiled::with(&program, &device, FAST).unwrap();
        let explained = compiled.explain();
        assert_eq!((compiled.summary().kernels, compiled.summary().actors), (1, 1), "{explained}");
        assert!(explained.contains("41 linear filters as one"), "{explained}");
    }
}

/// A block has enough units to give every filter work for all threads.
#[test]
fn every_filter_has_work_for_all_threads() {
    let float = |i: usize| ((i * 7919 % 1013) as f32).to_bits();
    let text = include_str!("../../../../../examples/stream/comparison_counting.str");
    agree(text, "ComparisonCounting(32)", 70, &float);
    let program = compile_stream(text, "ComparisonCounting(32)").unwrap();
    let [_, cpu] = devices();
    let explained = Compiled::new(&program, &cpu).unwrap().explain();
    assert!(explained.contains("64 units for each block of 64 threads"), "{explained}");
}

/// Indices on the device have 32 bits. A steady state that needs more stays on the host.
#[test]
fn a_steady_state_beyond_32_bits_stays_on_the_host() {
    let pipeline = |push: u32, pop: u32| {
        format!(
            "void->void pipeline Top {{ add void->int filter {{ work push {push} {{ for (int i = 0; i < {push}; i++) push(i); }} }} \
             add int->int filter {{ work pop {pop} push 1 {{ int a = 0; for (int i = 0; i < {pop}; i++) a += pop(); push(a); }} }} \
             add int->void filter {{ work pop 1 {{ println(pop()); }} }} }}"
        )
    };
    for device in devices() {
        let (large, small) = (compile(&pipeline(70_000, 70_001)), compile(&pipeline(700, 701)));
        let on_host = |program: &Program| Compiled::new(program, &device).unwrap().summary().on_host;
        assert_eq!((on_host(&large), on_host(&small)), (3, 1));
    }
}
