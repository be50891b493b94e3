//! Launches of kernels, and of functions of the host.

use crate::boundary::{Call, exported};
use crate::kernels::{Arguments, Kernel, Request};
use crate::pointer::{In, Out};
use crate::status::{Outcome, Status};
use crate::types::{Dim3, LaunchAttribute, LaunchConfig};
use crate::work::{HostFunction, Work};
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    /// Shapes of launches that are written `kernel<<<…>>>(…)`, between the brackets and the arguments. Nothing here is dropped: a program may
    /// launch while its thread ends.
    static SHAPES: Cell<Shapes> = const { Cell::new(Shapes { list: [None; DEEPEST], count: 0 }) };
}

/// How many launches may stand in each other's arguments.
const DEEPEST: usize = 16;

/// Blocks, threads, shared memory and stream of a launch.
type Shape = (Dim3, Dim3, usize, usize);

#[derive(Clone, Copy)]
struct Shapes {
    list: [Option<Shape>; DEEPEST],
    count: usize,
}

/// What the attributes of a launch ask for.
pub(crate) fn cooperative(kernel: &Arc<Kernel>, call: &Call, attributes: In<LaunchAttribute>, count: u32) -> Outcome<bool> {
    const COOPERATIVE: u32 = 2;
    const CLUSTER: u32 = 4;
    let mut cooperative = false;
    for attribute in attributes.get_all(count as usize)? {
        match attribute.id {
            COOPERATIVE => cooperative = attribute.value[0] != 0,
            // Clusters of a kernel that says its own are known; others are not run.
            CLUSTER if attribute.value[..3].iter().any(|n| *n > 1) => {
                let resolved = kernel.resolved(call.runtime)?;
                if resolved.kernel.function().directive("reqnctapercluster").is_none() {
                    return Err(Status::INVALID_CLUSTER_SIZE);
                }
            }
            // Hints on priorities, caches and overlap change nothing that a program can see.
            _ => {}
        }
    }
    Ok(cooperative)
}

fn launch(
    call: &Call,
    function: usize,
    shape: (Dim3, Dim3, usize),
    arguments: In<usize>,
    stream: usize,
    cooperative: bool,
) -> Outcome {
    let kernel = call.runtime.kernel(function)?;
    let request = Request { grid: shape.0.list(), block: shape.1.list(), shared: shape.2, cooperative };
    call.runtime.launch(&kernel, &request, Arguments::Places(arguments), &*call.stream(stream)?)
}

exported! { runtime
    /// Keeps the shape of a launch until its arguments are there.
    fn __cudaPushCallConfiguration(_call, grid: Dim3, block: Dim3, shared: usize, stream: usize) {
        let mut shapes = SHAPES.get();
        *shapes.list.get_mut(shapes.count).ok_or(Status::OUT_OF_MEMORY)? = Some((grid, block, shared, stream));
        shapes.count += 1;
        SHAPES.set(shapes);
        Ok(())
    }

    /// The shape that was kept.
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

    /// The kernel that a function of the host stands for.
    fn __cudaGetKernel(call, kernel: Out<usize>, function: usize) {
        kernel.set(call.runtime.kernel(function)?.handle())
    }

    /// Launches a kernel by its handle.
    fn __cudaLaunchKernel / __cudaLaunchKernel_ptsz(call, kernel: usize, grid: Dim3, block: Dim3, arguments: In<usize>, shared: usize, stream: usize) {
        launch(call, kernel, (grid, block, shared), arguments, stream, false)
    }

    /// Launches a kernel.
    fn cudaLaunchKernel / cudaLaunchKernel_ptsz(call, function: usize, grid: Dim3, block: Dim3, arguments: In<usize>, shared: usize, stream: usize) {
        launch(call, function, (grid, block, shared), arguments, stream, false)
    }

    /// Launches a kernel whose blocks run at the same time.
    fn cudaLaunchCooperativeKernel / cudaLaunchCooperativeKernel_ptsz(call, function: usize, grid: Dim3, block: Dim3, arguments: In<usize>, shared: usize, stream: usize) {
        launch(call, function, (grid, block, shared), arguments, stream, true)
    }

    /// Launches a kernel with attributes.
    fn cudaLaunchKernelExC / cudaLaunchKernelExC_ptsz(call, config: In<LaunchConfig>, function: usize, arguments: In<usize>) {
        let config = config.get()?;
        let kernel = call.runtime.kernel(function)?;
        let cooperative = cooperative(&kernel, call, In::at(config.attributes), config.count)?;
        launch(call, function, (config.grid, config.block, config.shared), arguments, config.stream, cooperative)
    }

    /// Calls a function of the host in stream order.
    fn cudaLaunchHostFunc / cudaLaunchHostFunc_ptsz(call, stream: usize, function: usize, data: usize) {
        if function == 0 {
            return Err(Status::INVALID_VALUE);
        }
        call.runtime.submit(&*call.stream(stream)?, Work::Host(HostFunction { function, data, stream: None }))
    }

    /// The same, with a mode of waiting that makes no difference here.
    fn cudaLaunchHostFunc_v2 / cudaLaunchHostFunc_v2_ptsz(call, stream: usize, function: usize, data: usize, _mode: u32) {
        if function == 0 {
            return Err(Status::INVALID_VALUE);
        }
        call.runtime.submit(&*call.stream(stream)?, Work::Host(HostFunction { function, data, stream: None }))
    }

    /// Calls a function of the host in stream order with the stream and its status.
    fn cudaStreamAddCallback / cudaStreamAddCallback_ptsz(call, stream: usize, function: usize, data: usize, flags: u32) {
        if function == 0 || flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        call.runtime.submit(&*call.stream(stream)?, Work::Host(HostFunction { function, data, stream: Some(stream) }))
    }
}
