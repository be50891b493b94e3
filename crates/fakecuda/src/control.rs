//! Faults of the fake driver: call counts, injected failures, and live objects.

use crate::faults::{Faults, Plan, faults};
use crate::state::state;
use std::ffi::{CStr, c_char};

fn text<'a>(name: *const c_char) -> &'a str {
    if name.is_null() {
        return "";
    }
    // SAFETY: a test passes a C string.
    unsafe { CStr::from_ptr(name) }.to_str().unwrap_or_default()
}

/// Makes the n-th later call of a function, counted from one, return a code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_fail(function: *const c_char, number: u64, code: u32) {
    let mut faults = faults();
    faults.fired = false;
    faults.plan = Some(Plan { function: text(function).to_owned(), skip: number.saturating_sub(1), code });
}

/// Clears plans, counts, violations and leaks.
#[unsafe(no_mangle)]
pub extern "C" fn fakecuda_forget() {
    *faults() = Faults { from_environment: true, ..Faults::default() };
}

/// Tests if the planned failure has occurred.
#[unsafe(no_mangle)]
pub extern "C" fn fakecuda_fired() -> bool {
    faults().fired
}

/// Returns the number of calls of a function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_calls(function: *const c_char) -> u64 {
    faults().calls.get(text(function)).copied().unwrap_or(0)
}

/// Returns the number of live objects: contexts, and in them memory, pinned memory, streams, events, modules
/// and graphs, plus those that were alive when a healthy context ended.
#[unsafe(no_mangle)]
pub extern "C" fn fakecuda_alive() -> u64 {
    let leaked = faults().leaked;
    state().alive() + leaked
}

/// Copies a zero-terminated report of live objects and violations to a buffer. Returns the number of
/// violations.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_report(buffer: *mut u8, bytes: usize) -> u64 {
    let alive = state().describe();
    let faults = faults();
    let report = format!("{alive}, {} leaked; {}", faults.leaked, faults.violations.join("; "));
    let count = report.len().min(bytes.saturating_sub(1));
    if bytes > 0 && !buffer.is_null() {
        // SAFETY: the test passes a buffer of this size.
        unsafe {
            std::ptr::copy_nonoverlapping(report.as_ptr(), buffer, count);
            *buffer.add(count) = 0;
        }
    }
    faults.violations.len() as u64
}
