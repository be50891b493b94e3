//! Cleanup of the finished function: removes empty blocks and merges chains of blocks.

use crate::names::Names;
use broadloom_ptx::{Block, Edge, Function, Module, Operand};
use cranelift_entity::SecondaryMap;

/// Cleans up a function in SSA form.
pub(super) fn tidy(module: &Module, function: &mut Function) {
    thread(function);
    function.layout = reachable(function);
    merge(function);
    let mut names = Names::all(module, function);
    let mut next = 0;
    for block in function.layout.clone() {
        name_target(&mut names, &mut next, function, block);
    }
}

/// Redirects edges past empty blocks.
fn thread(function: &mut Function) {
    let empty = |function: &Function, block: Block| {
        let data = &function.blocks[block];
        data.insts.is_empty() && data.params.is_empty() && data.edges.len() == 1
    };
    for block in function.layout.clone() {
        for index in 0..function.blocks[block].edges.len() {
            let mut edge = function.blocks[block].edges[index].clone();
            // A cycle of empty blocks is an endless loop and is kept.
            let mut steps = function.layout.len();
            while empty(function, edge.target) && steps > 0 {
                edge = function.blocks[edge.target].edges[0].clone();
                steps -= 1;
            }
            function.blocks[block].edges[index] = edge;
        }
    }
}

/// Merges a block with its only successor, if that has no other predecessor.
fn merge(function: &mut Function) {
    let mut arrivals: SecondaryMap<Block, u32> = SecondaryMap::new();
    for block in &function.layout {
        function.blocks[*block].edges.iter().for_each(|edge| arrivals[edge.target] += 1);
    }
    let entry = function.entry();
    let mut gone: SecondaryMap<Block, bool> = SecondaryMap::new();
    for block in function.layout.clone() {
        while !gone[block] {
            let data = &function.blocks[block];
            let [Edge { target, .. }] = data.edges.as_slice() else { break };
            let target = *target;
            let ends = data.insts.last().is_some_and(|last| function.insts[*last].is_control());
            let alone = arrivals[target] == 1 && target != block && Some(target) != entry;
            if ends || !alone || !function.blocks[target].params.is_empty() {
                break;
            }
            gone[target] = true;
            let next = std::mem::take(&mut function.blocks[target]);
            let data = &mut function.blocks[block];
            data.insts.extend(next.insts);
            data.edges = next.edges;
        }
    }
    function.layout.retain(|block| !gone[*block]);
}

/// Returns the reachable blocks, each before most of its successors.
fn reachable(function: &Function) -> Vec<Block> {
    let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
    let mut work: Vec<Block> = function.entry().into_iter().collect();
    while let Some(block) = work.pop() {
        if !std::mem::replace(&mut seen[block], true) {
            work.extend(function.blocks[block].edges.iter().map(|edge| edge.target));
        }
    }
    function.layout.iter().copied().filter(|block| seen[*block]).collect()
}

/// Names the target of a branch's first edge with a label.
fn name_target(names: &mut Names<'_>, next: &mut u32, function: &mut Function, block: Block) {
    let data = &function.blocks[block];
    let ([Edge { target, .. }, _], Some(last)) = (data.edges.as_slice(), data.insts.last().copied()) else { return };
    let target = *target;
    if function.blocks[target].label.is_none() {
        function.blocks[target].label = Some(names.next("$step_", next));
    }
    for operand in &mut function.insts[last].operands {
        if let Operand::Label(label) = operand {
            *label = target;
        }
    }
}
