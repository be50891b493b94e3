//! Ends of runs: input files that end at any item, and firings that fail after some batches.

use super::devices;
use crate::graphs;
use broadloom_device::Device;
use broadloom_random::Random;
use broadloom_stream::Program;
use broadloom_stream::compiled::{Compiled, Options, Statistics};
use broadloom_stream::eval::{Host, Limits, Memory, Outcome, Settings};
use std::io::{self, Read, Write};

/// A host whose files are pipes: each is opened once, and a read gives a few bytes.
#[derive(Default)]
struct Pipes {
    memory: Memory,
    opened: Vec<String>,
    portion: usize,
}

struct Pipe(Box<dyn Read + Send>, usize);

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(self.1);
        self.0.read(&mut buffer[..count])
    }
}

impl Pipes {
    fn new(input: &[u8], portion: usize) -> Pipes {
        let pipes = Pipes { portion, ..Pipes::default() };
        pipes.memory.files.lock().unwrap().insert("in".into(), input.to_vec());
        pipes
    }

    fn open_once(&mut self, path: &str) {
        assert!(!self.opened.iter().any(|opened| opened == path), "`{path}` is opened twice");
        self.opened.push(path.to_owned());
    }

    fn output(&self) -> (String, Vec<u8>) {
        (self.memory.output.clone(), self.memory.files.lock().unwrap().get("out").cloned().unwrap_or_default())
    }
}

impl Host for Pipes {
    fn print(&mut self, text: &str) -> io::Result<()> {
        self.memory.print(text)
    }

    fn open(&mut self, path: &str) -> io::Result<Box<dyn Read + Send>> {
        self.open_once(path);
        Ok(Box::new(Pipe(self.memory.open(path)?, self.portion)))
    }

    fn create(&mut self, path: &str) -> io::Result<Box<dyn Write + Send>> {
        self.open_once(path);
        self.memory.create(path)
    }
}

/// A program on the evaluator and on a device.
struct Pair<'p> {
    text: &'p str,
    program: &'p Program,
    compiled: Compiled<'p>,
}

fn limits() -> Limits {
    Limits { schedule: 1 << 10, steps: 20_000_000, ..Limits::default() }
}

fn compile(text: &str) -> Program {
    Program::compile("x.str", text, &mut Memory::default(), &limits()).unwrap_or_else(|failure| panic!("{failure}"))
}

impl<'p> Pair<'p> {
    fn new(text: &'p str, program: &'p Program, device: &Device, latency: Option<u64>) -> Pair<'p> {
        let compiled = Compiled::with(program, device, Options { latency, ..Options::default() });
        Pair { text, program, compiled: compiled.unwrap_or_else(|failure| panic!("{failure}")) }
    }

    /// Runs without a number of steady states on an input, of which a read gives at most `portion` bytes. Returns how
    /// both runs ended.
    fn check(&self, input: &[u8], portion: usize) -> Result<Outcome, String> {
        let settings = Settings { limits: limits(), ..Settings::default() };
        let (mut expected, mut found) = (Pipes::new(input, usize::MAX), Pipes::new(input, portion));
        let outcome = |result: Result<_, broadloom_stream::Failure>| result.map_err(|failure| failure.to_string());
        let wanted = outcome(self.program.run(&mut expected, &settings));
        let (text, bytes) = (self.text, input.len());
        assert_eq!(outcome(self.compiled.run(&mut found, &settings)), wanted, "{bytes} bytes\n{text}");
        let (found, expected) = (found.output(), expected.output());
        let agrees = if text.contains("float") { near(&found.1, &expected.1) } else { found.1 == expected.1 };
        assert!(found.0 == expected.0 && agrees, "{bytes} bytes\n{text}\n{}\n{found:?}\n{expected:?}", self.compiled.explain());
        wanted
    }

    fn statistics(&self) -> Statistics {
        self.compiled.statistics()
    }
}

/// Tests if the floats of two files differ by 1e-4 at most, because combined filters round differently.
fn near(found: &[u8], expected: &[u8]) -> bool {
    let floats = |bytes: &[u8]| bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect::<Vec<f32>>();
    let (one, other) = (floats(found), floats(expected));
    found.len() == expected.len() && one.iter().zip(&other).all(|(a, b)| (a - b).abs() <= 1e-4 * b.abs().max(1.0))
}

/// Returns the bytes of small integers.
fn integers(random: &mut Random, count: u64) -> Vec<u8> {
    (0..count).flat_map(|_| random.below(10_000_i32).to_le_bytes()).collect()
}

const FILTERS: &str = "
    float->float filter Scale { work push 1 pop 1 { push(pop() * 0.5); } }
    float->float filter Fir(int n) {
        work push 1 pop 1 peek n { float s = 0; for (int i = 0; i < n; i++) s += peek(i) * (i + 1); push(s); pop(); }
    }
    float->float filter Blocks { work push 3 pop 5 { float a = pop(); push(a + pop()); push(pop()); push(a + pop() - pop()); } }
    float->float filter Late { prework push 2 { push(1); push(2); } work push 1 pop 2 peek 4 { push(peek(3) + pop() - pop()); } }
    float->float filter Sum { float s; work push 1 pop 1 { s += pop(); push(s); } }
    float->float filter Decay { float s; float[3] old; work push 1 pop 1 { s = s * 0.5 + pop() - old[2] * 0.25; old[2] = old[0]; old[0] = s; push(s); } }
    float->float filter Shown { work push 1 pop 1 { float x = pop(); if (x > 900) println(x); push(x); } }
";

const PIPELINES: &[&str] = &[
    "add Scale;",
    "add float->float filter { int n = 5; work push 1 pop 1 { push(pop() + n); n += 3; } } add Fir(3);",
    "add Fir(16);",
    "add Scale; add Fir(64); add Blocks; add Fir(3);",
    "add Late; add Blocks; add Late;",
    "add Sum; add Fir(5); add Decay; add Blocks;",
    "add Fir(4); add Shown; add Fir(4);",
    "add splitjoin { split duplicate; add Fir(7); add Fir(2); add Sum; join roundrobin; } add Blocks;",
    "add splitjoin { split roundrobin(5, 2); add Blocks; add Late; join roundrobin(3, 1); } add Scale;",
    "add feedbackloop { join roundrobin(1, 1);
        body float->float filter { work push 2 pop 2 { float a = pop(); float b = pop(); push(a + b * 0.5); push(a); } }
        split roundrobin(1, 1); loop Identity<float>; for (int i = 0; i < 3; i++) enqueue i; } add Fir(4);",
];

/// The device gives all items that the evaluator gives: the end of the input is not lost. The input is a regular file
/// or a pipe, and is read once.
#[test]
fn the_tail_of_the_input_is_not_lost() {
    let float = |index: u32| ((index * 37 % 101) as f32).to_le_bytes();
    let input: Vec<u8> = (0..25_000).flat_map(float).collect();
    let [interp, cpu] = devices();
    for (number, inner) in PIPELINES.iter().enumerate() {
        let text = format!(
            "void->void pipeline Top {{ add FileReader<float>(\"in\"); {inner} add FileWriter<float>(\"out\"); }} {FILTERS}"
        );
        let program = compile(&text);
        let on_interp = Pair::new(&text, &program, &interp, (number % 2 == 0).then_some(3));
        for (bytes, portion) in [(0, usize::MAX), (1, 1), (4, 4), (399, 24), (400, usize::MAX), (401, 100)] {
            assert_eq!(on_interp.check(&input[..bytes], portion), Ok(Outcome::EndOfInput));
        }
        let on_cpu = Pair::new(&text, &program, &cpu, None);
        for (bytes, portion) in [(399, 100), (400, 3), (401, usize::MAX), (2222, usize::MAX), (4444, 400)] {
            assert_eq!(on_cpu.check(&input[..bytes], portion), Ok(Outcome::EndOfInput));
        }
        let before = on_cpu.statistics();
        assert_eq!(on_cpu.check(&input, usize::MAX), Ok(Outcome::EndOfInput));
        let statistics = on_cpu.statistics();
        assert_eq!(statistics.handed_back, before.handed_back + 1);
        assert!(statistics.states > before.states + 100, "{statistics:?}");
    }
}

/// The states of random programs are handed back to the evaluator at the end of the input, and where a firing fails.
#[test]
fn random_graphs_end_as_on_the_evaluator() {
    let [interp, cpu] = devices();
    let (mut ended, mut failed, mut states) = (0, 0, 0);
    let setting = |name: &str, default: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (first, count) = (setting("BROADLOOM_STREAM_SEED", 7000), setting("BROADLOOM_STREAM_GRAPHS", 60));
    for seed in first..first + count {
        let mut random = graphs::Random { random: Random::new(seed), stateful: 4, reductions: 12 };
        let texts = random.file_programs(2);
        let is_small = |text: &String| Program::compile("x.str", text, &mut Memory::default(), &limits()).is_ok();
        if !texts.iter().all(is_small) {
            continue;
        }
        let count = random.below(3000);
        let input = integers(&mut random.random, count);
        let portion = [usize::MAX, 400][random.below(2) as usize];
        for text in texts {
            let program = compile(&text);
            let pair = Pair::new(&text, &program, if seed % 8 == 0 { &cpu } else { &interp }, None);
            match pair.check(&input, portion) {
                Ok(_) => ended += 1,
                Err(_) => failed += 1,
            }
            states += pair.statistics().states;
        }
    }
    assert!(ended * 2 > count && failed * 20 > count && states > 30 * count, "{ended} {failed} {states}");
}

/// A failing firing does not repeat the run: what was printed before stays, and the input is not read again.
#[test]
fn failing_firings_of_pipes_end_as_on_the_evaluator() {
    let text = "void->void pipeline Top {
        add FileReader<int>(\"in\");
        add int->int filter { int s; work push 1 pop 1 { s += 1; int x = pop(); println(s); push(x + s); } }
        add int->int filter { int s = 900; work push 1 pop 1 peek 3 { s -= 1; push((pop() + peek(1)) / s); } }
        add int->int filter { int n; work push 1 pop 1 { println(\"item \" + n); n++; push(pop()); } }
        add FileWriter<int>(\"out\");
    }";
    let input = integers(&mut Random::new(1), 2000);
    let program = compile(text);
    for device in devices() {
        let pair = Pair::new(text, &program, &device, None);
        let outcome = pair.check(&input, 100);
        assert!(outcome.is_err_and(|error| error.contains("division by zero")));
        let statistics = pair.statistics();
        assert!(statistics.states > 100 && statistics.handed_back == 1, "{statistics:?}");
    }
}

/// Bits are packed in files. Those behind the last whole byte are not lost.
#[test]
fn bits_at_the_end_of_the_input() {
    let text = "void->void pipeline Top {
        add FileReader<bit>(\"in\");
        add bit->bit filter { work push 3 pop 3 { bit a = pop(); push(pop()); push(pop()); push(a); } }
        add FileWriter<bit>(\"out\");
    }";
    let program = compile(text);
    for device in devices() {
        let pair = Pair::new(text, &program, &device, None);
        for bytes in [1, 2, 3, 50] {
            let input: Vec<u8> = (0..bytes).map(|index: u32| (index * 73 + 5) as u8).collect();
            assert_eq!(pair.check(&input, 7), Ok(Outcome::EndOfInput));
        }
    }
}

/// The end of the input gives the same warnings on the evaluator and on devices, and none if nothing is wrong.
#[test]
fn ends_of_input_give_warnings() {
    let text = |window: u32| {
        format!(
            "void->void pipeline Top {{ add FileReader<int>(\"in\");
            add Window; add FileWriter<int>(\"out\"); }}
            int->int filter Window {{ work push 1 pop 1 peek {window} {{ push(pop() + peek({window} - 2)); }} }}"
        )
    };
    let cases = [
        (3, 40, None, None),
        (3, 40, Some(8), None),
        (3, 42, None, Some("`in` ends with 2 bytes, less than an item of 4 bytes")),
        (3, 40, Some(20), Some("`in` ended after 10 items, in steady state 9 of 20")),
        (16, 40, None, Some("`in` ended after 10 items; `Window` needs 16 for its first firing")),
        (3, 0, None, Some("`in` has no items")),
    ];
    for (window, bytes, iterations, expected) in cases {
        let program = compile(&text(window));
        let settings = Settings { iterations, limits: limits(), style: None };
        let warnings = |run: &dyn Fn(&mut Memory)| {
            let mut host = Memory::default();
            host.files.lock().unwrap().insert("in".into(), vec![1; bytes]);
            run(&mut host);
            host.warnings.into_iter().map(|warning| warning.message).collect::<Vec<String>>()
        };
        let expected: Vec<&str> = expected.into_iter().collect();
        assert_eq!(warnings(&|host| _ = program.run(host, &settings).unwrap()), expected);
        for device in devices() {
            let compiled = Compiled::new(&program, &device).unwrap();
            assert_eq!(warnings(&|host| _ = compiled.run(host, &settings).unwrap()), expected);
        }
    }
}
