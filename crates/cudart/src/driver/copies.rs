//! Copies and fills.

use crate::boundary::{Call, transfers};
use crate::objects::boxes::{CopyBox, Direction, Side};
use crate::pointer::In;
use crate::shared_api::copies::{driver_box, fill_rows, in_array};
use crate::status::{Outcome, Status};
use crate::types::{DriverMemcpy2D, DriverMemcpy3D};
use crate::work::Transfer;

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

/// Builds a fill of contiguous values.
fn line(address: u64, value: u32, size: usize, count: usize) -> Transfer {
    rows_of(address, 0, value, size, count, 1)
}

/// Builds a fill of pitched rows.
fn rows_of(address: u64, pitch: usize, value: u32, size: usize, width: usize, height: usize) -> Transfer {
    Transfer::Fill(fill_rows(address, pitch, value, size, width, height))
}

/// Builds a copy whose direction is inferred from the addresses.
fn inferred(copy: CopyBox) -> Transfer {
    Transfer::Copy(copy, Direction::Default)
}

transfers! { driver
    fn cuMemcpy3D_v2 / cuMemcpy3D_v2_ptds, cuMemcpy3DAsync_v2 / cuMemcpy3DAsync_v2_ptsz(call, parms: In<DriverMemcpy3D>) => inferred(driver_box(call, &parms.get()?)?);
    fn cuMemcpy2D_v2 / cuMemcpy2D_v2_ptds = cuMemcpy2DUnaligned_v2 / cuMemcpy2DUnaligned_v2_ptds, cuMemcpy2DAsync_v2 / cuMemcpy2DAsync_v2_ptsz
    (call, parms: In<DriverMemcpy2D>) => inferred(rows(call, &parms.get()?)?);
    fn cuMemcpy / cuMemcpy_ptds, cuMemcpyAsync / cuMemcpyAsync_ptsz(call, to: u64, from: u64, bytes: usize) => Transfer::bytes(to, from, bytes, Direction::Default);
    fn cuMemcpyHtoD_v2 / cuMemcpyHtoD_v2_ptds, cuMemcpyHtoDAsync_v2 / cuMemcpyHtoDAsync_v2_ptsz
    (call, to: u64, from: u64, bytes: usize) => Transfer::bytes(to, from, bytes, Direction::HostToDevice);
    fn cuMemcpyDtoH_v2 / cuMemcpyDtoH_v2_ptds, cuMemcpyDtoHAsync_v2 / cuMemcpyDtoHAsync_v2_ptsz
    (call, to: u64, from: u64, bytes: usize) => Transfer::bytes(to, from, bytes, Direction::DeviceToHost);
    fn cuMemcpyDtoD_v2 / cuMemcpyDtoD_v2_ptds, cuMemcpyDtoDAsync_v2 / cuMemcpyDtoDAsync_v2_ptsz
    (call, to: u64, from: u64, bytes: usize) => Transfer::bytes(to, from, bytes, Direction::DeviceToDevice);
    fn cuMemsetD8_v2 / cuMemsetD8_v2_ptds, cuMemsetD8Async / cuMemsetD8Async_ptsz(call, address: u64, value: u8, count: usize) => line(address, value.into(), 1, count);
    fn cuMemsetD16_v2 / cuMemsetD16_v2_ptds, cuMemsetD16Async / cuMemsetD16Async_ptsz(call, address: u64, value: u16, count: usize) => line(address, value.into(), 2, count);
    fn cuMemsetD32_v2 / cuMemsetD32_v2_ptds, cuMemsetD32Async / cuMemsetD32Async_ptsz(call, address: u64, value: u32, count: usize) => line(address, value, 4, count);
    fn cuMemsetD2D8_v2 / cuMemsetD2D8_v2_ptds, cuMemsetD2D8Async / cuMemsetD2D8Async_ptsz
    (call, address: u64, pitch: usize, value: u8, width: usize, height: usize) => rows_of(address, pitch, value.into(), 1, width, height);
    fn cuMemsetD2D16_v2 / cuMemsetD2D16_v2_ptds, cuMemsetD2D16Async / cuMemsetD2D16Async_ptsz
    (call, address: u64, pitch: usize, value: u16, width: usize, height: usize) => rows_of(address, pitch, value.into(), 2, width, height);
    fn cuMemsetD2D32_v2 / cuMemsetD2D32_v2_ptds, cuMemsetD2D32Async / cuMemsetD2D32Async_ptsz
    (call, address: u64, pitch: usize, value: u32, width: usize, height: usize) => rows_of(address, pitch, value, 4, width, height);
}
