//! Devices: count, properties and limits.

use crate::boundary::exported;
use crate::location::{DEVICE, check_device};
use crate::pointer::{In, Out, Text};
use crate::status::Status;
use crate::version::{release, runtime_version};

pub(crate) use crate::shared_api::devices::*;

exported! { runtime
    fn cudaGetDeviceCount(call, count: Out<i32>) => count.wanted()?, call.runtime.device()?, count.set(1);
    fn cudaGetDevice(_call, device: Out<i32>) => device.set(DEVICE);
    fn cudaSetDevice(call, device: i32) => check_device(device)?, call.runtime.device().map(drop);
    fn cudaInitDevice(call, device: i32, _device_flags: u32, _flags: u32) => check_device(device)?, call.runtime.device().map(drop);
    fn cudaSetValidDevices(_call, devices: In<i32>, count: i32)
        => devices.get_all(usize::try_from(count).map_err(|_| Status::INVALID_VALUE)?)?.into_iter().try_for_each(check_device);
    fn cudaChooseDevice(call, device: Out<i32>, wanted: In<u8>) => wanted.get()?, call.runtime.device()?, device.set(DEVICE);

    fn cudaGetDeviceProperties(call, properties: Out<u8>, device: i32) {
        properties.wanted()?;
        check_device(device)?;
        // The unversioned name means version 13 if that is linked, otherwise version 11.
        let version = if runtime_version() >= 13 { 13 } else { 11 };
        properties.set_all(&call.runtime.properties(version)?)
    }

    fn cudaGetDeviceProperties_v2(call, properties: Out<u8>, device: i32)
        => properties.wanted()?, check_device(device)?, properties.set_all(&call.runtime.properties(12)?);
    /// Destroys all objects of the program.
    fn cudaDeviceReset = cudaThreadExit(call) => call.runtime.reset();
    /// Accepts flags on how the host waits. They have no effect.
    fn cudaSetDeviceFlags(_call, flags: u32) => if flags & !0xff == 0 { Ok(()) } else { Err(Status::INVALID_VALUE) };
    fn cudaDeviceGetLimit(call, value: Out<usize>, number: u32) => call.runtime.device()?, value.set(limit(number)?);
    fn cudaDeviceSetLimit(call, number: u32, value: usize) => call.runtime.device()?, set_limit(number, value);
    fn cudaDeviceGetCacheConfig = cudaThreadGetCacheConfig(call, config: Out<u32>) => call.runtime.device()?, config.set(0);

    fn cudaDeviceGetByPCIBusId(_call, device: Out<i32>, text: Text) {
        if text.get()?.trim_start_matches('0').trim_start_matches(':').starts_with("00:00") { device.set(DEVICE) } else { Err(Status::INVALID_DEVICE) }
    }

    fn cudaRuntimeGetVersion(_call, version: Out<i32>) => version.set(release());
    /// Does nothing: the device has no persisting L2 cache.
    fn cudaCtxResetPersistingL2Cache(call) => call.runtime.device().map(drop);
    /// Does nothing: the device's `double` is the host's.
    fn cudaSetDoubleForDevice = cudaSetDoubleForHost(_call, value: Out<f64>) => value.wanted();
}
