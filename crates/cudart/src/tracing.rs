//! `BROADLOOM_TRACE`: what happened when, written to a file when the program ends.
//!
//! Every call of the program is a span of its thread; the device adds spans of its streams. A file whose name has `%p` in it gets the number of the
//! process there, for programs that start others. **Only the process that began a trace writes it**, not what it forks.

use crate::state::Runtime;
use crate::tell::tell;
use broadloom_device::trace::{Span, Trace, is_on, span};
use std::fs::File;
use std::io::BufWriter;
use std::sync::{Mutex, Once, PoisonError};

/// A trace that is being taken, where it goes, and who takes it.
static TAKEN: Mutex<Option<(Trace, String, u32)>> = Mutex::new(None);

/// The program ends.
pub(crate) extern "C" fn at_exit() {
    // A panic must not meet C; nobody is left to tell of one.
    let _ = std::panic::catch_unwind(finish);
}

/// Starts a trace when the environment asks for one.
fn start() {
    let Some(path) = std::env::var("BROADLOOM_TRACE").ok().filter(|path| !path.is_empty()) else { return };
    let process = std::process::id();
    let path = path.replace("%p", &process.to_string());
    if let Some(trace) = Trace::start() {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = Some((trace, path, process));
        write_at_exit();
    }
}

/// Has the trace written when the program ends, before what was registered so far is called.
pub(crate) fn write_at_exit() {
    // SAFETY: a function that is there until the end. When there is no room for it, no file is written.
    unsafe { libc::atexit(at_exit) };
}

/// Whether there is a trace.
pub(crate) fn is_wanted() -> bool {
    start_once();
    is_on()
}

fn start_once() {
    static STARTED: Once = Once::new();
    STARTED.call_once(start);
}

/// Writes the trace once all work is done.
fn finish() {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((trace, path, process)) = taken else { return };
    if process != std::process::id() {
        // What was forked has nothing to write, and what it would drop is its parent's.
        std::mem::forget(trace);
        return;
    }
    if let Some(opened) = Runtime::get().opened() {
        // An error was told to the program, or is nobody's any more.
        let _ = opened.backend().synchronise();
    }
    crate::pass::finish();
    let written = File::create(&path).and_then(|file| trace.finish(&mut BufWriter::new(file)));
    if let Err(error) = written {
        tell(&format!("{path} cannot be written: {error}"));
    }
}

/// A call of the program, from now until it is dropped.
pub(crate) fn call(name: &'static str) -> Span {
    start_once();
    span(name)
}
