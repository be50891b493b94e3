//! Graphs and captures of the driver. Most are shared with the runtime; kernel and copy parameters differ.

use crate::boundary::exported;
use crate::pointer::{In, Out};
pub(crate) use crate::shared_api::capture::*;
use crate::shared_api::graphs;
pub(crate) use crate::shared_api::graphs::*;
use crate::status::Status;
use crate::types::{DriverKernelNodeParams, DriverMemcpy3D, KernelNodeParams, MemsetParams};

node_functions! { driver
    (call, params: In<KernelNodeParams>) => kernel_work(call, &params.get()?).map_err(Status::of_driver)?;
    add(cuGraphAddKernelNode) set(cuGraphKernelNodeSetParams) exec(cuGraphExecKernelNodeSetParams);

    (call, params: In<DriverKernelNodeParams>) => driver_launch(call, params)?;
    add(cuGraphAddKernelNode_v2) set(cuGraphKernelNodeSetParams_v2) exec(cuGraphExecKernelNodeSetParams_v2);

    (call, params: In<DriverMemcpy3D>) => driver_copy(call, params)?;
    add(cuGraphAddMemcpyNode; _context) set(cuGraphMemcpyNodeSetParams) exec(cuGraphExecMemcpyNodeSetParams; _context);

    (call, params: In<MemsetParams>) => fill_work(call, &params.get()?)?;
    add(cuGraphAddMemsetNode; _context) exec(cuGraphExecMemsetNodeSetParams; _context);
}

exported! { driver
    fn cuGraphAddDependencies(call, graph: usize, from: In<usize>, to: In<usize>, count: usize)
        => depend(call, graph, &from.get_all(count)?, &to.get_all(count)?, true);
    fn cuGraphRemoveDependencies(call, graph: usize, from: In<usize>, to: In<usize>, count: usize)
        => depend(call, graph, &from.get_all(count)?, &to.get_all(count)?, false);
    fn cuGraphGetEdges(call, graph: usize, from: Out<usize>, to: Out<usize>, count: Out<usize>)
        => answer_edges(call, graph, from, to, Out::at(0), count);
    fn cuGraphNodeGetDependencies(call, node: usize, nodes: Out<usize>, count: Out<usize>)
        => answer_neighbours(call, node, true, nodes, Out::at(0), count);
    fn cuGraphNodeGetDependentNodes(call, node: usize, nodes: Out<usize>, count: Out<usize>)
        => answer_neighbours(call, node, false, nodes, Out::at(0), count);

    /// Instantiates a graph, with a buffer for messages.
    fn cuGraphInstantiate = cuGraphInstantiate_v2(call, exec: Out<usize>, graph: usize, node: Out<usize>, _messages: usize, _bytes: usize) {
        exec.wanted()?;
        node.set_if_wanted(0);
        exec.set(call.runtime.instantiate(&*call.runtime.graphs.get(graph)?, 0)?)
    }

    /// Updates an instantiated graph from a graph of the same structure. Returns the result and the node that
    /// did not match.
    fn cuGraphExecUpdate_v2(call, exec: usize, graph: usize, info: Out<[usize; 3]>) {
        let (result, node) = graphs::update(call, exec, graph)?;
        info.set_if_wanted([result as usize, node, 0]);
        if result == 0 { Ok(()) } else { Err(Status::GRAPH_EXEC_UPDATE_FAILURE) }
    }

    /// Updates an instantiated graph, with two separate outputs.
    fn cuGraphExecUpdate(call, exec: usize, graph: usize, node: Out<usize>, outcome: Out<u32>) {
        let (result, wrong) = graphs::update(call, exec, graph)?;
        node.set_if_wanted(wrong);
        outcome.set_if_wanted(result);
        if result == 0 { Ok(()) } else { Err(Status::GRAPH_EXEC_UPDATE_FAILURE) }
    }
}
