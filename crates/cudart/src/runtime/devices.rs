//! The device: which there is, what it can do, its limits.

use crate::boundary::exported;
use crate::device::{DEVICE, check_device};
use crate::pointer::{In, Out, Text};
use crate::runtime::memory::runtime_version;
use crate::status::Status;
use std::sync::Mutex;

/// The version of CUDA that the driver claims.
pub(crate) const DRIVER_VERSION: i32 = 13040;

/// Limits that programs set and ask for, by their numbers: stack, `printf`, heap, depth and pending launches, fetches, persisting cache.
static LIMITS: Mutex<[usize; 7]> = Mutex::new([1024, 1 << 20, 8 << 20, 2, 2048, 128, 0]);

/// Reads a limit.
pub(crate) fn limit(number: u32) -> Result<usize, Status> {
    let limits = LIMITS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    limits.get(number as usize).copied().ok_or(Status::UNSUPPORTED_LIMIT)
}

/// Notes a limit. Kernels have what they need, so none of them binds.
pub(crate) fn set_limit(number: u32, value: usize) -> Result<(), Status> {
    let mut limits = LIMITS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *limits.get_mut(number as usize).ok_or(Status::UNSUPPORTED_LIMIT)? = value;
    Ok(())
}

/// The name of the device on a bus that it is not on.
pub(crate) const BUS: &str = "0000:00:00.0";

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
    fn cudaDeviceGetAttribute(call, value: Out<i32>, attribute: u32, device: i32) {
        value.wanted()?;
        check_device(device)?;
        value.set(call.runtime.attribute(attribute)?)
    }

    /// Waits for everything.
    fn cudaDeviceSynchronize(call) {
        call.runtime.wait_for_all()
    }

    /// The same, by an old name.
    fn cudaThreadSynchronize(call) {
        call.runtime.wait_for_all()
    }

    /// Takes back everything that the program was given.
    fn cudaDeviceReset(call) {
        call.runtime.reset()
    }

    /// The same, by an old name.
    fn cudaThreadExit(call) {
        call.runtime.reset()
    }

    /// How the host waits, which makes no difference here.
    fn cudaSetDeviceFlags(_call, flags: u32) {
        if flags & !0xff == 0 { Ok(()) } else { Err(Status::INVALID_VALUE) }
    }

    /// The same.
    fn cudaGetDeviceFlags(_call, flags: Out<u32>) {
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
    fn cudaThreadGetLimit(_call, value: Out<usize>, number: u32) {
        value.set(limit(number)?)
    }

    /// Sets a limit, by an old name.
    fn cudaThreadSetLimit(_call, number: u32, value: usize) {
        set_limit(number, value)
    }

    /// How caches are used, which makes no difference here.
    fn cudaDeviceSetCacheConfig(call, _config: u32) {
        call.runtime.device().map(drop)
    }

    /// The same.
    fn cudaDeviceGetCacheConfig(call, config: Out<u32>) {
        call.runtime.device()?;
        config.set(0)
    }

    /// The same, by an old name.
    fn cudaThreadSetCacheConfig(call, _config: u32) {
        call.runtime.device().map(drop)
    }

    /// The same, by an old name.
    fn cudaThreadGetCacheConfig(call, config: Out<u32>) {
        call.runtime.device()?;
        config.set(0)
    }

    /// How wide banks of shared memory are, which makes no difference here.
    fn cudaDeviceSetSharedMemConfig(call, _config: u32) {
        call.runtime.device().map(drop)
    }

    /// The same.
    fn cudaDeviceGetSharedMemConfig(call, config: Out<u32>) {
        call.runtime.device()?;
        config.set(1)
    }

    /// Where the device is on a bus.
    fn cudaDeviceGetPCIBusId(_call, text: Out<u8>, length: i32, device: i32) {
        check_device(device)?;
        let bytes = [BUS.as_bytes(), &[0]].concat();
        if usize::try_from(length).is_ok_and(|length| length >= bytes.len()) { text.set_all(&bytes) } else { Err(Status::INVALID_VALUE) }
    }

    /// The device at a place on a bus.
    fn cudaDeviceGetByPCIBusId(_call, device: Out<i32>, text: Text) {
        if text.get()?.trim_start_matches('0').trim_start_matches(':').starts_with("00:00") { device.set(DEVICE) } else { Err(Status::INVALID_DEVICE) }
    }

    /// The version of the driver.
    fn cudaDriverGetVersion(_call, version: Out<i32>) {
        version.set(DRIVER_VERSION)
    }

    /// The version of the runtime: the one that the program was linked with.
    fn cudaRuntimeGetVersion(_call, version: Out<i32>) {
        version.set(match runtime_version() {
            11 => 11080,
            12 => 12090,
            _ => DRIVER_VERSION,
        })
    }

    /// Empties a cache that the device does not have.
    fn cudaCtxResetPersistingL2Cache(call) {
        call.runtime.device().map(drop)
    }

    /// Profilers: there is none to tell.
    fn cudaProfilerStart(_call) {
        Ok(())
    }

    /// The same.
    fn cudaProfilerStop(_call) {
        Ok(())
    }
}
