//! Natural loops and their nesting.
//!
//! An edge back to a block that dominates its source makes that block the header of a loop. The loop is the
//! header and all blocks from which such an edge is reachable without going through the header. Loops with
//! one header are one loop. Two loops are disjoint or nested.
//!
//! A cycle without such an edge is not a loop: an edge that goes back in reverse post-order to a block that
//! does not dominate its source makes the graph *irreducible*. Those edges are listed.

use crate::cfg::Cfg;
use crate::dominators::Dominators;
use broadloom_ptx::Block;
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};

/// Id of a loop of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Loop(u32);
entity_impl!(Loop, "loop");

/// A loop: its header, its blocks, the loop around it.
#[derive(Clone, Debug)]
pub struct LoopData {
    /// Block at which control enters.
    pub header: Block,
    /// Blocks with an edge back to the header, in reverse post-order.
    pub latches: Vec<Block>,
    /// All blocks, in reverse post-order: the header first, including those of inner loops.
    pub blocks: Vec<Block>,
    /// Edges out of the loop, from a block inside to one outside, in reverse post-order of their source; each
    /// once.
    pub exits: Vec<(Block, Block)>,
    /// Loop directly around it.
    pub parent: Option<Loop>,
    /// Nesting depth of a block directly inside: 1 for an outermost loop.
    pub depth: u32,
}

/// Loops of a function.
#[derive(Clone, Debug)]
pub struct Loops {
    loops: PrimaryMap<Loop, LoopData>,
    innermost: SecondaryMap<Block, Option<Loop>>,
    irreducible: Vec<(Block, Block)>,
}

impl Loops {
    /// Computes the loops of a graph.
    pub fn new(cfg: &Cfg, dominators: &Dominators) -> Loops {
        let mut loops: PrimaryMap<Loop, LoopData> = PrimaryMap::new();
        let mut innermost: SecondaryMap<Block, Option<Loop>> = SecondaryMap::new();
        let mut irreducible = vec![];
        for block in cfg.order() {
            for target in cfg.successors(*block) {
                if cfg.position(*target) <= cfg.position(*block) && !dominators.dominates(*target, *block) {
                    irreducible.push((*block, *target));
                }
            }
        }
        irreducible.dedup();
        // A header comes before those of the loops inside its own, so loops are built from the outside in.
        for header in cfg.order() {
            let mut latches: Vec<Block> = cfg.predecessors(*header).to_vec();
            latches.retain(|from| dominators.dominates(*header, *from));
            if latches.is_empty() {
                continue;
            }
            latches.sort_by_key(|block| cfg.position(*block));
            latches.dedup();
            let parent = innermost[*header];
            let depth = parent.map_or(0, |parent| loops[parent].depth) + 1;
            let id = loops.push(LoopData { header: *header, latches, blocks: vec![*header], exits: vec![], parent, depth });
            innermost[*header] = Some(id);
            let mut work = loops[id].latches.clone();
            while let Some(block) = work.pop() {
                if block != *header && innermost[block].replace(id) != Some(id) {
                    loops[id].blocks.push(block);
                    work.extend(cfg.predecessors(block));
                }
            }
            loops[id].blocks.sort_by_key(|block| cfg.position(*block));
        }
        let mut found = Loops { loops, innermost, irreducible };
        for id in found.loops.keys() {
            let inside = &found.loops[id].blocks;
            let edges = inside.iter().flat_map(|block| cfg.successors(*block).iter().map(move |target| (*block, *target)));
            let mut exits: Vec<(Block, Block)> = vec![];
            for edge in edges.filter(|(_, target)| !found.contains(id, *target)) {
                if !exits.contains(&edge) {
                    exits.push(edge);
                }
            }
            found.loops[id].exits = exits;
        }
        found
    }

    /// Returns all loops; an outer one comes before its inner ones.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Loop, &LoopData)> {
        self.loops.iter()
    }

    /// Returns the number of loops.
    pub fn len(&self) -> usize {
        self.loops.len()
    }

    /// Returns whether there are no loops.
    pub fn is_empty(&self) -> bool {
        self.loops.is_empty()
    }

    /// Returns the innermost loop of a block.
    pub fn innermost(&self, block: Block) -> Option<Loop> {
        self.innermost[block]
    }

    /// Returns the loop that a block is the header of.
    pub fn headed_by(&self, block: Block) -> Option<Loop> {
        self.innermost[block].filter(|id| self.loops[*id].header == block)
    }

    /// Returns the number of loops around a block.
    pub fn depth(&self, block: Block) -> u32 {
        self.innermost[block].map_or(0, |id| self.loops[id].depth)
    }

    /// Returns whether a block is in a loop, or in one inside it.
    pub fn contains(&self, id: Loop, block: Block) -> bool {
        self.around(block).any(|around| around == id)
    }

    /// Returns the loops around a block, from the innermost out.
    pub fn around(&self, block: Block) -> impl Iterator<Item = Loop> + '_ {
        std::iter::successors(self.innermost[block], |id| self.loops[*id].parent)
    }

    /// Returns whether every cycle of the graph is a loop.
    pub fn is_reducible(&self) -> bool {
        self.irreducible.is_empty()
    }

    /// Returns the edges that go back to a block that does not dominate their source.
    pub fn irreducible_edges(&self) -> &[(Block, Block)] {
        &self.irreducible
    }

    /// Returns the blocks of a reducible graph, each before its successors except for edges back to the
    /// header of a loop, with all blocks of a loop contiguous.
    pub fn contiguous_order(&self, cfg: &Cfg) -> Vec<Block> {
        let mut order = Vec::with_capacity(cfg.order().len());
        let mut done: SecondaryMap<Block, bool> = SecondaryMap::new();
        // Remaining work of each level: the whole function, then a loop, then one inside it.
        let mut levels = vec![(cfg.order(), 0)];
        while let Some((blocks, next)) = levels.last_mut() {
            let Some(block) = blocks.get(*next).copied() else {
                levels.pop();
                continue;
            };
            *next += 1;
            if std::mem::replace(&mut done[block], true) {
                continue;
            }
            order.push(block);
            if let Some(id) = self.headed_by(block) {
                levels.push((&self.loops[id].blocks, 1));
            }
        }
        order
    }
}

impl std::ops::Index<Loop> for Loops {
    type Output = LoopData;

    fn index(&self, id: Loop) -> &LoopData {
        &self.loops[id]
    }
}

impl LoopData {
    /// Returns the blocks outside to which control may leave, each once, in the order of the exits.
    pub fn exit_targets(&self) -> Vec<Block> {
        let mut targets: Vec<Block> = vec![];
        for (_, target) in &self.exits {
            if !targets.contains(target) {
                targets.push(*target);
            }
        }
        targets
    }
}
