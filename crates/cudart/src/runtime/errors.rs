//! Errors: the last error, names and texts.

use crate::boundary::{last_error, set_last_error};
use crate::pointer::kept_text;
use crate::status::Status;
use std::ffi::c_char;

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
    kept_text(Status(status).name().unwrap_or(UNKNOWN))
}

/// Returns the text of an error.
pub(crate) extern "C" fn cudaGetErrorString(status: u32) -> *const c_char {
    kept_text(Status(status).text().unwrap_or(UNKNOWN))
}
