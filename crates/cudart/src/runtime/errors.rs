//! Errors: the last error, names and texts.

use crate::boundary::{last_error, set_last_error};
use crate::status::Status;
use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::sync::{Mutex, PoisonError};

/// Returns a pointer to a zero-terminated copy of a text that stays valid.
pub(crate) fn kept(text: &'static str) -> *const c_char {
    static KEPT: Mutex<Option<HashMap<&'static str, CString>>> = Mutex::new(None);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let texts = kept.get_or_insert_with(HashMap::new);
    // The texts contain no zero, and the contents of a `CString` do not move with it.
    texts.entry(text).or_insert_with(|| CString::new(text).unwrap_or_default()).as_ptr()
}

const UNKNOWN: &str = "unrecognized error code";

/// Returns and clears the last error of this thread. A kernel's error stays with the device.
pub(crate) extern "C" fn cudaGetLastError() -> u32 {
    let last = last_error();
    set_last_error(Status::SUCCESS);
    last.0
}

/// Returns the last error of this thread.
pub(crate) extern "C" fn cudaPeekAtLastError() -> u32 {
    last_error().0
}

/// Returns the name of an error.
pub(crate) extern "C" fn cudaGetErrorName(status: u32) -> *const c_char {
    kept(Status(status).name().unwrap_or(UNKNOWN))
}

/// Returns the text of an error.
pub(crate) extern "C" fn cudaGetErrorString(status: u32) -> *const c_char {
    kept(Status(status).text().unwrap_or(UNKNOWN))
}
