//! `--trace FILE`: what happened when, written whatever came of it.

use crate::failure::{Exit, Failure, codes};
use broadloom::device::trace::Trace;
use broadloom::diag::Diagnostic;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Does something, with a trace when there is a file for it. The file is made before anything is done, so that a place that cannot be
/// written is told at once; it is written whether or not what was done failed.
pub fn traced<T>(path: Option<&Path>, act: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let Some(path) = path else { return act() };
    let refused = |error: std::io::Error| {
        let message = format!("{} cannot be written: {error}", path.display());
        Failure::new(Exit::Machine, Diagnostic::error(codes::CANNOT_WRITE, message))
    };
    let mut file = BufWriter::new(File::create(path).map_err(refused)?);
    let trace = Trace::start();
    let outcome = act();
    let written = match trace {
        Some(trace) => trace.finish(&mut file),
        None => file.flush(),
    };
    // What went wrong before matters more.
    match (outcome, written) {
        (Ok(_), Err(error)) => Err(refused(error)),
        (outcome, _) => outcome,
    }
}
