//! Definitions of registers, to follow member masks to where they come from.

use broadloom_analysis::Cfg;
use broadloom_ptx::{Function, Inst, Modifier, Opcode, Operand, Reg};
use cranelift_entity::SecondaryMap;
use std::collections::{HashMap, HashSet};

/// Definitions of registers.
pub(super) struct Definitions<'f> {
    pub(super) function: &'f Function,
    makers: SecondaryMap<Reg, Option<Inst>>,
    /// Arguments for each block parameter.
    passed: HashMap<Reg, Vec<Reg>>,
}

impl<'f> Definitions<'f> {
    pub(super) fn new(function: &'f Function, cfg: &Cfg) -> Self {
        let mut makers = SecondaryMap::new();
        let mut passed: HashMap<Reg, Vec<Reg>> = HashMap::new();
        for block in cfg.order() {
            let data = &function.blocks[*block];
            for inst in &data.insts {
                function.insts[*inst].writes().into_iter().for_each(|reg| makers[reg] = Some(*inst));
            }
            for edge in &data.edges {
                for (param, arg) in function.blocks[edge.target].params.iter().zip(&edge.args) {
                    passed.entry(*param).or_default().push(*arg);
                }
            }
        }
        Definitions { function, makers, passed }
    }

    /// Returns the instruction that defines a register.
    pub(super) fn maker(&self, reg: Reg) -> Option<Inst> {
        self.makers[reg]
    }

    /// Returns whether a register holds lanes that were found to be there, or a subset of them.
    pub(super) fn were_found(&self, reg: Reg) -> bool {
        self.found(reg, &mut HashSet::new())
    }

    fn found(&self, reg: Reg, seen: &mut HashSet<Reg>) -> bool {
        // A loop adds nothing new.
        if !seen.insert(reg) {
            return true;
        }
        let Some(inst) = self.makers[reg] else {
            return self.passed.get(&reg).is_some_and(|args| args.iter().all(|arg| self.found(*arg, seen)));
        };
        let data = &self.function.insts[inst];
        let reads = || {
            data.operands.iter().skip(1).filter_map(|operand| match operand {
                Operand::Reg(reg) => Some(*reg),
                _ => None,
            })
        };
        match data.opcode() {
            Some(Opcode::Activemask | Opcode::MatchAnySync | Opcode::MatchAllSync) => true,
            Some(Opcode::VoteSync | Opcode::Vote) => data.has(Modifier::Ballot),
            // A subset of them.
            Some(Opcode::And) => reads().any(|reg| self.found(reg, seen)),
            Some(Opcode::Mov | Opcode::Cvt) => reads().next().is_some_and(|reg| self.found(reg, seen)),
            Some(Opcode::Selp) => reads().take(2).all(|reg| self.found(reg, seen)) && reads().count() > 2,
            _ => false,
        }
    }
}
