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

use crate::module::{Given, Loaded, refused};
use crate::shaped::Shaped;
use crate::stream::{Pending, Work};
use crate::worker::Shared;
use broadloom_device::{Error, Result};
use broadloom_ptx::{Reach, Space};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of launches of a device that are ahead of their code.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicUsize);

/// Returns whether a launch may go ahead, and counts it if so.
pub(crate) fn may_go(module: &Loaded, given: &Given<'_>, shaped: &Shaped) -> bool {
    let (inner, launch) = (module.inner(), &given.launch);
    if !inner.options.ahead || launch.time_limit.is_some() || launch.cooperative {
        return false;
    }
    let text = module.module();
    let shared = text.static_shared_bytes(given.kernel).saturating_add(16).saturating_add(u64::from(launch.shared_bytes));
    let reach = Reach::of(text, given.kernel);
    let variables = reach.functions.iter().flat_map(|func| text.functions[*func].variables.values());
    let local = variables.filter(|variable| variable.space == Space::Local).filter_map(|variable| variable.bytes());
    // Code may need some bytes in addition to the variables.
    let local = local.fold(0, u64::saturating_add).saturating_mul(2);
    let fits = shared <= u64::from(inner.machine.max_shared_bytes) && local <= inner.options.stack_bytes;
    let one_more = |count: usize| (count < inner.shared.workers).then_some(count + 1);
    fits && !refused(text, given.kernel).has_errors()
        && shaped.goes_ahead()
        && inner.shared.ahead.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
}

/// Submits a launch to its stream and compiles its kernel on another thread.
pub(crate) fn launch(module: &Arc<Loaded>, shaped: &Arc<Shaped>, given: Given<'_>) -> Result<()> {
    let stream = given.launch.stream;
    let pending = Arc::new(Pending::default());
    let kernel = module.module().functions[given.kernel].name.clone();
    let arrival = Arrival { shared: module.inner().shared.clone(), kernel, pending: pending.clone() };
    module.inner().shared.streams.submit(stream, Work::Pending(pending), None, &|| Ok(()))?;
    let given = Given { params: Cow::Owned(given.params.into_owned()), ..given };
    let (module, shaped) = (module.clone(), shaped.clone());
    let compile = move || {
        let (grid, params) = (given.launch.grid, given.params.to_vec());
        let code = module.compiled(given.kernel, None, move |module| shaped.code_for(module, grid, &params));
        arrival.pending.set(code.and_then(|(code, _)| module.grid(&given, code)));
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
struct Arrival {
    shared: Arc<Shared>,
    kernel: String,
    pending: Arc<Pending>,
}

impl Drop for Arrival {
    fn drop(&mut self) {
        let kernel = std::mem::take(&mut self.kernel);
        // Has no effect if a grid or an error is already set.
        self.pending.set(Err(Error::BadLaunch { kernel, reason: "it could not be compiled on a thread of its own".into() }));
        self.shared.ahead.0.fetch_sub(1, Ordering::Relaxed);
        self.shared.streams.arrive();
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{device_with, module};
    use broadloom_device::{Device, Error, Launch};

    /// Returns the text of kernels that pass a number on: `k0` writes 1, each other kernel adds its number to
    /// the value it reads.
    fn text(kernels: u32) -> String {
        let kernel = |number: u32| {
            format!(
                ".visible .entry k{number}(.param .u64 out) {{
                    .reg .b32 %r<3>; .reg .b64 %d<2>;
                    ld.param.u64 %d0, [out]; ld.global.u32 %r0, [%d0]; mad.lo.u32 %r1, %r0, 3, {number}; st.global.u32 [%d0], %r1; ret;
                }}"
            )
        };
        let kernels: String = (0..kernels).map(kernel).collect();
        format!(".version 8.0 .target sm_80 .address_size 64 {kernels}")
    }

    #[test]
    fn launches_ahead_keep_their_order() {
        for threads in [1, 2, 4] {
            let device = Device::new(device_with(threads, |options| options.ahead = true));
            let out = device.zeros::<u32>(1).unwrap();
            let loaded = device.load(&module(&text(6))).unwrap();
            for round in 0..2 {
                for number in 0..6 {
                    let kernel = loaded.kernel(&format!("k{number}")).unwrap();
                    kernel.launch(&Launch::linear(1, 1), &[(&out).into()]).unwrap();
                }
                let expected = (0..6 * (round + 1)).fold(0u32, |value, at| value.wrapping_mul(3).wrapping_add(at % 6));
                assert_eq!(out.read().unwrap(), [expected], "{threads} threads, round {round}");
            }
        }
    }

    #[test]
    fn the_memory_of_a_launch_ahead_stays_until_it_ran() {
        let device = Device::new(device_with(2, |options| options.ahead = true));
        let loaded = device.load(&module(&text(4))).unwrap();
        for number in 0..4 {
            let out = device.zeros::<u32>(1).unwrap();
            loaded.kernel(&format!("k{number}")).unwrap().launch(&Launch::linear(1, 1), &[(&out).into()]).unwrap();
        }
        drop(loaded);
        device.synchronise().unwrap();
    }

    #[test]
    fn what_can_be_told_at_once_is_told_by_the_launch() {
        let device = Device::new(device_with(2, |options| options.ahead = true));
        let loaded = device.load(&module(&text(1))).unwrap();
        let (kernel, out) = (loaded.kernel("k0").unwrap(), device.zeros::<u32>(1).unwrap());
        let refused = kernel.launch(&Launch { shared_bytes: 1 << 20, ..Launch::linear(1, 1) }, &[(&out).into()]);
        assert!(matches!(&refused, Err(Error::BadLaunch { reason, .. }) if reason.contains("shared memory")), "{refused:?}");
        // The device is dropped while a kernel is compiled for it.
        kernel.launch(&Launch::linear(1, 1), &[(&out).into()]).unwrap();
    }
}
