//! Hostile texts need memory and time in proportion to their length. Each is read in a separate process, so
//! that the peak belongs to it.

use broadloom_diag::Sources;
use broadloom_ptx::{parse, print, verify};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

/// Environment variable that names the text that a child reads.
const CHILD: &str = "BROADLOOM_MEMORY_CASE";

/// Maximum bytes of memory per byte of text. Real code needs about 40: tokens, instructions, names, the
/// print.
const MOST: u64 = 160;
/// Time limit, far more than any of them needs.
const TIME: Duration = Duration::from_secs(30);

/// Returns the peak memory of this process in bytes, if the system reports it.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

const HEADER: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";
const LENGTH: usize = 300_000;

/// Repeats a piece; `#` in it is the number of the repetition.
fn pieces(piece: &str) -> String {
    (0..LENGTH / piece.len()).map(|number| piece.replace('#', &number.to_string())).collect()
}

fn at_the_top(text: &str) -> String {
    format!("{HEADER}{text}\n")
}

fn in_a_kernel(text: &str) -> String {
    at_the_top(&format!(".entry k() {{\n.reg .b32 %r<4000000000>;\n.reg .pred %p<9>;\n{text}\nret;\n}}"))
}

/// Scopes that declare the same name with changing types.
const SCOPES: &str = "{ .reg .f32 a; mov.f32 a, 0f00000000; }\n{ .reg .f64 a; mov.f64 a, 0d0000000000000000; }\n";

/// Text, by the construct it is full of.
type Text = (&'static str, fn() -> String);

const TEXTS: &[Text] = &[
    ("registers", || in_a_kernel(&pieces("mov.b32 %r#, 0;\n"))),
    ("labels", || in_a_kernel(&pieces("L#: bra L#;\n"))),
    ("labels that are missing", || in_a_kernel(&pieces("bra L#;\n"))),
    ("names that are missing", || in_a_kernel(&pieces("mov.b32 %r1, a#;\n"))),
    ("scopes", || in_a_kernel(&pieces(SCOPES))),
    ("scopes with labels", || in_a_kernel(&pieces("{ L: bra L; }\n"))),
    ("scopes with variables", || in_a_kernel(&pieces("{ .local .b32 v; st.local.b32 [v], 0; }\n"))),
    ("scopes with parameters", || in_a_kernel(&pieces("{ .param .b8 p[#]; st.param.b8 [p], 0; }\n"))),
    ("lists of labels", || in_a_kernel(&("L0: L1: L2: L3:\n".to_owned() + &pieces("a#: .branchtargets L<4>;\n")))),
    ("vectors", || in_a_kernel(&pieces("mov.b64 {%r1, %r2}, 7;\n"))),
    ("lines of a source", || in_a_kernel(&pieces(".loc 1 # 3\n@%p1 ret;\n"))),
    ("instructions of the future", || in_a_kernel(&pieces("future.b32 %r#, {%r1, %r2}, [%r3+4];\n"))),
    ("initialisers", || at_the_top(&format!(".global .b8 x[] = {{{}0}};", pieces("1, ")))),
    ("variables", || at_the_top(&pieces(".global .b8 x#[1000000000];\n"))),
    ("functions", || at_the_top(&pieces(".func f#(.param .b32 a);\n"))),
    ("a sum", || at_the_top(&format!(".global .u32 x = {}1;", pieces("1+")))),
    ("debug information", || at_the_top(&format!(".section .debug_info {{\n{}}}", pieces(".b8 1, 2, 3\n")))),
    ("bad characters", || at_the_top(&pieces("` "))),
    ("closing braces", || at_the_top(&pieces("}"))),
    ("opening braces", || in_a_kernel(&pieces("{"))),
    ("a long name", || at_the_top(&format!(".global .u32 {};", pieces("a")))),
    ("a long line", || at_the_top(&pieces(".global .u32 x#; "))),
];

fn read(what: &str, text: &str) {
    let started = Instant::now();
    let before = peak();
    let mut sources = Sources::new();
    let id = sources.add("hostile.ptx", text);
    match parse(&sources, id).map(|module| (print(&module).len(), module)) {
        Ok((length, module)) => {
            assert!(length <= 4 * text.len() + 4096, "{what}: a print of {length} bytes for a text of {}", text.len());
            drop(verify(module));
        }
        Err(diagnostics) => assert!(sources.render_all(&diagnostics).len() < 1 << 20, "{what}: too much is said"),
    }
    assert!(started.elapsed() < TIME, "{what}: {:?} for a text of {} bytes", started.elapsed(), text.len());
    if let (Some(before), Some(after)) = (before, peak()) {
        let used = after - before;
        assert!(used <= MOST * text.len() as u64, "{what}: {used} bytes for a text of {}", text.len());
    }
}

fn memory_stays_in_proportion_to_the_text() -> Result<Completion, Failed> {
    let program = std::env::current_exe()?;
    let mut failures = vec![];
    for number in 0..TEXTS.len() {
        let child = Command::new(&program).env(CHILD, number.to_string()).output()?;
        if !child.status.success() {
            failures.push(String::from_utf8_lossy(&child.stderr).into_owned());
        }
    }
    if !failures.is_empty() {
        return Err(failures.join("\n").into());
    }
    Ok(match peak() {
        Some(_) => Completion::Completed,
        None => Completion::ignored_with("skipped: /proc/self/status does not tell the peak memory; time and length hold"),
    })
}

fn main() {
    if let Ok(number) = std::env::var(CHILD) {
        let (what, text) = TEXTS[number.parse::<usize>().unwrap()];
        read(what, &text());
        return;
    }
    let trial = Trial::ignorable_test("memory_stays_in_proportion_to_the_text", memory_stays_in_proportion_to_the_text);
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit();
}
