//! Copies and fills.

use crate::boundary::{Call, exported};
use crate::objects::boxes::{CopyBox, Direction, FillBox, Side};
use crate::pointer::In;
use crate::shared_api::copies::{copy, copy_async, driver_box, fill_rows, in_array};
use crate::status::{Outcome, Status};
use crate::types::{DriverMemcpy2D, DriverMemcpy3D};

/// Converts a `CUDA_MEMCPY2D` to a box. Kinds of memory: 1 host, 2 device, 3 array, 4 inferred from the
/// address.
fn rows(call: &Call, parms: &DriverMemcpy2D) -> Outcome<CopyBox> {
    let side = |kind: u32, (x, y): (usize, usize), host: usize, device: u64, array: usize, pitch: usize| {
        let (start, pitch) = match kind {
            1 => (host as u64, pitch),
            2 | 4 => (device, pitch),
            3 => {
                let (address, pitch) = in_array(call, array, x, y)?;
                return Ok(Side { address, pitch, rows: parms.height });
            }
            _ => return Err(Status::INVALID_VALUE),
        };
        let pitch = if pitch == 0 { parms.width } else { pitch };
        Ok(Side { address: start.wrapping_add(y.wrapping_mul(pitch).wrapping_add(x) as u64), pitch, rows: parms.height })
    };
    Ok(CopyBox {
        to: side(parms.dst_kind, (parms.dst_x, parms.dst_y), parms.dst_host, parms.dst_device, parms.dst_array, parms.dst_pitch)?,
        from: side(
            parms.src_kind,
            (parms.src_x, parms.src_y),
            parms.src_host,
            parms.src_device,
            parms.src_array,
            parms.src_pitch,
        )?,
        width: parms.width,
        height: parms.height,
        depth: 1,
    })
}

fn fill(call: &Call, values: FillBox) -> Outcome {
    call.runtime.fill(&*call.stream(0)?, values)
}

fn fill_async(call: &Call, values: FillBox, stream: usize) -> Outcome {
    call.runtime.fill_async(&*call.stream(stream)?, values)
}

exported! { driver
    /// Copies a box.
    fn cuMemcpy3D_v2 / cuMemcpy3D_v2_ptds(call, parms: In<DriverMemcpy3D>) {
        let copy = driver_box(call, &parms.get()?)?;
        call.runtime.copy(&*call.stream(0)?, copy, Direction::Default)
    }

    /// Copies a box in stream order.
    fn cuMemcpy3DAsync_v2 / cuMemcpy3DAsync_v2_ptsz(call, parms: In<DriverMemcpy3D>, stream: usize) {
        let copy = driver_box(call, &parms.get()?)?;
        call.runtime.copy_async(&*call.stream(stream)?, copy, Direction::Default)
    }

    /// Copies bytes. The direction is inferred from the addresses.
    fn cuMemcpy / cuMemcpy_ptds(call, to: u64, from: u64, bytes: usize) {
        copy(call, to, from, bytes, Direction::Default)
    }

    /// Copies bytes in stream order. The direction is inferred from the addresses.
    fn cuMemcpyAsync / cuMemcpyAsync_ptsz(call, to: u64, from: u64, bytes: usize, stream: usize) {
        copy_async(call, to, from, bytes, Direction::Default, stream)
    }

    /// Copies to the device.
    fn cuMemcpyHtoD_v2 / cuMemcpyHtoD_v2_ptds(call, to: u64, from: u64, bytes: usize) {
        copy(call, to, from, bytes, Direction::HostToDevice)
    }

    /// Copies to the device in stream order.
    fn cuMemcpyHtoDAsync_v2 / cuMemcpyHtoDAsync_v2_ptsz(call, to: u64, from: u64, bytes: usize, stream: usize) {
        copy_async(call, to, from, bytes, Direction::HostToDevice, stream)
    }

    /// Copies to the host.
    fn cuMemcpyDtoH_v2 / cuMemcpyDtoH_v2_ptds(call, to: u64, from: u64, bytes: usize) {
        copy(call, to, from, bytes, Direction::DeviceToHost)
    }

    /// Copies to the host in stream order.
    fn cuMemcpyDtoHAsync_v2 / cuMemcpyDtoHAsync_v2_ptsz(call, to: u64, from: u64, bytes: usize, stream: usize) {
        copy_async(call, to, from, bytes, Direction::DeviceToHost, stream)
    }

    /// Copies within the device.
    fn cuMemcpyDtoD_v2 / cuMemcpyDtoD_v2_ptds(call, to: u64, from: u64, bytes: usize) {
        copy(call, to, from, bytes, Direction::DeviceToDevice)
    }

    /// Copies within the device in stream order.
    fn cuMemcpyDtoDAsync_v2 / cuMemcpyDtoDAsync_v2_ptsz(call, to: u64, from: u64, bytes: usize, stream: usize) {
        copy_async(call, to, from, bytes, Direction::DeviceToDevice, stream)
    }

    /// Copies rows.
    fn cuMemcpy2D_v2 / cuMemcpy2D_v2_ptds = cuMemcpy2DUnaligned_v2 / cuMemcpy2DUnaligned_v2_ptds(call, parms: In<DriverMemcpy2D>) {
        let copy = rows(call, &parms.get()?)?;
        call.runtime.copy(&*call.stream(0)?, copy, Direction::Default)
    }

    /// Copies rows in stream order.
    fn cuMemcpy2DAsync_v2 / cuMemcpy2DAsync_v2_ptsz(call, parms: In<DriverMemcpy2D>, stream: usize) {
        let copy = rows(call, &parms.get()?)?;
        call.runtime.copy_async(&*call.stream(stream)?, copy, Direction::Default)
    }

    /// Fills memory with 8-bit values.
    fn cuMemsetD8_v2 / cuMemsetD8_v2_ptds(call, address: u64, value: u8, count: usize) {
        fill(call, fill_rows(address, 0, u32::from(value), 1, count, 1))
    }

    /// Fills memory with 8-bit values in stream order.
    fn cuMemsetD8Async / cuMemsetD8Async_ptsz(call, address: u64, value: u8, count: usize, stream: usize) {
        fill_async(call, fill_rows(address, 0, u32::from(value), 1, count, 1), stream)
    }

    /// Fills rows with 8-bit values.
    fn cuMemsetD2D8_v2 / cuMemsetD2D8_v2_ptds(call, address: u64, pitch: usize, value: u8, width: usize, height: usize) {
        fill(call, fill_rows(address, pitch, u32::from(value), 1, width, height))
    }

    /// Fills rows with 8-bit values in stream order.
    fn cuMemsetD2D8Async / cuMemsetD2D8Async_ptsz(call, address: u64, pitch: usize, value: u8, width: usize, height: usize, stream: usize) {
        fill_async(call, fill_rows(address, pitch, u32::from(value), 1, width, height), stream)
    }

    /// Fills memory with 16-bit values.
    fn cuMemsetD16_v2 / cuMemsetD16_v2_ptds(call, address: u64, value: u16, count: usize) {
        fill(call, fill_rows(address, 0, u32::from(value), 2, count, 1))
    }

    /// Fills memory with 16-bit values in stream order.
    fn cuMemsetD16Async / cuMemsetD16Async_ptsz(call, address: u64, value: u16, count: usize, stream: usize) {
        fill_async(call, fill_rows(address, 0, u32::from(value), 2, count, 1), stream)
    }

    /// Fills rows with 16-bit values.
    fn cuMemsetD2D16_v2 / cuMemsetD2D16_v2_ptds(call, address: u64, pitch: usize, value: u16, width: usize, height: usize) {
        fill(call, fill_rows(address, pitch, u32::from(value), 2, width, height))
    }

    /// Fills rows with 16-bit values in stream order.
    fn cuMemsetD2D16Async / cuMemsetD2D16Async_ptsz(call, address: u64, pitch: usize, value: u16, width: usize, height: usize, stream: usize) {
        fill_async(call, fill_rows(address, pitch, u32::from(value), 2, width, height), stream)
    }

    /// Fills memory with 32-bit values.
    fn cuMemsetD32_v2 / cuMemsetD32_v2_ptds(call, address: u64, value: u32, count: usize) {
        fill(call, fill_rows(address, 0, value, 4, count, 1))
    }

    /// Fills memory with 32-bit values in stream order.
    fn cuMemsetD32Async / cuMemsetD32Async_ptsz(call, address: u64, value: u32, count: usize, stream: usize) {
        fill_async(call, fill_rows(address, 0, value, 4, count, 1), stream)
    }

    /// Fills rows with 32-bit values.
    fn cuMemsetD2D32_v2 / cuMemsetD2D32_v2_ptds(call, address: u64, pitch: usize, value: u32, width: usize, height: usize) {
        fill(call, fill_rows(address, pitch, value, 4, width, height))
    }

    /// Fills rows with 32-bit values in stream order.
    fn cuMemsetD2D32Async / cuMemsetD2D32Async_ptsz(call, address: u64, pitch: usize, value: u32, width: usize, height: usize, stream: usize) {
        fill_async(call, fill_rows(address, pitch, value, 4, width, height), stream)
    }
}
