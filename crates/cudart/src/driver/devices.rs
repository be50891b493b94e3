//! Devices, versions, errors.

use crate::boundary::exported;
use crate::device::uuid;
use crate::location::{DEVICE, check_device};
use crate::pointer::{Out, Text, kept_text};
use crate::status::{Outcome, Status};
use std::ffi::c_char;

pub(crate) use crate::shared_api::devices::*;

exported! { driver
    fn cuInit(call, flags: u32) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        call.runtime.device().map(drop)
    }

    fn cuDeviceGetCount(call, count: Out<i32>) => call.runtime.device()?, count.set(1);
    fn cuDeviceGet(call, device: Out<i32>, number: i32) => call.runtime.device()?, check_device(number)?, device.set(DEVICE);

    fn cuDeviceGetName(call, text: Out<u8>, length: i32, device: i32) {
        check_device(device)?;
        let room = usize::try_from(length).ok().filter(|room| *room > 0).ok_or(Status::INVALID_VALUE)?;
        let mut bytes = call.runtime.device_name()?.into_bytes();
        bytes.truncate(room - 1);
        bytes.push(0);
        text.set_all(&bytes)
    }

    /// Returns the UUID of a device, the same in every process.
    fn cuDeviceGetUuid = cuDeviceGetUuid_v2(_call, place: Out<[u8; 16]>, device: i32) => check_device(device)?, place.set(uuid());
    /// Returns the size of the device's memory, limited to 32 bits.
    fn cuDeviceTotalMem(call, bytes: Out<u32>, device: i32)
        => check_device(device)?, bytes.set(call.runtime.memory_left()?.1.min(u32::MAX as usize) as u32);
    fn cuDeviceTotalMem_v2(call, bytes: Out<usize>, device: i32) => check_device(device)?, bytes.set(call.runtime.memory_left()?.1);
    fn cuDeviceComputeCapability(call, major: Out<i32>, minor: Out<i32>, device: i32)
        => check_device(device)?, major.set(call.runtime.attribute(75)?)?, minor.set(call.runtime.attribute(76)?);
    fn cuDeviceGetByPCIBusId(_call, device: Out<i32>, text: Text)
        => if text.get()?.ends_with("00:00.0") { device.set(DEVICE) } else { Err(Status::INVALID_DEVICE) };
    /// Reports that a device cannot access a peer: there is none.
    fn cuDeviceCanAccessPeer(_call, can: Out<i32>, device: i32, peer: i32) => check_device(device)?, check_device(peer)?, can.set(0);

    fn cuGetErrorName(_call, status: u32, name: Out<*const c_char>) {
        match Status(status).driver_name() {
            Some(text) => name.set(kept_text(text)),
            None => {
                name.set(std::ptr::null())?;
                Err(Status::INVALID_VALUE)
            }
        }
    }

    fn cuGetErrorString(_call, status: u32, text: Out<*const c_char>) {
        match Status(status).text() {
            Some(found) => text.set(kept_text(found)),
            None => {
                text.set(std::ptr::null())?;
                Err(Status::INVALID_VALUE)
            }
        }
    }

    /// Returns the fields of `CUdevprop`: maximum threads and blocks in each direction, memory, clock.
    fn cuDeviceGetProperties(call, properties: Out<i32>, device: i32) {
        properties.wanted()?;
        check_device(device)?;
        const ATTRIBUTES: [u32; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
        let values = ATTRIBUTES.iter().map(|attribute| call.runtime.attribute(*attribute)).collect::<Outcome<Vec<i32>>>()?;
        properties.set_all(&values)
    }
}
