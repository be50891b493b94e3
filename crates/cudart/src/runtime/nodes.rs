//! Graph nodes: conditional nodes, queries, and numbers of nodes and graphs.

use crate::boundary::exported;
use crate::pointer::Out;
use crate::shared_api::graphs::StructureFlavour;
pub(crate) use crate::shared_api::nodes::*;
use crate::types::{GraphNodeParams, KernelNodeParams, Memcpy3DParms};

exported! { runtime
    fn cudaGraphConditionalHandleCreate(call, handle: Out<u64>, graph: usize, default: u32, flags: u32)
        => create_condition(call, handle, graph, default, flags);
    fn cudaGraphKernelNodeGetParams(call, node: usize, params: Out<KernelNodeParams>) => params.set(launch_of(call, node)?.1);
    fn cudaGraphMemcpyNodeGetParams(call, node: usize, params: Out<Memcpy3DParms>)
        => params.set(copy_params(call, &copy_of(call, node)?));
    fn cudaGraphNodeGetParams(call, node: usize, params: Out<GraphNodeParams>) => any_params(call, node, params, StructureFlavour::Runtime);
}
