//! Launches, functions of the host, occupancy.

use crate::boundary::{Call, exported};
use crate::kernels::{Arguments, Request};
use crate::pointer::{In, Out};
use crate::runtime::launches::cooperative;
use crate::status::{Outcome, Status};
use crate::types::DriverLaunchConfig;
use crate::work::{HostFunction, Work};

/// Arguments in one block: a list of words that ends with 0, in which 1 stands before the address and 2 before that of the size.
pub(crate) fn extra(list: usize) -> Outcome<Arguments> {
    let (mut start, mut size, mut place) = (0, 0, list);
    loop {
        let word = In::<usize>::at(place).get()?;
        let value = In::<usize>::at(place + size_of::<usize>());
        match word {
            0 => return Ok(Arguments::Block(start, size)),
            1 => start = value.get()?,
            2 => size = In::<usize>::at(value.get()?).get()?,
            _ => return Err(Status::INVALID_VALUE),
        }
        place += 2 * size_of::<usize>();
    }
}

fn launch(call: &Call, function: usize, request: Request, stream: usize, params: In<usize>, more: usize) -> Outcome {
    let kernel = call.runtime.kernel(function).map_err(|_| Status::INVALID_HANDLE)?;
    let arguments = match (params.is_null(), more) {
        (true, list) if list != 0 => extra(list)?,
        _ => Arguments::Places(params),
    };
    let outcome = call.runtime.launch(&kernel, &request, arguments, &*call.stream(stream)?);
    // The driver has one word for shapes that do not fit.
    outcome.map_err(|status| if status == Status::INVALID_CONFIGURATION { Status::INVALID_VALUE } else { status })
}

fn host_function(call: &Call, stream: usize, function: usize, data: usize, given: Option<usize>) -> Outcome {
    if function == 0 {
        return Err(Status::INVALID_VALUE);
    }
    call.runtime.submit(&*call.stream(stream)?, Work::Host(HostFunction { function, data, stream: given }))
}

exported! { driver
    /// Launches a kernel.
    fn cuLaunchKernel / cuLaunchKernel_ptsz(call, function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: usize, params: In<usize>, more: usize) {
        let request = Request { grid: [gx, gy, gz], block: [bx, by, bz], shared: shared as usize, cooperative: false };
        launch(call, function, request, stream, params, more)
    }

    /// Launches a kernel whose blocks run at the same time.
    fn cuLaunchCooperativeKernel / cuLaunchCooperativeKernel_ptsz(call, function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: usize, params: In<usize>) {
        let request = Request { grid: [gx, gy, gz], block: [bx, by, bz], shared: shared as usize, cooperative: true };
        launch(call, function, request, stream, params, 0)
    }

    /// Launches a kernel with attributes.
    fn cuLaunchKernelEx / cuLaunchKernelEx_ptsz(call, config: In<DriverLaunchConfig>, function: usize, params: In<usize>, more: usize) {
        let config = config.get()?;
        let kernel = call.runtime.kernel(function).map_err(|_| Status::INVALID_HANDLE)?;
        let cooperative = cooperative(&kernel, call, In::at(config.attributes), config.count)?;
        let request = Request { grid: config.grid, block: config.block, shared: config.shared as usize, cooperative };
        launch(call, function, request, config.stream, params, more)
    }

    /// Calls a function of the host in stream order.
    fn cuLaunchHostFunc / cuLaunchHostFunc_ptsz(call, stream: usize, function: usize, data: usize) {
        host_function(call, stream, function, data, None)
    }

    /// Calls a function of the host in stream order with the stream and its status.
    fn cuStreamAddCallback / cuStreamAddCallback_ptsz(call, stream: usize, function: usize, data: usize, _flags: u32) {
        host_function(call, stream, function, data, Some(stream))
    }

    /// Blocks that a multiprocessor runs at a time.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(call, blocks: Out<i32>, function: usize, threads: i32, dynamic: usize) {
        blocks.set(call.runtime.blocks_per_multiprocessor(&*call.runtime.kernel(function)?, threads, dynamic)?)
    }

    /// The same, with flags that make no difference here.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(call, blocks: Out<i32>, function: usize, threads: i32, dynamic: usize, _flags: u32) {
        blocks.set(call.runtime.blocks_per_multiprocessor(&*call.runtime.kernel(function)?, threads, dynamic)?)
    }

    /// Dynamic shared memory of a block when so many run.
    fn cuOccupancyAvailableDynamicSMemPerBlock(call, bytes: Out<usize>, function: usize, blocks: i32, threads: i32) {
        bytes.set(call.runtime.dynamic_shared_per_block(&*call.runtime.kernel(function)?, blocks, threads)?)
    }
}
