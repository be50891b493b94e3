//! Graphs.

use crate::boundary::exported;
use crate::objects::boxes::{CopyBox, Direction};
use crate::pointer::{In, Out};
use crate::runtime::symbols;
use crate::status::Status;
use crate::types::{GraphNodeParams, KernelNodeParams, Memcpy3DParms, MemsetParams};
use crate::version::runtime_version;

pub(crate) use crate::shared_api::graphs::*;

/// Returns the number of edges. In the CUDA 13 runtime a list of edge data comes before it.
fn edge_count(third: usize, fourth: usize) -> usize {
    if runtime_version() >= 13 { fourth } else { third }
}

exported! { runtime
    /// Adds a kernel node.
    fn cudaGraphAddKernelNode(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, params: In<KernelNodeParams>) {
        let work = kernel_work(call, &params.get()?)?;
        add(call, node, graph, after, count, work).map(drop)
    }

    /// Adds a node that copies a box.
    fn cudaGraphAddMemcpyNode(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, params: In<Memcpy3DParms>) {
        let work = box_work(call, &params.get()?)?;
        add(call, node, graph, after, count, work).map(drop)
    }

    /// Adds a node that copies bytes.
    fn cudaGraphAddMemcpyNode1D(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, to: u64, from: u64, bytes: usize, kind: u32) {
        let work = copy_work(call, CopyBox::linear(to, from, bytes), Direction::new(kind)?)?;
        add(call, node, graph, after, count, work).map(drop)
    }

    /// Adds a node that copies to a variable.
    fn cudaGraphAddMemcpyNodeToSymbol(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, symbol: usize, from: u64, bytes: usize, offset: usize, kind: u32) {
        let to = symbols::place(call, symbol, bytes, offset)?;
        let work = copy_work(call, CopyBox::linear(to, from, bytes), Direction::new(kind)?)?;
        add(call, node, graph, after, count, work).map(drop)
    }

    /// Adds a node that copies from a variable.
    fn cudaGraphAddMemcpyNodeFromSymbol(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, to: u64, symbol: usize, bytes: usize, offset: usize, kind: u32) {
        let from = symbols::place(call, symbol, bytes, offset)?;
        let work = copy_work(call, CopyBox::linear(to, from, bytes), Direction::new(kind)?)?;
        add(call, node, graph, after, count, work).map(drop)
    }

    /// Adds a fill node.
    fn cudaGraphAddMemsetNode(call, node: Out<usize>, graph: usize, after: In<usize>, count: usize, params: In<MemsetParams>) {
        let work = fill_work(call, &params.get()?)?;
        add(call, node, graph, after, count, work).map(drop)
    }

    /// Returns the edges of a graph. In the CUDA 13 runtime a list of edge data comes before the count.
    fn cudaGraphGetEdges(call, graph: usize, from: Out<usize>, to: Out<usize>, third: usize, fourth: usize) {
        let plain = if runtime_version() >= 13 { third } else { 0 };
        answer_edges(call, graph, from, to, Out::at(plain), Out::at(edge_count(third, fourth)))
    }

    /// Adds a node of any kind.
    fn cudaGraphAddNode(call, node: Out<usize>, graph: usize, after: In<usize>, third: usize, fourth: usize, fifth: usize) {
        let (count, params) = if runtime_version() >= 13 { (fourth, fifth) } else { (third, fourth) };
        add_any(call, node, graph, after, count, Out::at(params), Library::Runtime)
    }

    /// Adds a node of any kind, with edge data.
    fn cudaGraphAddNode_v2(call, node: Out<usize>, graph: usize, after: In<usize>, _data: usize, count: usize, params: Out<GraphNodeParams>) {
        add_any(call, node, graph, after, count, params, Library::Runtime)
    }

    /// Changes a node of any kind.
    fn cudaGraphNodeSetParams(call, node: usize, params: Out<GraphNodeParams>) {
        let work = any_work(call, &params.get()?, params, Library::Runtime)?;
        set_work(call, node, work)
    }

    /// Changes a node of any kind in an instantiated graph.
    fn cudaGraphExecNodeSetParams(call, exec: usize, node: usize, params: Out<GraphNodeParams>) {
        let work = any_work(call, &params.get()?, params, Library::Runtime)?;
        set_exec_work(call, exec, node, work)
    }

    /// Changes a copy to a variable.
    fn cudaGraphMemcpyNodeSetParamsToSymbol(call, node: usize, symbol: usize, from: u64, bytes: usize, offset: usize, kind: u32) {
        let to = symbols::place(call, symbol, bytes, offset)?;
        let work = copy_work(call, CopyBox::linear(to, from, bytes), Direction::new(kind)?)?;
        set_work(call, node, work)
    }

    /// Changes a copy from a variable.
    fn cudaGraphMemcpyNodeSetParamsFromSymbol(call, node: usize, to: u64, symbol: usize, bytes: usize, offset: usize, kind: u32) {
        let from = symbols::place(call, symbol, bytes, offset)?;
        let work = copy_work(call, CopyBox::linear(to, from, bytes), Direction::new(kind)?)?;
        set_work(call, node, work)
    }

    /// Changes a copy to a variable in an instantiated graph.
    fn cudaGraphExecMemcpyNodeSetParamsToSymbol(call, exec: usize, node: usize, symbol: usize, from: u64, bytes: usize, offset: usize, kind: u32) {
        let to = symbols::place(call, symbol, bytes, offset)?;
        let work = copy_work(call, CopyBox::linear(to, from, bytes), Direction::new(kind)?)?;
        set_exec_work(call, exec, node, work)
    }

    /// Changes a copy from a variable in an instantiated graph.
    fn cudaGraphExecMemcpyNodeSetParamsFromSymbol(call, exec: usize, node: usize, to: u64, symbol: usize, bytes: usize, offset: usize, kind: u32) {
        let from = symbols::place(call, symbol, bytes, offset)?;
        let work = copy_work(call, CopyBox::linear(to, from, bytes), Direction::new(kind)?)?;
        set_exec_work(call, exec, node, work)
    }

    /// Returns the nodes that a node depends on.
    fn cudaGraphNodeGetDependencies(call, node: usize, nodes: Out<usize>, third: usize, fourth: usize) {
        answer(&neighbours(call, node, true)?, nodes, Out::at(edge_count(third, fourth)))
    }

    /// Returns the nodes that depend on a node.
    fn cudaGraphNodeGetDependentNodes(call, node: usize, nodes: Out<usize>, third: usize, fourth: usize) {
        answer(&neighbours(call, node, false)?, nodes, Out::at(edge_count(third, fourth)))
    }

    /// Adds dependencies.
    fn cudaGraphAddDependencies(call, graph: usize, from: In<usize>, to: In<usize>, third: usize, fourth: usize) {
        let count = edge_count(third, fourth);
        depend(call, graph, &from.get_all(count)?, &to.get_all(count)?, true)
    }

    /// Removes dependencies.
    fn cudaGraphRemoveDependencies(call, graph: usize, from: In<usize>, to: In<usize>, third: usize, fourth: usize) {
        let count = edge_count(third, fourth);
        depend(call, graph, &from.get_all(count)?, &to.get_all(count)?, false)
    }

    /// Instantiates a graph. Up to CUDA 11 the third and later words are for messages.
    fn cudaGraphInstantiate(call, exec: Out<usize>, graph: usize, flags: u64) {
        exec.wanted()?;
        let flags = if runtime_version() >= 12 { flags } else { 0 };
        exec.set(call.runtime.instantiate(&*call.runtime.graphs.get(graph)?, flags)?)
    }

    /// Updates an instantiated graph from a graph of the same structure. Returns the result and the node that
    /// did not match.
    fn cudaGraphExecUpdate(call, exec: usize, graph: usize, third: usize, fourth: usize) {
        let (result, node) = update(call, exec, graph)?;
        if runtime_version() >= 12 {
            // Result with padding, mismatching node, and source node of a mismatching edge.
            Out::<[usize; 3]>::at(third).set_if_wanted([result as usize, node, 0]);
        } else {
            Out::<usize>::at(third).set_if_wanted(node);
            Out::<u32>::at(fourth).set_if_wanted(result);
        }
        if result == 0 { Ok(()) } else { Err(Status::GRAPH_EXEC_UPDATE_FAILURE) }
    }

    /// Changes a kernel node.
    fn cudaGraphKernelNodeSetParams(call, node: usize, params: In<KernelNodeParams>) {
        let work = kernel_work(call, &params.get()?)?;
        set_work(call, node, work)
    }

    /// Changes a kernel node of an instantiated graph.
    fn cudaGraphExecKernelNodeSetParams(call, exec: usize, node: usize, params: In<KernelNodeParams>) {
        let work = kernel_work(call, &params.get()?)?;
        set_exec_work(call, exec, node, work)
    }

    /// Changes a copy node.
    fn cudaGraphMemcpyNodeSetParams(call, node: usize, params: In<Memcpy3DParms>) {
        let work = box_work(call, &params.get()?)?;
        set_work(call, node, work)
    }

    /// Changes a copy of bytes.
    fn cudaGraphMemcpyNodeSetParams1D(call, node: usize, to: u64, from: u64, bytes: usize, kind: u32) {
        let work = copy_work(call, CopyBox::linear(to, from, bytes), Direction::new(kind)?)?;
        set_work(call, node, work)
    }

    /// Changes a copy node of an instantiated graph.
    fn cudaGraphExecMemcpyNodeSetParams(call, exec: usize, node: usize, params: In<Memcpy3DParms>) {
        let work = box_work(call, &params.get()?)?;
        set_exec_work(call, exec, node, work)
    }

    /// Changes a copy of bytes in an instantiated graph.
    fn cudaGraphExecMemcpyNodeSetParams1D(call, exec: usize, node: usize, to: u64, from: u64, bytes: usize, kind: u32) {
        let work = copy_work(call, CopyBox::linear(to, from, bytes), Direction::new(kind)?)?;
        set_exec_work(call, exec, node, work)
    }

    /// Changes a fill node of an instantiated graph.
    fn cudaGraphExecMemsetNodeSetParams(call, exec: usize, node: usize, params: In<MemsetParams>) {
        let work = fill_work(call, &params.get()?)?;
        set_exec_work(call, exec, node, work)
    }
}
