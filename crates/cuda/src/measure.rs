//! What the driver does not tell of a GPU, measured once per process: how fast memory is, and what a launch costs.
//!
//! Nothing here is needed to work: what cannot be measured stays unknown.

use crate::device::Inner;
use crate::ffi::{ModuleHandle, StreamHandle};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Bytes copied to measure bandwidth: far more than caches hold.
const COPIED: u64 = 256 << 20;
/// Copies per measurement.
const COPIES: u32 = 4;
/// Launches per measurement.
const LAUNCHES: u32 = 200;

/// What was measured, by driver, GPU and name.
type Known = HashMap<(String, String, &'static str), f64>;

/// Measures something once per process and GPU.
fn once(inner: &Inner, what: &'static str, measure: impl FnOnce() -> Option<f64>) -> Option<f64> {
    static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
    let key = (inner.context.driver.library.clone(), inner.context.name.clone(), what);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(value) = known().get_or_insert_default().get(&key) {
        return Some(*value);
    }
    let value = measure().filter(|value| value.is_finite() && *value > 0.0)?;
    known().get_or_insert_default().insert(key, value);
    Some(value)
}

/// Bytes per second that copies within the device read and write.
pub(crate) fn bandwidth(inner: &Inner) -> Option<f64> {
    once(inner, "bandwidth", || {
        // No more than a fraction of a small memory.
        let bytes = COPIED.min(inner.machine.memory_bytes / 16) & !255;
        let (from, to) = (inner.allocate(bytes).ok()?, inner.allocate(bytes).ok());
        let measured = to.and_then(|to| copies(inner, to, from, bytes));
        for address in [Some(from), to].into_iter().flatten() {
            let _ = inner.free(address);
        }
        // Whoever opens a device wants its memory empty.
        let _ = inner.context.enter().and_then(|()| inner.reclaim());
        measured
    })
}

fn copies(inner: &Inner, to: u64, from: u64, bytes: u64) -> Option<f64> {
    let (context, driver) = (&inner.context, &inner.context.driver);
    let queue = inner.queue(broadloom_device::Stream::default()).ok()?;
    context.enter().ok()?;
    let copy = || context.checked(driver.copy(to, from, bytes, queue.handle)).map(|()| inner.given(&queue));
    copy().ok()?;
    inner.wait(&queue).ok()?;
    let start = Instant::now();
    for _ in 0..COPIES {
        copy().ok()?;
    }
    inner.wait(&queue).ok()?;
    Some(2.0 * f64::from(COPIES) * bytes as f64 / start.elapsed().as_secs_f64())
}

/// A module that is unloaded when it is dropped.
struct Loaded<'a>(&'a Inner, ModuleHandle);

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        if self.0.context.enter_to_release() {
            let _ = self.0.context.driver.unload_module(self.1);
        }
    }
}

/// Seconds of the host's time that a launch takes when none is waited for.
pub(crate) fn launch_cost(inner: &Inner) -> Option<f64> {
    once(inner, "launch", || bare_launch_time(inner, LAUNCHES))
}

/// The same for some launches of nothing, by the driver's call alone.
pub(crate) fn bare_launch_time(inner: &Inner, launches: u32) -> Option<f64> {
    let (context, driver) = (&inner.context, &inner.context.driver);
    context.enter().ok()?;
    let (isa, sm) = (inner.machine.isa, inner.machine.sm);
    let header = format!(".version {isa}\n.target sm_{sm}\n.address_size 64\n");
    let text = CString::new(format!("{header}.visible .entry empty()\n{{\n\tret;\n}}\n")).ok()?;
    let module = driver.load_module(&text).map_err(|(failed, _)| context.error(failed)).ok()?;
    let module = Loaded(inner, module);
    let function = context.checked(driver.function(module.1, c"empty")).ok()?;
    let queue = inner.queue(broadloom_device::Stream::default()).ok()?;
    let stream: StreamHandle = queue.handle;
    let launch = || {
        // SAFETY: the kernel has no parameters, so that there is no list of them.
        let launched = unsafe { driver.launch(function, [1; 3], [1; 3], 0, stream, std::ptr::null()) };
        context.checked(launched).map(|()| inner.given(&queue))
    };
    launch().ok()?;
    inner.wait(&queue).ok()?;
    let start = Instant::now();
    for _ in 0..launches {
        launch().ok()?;
    }
    let time = start.elapsed().as_secs_f64();
    inner.wait(&queue).ok()?;
    Some(time / f64::from(launches.max(1)))
}
