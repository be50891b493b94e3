//! Which block leads to which.

use broadloom_ptx::{Block, Function};
use cranelift_entity::SecondaryMap;

/// The control-flow graph of a function with a body, in either form.
#[derive(Clone, Debug)]
pub struct Cfg {
    entry: Block,
    successors: SecondaryMap<Block, Vec<Block>>,
    predecessors: SecondaryMap<Block, Vec<Block>>,
    /// Blocks that control can reach, each before its successors but for back edges.
    order: Vec<Block>,
    position: SecondaryMap<Block, Option<u32>>,
}

impl Cfg {
    /// The graph of a function; `None` when it has no body.
    pub fn new(function: &Function) -> Option<Cfg> {
        Some(Cfg::from_successors(function.entry()?, function.successors()))
    }

    /// A graph from nothing but its edges. A block may lead to another more than once.
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

    /// Where control starts.
    pub fn entry(&self) -> Block {
        self.entry
    }

    /// Where control may go behind a block, in the order of its edges.
    pub fn successors(&self, block: Block) -> &[Block] {
        &self.successors[block]
    }

    /// Blocks that control can reach and that lead to this one, one entry per edge.
    pub fn predecessors(&self, block: Block) -> &[Block] {
        &self.predecessors[block]
    }

    /// Whether control can reach a block.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.position[block].is_some()
    }

    /// All blocks that control can reach in reverse post-order.
    pub fn order(&self) -> &[Block] {
        &self.order
    }

    /// The place of a block in [`Cfg::order`].
    pub fn position(&self, block: Block) -> Option<u32> {
        self.position[block]
    }

    /// Blocks that lead nowhere: control returns, exits or traps there.
    pub fn exits(&self) -> impl Iterator<Item = Block> + '_ {
        self.order.iter().copied().filter(|block| self.successors[*block].is_empty())
    }
}

/// Without recursion: functions may have any number of blocks.
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
