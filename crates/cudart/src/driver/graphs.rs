//! Graphs and captures of the driver. Most are shared with the runtime; kernel and copy parameters differ.

use crate::boundary::exported;
use crate::pointer::{In, Out};
pub(crate) use crate::shared_api::capture::*;
use crate::shared_api::graphs;
pub(crate) use crate::shared_api::graphs::*;
use crate::status::Status;
use crate::types::{DriverKernelNodeParams, DriverMemcpy3D, KernelNodeParams, MemsetParams};

exported! { driver
    /// Adds a kernel node.
    fn cuGraphAddKernelNode(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, params: In<KernelNodeParams>) {
        let work = kernel_work(call, &params.get()?).map_err(Status::of_driver)?;
        add(call, node, graph, after, count, work).map(drop)
    }

    /// Adds a kernel node for a function or a library kernel.
    fn cuGraphAddKernelNode_v2(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, params: In<DriverKernelNodeParams>) {
        add(call, node, graph, after, count, driver_launch(call, params)?).map(drop)
    }

    /// Changes a kernel node.
    fn cuGraphKernelNodeSetParams(call, node: usize, params: In<KernelNodeParams>) {
        let work = kernel_work(call, &params.get()?).map_err(Status::of_driver)?;
        set_work(call, node, work)
    }

    /// Changes a kernel node.
    fn cuGraphKernelNodeSetParams_v2(call, node: usize, params: In<DriverKernelNodeParams>) {
        let work = driver_launch(call, params)?;
        set_work(call, node, work)
    }

    /// Changes a kernel node of an instantiated graph.
    fn cuGraphExecKernelNodeSetParams(call, exec: usize, node: usize, params: In<KernelNodeParams>) {
        let work = kernel_work(call, &params.get()?).map_err(Status::of_driver)?;
        set_exec_work(call, exec, node, work)
    }

    /// Changes a kernel node of an instantiated graph.
    fn cuGraphExecKernelNodeSetParams_v2(call, exec: usize, node: usize, params: In<DriverKernelNodeParams>) {
        let work = driver_launch(call, params)?;
        set_exec_work(call, exec, node, work)
    }

    /// Adds a copy node.
    fn cuGraphAddMemcpyNode(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, params: In<DriverMemcpy3D>, _context: usize) {
        add(call, node, graph, after, count, driver_copy(call, params)?).map(drop)
    }

    /// Changes a copy node.
    fn cuGraphMemcpyNodeSetParams(call, node: usize, params: In<DriverMemcpy3D>) {
        let work = driver_copy(call, params)?;
        set_work(call, node, work)
    }

    /// Changes a copy node of an instantiated graph.
    fn cuGraphExecMemcpyNodeSetParams(call, exec: usize, node: usize, params: In<DriverMemcpy3D>, _context: usize) {
        let work = driver_copy(call, params)?;
        set_exec_work(call, exec, node, work)
    }

    /// Adds a fill node.
    fn cuGraphAddMemsetNode(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, params: In<MemsetParams>, _context: usize) {
        let work = fill_work(call, &params.get()?)?;
        add(call, node, graph, after, count, work).map(drop)
    }

    /// Changes a fill node of an instantiated graph.
    fn cuGraphExecMemsetNodeSetParams(call, exec: usize, node: usize, params: In<MemsetParams>, _context: usize) {
        let work = fill_work(call, &params.get()?)?;
        set_exec_work(call, exec, node, work)
    }

    /// Adds dependencies.
    fn cuGraphAddDependencies(call, graph: usize, from: In<usize>, to: In<usize>, count: usize) {
        depend(call, graph, &from.get_all(count)?, &to.get_all(count)?, true)
    }

    /// Removes dependencies.
    fn cuGraphRemoveDependencies(call, graph: usize, from: In<usize>, to: In<usize>, count: usize) {
        depend(call, graph, &from.get_all(count)?, &to.get_all(count)?, false)
    }

    /// Returns the edges of a graph.
    fn cuGraphGetEdges(call, graph: usize, from: Out<usize>, to: Out<usize>, count: Out<usize>) {
        answer_edges(call, graph, from, to, Out::at(0), count)
    }

    /// Returns the nodes that a node depends on.
    fn cuGraphNodeGetDependencies(call, node: usize, nodes: Out<usize>, count: Out<usize>) {
        answer_neighbours(call, node, true, nodes, Out::at(0), count)
    }

    /// Returns the nodes that depend on a node.
    fn cuGraphNodeGetDependentNodes(call, node: usize, nodes: Out<usize>, count: Out<usize>) {
        answer_neighbours(call, node, false, nodes, Out::at(0), count)
    }

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
