//! What the driver prints for kernels, turned aside.
//!
//! The driver formats `printf` itself and writes the text to standard output when the device is waited for. Whoever wants the text gets it by
//! standing in for standard output meanwhile; **one at a time in the process, and standard output is put back whatever happens.** What other
//! threads print in that moment is turned aside too.

use crate::device::Output;
use std::ffi::c_int;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::{Mutex, PoisonError};

/// Puts standard output back when it is dropped.
struct Aside {
    before: c_int,
}

impl Drop for Aside {
    fn drop(&mut self) {
        // SAFETY: flushing all streams of C; the descriptor is one that `dup` gave, closed once.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::dup2(self.before, libc::STDOUT_FILENO);
            libc::close(self.before);
        }
    }
}

/// Does something and hands over what was written to standard output meanwhile. Where that is not to be had, it goes where it went before.
pub(crate) fn during<T>(output: &Output, act: impl FnOnce() -> T) -> T {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the name is a string of C; a descriptor that is new belongs to nobody else.
    let file = unsafe { libc::memfd_create(c"broadloom-printf".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return act();
    }
    // SAFETY: as above.
    let mut file = unsafe { File::from_raw_fd(file) };
    // SAFETY: flushing and duplicating descriptors of the process.
    let before = unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::dup(libc::STDOUT_FILENO)
    };
    if before < 0 {
        return act();
    }
    let aside = Aside { before };
    // SAFETY: both are open.
    if unsafe { libc::dup2(file.as_raw_fd(), libc::STDOUT_FILENO) } < 0 {
        drop(aside);
        return act();
    }
    let outcome = act();
    drop(aside);
    let mut text = vec![];
    if file.rewind().is_ok() && file.read_to_end(&mut text).is_ok() && !text.is_empty() {
        output(&text);
    }
    outcome
}
