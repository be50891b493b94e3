//! Post-dominators.
//!
//! `a` post-dominates `b` if every path from `b` to the end goes through `a`. The end is a virtual exit to
//! which all blocks without successors lead. **Blocks from which no path leads to the end** (a loop without
//! an exit) are connected as follows: of the reachable blocks without a path to the virtual exit, the last in
//! reverse post-order gets an edge to it, until none is left. An endless loop therefore counts as one that
//! could be left after its last block.

use crate::cfg::Cfg;
use crate::tree::Tree;
use broadloom_ptx::Block;
use cranelift_entity::SecondaryMap;

/// Post-dominators of a function's blocks.
#[derive(Clone, Debug)]
pub struct PostDominators {
    /// Tree. Nodes are indices in the order of the graph, followed by the virtual exit.
    tree: Tree,
    position: SecondaryMap<Block, Option<u32>>,
    order: Vec<Block>,
    children: SecondaryMap<Block, Vec<Block>>,
    roots: Vec<Block>,
    connected: Vec<Block>,
}

impl PostDominators {
    /// Computes the post-dominators of the blocks of a graph.
    pub fn new(cfg: &Cfg) -> PostDominators {
        let order = cfg.order();
        let mut position = SecondaryMap::new();
        for (index, block) in order.iter().enumerate() {
            position[*block] = Some(index as u32);
        }
        let exit = order.len() as u32;
        // Reversed graph.
        let mut backward: Vec<Vec<u32>> = order
            .iter()
            .map(|block| cfg.predecessors(*block).iter().filter_map(|from| position[*from]).collect())
            .chain([vec![]])
            .collect();
        let mut leads_out = vec![false; order.len()];
        let mut connected = vec![];
        let ends: Vec<u32> = cfg.exits().filter_map(|block| position[block]).collect();
        for end in &ends {
            mark(*end, &backward, &mut leads_out);
        }
        let mut into_exit = ends;
        for index in (0..exit).rev() {
            if !leads_out[index as usize] {
                connected.push(order[index as usize]);
                into_exit.push(index);
                mark(index, &backward, &mut leads_out);
            }
        }
        backward[exit as usize] = into_exit;
        let tree = Tree::new(exit, &backward);
        let blocks = |node| tree.children(node).iter().map(|child| order[*child as usize]).collect();
        let mut children = SecondaryMap::new();
        for (index, block) in order.iter().enumerate() {
            children[*block] = blocks(index as u32);
        }
        let roots = blocks(exit);
        PostDominators { tree, position, order: order.to_vec(), children, roots, connected }
    }

    /// Returns the nearest other block that post-dominates this one. Returns `None` if that is the virtual
    /// exit, or if the block is unreachable.
    pub fn immediate(&self, block: Block) -> Option<Block> {
        let parent = self.tree.parent(self.position[block]?)?;
        self.order.get(parent as usize).copied()
    }

    /// Returns whether every path from `b` to the end goes through `a`. Constant time.
    pub fn post_dominates(&self, a: Block, b: Block) -> bool {
        self.position[a].zip(self.position[b]).is_some_and(|(a, b)| self.tree.dominates(a, b))
    }

    /// Returns the blocks whose immediate post-dominator this is.
    pub fn children(&self, block: Block) -> &[Block] {
        &self.children[block]
    }

    /// Returns the blocks whose immediate post-dominator is the virtual exit.
    pub fn roots(&self) -> &[Block] {
        &self.roots
    }

    /// Returns the blocks that got an edge to the virtual exit because no path leads out of them.
    pub fn connected(&self) -> &[Block] {
        &self.connected
    }

    /// Returns the nearest block that post-dominates both; `None` if that is the virtual exit.
    pub fn common(&self, a: Block, b: Block) -> Option<Block> {
        let found = self.tree.common(self.position[a]?, self.position[b]?)?;
        self.order.get(found as usize).copied()
    }

    /// Returns, for each block, the blocks whose branch decides whether control reaches it: `b` depends on
    /// `a` if `b` post-dominates a successor of `a` and does not strictly post-dominate `a`. Edges to the
    /// virtual exit count, so the contents of an endless loop depend on the block that was connected. Each
    /// block once, in reverse post-order.
    pub fn control_dependence(&self, cfg: &Cfg) -> SecondaryMap<Block, Vec<Block>> {
        let mut all: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
        for (index, block) in self.order.iter().enumerate() {
            let end = self.tree.parent(index as u32);
            for target in cfg.successors(*block) {
                let mut node = self.position[*target];
                while let Some(place) = node.filter(|_| node != end) {
                    if let Some(dependent) = self.order.get(place as usize) {
                        all[*dependent].push(*block);
                    }
                    node = self.tree.parent(place);
                }
            }
        }
        for block in &self.order {
            all[*block].dedup();
        }
        all
    }
}

/// Marks a node and all nodes from which it is reachable.
fn mark(from: u32, backward: &[Vec<u32>], marked: &mut [bool]) {
    let mut work = vec![from];
    while let Some(node) = work.pop() {
        if !std::mem::replace(&mut marked[node as usize], true) {
            work.extend(&backward[node as usize]);
        }
    }
}
