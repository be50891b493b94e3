//! Graph nodes: generic nodes, conditional nodes, stream memory operations, and queries.

use crate::boundary::{Call, exported};
use crate::objects::work::Work;
use crate::pointer::{In, Out};
use crate::shared_api::capture;
use crate::shared_api::graphs::{StructureFlavour, add_any, any_work, node_functions, set_exec_work, work_of};
use crate::shared_api::words::batch;
use crate::status::{Outcome, Status};
use crate::types::{DriverKernelNodeParams, DriverMemcpy3D, GraphNodeParams, KernelNodeParams};

pub(crate) use crate::shared_api::capture::*;
pub(crate) use crate::shared_api::nodes::*;
pub(crate) use crate::shared_api::streams::*;

/// `CUDA_BATCH_MEM_OP_NODE_PARAMS`: context, count, address of the list, flags.
type Batch = [u64; 4];

fn operations(call: &Call, params: In<Batch>) -> Outcome<Work> {
    let [_, count, list, _] = params.get()?;
    batch(call, count as u32, list as usize)
}

fn kernel_params(call: &Call, node: usize) -> Outcome<KernelNodeParams> {
    let (kernel, params) = launch_of(call, node)?;
    Ok(KernelNodeParams { function: kernel.handle(), ..params })
}

node_functions! { driver
    (call, params: In<Batch>) => operations(call, params)?;
    add(cuGraphAddBatchMemOpNode) set(cuGraphBatchMemOpNodeSetParams) exec(cuGraphExecBatchMemOpNodeSetParams);
}

exported! { driver
    fn cuGraphAddNode(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, params: Out<GraphNodeParams>)
        => add_any(call, node, graph, after, count, params, StructureFlavour::Driver);
    /// Adds a node of any kind, with edge data.
    fn cuGraphAddNode_v2 = cuGraphAddNode_v3(call, node: Out<usize>, graph: usize, after: In<usize>, _data: usize, count: usize, params: Out<GraphNodeParams>)
        => add_any(call, node, graph, after, count, params, StructureFlavour::Driver);
    fn cuGraphNodeSetParams = cuGraphNodeSetParams_v2(call, node: usize, params: In<GraphNodeParams>) => set_any(call, node, params);

    fn cuGraphExecNodeSetParams(call, exec: usize, node: usize, params: Out<GraphNodeParams>) {
        let work = any_work(call, &params.get()?, params, StructureFlavour::Driver)?;
        set_exec_work(call, exec, node, work)
    }

    fn cuGraphNodeGetParams(call, node: usize, params: Out<GraphNodeParams>) => any_params(call, node, params, StructureFlavour::Driver);
    fn cuGraphKernelNodeGetParams(call, node: usize, params: Out<KernelNodeParams>) => params.set(kernel_params(call, node)?);
    fn cuGraphKernelNodeGetParams_v2(call, node: usize, params: Out<DriverKernelNodeParams>)
        => params.set(DriverKernelNodeParams { params: kernel_params(call, node)?, ..DriverKernelNodeParams::default() });
    fn cuGraphMemcpyNodeGetParams(call, node: usize, params: Out<DriverMemcpy3D>)
        => params.set(driver_copy_params(call, &copy_of(call, node)?));

    /// Returns the number of stream memory operations of a node. The list belonged to the program.
    fn cuGraphBatchMemOpNodeGetParams(call, node: usize, params: Out<Batch>) {
        let Work::Words(all) = work_of(call, node)? else { return Err(Status::INVALID_VALUE) };
        params.set([0, all.len() as u64, 0, 0])
    }

    fn cuStreamBeginCapture / cuStreamBeginCapture_ptsz(call, stream: usize)
        => call.runtime.begin_capture(&*call.stream(stream)?, None, vec![]);
    fn cuStreamGetCaptureInfo / cuStreamGetCaptureInfo_ptsz(call, stream: usize, status: Out<u32>, id: Out<u64>)
        => capture::info(call, stream, status, id, Out::at(0), Out::at(0), Out::at(0), Out::at(0));
    fn cuStreamUpdateCaptureDependencies / cuStreamUpdateCaptureDependencies_ptsz(call, stream: usize, nodes: In<usize>, count: usize, flags: u32)
        => capture::update(call, stream, &nodes.get_all(count)?, flags);
}
