//! No text makes the compiler or the evaluator panic, hang or overflow the stack.

use broadloom_stream::Program;
use broadloom_stream::eval::{Limits, Memory, Settings};
use std::path::Path;

fn limits() -> Limits {
    Limits {
        steps: 20_000,
        construction: 10_000,
        cells: 1 << 16,
        depth: 200,
        nodes: 500,
        schedule: 1 << 12,
        firing: 1 << 16,
        stop: None,
    }
}

fn survive(text: &str) -> String {
    let mut host = Memory::default();
    match Program::compile("hostile.str", text, &mut host, &limits()) {
        Err(failure) => failure.to_string(),
        Ok(program) => match program.run(&mut host, &Settings { iterations: Some(2), limits: limits(), style: None }) {
            Ok(_) => String::new(),
            Err(failure) => failure.to_string(),
        },
    }
}

fn programs() -> Vec<String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = vec![];
    for folder in ["tests/programs", "tests/mistakes"] {
        for entry in std::fs::read_dir(here.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "str") {
                texts.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }
    texts.sort();
    texts
}

#[test]
fn texts_that_are_cut() {
    for text in programs() {
        for part in 1..8 {
            let mut end = text.len() * part / 8;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            survive(&text[..end]);
        }
    }
}

#[test]
fn texts_with_words_exchanged() {
    let mut state = 99u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    for text in programs() {
        let words: Vec<&str> = text.split_inclusive(|c: char| !c.is_alphanumeric()).collect();
        for _ in 0..6 {
            let mut changed = words.clone();
            for _ in 0..3 {
                let (a, b) = (below(words.len()), below(words.len()));
                match below(3) {
                    0 => changed.swap(a, b),
                    1 => changed[a] = changed[b],
                    _ => changed[a] = ["0 ", "-1 ", "2147483647 ", "pop() ", "} ", "{ ", "[3] ", "int ", "1.5 "][below(9)],
                }
            }
            survive(&changed.concat());
        }
    }
}

#[test]
fn nesting_has_a_limit() {
    let deep = |open: &str, close: &str, count: usize| {
        let expr = open.repeat(count) + "1" + &close.repeat(count);
        survive(&format!("void->void filter Top {{ work {{ println({expr}); }} }}"))
    };
    assert!(deep("(", ")", 100_000).contains("levels of nesting"));
    assert!(deep("-", "", 100_000).contains("levels of nesting"));
    assert!(deep("", "+1", 100_000).contains("levels of nesting"));
    assert!(deep("f(", ")", 100_000).contains("levels of nesting"));
    assert_eq!(deep("(", ")", 100), "");
    let blocks = "{".repeat(100_000);
    assert!(survive(&format!("void->void filter Top {{ work {blocks}")).contains("levels of nesting"));
    let anonymous = "add pipeline { ".repeat(100_000);
    assert!(survive(&format!("void->void pipeline Top {{ {anonymous}")).contains("levels of nesting"));
}

#[test]
fn limits_are_errors() {
    let filter = |fields: &str, work: &str| format!("void->void filter Top {{ {fields} work {{ {work} }} }}");
    assert!(survive(&filter("int[1000][1000][1000] a;", "")).contains("S0502"));
    assert!(survive(&filter("int f(int n) { int[1000] a; return f(n + 1) + a[0]; }", "f(0);")).contains("S050"));
    assert!(survive(&filter("", "int i = 0; while (i >= 0) { i = i * 1; }")).contains("S0501"));
    assert!(
        survive("void->void pipeline Top { for (int i = 0; i >= 0; i++) add void->void filter { work { } } }").contains("S0504")
    );
    assert!(survive("void->void pipeline Top { int i = 0; while (i >= 0) i = i * 1; }").contains("stopped after 10000 steps"));
    let growing = "void->void pipeline Top { add void->int filter { work push [0, *] { while (true) push(1); } } \
                   add int->void filter { work pop 1 { pop(); } } }";
    assert!(survive(growing).contains("S050"));
    let rates = "void->void pipeline Top { add void->int filter { work push 2147483647 { push(1); } } \
                 add int->void filter { work pop 2147483646 { pop(); } } }";
    assert!(survive(rates).contains("S0504"));
    let around = |inner: &str| {
        format!(
            "void->void pipeline Top {{ add void->int filter {{ work push 1 {{ push(1); }} }} {inner} \
             add int->void filter {{ work pop 1 {{ pop(); }} }} }} \
             int->int pipeline Grow(int n) {{ add Identity<int>; add Grow(n + 1); }}"
        )
    };
    let multiplied = "for (int k = 0; k < 8; k++) add int->int filter { work push 65537 pop 65536 { push(pop()); } }";
    assert!(survive(&around(multiplied)).contains("than can be counted"));
    assert!(survive(&around("add Grow(1);")).contains("S050"));
    assert!(
        survive(&around("int z = 0; add int->int filter { int[10 / z] a; work push 1 pop 1 { push(pop()); } }")).contains("zero")
    );
    let weights = "add splitjoin { split roundrobin(2147483647, 2147483647); add Identity<int>; add Identity<int>; \
                   join roundrobin(2147483647, 2147483647); }";
    assert!(survive(&around(weights)).contains("S0504"));
    let peeks = "add int->int filter { work push 1 pop 1 peek 2000000000 { push(pop()); } }";
    assert!(survive(&around(peeks)).contains("error[S0"));
}

/// A filter with a dynamic rate that never pushes does not keep its reader waiting forever.
#[test]
fn a_filter_that_never_pushes_is_an_error() {
    let text = "void->void pipeline Top { add void->int filter { int n; work push 1 { push(n++); } } \
                add int->int filter { work push [0, 1] pop 1 { pop(); } } add int->void filter { work pop 1 { println(pop()); } } }";
    let mut host = Memory::default();
    let limits = Limits { schedule: 1000, ..Limits::default() };
    let program = Program::compile("never.str", text, &mut host, &limits).unwrap();
    let failure = program.run(&mut host, &Settings { iterations: Some(1), limits, style: None }).unwrap_err();
    assert!(failure.to_string().contains("1001 firings of `filter#2` gave no item to the tape"), "{failure}");
}

/// A long pipeline compiles in reasonable time. The time should grow linearly with its length.
#[test]
fn long_pipelines_compile() {
    let text = "void->void pipeline Top { add void->int filter { int n; work push 1 { push(n++); } } \
                for (int i = 0; i < 1000; i++) add int->int filter { work push 1 pop 1 { push(pop() * 3 + i); } } \
                add int->void filter { work pop 1 { println(pop()); } } }";
    let mut host = Memory::default();
    let program = Program::compile("long.str", text, &mut host, &Limits::default()).unwrap();
    let device = broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default()));
    let compiled = broadloom_stream::compiled::Compiled::new(&program, &device).unwrap();
    compiled.run(&mut host, &Settings { iterations: Some(2), ..Settings::default() }).unwrap();
    let mut expected = Memory::default();
    program.run(&mut expected, &Settings { iterations: Some(2), ..Settings::default() }).unwrap();
    assert_eq!(host.output, expected.output);
}
