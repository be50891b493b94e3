//! Nodes of graphs: of any kind, conditional ones, operations on words, what a node is.

use crate::boundary::{Call, exported, forwarded};
use crate::driver::words::batch;
use crate::pointer::{In, Out, Text};
use crate::runtime::graphs::{Words, add, add_any, any_work, set_exec_work, set_work, work_of};
use crate::runtime::nodes::{
    any_params, copy_of, create_condition, draw, driver_copy_params, launch_of, set_any, stream_attribute,
};
use crate::runtime::{capture, nodes, streams};
use crate::status::{Outcome, Status};
use crate::types::{DriverKernelNodeParams, DriverMemcpy3D, GraphNodeParams, KernelNodeParams};
use crate::work::Work;

/// `CUDA_BATCH_MEM_OP_NODE_PARAMS`: a context, how many, where they stand, flags.
type Batch = [u64; 4];

fn operations(call: &Call, params: In<Batch>) -> Outcome<Work> {
    let [_, count, list, _] = params.get()?;
    batch(call, count as u32, list as usize)
}

fn kernel_params(call: &Call, node: usize) -> Outcome<KernelNodeParams> {
    let (kernel, params) = launch_of(call, node)?;
    Ok(KernelNodeParams { function: kernel.handle(), ..params })
}

exported! { driver
    /// A value for conditional nodes.
    fn cuGraphConditionalHandleCreate(call, handle: Out<u64>, graph: usize, _context: usize, default: u32, flags: u32) {
        create_condition(call, handle, graph, default, flags)
    }

    /// A node of any kind.
    fn cuGraphAddNode(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, params: Out<GraphNodeParams>) {
        add_any(call, node, graph, after, count, params, Words::Driver)
    }

    /// The same, with data for edges.
    fn cuGraphAddNode_v2(call, node: Out<usize>, graph: usize, after: In<usize>, _data: usize, count: usize, params: Out<GraphNodeParams>) {
        add_any(call, node, graph, after, count, params, Words::Driver)
    }

    /// The same.
    fn cuGraphAddNode_v3(call, node: Out<usize>, graph: usize, after: In<usize>, _data: usize, count: usize, params: Out<GraphNodeParams>) {
        add_any(call, node, graph, after, count, params, Words::Driver)
    }

    /// Changes what a node of any kind does.
    fn cuGraphNodeSetParams(call, node: usize, params: In<GraphNodeParams>) {
        set_any(call, node, params)
    }

    /// The same.
    fn cuGraphNodeSetParams_v2(call, node: usize, params: In<GraphNodeParams>) {
        set_any(call, node, params)
    }

    /// Changes what a node of any kind of a graph that is ready does.
    fn cuGraphExecNodeSetParams(call, exec: usize, node: usize, params: Out<GraphNodeParams>) {
        let work = any_work(call, &params.get()?, params, Words::Driver)?;
        set_exec_work(call, exec, node, work)
    }

    /// What a node of any kind is.
    fn cuGraphNodeGetParams(call, node: usize, params: Out<GraphNodeParams>) {
        any_params(call, node, params, true)
    }

    /// What a launch is.
    fn cuGraphKernelNodeGetParams(call, node: usize, params: Out<KernelNodeParams>) {
        params.set(kernel_params(call, node)?)
    }

    /// What a launch is.
    fn cuGraphKernelNodeGetParams_v2(call, node: usize, params: Out<DriverKernelNodeParams>) {
        params.set(DriverKernelNodeParams { params: kernel_params(call, node)?, ..DriverKernelNodeParams::default() })
    }

    /// What a copy is.
    fn cuGraphMemcpyNodeGetParams(call, node: usize, params: Out<DriverMemcpy3D>) {
        params.set(driver_copy_params(call, &copy_of(call, node)?))
    }

    /// Operations on words.
    fn cuGraphAddBatchMemOpNode(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, params: In<Batch>) {
        let work = operations(call, params)?;
        add(call, node, graph, after, count, work).map(drop)
    }

    /// Changes operations on words.
    fn cuGraphBatchMemOpNodeSetParams(call, node: usize, params: In<Batch>) {
        let work = operations(call, params)?;
        set_work(call, node, work)
    }

    /// Changes operations on words of a graph that is ready.
    fn cuGraphExecBatchMemOpNodeSetParams(call, exec: usize, node: usize, params: In<Batch>) {
        let work = operations(call, params)?;
        set_exec_work(call, exec, node, work)
    }

    /// How many operations on words a node has; the list was the program's.
    fn cuGraphBatchMemOpNodeGetParams(call, node: usize, params: Out<Batch>) {
        match work_of(call, node)? {
            Work::Words(all) => params.set([0, all.len() as u64, 0, 0]),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    /// A hint for a launch, of which none is kept.
    fn cuGraphKernelNodeGetAttribute(_call, node: usize, attribute: u32, value: Out<[u64; 8]>) {
        forwarded(|| nodes::cudaGraphKernelNodeGetAttribute(node, attribute, value))
    }

    /// The number of a node in its graph.
    fn cuGraphNodeGetLocalId(_call, node: usize, id: Out<u32>) {
        forwarded(|| nodes::cudaGraphNodeGetLocalId(node, id))
    }

    /// A number that no other node has.
    fn cuGraphNodeGetToolsId(_call, node: usize, id: Out<u64>) {
        forwarded(|| nodes::cudaGraphNodeGetToolsId(node, id))
    }

    /// The number of a graph.
    fn cuGraphGetId(_call, graph: usize, id: Out<u32>) {
        forwarded(|| nodes::cudaGraphGetId(graph, id))
    }

    /// The number of a graph that is ready.
    fn cuGraphExecGetId(_call, exec: usize, id: Out<u32>) {
        forwarded(|| nodes::cudaGraphExecGetId(exec, id))
    }

    /// The graph of a node.
    fn cuGraphNodeGetContainingGraph(_call, node: usize, graph: Out<usize>) {
        forwarded(|| nodes::cudaGraphNodeGetContainingGraph(node, graph))
    }

    /// Writes a graph to a file, in the language of Graphviz.
    fn cuGraphDebugDotPrint(call, graph: usize, path: Text, _flags: u32) {
        draw(call, graph, path)
    }

    /// Whether a stream is captured.
    fn cuStreamIsCapturing(_call, stream: usize, status: Out<u32>) {
        forwarded(|| capture::cudaStreamIsCapturing(stream, status))
    }

    /// The same.
    fn cuStreamIsCapturing_ptsz(_call, stream: usize, status: Out<u32>) {
        forwarded(|| capture::cudaStreamIsCapturing_ptsz(stream, status))
    }

    /// Begins a capture that no other thread can disturb.
    fn cuStreamBeginCapture(_call, stream: usize) {
        forwarded(|| capture::cudaStreamBeginCapture(stream, 0))
    }

    /// The same.
    fn cuStreamBeginCapture_ptsz(_call, stream: usize) {
        forwarded(|| capture::cudaStreamBeginCapture_ptsz(stream, 0))
    }

    /// What is captured so far: the number of the capture.
    fn cuStreamGetCaptureInfo(_call, stream: usize, status: Out<u32>, id: Out<u64>) {
        forwarded(|| capture::cudaStreamGetCaptureInfo_v2(stream, status, id, Out::at(0), Out::at(0), Out::at(0)))
    }

    /// The same.
    fn cuStreamGetCaptureInfo_ptsz(_call, stream: usize, status: Out<u32>, id: Out<u64>) {
        forwarded(|| capture::cudaStreamGetCaptureInfo_v2_ptsz(stream, status, id, Out::at(0), Out::at(0), Out::at(0)))
    }

    /// Changes what later work comes behind.
    fn cuStreamUpdateCaptureDependencies(_call, stream: usize, nodes: In<usize>, count: usize, flags: u32) {
        forwarded(|| capture::cudaStreamUpdateCaptureDependencies_v2(stream, nodes, 0, count, flags))
    }

    /// The same.
    fn cuStreamUpdateCaptureDependencies_ptsz(_call, stream: usize, nodes: In<usize>, count: usize, flags: u32) {
        forwarded(|| capture::cudaStreamUpdateCaptureDependencies_v2_ptsz(stream, nodes, 0, count, flags))
    }

    /// A hint for a stream.
    fn cuStreamGetAttribute / cuStreamGetAttribute_ptsz(call, stream: usize, attribute: u32, value: Out<[u64; 8]>) {
        stream_attribute(call, stream, attribute, value)
    }

    /// Takes hints for a stream, which make no difference here.
    fn cuStreamSetAttribute(_call, stream: usize, attribute: u32, value: In<u64>) {
        forwarded(|| streams::cudaStreamSetAttribute(stream, attribute, value))
    }

    /// The same.
    fn cuStreamSetAttribute_ptsz(_call, stream: usize, attribute: u32, value: In<u64>) {
        forwarded(|| streams::cudaStreamSetAttribute_ptsz(stream, attribute, value))
    }

    /// The same hints as another stream.
    fn cuStreamCopyAttributes(_call, to: usize, from: usize) {
        forwarded(|| streams::cudaStreamCopyAttributes(to, from))
    }

    /// The same.
    fn cuStreamCopyAttributes_ptsz(_call, to: usize, from: usize) {
        forwarded(|| streams::cudaStreamCopyAttributes_ptsz(to, from))
    }
}
