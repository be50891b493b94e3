//! `BROADLOOM_TRACE`: a trace of calls and device work, written to a file when the program ends.
//!
//! Every call of the program is a span of its thread; the device adds spans of its streams. In the file name,
//! `%p` is replaced by the process ID, for programs that start other processes. **Only the process that
//! started a trace writes it**, not its forked children.

use crate::exit::write_at_exit;
use crate::state::Runtime;
use crate::tell::tell;
use broadloom_cpu::signals::without_file_size_signal;
use broadloom_device::trace::{Span, Trace, is_on, span};
use std::fs::File;
use std::io::BufWriter;
use std::sync::{Mutex, Once, OnceLock, PoisonError};

/// Current trace with its path and process ID.
static TAKEN: Mutex<Option<(Trace, String, u32)>> = Mutex::new(None);

/// Function that completes the trace before it is written.
static COMPLETE: OnceLock<fn()> = OnceLock::new();

/// Sets the function that completes the trace before it is written.
pub(crate) fn set_complete(complete: fn()) {
    COMPLETE.get_or_init(|| complete);
}

/// Makes the exit handler that writes the trace run before the handlers registered so far.
pub(crate) fn write_first() {
    write_at_exit(at_exit);
}

/// Writes the trace at exit.
extern "C" fn at_exit() {
    // A panic must not unwind into C. At exit it cannot be reported either.
    let _ = std::panic::catch_unwind(finish);
}

/// Starts a trace if the environment requests one.
fn start() {
    let Some(path) = std::env::var("BROADLOOM_TRACE").ok().filter(|path| !path.is_empty()) else { return };
    let process = std::process::id();
    let path = path.replace("%p", &process.to_string());
    if let Some(trace) = Trace::start() {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = Some((trace, path, process));
        write_at_exit(at_exit);
    }
}

/// Tests if a trace is requested.
pub(crate) fn is_wanted() -> bool {
    start_once();
    is_on()
}

fn start_once() {
    static STARTED: Once = Once::new();
    STARTED.call_once(start);
}

/// Writes the trace after all work is done.
fn finish() {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((trace, path, process)) = taken else { return };
    if process != std::process::id() {
        // A forked child writes nothing, and the trace's resources belong to the parent.
        std::mem::forget(trace);
        return;
    }
    if let Some(opened) = Runtime::get().opened() {
        // The program has already received any error, or can no longer use it.
        let _ = opened.backend().synchronise();
    }
    if let Some(complete) = COMPLETE.get() {
        complete();
    }
    let write = || File::create(&path).and_then(|file| trace.finish(&mut BufWriter::new(file)));
    let written = without_file_size_signal(write);
    if let Err(error) = written {
        tell(&format!("{path} cannot be written: {error}"));
    }
}

/// Starts the span of a call, which ends when the value is dropped.
pub(crate) fn call(name: &'static str) -> Span {
    start_once();
    span(name)
}
