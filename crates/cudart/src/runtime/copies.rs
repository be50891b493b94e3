//! Copies and fills.

use crate::boundary::{Call, exported, transfers};
use crate::location::check_device;
use crate::objects::boxes::{CopyBox, Direction, FillBox, Side};
use crate::pointer::In;
use crate::shared_api::copies::{fill_rows, in_array, runtime_box};
use crate::status::{Outcome, Status};
use crate::types::{Extent, Memcpy3DParms, PitchedPtr};
use crate::work::Transfer;

/// Builds a copy of pitched rows.
fn rows(to: (u64, usize), from: (u64, usize), width: usize, height: usize) -> CopyBox {
    let side = |(address, pitch): (u64, usize)| Side { address, pitch, rows: height };
    CopyBox { to: side(to), from: side(from), width, height, depth: 1 }
}

fn fill_slices(to: PitchedPtr, value: i32, extent: Extent) -> FillBox {
    let to_side = Side { address: to.ptr as u64, pitch: to.pitch, rows: to.ysize.max(extent.height) };
    FillBox { to: to_side, value: value as u32 & 0xff, size: 1, width: extent.width, height: extent.height, depth: extent.depth }
}

fn fill(address: u64, pitch: usize, value: i32, width: usize, height: usize) -> Transfer {
    Transfer::Fill(fill_rows(address, pitch, value as u32 & 0xff, 1, width, height))
}

transfers! { runtime
    fn cudaMemcpy / cudaMemcpy_ptds, cudaMemcpyAsync / cudaMemcpyAsync_ptsz
    (call, to: u64, from: u64, bytes: usize, kind: u32) => Transfer::bytes(to, from, bytes, Direction::new(kind)?);
    fn cudaMemcpyPeer, cudaMemcpyPeerAsync(call, to: u64, to_device: i32, from: u64, from_device: i32, bytes: usize) => {
        check_device(to_device)?;
        check_device(from_device)?;
        Transfer::bytes(to, from, bytes, Direction::DeviceToDevice)
    };
    fn cudaMemcpy2D / cudaMemcpy2D_ptds, cudaMemcpy2DAsync / cudaMemcpy2DAsync_ptsz
    (call, to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, kind: u32)
    => Transfer::Copy(rows((to, to_pitch), (from, from_pitch), width, height), Direction::new(kind)?);
    fn cudaMemcpy3D / cudaMemcpy3D_ptds, cudaMemcpy3DAsync / cudaMemcpy3DAsync_ptsz(call, parms: In<Memcpy3DParms>) => {
        let (copy, direction) = runtime_box(call, &parms.get()?)?;
        Transfer::Copy(copy, direction)
    };
    fn cudaMemcpy2DToArray / cudaMemcpy2DToArray_ptds, cudaMemcpy2DToArrayAsync / cudaMemcpy2DToArrayAsync_ptsz
    (call, array: usize, x: usize, y: usize, from: u64, pitch: usize, width: usize, height: usize, kind: u32)
    => Transfer::Copy(rows(in_array(call, array, x, y)?, (from, pitch), width, height), Direction::new(kind)?);
    fn cudaMemcpy2DFromArray / cudaMemcpy2DFromArray_ptds, cudaMemcpy2DFromArrayAsync / cudaMemcpy2DFromArrayAsync_ptsz
    (call, to: u64, pitch: usize, array: usize, x: usize, y: usize, width: usize, height: usize, kind: u32)
    => Transfer::Copy(rows((to, pitch), in_array(call, array, x, y)?, width, height), Direction::new(kind)?);
    fn cudaMemcpyToArray / cudaMemcpyToArray_ptds, cudaMemcpyToArrayAsync / cudaMemcpyToArrayAsync_ptsz
    (call, array: usize, x: usize, y: usize, from: u64, bytes: usize, kind: u32)
    => Transfer::Copy(into_array(call, array, (x, y), from, bytes)?, Direction::new(kind)?);
    fn cudaMemcpyFromArray / cudaMemcpyFromArray_ptds, cudaMemcpyFromArrayAsync / cudaMemcpyFromArrayAsync_ptsz
    (call, to: u64, array: usize, x: usize, y: usize, bytes: usize, kind: u32)
    => Transfer::Copy(out_of_array(call, array, (x, y), to, bytes)?, Direction::new(kind)?);
    fn cudaMemset / cudaMemset_ptds, cudaMemsetAsync / cudaMemsetAsync_ptsz(call, address: u64, value: i32, bytes: usize) => fill(address, bytes, value, bytes, 1);
    fn cudaMemset2D / cudaMemset2D_ptds, cudaMemset2DAsync / cudaMemset2DAsync_ptsz
    (call, address: u64, pitch: usize, value: i32, width: usize, height: usize) => fill(address, pitch, value, width, height);
    fn cudaMemset3D / cudaMemset3D_ptds, cudaMemset3DAsync / cudaMemset3DAsync_ptsz
    (call, to: PitchedPtr, value: i32, extent: Extent) => Transfer::Fill(fill_slices(to, value, extent));
}

exported! { runtime
    fn cudaMemcpy2DArrayToArray / cudaMemcpy2DArrayToArray_ptds(call, to: usize, to_x: usize, to_y: usize, from: usize, from_x: usize, from_y: usize, width: usize, height: usize, _kind: u32) {
        let (to, from) = (in_array(call, to, to_x, to_y)?, in_array(call, from, from_x, from_y)?);
        call.runtime.copy(&*call.stream(0)?, rows(to, from, width, height), Direction::DeviceToDevice)
    }

    fn cudaMemcpyArrayToArray / cudaMemcpyArrayToArray_ptds(call, to: usize, to_x: usize, to_y: usize, from: usize, from_x: usize, from_y: usize, bytes: usize, _kind: u32) {
        let (to, width, height) = array_rows(call, to, (to_x, to_y), bytes)?;
        let (from, from_width, _) = array_rows(call, from, (from_x, from_y), bytes)?;
        // Rows of different lengths do not form a box.
        if width != from_width {
            return Err(Status::INVALID_VALUE);
        }
        call.runtime.copy(&*call.stream(0)?, rows(to, from, width, height), Direction::DeviceToDevice)
    }
}

/// Converts contiguous bytes to whole rows of an array, starting at a position.
fn array_rows(call: &Call, handle: usize, place: (usize, usize), bytes: usize) -> Outcome<((u64, usize), usize, usize)> {
    let array = call.runtime.arrays.get(handle)?;
    let row = array.extent[0] * array.element_bytes();
    let side = in_array(call, handle, place.0, place.1)?;
    let (width, height) = if place.0 + bytes <= row { (bytes, 1) } else { (row, bytes / row) };
    // A range that starts or ends inside a row and spans several rows does not form a box.
    if width * height != bytes || height > 1 && place.0 != 0 {
        return Err(Status::INVALID_VALUE);
    }
    Ok((side, width, height))
}

fn into_array(call: &Call, handle: usize, place: (usize, usize), from: u64, bytes: usize) -> Outcome<CopyBox> {
    let (side, width, height) = array_rows(call, handle, place, bytes)?;
    Ok(rows(side, (from, width), width, height))
}

fn out_of_array(call: &Call, handle: usize, place: (usize, usize), to: u64, bytes: usize) -> Outcome<CopyBox> {
    let (side, width, height) = array_rows(call, handle, place, bytes)?;
    Ok(rows((to, width), side, width, height))
}
