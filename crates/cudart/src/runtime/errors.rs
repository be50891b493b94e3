//! Errors: the last one, their names, their texts.

use crate::boundary::{last_error, set_last_error};
use crate::status::Status;
use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::sync::{Mutex, PoisonError};

/// A text that stays where it is.
pub(crate) fn kept(text: &'static str) -> *const c_char {
    static KEPT: Mutex<Option<HashMap<&'static str, CString>>> = Mutex::new(None);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let texts = kept.get_or_insert_with(HashMap::new);
    // A text of ours has no zero inside; the contents of a `CString` do not move with it.
    texts.entry(text).or_insert_with(|| CString::new(text).unwrap_or_default()).as_ptr()
}

const UNKNOWN: &str = "unrecognized error code";

/// The last error of this thread, which is forgotten; but the device keeps that of a kernel that failed.
pub(crate) extern "C" fn cudaGetLastError() -> u32 {
    let last = last_error();
    set_last_error(Status::SUCCESS);
    last.0
}

/// The last error of this thread.
pub(crate) extern "C" fn cudaPeekAtLastError() -> u32 {
    last_error().0
}

/// The name of an error.
pub(crate) extern "C" fn cudaGetErrorName(status: u32) -> *const c_char {
    kept(Status(status).name().unwrap_or(UNKNOWN))
}

/// The text of an error.
pub(crate) extern "C" fn cudaGetErrorString(status: u32) -> *const c_char {
    kept(Status(status).text().unwrap_or(UNKNOWN))
}
