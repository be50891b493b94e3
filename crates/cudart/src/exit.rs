//! End of the process: the reports that are written then, and the exit status.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Reports to write at the end, in the order of their registration.
static REPORTS: Mutex<Vec<extern "C" fn()>> = Mutex::new(vec![]);

/// Registers a report that is written when the process ends, before the reports registered so far. A report
/// may be registered and called several times; later calls find nothing to write.
pub(crate) fn write_at_exit(report: extern "C" fn()) {
    let mut reports = REPORTS.lock().unwrap_or_else(PoisonError::into_inner);
    if !reports.iter().any(|known| std::ptr::fn_addr_eq(*known, report)) {
        reports.push(report);
    }
    drop(reports);
    // SAFETY: the function exists until the process ends. If the handler table is full, the report is missing.
    unsafe { libc::atexit(report) };
}

/// Writes all reports.
pub(crate) fn write_reports() {
    let reports = REPORTS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    reports.iter().rev().for_each(|report| report());
}

/// Called by a shim library when the thread that loaded it ends, usually the main thread at `exit`. That
/// thread may not be the one that opened this library.
#[unsafe(no_mangle)]
extern "C" fn broadloom_exit_begins() {
    // A panic must not unwind into C.
    let _ = std::panic::catch_unwind(broadloom_cpu::compile::thread_ends);
}

/// True if the process is to exit with status 1 in place of 0.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Writes the final reports of a process that exits without its `exit` handlers. Returns the exit status to
/// use.
pub(crate) fn before_leaving(status: i32) -> i32 {
    write_reports();
    if status == 0 && FAILED.load(Ordering::Relaxed) { 1 } else { status }
}

/// Makes the process exit with status 1 in place of 0. Many programs ignore CUDA errors, so a program whose
/// kernels were refused would otherwise seem to succeed.
pub(crate) fn exit_with_failure() {
    unsafe extern "C" {
        fn on_exit(function: extern "C" fn(i32, *mut libc::c_void), argument: *mut libc::c_void) -> i32;
    }
    extern "C" fn at_the_end(status: i32, _: *mut libc::c_void) {
        if status == 0 {
            // Their own handlers would run after this one.
            write_reports();
            // SAFETY: all streams of the C library may be flushed. The process ends here, so handlers
            // registered earlier are skipped.
            unsafe {
                libc::fflush(std::ptr::null_mut());
                libc::_exit(1);
            }
        }
    }
    FAILED.store(true, Ordering::Relaxed);
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: the function stays loaded as long as the library, which is never unloaded once it has started
    // threads.
    ONCE.call_once(|| unsafe {
        on_exit(at_the_end, std::ptr::null_mut());
    });
}
