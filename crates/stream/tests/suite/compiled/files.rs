//! Files at kernels: their items pass in blocks, with the bytes that the evaluator writes.

use super::devices;
use broadloom_random::Random;
use broadloom_stream::compiled::{Compiled, Options};
use broadloom_stream::eval::{Host, Limits, Memory, Outcome, Settings};
use broadloom_stream::{Failure, Program};
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};

/// Writes the files `a` and `b` of a host.
fn host(random: &mut Random, lengths: [usize; 2]) -> Memory {
    let host = Memory::default();
    for (name, length) in ["a", "b"].into_iter().zip(lengths) {
        // Small floats: no number is a NaN, and all sums are exact.
        let word = |_| ((random.below(4000_i32) - 2000) as f32 * 0.25).to_le_bytes();
        let bytes: Vec<u8> = (0..length.div_ceil(4)).flat_map(word).collect();
        host.files.lock().unwrap().insert(name.into(), bytes[..length].to_vec());
    }
    host
}

/// Runs a program on files of random lengths. All files and all text have to be those of the evaluator.
fn check(text: &str, lengths: usize, latency: Option<u64>) {
    let program = Program::compile("x.str", text, &mut Memory::default(), &Limits::default());
    let program = program.unwrap_or_else(|failure| panic!("{failure}"));
    let mut random = Random::new(text.len() as u64);
    for device in devices() {
        let compiled = Compiled::with(&program, &device, Options { latency, ..Options::default() });
        let compiled = compiled.unwrap_or_else(|failure| panic!("{failure}"));
        for _ in 0..lengths {
            let [a, b] = [random.below(3000_u64), random.below(3000_u64)].map(|length| length as usize);
            let expected = host(&mut random, [a, b]);
            let found = Memory { files: Arc::new(Mutex::new(expected.files.lock().unwrap().clone())), ..Memory::default() };
            let (mut expected, mut found) = (expected, found);
            for iterations in [None, Some(random.below(200_u64))] {
                let settings = Settings { iterations, ..Settings::default() };
                let run = |result: Result<Outcome, Failure>| result.map_err(|failure| failure.to_string());
                let wanted = run(program.run(&mut expected, &settings));
                assert_eq!(run(compiled.run(&mut found, &settings)), wanted, "{a} and {b} bytes, {iterations:?}\n{text}");
                assert_eq!(found.output, expected.output, "{a} and {b} bytes, {iterations:?}\n{text}");
                let (found, expected) = (found.files.lock().unwrap(), expected.files.lock().unwrap());
                assert!(*found == *expected, "{a} and {b} bytes, {iterations:?}\n{text}\n{}", compiled.explain());
            }
        }
        assert!(compiled.summary().kernels > 0 && compiled.statistics().states > 0, "{text}\n{}", compiled.explain());
    }
}

#[test]
fn items_of_each_type() {
    for (ty, double) in [
        ("int", "2 * pop()"),
        ("float", "2 * pop()"),
        ("double", "2 * pop()"),
        ("complex", "pop() + pop()"),
        ("bit", "pop() ^ pop()"),
    ] {
        let pop = double.matches("pop").count();
        let text = format!(
            "void->void pipeline Top {{
                add FileReader<{ty}>(\"a\");
                add {ty}->{ty} filter {{ work push 1 pop {pop} {{ push({double}); }} }}
                add FileWriter<{ty}>(\"out\");
            }}"
        );
        check(&text, 4, None);
        check(&text, 2, Some(3));
    }
}

#[test]
fn wires_between_files() {
    let inner = [
        "add Identity<float>;",
        "add splitjoin { split roundrobin(2, 1); add Identity<float>; add Identity<float>; join roundrobin(4, 2); };",
        "add splitjoin { split duplicate; add Identity<float>; add Identity<float>; join roundrobin(3, 3); };",
    ];
    for inner in inner {
        let ends = ["add FileReader<float>(\"a\");", "add FileWriter<float>(\"out\");"];
        check(&format!("void->void pipeline Top {{ {} {inner} {} }}", ends[0], ends[1]), 3, None);
    }
}

#[test]
fn several_readers_and_writers() {
    let text = "
        float->float filter Fir(int n) {
            work push 1 pop 1 peek n { float s = 0; for (int i = 0; i < n; i++) s += peek(i) * (i + 1); push(s); pop(); }
        }
        void->void pipeline Top {
            add splitjoin {
                split roundrobin(0);
                add pipeline { add FileReader<float>(\"a\"); add Fir(3); };
                add pipeline { add FileReader<float>(\"b\"); add Fir(5); };
                join roundrobin(2, 1);
            };
            add splitjoin {
                split duplicate;
                add pipeline { add Fir(2); add FileWriter<float>(\"c\"); };
                add pipeline { add Fir(4); add FileWriter<float>(\"d\"); };
                join roundrobin(0);
            };
        }";
    check(text, 6, None);
    check(text, 3, Some(7));
}

#[test]
fn files_and_printing_filters() {
    let text = "void->void pipeline Top {
        add FileReader<float>(\"a\");
        add float->float filter { work push 1 pop 1 peek 4 { push(peek(3) - pop()); } }
        add float->float filter { work push 2 pop 3 { float x = pop(); println(x); push(x); push(pop() + pop()); } }
        add float->float filter { work push 1 pop 1 peek 2 { push(peek(1) + pop()); } }
        add FileWriter<float>(\"out\");
    }";
    check(text, 6, None);
    let text = "void->void pipeline Top {
        add FileReader<float>(\"a\");
        add float->float filter { work push 1 pop 1 { float x = pop(); if (x > 400) println(\"high \" + x); push(x); } }
        add float->float filter { work push 1 pop 2 { push(pop() + pop()); } }
        add float->float filter { work push 1 pop 1 { float x = pop(); if (x < 0) println(\"low \" + x); push(x); } }
        add FileWriter<float>(\"out\");
    }";
    check(text, 6, None);
    check(text, 2, Some(5));
}

/// Items with several words pass between kernels and a filter on the host.
#[test]
fn structs_between_kernels_and_the_host() {
    let text = "
        struct Pair { int n; float[2] x; complex c; }
        void->void pipeline Top {
            add FileReader<float>(\"a\");
            add float->Pair filter {
                work push 1 pop 2 { Pair p; p.n = 3; p.x[0] = pop(); p.x[1] = pop(); p.c.real = p.x[1]; p.c.imag = 2; push(p); }
            }
            add Pair->Pair filter { work push 1 pop 1 { Pair p = pop(); println(p.x[1]); p.n = 5; push(p); } }
            add Pair->float filter { work push 1 pop 1 peek 2 { Pair q = peek(1); Pair p = pop(); push(p.x[0] + p.n + q.c.real); } }
            add FileWriter<float>(\"out\");
        }";
    check(text, 4, None);
}

/// A host whose input comes item by item, and which notes how much was written before each read.
#[derive(Default)]
struct Slow {
    memory: Memory,
    written: Arc<Mutex<Vec<usize>>>,
}

struct SlowReader {
    memory: Memory,
    items: Box<dyn Read + Send>,
    written: Arc<Mutex<Vec<usize>>>,
}

impl Read for SlowReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.written.lock().unwrap().push(self.memory.files.lock().unwrap().get("out").map_or(0, Vec::len));
        let count = buffer.len().min(4);
        self.items.read(&mut buffer[..count])
    }
}

impl Host for Slow {
    fn print(&mut self, text: &str) -> io::Result<()> {
        self.memory.print(text)
    }

    fn open(&mut self, path: &str) -> io::Result<Box<dyn Read + Send>> {
        let items = self.memory.open(path)?;
        Ok(Box::new(SlowReader { memory: self.memory.clone(), items, written: self.written.clone() }))
    }

    fn create(&mut self, path: &str) -> io::Result<Box<dyn Write + Send>> {
        self.memory.create(path)
    }
}

#[test]
fn no_output_waits_for_more_input() {
    let text = "void->void pipeline Top {
        add FileReader<int>(\"a\");
        add int->int filter { work push 1 pop 1 { push(pop() + 1); } }
        add FileWriter<int>(\"out\");
    }";
    let program = Program::compile("x.str", text, &mut Memory::default(), &Limits::default());
    let program = program.unwrap_or_else(|failure| panic!("{failure}"));
    let check = |run: &dyn Fn(&mut Slow) -> Result<Outcome, Failure>| {
        let mut slow = Slow { memory: host(&mut Random::new(1), [4 * 50, 0]), ..Slow::default() };
        assert_eq!(run(&mut slow).unwrap_or_else(|failure| panic!("{failure}")), Outcome::EndOfInput);
        assert_eq!(*slow.written.lock().unwrap(), (0..=50).map(|items| 4 * items).collect::<Vec<usize>>());
    };
    check(&|slow| program.run(slow, &Settings::default()));
    for device in devices() {
        let compiled = Compiled::new(&program, &device).unwrap_or_else(|failure| panic!("{failure}"));
        check(&|slow| compiled.run(slow, &Settings::default()));
        assert_eq!(compiled.statistics().states, 50);
    }
}

/// A host whose files take a number of bytes.
struct Full {
    memory: Memory,
    room: usize,
    has_threads: bool,
}

struct FullWriter(usize);

impl Write for FullWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or_else(|| io::Error::other("the disk is full"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Host for Full {
    fn print(&mut self, text: &str) -> io::Result<()> {
        self.memory.print(text)
    }

    fn open(&mut self, path: &str) -> io::Result<Box<dyn Read + Send>> {
        self.memory.open(path)
    }

    fn create(&mut self, path: &str) -> io::Result<Box<dyn Write + Send>> {
        if self.room == 0 { self.memory.open(path).map(|_| unreachable!()) } else { Ok(Box::new(FullWriter(self.room))) }
    }

    fn has_file_threads(&self) -> bool {
        self.has_threads
    }
}

#[test]
fn files_that_cannot_be_written_are_named() {
    let text = "void->void pipeline Top {
        add FileReader<float>(\"a\");
        add float->float filter { work push 1 pop 1 { push(pop() * 2); } }
        add FileWriter<float>(\"out\");
    }";
    let program = Program::compile("x.str", text, &mut Memory::default(), &Limits::default());
    let program = program.unwrap_or_else(|failure| panic!("{failure}"));
    // A thread reports the failure behind the end of the input, too.
    for (room, has_threads) in [0, 1, 20_000, 79_999].into_iter().flat_map(|room| [(room, false), (room, true)]) {
        let host = || Full { memory: host(&mut Random::new(1), [80_000, 0]), room, has_threads };
        let expected = program.run(&mut host(), &Settings::default()).unwrap_err().to_string();
        assert!(expected.contains("`out` cannot be written"), "{expected}");
        for device in devices() {
            let compiled = Compiled::new(&program, &device).unwrap_or_else(|failure| panic!("{failure}"));
            let found = compiled.run(&mut host(), &Settings::default()).unwrap_err().to_string();
            assert_eq!(found, expected);
        }
    }
}

/// A host whose printed text nobody reads. It counts the lines.
struct Unread {
    memory: Memory,
    has_threads: bool,
    lines: usize,
}

impl Host for Unread {
    fn print(&mut self, text: &str) -> io::Result<()> {
        self.lines += text.lines().count();
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn open(&mut self, path: &str) -> io::Result<Box<dyn Read + Send>> {
        self.memory.open(path)
    }

    fn create(&mut self, path: &str) -> io::Result<Box<dyn Write + Send>> {
        self.memory.create(path)
    }

    fn has_file_threads(&self) -> bool {
        self.has_threads
    }
}

#[test]
fn files_are_complete_when_nobody_reads_the_text() {
    let text = "void->void pipeline Top {
        add FileReader<int>(\"a\");
        add int->int filter { work push 1 pop 1 { println(peek(0)); push(pop()); } }
        add FileWriter<int>(\"out\");
    }";
    let program = Program::compile("x.str", text, &mut Memory::default(), &Limits::default());
    let program = program.unwrap_or_else(|failure| panic!("{failure}"));
    let settings = Settings { iterations: Some(10), ..Settings::default() };
    let check = |run: &dyn Fn(&mut Unread) -> Result<Outcome, Failure>| {
        for has_threads in [false, true] {
            let mut unread = Unread { memory: host(&mut Random::new(1), [400, 0]), has_threads, lines: 0 };
            assert_eq!(run(&mut unread).unwrap_or_else(|failure| panic!("{failure}")), Outcome::OutputClosed);
            // A slow run tells earlier that nobody reads.
            let files = unread.memory.files.lock().unwrap();
            assert!((1..=10).contains(&unread.lines));
            assert_eq!(files["out"], files["a"][..4 * unread.lines]);
        }
    };
    check(&|unread| program.run(unread, &settings));
    for device in devices() {
        let compiled = Compiled::new(&program, &device).unwrap_or_else(|failure| panic!("{failure}"));
        check(&|unread| compiled.run(unread, &settings));
    }
}

/// The evaluator counts a step for each item that passes a reader or a writer by itself.
#[test]
fn no_item_passes_by_itself() {
    let text = "void->void pipeline Top {
        add FileReader<float>(\"a\");
        add float->float filter { work push 1 pop 1 peek 8 { push(peek(7) - pop()); } }
        add FileWriter<float>(\"out\");
    }";
    let program = Program::compile("x.str", text, &mut Memory::default(), &Limits::default());
    let program = program.unwrap_or_else(|failure| panic!("{failure}"));
    for device in devices() {
        let compiled = Compiled::new(&program, &device).unwrap_or_else(|failure| panic!("{failure}"));
        let mut host = host(&mut Random::new(1), [4 * 50_000, 0]);
        let settings = Settings { limits: Limits { steps: 500, ..Limits::default() }, ..Settings::default() };
        let outcome = compiled.run(&mut host, &settings).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(outcome, Outcome::EndOfInput);
        assert_eq!(host.files.lock().unwrap()["out"].len(), 4 * (50_000 - 7));
    }
}
