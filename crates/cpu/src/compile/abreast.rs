//! Loops after which warps wait for each other, although no barrier says so.
//!
//! A loop reads shared memory, the code after it writes there, and the barrier in between is missing. On a
//! GPU the warps of a block run through the loop side by side, so all have read before the first one writes.
//! Programs rely on this unknowingly. If warps ran one after the other, the first would write before the
//! second reads. The warps are therefore synchronised after such a loop. The cost is that of one barrier: the
//! warps' values are saved across it.

use super::emitter::Emitter;
use broadloom_analysis::{Cfg, Dominators, LoopData, Loops};
use broadloom_ptx::{Block, InstData, Opcode, Operand, Space};
use broadloom_transform::split_at_barriers::plain_barrier;
use std::collections::HashSet;

impl Emitter<'_> {
    /// Returns the blocks at which warps leave such loops.
    pub(crate) fn abreast(&self, cfg: &Cfg) -> Vec<Block> {
        let waits = |block: &Block| self.instructions(*block).any(|inst| plain_barrier(inst).is_some());
        if !cfg.order().iter().any(waits) {
            return vec![];
        }
        let loops = Loops::new(cfg, &Dominators::new(cfg));
        let is_between_barriers = |data: &LoopData| {
            let around = data.parent.map(|parent| &loops[parent]);
            !data.blocks.iter().any(waits) && around.is_none_or(|around| around.blocks.iter().any(waits))
        };
        let reads = |block: &Block| self.instructions(*block).any(|inst| self.is_shared(inst, Opcode::Ld));
        let mut found: Vec<Block> = vec![];
        for (_, data) in loops.iter().filter(|(_, data)| is_between_barriers(data) && data.blocks.iter().any(reads)) {
            let ends = data.exit_targets().into_iter().filter(|target| self.writes_before_barrier(cfg, data, *target));
            found.extend(ends);
        }
        found.sort();
        found.dedup();
        found
    }

    fn instructions(&self, block: Block) -> impl Iterator<Item = &InstData> {
        self.function.blocks[block].insts.iter().map(|inst| &self.function.insts[*inst])
    }

    fn is_shared(&self, inst: &InstData, opcode: Opcode) -> bool {
        let in_shared = |operand: &Operand| match operand {
            Operand::Memory(address) => self.space_of(inst, address) == Space::Shared,
            _ => false,
        };
        inst.opcode() == Some(opcode) && inst.operands.iter().any(in_shared)
    }

    /// Returns whether shared memory is written on a path from a block, before any barrier and outside a
    /// loop.
    fn writes_before_barrier(&self, cfg: &Cfg, around: &LoopData, from: Block) -> bool {
        let mut seen: HashSet<Block> = HashSet::from([from]);
        let mut work = vec![from];
        while let Some(block) = work.pop() {
            let mut waits = false;
            for inst in self.instructions(block) {
                if self.is_shared(inst, Opcode::St) {
                    return true;
                }
                if plain_barrier(inst).is_some() {
                    waits = true;
                    break;
                }
            }
            if !waits {
                let next = cfg.successors(block).iter().filter(|next| !around.blocks.contains(next));
                work.extend(next.filter(|next| seen.insert(**next)));
            }
        }
        false
    }
}
