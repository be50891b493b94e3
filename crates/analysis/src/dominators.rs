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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, blocks, graph, random_graph, reaches};

    /// Checks the definition: without `a`, `b` is unreachable.
    fn dominates(cfg: &Cfg, count: usize, a: Block, b: Block) -> bool {
        cfg.is_reachable(a) && cfg.is_reachable(b) && (a == b || !reaches(cfg, count, cfg.entry(), Some(a)).contains(&b))
    }

    #[test]
    fn agrees_with_the_definition_on_random_graphs() {
        let mut random = Random::new(1);
        for _ in 0..300 {
            let (cfg, count) = random_graph(&mut random, 14);
            let found = Dominators::new(&cfg);
            let frontiers = found.frontiers(&cfg);
            for a in blocks(count) {
                for b in blocks(count) {
                    assert_eq!(found.dominates(a, b), dominates(&cfg, count, a, b), "{a} {b} in {cfg:?}");
                }
                let above: Vec<Block> = blocks(count).filter(|b| *b != a && dominates(&cfg, count, *b, a)).collect();
                let nearest = above.iter().find(|b| above.iter().all(|other| dominates(&cfg, count, *other, **b)));
                assert_eq!(found.immediate(a), nearest.copied());
                if let Some(immediate) = found.immediate(a) {
                    assert!(found.children(immediate).contains(&a));
                }
                let mut expected: Vec<Block> = blocks(count)
                    .filter(|b| cfg.predecessors(*b).iter().any(|from| dominates(&cfg, count, a, *from)))
                    .filter(|b| a == *b || !dominates(&cfg, count, a, *b))
                    .collect();
                expected.sort_by_key(|block| cfg.position(*block));
                assert_eq!(frontiers[a], expected, "frontier of {a} in {cfg:?}");
            }
        }
    }

    #[test]
    fn common_dominators_and_the_walk_of_the_tree() {
        let mut random = Random::new(2);
        for _ in 0..100 {
            let (cfg, count) = random_graph(&mut random, 10);
            let found = Dominators::new(&cfg);
            let preorder = found.preorder();
            assert_eq!(preorder.len(), cfg.order().len());
            for (index, block) in preorder.iter().enumerate() {
                let below = preorder.iter().filter(|other| found.dominates(*block, **other)).count();
                assert!(preorder[index..index + below].iter().all(|other| found.dominates(*block, *other)));
            }
            for (a, b) in blocks(count).flat_map(|a| blocks(count).map(move |b| (a, b))) {
                let both = |c: Block| found.dominates(c, a) && found.dominates(c, b);
                let expected = blocks(count).find(|c| both(*c) && blocks(count).all(|d| !both(d) || found.dominates(d, *c)));
                assert_eq!(found.common(a, b), expected);
            }
        }
    }

    #[test]
    fn a_loop_around_a_branch() {
        let cfg = graph(&[&[1], &[2, 3], &[4], &[4], &[1, 5], &[]]);
        let found = Dominators::new(&cfg);
        let block = Block::from_u32;
        assert_eq!(found.children(block(1)), [block(3), block(2), block(4)].as_slice());
        assert_eq!(found.frontiers(&cfg)[block(4)], vec![block(1)]);
        assert_eq!(found.immediate(block(5)), Some(block(4)));
        assert!(!found.strictly_dominates(block(1), block(1)));
    }
}
