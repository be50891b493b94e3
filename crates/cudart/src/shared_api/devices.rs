//! Devices: count, properties and limits.

use crate::boundary::exported;
use crate::location::check_device;
use crate::pointer::{In, Out};
use crate::status::{Outcome, Status};
use crate::version::DRIVER_VERSION;
use std::sync::Mutex;

/// Limits by number: stack, `printf` buffer, heap, synchronisation depth, pending launches, fetch
/// granularity, persisting cache.
pub(crate) static LIMITS: Mutex<[usize; 7]> = Mutex::new([1024, 1 << 20, 8 << 20, 2, 2048, 128, 0]);

/// Returns a limit by its number in `cudaLimit`.
pub(crate) fn limit(number: u32) -> Result<usize, Status> {
    let limits = LIMITS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    limits.get(number as usize).copied().ok_or(Status::INVALID_VALUE)
}

/// Stores a limit. It has no effect, because kernels always get the resources that they need.
pub(crate) fn set_limit(number: u32, value: usize) -> Result<(), Status> {
    let mut limits = LIMITS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *limits.get_mut(number as usize).ok_or(Status::INVALID_VALUE)? = value;
    Ok(())
}

/// PCI bus ID of the device, which is not on a bus.
pub(crate) const BUS: &str = "0000:00:00.0";

/// Returns the host-device support of an atomic operation (`cudaAtomicOperation`) as bits of
/// `cudaAtomicOperationCapability`.
pub(crate) fn shared_atomics(operation: u32, unified: bool) -> Outcome<u32> {
    const SIGNED: u32 = 1;
    const UNSIGNED: u32 = 2;
    const REDUCTION: u32 = 4;
    const WORDS: u32 = 8 | 16;
    let bits = match operation {
        // Addition, minimum and maximum.
        0..=2 => SIGNED | UNSIGNED | REDUCTION | WORDS,
        // Wrapping increment and decrement exist for 32-bit words only.
        3 | 4 => UNSIGNED | REDUCTION | 8,
        5..=7 => UNSIGNED | REDUCTION | WORDS,
        8 | 9 => UNSIGNED | WORDS,
        10 => REDUCTION | WORDS,
        11 | 12 => 0,
        _ => return Err(Status::INVALID_VALUE),
    };
    Ok(if unified { bits } else { 0 })
}

exported! { runtime
    fn cudaDeviceGetAttribute | cuDeviceGetAttribute(call, value: Out<i32>, attribute: u32, device: i32)
        => value.wanted()?, check_device(device)?, value.set(call.runtime.attribute(attribute)?);
    fn cudaDeviceSynchronize = cudaThreadSynchronize | cuCtxSynchronize(call) => call.runtime.wait_for_all();
    fn cudaGetDeviceFlags | cuCtxGetFlags(_call, flags: Out<u32>) => flags.set(8);
    /// Returns a limit, under a deprecated name.
    fn cudaThreadGetLimit | cuCtxGetLimit(_call, value: Out<usize>, number: u32) => value.set(limit(number)?);
    /// Sets a limit, under a deprecated name.
    fn cudaThreadSetLimit | cuCtxSetLimit(_call, number: u32, value: usize) => set_limit(number, value);
    /// Accepts a cache configuration, which has no effect.
    fn cudaDeviceSetCacheConfig = cudaThreadSetCacheConfig = cudaDeviceSetSharedMemConfig | cuCtxSetCacheConfig = cuCtxSetSharedMemConfig(call, _config: u32)
        => call.runtime.device().map(drop);
    fn cudaDeviceGetSharedMemConfig | cuCtxGetSharedMemConfig(call, config: Out<u32>) => call.runtime.device()?, config.set(1);

    fn cudaDeviceGetPCIBusId | cuDeviceGetPCIBusId(_call, text: Out<u8>, length: i32, device: i32) {
        check_device(device)?;
        let bytes = [BUS.as_bytes(), &[0]].concat();
        if usize::try_from(length).is_ok_and(|length| length >= bytes.len()) { text.set_all(&bytes) } else { Err(Status::INVALID_VALUE) }
    }

    fn cudaDriverGetVersion | cuDriverGetVersion(_call, version: Out<i32>) => version.set(DRIVER_VERSION);
    /// Does nothing: there is no profiler.
    fn cudaProfilerStart = cudaProfilerStop | cuProfilerStart = cuProfilerStop(_call) => Ok(());

    /// Returns which atomic operations host and device may perform concurrently on the same memory. On a
    /// device with the host's address space these are the host's own.
    fn cudaDeviceGetHostAtomicCapabilities | cuDeviceGetHostAtomicCapabilities(call, capabilities: Out<u32>, operations: In<u32>, count: u32, device: i32) {
        capabilities.wanted()?;
        check_device(device)?;
        if count == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let unified = call.runtime.device()?.unified;
        let known = operations.get_all(count as usize)?.into_iter().map(|operation| shared_atomics(operation, unified));
        capabilities.set_all(&known.collect::<Outcome<Vec<u32>>>()?)
    }
}
