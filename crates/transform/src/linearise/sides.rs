//! Branch decisions of lanes, and the blocks that lanes reach apart from others.

use broadloom_analysis::{Cfg, PostDominators};
use broadloom_ptx::{Block, Function, InstData};
use cranelift_entity::SecondaryMap;
use std::collections::{BTreeMap, HashSet};

/// Branch decision of lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    /// Block that ends in the branch.
    pub(super) head: Block,
    /// Index of the edge, if only one leads there.
    pub(super) edge: Option<usize>,
}

/// Returns the blocks that lanes may reach apart from others that have a counted instruction ahead, and the
/// branch decisions that lead there.
pub(super) fn apart_from(
    function: &Function,
    cfg: &Cfg,
    is_divergent: &dyn Fn(Block) -> bool,
    counts: &dyn Fn(&InstData) -> bool,
) -> BTreeMap<Block, Vec<Side>> {
    let holds = |block: &Block| function.blocks[*block].insts.iter().any(|inst| counts(&function.insts[*inst]));
    let mut relevant: HashSet<Block> = HashSet::new();
    let mut work: Vec<Block> = cfg.order().iter().copied().filter(holds).collect();
    while let Some(block) = work.pop() {
        if relevant.insert(block) {
            work.extend(cfg.predecessors(block));
        }
    }
    let mut found: BTreeMap<Block, Vec<Side>> = BTreeMap::new();
    if !relevant.contains(&cfg.entry()) {
        return found;
    }
    let mut successors: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
    for block in cfg.order().iter().filter(|block| relevant.contains(*block)) {
        successors[*block] = cfg.successors(*block).iter().copied().filter(|to| relevant.contains(to)).collect();
    }
    let graph = Cfg::from_successors(cfg.entry(), successors);
    let joins = PostDominators::new(&graph);
    for head in graph.order() {
        if function.blocks[*head].edges.len() < 2 || !is_divergent(*head) {
            continue;
        }
        let join = joins.immediate(*head);
        let mut ways: BTreeMap<Block, Option<usize>> = BTreeMap::new();
        for (edge, to) in function.blocks[*head].edges.iter().enumerate() {
            let mut seen: HashSet<Block> = HashSet::new();
            let mut work = vec![to.target];
            while let Some(block) = work.pop() {
                if Some(block) != join && relevant.contains(&block) && seen.insert(block) {
                    ways.entry(block).and_modify(|way| *way = None).or_insert(Some(edge));
                    work.extend(graph.successors(block));
                }
            }
        }
        for (block, edge) in ways {
            found.entry(block).or_default().push(Side { head: *head, edge });
        }
    }
    found
}
