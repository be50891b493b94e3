//! Launches whose shape and parameters are set by separate calls, the interface before `cuLaunchKernel`.

use crate::boundary::{Call, exported};
use crate::kernels::{Arguments, Request};
use crate::objects::kernels::Kernel;
use crate::pointer::bytes_at;
use crate::status::{Outcome, Status};
use std::sync::Arc;

/// Maximum size of the parameter block in bytes.
const MOST: usize = 32_764;

fn kernel(call: &Call, function: usize) -> Outcome<Arc<Kernel>> {
    call.runtime.kernel(function).map_err(|_| Status::INVALID_HANDLE)
}

fn resize(call: &Call, function: usize, bytes: usize) -> Outcome {
    if bytes > MOST {
        return Err(Status::INVALID_VALUE);
    }
    kernel(call, function)?.settings().bytes.resize(bytes, 0);
    Ok(())
}

fn set(call: &Call, function: usize, offset: i32, bytes: &[u8]) -> Outcome {
    let offset = usize::try_from(offset).map_err(|_| Status::INVALID_VALUE)?;
    let end = offset.checked_add(bytes.len()).filter(|end| *end <= MOST).ok_or(Status::INVALID_VALUE)?;
    let kernel = kernel(call, function)?;
    let mut settings = kernel.settings();
    if settings.bytes.len() < end {
        settings.bytes.resize(end, 0);
    }
    settings.bytes[offset..end].copy_from_slice(bytes);
    Ok(())
}

fn launch(call: &Call, function: usize, width: i32, height: i32, stream: usize) -> Outcome {
    let kernel = kernel(call, function)?;
    let settings = kernel.settings().clone();
    let grid = [width, height, 1].map(|blocks| u32::try_from(blocks).unwrap_or(0));
    let request = Request { grid, block: settings.block, shared: settings.shared as usize, cooperative: false, cluster: None };
    let arguments = Arguments::Block(settings.bytes.as_ptr() as usize, settings.bytes.len());
    call.runtime.launch(&kernel, &request, arguments, &*call.stream(stream)?).map_err(Status::of_driver)
}

exported! { driver
    fn cuFuncSetBlockShape(call, function: usize, x: i32, y: i32, z: i32) {
        let block = [x, y, z].map(|threads| u32::try_from(threads).unwrap_or(0));
        if block.contains(&0) {
            return Err(Status::INVALID_VALUE);
        }
        kernel(call, function)?.settings().block = block;
        Ok(())
    }

    fn cuFuncSetSharedSize(call, function: usize, bytes: u32) {
        kernel(call, function)?.settings().shared = bytes;
        Ok(())
    }

    fn cuParamSetSize(call, function: usize, bytes: u32) => resize(call, function, bytes as usize);
    fn cuParamSeti(call, function: usize, offset: i32, value: u32) => set(call, function, offset, &value.to_le_bytes());
    /// Sets a parameter of type `float`.
    fn cuParamSetf(call, function: usize, offset: i32, value: f32) => set(call, function, offset, &value.to_le_bytes());
    fn cuParamSetv(call, function: usize, offset: i32, value: usize, bytes: u32)
        => set(call, function, offset, &bytes_at(value, bytes as usize)?);
    /// Launches one block.
    fn cuLaunch(call, function: usize) => launch(call, function, 1, 1, 0);
    fn cuLaunchGrid(call, function: usize, width: i32, height: i32) => launch(call, function, width, height, 0);
    fn cuLaunchGridAsync(call, function: usize, width: i32, height: i32, stream: usize)
        => launch(call, function, width, height, stream);
}
