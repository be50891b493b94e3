//! Effects of divergent branches on the lanes of a warp.
//!
//! Lanes run together as follows: **they iterate through a loop together** (a lane that has finished an
//! iteration waits at the header for the others that stay, a lane that has left waits until all have left)
//! **and rejoin where all paths from a branch meet**. Code whose lanes wait elsewhere, or that runs as if
//! they did, is consistent with the results here.
//!
//! From a divergent branch, a label for each of its edges is propagated from block to block, in an order in
//! which loops are contiguous and all paths go forward. A block at which two labels meet is a *join*: lanes
//! reach it with values from different paths. It propagates its own label. Labels that return to the header
//! of a loop around the branch belong to lanes that iterate again. They can leave by any exit later, so all
//! exits get that label. If one label goes back while another one leaves, lanes leave the loop in different
//! iterations. If only one block is left that labels go to, all lanes are together again, unless some have
//! exited.

use crate::bit_set::BitSet;
use crate::cfg::Cfg;
use crate::loops::{Loop, Loops};
use broadloom_ptx::{Block, Function, Opcode};
use cranelift_entity::SecondaryMap;
use std::collections::{BTreeMap, BTreeSet};

/// Region in which lanes that diverge at a branch are on different paths.
#[derive(Clone, Debug, Default)]
pub struct DivergentRegion {
    /// Blocks at which lanes from different paths meet.
    pub joins: BitSet<Block>,
    /// Loops that lanes leave in different iterations.
    pub loops: BTreeSet<Loop>,
    /// Blocks that only some of the lanes may run.
    pub partial: BitSet<Block>,
}

/// Paths of lanes through a reducible graph.
pub struct Paths<'a> {
    cfg: &'a Cfg,
    loops: &'a Loops,
    order: Vec<Block>,
    place: SecondaryMap<Block, u32>,
    /// Blocks at whose end lanes may exit.
    ending: BitSet<Block>,
}

impl<'a> Paths<'a> {
    pub(crate) fn new(function: &Function, cfg: &'a Cfg, loops: &'a Loops) -> Self {
        let ends = |block: &Block| {
            let last = function.blocks[*block].insts.last().map(|inst| &function.insts[*inst]);
            let branches = matches!(last.and_then(|last| last.opcode()), Some(Opcode::Bra | Opcode::BrxIdx));
            cfg.successors(*block).is_empty() || last.is_some_and(|last| last.is_control()) && !branches
        };
        let ending = cfg.order().iter().copied().filter(ends).collect();
        Paths::with_ends(cfg, loops, ending)
    }

    pub fn with_ends(cfg: &'a Cfg, loops: &'a Loops, ending: BitSet<Block>) -> Self {
        let order = loops.contiguous_order(cfg);
        let mut place = SecondaryMap::new();
        for (index, block) in order.iter().enumerate() {
            place[*block] = index as u32;
        }
        Paths { cfg, loops, order, place, ending }
    }

    /// Returns all blocks reachable from a block; itself only if it is on a cycle.
    pub(crate) fn reachable(&self, from: Block) -> BitSet<Block> {
        let mut found = BitSet::new();
        let mut work = vec![from];
        while let Some(block) = work.pop() {
            work.extend(self.cfg.successors(block).iter().copied().filter(|target| found.insert(*target)));
        }
        found
    }

    /// Returns the fate of lanes that take different edges out of a block.
    pub fn apart(&self, from: Block) -> DivergentRegion {
        let mut walk = LabelPropagation {
            paths: self,
            from,
            found: DivergentRegion::default(),
            label: SecondaryMap::new(),
            waiting: BTreeSet::new(),
            back: BTreeMap::new(),
        };
        for (index, target) in self.cfg.successors(from).iter().enumerate() {
            walk.arrive(from, *target, (self.order.len() + index) as u32);
        }
        let mut level = self.loops.innermost(from);
        let mut lost = false;
        loop {
            while let Some(id) = level.filter(|id| walk.has_left(*id)) {
                if let Some(label) = walk.back.remove(&id) {
                    if walk.waiting.is_empty() && walk.back.is_empty() && !lost {
                        return walk.found;
                    }
                    if walk.others(label) {
                        walk.found.loops.insert(id);
                    }
                    walk.found.partial.extend(self.loops[id].blocks.iter().copied());
                    for (inside, outside) in &self.loops[id].exits {
                        walk.arrive(*inside, *outside, label);
                    }
                }
                level = self.loops[id].parent;
            }
            let Some(place) = walk.waiting.pop_first() else { return walk.found };
            if walk.waiting.is_empty() && walk.back.is_empty() && !lost {
                return walk.found;
            }
            let block = self.order[place as usize];
            walk.found.partial.insert(block);
            lost |= self.ending.contains(block);
            if let Some(label) = walk.label[block] {
                self.cfg.successors(block).iter().for_each(|target| walk.arrive(block, *target, label));
            }
        }
    }
}

/// Propagation of labels along the paths of a branch. A block that two labels reach is a join.
struct LabelPropagation<'a> {
    paths: &'a Paths<'a>,
    from: Block,
    found: DivergentRegion,
    label: SecondaryMap<Block, Option<u32>>,
    /// Indices of blocks that have a label and have not propagated it.
    waiting: BTreeSet<u32>,
    /// Labels that returned to the header of a loop around the branch.
    back: BTreeMap<Loop, u32>,
}

impl LabelPropagation<'_> {
    fn arrive(&mut self, from: Block, target: Block, label: u32) {
        let loops = self.paths.loops;
        let own = self.paths.place[target];
        match loops.headed_by(target).filter(|id| loops.contains(*id, from)) {
            Some(id) if loops.contains(id, self.from) => {
                let held = self.back.entry(id).or_insert(label);
                if *held != label {
                    *held = own;
                    self.found.joins.insert(target);
                }
            }
            // An inner loop: its header has already propagated this label.
            Some(_) => {}
            None => {
                let held = self.label[target].get_or_insert(label);
                if *held != label {
                    *held = own;
                    self.found.joins.insert(target);
                }
                self.waiting.insert(own);
            }
        }
    }

    /// Returns whether no block of a loop waits.
    fn has_left(&self, id: Loop) -> bool {
        let loops = self.paths.loops;
        let start = self.paths.place[loops[id].header];
        let end = start + loops[id].blocks.len() as u32;
        self.waiting.range(start..end).next().is_none()
    }

    /// Returns whether another label is still being propagated.
    fn others(&self, label: u32) -> bool {
        let waiting = self.waiting.iter().map(|place| self.label[self.paths.order[*place as usize]]);
        waiting.flatten().chain(self.back.values().copied()).any(|other| other != label)
    }
}
