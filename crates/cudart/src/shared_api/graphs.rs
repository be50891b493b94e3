//! Graphs.

use crate::boundary::{Call, exported};
use crate::kernels::{Arguments, Request};
use crate::location::check_device;
use crate::objects::boxes::{CopyBox, Direction, FillBox, Side};
use crate::objects::memory::AllocationKind;
use crate::objects::work::{Conditional, Graph, HostFunction, Work};
use crate::pointer::{In, Out};
use crate::shared_api::copies::{driver_box, runtime_box};
use crate::shared_api::words::batch;
use crate::status::{Outcome, Status};
use crate::types::{
    DriverKernelNodeParams, DriverMemcpy3D, GraphNodeParams, HostNodeParams, KernelNodeParams, MemAllocNodeParams, Memcpy3DParms,
    MemsetParams,
};
use std::sync::Arc;

/// Adds a node with its dependencies.
pub(crate) fn add(
    call: &Call,
    node: Out<usize>,
    graph: usize,
    after: In<usize>,
    count: usize,
    work: Work,
) -> Outcome<Arc<Graph>> {
    node.wanted()?;
    let graph = call.runtime.graphs.get(graph)?;
    let after = call.runtime.places(&graph, &after.get_all(count)?)?;
    let (_, handle) = call.runtime.add_node(&graph, work, after);
    node.set(handle)?;
    Ok(graph)
}

/// Builds a launch from the parameters of a node.
pub(crate) fn kernel_work(call: &Call, params: &KernelNodeParams) -> Outcome<Work> {
    let kernel = call.runtime.kernel(params.function)?;
    let request = Request {
        grid: params.grid.list(),
        block: params.block.list(),
        shared: params.shared as usize,
        cooperative: false,
        cluster: None,
    };
    if params.params == 0 && params.extra != 0 {
        return call.runtime.prepare(&kernel, &request, Arguments::from_list(params.extra)?);
    }
    call.runtime.prepare(&kernel, &request, Arguments::Places(In::at(params.params)))
}

/// Builds the launch of a function or of a library kernel.
pub(crate) fn driver_launch(call: &Call, params: In<DriverKernelNodeParams>) -> Outcome<Work> {
    let DriverKernelNodeParams { mut params, kernel, .. } = params.get()?;
    if params.function == 0 {
        params.function = kernel;
    }
    kernel_work(call, &params).map_err(Status::of_driver)
}

/// Builds a fill from the parameters of a node.
pub(crate) fn fill_work(call: &Call, params: &MemsetParams) -> Outcome<Work> {
    if !matches!(params.size, 1 | 2 | 4) {
        return Err(Status::INVALID_VALUE);
    }
    let fill = FillBox {
        to: Side { address: params.dst as u64, pitch: params.pitch, rows: params.height },
        value: params.value,
        size: params.size as usize,
        width: params.width,
        height: params.height,
        depth: 1,
    };
    fill.check(call.runtime)?;
    Ok(Work::Fill(fill))
}

/// Converts a fill to the parameters of a node.
pub(crate) fn fill_params(fill: &FillBox) -> MemsetParams {
    MemsetParams {
        dst: fill.to.address as usize,
        pitch: fill.to.pitch,
        value: fill.value,
        size: fill.size as u32,
        width: fill.width,
        height: fill.height,
    }
}

/// Returns the parameters of a node that allocates memory.
pub(crate) fn allocation_params(call: &Call, address: u64) -> Outcome<MemAllocNodeParams> {
    let bytes = call.runtime.memory.find(address).ok_or(Status::INVALID_VALUE)?.bytes as usize;
    Ok(MemAllocNodeParams { pool: [0; 11], access: 0, access_count: 0, bytes, address: address as usize })
}

/// Allocates the memory of a node and writes its address to the parameters.
fn allocated(call: &Call, params: Out<MemAllocNodeParams>) -> Outcome<Work> {
    let mut given = params.get()?;
    let address = call.runtime.allocate(given.bytes, AllocationKind::Graph)?;
    given.address = address as usize;
    params.set(given)?;
    Ok(Work::Allocated(address))
}

/// Builds a copy after checking it.
pub(crate) fn copy_work(call: &Call, copy: CopyBox, direction: Direction) -> Outcome<Work> {
    copy.check(call.runtime, direction)?;
    Ok(Work::Copy(copy))
}

/// Builds a copy from the parameters of a driver node.
pub(crate) fn driver_copy(call: &Call, params: In<DriverMemcpy3D>) -> Outcome<Work> {
    copy_work(call, driver_box(call, &params.get()?)?, Direction::Default)
}

/// Builds a copy from the parameters of a runtime node.
pub(crate) fn box_work(call: &Call, parms: &Memcpy3DParms) -> Outcome<Work> {
    let (copy, direction) = runtime_box(call, parms)?;
    copy_work(call, copy, direction)
}

/// Builds the call of a host function.
pub(crate) fn host_work(params: &HostNodeParams) -> Outcome<Work> {
    if params.function == 0 {
        return Err(Status::INVALID_VALUE);
    }
    Ok(Work::Host(HostFunction { function: params.function, data: params.data, stream: None }))
}

/// Replaces the work of a node. The kind of work must stay the same.
pub(crate) fn set_work(call: &Call, node: usize, work: Work) -> Outcome {
    let node = call.runtime.nodes.get(node)?;
    let mut nodes = node.graph.nodes();
    let place = nodes[node.index].work.as_mut().ok_or(Status::INVALID_VALUE)?;
    if std::mem::discriminant(place) != std::mem::discriminant(&work) {
        return Err(Status::INVALID_VALUE);
    }
    *place = work.with_attributes_of(place);
    Ok(())
}

/// Returns the work of a node.
pub(crate) fn work_of(call: &Call, node: usize) -> Outcome<Work> {
    let node = call.runtime.nodes.get(node)?;
    node.graph.nodes()[node.index].work.clone().ok_or(Status::INVALID_VALUE)
}

/// Replaces the work of a node in an instantiated graph.
pub(crate) fn set_exec_work(call: &Call, exec: usize, node: usize, work: Work) -> Outcome {
    call.runtime.execs.get(exec)?.set_work(node, None, work)
}

/// Writes as many handles as fit. With a null `place`, returns their number.
pub(crate) fn answer(handles: &[usize], place: Out<usize>, count: Out<usize>) -> Outcome {
    if place.is_null() {
        return count.set(handles.len());
    }
    let room = count.get()?;
    let mut filled = handles[..handles.len().min(room)].to_vec();
    filled.resize(room, 0);
    place.set_all(&filled)?;
    count.set(handles.len().min(room))
}

/// Returns the number of a node's type (`cudaGraphNodeType`).
pub(crate) fn node_type(work: &Work) -> u32 {
    match work {
        Work::Launch { .. } => 0,
        Work::Copy(_) => 1,
        Work::Fill(_) => 2,
        Work::Host(_) => 3,
        Work::Child(_) => 4,
        Work::Empty => 5,
        Work::Wait(_) => 6,
        Work::Record(_) => 7,
        Work::Allocated(_) => 10,
        Work::Freed(_) => 11,
        Work::Words(_) => 12,
        Work::Conditional(_) | Work::Decision(_) => 13,
    }
}

/// Returns the edges of a graph as pairs of nodes.
pub(crate) fn edges(graph: &Graph) -> Vec<(usize, usize)> {
    let nodes = graph.nodes();
    let live = nodes.iter().filter(|node| node.work.is_some());
    live.flat_map(|node| node.after.iter().map(|before| (nodes[*before].handle, node.handle)).collect::<Vec<_>>()).collect()
}

/// Adds or removes dependencies.
pub(crate) fn depend(call: &Call, graph: usize, from: &[usize], to: &[usize], there: bool) -> Outcome {
    let graph = call.runtime.graphs.get(graph)?;
    let (from, to) = (call.runtime.places(&graph, from)?, call.runtime.places(&graph, to)?);
    let before = graph.nodes().clone();
    for (from, to) in from.into_iter().zip(to) {
        let mut nodes = graph.nodes();
        let known = nodes[to].after.contains(&from);
        match (there, known) {
            (true, false) => nodes[to].after.push(from),
            (false, true) => nodes[to].after.retain(|node| *node != from),
            (true, true) | (false, false) => {
                *nodes = before;
                return Err(Status::INVALID_VALUE);
            }
        }
    }
    // A cyclic graph cannot be launched.
    if graph.ordered().is_err() {
        *graph.nodes() = before;
        return Err(Status::INVALID_VALUE);
    }
    Ok(())
}

pub(crate) fn neighbours(call: &Call, node: usize, before: bool) -> Outcome<Vec<usize>> {
    let found = call.runtime.nodes.get(node)?;
    let pairs = edges(&found.graph).into_iter();
    Ok(if before {
        pairs.filter(|(_, to)| *to == node).map(|(from, _)| from).collect()
    } else {
        pairs.filter(|(from, _)| *from == node).map(|(_, to)| to).collect()
    })
}

/// Writes as many edges as fit. The edge data is always zero.
pub(crate) fn answer_edges(
    call: &Call,
    graph: usize,
    from: Out<usize>,
    to: Out<usize>,
    data: Out<u64>,
    count: Out<usize>,
) -> Outcome {
    let pairs = edges(&*call.runtime.graphs.get(graph)?);
    let (before, behind): (Vec<usize>, Vec<usize>) = pairs.into_iter().unzip();
    if from.is_null() || to.is_null() {
        return count.set(before.len());
    }
    let room = count.get()?;
    answer(&before, from, count)?;
    count.set(room)?;
    answer(&behind, to, count)?;
    if data.is_null() { Ok(()) } else { data.set_all(&vec![0; before.len().min(room)]) }
}

/// Writes as many neighbours of a node as fit.
pub(crate) fn answer_neighbours(
    call: &Call,
    node: usize,
    before: bool,
    nodes: Out<usize>,
    data: Out<u64>,
    count: Out<usize>,
) -> Outcome {
    let found = neighbours(call, node, before)?;
    answer(&found, nodes, count)?;
    if data.is_null() || nodes.is_null() { Ok(()) } else { data.set_all(&vec![0; count.get()?]) }
}

/// Library whose structures describe kernels and copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StructureFlavour {
    Runtime,
    Driver,
}

/// Builds the work of a node of any kind. Allocated memory and the bodies of a conditional node are written
/// back to the parameters.
pub(crate) fn any_work(
    call: &Call,
    params: &GraphNodeParams,
    place: Out<GraphNodeParams>,
    library: StructureFlavour,
) -> Outcome<Work> {
    const WORDS: usize = 16;
    let at = place.address() + WORDS;
    let event = || call.runtime.events.get(params.words[0] as usize);
    Ok(match params.kind {
        0 if library == StructureFlavour::Driver => driver_launch(call, In::at(at))?,
        0 => kernel_work(call, &In::at(at).get()?)?,
        // The copy comes after flags, padding and a context.
        1 if library == StructureFlavour::Driver => driver_copy(call, In::at(at + 16))?,
        1 => box_work(call, &In::at(at + 16).get()?)?,
        2 => fill_work(call, &In::at(at).get()?)?,
        3 => host_work(&In::at(at).get()?)?,
        4 => child_work(&*call.runtime.graphs.get(params.words[0] as usize)?)?,
        5 => Work::Empty,
        6 => Work::Wait(event()?),
        7 => Work::Record(event()?),
        10 => allocated(call, Out::at(at))?,
        11 => Work::Freed(call.runtime.memory.find(params.words[0]).ok_or(Status::INVALID_VALUE)?.start),
        // Context, count and list are consecutive.
        12 if library == StructureFlavour::Driver => {
            let [_, count, list, _]: [u64; 4] = In::at(at).get()?;
            batch(call, count as u32, list as usize)?
        }
        13 => {
            let [handle, kind, ..] = params.words;
            let conditional = Conditional::new(call.runtime, condition(call, handle)?, kind as u32, (kind >> 32) as u32)?;
            Out::at(at + 16).set(conditional.handles.as_ptr() as usize)?;
            Work::Conditional(conditional)
        }
        // Semaphores of other APIs.
        8 | 9 => return Err(Status::NOT_SUPPORTED),
        _ => return Err(Status::INVALID_VALUE),
    })
}

/// Returns the work of a child graph.
pub(crate) fn child_work(graph: &Graph) -> Outcome<Work> {
    if graph.has_conditions() { Err(Status::NOT_SUPPORTED) } else { graph.work().map(Work::Child) }
}

/// Checks the handle of a condition, which is the address of its value.
pub(crate) fn condition(call: &Call, handle: u64) -> Outcome<u64> {
    let of = |graph: &Arc<Graph>| {
        let conditions = graph.conditions.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        conditions.iter().any(|condition| condition.address == handle)
    };
    if call.runtime.graphs.all().iter().any(of) { Ok(handle) } else { Err(Status::INVALID_VALUE) }
}

/// Updates an instantiated graph from a graph of the same structure. Returns the result and the node that did
/// not match.
pub(crate) fn update(call: &Call, exec: usize, graph: usize) -> Outcome<(u32, usize)> {
    let outcome = call.runtime.execs.get(exec)?.update(&*call.runtime.graphs.get(graph)?)?;
    Ok(match outcome {
        Ok(()) => (0, 0),
        Err(0) => (2, 0),
        Err(node) => (3, node),
    })
}

/// Adds a node of any kind.
pub(crate) fn add_any(
    call: &Call,
    node: Out<usize>,
    graph: usize,
    after: In<usize>,
    count: usize,
    params: Out<GraphNodeParams>,
    library: StructureFlavour,
) -> Outcome {
    let given = params.get()?;
    let work = any_work(call, &given, params, library)?;
    let child = match &work {
        Work::Child(_) => Some(call.runtime.clone_graph(&*call.runtime.graphs.get(given.words[0] as usize)?)?),
        _ => None,
    };
    let graph = add(call, node, graph, after, count, work)?;
    if let Some(child) = child
        && let Some(last) = graph.nodes().last_mut()
    {
        last.child = Some(child);
    }
    Ok(())
}

/// Defines the functions of a kind of graph node from its parameters and its work: `add` adds a node, `set` changes one, and
/// `exec` changes it in an instantiated graph. After the names, `;` precedes a last parameter without effect.
macro_rules! node_functions {
    ($through:ident $($params:tt => $work:expr; $($verb:ident $names:tt)+;)*) => {
        $($($crate::shared_api::graphs::node_functions!(@$verb $through $params $work; $names);)+)*
    };
    (@add $through:ident ($call:ident $(, $arg:ident : $ty:ty)*) $work:expr; ($($name:ident)|+ $(; $last:ident)?)) => {
        $crate::boundary::exported! { $through
            fn $($name)|+($call, node: Out<usize>, graph: usize, after: In<usize>, count: usize $(, $arg: $ty)* $(, $last: usize)?) {
                let work = $work;
                $crate::shared_api::graphs::add($call, node, graph, after, count, work).map(drop)
            }
        }
    };
    (@set $through:ident ($call:ident $(, $arg:ident : $ty:ty)*) $work:expr; ($($name:ident)|+)) => {
        $crate::boundary::exported! { $through
            fn $($name)|+($call, node: usize $(, $arg: $ty)*) => $crate::shared_api::graphs::set_work($call, node, $work);
        }
    };
    (@exec $through:ident ($call:ident $(, $arg:ident : $ty:ty)*) $work:expr; ($($name:ident)|+ $(; $last:ident)?)) => {
        $crate::boundary::exported! { $through
            fn $($name)|+($call, exec: usize, node: usize $(, $arg: $ty)* $(, $last: usize)?) => $crate::shared_api::graphs::set_exec_work($call, exec, node, $work);
        }
    };
}
pub(crate) use node_functions;

node_functions! { runtime
    (call, params: In<HostNodeParams>) => host_work(&params.get()?)?;
    add(cudaGraphAddHostNode | cuGraphAddHostNode)
    set(cudaGraphHostNodeSetParams | cuGraphHostNodeSetParams)
    exec(cudaGraphExecHostNodeSetParams | cuGraphExecHostNodeSetParams);

    (call) => Work::Empty;
    add(cudaGraphAddEmptyNode | cuGraphAddEmptyNode);

    (call, event: usize) => Work::Record(call.runtime.events.get(event)?);
    add(cudaGraphAddEventRecordNode | cuGraphAddEventRecordNode)
    set(cudaGraphEventRecordNodeSetEvent | cuGraphEventRecordNodeSetEvent)
    exec(cudaGraphExecEventRecordNodeSetEvent | cuGraphExecEventRecordNodeSetEvent);

    (call, event: usize) => Work::Wait(call.runtime.events.get(event)?);
    add(cudaGraphAddEventWaitNode | cuGraphAddEventWaitNode)
    set(cudaGraphEventWaitNodeSetEvent | cuGraphEventWaitNodeSetEvent)
    exec(cudaGraphExecEventWaitNodeSetEvent | cuGraphExecEventWaitNodeSetEvent);

    (call, params: Out<MemAllocNodeParams>) => allocated(call, params)?;
    add(cudaGraphAddMemAllocNode | cuGraphAddMemAllocNode);

    // The next launch reuses the memory.
    (call, address: u64) => call.runtime.memory.find(address).map(|_| Work::Freed(address)).ok_or(Status::INVALID_VALUE)?;
    add(cudaGraphAddMemFreeNode | cuGraphAddMemFreeNode);

    (call, params: In<MemsetParams>) => fill_work(call, &params.get()?)?;
    set(cudaGraphMemsetNodeSetParams | cuGraphMemsetNodeSetParams);

    (call, child: usize) => child_work(&*call.runtime.graphs.get(child)?)?;
    exec(cudaGraphExecChildGraphNodeSetParams | cuGraphExecChildGraphNodeSetParams);
}

exported! { runtime
    fn cudaGraphCreate | cuGraphCreate(call, graph: Out<usize>, flags: u32) {
        graph.wanted()?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        graph.set(call.runtime.graphs.insert(Graph::default()))
    }

    fn cudaGraphDestroy | cuGraphDestroy(call, graph: usize) => call.runtime.destroy_graph(graph);

    fn cudaGraphClone | cuGraphClone(call, copy: Out<usize>, graph: usize) {
        copy.wanted()?;
        let cloned = call.runtime.clone_graph(&*call.runtime.graphs.get(graph)?)?;
        let handle = call.runtime.graphs.reserve();
        call.runtime.graphs.put(handle, cloned);
        copy.set(handle)
    }

    fn cudaGraphNodeFindInClone | cuGraphNodeFindInClone(call, node: Out<usize>, original: usize, clone: usize)
        => node.set(call.runtime.node_in_clone(original, &*call.runtime.graphs.get(clone)?)?);

    fn cudaGraphAddChildGraphNode | cuGraphAddChildGraphNode(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, child: usize) {
        let child = call.runtime.clone_graph(&*call.runtime.graphs.get(child)?)?;
        let graph = add(call, node, graph, after, count, child_work(&child)?)?;
        if let Some(last) = graph.nodes().last_mut() {
            last.child = Some(child);
        }
        Ok(())
    }

    fn cudaGraphChildGraphNodeGetGraph | cuGraphChildGraphNodeGetGraph(call, node: usize, graph: Out<usize>) {
        let node = call.runtime.nodes.get(node)?;
        let child = node.graph.nodes()[node.index].child.clone().ok_or(Status::INVALID_VALUE)?;
        let handle = call.runtime.graphs.reserve();
        call.runtime.graphs.put(handle, child);
        graph.set(handle)
    }

    fn cudaGraphMemAllocNodeGetParams | cuGraphMemAllocNodeGetParams(call, node: usize, params: Out<MemAllocNodeParams>) {
        let Work::Allocated(address) = work_of(call, node)? else { return Err(Status::INVALID_VALUE) };
        params.set(allocation_params(call, address)?)
    }

    fn cudaGraphMemFreeNodeGetParams | cuGraphMemFreeNodeGetParams(call, node: usize, address: Out<u64>) {
        let Work::Freed(freed) = work_of(call, node)? else { return Err(Status::INVALID_VALUE) };
        address.set(freed)
    }

    fn cudaGraphDestroyNode | cuGraphDestroyNode(call, node: usize) {
        let found = call.runtime.nodes.remove(node)?;
        found.graph.nodes()[found.index].work = None;
        Ok(())
    }

    fn cudaGraphNodeGetType | cuGraphNodeGetType(call, node: usize, kind: Out<u32>) => kind.set(node_type(&work_of(call, node)?));

    fn cudaGraphGetNodes | cuGraphGetNodes(call, graph: usize, nodes: Out<usize>, count: Out<usize>) {
        let graph = call.runtime.graphs.get(graph)?;
        let handles: Vec<usize> = graph.nodes().iter().filter(|node| node.work.is_some()).map(|node| node.handle).collect();
        answer(&handles, nodes, count)
    }

    fn cudaGraphGetRootNodes | cuGraphGetRootNodes(call, graph: usize, nodes: Out<usize>, count: Out<usize>) {
        let graph = call.runtime.graphs.get(graph)?;
        let list = graph.nodes();
        let root = |node: &&crate::objects::work::Node| node.work.is_some() && node.after.iter().all(|before| list[*before].work.is_none());
        let handles: Vec<usize> = list.iter().filter(root).map(|node| node.handle).collect();
        answer(&handles, nodes, count)
    }

    /// Returns the edges of a graph, with edge data.
    fn cudaGraphGetEdges_v2 | cuGraphGetEdges_v2(call, graph: usize, from: Out<usize>, to: Out<usize>, data: Out<u64>, count: Out<usize>)
        => answer_edges(call, graph, from, to, data, count);
    /// Returns the nodes that a node depends on, with edge data.
    fn cudaGraphNodeGetDependencies_v2 | cuGraphNodeGetDependencies_v2(call, node: usize, nodes: Out<usize>, data: Out<u64>, count: Out<usize>)
        => answer_neighbours(call, node, true, nodes, data, count);
    /// Returns the nodes that depend on a node, with edge data.
    fn cudaGraphNodeGetDependentNodes_v2 | cuGraphNodeGetDependentNodes_v2(call, node: usize, nodes: Out<usize>, data: Out<u64>, count: Out<usize>)
        => answer_neighbours(call, node, false, nodes, data, count);

    fn cudaGraphEventRecordNodeGetEvent | cuGraphEventRecordNodeGetEvent(call, node: usize, event: Out<usize>) {
        let Work::Record(found) = work_of(call, node)? else { return Err(Status::INVALID_VALUE) };
        event.set(call.runtime.events.handle_of(&found).ok_or(Status::INVALID_VALUE)?)
    }

    fn cudaGraphEventWaitNodeGetEvent | cuGraphEventWaitNodeGetEvent(call, node: usize, event: Out<usize>) {
        let Work::Wait(found) = work_of(call, node)? else { return Err(Status::INVALID_VALUE) };
        event.set(call.runtime.events.handle_of(&found).ok_or(Status::INVALID_VALUE)?)
    }

    /// Adds dependencies, with edge data.
    fn cudaGraphAddDependencies_v2 | cuGraphAddDependencies_v2(call, graph: usize, from: In<usize>, to: In<usize>, _data: usize, count: usize)
        => depend(call, graph, &from.get_all(count)?, &to.get_all(count)?, true);
    /// Removes dependencies, with edge data.
    fn cudaGraphRemoveDependencies_v2 | cuGraphRemoveDependencies_v2(call, graph: usize, from: In<usize>, to: In<usize>, _data: usize, count: usize)
        => depend(call, graph, &from.get_all(count)?, &to.get_all(count)?, false);
    fn cudaGraphInstantiateWithFlags | cuGraphInstantiateWithFlags(call, exec: Out<usize>, graph: usize, flags: u64)
        => exec.set_by(|| call.runtime.instantiate(&*call.runtime.graphs.get(graph)?, flags));

    /// Instantiates a graph with parameters: flags, upload stream, and outputs for an invalid node and the
    /// result.
    fn cudaGraphInstantiateWithParams / cudaGraphInstantiateWithParams_ptsz | cuGraphInstantiateWithParams / cuGraphInstantiateWithParams_ptsz(call, exec: Out<usize>, graph: usize, params: Out<[u64; 4]>) {
        exec.wanted()?;
        let mut given = params.get()?;
        let handle = call.runtime.instantiate(&*call.runtime.graphs.get(graph)?, given[0])?;
        (given[2], given[3]) = (0, 0);
        params.set(given)?;
        exec.set(handle)
    }

    fn cudaGraphExecGetFlags | cuGraphExecGetFlags(call, exec: usize, flags: Out<u64>)
        => flags.set(call.runtime.execs.get(exec)?.flags);
    fn cudaGraphExecDestroy | cuGraphExecDestroy(call, exec: usize) => call.runtime.execs.remove(exec).map(drop);

    fn cudaGraphLaunch / cudaGraphLaunch_ptsz | cuGraphLaunch / cuGraphLaunch_ptsz(call, exec: usize, stream: usize) {
        let exec = call.runtime.execs.get(exec)?;
        call.runtime.launch_graph(&exec, &*call.stream(stream)?)
    }

    /// Does nothing: an instantiated graph needs no upload.
    fn cudaGraphUpload / cudaGraphUpload_ptsz | cuGraphUpload / cuGraphUpload_ptsz(call, exec: usize, stream: usize)
        => call.runtime.execs.get(exec)?, call.stream(stream).map(drop);

    fn cudaGraphMemsetNodeGetParams | cuGraphMemsetNodeGetParams(call, node: usize, params: Out<MemsetParams>) {
        let Work::Fill(fill) = work_of(call, node)? else { return Err(Status::INVALID_VALUE) };
        params.set(fill_params(&fill))
    }

    fn cudaGraphHostNodeGetParams | cuGraphHostNodeGetParams(call, node: usize, params: Out<HostNodeParams>) {
        let Work::Host(host) = work_of(call, node)? else { return Err(Status::INVALID_VALUE) };
        params.set(HostNodeParams { function: host.function, data: host.data })
    }

    fn cudaGraphNodeGetEnabled | cuGraphNodeGetEnabled(call, exec: usize, node: usize, enabled: Out<u32>)
        => enabled.set(u32::from(call.runtime.execs.get(exec)?.enabled(node)?));

    fn cudaGraphNodeSetEnabled | cuGraphNodeSetEnabled(call, exec: usize, node: usize, enabled: u32) {
        let exec = call.runtime.execs.get(exec)?;
        match exec.work_of(node)? {
            Work::Launch { .. } | Work::Copy(_) | Work::Fill(_) => exec.set_enabled(node, enabled != 0),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    /// Does nothing: graphs keep no unused memory.
    fn cudaDeviceGraphMemTrim | cuDeviceGraphMemTrim(call, device: i32) => check_device(device)?, call.runtime.device().map(drop);
    fn cudaDeviceGetGraphMemAttribute | cuDeviceGetGraphMemAttribute(call, device: i32, _attribute: u32, value: Out<u64>)
        => check_device(device)?, value.set(call.runtime.device()?.backend().memory().used);
    fn cudaDeviceSetGraphMemAttribute | cuDeviceSetGraphMemAttribute(call, device: i32, _attribute: u32, value: In<u64>)
        => check_device(device)?, value.get()?, call.runtime.device().map(drop);
}
