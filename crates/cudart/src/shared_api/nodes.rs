//! Graph nodes: conditional nodes, queries, and numbers of nodes and graphs.

use crate::boundary::{Call, exported};
use crate::handles::Handle;
use crate::objects::boxes::{CopyBox, Side};
use crate::objects::kernels::Kernel;
use crate::objects::memory::AllocationKind;
use crate::objects::work::{Condition, Graph, Work};
use crate::pointer::{In, Out, Text};
use crate::shared_api::graphs::{
    StructureFlavour, allocation_params, any_work, edges, fill_params, node_type, set_work, work_of,
};
use crate::status::{Outcome, Status};
use crate::types::{
    DriverKernelNodeParams, DriverMemcpy3D, DriverSide, Extent, GraphNodeParams, HostNodeParams, KernelNodeParams, Memcpy3DParms,
    PitchedPtr,
};
use broadloom_device::{Argument, Launch};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Creates a value for conditional nodes of a graph. Its handle is its address.
pub(crate) fn create_condition(call: &Call, handle: Out<u64>, graph: usize, default: u32, flags: u32) -> Outcome {
    handle.wanted()?;
    let graph = call.runtime.graphs.get(graph)?;
    if flags > 1 {
        return Err(Status::INVALID_VALUE);
    }
    let address = call.runtime.allocate(4, AllocationKind::Graph)?;
    let opened = call.runtime.device()?;
    call.runtime.judge(opened.backend().write(Default::default(), address, &default.to_le_bytes()))?;
    let condition = Condition { address, default: (flags == 1).then_some(default) };
    graph.conditions.lock().unwrap_or_else(PoisonError::into_inner).push(condition);
    handle.set(address)
}

/// Arguments of a launch, and pointers to them.
pub(crate) type ArgumentList = (Vec<Vec<u8>>, Vec<usize>);

/// Arguments of nodes returned to the program. They stay valid until the next query of the node.
pub(crate) static TOLD: Mutex<Option<HashMap<Handle, ArgumentList>>> = Mutex::new(None);

/// Returns a pointer to the list of pointers to a node's arguments.
pub(crate) fn places(node: Handle, arguments: &[Argument]) -> usize {
    let bytes: Vec<Vec<u8>> =
        arguments.iter().map(|argument| if let Argument::Bytes(bytes) = argument { bytes.clone() } else { vec![] }).collect();
    let list: Vec<usize> = bytes.iter().map(|bytes| bytes.as_ptr() as usize).collect();
    let start = list.as_ptr() as usize;
    TOLD.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(node, (bytes, list));
    start
}

/// Converts a launch to runtime parameters.
pub(crate) fn kernel_params(node: Handle, function: usize, launch: &Launch, arguments: &[Argument]) -> KernelNodeParams {
    let dim3 = |[x, y, z]: [u32; 3]| crate::types::Dim3 { x, y, z };
    let (grid, block) = (dim3(launch.grid), dim3(launch.block));
    KernelNodeParams { function, grid, block, shared: launch.shared_bytes, params: places(node, arguments), extra: 0 }
}

/// Returns the kernel of a node and its runtime parameters, with the function that the program knows.
pub(crate) fn launch_of(call: &Call, node: usize) -> Outcome<(Arc<Kernel>, KernelNodeParams)> {
    match work_of(call, node)? {
        Work::Launch { kernel, launch, arguments } => {
            let params = kernel_params(node, call.runtime.function_of(&kernel), &launch, &arguments);
            Ok((kernel, params))
        }
        _ => Err(Status::INVALID_VALUE),
    }
}

/// Converts a copy to runtime parameters. Both sides are described as pitched memory, even arrays.
pub(crate) fn copy_params(call: &Call, copy: &CopyBox) -> Memcpy3DParms {
    let on_device = |side: &Side| call.runtime.memory.find(side.address).is_some_and(|found| found.on_device());
    let side = |side: &Side| PitchedPtr {
        ptr: side.address as usize,
        pitch: if side.pitch == 0 { copy.width } else { side.pitch },
        xsize: copy.width,
        ysize: side.rows.max(copy.height),
    };
    let kind = u32::from(on_device(&copy.to)) + 2 * u32::from(on_device(&copy.from));
    let extent = Extent { width: copy.width, height: copy.height, depth: copy.depth };
    Memcpy3DParms { src_ptr: side(&copy.from), dst_ptr: side(&copy.to), extent, kind, ..Memcpy3DParms::default() }
}

/// Converts a copy to driver parameters.
pub(crate) fn driver_copy_params(call: &Call, copy: &CopyBox) -> DriverMemcpy3D {
    let parms = copy_params(call, copy);
    let side = |pointer: &PitchedPtr, on_device: bool| DriverSide {
        kind: if on_device { 2 } else { 1 },
        host: if on_device { 0 } else { pointer.ptr },
        device: if on_device { pointer.ptr as u64 } else { 0 },
        pitch: pointer.pitch,
        height: pointer.ysize,
        ..DriverSide::default()
    };
    DriverMemcpy3D {
        from: side(&parms.src_ptr, parms.kind & 2 != 0),
        to: side(&parms.dst_ptr, parms.kind & 1 != 0),
        width: copy.width,
        height: copy.height,
        depth: copy.depth,
    }
}

/// Returns the copy of a node.
pub(crate) fn copy_of(call: &Call, node: usize) -> Outcome<CopyBox> {
    match work_of(call, node)? {
        Work::Copy(copy) => Ok(copy),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// Writes the parameters of a node of any kind.
pub(crate) fn any_params(call: &Call, node: usize, place: Out<GraphNodeParams>, library: StructureFlavour) -> Outcome {
    place.wanted()?;
    let work = work_of(call, node)?;
    let at = place.address() + 16;
    place.set(GraphNodeParams::new(node_type(&work)))?;
    let event = |event| call.runtime.events.handle_of(event).ok_or(Status::INVALID_VALUE);
    match &work {
        Work::Launch { .. } => {
            let (kernel, params) = launch_of(call, node)?;
            if library == StructureFlavour::Driver {
                let params = KernelNodeParams { function: kernel.handle(), ..params };
                return Out::at(at).set(DriverKernelNodeParams { params, ..DriverKernelNodeParams::default() });
            }
            Out::at(at).set(params)
        }
        Work::Copy(copy) if library == StructureFlavour::Driver => Out::at(at + 16).set(driver_copy_params(call, copy)),
        Work::Copy(copy) => Out::at(at + 16).set(copy_params(call, copy)),
        Work::Fill(fill) => Out::at(at).set(fill_params(fill)),
        Work::Host(host) => Out::at(at).set(HostNodeParams { function: host.function, data: host.data }),
        Work::Child(_) => {
            let found = call.runtime.nodes.get(node)?;
            let child = found.graph.nodes()[found.index].child.clone().ok_or(Status::INVALID_VALUE)?;
            Out::at(at).set(call.runtime.handle_of_graph(&child))
        }
        Work::Wait(found) | Work::Record(found) => Out::at(at).set(event(found)?),
        Work::Allocated(address) => Out::at(at).set(allocation_params(call, *address)?),
        Work::Freed(address) => Out::at(at).set(*address),
        Work::Conditional(conditional) => {
            let shape = conditional.choice as u64 | (conditional.handles.len() as u64) << 32;
            Out::at(at).set([conditional.address, shape, conditional.handles.as_ptr() as u64, 0])
        }
        Work::Empty => Ok(()),
        // The list of operations belonged to the program.
        Work::Words(_) | Work::Decision(_) => Err(Status::NOT_SUPPORTED),
    }
}

/// Returns the index of a node in its graph.
pub(crate) fn place_of(call: &Call, node: usize) -> Outcome<usize> {
    Ok(call.runtime.nodes.get(node)?.index)
}

/// Returns the unique number of a handle.
pub(crate) fn number(handle: Handle) -> u32 {
    (handle >> 4) as u32
}

/// Renders a graph in the Graphviz language.
pub(crate) fn drawn(graph: &Graph) -> String {
    let mut text = "digraph dot {\n".to_owned();
    for node in graph.nodes().iter() {
        let Some(work) = &node.work else { continue };
        let label = match work {
            Work::Launch { kernel, launch, .. } => {
                format!("KERNEL {} {:?} {:?}", broadloom_device::demangle::shown(kernel.name()), launch.grid, launch.block)
            }
            Work::Copy(copy) => format!("MEMCPY {} x {} x {} bytes", copy.width, copy.height, copy.depth),
            Work::Fill(fill) => format!("MEMSET {:#x}", fill.value),
            Work::Host(_) => "HOST".to_owned(),
            Work::Child(_) => "CHILD GRAPH".to_owned(),
            Work::Empty => "EMPTY".to_owned(),
            Work::Wait(_) => "EVENT WAIT".to_owned(),
            Work::Record(_) => "EVENT RECORD".to_owned(),
            Work::Allocated(address) => format!("MEM ALLOC {address:#x}"),
            Work::Freed(address) => format!("MEM FREE {address:#x}"),
            Work::Words(_) => "BATCH MEM OP".to_owned(),
            Work::Conditional(_) | Work::Decision(_) => "CONDITIONAL".to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\"{:#x}\" [label={label:?}];", node.handle);
    }
    for (from, to) in edges(graph) {
        let _ = writeln!(text, "\"{from:#x}\" -> \"{to:#x}\";");
    }
    text + "}\n"
}

/// Writes a graph to a file.
pub(crate) fn draw(call: &Call, graph: usize, path: Text) -> Outcome {
    let graph = call.runtime.graphs.get(graph)?;
    std::fs::write(path.get()?, drawn(&graph)).map_err(|_| Status::OPERATING_SYSTEM)
}

/// Returns an attribute of a stream: 64 bytes.
pub(crate) fn stream_attribute(call: &Call, stream: usize, attribute: u32, value: Out<[u64; 8]>) -> Outcome {
    let stream = call.stream(stream)?;
    match attribute {
        // Cache window, synchronisation policy, memory synchronisation domain.
        1 | 3 | 9 | 10 => value.set([0; 8]),
        8 => value.set([u64::from(stream.priority as u32), 0, 0, 0, 0, 0, 0, 0]),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// Changes a node of any kind from the driver's parameters.
pub(crate) fn set_any(call: &Call, node: usize, params: In<GraphNodeParams>) -> Outcome {
    let work = any_work(call, &params.get()?, Out::at(params.address()), StructureFlavour::Driver)?;
    set_work(call, node, work)
}

exported! { runtime
    /// Creates a value for conditional nodes. There is only one context.
    fn cudaGraphConditionalHandleCreate_v2 | cuGraphConditionalHandleCreate(call, handle: Out<u64>, graph: usize, _context: usize, default: u32, flags: u32)
        => create_condition(call, handle, graph, default, flags);
    fn cudaGraphNodeGetLocalId | cuGraphNodeGetLocalId(call, node: usize, id: Out<u32>) => id.set(place_of(call, node)? as u32);
    fn cudaGraphNodeGetToolsId | cuGraphNodeGetToolsId(call, node: usize, id: Out<u64>)
        => call.runtime.nodes.get(node)?, id.set(u64::from(number(node)));
    fn cudaGraphGetId | cuGraphGetId(call, graph: usize, id: Out<u32>) => call.runtime.graphs.get(graph)?, id.set(number(graph));
    fn cudaGraphExecGetId | cuGraphExecGetId(call, exec: usize, id: Out<u32>) => call.runtime.execs.get(exec)?, id.set(number(exec));

    fn cudaGraphNodeGetContainingGraph | cuGraphNodeGetContainingGraph(call, node: usize, graph: Out<usize>) {
        let found = call.runtime.nodes.get(node)?;
        graph.set(call.runtime.handle_of_graph(&found.graph))
    }

    fn cudaGraphDebugDotPrint | cuGraphDebugDotPrint(call, graph: usize, path: Text, _flags: u32) => draw(call, graph, path);
    /// Returns an attribute of a stream. Only the priority is stored.
    fn cudaStreamGetAttribute / cudaStreamGetAttribute_ptsz | cuStreamGetAttribute / cuStreamGetAttribute_ptsz(call, stream: usize, attribute: u32, value: Out<[u64; 8]>)
        => stream_attribute(call, stream, attribute, value);
}
