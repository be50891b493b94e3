//! Copies and fills.

use crate::boundary::{Call, exported};
use crate::location::check_device;
use crate::objects::boxes::{CopyBox, Direction, FillBox, Side};
use crate::pointer::In;
use crate::shared_api::copies::{fill_rows, in_array, runtime_box};
use crate::status::{Outcome, Status};
use crate::types::{Extent, Memcpy3DParms, PitchedPtr};

/// Builds a copy of pitched rows.
fn rows(to: (u64, usize), from: (u64, usize), width: usize, height: usize) -> CopyBox {
    let side = |(address, pitch): (u64, usize)| Side { address, pitch, rows: height };
    CopyBox { to: side(to), from: side(from), width, height, depth: 1 }
}

fn fill_slices(to: PitchedPtr, value: i32, extent: Extent) -> FillBox {
    let to_side = Side { address: to.ptr as u64, pitch: to.pitch, rows: to.ysize.max(extent.height) };
    FillBox { to: to_side, value: value as u32 & 0xff, size: 1, width: extent.width, height: extent.height, depth: extent.depth }
}

fn fill_2d(address: u64, pitch: usize, value: i32, width: usize, height: usize) -> FillBox {
    fill_rows(address, pitch, value as u32 & 0xff, 1, width, height)
}

exported! { runtime
    /// Copies bytes.
    fn cudaMemcpy / cudaMemcpy_ptds(call, to: u64, from: u64, bytes: usize, kind: u32) {
        call.runtime.copy(&*call.stream(0)?, CopyBox::linear(to, from, bytes), Direction::new(kind)?)
    }

    /// Copies bytes in stream order.
    fn cudaMemcpyAsync / cudaMemcpyAsync_ptsz(call, to: u64, from: u64, bytes: usize, kind: u32, stream: usize) {
        call.runtime.copy_async(&*call.stream(stream)?, CopyBox::linear(to, from, bytes), Direction::new(kind)?)
    }

    /// Copies bytes between devices, of which there is one.
    fn cudaMemcpyPeer(call, to: u64, to_device: i32, from: u64, from_device: i32, bytes: usize) {
        check_device(to_device)?;
        check_device(from_device)?;
        call.runtime.copy(&*call.stream(0)?, CopyBox::linear(to, from, bytes), Direction::DeviceToDevice)
    }

    /// Copies bytes between devices in stream order.
    fn cudaMemcpyPeerAsync(call, to: u64, to_device: i32, from: u64, from_device: i32, bytes: usize, stream: usize) {
        check_device(to_device)?;
        check_device(from_device)?;
        call.runtime.copy_async(&*call.stream(stream)?, CopyBox::linear(to, from, bytes), Direction::DeviceToDevice)
    }

    /// Copies rows.
    fn cudaMemcpy2D / cudaMemcpy2D_ptds(call, to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, kind: u32) {
        call.runtime.copy(&*call.stream(0)?, rows((to, to_pitch), (from, from_pitch), width, height), Direction::new(kind)?)
    }

    /// Copies rows in stream order.
    fn cudaMemcpy2DAsync / cudaMemcpy2DAsync_ptsz(call, to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, kind: u32, stream: usize) {
        call.runtime.copy_async(&*call.stream(stream)?, rows((to, to_pitch), (from, from_pitch), width, height), Direction::new(kind)?)
    }

    /// Copies a box.
    fn cudaMemcpy3D / cudaMemcpy3D_ptds(call, parms: In<Memcpy3DParms>) {
        let (copy, direction) = runtime_box(call, &parms.get()?)?;
        call.runtime.copy(&*call.stream(0)?, copy, direction)
    }

    /// Copies a box in stream order.
    fn cudaMemcpy3DAsync / cudaMemcpy3DAsync_ptsz(call, parms: In<Memcpy3DParms>, stream: usize) {
        let (copy, direction) = runtime_box(call, &parms.get()?)?;
        call.runtime.copy_async(&*call.stream(stream)?, copy, direction)
    }

    /// Copies rows to an array.
    fn cudaMemcpy2DToArray / cudaMemcpy2DToArray_ptds(call, array: usize, x: usize, y: usize, from: u64, pitch: usize, width: usize, height: usize, kind: u32) {
        let to = in_array(call, array, x, y)?;
        call.runtime.copy(&*call.stream(0)?, rows(to, (from, pitch), width, height), Direction::new(kind)?)
    }

    /// Copies rows to an array in stream order.
    fn cudaMemcpy2DToArrayAsync / cudaMemcpy2DToArrayAsync_ptsz(call, array: usize, x: usize, y: usize, from: u64, pitch: usize, width: usize, height: usize, kind: u32, stream: usize) {
        let to = in_array(call, array, x, y)?;
        call.runtime.copy_async(&*call.stream(stream)?, rows(to, (from, pitch), width, height), Direction::new(kind)?)
    }

    /// Copies rows from an array.
    fn cudaMemcpy2DFromArray / cudaMemcpy2DFromArray_ptds(call, to: u64, pitch: usize, array: usize, x: usize, y: usize, width: usize, height: usize, kind: u32) {
        let from = in_array(call, array, x, y)?;
        call.runtime.copy(&*call.stream(0)?, rows((to, pitch), from, width, height), Direction::new(kind)?)
    }

    /// Copies rows from an array in stream order.
    fn cudaMemcpy2DFromArrayAsync / cudaMemcpy2DFromArrayAsync_ptsz(call, to: u64, pitch: usize, array: usize, x: usize, y: usize, width: usize, height: usize, kind: u32, stream: usize) {
        let from = in_array(call, array, x, y)?;
        call.runtime.copy_async(&*call.stream(stream)?, rows((to, pitch), from, width, height), Direction::new(kind)?)
    }

    /// Copies rows between arrays.
    fn cudaMemcpy2DArrayToArray / cudaMemcpy2DArrayToArray_ptds(call, to: usize, to_x: usize, to_y: usize, from: usize, from_x: usize, from_y: usize, width: usize, height: usize, _kind: u32) {
        let (to, from) = (in_array(call, to, to_x, to_y)?, in_array(call, from, from_x, from_y)?);
        call.runtime.copy(&*call.stream(0)?, rows(to, from, width, height), Direction::DeviceToDevice)
    }

    /// Copies bytes between arrays.
    fn cudaMemcpyArrayToArray / cudaMemcpyArrayToArray_ptds(call, to: usize, to_x: usize, to_y: usize, from: usize, from_x: usize, from_y: usize, bytes: usize, _kind: u32) {
        let (to, width, height) = array_rows(call, to, (to_x, to_y), bytes)?;
        let (from, from_width, _) = array_rows(call, from, (from_x, from_y), bytes)?;
        // Rows of different lengths do not form a box.
        if width != from_width {
            return Err(Status::INVALID_VALUE);
        }
        call.runtime.copy(&*call.stream(0)?, rows(to, from, width, height), Direction::DeviceToDevice)
    }

    /// Copies bytes to an array.
    fn cudaMemcpyToArray / cudaMemcpyToArray_ptds(call, array: usize, x: usize, y: usize, from: u64, bytes: usize, kind: u32) {
        call.runtime.copy(&*call.stream(0)?, into_array(call, array, (x, y), from, bytes)?, Direction::new(kind)?)
    }

    /// Copies bytes to an array in stream order.
    fn cudaMemcpyToArrayAsync / cudaMemcpyToArrayAsync_ptsz(call, array: usize, x: usize, y: usize, from: u64, bytes: usize, kind: u32, stream: usize) {
        call.runtime.copy_async(&*call.stream(stream)?, into_array(call, array, (x, y), from, bytes)?, Direction::new(kind)?)
    }

    /// Copies bytes from an array.
    fn cudaMemcpyFromArray / cudaMemcpyFromArray_ptds(call, to: u64, array: usize, x: usize, y: usize, bytes: usize, kind: u32) {
        call.runtime.copy(&*call.stream(0)?, out_of_array(call, array, (x, y), to, bytes)?, Direction::new(kind)?)
    }

    /// Copies bytes from an array in stream order.
    fn cudaMemcpyFromArrayAsync / cudaMemcpyFromArrayAsync_ptsz(call, to: u64, array: usize, x: usize, y: usize, bytes: usize, kind: u32, stream: usize) {
        call.runtime.copy_async(&*call.stream(stream)?, out_of_array(call, array, (x, y), to, bytes)?, Direction::new(kind)?)
    }

    /// Fills bytes.
    fn cudaMemset / cudaMemset_ptds(call, address: u64, value: i32, bytes: usize) {
        call.runtime.fill(&*call.stream(0)?, fill_2d(address, bytes, value, bytes, 1))
    }

    /// Fills bytes in stream order.
    fn cudaMemsetAsync / cudaMemsetAsync_ptsz(call, address: u64, value: i32, bytes: usize, stream: usize) {
        call.runtime.fill_async(&*call.stream(stream)?, fill_2d(address, bytes, value, bytes, 1))
    }

    /// Fills rows.
    fn cudaMemset2D / cudaMemset2D_ptds(call, address: u64, pitch: usize, value: i32, width: usize, height: usize) {
        call.runtime.fill(&*call.stream(0)?, fill_2d(address, pitch, value, width, height))
    }

    /// Fills rows in stream order.
    fn cudaMemset2DAsync / cudaMemset2DAsync_ptsz(call, address: u64, pitch: usize, value: i32, width: usize, height: usize, stream: usize) {
        call.runtime.fill_async(&*call.stream(stream)?, fill_2d(address, pitch, value, width, height))
    }

    /// Fills a box.
    fn cudaMemset3D / cudaMemset3D_ptds(call, to: PitchedPtr, value: i32, extent: Extent) {
        call.runtime.fill(&*call.stream(0)?, fill_slices(to, value, extent))
    }

    /// Fills a box in stream order.
    fn cudaMemset3DAsync / cudaMemset3DAsync_ptsz(call, to: PitchedPtr, value: i32, extent: Extent, stream: usize) {
        call.runtime.fill_async(&*call.stream(stream)?, fill_slices(to, value, extent))
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
