//! Nodes of graphs: of any kind, conditional ones, operations on words, what a node is.

use crate::boundary::{Call, exported};
use crate::driver::words::batch;
use crate::pointer::{In, Out};
use crate::runtime::capture;
pub(crate) use crate::runtime::capture::{cuStreamIsCapturing, cuStreamIsCapturing_ptsz};
use crate::runtime::graphs::{Words, add, add_any, any_work, set_exec_work, set_work, work_of};
use crate::runtime::nodes::{any_params, copy_of, driver_copy_params, launch_of, set_any};
pub(crate) use crate::runtime::nodes::{
    cuGraphConditionalHandleCreate, cuGraphDebugDotPrint, cuGraphExecGetId, cuGraphGetId, cuGraphNodeGetContainingGraph,
    cuGraphNodeGetLocalId, cuGraphNodeGetToolsId, cuStreamGetAttribute, cuStreamGetAttribute_ptsz,
};
pub(crate) use crate::runtime::streams::{
    cuStreamCopyAttributes, cuStreamCopyAttributes_ptsz, cuStreamSetAttribute, cuStreamSetAttribute_ptsz,
};
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
    /// A node of any kind.
    fn cuGraphAddNode(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, params: Out<GraphNodeParams>) {
        add_any(call, node, graph, after, count, params, Words::Driver)
    }

    /// The same, with data for edges.
    fn cuGraphAddNode_v2 = cuGraphAddNode_v3(call, node: Out<usize>, graph: usize, after: In<usize>, _data: usize, count: usize, params: Out<GraphNodeParams>) {
        add_any(call, node, graph, after, count, params, Words::Driver)
    }

    /// Changes what a node of any kind does.
    fn cuGraphNodeSetParams = cuGraphNodeSetParams_v2(call, node: usize, params: In<GraphNodeParams>) {
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

    /// Begins a capture that no other thread can disturb.
    fn cuStreamBeginCapture / cuStreamBeginCapture_ptsz(call, stream: usize) {
        call.runtime.begin_capture(&*call.stream(stream)?, None, vec![])
    }

    /// What is captured so far: the number of the capture.
    fn cuStreamGetCaptureInfo / cuStreamGetCaptureInfo_ptsz(call, stream: usize, status: Out<u32>, id: Out<u64>) {
        capture::info(call, stream, status, id, Out::at(0), Out::at(0), Out::at(0), Out::at(0))
    }

    /// Changes what later work comes behind.
    fn cuStreamUpdateCaptureDependencies / cuStreamUpdateCaptureDependencies_ptsz(call, stream: usize, nodes: In<usize>, count: usize, flags: u32) {
        capture::update(call, stream, &nodes.get_all(count)?, flags)
    }
}
