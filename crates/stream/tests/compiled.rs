//! Compiled programs against the evaluator.

use broadloom_cpu::Cpu;
use broadloom_device::Device;
use broadloom_interp::Interp;
use broadloom_stream::Program;
use broadloom_stream::compiled::{Compiled, Ports, Session, Statistics, Summary};
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

/// Splitters and joiners are index arithmetic, equal branches one actor, permutations no copies.
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
    assert!(statistics.states == 20 && statistics.repeated == 0, "{statistics:?}");
    let different = "add splitjoin {
        split duplicate;
        for (int i = 0; i < 3; i++) add Odd(i);
        join roundrobin(1, 2, 1);
    }"
    .replace("duplicate", "roundrobin(2, 4, 2)");
    let (summary, _) = check(&around(&different, ""), 20, &interp);
    assert_eq!((summary.kernels, summary.copies, summary.actors), (1, 0, 4), "{summary:?}");
    // A permutation, and the same one within another, between filters.
    let permutation = "add Twice; add Turn(2); add Turn(3); add Twice;";
    let turn = "int->int pipeline Turn(int n) {
        add splitjoin { split roundrobin(1); for (int i = 0; i < n; i++) add Identity<int>; join roundrobin(4); }
        add splitjoin { split roundrobin(4); for (int i = 0; i < n; i++) add Half; join roundrobin(4); }
    }
    int->int splitjoin Half { split roundrobin(2); add Identity<int>; add Identity<int>; join roundrobin(1); }";
    let (summary, _) = check(&around(permutation, turn), 20, &interp);
    assert_eq!((summary.kernels, summary.copies, summary.actors), (1, 0, 3), "{summary:?}");
    // Items that pass by all filters are copied: nobody else puts them in order.
    let passing = "add splitjoin { split duplicate; add Identity<int>; add Twice; join roundrobin(1, 1); }";
    let (summary, _) = check(&around(passing, ""), 20, &interp);
    assert_eq!((summary.kernels, summary.copies), (1, 1), "{summary:?}");
}

/// The transform of the examples, larger: one kernel.
#[test]
fn a_fourier_transform_is_one_kernel() {
    let text = include_str!("../../../examples/streamit/fft.str").replace("int n = 16", "int n = 64");
    for device in devices() {
        let program = compile(&text);
        let compiled = Compiled::new(&program, &device).unwrap();
        let summary = compiled.summary();
        assert!(summary.kernels == 1 && summary.copies == 0, "{}", compiled.explain());
        check(&text, 3, &device);
    }
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
    assert_eq!(statistics.repeated, 1);
    let (_, statistics) = check(text, 10, &interp);
    assert_eq!(statistics.repeated, 0);
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
    assert!(summary.kernels == 2 && statistics.states > 20 && statistics.repeated == 0, "{summary:?} {statistics:?}");
}

/// A session takes pieces of any length and gives what one piece gives.
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
        assert_eq!(found[..], expected[..found.len()]);
        assert!(found.len() + 4 >= expected.len(), "{} of {}", found.len(), expected.len());
    }
}
