//! Placement of block parameters for SSA form.
//!
//! Cytron et al.: a register needs a parameter at a block where several of its definitions meet. These are
//! the blocks of the iterated dominance frontier of the blocks that write it, restricted to blocks where it
//! is live, so that no parameter is dead from the start. A guarded write counts as a write: its result is the
//! new value or the old one. The entry counts as a write of every register, of a parameter's value or of
//! none. A function whose entry is a branch target can therefore need parameters at its entry, which SSA form
//! forbids: insert an empty block before it first.

use crate::bit_set::BitSet;
use crate::cfg::Cfg;
use crate::dominators::Dominators;
use crate::liveness::Liveness;
use broadloom_ptx::{Block, Function, Reg};
use cranelift_entity::SecondaryMap;

/// Registers that need a parameter at each block, for a function in register form.
#[derive(Clone, Debug)]
pub struct BlockParameters {
    params: SecondaryMap<Block, Vec<Reg>>,
}

impl BlockParameters {
    /// Computes the parameters.
    pub fn new(function: &Function, cfg: &Cfg, dominators: &Dominators, liveness: &Liveness) -> BlockParameters {
        let mut writers: SecondaryMap<Reg, Vec<Block>> = SecondaryMap::new();
        for block in cfg.order() {
            for inst in &function.blocks[*block].insts {
                function.insts[*inst].each_written(|reg| {
                    if writers[reg].last() != Some(block) {
                        writers[reg].push(*block);
                    }
                });
            }
        }
        let frontiers = dominators.frontiers(cfg);
        let mut params: SecondaryMap<Block, Vec<Reg>> = SecondaryMap::new();
        for reg in function.regs.keys().filter(|reg| !writers[*reg].is_empty()) {
            let mut work = writers[reg].clone();
            work.push(cfg.entry());
            let mut seen: BitSet<Block> = BitSet::new();
            while let Some(block) = work.pop() {
                for join in &frontiers[block] {
                    // If it is dead here, it is dead or written again after any further join that this one
                    // leads to.
                    if liveness.live_in(*join).contains(reg) && seen.insert(*join) {
                        params[*join].push(reg);
                        work.push(*join);
                    }
                }
            }
        }
        BlockParameters { params }
    }

    /// Returns the registers that need a parameter at a block, in ascending order.
    pub fn of(&self, block: Block) -> &[Reg] {
        &self.params[block]
    }
}
