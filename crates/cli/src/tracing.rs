//! `--trace FILE`: a trace that is written even if the command fails.

use crate::failure::Failure;
use broadloom::device::trace::Trace;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Runs `act`, with a trace if a file is given. The file is created first, so that an unwritable path is
/// reported at once. It is written even if `act` fails.
pub fn traced<T>(path: Option<&Path>, act: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let Some(path) = path else { return act() };
    let refused = |error: std::io::Error| Failure::cannot_write(path, &error);
    let mut file = BufWriter::new(File::create(path).map_err(refused)?);
    let trace = Trace::start();
    let outcome = act();
    let written = match trace {
        Some(trace) => trace.finish(&mut file),
        None => file.flush(),
    };
    // An earlier failure is more important.
    match (outcome, written) {
        (Ok(_), Err(error)) => Err(refused(error)),
        (outcome, _) => outcome,
    }
}
