//! Graphs and captures of the driver. Most are the runtime's, word for word; kernels and copies are described otherwise.

use crate::boundary::{Call, exported, forwarded};
use crate::driver::copies::box_of;
use crate::pointer::{In, Out};
use crate::runtime::graphs::{
    add, answer_edges, answer_neighbours, copy_work, depend, fill_work, kernel_work, set_exec_work, set_work,
};
use crate::runtime::{capture, graphs};
use crate::status::{Outcome, Status};
use crate::types::{DriverKernelNodeParams, DriverMemcpy3D, HostNodeParams, KernelNodeParams, MemAllocNodeParams, MemsetParams};
use crate::work::{Direction, Work};

/// Functions of the driver that are functions of the runtime.
macro_rules! of_runtime {
    ($($(#[$meta:meta])* fn $name:ident = $module:ident::$other:ident($($arg:ident : $ty:ty),*);)*) => {
        exported! { driver
            $($(#[$meta])*
            fn $name(_call, $($arg: $ty),*) {
                forwarded(|| $module::$other($($arg),*))
            })*
        }
    };
}

of_runtime! {
    /// A graph.
    fn cuGraphCreate = graphs::cudaGraphCreate(graph: Out<usize>, flags: u32);
    /// Gives a graph back.
    fn cuGraphDestroy = graphs::cudaGraphDestroy(graph: usize);
    /// A copy of a graph.
    fn cuGraphClone = graphs::cudaGraphClone(copy: Out<usize>, graph: usize);
    /// A node that does nothing.
    fn cuGraphAddEmptyNode = graphs::cudaGraphAddEmptyNode(node: Out<usize>, graph: usize, after: In<usize>, count: usize);
    /// A graph as a node.
    fn cuGraphAddChildGraphNode = graphs::cudaGraphAddChildGraphNode(node: Out<usize>, graph: usize, after: In<usize>, count: usize, child: usize);
    /// The graph behind a node that is one.
    fn cuGraphChildGraphNodeGetGraph = graphs::cudaGraphChildGraphNodeGetGraph(node: usize, graph: Out<usize>);
    /// An event that is recorded.
    fn cuGraphAddEventRecordNode = graphs::cudaGraphAddEventRecordNode(node: Out<usize>, graph: usize, after: In<usize>, count: usize, event: usize);
    /// An event that is waited for.
    fn cuGraphAddEventWaitNode = graphs::cudaGraphAddEventWaitNode(node: Out<usize>, graph: usize, after: In<usize>, count: usize, event: usize);
    /// The event that a node records.
    fn cuGraphEventRecordNodeGetEvent = graphs::cudaGraphEventRecordNodeGetEvent(node: usize, event: Out<usize>);
    /// The event that a node waits for.
    fn cuGraphEventWaitNodeGetEvent = graphs::cudaGraphEventWaitNodeGetEvent(node: usize, event: Out<usize>);
    /// Changes the event that a node records.
    fn cuGraphEventRecordNodeSetEvent = graphs::cudaGraphEventRecordNodeSetEvent(node: usize, event: usize);
    /// Changes the event that a node waits for.
    fn cuGraphEventWaitNodeSetEvent = graphs::cudaGraphEventWaitNodeSetEvent(node: usize, event: usize);
    /// A function of the host.
    fn cuGraphAddHostNode = graphs::cudaGraphAddHostNode(node: Out<usize>, graph: usize, after: In<usize>, count: usize, params: In<HostNodeParams>);
    /// What a function of the host is.
    fn cuGraphHostNodeGetParams = graphs::cudaGraphHostNodeGetParams(node: usize, params: Out<HostNodeParams>);
    /// Changes a function of the host.
    fn cuGraphHostNodeSetParams = graphs::cudaGraphHostNodeSetParams(node: usize, params: In<HostNodeParams>);
    /// Memory for the nodes behind it.
    fn cuGraphAddMemAllocNode = graphs::cudaGraphAddMemAllocNode(node: Out<usize>, graph: usize, after: In<usize>, count: usize, params: Out<MemAllocNodeParams>);
    /// Where the memory of a node is.
    fn cuGraphMemAllocNodeGetParams = graphs::cudaGraphMemAllocNodeGetParams(node: usize, params: Out<MemAllocNodeParams>);
    /// Memory is not needed any more.
    fn cuGraphAddMemFreeNode = graphs::cudaGraphAddMemFreeNode(node: Out<usize>, graph: usize, after: In<usize>, count: usize, address: u64);
    /// The address that a node frees.
    fn cuGraphMemFreeNodeGetParams = graphs::cudaGraphMemFreeNodeGetParams(node: usize, address: Out<u64>);
    /// The nodes of a graph.
    fn cuGraphGetNodes = graphs::cudaGraphGetNodes(graph: usize, nodes: Out<usize>, count: Out<usize>);
    /// The nodes that come behind none.
    fn cuGraphGetRootNodes = graphs::cudaGraphGetRootNodes(graph: usize, nodes: Out<usize>, count: Out<usize>);
    /// What kind of work a node is.
    fn cuGraphNodeGetType = graphs::cudaGraphNodeGetType(node: usize, kind: Out<u32>);
    /// Removes a node.
    fn cuGraphDestroyNode = graphs::cudaGraphDestroyNode(node: usize);
    /// The node of a copy.
    fn cuGraphNodeFindInClone = graphs::cudaGraphNodeFindInClone(copy: Out<usize>, node: usize, graph: usize);
    /// Gives a graph that is ready back.
    fn cuGraphExecDestroy = graphs::cudaGraphExecDestroy(exec: usize);
    /// The flags that a graph was made ready with.
    fn cuGraphExecGetFlags = graphs::cudaGraphExecGetFlags(exec: usize, flags: Out<u64>);
    /// Makes a graph ready.
    fn cuGraphInstantiateWithFlags = graphs::cudaGraphInstantiateWithFlags(exec: Out<usize>, graph: usize, flags: u64);
    /// The same, with parameters.
    fn cuGraphInstantiateWithParams = graphs::cudaGraphInstantiateWithParams(exec: Out<usize>, graph: usize, params: Out<[u64; 4]>);
    /// The same.
    fn cuGraphInstantiateWithParams_ptsz = graphs::cudaGraphInstantiateWithParams_ptsz(exec: Out<usize>, graph: usize, params: Out<[u64; 4]>);
    /// Does the work of a graph.
    fn cuGraphLaunch = graphs::cudaGraphLaunch(exec: usize, stream: usize);
    /// The same.
    fn cuGraphLaunch_ptsz = graphs::cudaGraphLaunch_ptsz(exec: usize, stream: usize);
    /// Brings a graph to the device, where it is.
    fn cuGraphUpload = graphs::cudaGraphUpload(exec: usize, stream: usize);
    /// The same.
    fn cuGraphUpload_ptsz = graphs::cudaGraphUpload_ptsz(exec: usize, stream: usize);
    /// Whether the work of a node is done.
    fn cuGraphNodeGetEnabled = graphs::cudaGraphNodeGetEnabled(exec: usize, node: usize, enabled: Out<u32>);
    /// Says whether the work of a node is done.
    fn cuGraphNodeSetEnabled = graphs::cudaGraphNodeSetEnabled(exec: usize, node: usize, enabled: u32);
    /// Changes a graph that is a node of one that is ready.
    fn cuGraphExecChildGraphNodeSetParams = graphs::cudaGraphExecChildGraphNodeSetParams(exec: usize, node: usize, child: usize);
    /// Changes the event that a node of a graph that is ready records.
    fn cuGraphExecEventRecordNodeSetEvent = graphs::cudaGraphExecEventRecordNodeSetEvent(exec: usize, node: usize, event: usize);
    /// Changes the event that it waits for.
    fn cuGraphExecEventWaitNodeSetEvent = graphs::cudaGraphExecEventWaitNodeSetEvent(exec: usize, node: usize, event: usize);
    /// Changes a function of the host of a graph that is ready.
    fn cuGraphExecHostNodeSetParams = graphs::cudaGraphExecHostNodeSetParams(exec: usize, node: usize, params: In<HostNodeParams>);
    /// The same hints as another launch.
    fn cuGraphKernelNodeCopyAttributes = graphs::cudaGraphKernelNodeCopyAttributes(to: usize, from: usize);
    /// Hints for a launch, which make no difference here.
    fn cuGraphKernelNodeSetAttribute = graphs::cudaGraphKernelNodeSetAttribute(node: usize, attribute: u32, value: In<u64>);
    /// Changes a fill.
    fn cuGraphMemsetNodeSetParams = graphs::cudaGraphMemsetNodeSetParams(node: usize, params: In<MemsetParams>);
    /// What a fill is.
    fn cuGraphMemsetNodeGetParams = graphs::cudaGraphMemsetNodeGetParams(node: usize, params: Out<MemsetParams>);
    /// Memory that graphs keep: none beyond what they use.
    fn cuDeviceGraphMemTrim = graphs::cudaDeviceGraphMemTrim(device: i32);
    /// How much it is.
    fn cuDeviceGetGraphMemAttribute = graphs::cudaDeviceGetGraphMemAttribute(device: i32, attribute: u32, value: Out<u64>);
    /// Sets high-water marks back.
    fn cuDeviceSetGraphMemAttribute = graphs::cudaDeviceSetGraphMemAttribute(device: i32, attribute: u32, value: In<u64>);
    /// Puts nodes behind others.
    fn cuGraphAddDependencies_v2 = graphs::cudaGraphAddDependencies_v2(graph: usize, from: In<usize>, to: In<usize>, data: usize, count: usize);
    /// Nodes are no longer behind others.
    fn cuGraphRemoveDependencies_v2 = graphs::cudaGraphRemoveDependencies_v2(graph: usize, from: In<usize>, to: In<usize>, data: usize, count: usize);
    /// Who comes before whom.
    fn cuGraphGetEdges_v2 = graphs::cudaGraphGetEdges_v2(graph: usize, from: Out<usize>, to: Out<usize>, data: Out<u64>, count: Out<usize>);
    /// The nodes that a node comes behind.
    fn cuGraphNodeGetDependencies_v2 = graphs::cudaGraphNodeGetDependencies_v2(node: usize, nodes: Out<usize>, data: Out<u64>, count: Out<usize>);
    /// The nodes that come behind a node.
    fn cuGraphNodeGetDependentNodes_v2 = graphs::cudaGraphNodeGetDependentNodes_v2(node: usize, nodes: Out<usize>, data: Out<u64>, count: Out<usize>);
    /// Exchanges what this thread may do while somebody captures.
    fn cuThreadExchangeStreamCaptureMode = capture::cudaThreadExchangeStreamCaptureMode(mode: Out<u32>);
    /// Begins a capture.
    fn cuStreamBeginCapture_v2 = capture::cudaStreamBeginCapture(stream: usize, mode: u32);
    /// Begins a capture into a graph that is there.
    fn cuStreamBeginCaptureToGraph = capture::cudaStreamBeginCaptureToGraph(stream: usize, graph: usize, nodes: In<usize>, edges: usize, count: usize, mode: u32);
    /// Ends a capture; the graph.
    fn cuStreamEndCapture = capture::cudaStreamEndCapture(stream: usize, graph: Out<usize>);
    /// What is captured so far.
    fn cuStreamGetCaptureInfo_v2 = capture::cudaStreamGetCaptureInfo_v2(stream: usize, status: Out<u32>, id: Out<u64>, graph: Out<usize>, nodes: Out<usize>, count: Out<usize>);
    /// The same, with edges.
    fn cuStreamGetCaptureInfo_v3 = capture::cudaStreamGetCaptureInfo_v3(stream: usize, status: Out<u32>, id: Out<u64>, graph: Out<usize>, nodes: Out<usize>, edges: Out<usize>, count: Out<usize>);
    /// Changes what later work comes behind.
    fn cuStreamUpdateCaptureDependencies_v2 = capture::cudaStreamUpdateCaptureDependencies_v2(stream: usize, nodes: In<usize>, edges: usize, count: usize, flags: u32);
    /// Begins a capture.
    fn cuStreamBeginCapture_v2_ptsz = capture::cudaStreamBeginCapture_ptsz(stream: usize, mode: u32);
    /// Begins a capture into a graph that is there.
    fn cuStreamBeginCaptureToGraph_ptsz = capture::cudaStreamBeginCaptureToGraph_ptsz(stream: usize, graph: usize, nodes: In<usize>, edges: usize, count: usize, mode: u32);
    /// Ends a capture; the graph.
    fn cuStreamEndCapture_ptsz = capture::cudaStreamEndCapture_ptsz(stream: usize, graph: Out<usize>);
    /// What is captured so far.
    fn cuStreamGetCaptureInfo_v2_ptsz = capture::cudaStreamGetCaptureInfo_v2_ptsz(stream: usize, status: Out<u32>, id: Out<u64>, graph: Out<usize>, nodes: Out<usize>, count: Out<usize>);
    /// The same, with edges.
    fn cuStreamGetCaptureInfo_v3_ptsz = capture::cudaStreamGetCaptureInfo_v3_ptsz(stream: usize, status: Out<u32>, id: Out<u64>, graph: Out<usize>, nodes: Out<usize>, edges: Out<usize>, count: Out<usize>);
    /// Changes what later work comes behind.
    fn cuStreamUpdateCaptureDependencies_v2_ptsz = capture::cudaStreamUpdateCaptureDependencies_v2_ptsz(stream: usize, nodes: In<usize>, edges: usize, count: usize, flags: u32);
}

/// A launch: of a function, or of a kernel of a library.
pub(crate) fn launch(call: &Call, params: In<DriverKernelNodeParams>) -> Outcome<Work> {
    let DriverKernelNodeParams { mut params, kernel, .. } = params.get()?;
    if params.function == 0 {
        params.function = kernel;
    }
    kernel_work(call, &params).map_err(of_driver)
}

/// The driver has one word for shapes that do not fit, and another one for functions that are none.
fn of_driver(status: Status) -> Status {
    match status {
        Status::INVALID_CONFIGURATION => Status::INVALID_VALUE,
        Status::INVALID_DEVICE_FUNCTION => Status::INVALID_HANDLE,
        other => other,
    }
}

pub(crate) fn copy(call: &Call, params: In<DriverMemcpy3D>) -> Outcome<Work> {
    copy_work(call, box_of(call, &params.get()?)?, Direction::Default)
}

exported! { driver
    /// A launch.
    fn cuGraphAddKernelNode(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, params: In<KernelNodeParams>) {
        let work = kernel_work(call, &params.get()?).map_err(of_driver)?;
        add(call, node, graph, after, count, work).map(drop)
    }

    /// A launch of a function or a kernel.
    fn cuGraphAddKernelNode_v2(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, params: In<DriverKernelNodeParams>) {
        add(call, node, graph, after, count, launch(call, params)?).map(drop)
    }

    /// Changes a launch.
    fn cuGraphKernelNodeSetParams(call, node: usize, params: In<KernelNodeParams>) {
        let work = kernel_work(call, &params.get()?).map_err(of_driver)?;
        set_work(call, node, work)
    }

    /// Changes a launch.
    fn cuGraphKernelNodeSetParams_v2(call, node: usize, params: In<DriverKernelNodeParams>) {
        let work = launch(call, params)?;
        set_work(call, node, work)
    }

    /// Changes a launch of a graph that is ready.
    fn cuGraphExecKernelNodeSetParams(call, exec: usize, node: usize, params: In<KernelNodeParams>) {
        let work = kernel_work(call, &params.get()?).map_err(of_driver)?;
        set_exec_work(call, exec, node, work)
    }

    /// Changes a launch of a graph that is ready.
    fn cuGraphExecKernelNodeSetParams_v2(call, exec: usize, node: usize, params: In<DriverKernelNodeParams>) {
        let work = launch(call, params)?;
        set_exec_work(call, exec, node, work)
    }

    /// A copy.
    fn cuGraphAddMemcpyNode(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, params: In<DriverMemcpy3D>, _context: usize) {
        add(call, node, graph, after, count, copy(call, params)?).map(drop)
    }

    /// Changes a copy.
    fn cuGraphMemcpyNodeSetParams(call, node: usize, params: In<DriverMemcpy3D>) {
        let work = copy(call, params)?;
        set_work(call, node, work)
    }

    /// Changes a copy of a graph that is ready.
    fn cuGraphExecMemcpyNodeSetParams(call, exec: usize, node: usize, params: In<DriverMemcpy3D>, _context: usize) {
        let work = copy(call, params)?;
        set_exec_work(call, exec, node, work)
    }

    /// A fill.
    fn cuGraphAddMemsetNode(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, params: In<MemsetParams>, _context: usize) {
        let work = fill_work(call, &params.get()?)?;
        add(call, node, graph, after, count, work).map(drop)
    }

    /// Changes a fill of a graph that is ready.
    fn cuGraphExecMemsetNodeSetParams(call, exec: usize, node: usize, params: In<MemsetParams>, _context: usize) {
        let work = fill_work(call, &params.get()?)?;
        set_exec_work(call, exec, node, work)
    }

    /// Puts nodes behind others.
    fn cuGraphAddDependencies(call, graph: usize, from: In<usize>, to: In<usize>, count: usize) {
        depend(call, graph, &from.get_all(count)?, &to.get_all(count)?, true)
    }

    /// Nodes are no longer behind others.
    fn cuGraphRemoveDependencies(call, graph: usize, from: In<usize>, to: In<usize>, count: usize) {
        depend(call, graph, &from.get_all(count)?, &to.get_all(count)?, false)
    }

    /// Who comes before whom.
    fn cuGraphGetEdges(call, graph: usize, from: Out<usize>, to: Out<usize>, count: Out<usize>) {
        answer_edges(call, graph, from, to, Out::at(0), count)
    }

    /// The nodes that a node comes behind.
    fn cuGraphNodeGetDependencies(call, node: usize, nodes: Out<usize>, count: Out<usize>) {
        answer_neighbours(call, node, true, nodes, Out::at(0), count)
    }

    /// The nodes that come behind a node.
    fn cuGraphNodeGetDependentNodes(call, node: usize, nodes: Out<usize>, count: Out<usize>) {
        answer_neighbours(call, node, false, nodes, Out::at(0), count)
    }

    /// Makes a graph ready, with room for messages.
    fn cuGraphInstantiate_v2(call, exec: Out<usize>, graph: usize, node: Out<usize>, _messages: usize, _bytes: usize) {
        exec.wanted()?;
        node.set_if_wanted(0);
        exec.set(call.runtime.instantiate(&*call.runtime.graphs.get(graph)?, 0)?)
    }

    /// Takes the work of a graph of the same structure; what became of it and the node that did not fit are told.
    fn cuGraphExecUpdate_v2(call, exec: usize, graph: usize, info: Out<[usize; 3]>) {
        let (result, node) = graphs::update(call, exec, graph)?;
        info.set_if_wanted([result as usize, node, 0]);
        if result == 0 { Ok(()) } else { Err(Status::GRAPH_EXEC_UPDATE_FAILURE) }
    }

    /// The same, with two places for what is told.
    fn cuGraphExecUpdate(call, exec: usize, graph: usize, node: Out<usize>, outcome: Out<u32>) {
        let (result, wrong) = graphs::update(call, exec, graph)?;
        node.set_if_wanted(wrong);
        outcome.set_if_wanted(result);
        if result == 0 { Ok(()) } else { Err(Status::GRAPH_EXEC_UPDATE_FAILURE) }
    }
}
