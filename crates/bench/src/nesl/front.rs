//! The NESL front end, in the group `start`. It measures the time of the command from its start to the answer
//! of a one-line program. It also measures the time to read and compile a program of about 400 lines, for the
//! first time in a process and again.

use crate::error::Failure;
use crate::group;
use crate::measure::{median, time_command};
use crate::report::Row;
use broadloom::device::private::Temporary;
use broadloom::diag::Sources;
use broadloom::nesl::Program;
use broadloom::nesl::eval::Options;
use broadloom::nesl::run::Target;
use broadloom::nesl::syntax::{FormKind, parse};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The name of the benchmark.
pub(crate) const NAME: &str = "nesl_hello";

const HELLO: &str = "\"hello, world\";\n";
const ANSWER: &str = "it = \"hello, world\" : [char]\n";
const RUNS: usize = 31;
const COMPILATIONS: usize = 10;

/// Parts of the program of 400 lines.
const PARTS: [&str; 15] = [
    include_str!("../../../../examples/nesl/quicksort.nesl"),
    include_str!("../../../../examples/nesl/convex_hull.nesl"),
    include_str!("../../../../examples/nesl/fft.nesl"),
    include_str!("../../../../examples/nesl/primes.nesl"),
    include_str!("../../../../examples/nesl/sparse_product.nesl"),
    include_str!("../../../../examples/nesl/string_search.nesl"),
    include_str!("../../../../examples/nesl/connected_components.nesl"),
    include_str!("../../../../examples/nesl/radix_sort.nesl"),
    include_str!("../../../../examples/nesl/histogram.nesl"),
    include_str!("../../../../examples/nesl/matching.nesl"),
    include_str!("../../../../examples/nesl/spanning_forest.nesl"),
    include_str!("../../../../examples/nesl/barnes_hut.nesl"),
    include_str!("../../../../examples/nesl/suffix_array.nesl"),
    include_str!("../../../../examples/nesl/independent_set.nesl"),
    include_str!("../../../../examples/nesl/conjugate_gradient.nesl"),
];

/// Measures processes of the command, and sessions.
pub(crate) fn run(command: Option<&Path>, device: &str, quick: bool) -> Result<Vec<Row>, Failure> {
    let mut rows = vec![];
    if let Some(command) = command {
        let folder = Temporary::new("broadloom-hello").map_err(|refusal| Failure::Outside(refusal.to_string()))?;
        let file = folder.path().join("hello.nesl");
        std::fs::write(&file, HELLO).map_err(|error| Failure::Outside(format!("{} cannot be made: {error}", file.display())))?;
        let runs = if quick { 1 } else { RUNS };
        let times = (0..runs).map(|_| time_hello(command, &file)).collect::<Result<Vec<_>, _>>()?;
        rows.push(row(NAME, format!("{runs} processes"), device, times));
    }
    let program = definitions();
    let lines = program.lines().count();
    let mut times = (0..if quick { 2 } else { COMPILATIONS }).map(|_| compile(&program)).collect::<Result<Vec<_>, _>>()?;
    rows.push(row("nesl_compile", format!("{lines} lines"), device, vec![times.remove(0)]));
    rows.push(row("nesl_compile_again", format!("{lines} lines"), device, times));
    Ok(rows)
}

/// Returns the definitions of the parts, without their expressions, and a function that calls the problem of
/// each.
fn definitions() -> String {
    let mut text = String::new();
    for (number, part) in PARTS.iter().enumerate() {
        let part = part.replace("problem", &format!("problem_{number}"));
        let mut sources = Sources::new();
        let program = parse(sources.add("part", part.as_str()), &part);
        for form in &program.forms {
            if let FormKind::Function(_) | FormKind::Datatype(_) | FormKind::Bind(..) = form.kind {
                text += sources.text(form.span);
                text.push('\n');
            }
        }
    }
    let calls: Vec<String> = (0..PARTS.len()).map(|number| format!("problem_{number}(n)")).collect();
    text + &format!("function main(n) = ({});\n", calls.join(",\n  "))
}

/// Starts a session, defines the functions of a program and compiles all of them.
fn compile(program: &str) -> Result<Duration, Failure> {
    let start = Instant::now();
    let target = Target::new(|| Err("no device is needed".to_owned()));
    Program::new(program, "main", Options::default(), target).map_err(|failure| Failure::Wrong(failure.0))?;
    Ok(start.elapsed())
}

fn time_hello(command: &Path, file: &Path) -> Result<Duration, Failure> {
    let mut call = Command::new(command);
    call.arg("run").arg(file).stdin(Stdio::null());
    time_command(&mut call, ANSWER)
}

fn row(name: &str, size: String, device: &str, times: Vec<Duration>) -> Row {
    Row::timed(group::START, name, size, device.to_owned(), median(times).unwrap_or_default())
}
