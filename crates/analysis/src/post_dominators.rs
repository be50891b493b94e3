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

    /// Returns whether `a` post-dominates `b` and differs from it.
    pub fn strictly_post_dominates(&self, a: Block, b: Block) -> bool {
        a != b && self.post_dominates(a, b)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, blocks, graph, random_graph, reaches};

    /// Returns whether a path leads from a block to the end that avoids another block.
    fn gets_out(cfg: &Cfg, count: usize, from: Block, without: Option<Block>, connected: &[Block]) -> bool {
        let end = |block: &Block| cfg.successors(*block).is_empty() || connected.contains(block);
        Some(from) != without && reaches(cfg, count, from, without).iter().any(end)
    }

    #[test]
    fn agrees_with_the_definition_on_random_graphs() {
        let mut random = Random::new(3);
        for _ in 0..300 {
            let (cfg, count) = random_graph(&mut random, 14);
            let found = PostDominators::new(&cfg);
            let connected = found.connected();
            let post_dominates = |a: Block, b: Block| {
                let reachable = cfg.is_reachable(a) && cfg.is_reachable(b);
                reachable && (a == b || !gets_out(&cfg, count, b, Some(a), connected))
            };
            let dependence = found.control_dependence(&cfg);
            for a in blocks(count) {
                for b in blocks(count) {
                    assert_eq!(found.post_dominates(a, b), post_dominates(a, b), "{a} {b} in {cfg:?}");
                }
                let above: Vec<Block> = blocks(count).filter(|b| *b != a && post_dominates(*b, a)).collect();
                let nearest = above.iter().find(|b| above.iter().all(|other| post_dominates(*other, **b)));
                assert_eq!(found.immediate(a), nearest.copied());
                let mut expected: Vec<Block> = blocks(count)
                    .filter(|from| cfg.is_reachable(*from) && cfg.successors(*from).iter().any(|to| post_dominates(a, *to)))
                    .filter(|from| a == *from || !post_dominates(a, *from))
                    .collect();
                expected.sort_by_key(|block| cfg.position(*block));
                assert_eq!(dependence[a], expected, "what {a} depends on in {cfg:?}");
            }
        }
    }

    #[test]
    fn only_blocks_without_a_way_out_are_connected() {
        let mut random = Random::new(4);
        let mut endless = 0;
        for _ in 0..300 {
            let (cfg, count) = random_graph(&mut random, 10);
            let found = PostDominators::new(&cfg);
            for block in found.connected() {
                assert!(!gets_out(&cfg, count, *block, None, &[]), "{block} in {cfg:?}");
            }
            assert!(cfg.order().iter().all(|block| gets_out(&cfg, count, *block, None, found.connected())));
            endless += found.connected().len();
        }
        assert!(endless > 20, "the graphs have endless loops: {endless}");
    }

    #[test]
    fn an_endless_loop_ends_behind_its_last_block() {
        let cfg = graph(&[&[1, 3], &[2], &[1], &[]]);
        let found = PostDominators::new(&cfg);
        let block = Block::from_u32;
        assert_eq!(found.connected(), [block(2)].as_slice());
        assert_eq!(found.immediate(block(1)), Some(block(2)));
        assert_eq!(found.immediate(block(0)), None);
        assert_eq!(found.roots().len(), 3);
        assert_eq!(found.common(block(1), block(2)), Some(block(2)));
        assert_eq!(found.common(block(1), block(3)), None);
    }
}
