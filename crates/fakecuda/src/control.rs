//! Control of the fake driver: call counts, injected failures, and live objects.

use crate::state::{Code, code, state};
use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Planned failure of a call.
#[derive(Clone, Debug)]
struct Plan {
    function: String,
    /// Number of calls of the function before it.
    skip: u64,
    code: Code,
}

#[derive(Debug, Default)]
struct Control {
    plan: Option<Plan>,
    calls: HashMap<&'static str, u64>,
    /// True once the planned failure has occurred.
    fired: bool,
    violations: Vec<String>,
    leaked: u64,
    from_environment: bool,
}

fn control() -> MutexGuard<'static, Control> {
    static CONTROL: OnceLock<Mutex<Control>> = OnceLock::new();
    CONTROL.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a call. Returns the result code to give instead of performing it, if any.
pub(crate) fn enter(function: &'static str) -> Option<Code> {
    let mut control = control();
    if !control.from_environment {
        control.from_environment = true;
        if let Ok(text) = std::env::var("BROADLOOM_FAKE_CUDA") {
            let plan = parse(&text).unwrap_or_else(|| panic!("BROADLOOM_FAKE_CUDA is `{text}`, and it takes `NAME:N:CODE`"));
            control.plan.get_or_insert(plan);
        }
    }
    *control.calls.entry(function).or_default() += 1;
    let plan = control.plan.as_mut().filter(|plan| plan.function == function)?;
    if plan.skip > 0 {
        plan.skip -= 1;
        return None;
    }
    let code = plan.code;
    control.plan = None;
    control.fired = true;
    Some(code)
}

/// Parses `NAME:N:CODE`.
fn parse(text: &str) -> Option<Plan> {
    let mut parts = text.split(':');
    let function = parts.next()?.to_owned();
    let number: u64 = parts.next()?.parse().ok()?;
    let code = parts.next()?.parse().ok()?;
    Some(Plan { function, skip: number.checked_sub(1)?, code })
}

/// Records a use that a real driver would tolerate or not survive.
pub(crate) fn violation(what: String) {
    control().violations.push(what);
}

/// Counts objects that were alive when a healthy context ended.
pub(crate) fn leaked(count: u64) {
    control().leaked += count;
}

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
    let mut control = control();
    control.fired = false;
    control.plan = Some(Plan { function: text(function).to_owned(), skip: number.saturating_sub(1), code });
}

/// Clears plans, counts, violations and leaks.
#[unsafe(no_mangle)]
pub extern "C" fn fakecuda_forget() {
    *control() = Control { from_environment: true, ..Control::default() };
}

/// Tests if the planned failure has occurred.
#[unsafe(no_mangle)]
pub extern "C" fn fakecuda_fired() -> bool {
    control().fired
}

/// Returns the number of calls of a function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_calls(function: *const c_char) -> u64 {
    control().calls.get(text(function)).copied().unwrap_or(0)
}

/// Returns the number of live objects: contexts, and in them memory, pinned memory, streams, events, modules
/// and graphs, plus those that were alive when a healthy context ended.
#[unsafe(no_mangle)]
pub extern "C" fn fakecuda_alive() -> u64 {
    let leaked = control().leaked;
    state().alive() + leaked
}

/// Copies a zero-terminated report of live objects and violations to a buffer. Returns the number of
/// violations.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_report(buffer: *mut u8, bytes: usize) -> u64 {
    let alive = state().describe();
    let control = control();
    let report = format!("{alive}, {} leaked; {}", control.leaked, control.violations.join("; "));
    let count = report.len().min(bytes.saturating_sub(1));
    if bytes > 0 && !buffer.is_null() {
        // SAFETY: the test passes a buffer of this size.
        unsafe {
            std::ptr::copy_nonoverlapping(report.as_ptr(), buffer, count);
            *buffer.add(count) = 0;
        }
    }
    control.violations.len() as u64
}

/// Tests if a GPU does not recover from a result code.
pub(crate) fn is_fatal(code: Code) -> bool {
    matches!(code, code::ECC_UNCORRECTABLE | code::ILLEGAL_ADDRESS | code::LAUNCH_TIMEOUT | 709..=719)
}
