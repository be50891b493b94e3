//! Dominators.
//!
//! `a` dominates `b` if every path from the entry to `b` goes through `a`; a block dominates itself.
//! Unreachable blocks have no immediate dominator, dominate nothing and are dominated by nothing.

use crate::cfg::Cfg;
use crate::tree::Tree;
use broadloom_ptx::Block;
use cranelift_entity::SecondaryMap;

/// Dominators of a function's blocks.
#[derive(Clone, Debug)]
pub struct Dominators {
    /// Dominator tree. Nodes are indices in the order of the graph.
    tree: Tree,
    position: SecondaryMap<Block, Option<u32>>,
    order: Vec<Block>,
    children: SecondaryMap<Block, Vec<Block>>,
}

impl Dominators {
    /// Computes the dominators of the blocks of a graph.
    pub fn new(cfg: &Cfg) -> Dominators {
        let tree = Tree::new(0, &successors(cfg));
        let mut position = SecondaryMap::new();
        let mut children = SecondaryMap::new();
        for (index, block) in cfg.order().iter().enumerate() {
            position[*block] = Some(index as u32);
            children[*block] = tree.children(index as u32).iter().map(|child| cfg.order()[*child as usize]).collect();
        }
        Dominators { tree, position, order: cfg.order().to_vec(), children }
    }

    /// Returns the nearest other block that dominates this one. The entry and unreachable blocks have none.
    pub fn immediate(&self, block: Block) -> Option<Block> {
        let parent = self.tree.parent(self.position[block]?)?;
        Some(self.order[parent as usize])
    }

    /// Returns whether every path from the entry to `b` goes through `a`. Constant time.
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        self.position[a].zip(self.position[b]).is_some_and(|(a, b)| self.tree.dominates(a, b))
    }

    /// Returns whether `a` dominates `b` and differs from it.
    pub fn strictly_dominates(&self, a: Block, b: Block) -> bool {
        a != b && self.dominates(a, b)
    }

    /// Returns the blocks whose immediate dominator this is.
    pub fn children(&self, block: Block) -> &[Block] {
        &self.children[block]
    }

    /// Returns the nearest block that dominates both; `None` if one of them is unreachable.
    pub fn common(&self, a: Block, b: Block) -> Option<Block> {
        let found = self.tree.common(self.position[a]?, self.position[b]?)?;
        Some(self.order[found as usize])
    }

    /// Returns all reachable blocks, each after its immediate dominator and directly followed by all blocks
    /// that it dominates.
    pub fn preorder(&self) -> Vec<Block> {
        let mut blocks = Vec::with_capacity(self.order.len());
        let mut stack: Vec<Block> = self.order.first().copied().into_iter().collect();
        while let Some(block) = stack.pop() {
            blocks.push(block);
            stack.extend(self.children[block].iter().rev());
        }
        blocks
    }

    /// Returns the dominance frontier of each block: the targets of edges out of blocks that it dominates
    /// which it does not strictly dominate itself. Each block once, in reverse post-order.
    pub fn frontiers(&self, cfg: &Cfg) -> SecondaryMap<Block, Vec<Block>> {
        let mut all = SecondaryMap::new();
        for (index, frontier) in self.tree.frontiers(&successors(cfg)).into_iter().enumerate() {
            all[self.order[index]] = frontier.into_iter().map(|node| self.order[node as usize]).collect();
        }
        all
    }
}

/// Returns the edges between indices in the order of the graph.
fn successors(cfg: &Cfg) -> Vec<Vec<u32>> {
    let targets = |block: &Block| cfg.successors(*block).iter().filter_map(|target| cfg.position(*target)).collect();
    cfg.order().iter().map(targets).collect()
}
