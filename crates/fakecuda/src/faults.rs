//! Call counts, injected failures, and misuse of the driver.

use crate::code::Code;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Planned failure of a call.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) function: String,
    /// Number of calls of the function before it.
    pub(crate) skip: u64,
    pub(crate) code: Code,
}

/// Counts and plans of this process.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) plan: Option<Plan>,
    pub(crate) calls: HashMap<&'static str, u64>,
    /// True once the planned failure has occurred.
    pub(crate) fired: bool,
    pub(crate) violations: Vec<String>,
    pub(crate) leaked: u64,
    pub(crate) from_environment: bool,
}

/// Locks and returns the counts and plans.
pub(crate) fn faults() -> MutexGuard<'static, Faults> {
    static FAULTS: OnceLock<Mutex<Faults>> = OnceLock::new();
    FAULTS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a call. Returns the result code to give instead of performing it, if any.
pub(crate) fn enter(function: &'static str) -> Option<Code> {
    let mut faults = faults();
    if !faults.from_environment {
        faults.from_environment = true;
        if let Ok(text) = std::env::var("BROADLOOM_FAKE_CUDA") {
            let plan = parse(&text).unwrap_or_else(|| panic!("BROADLOOM_FAKE_CUDA is `{text}`, and it takes `NAME:N:CODE`"));
            faults.plan.get_or_insert(plan);
        }
    }
    *faults.calls.entry(function).or_default() += 1;
    let plan = faults.plan.as_mut().filter(|plan| plan.function == function)?;
    if plan.skip > 0 {
        plan.skip -= 1;
        return None;
    }
    let code = plan.code;
    faults.plan = None;
    faults.fired = true;
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
    faults().violations.push(what);
}

/// Counts objects that were alive when a healthy context ended.
pub(crate) fn leaked(count: u64) {
    faults().leaked += count;
}
