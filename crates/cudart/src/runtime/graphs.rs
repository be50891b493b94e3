//! Graphs.

use crate::boundary::{Call, exported};
use crate::objects::boxes::{CopyBox, Direction};
use crate::objects::work::Work;
use crate::pointer::{In, Out};
use crate::runtime::symbols;
use crate::status::{Outcome, Status};
use crate::types::{GraphNodeParams, KernelNodeParams, Memcpy3DParms, MemsetParams};
use crate::version::runtime_version;

pub(crate) use crate::shared_api::graphs::*;

/// Returns the number of edges. In the CUDA 13 runtime a list of edge data comes before it.
fn edge_count(third: usize, fourth: usize) -> usize {
    if runtime_version() >= 13 { fourth } else { third }
}

/// Builds a copy of contiguous bytes.
fn bytes_work(call: &Call, to: u64, from: u64, bytes: usize, kind: u32) -> Outcome<Work> {
    copy_work(call, CopyBox::linear(to, from, bytes), Direction::new(kind)?)
}

node_functions! { runtime
    (call, params: In<KernelNodeParams>) => kernel_work(call, &params.get()?)?;
    add(cudaGraphAddKernelNode) set(cudaGraphKernelNodeSetParams) exec(cudaGraphExecKernelNodeSetParams);

    (call, params: In<Memcpy3DParms>) => box_work(call, &params.get()?)?;
    add(cudaGraphAddMemcpyNode) set(cudaGraphMemcpyNodeSetParams) exec(cudaGraphExecMemcpyNodeSetParams);

    (call, to: u64, from: u64, bytes: usize, kind: u32) => bytes_work(call, to, from, bytes, kind)?;
    add(cudaGraphAddMemcpyNode1D) set(cudaGraphMemcpyNodeSetParams1D) exec(cudaGraphExecMemcpyNodeSetParams1D);

    (call, symbol: usize, from: u64, bytes: usize, offset: usize, kind: u32)
        => bytes_work(call, symbols::place(call, symbol, bytes, offset)?, from, bytes, kind)?;
    add(cudaGraphAddMemcpyNodeToSymbol) set(cudaGraphMemcpyNodeSetParamsToSymbol) exec(cudaGraphExecMemcpyNodeSetParamsToSymbol);

    (call, to: u64, symbol: usize, bytes: usize, offset: usize, kind: u32)
        => bytes_work(call, to, symbols::place(call, symbol, bytes, offset)?, bytes, kind)?;
    add(cudaGraphAddMemcpyNodeFromSymbol) set(cudaGraphMemcpyNodeSetParamsFromSymbol) exec(cudaGraphExecMemcpyNodeSetParamsFromSymbol);

    (call, params: In<MemsetParams>) => fill_work(call, &params.get()?)?;
    add(cudaGraphAddMemsetNode) exec(cudaGraphExecMemsetNodeSetParams);

    (call, params: Out<GraphNodeParams>) => any_work(call, &params.get()?, params, StructureFlavour::Runtime)?;
    set(cudaGraphNodeSetParams) exec(cudaGraphExecNodeSetParams);
}

exported! { runtime
    /// Returns the edges of a graph. In the CUDA 13 runtime a list of edge data comes before the count.
    fn cudaGraphGetEdges(call, graph: usize, from: Out<usize>, to: Out<usize>, third: usize, fourth: usize) {
        let plain = if runtime_version() >= 13 { third } else { 0 };
        answer_edges(call, graph, from, to, Out::at(plain), Out::at(edge_count(third, fourth)))
    }

    fn cudaGraphAddNode(call, node: Out<usize>, graph: usize, after: In<usize>, third: usize, fourth: usize, fifth: usize) {
        let (count, params) = if runtime_version() >= 13 { (fourth, fifth) } else { (third, fourth) };
        add_any(call, node, graph, after, count, Out::at(params), StructureFlavour::Runtime)
    }

    /// Adds a node of any kind, with edge data.
    fn cudaGraphAddNode_v2(call, node: Out<usize>, graph: usize, after: In<usize>, _data: usize, count: usize, params: Out<GraphNodeParams>)
        => add_any(call, node, graph, after, count, params, StructureFlavour::Runtime);
    fn cudaGraphNodeGetDependencies(call, node: usize, nodes: Out<usize>, third: usize, fourth: usize)
        => answer(&neighbours(call, node, true)?, nodes, Out::at(edge_count(third, fourth)));
    fn cudaGraphNodeGetDependentNodes(call, node: usize, nodes: Out<usize>, third: usize, fourth: usize)
        => answer(&neighbours(call, node, false)?, nodes, Out::at(edge_count(third, fourth)));

    fn cudaGraphAddDependencies(call, graph: usize, from: In<usize>, to: In<usize>, third: usize, fourth: usize) {
        let count = edge_count(third, fourth);
        depend(call, graph, &from.get_all(count)?, &to.get_all(count)?, true)
    }

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
}
