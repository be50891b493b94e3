//! Messages on standard error.
//!
//! The library runs inside the user's program, and CUDA errors are only numbers. The reason for a refused
//! module or a failed kernel can therefore only be reported on standard error. `BROADLOOM_QUIET=1` suppresses
//! it.

use broadloom_cpu::Compiling;
use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Called by a shim library when the thread that loaded it ends, usually the main thread at `exit`. That
/// thread may not be the one that opened this library.
#[unsafe(no_mangle)]
extern "C" fn broadloom_exit_begins() {
    // A panic must not unwind into C.
    let _ = std::panic::catch_unwind(broadloom_cpu::compile::thread_ends);
}

/// True if the process is to exit with status 1 in place of 0.
static BADLY: AtomicBool = AtomicBool::new(false);

/// Writes the final reports of a process that exits without its `exit` handlers. Returns the exit status to
/// use.
pub(crate) fn before_leaving(status: i32) -> i32 {
    crate::check::at_exit();
    crate::tracing::at_exit();
    if status == 0 && BADLY.load(Ordering::Relaxed) { 1 } else { status }
}

/// Makes the process exit with status 1 in place of 0. Many programs ignore CUDA errors, so a program whose
/// kernels were refused would otherwise seem to succeed.
pub(crate) fn end_badly() {
    unsafe extern "C" {
        fn on_exit(function: extern "C" fn(i32, *mut libc::c_void), argument: *mut libc::c_void) -> i32;
    }
    extern "C" fn at_the_end(status: i32, _: *mut libc::c_void) {
        if status == 0 {
            // Their own handlers would run after this one.
            crate::check::at_exit();
            crate::tracing::at_exit();
            // SAFETY: all streams of the C library may be flushed. The process ends here, so handlers
            // registered earlier are skipped.
            unsafe {
                libc::fflush(std::ptr::null_mut());
                libc::_exit(1);
            }
        }
    }
    BADLY.store(true, Ordering::Relaxed);
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: the function stays loaded as long as the library, which is never unloaded once it has started
    // threads.
    ONCE.call_once(|| unsafe {
        on_exit(at_the_end, std::ptr::null_mut());
    });
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
