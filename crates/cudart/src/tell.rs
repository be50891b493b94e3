//! Messages on standard error.
//!
//! The library runs inside the user's program, and CUDA errors are only numbers. The reason for a refused
//! module or a failed kernel can therefore only be reported on standard error. `BROADLOOM_QUIET=1` suppresses
//! it.

use broadloom_cpu::Compiling;
use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

/// Prints a message of one or more lines, with kernel names demangled. A closed standard error is ignored.
pub(crate) fn tell(message: &str) {
    let message = broadloom_device::demangle::in_text(message.trim_end());
    crate::log::note(&message);
    let _ = HEARD.try_with(|heard| {
        if let Some(heard) = &mut *heard.borrow_mut() {
            *heard += &format!("{message}\n");
        }
    });
    if !is_quiet() {
        let _ = std::io::stderr().lock().write_all(format!("broadloom: {message}\n").as_bytes());
    }
}

fn is_quiet() -> bool {
    static QUIET: OnceLock<bool> = OnceLock::new();
    *QUIET.get_or_init(broadloom_device::settings::is_quiet)
}

/// Maximum length of a kernel's name in a progress line.
const NAME_LENGTH: usize = 72;

/// Prints a progress line during compilation, only if standard error is a terminal.
pub(crate) fn progress(compiling: Compiling<'_>) {
    if is_quiet() || !std::io::stderr().is_terminal() {
        return;
    }
    let name = broadloom_device::demangle::in_text(compiling.kernel);
    let kernel = match name.char_indices().nth(NAME_LENGTH) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    };
    let text = format!("broadloom: {}\n", Compiling { kernel: &kernel, ..compiling });
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

thread_local! {
    static HEARD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `body` and returns its result with the messages of this thread meanwhile.
pub(crate) fn heard<T>(body: impl FnOnce() -> T) -> (T, String) {
    HEARD.set(Some(String::new()));
    let value = body();
    (value, HEARD.take().unwrap_or_default())
}

/// Writes the output of a kernel's `printf` to C's standard output, so that it keeps its order with the
/// program's output.
pub(crate) fn print(text: &[u8]) {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    // SAFETY: the C library's standard output exists from before `main` to the end and locks itself. The
    // bytes are a slice.
    unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len(), stdout) };
}
