//! Launches ahead of compilation: they return before their kernel is compiled, and their stream waits for the
//! code.
//!
//! A program that launches several kernels for the first time gets them compiled in parallel, although it
//! launches them one after the other.
//!
//! A launch may go ahead only if every error that the caller expects from it can be found without code:
//! instructions that the device does not run, too much shared memory, too much local memory. Launches with a
//! time limit wait, since compilation counts towards it. Cooperative launches wait too, and so does the
//! second launch of a kernel whose first launch went ahead. The number of launches ahead is at most the
//! number of the device's threads.

use crate::kernel::SpecialisedKernel;
use crate::module::{CpuModule, LaunchRequest, refused};
use crate::stream::{PendingLaunch, Work};
use crate::worker::WorkerShared;
use broadloom_device::{Error, Result};
use broadloom_ptx::{Reach, Space};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Returns whether a launch may go ahead, and counts it if so.
pub(crate) fn may_go(module: &CpuModule, request: &LaunchRequest<'_>, kernel: &SpecialisedKernel) -> bool {
    let (device, launch) = (module.device(), &request.launch);
    if !device.options.ahead || launch.time_limit.is_some() || launch.cooperative {
        return false;
    }
    let text = module.module();
    let shared = text.static_shared_bytes(request.kernel).saturating_add(16).saturating_add(u64::from(launch.shared_bytes));
    let reach = Reach::of(text, request.kernel);
    let variables = reach.functions.iter().flat_map(|func| text.functions[*func].variables.values());
    let local = variables.filter(|variable| variable.space == Space::Local).filter_map(|variable| variable.bytes());
    // Code may need some bytes in addition to the variables.
    let local = local.fold(0, u64::saturating_add).saturating_mul(2);
    let fits = shared <= u64::from(device.machine.max_shared_bytes) && local <= device.options.stack_bytes;
    let one_more = |count: usize| (count < device.shared.workers).then_some(count + 1);
    fits && !refused(text, request.kernel).has_errors()
        && kernel.goes_ahead()
        && device.shared.ahead.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
}

/// Submits a launch to its stream and compiles its kernel on another thread.
pub(crate) fn launch(module: &Arc<CpuModule>, kernel: &Arc<SpecialisedKernel>, request: LaunchRequest<'_>) -> Result<()> {
    let stream = request.launch.stream;
    let pending = Arc::new(PendingLaunch::default());
    let name = module.module().functions[request.kernel].name.clone();
    let arrival = CompilationEnd { shared: module.device().shared.clone(), kernel: name, pending: pending.clone() };
    module.device().shared.streams.submit(stream, Work::Pending(pending), None, &|| Ok(()))?;
    let request = LaunchRequest { params: Cow::Owned(request.params.into_owned()), ..request };
    let (module, kernel) = (module.clone(), kernel.clone());
    let compile = move || {
        let (grid, params) = (request.launch.grid, request.params.to_vec());
        let code = module.compiled(request.kernel, None, move |module| kernel.code_for(module, grid, &params));
        arrival.pending.set(code.and_then(|(code, _)| module.grid(&request, code)));
        // Must come before the stream continues: a thread that waits for the stream may then hold the last
        // reference to the device and drop it.
        drop(module);
        drop(arrival);
    };
    // If no thread can be started, `compile` is dropped. The drop reports to the stream that the launch
    // failed.
    let _ = std::thread::Builder::new().name("broadloom-ahead".into()).spawn(compile);
    Ok(())
}

/// Guard for the end of a compilation, successful or not: the stream continues, and the next launch may go
/// ahead.
struct CompilationEnd {
    shared: Arc<WorkerShared>,
    kernel: String,
    pending: Arc<PendingLaunch>,
}

impl Drop for CompilationEnd {
    fn drop(&mut self) {
        let kernel = std::mem::take(&mut self.kernel);
        // Has no effect if a grid or an error is already set.
        self.pending.set(Err(Error::BadLaunch { kernel, reason: "it could not be compiled on a thread of its own".into() }));
        self.shared.ahead.fetch_sub(1, Ordering::Relaxed);
        self.shared.streams.arrive();
    }
}
