//! Control-flow graph.

use broadloom_ptx::{Block, Function};
use cranelift_entity::SecondaryMap;

/// Control-flow graph of a function with a body, in either form.
#[derive(Clone, Debug)]
pub struct Cfg {
    entry: Block,
    successors: SecondaryMap<Block, Vec<Block>>,
    predecessors: SecondaryMap<Block, Vec<Block>>,
    /// Reachable blocks, each before its successors except for back edges.
    order: Vec<Block>,
    position: SecondaryMap<Block, Option<u32>>,
}

impl Cfg {
    /// Builds the graph of a function; returns `None` if it has no body.
    pub fn new(function: &Function) -> Option<Cfg> {
        Some(Cfg::from_successors(function.entry()?, function.successors()))
    }

    /// Builds a graph from its edges. A block may lead to another more than once.
    pub fn from_successors(entry: Block, successors: SecondaryMap<Block, Vec<Block>>) -> Cfg {
        let order = reverse_post_order(entry, &successors);
        let mut position = SecondaryMap::new();
        let mut predecessors: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
        for (index, block) in order.iter().enumerate() {
            position[*block] = Some(index as u32);
            for target in &successors[*block] {
                predecessors[*target].push(*block);
            }
        }
        Cfg { entry, successors, predecessors, order, position }
    }

    /// Returns the entry block.
    pub fn entry(&self) -> Block {
        self.entry
    }

    /// Returns the successors of a block, in the order of its edges.
    pub fn successors(&self, block: Block) -> &[Block] {
        &self.successors[block]
    }

    /// Returns the reachable predecessors of a block, one entry per edge.
    pub fn predecessors(&self, block: Block) -> &[Block] {
        &self.predecessors[block]
    }

    /// Returns whether a block is reachable.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.position[block].is_some()
    }

    /// Returns all reachable blocks in reverse post-order.
    pub fn order(&self) -> &[Block] {
        &self.order
    }

    /// Returns the index of a block in [`Cfg::order`].
    pub fn position(&self, block: Block) -> Option<u32> {
        self.position[block]
    }

    /// Returns the blocks without successors: control returns, exits or traps there.
    pub fn exits(&self) -> impl Iterator<Item = Block> + '_ {
        self.order.iter().copied().filter(|block| self.successors[*block].is_empty())
    }
}

/// Computes the reverse post-order without recursion: functions may have any number of blocks.
fn reverse_post_order(entry: Block, successors: &SecondaryMap<Block, Vec<Block>>) -> Vec<Block> {
    let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
    let mut order = vec![];
    let mut stack = vec![(entry, 0)];
    seen[entry] = true;
    while let Some((block, next)) = stack.last_mut() {
        match successors[*block].get(*next) {
            Some(target) => {
                *next += 1;
                if !std::mem::replace(&mut seen[*target], true) {
                    stack.push((*target, 0));
                }
            }
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}
