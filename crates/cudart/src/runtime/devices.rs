//! Devices: count, properties and limits.

use crate::boundary::exported;
use crate::device::{DEVICE, check_device};
use crate::pointer::{In, Out, Text};
use crate::runtime::memory::runtime_version;
use crate::status::{Outcome, Status};
use std::sync::Mutex;

/// CUDA version that the driver reports.
pub(crate) const DRIVER_VERSION: i32 = 13040;

/// Limits by number: stack, `printf` buffer, heap, synchronisation depth, pending launches, fetch
/// granularity, persisting cache.
static LIMITS: Mutex<[usize; 7]> = Mutex::new([1024, 1 << 20, 8 << 20, 2, 2048, 128, 0]);

/// Returns a limit.
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
fn shared_atomics(operation: u32, unified: bool) -> Outcome<u32> {
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

/// Returns the CUDA release that the program was linked with: 12090 is 12.9.
pub(crate) fn release() -> i32 {
    match runtime_version() {
        11 => 11080,
        12 => 12090,
        _ => DRIVER_VERSION,
    }
}

exported! { runtime
    /// Returns the number of devices.
    fn cudaGetDeviceCount(call, count: Out<i32>) {
        count.wanted()?;
        call.runtime.device()?;
        count.set(1)
    }

    /// Returns the current device of this thread.
    fn cudaGetDevice(_call, device: Out<i32>) {
        device.set(DEVICE)
    }

    /// Sets the current device.
    fn cudaSetDevice(call, device: i32) {
        check_device(device)?;
        call.runtime.device().map(drop)
    }

    /// Initialises a device.
    fn cudaInitDevice(call, device: i32, _device_flags: u32, _flags: u32) {
        check_device(device)?;
        call.runtime.device().map(drop)
    }

    /// Sets the list of valid devices.
    fn cudaSetValidDevices(_call, devices: In<i32>, count: i32) {
        devices.get_all(usize::try_from(count).map_err(|_| Status::INVALID_VALUE)?)?.into_iter().try_for_each(check_device)
    }

    /// Returns the best matching device.
    fn cudaChooseDevice(call, device: Out<i32>, wanted: In<u8>) {
        wanted.get()?;
        call.runtime.device()?;
        device.set(DEVICE)
    }

    /// Returns the device properties in the layout of the program's CUDA version.
    fn cudaGetDeviceProperties(call, properties: Out<u8>, device: i32) {
        properties.wanted()?;
        check_device(device)?;
        // The unversioned name means version 13 if that is linked, otherwise version 11.
        let version = if runtime_version() >= 13 { 13 } else { 11 };
        properties.set_all(&call.runtime.properties(version)?)
    }

    /// Returns the device properties in the layout of CUDA 12.
    fn cudaGetDeviceProperties_v2(call, properties: Out<u8>, device: i32) {
        properties.wanted()?;
        check_device(device)?;
        properties.set_all(&call.runtime.properties(12)?)
    }

    /// Returns an attribute of a device.
    fn cudaDeviceGetAttribute | cuDeviceGetAttribute(call, value: Out<i32>, attribute: u32, device: i32) {
        value.wanted()?;
        check_device(device)?;
        value.set(call.runtime.attribute(attribute)?)
    }

    /// Waits for all work.
    fn cudaDeviceSynchronize = cudaThreadSynchronize | cuCtxSynchronize(call) {
        call.runtime.wait_for_all()
    }

    /// Destroys all objects of the program.
    fn cudaDeviceReset = cudaThreadExit(call) {
        call.runtime.reset()
    }

    /// Accepts flags on how the host waits. They have no effect.
    fn cudaSetDeviceFlags(_call, flags: u32) {
        if flags & !0xff == 0 { Ok(()) } else { Err(Status::INVALID_VALUE) }
    }

    /// Returns the device flags.
    fn cudaGetDeviceFlags | cuCtxGetFlags(_call, flags: Out<u32>) {
        flags.set(8)
    }

    /// Returns a limit.
    fn cudaDeviceGetLimit(call, value: Out<usize>, number: u32) {
        call.runtime.device()?;
        value.set(limit(number)?)
    }

    /// Sets a limit.
    fn cudaDeviceSetLimit(call, number: u32, value: usize) {
        call.runtime.device()?;
        set_limit(number, value)
    }

    /// Returns a limit, under a deprecated name.
    fn cudaThreadGetLimit | cuCtxGetLimit(_call, value: Out<usize>, number: u32) {
        value.set(limit(number)?)
    }

    /// Sets a limit, under a deprecated name.
    fn cudaThreadSetLimit | cuCtxSetLimit(_call, number: u32, value: usize) {
        set_limit(number, value)
    }

    /// Accepts a cache configuration, which has no effect.
    fn cudaDeviceSetCacheConfig = cudaThreadSetCacheConfig = cudaDeviceSetSharedMemConfig | cuCtxSetCacheConfig = cuCtxSetSharedMemConfig(call, _config: u32) {
        call.runtime.device().map(drop)
    }

    /// Returns the cache configuration.
    fn cudaDeviceGetCacheConfig = cudaThreadGetCacheConfig(call, config: Out<u32>) {
        call.runtime.device()?;
        config.set(0)
    }

    /// Returns the shared memory configuration.
    fn cudaDeviceGetSharedMemConfig | cuCtxGetSharedMemConfig(call, config: Out<u32>) {
        call.runtime.device()?;
        config.set(1)
    }

    /// Returns the PCI bus ID of a device.
    fn cudaDeviceGetPCIBusId | cuDeviceGetPCIBusId(_call, text: Out<u8>, length: i32, device: i32) {
        check_device(device)?;
        let bytes = [BUS.as_bytes(), &[0]].concat();
        if usize::try_from(length).is_ok_and(|length| length >= bytes.len()) { text.set_all(&bytes) } else { Err(Status::INVALID_VALUE) }
    }

    /// Returns the device with a PCI bus ID.
    fn cudaDeviceGetByPCIBusId(_call, device: Out<i32>, text: Text) {
        if text.get()?.trim_start_matches('0').trim_start_matches(':').starts_with("00:00") { device.set(DEVICE) } else { Err(Status::INVALID_DEVICE) }
    }

    /// Returns the version of the driver.
    fn cudaDriverGetVersion | cuDriverGetVersion(_call, version: Out<i32>) {
        version.set(DRIVER_VERSION)
    }

    /// Returns the version of the runtime that the program was linked with.
    fn cudaRuntimeGetVersion(_call, version: Out<i32>) {
        version.set(release())
    }

    /// Does nothing: the device has no persisting L2 cache.
    fn cudaCtxResetPersistingL2Cache(call) {
        call.runtime.device().map(drop)
    }

    /// Does nothing: there is no profiler.
    fn cudaProfilerStart = cudaProfilerStop | cuProfilerStart = cuProfilerStop(_call) {
        Ok(())
    }

    /// Does nothing: the device's `double` is the host's.
    fn cudaSetDoubleForDevice = cudaSetDoubleForHost(_call, value: Out<f64>) {
        value.wanted()
    }

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
