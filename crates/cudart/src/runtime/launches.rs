//! Launches of kernels and calls of host functions.

use crate::boundary::{Call, exported};
use crate::kernels::{Arguments, Request};
use crate::pointer::{In, Out};
pub(crate) use crate::shared_api::launches::*;
use crate::status::{Outcome, Status};
use crate::types::{Dim3, LaunchConfig, LaunchParams};
use crate::version::runtime_version;
use std::cell::Cell;

thread_local! {
    /// Launch configurations of `kernel<<<…>>>(…)`, pushed before the arguments are evaluated. The value
    /// needs no destructor, because a program may launch while its thread ends.
    static SHAPES: Cell<Shapes> = const { Cell::new(Shapes { list: [None; DEEPEST], count: 0 }) };
}

/// Maximum depth of launches nested in each other's arguments.
const DEEPEST: usize = 16;

/// Grid, block, shared memory and stream of a launch.
type LaunchShape = (Dim3, Dim3, usize, usize);

#[derive(Clone, Copy)]
struct Shapes {
    list: [Option<LaunchShape>; DEEPEST],
    count: usize,
}

fn launch(call: &Call, function: usize, request: &Request, arguments: In<usize>, stream: usize) -> Outcome {
    let outcome = call
        .runtime
        .kernel(function)
        .and_then(|kernel| call.runtime.launch(&kernel, request, Arguments::Places(arguments), &*call.stream(stream)?));
    outcome.map_err(|status| if runtime_version() >= 13 { status.of_driver() } else { status })
}

exported! { runtime
    fn __cudaPushCallConfiguration(_call, grid: Dim3, block: Dim3, shared: usize, stream: usize) {
        let mut shapes = SHAPES.get();
        *shapes.list.get_mut(shapes.count).ok_or(Status::OUT_OF_MEMORY)? = Some((grid, block, shared, stream));
        shapes.count += 1;
        SHAPES.set(shapes);
        Ok(())
    }

    fn __cudaPopCallConfiguration(_call, grid: Out<Dim3>, block: Out<Dim3>, shared: Out<usize>, stream: Out<usize>) {
        let mut shapes = SHAPES.get();
        shapes.count = shapes.count.checked_sub(1).ok_or(Status::MISSING_CONFIGURATION)?;
        let shape = shapes.list[shapes.count].take().ok_or(Status::MISSING_CONFIGURATION)?;
        SHAPES.set(shapes);
        grid.set(shape.0)?;
        block.set(shape.1)?;
        shared.set(shape.2)?;
        stream.set(shape.3)
    }

    fn __cudaGetKernel(call, kernel: Out<usize>, function: usize) => kernel.set(call.runtime.kernel(function)?.handle());
    fn __cudaLaunchKernel / __cudaLaunchKernel_ptsz(call, kernel: usize, grid: Dim3, block: Dim3, arguments: In<usize>, shared: usize, stream: usize)
        => launch(call, kernel, &Request::plain(grid, block, shared), arguments, stream);
    fn cudaLaunchKernel / cudaLaunchKernel_ptsz(call, function: usize, grid: Dim3, block: Dim3, arguments: In<usize>, shared: usize, stream: usize)
        => launch(call, function, &Request::plain(grid, block, shared), arguments, stream);
    fn cudaLaunchCooperativeKernel / cudaLaunchCooperativeKernel_ptsz(call, function: usize, grid: Dim3, block: Dim3, arguments: In<usize>, shared: usize, stream: usize)
        => launch(call, function, &Request { cooperative: true, ..Request::plain(grid, block, shared) }, arguments, stream);

    /// Launches a cooperative kernel on several devices. There is one device, so only one launch is allowed.
    fn cudaLaunchCooperativeKernelMultiDevice(call, list: In<LaunchParams>, devices: u32, flags: u32) {
        if devices != 1 || flags > 3 {
            return Err(Status::INVALID_VALUE);
        }
        let params = list.get()?;
        let request = Request { cooperative: true, ..Request::plain(params.grid, params.block, params.shared) };
        launch(call, params.function, &request, In::at(params.arguments), params.stream)
    }

    fn cudaLaunchKernelExC / cudaLaunchKernelExC_ptsz(call, config: In<LaunchConfig>, function: usize, arguments: In<usize>) {
        let config = config.get()?;
        let (cooperative, cluster) = asked(In::at(config.attributes), config.count)?;
        let request = Request { cooperative, cluster, ..Request::plain(config.grid, config.block, config.shared) };
        launch(call, function, &request, arguments, config.stream)
    }
}
