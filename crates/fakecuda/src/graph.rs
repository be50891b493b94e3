//! Graphs: chains of steps.

use crate::code::{self, Code, Outcome};
use crate::device::answer;
use crate::faults::violation;
use crate::launch::{params, prepared};
use crate::state::{Object, call, current, device, enter, giving_back, judged, object, remove, state, stream};
use broadloom_device::{Launch, Step};
use std::ffi::{c_int, c_uint};

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
pub(crate) struct KernelNode {
    function: usize,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    params: usize,
    extra: *const usize,
    kernel: usize,
    context: usize,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
pub(crate) struct FillNode {
    address: u64,
    pitch: usize,
    value: c_uint,
    element_bytes: c_uint,
    width: usize,
    height: usize,
}

/// One side of a `CUDA_MEMCPY3D`.
#[repr(C)]
pub(crate) struct CopySide {
    offsets: [usize; 4],
    kind: c_uint,
    host: usize,
    device: u64,
    rest: [usize; 4],
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
pub(crate) struct CopyNode {
    from: CopySide,
    to: CopySide,
    width: usize,
    height: usize,
    depth: usize,
}

pub(crate) unsafe fn create(place: *mut usize, _flags: c_uint) -> Code {
    call("cuGraphCreate", || {
        let gpu = current()?;
        // SAFETY: the caller's output pointer.
        unsafe { answer(place, enter(gpu, Object::Graph { steps: vec![], nodes: vec![] })) }
    })
}

pub(crate) fn destroy(handle: usize) -> Code {
    giving_back("cuGraphDestroy", || remove(handle, "graph"))
}

/// Adds a step, which must depend on the previous one.
///
/// # Safety
///
/// The list has `count` nodes.
unsafe fn add(place: *mut usize, graph: usize, after: *const usize, count: usize, step: Step) -> Outcome {
    let (gpu, _) = object(graph, "graph")?;
    let mut state = state();
    let node = state.handle();
    let Some(Object::Graph { steps, nodes }) = state.gpus[gpu].objects.get_mut(&graph) else { return Err(code::INVALID_HANDLE) };
    // SAFETY: guaranteed by the caller.
    let after: Vec<usize> = (0..count).map(|index| unsafe { *after.add(index) }).collect();
    if after != nodes.last().copied().into_iter().collect::<Vec<_>>() {
        drop(state);
        violation("a node of a graph is not behind the one before".to_owned());
        return Err(code::INVALID_VALUE);
    }
    steps.push(step);
    nodes.push(node);
    // SAFETY: the caller's output pointer.
    unsafe { answer(place, node) }
}

pub(crate) unsafe fn add_kernel(
    place: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    node: *const KernelNode,
) -> Code {
    call("cuGraphAddKernelNode", || {
        // SAFETY: the caller's node.
        let node = unsafe { node.as_ref() }.ok_or(code::INVALID_VALUE)?;
        // SAFETY: the caller's list.
        let params = unsafe { params(node.extra) }?;
        let launch = Launch::new(node.grid, node.block).shared(node.shared_bytes);
        let Object::Function { loaded, kernel, .. } = prepared(node.function, &launch, &params)? else {
            return Err(code::INVALID_HANDLE);
        };
        // SAFETY: the caller's lists.
        unsafe { add(place, graph, after, count, Step::Launch { module: loaded, kernel, launch, params }) }
    })
}

pub(crate) unsafe fn add_copy(place: *mut usize, graph: usize, after: *const usize, count: usize, node: *const CopyNode) -> Code {
    call("cuGraphAddMemcpyNode", || {
        // SAFETY: the caller's node.
        let node = unsafe { node.as_ref() }.ok_or(code::INVALID_VALUE)?;
        if (node.from.kind, node.to.kind, node.height, node.depth) != (2, 2, 1, 1) {
            return Err(code::INVALID_VALUE);
        }
        let step = Step::Copy { to: node.to.device, from: node.from.device, bytes: node.width as u64 };
        // SAFETY: the caller's lists.
        unsafe { add(place, graph, after, count, step) }
    })
}

pub(crate) unsafe fn add_fill(place: *mut usize, graph: usize, after: *const usize, count: usize, node: *const FillNode) -> Code {
    call("cuGraphAddMemsetNode", || {
        // SAFETY: the caller's node.
        let node = unsafe { node.as_ref() }.ok_or(code::INVALID_VALUE)?;
        if (node.element_bytes, node.height) != (1, 1) {
            return Err(code::INVALID_VALUE);
        }
        let step = Step::Fill { address: node.address, byte: node.value as u8, bytes: node.width as u64 };
        // SAFETY: the caller's lists.
        unsafe { add(place, graph, after, count, step) }
    })
}

pub(crate) unsafe fn set_attribute(node: usize, attribute: c_int, value: *const c_int) -> Code {
    call("cuGraphKernelNodeSetAttribute", || {
        let gpu = current()?;
        if value.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's value, of the size that every value has.
        let value = unsafe { *value.cast::<[c_int; 3]>() };
        let mut state = state();
        for object in state.gpus[gpu].objects.values_mut() {
            let Object::Graph { steps, nodes } = object else { continue };
            let Some(index) = nodes.iter().position(|other| *other == node) else { continue };
            let Step::Launch { launch, .. } = &mut steps[index] else { return Err(code::INVALID_VALUE) };
            match attribute {
                2 => launch.cooperative = value[0] != 0,
                4 => launch.cluster = Some(value.map(|blocks| blocks as u32)),
                _ => return Err(code::INVALID_VALUE),
            }
            return Ok(());
        }
        Err(code::INVALID_HANDLE)
    })
}

pub(crate) unsafe fn instantiate(place: *mut usize, graph: usize) -> Code {
    call("cuGraphInstantiate", || {
        let (gpu, object) = object(graph, "graph")?;
        let Object::Graph { steps, .. } = object else { return Err(code::INVALID_HANDLE) };
        let sequence = judged(gpu, device(gpu)?.backend().record(steps))?;
        // SAFETY: the caller's output pointer.
        unsafe { answer(place, enter(gpu, Object::Exec(sequence))) }
    })
}

pub(crate) fn destroy_exec(handle: usize) -> Code {
    giving_back("cuGraphExecDestroy", || remove(handle, "executable graph"))
}

pub(crate) fn launch(handle: usize, at: usize) -> Code {
    call("cuGraphLaunch", || {
        let (gpu, object) = object(handle, "executable graph")?;
        let Object::Exec(sequence) = object else { return Err(code::INVALID_HANDLE) };
        let (_, stream) = stream(at)?;
        let device = device(gpu)?;
        judged(gpu, sequence.replay(device.backend().as_ref(), stream))
    })
}
