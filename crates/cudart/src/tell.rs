//! Words to the person at the terminal.
//!
//! The library stands inside of somebody else's program, and errors of CUDA are numbers: why a module is refused or a kernel failed can be
//! told nowhere but on standard error. `BROADLOOM_QUIET=1` keeps it quiet.

use broadloom_cpu::Compiling;
use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says something, one line or several; names of kernels are those of the source. A closed standard error is no error.
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

/// Most characters of a kernel's name in a line of progress.
const NAME_LENGTH: usize = 72;

/// Says what keeps the program waiting, to a person who looks: nobody is told where standard error is a file or a pipe.
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

/// Does something, and what this thread told meanwhile.
pub(crate) fn heard<T>(body: impl FnOnce() -> T) -> (T, String) {
    HEARD.set(Some(String::new()));
    let value = body();
    (value, HEARD.take().unwrap_or_default())
}

/// Whether the process ends with 1 where it would end with 0.
static BADLY: AtomicBool = AtomicBool::new(false);

/// Writes what is written at the end, in a process that leaves without the functions that `exit` calls; the status to leave with.
pub(crate) fn before_leaving(status: i32) -> i32 {
    crate::check::at_exit();
    crate::tracing::at_exit();
    if status == 0 && BADLY.load(Ordering::Relaxed) { 1 } else { status }
}

/// From now on the process ends with 1 where it would end with 0. Many programs look at no error of CUDA: without this, one whose kernels were
/// refused would seem to have done its work.
pub(crate) fn end_badly() {
    unsafe extern "C" {
        fn on_exit(function: extern "C" fn(i32, *mut libc::c_void), argument: *mut libc::c_void) -> i32;
    }
    extern "C" fn at_the_end(status: i32, _: *mut libc::c_void) {
        if status == 0 {
            // What they registered comes behind this.
            crate::check::at_exit();
            crate::tracing::at_exit();
            // SAFETY: every stream of the C library may be flushed, and the process is at its end: what was registered before this is left out.
            unsafe {
                libc::fflush(std::ptr::null_mut());
                libc::_exit(1);
            }
        }
    }
    BADLY.store(true, Ordering::Relaxed);
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: the function stays where it is for as long as the library does, which is never unloaded once it has started threads.
    ONCE.call_once(|| unsafe {
        on_exit(at_the_end, std::ptr::null_mut());
    });
}

/// Text of a kernel's `printf`: to the stream that the program's own `printf` writes to, so that lines keep their order.
pub(crate) fn print(text: &[u8]) {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    // SAFETY: the C library's standard output is there from before `main` to the end, and locks itself; the bytes are a slice.
    unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len(), stdout) };
}
