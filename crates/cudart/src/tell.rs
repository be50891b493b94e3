//! Words to the person at the terminal.
//!
//! The library stands inside of somebody else's program, and errors of CUDA are numbers: why a module is refused or a kernel failed can be
//! told nowhere but on standard error. `BROADLOOM_QUIET` set to anything keeps it quiet.

use std::io::Write;
use std::sync::OnceLock;

/// Says something, one line or several. A closed standard error is no error.
pub(crate) fn tell(message: &str) {
    static QUIET: OnceLock<bool> = OnceLock::new();
    if !*QUIET.get_or_init(|| std::env::var_os("BROADLOOM_QUIET").is_some()) {
        let _ = std::io::stderr().lock().write_all(format!("broadloom: {}\n", message.trim_end()).as_bytes());
    }
}

/// Text of a kernel's `printf`: to the stream that the program's own `printf` writes to, so that lines keep their order.
pub(crate) fn print(text: &[u8]) {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    // SAFETY: the C library's standard output is there from before `main` to the end, and locks itself; the bytes are a slice.
    unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len(), stdout) };
}
