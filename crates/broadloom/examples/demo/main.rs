//! Demonstration of Broadloom: six jobs, each with its answer, its time and the time of a plain loop.
//!
//! `make demo` builds the command and runs this. Every job but the arrays is a call of the command `broadloom`, as a
//! user would type it, timed from start to end: once with an empty cache of compiled code, once again. The plain
//! loops of `plain.rs` do the same work on one core, in this process. Every answer is compared with theirs.
//!
//! `demo --quick` takes small sizes. It is for tests, and its times say nothing.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

mod arrays;
mod cuda;
mod picture;
mod plain;
mod quicksort;
mod race;
mod radio;
mod report;
mod session;

use report::Row;
use session::Session;

/// Error of a job, in words.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A job: its title, what to look at, and its code.
type Job = (&'static str, &'static str, fn(&Session) -> Result<Row>);

const JOBS: [Job; 6] = [
    (
        "An image without its noise",
        "Image effects on files: non-local means compares every patch with its neighbours.",
        picture::run,
    ),
    ("A Julia set from whole arrays", "Arrays in Rust: 48 rounds of z² + c, fused into one kernel.", arrays::run),
    ("Quicksort of a million numbers in NESL", "Nested parallelism: all parts of a level are sorted at once.", quicksort::run),
    ("A radio that recognises a melody", "StreamIt: an FM receiver and a bank of filters, 19 of them on the device.", radio::run),
    ("A CUDA program without a GPU", "The binary that nvcc linked, unmodified: two galaxies meet.", cuda::run),
    ("A race, found at its source line", "The checker names both threads and the line of the CUDA source.", race::run),
];

fn main() -> std::process::ExitCode {
    let session = match Session::new(std::env::args().any(|argument| argument == "--quick")) {
        Ok(session) => session,
        Err(error) => return failed("start", &*error),
    };
    let mut rows = vec![];
    for (index, (title, about, job)) in JOBS.iter().enumerate() {
        session.chapter(&format!("{} of {}  {title}", index + 1, JOBS.len()), about);
        match job(&session) {
            Ok(row) => rows.push(row),
            Err(error) => return failed(title, &*error),
        }
    }
    session.chapter(
        "Summary",
        &format!("On the device `{}`. Times are from start to end, files and compilation included.", session.device()),
    );
    print!("{}", report::table(&rows));
    println!("\nThe files are in {}. Next: `broadloom --help`, README.md, docs/.", session.shown(session.folder()));
    std::process::ExitCode::SUCCESS
}

/// Reports a job that failed.
fn failed(job: &str, error: &dyn std::error::Error) -> std::process::ExitCode {
    eprintln!("demo: {job}: {error}");
    std::process::ExitCode::FAILURE
}
