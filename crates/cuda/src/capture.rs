//! Capture of the driver's `printf` output.
//!
//! The driver formats `printf` itself and writes the text to standard output when the device is synchronised.
//! The text is captured by redirecting standard output meanwhile, **by one thread of the process at a time,
//! and standard output is always restored.** Output of other threads at that moment is captured too.

use crate::options::Output;
use std::ffi::c_int;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::{Mutex, PoisonError};

/// Redirection of standard output, undone on drop.
struct RedirectedOutput {
    before: c_int,
}

impl Drop for RedirectedOutput {
    fn drop(&mut self) {
        // SAFETY: flushes all C streams. The descriptor came from `dup` and is closed once.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::dup2(self.before, libc::STDOUT_FILENO);
            libc::close(self.before);
        }
    }
}

/// Runs `act` and passes the text written to standard output meanwhile to `output`. If redirection fails, the
/// text goes to standard output as usual.
pub(crate) fn during<T>(output: &Output, act: impl FnOnce() -> T) -> T {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the name is a C string. A new descriptor has no other owner.
    let file = unsafe { libc::memfd_create(c"broadloom-printf".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return act();
    }
    // SAFETY: as above.
    let mut file = unsafe { File::from_raw_fd(file) };
    // SAFETY: flushes streams and duplicates a descriptor of the process.
    let before = unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::dup(libc::STDOUT_FILENO)
    };
    if before < 0 {
        return act();
    }
    let redirected = RedirectedOutput { before };
    // SAFETY: both are open.
    if unsafe { libc::dup2(file.as_raw_fd(), libc::STDOUT_FILENO) } < 0 {
        drop(redirected);
        return act();
    }
    let outcome = act();
    drop(redirected);
    let mut text = vec![];
    if file.rewind().is_ok() && file.read_to_end(&mut text).is_ok() && !text.is_empty() {
        output(&text);
    }
    outcome
}
