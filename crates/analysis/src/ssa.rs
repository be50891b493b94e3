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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, random_code, random_graph};
    use broadloom_ptx::BodyForm;
    use std::collections::BTreeSet;

    /// Value of a register: of the entry, of a block that writes it, or of a block parameter.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Value {
        Entry,
        Written(Block),
        Param(Block),
    }

    /// Propagates the value of a register along control flow. Returns `false` if two different ones meet
    /// where it is live and has no parameter.
    fn is_enough(function: &Function, cfg: &Cfg, liveness: &Liveness, params: &BlockParameters, reg: Reg) -> bool {
        let mut into: SecondaryMap<Block, Option<Value>> = SecondaryMap::new();
        let mut work = vec![(cfg.entry(), Value::Entry)];
        while let Some((block, mut value)) = work.pop() {
            if params.of(block).contains(&reg) {
                value = Value::Param(block);
            }
            match into[block] {
                Some(old) if old == value => continue,
                Some(_) if liveness.live_in(block).contains(reg) => return false,
                Some(_) => continue,
                None => into[block] = Some(value),
            }
            if function.blocks[block].insts.iter().any(|inst| function.insts[*inst].writes().contains(&reg)) {
                value = Value::Written(block);
            }
            work.extend(cfg.successors(block).iter().map(|target| (*target, value)));
        }
        true
    }

    #[test]
    fn parameters_are_enough_and_none_too_many() {
        let mut random = Random::new(7);
        let mut total = 0;
        for _ in 0..300 {
            let (cfg, count) = random_graph(&mut random, 10);
            let function = random_code(&mut random, &cfg, count, BodyForm::Registers);
            let dominators = Dominators::new(&cfg);
            let liveness = Liveness::new(&function, &cfg);
            let found = BlockParameters::new(&function, &cfg, &dominators, &liveness);
            let frontiers = dominators.frontiers(&cfg);
            for reg in function.regs.keys() {
                assert!(is_enough(&function, &cfg, &liveness, &found, reg), "{reg}");
                // Iterated frontier, as a set that grows to a fixed point.
                let writes = |block: &Block| {
                    function.blocks[*block].insts.iter().any(|inst| function.insts[*inst].writes().contains(&reg))
                };
                let mut from: BTreeSet<Block> = cfg.order().iter().copied().filter(writes).collect();
                if !from.is_empty() {
                    from.insert(cfg.entry());
                }
                let mut joins: BTreeSet<Block> = BTreeSet::new();
                while let Some(join) = from.iter().flat_map(|block| &frontiers[*block]).find(|join| !joins.contains(join)) {
                    let join = *join;
                    joins.insert(join);
                    from.insert(join);
                }
                let expected: Vec<Block> = joins.into_iter().filter(|join| liveness.live_in(*join).contains(reg)).collect();
                let has: Vec<Block> = function.blocks.keys().filter(|block| found.of(*block).contains(&reg)).collect();
                assert_eq!(has, expected, "{reg}");
                total += has.len();
            }
        }
        assert!(total > 500, "the functions need parameters: {total}");
    }
}
