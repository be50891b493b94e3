//! Copies: conversion of both libraries' parameters to boxes.

use crate::boundary::Call;
use crate::objects::boxes::{CopyBox, Direction, FillBox, Side};
use crate::objects::textures::Array;
use crate::status::{Outcome, Status};
use crate::types::{DriverMemcpy3D, DriverSide, Extent, Memcpy3DParms, PitchedPtr};
use std::sync::Arc;

/// Copies bytes.
pub(crate) fn copy(call: &Call, to: u64, from: u64, bytes: usize, direction: Direction) -> Outcome {
    call.runtime.copy(&*call.stream(0)?, CopyBox::linear(to, from, bytes), direction)
}

/// Converts a `cudaMemcpy3DParms` to a box and a direction.
pub(crate) fn runtime_box(call: &Call, parms: &Memcpy3DParms) -> Outcome<(CopyBox, Direction)> {
    let array = |handle: usize| if handle == 0 { Ok(None) } else { call.runtime.arrays.get(handle).map(Some) };
    let (source, target) = (array(parms.src_array)?, array(parms.dst_array)?);
    // With an array, the extent counts its elements, otherwise bytes.
    let element = source.as_ref().or(target.as_ref()).map_or(1, |array| array.element_bytes());
    let width = parms.extent.width.checked_mul(element).ok_or(Status::INVALID_VALUE)?;
    let side = |array: &Option<Arc<Array>>, pointer: &PitchedPtr, pos: &Extent| {
        let (start, pitch, rows, unit) = match array {
            Some(array) => (array.address, array.pitch, array.extent[1].max(1), array.element_bytes()),
            None => (pointer.ptr as u64, pointer.pitch, pointer.ysize.max(parms.extent.height), 1),
        };
        if start == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let offset =
            pos.depth.wrapping_mul(rows).wrapping_add(pos.height).wrapping_mul(pitch).wrapping_add(pos.width.wrapping_mul(unit));
        Ok(Side { address: start.wrapping_add(offset as u64), pitch, rows })
    };
    let copy = CopyBox {
        to: side(&target, &parms.dst_ptr, &parms.dst_pos)?,
        from: side(&source, &parms.src_ptr, &parms.src_pos)?,
        width,
        height: parms.extent.height,
        depth: parms.extent.depth,
    };
    Ok((copy, Direction::new(parms.kind)?))
}

/// Converts a `CUDA_MEMCPY3D` to a box.
pub(crate) fn driver_box(call: &Call, parms: &DriverMemcpy3D) -> Outcome<CopyBox> {
    let side = |side: &DriverSide| {
        let (start, pitch, rows) = match side.kind {
            1 => (side.host as u64, side.pitch, side.height),
            2 | 4 => (side.device, side.pitch, side.height),
            3 => {
                let array = call.runtime.arrays.get(side.array)?;
                (array.address, array.pitch, array.extent[1].max(1))
            }
            _ => return Err(Status::INVALID_VALUE),
        };
        let pitch = if pitch == 0 { parms.width } else { pitch };
        let rows = if rows == 0 { parms.height } else { rows };
        let offset = side.z.wrapping_mul(rows).wrapping_add(side.y).wrapping_mul(pitch).wrapping_add(side.x);
        Ok(Side { address: start.wrapping_add(offset as u64), pitch, rows })
    };
    let (to, from) = (side(&parms.to)?, side(&parms.from)?);
    Ok(CopyBox { to, from, width: parms.width, height: parms.height, depth: parms.depth })
}

/// Returns address and pitch of a position in an array.
pub(crate) fn in_array(call: &Call, handle: usize, x: usize, y: usize) -> Outcome<(u64, usize)> {
    let array = call.runtime.arrays.get(handle)?;
    if x > array.pitch || y > array.extent[1].max(1).saturating_mul(array.extent[2].max(1)) {
        return Err(Status::INVALID_VALUE);
    }
    Ok((array.address + (y * array.pitch + x) as u64, array.pitch))
}

/// Builds a fill of pitched rows. The pitch of a single row has no meaning.
pub(crate) fn fill_rows(address: u64, pitch: usize, value: u32, size: usize, width: usize, height: usize) -> FillBox {
    let to = Side { address, pitch: if height > 1 { pitch } else { width.saturating_mul(size) }, rows: height };
    FillBox { to, value, size, width, height, depth: 1 }
}
