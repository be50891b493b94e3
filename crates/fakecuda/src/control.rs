//! What the next calls do: counting, failing, and what is alive.

use crate::state::{Code, code, state};
use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A call that is to fail.
#[derive(Clone, Debug)]
struct Plan {
    function: String,
    /// How many calls of it come before.
    skip: u64,
    code: Code,
}

#[derive(Debug, Default)]
struct Control {
    plan: Option<Plan>,
    calls: HashMap<&'static str, u64>,
    /// Whether the planned failure has happened.
    fired: bool,
    violations: Vec<String>,
    leaked: u64,
    from_environment: bool,
}

fn control() -> MutexGuard<'static, Control> {
    static CONTROL: OnceLock<Mutex<Control>> = OnceLock::new();
    CONTROL.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a call; what it is to give instead of being done.
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

/// `NAME:N:CODE`.
fn parse(text: &str) -> Option<Plan> {
    let mut parts = text.split(':');
    let function = parts.next()?.to_owned();
    let number: u64 = parts.next()?.parse().ok()?;
    let code = parts.next()?.parse().ok()?;
    Some(Plan { function, skip: number.checked_sub(1)?, code })
}

/// Notes something that a driver would forgive, or not survive.
pub(crate) fn violation(what: String) {
    control().violations.push(what);
}

/// Notes things that were alive when a healthy context ended.
pub(crate) fn leaked(count: u64) {
    control().leaked += count;
}

fn text<'a>(name: *const c_char) -> &'a str {
    if name.is_null() {
        return "";
    }
    // SAFETY: a test passes a string of C.
    unsafe { CStr::from_ptr(name) }.to_str().unwrap_or_default()
}

/// Makes the n-th call of a function from now on, counted from one, give a result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_fail(function: *const c_char, number: u64, code: u32) {
    let mut control = control();
    control.fired = false;
    control.plan = Some(Plan { function: text(function).to_owned(), skip: number.saturating_sub(1), code });
}

/// Forgets plans, counts, violations and leaks.
#[unsafe(no_mangle)]
pub extern "C" fn fakecuda_forget() {
    *control() = Control { from_environment: true, ..Control::default() };
}

/// Whether the planned failure has happened.
#[unsafe(no_mangle)]
pub extern "C" fn fakecuda_fired() -> bool {
    control().fired
}

/// How often a function was called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_calls(function: *const c_char) -> u64 {
    control().calls.get(text(function)).copied().unwrap_or(0)
}

/// What is alive: contexts, and in them memory, pinned memory, streams, events, modules and graphs, and what was alive when a healthy
/// context ended.
#[unsafe(no_mangle)]
pub extern "C" fn fakecuda_alive() -> u64 {
    let leaked = control().leaked;
    state().alive() + leaked
}

/// Copies a report of what is alive and of all violations into a buffer of some bytes, with a zero behind it; how many violations there were.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakecuda_report(buffer: *mut u8, bytes: usize) -> u64 {
    let alive = state().describe();
    let control = control();
    let report = format!("{alive}, {} leaked; {}", control.leaked, control.violations.join("; "));
    let count = report.len().min(bytes.saturating_sub(1));
    if bytes > 0 && !buffer.is_null() {
        // SAFETY: the test passes a buffer of so many bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(report.as_ptr(), buffer, count);
            *buffer.add(count) = 0;
        }
    }
    control.violations.len() as u64
}

/// Whether a result is one that a GPU does not recover from.
pub(crate) fn is_fatal(code: Code) -> bool {
    matches!(code, code::ECC_UNCORRECTABLE | code::ILLEGAL_ADDRESS | code::LAUNCH_TIMEOUT | 709..=719)
}
