//! The device: which there is, what it can do, its limits.

use crate::boundary::exported;
use crate::device::{DEVICE, check_device};
use crate::pointer::{In, Out, Text};
use crate::runtime::memory::runtime_version;
use crate::status::{Outcome, Status};
use std::sync::Mutex;

/// The version of CUDA that the driver claims.
pub(crate) const DRIVER_VERSION: i32 = 13040;

/// Limits that programs set and ask for, by their numbers: stack, `printf`, heap, depth and pending launches, fetches, persisting cache.
static LIMITS: Mutex<[usize; 7]> = Mutex::new([1024, 1 << 20, 8 << 20, 2, 2048, 128, 0]);

/// Reads a limit.
pub(crate) fn limit(number: u32) -> Result<usize, Status> {
    let limits = LIMITS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    limits.get(number as usize).copied().ok_or(Status::INVALID_VALUE)
}

/// Notes a limit. Kernels have what they need, so none of them binds.
pub(crate) fn set_limit(number: u32, value: usize) -> Result<(), Status> {
    let mut limits = LIMITS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *limits.get_mut(number as usize).ok_or(Status::INVALID_VALUE)? = value;
    Ok(())
}

/// The name of the device on a bus that it is not on.
pub(crate) const BUS: &str = "0000:00:00.0";

/// What is shared of an atomic operation (`cudaAtomicOperation`), as bits of `cudaAtomicOperationCapability`.
fn shared_atomics(operation: u32, unified: bool) -> Outcome<u32> {
    const SIGNED: u32 = 1;
    const UNSIGNED: u32 = 2;
    const REDUCTION: u32 = 4;
    const WORDS: u32 = 8 | 16;
    let bits = match operation {
        // Addition; the smallest and the largest number.
        0..=2 => SIGNED | UNSIGNED | REDUCTION | WORDS,
        // Counting up and down to a limit is for words of 32 bits.
        3 | 4 => UNSIGNED | REDUCTION | 8,
        5..=7 => UNSIGNED | REDUCTION | WORDS,
        8 | 9 => UNSIGNED | WORDS,
        10 => REDUCTION | WORDS,
        11 | 12 => 0,
        _ => return Err(Status::INVALID_VALUE),
    };
    Ok(if unified { bits } else { 0 })
}

/// The release of CUDA that the program was linked with: 12090 is 12.9.
pub(crate) fn release() -> i32 {
    match runtime_version() {
        11 => 11080,
        12 => 12090,
        _ => DRIVER_VERSION,
    }
}

exported! { runtime
    /// How many devices there are.
    fn cudaGetDeviceCount(call, count: Out<i32>) {
        count.wanted()?;
        call.runtime.device()?;
        count.set(1)
    }

    /// The device that calls of this thread mean.
    fn cudaGetDevice(_call, device: Out<i32>) {
        device.set(DEVICE)
    }

    /// Chooses a device.
    fn cudaSetDevice(call, device: i32) {
        check_device(device)?;
        call.runtime.device().map(drop)
    }

    /// Makes a device ready.
    fn cudaInitDevice(call, device: i32, _device_flags: u32, _flags: u32) {
        check_device(device)?;
        call.runtime.device().map(drop)
    }

    /// Says which devices may be used.
    fn cudaSetValidDevices(_call, devices: In<i32>, count: i32) {
        devices.get_all(usize::try_from(count).map_err(|_| Status::INVALID_VALUE)?)?.into_iter().try_for_each(check_device)
    }

    /// The device that fits best.
    fn cudaChooseDevice(call, device: Out<i32>, wanted: In<u8>) {
        wanted.get()?;
        call.runtime.device()?;
        device.set(DEVICE)
    }

    /// What the device can do, as the program's version of CUDA lays it out.
    fn cudaGetDeviceProperties(call, properties: Out<u8>, device: i32) {
        properties.wanted()?;
        check_device(device)?;
        // The name without a version means 13 where that is linked, and else what it meant up to 11.
        let version = if runtime_version() >= 13 { 13 } else { 11 };
        properties.set_all(&call.runtime.properties(version)?)
    }

    /// The same, as CUDA 12 lays it out.
    fn cudaGetDeviceProperties_v2(call, properties: Out<u8>, device: i32) {
        properties.wanted()?;
        check_device(device)?;
        properties.set_all(&call.runtime.properties(12)?)
    }

    /// One number.
    fn cudaDeviceGetAttribute | cuDeviceGetAttribute(call, value: Out<i32>, attribute: u32, device: i32) {
        value.wanted()?;
        check_device(device)?;
        value.set(call.runtime.attribute(attribute)?)
    }

    /// Waits for everything.
    fn cudaDeviceSynchronize = cudaThreadSynchronize | cuCtxSynchronize(call) {
        call.runtime.wait_for_all()
    }

    /// Takes back everything that the program was given.
    fn cudaDeviceReset = cudaThreadExit(call) {
        call.runtime.reset()
    }

    /// How the host waits, which makes no difference here.
    fn cudaSetDeviceFlags(_call, flags: u32) {
        if flags & !0xff == 0 { Ok(()) } else { Err(Status::INVALID_VALUE) }
    }

    /// The same.
    fn cudaGetDeviceFlags | cuCtxGetFlags(_call, flags: Out<u32>) {
        flags.set(8)
    }

    /// A limit.
    fn cudaDeviceGetLimit(call, value: Out<usize>, number: u32) {
        call.runtime.device()?;
        value.set(limit(number)?)
    }

    /// Sets a limit.
    fn cudaDeviceSetLimit(call, number: u32, value: usize) {
        call.runtime.device()?;
        set_limit(number, value)
    }

    /// A limit, by an old name.
    fn cudaThreadGetLimit | cuCtxGetLimit(_call, value: Out<usize>, number: u32) {
        value.set(limit(number)?)
    }

    /// Sets a limit, by an old name.
    fn cudaThreadSetLimit | cuCtxSetLimit(_call, number: u32, value: usize) {
        set_limit(number, value)
    }

    /// How caches are used, which makes no difference here.
    fn cudaDeviceSetCacheConfig = cudaThreadSetCacheConfig = cudaDeviceSetSharedMemConfig | cuCtxSetCacheConfig = cuCtxSetSharedMemConfig(call, _config: u32) {
        call.runtime.device().map(drop)
    }

    /// The same.
    fn cudaDeviceGetCacheConfig = cudaThreadGetCacheConfig(call, config: Out<u32>) {
        call.runtime.device()?;
        config.set(0)
    }

    /// The same.
    fn cudaDeviceGetSharedMemConfig | cuCtxGetSharedMemConfig(call, config: Out<u32>) {
        call.runtime.device()?;
        config.set(1)
    }

    /// Where the device is on a bus.
    fn cudaDeviceGetPCIBusId | cuDeviceGetPCIBusId(_call, text: Out<u8>, length: i32, device: i32) {
        check_device(device)?;
        let bytes = [BUS.as_bytes(), &[0]].concat();
        if usize::try_from(length).is_ok_and(|length| length >= bytes.len()) { text.set_all(&bytes) } else { Err(Status::INVALID_VALUE) }
    }

    /// The device at a place on a bus.
    fn cudaDeviceGetByPCIBusId(_call, device: Out<i32>, text: Text) {
        if text.get()?.trim_start_matches('0').trim_start_matches(':').starts_with("00:00") { device.set(DEVICE) } else { Err(Status::INVALID_DEVICE) }
    }

    /// The version of the driver.
    fn cudaDriverGetVersion | cuDriverGetVersion(_call, version: Out<i32>) {
        version.set(DRIVER_VERSION)
    }

    /// The version of the runtime: the one that the program was linked with.
    fn cudaRuntimeGetVersion(_call, version: Out<i32>) {
        version.set(release())
    }

    /// Empties a cache that the device does not have.
    fn cudaCtxResetPersistingL2Cache(call) {
        call.runtime.device().map(drop)
    }

    /// Profilers: there is none to tell.
    fn cudaProfilerStart = cudaProfilerStop | cuProfilerStart = cuProfilerStop(_call) {
        Ok(())
    }

    /// Makes a `double` what the device has: it has the host's.
    fn cudaSetDoubleForDevice = cudaSetDoubleForHost(_call, value: Out<f64>) {
        value.wanted()
    }

    /// Which atomic operations host and device may do on the same memory at a time: those that are the host's own, on a device that shares its addresses.
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
