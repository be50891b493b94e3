//! Single instructions under a mask.
//!
//! - What only computes runs in all lanes: nobody reads what it gives the others.
//! - A plain load whose address is the same in all lanes runs in all lanes: somebody is there, or the code would have been
//!   skipped, and what one lane may read, all may. So its result is the same in all lanes too.
//! - A barrier runs in all lanes: those that are missing have no barrier before them any more and count as gone, but they are
//!   part of the warp that comes. To a reduction they bring what changes nothing.
//! - A warp operation runs in the lanes of the mask, and those are all the members that it has.
//! - A fence, and what is passed to and from a call, runs in all lanes.
//! - Everything else runs in the lanes of the mask.

use super::build::Variable;
use super::emit::{Emitter, Mask, all_lanes};
use crate::purity::is_speculable;
use broadloom_ptx::{
    Base, Class, Effects, Guard, Inst, InstData, Modifier, Opcode, Operand, Param, Reg, Space, Symbol, Type, Var,
};

/// How an instruction meets a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// In all lanes.
    Everywhere,
    /// In the lanes of the mask.
    Masked,
    /// In the lanes of the mask, which are its members.
    Members,
    /// In all lanes, as one.
    Together,
}

/// How an instruction meets a mask, plain loads of steady addresses aside.
pub(super) fn manner(data: &InstData) -> Manner {
    let effects = data.effects();
    if is_speculable(data) || data.class() == Some(Class::Fence) {
        Manner::Everywhere
    } else if is_collective(data) {
        Manner::Together
    } else if data.members().is_some() {
        Manner::Members
    } else if effects == Effects::default() && data.class() != Some(Class::Cluster) {
        // Carry chains: pure, but their order matters, which is kept.
        Manner::Everywhere
    } else {
        Manner::Masked
    }
}

/// Whether all lanes that there are must come to it together.
pub(super) fn is_collective(data: &InstData) -> bool {
    let effects = data.effects();
    let aligned = effects.has(Effects::WARP) && data.class() != Some(Class::Warp) && data.members().is_none();
    // An mbarrier is asked by each lane for itself.
    effects.has(Effects::BARRIER) && data.class() != Some(Class::Mbarrier) || aligned
}

impl Emitter<'_> {
    /// Writes an instruction here, for the lanes of a mask.
    pub(super) fn instruction(&mut self, inst: Inst, level: usize, mask: Mask) {
        let mut data = self.input.insts[inst].clone();
        let reads = data.reads();
        let values: Vec<Reg> = reads.iter().map(|reg| self.value(*reg, level)).collect();
        let mut values = values.into_iter();
        data.change_reads(|reg| {
            if let Some(value) = values.next() {
                *reg = value;
            }
        });
        if let Some(lanes) = mask {
            let everywhere = self.steady.is_load(inst) || self.passes_to_call(&data);
            let manner = if everywhere { Manner::Everywhere } else { manner(&data) };
            match manner {
                Manner::Everywhere => {}
                Manner::Masked => self.guard(&mut data, lanes),
                Manner::Members => {
                    self.reduce_members(&mut data, lanes);
                    self.guard(&mut data, lanes);
                }
                Manner::Together => self.bring(&mut data, inst, level, lanes),
            }
        }
        for reg in data.writes() {
            self.builder.write(Variable::Value(reg), self.at, reg);
        }
        self.builder.push(self.at, data);
    }

    /// Whether it only writes or reads what is passed to or from a call, which each thread has for itself.
    fn passes_to_call(&self, data: &InstData) -> bool {
        let own = |var: Var| self.input.params.iter().chain(&self.input.results).any(|param| *param == Param::Memory(var));
        match (data.opcode(), data.space(), data.address().map(|address| address.base)) {
            (Some(Opcode::St | Opcode::Ld), Space::Param, Some(Base::Symbol(Symbol::Local(var)))) => !own(var),
            _ => false,
        }
    }

    /// Lets an instruction run in the lanes of a mask alone.
    fn guard(&mut self, data: &mut InstData, lanes: Reg) {
        let reg = match data.guard {
            Some(own) => self.combine(Some(lanes), own),
            None => lanes,
        };
        data.guard = Some(Guard { reg, negated: false });
    }

    /// Takes lanes that are not there from the members.
    fn reduce_members(&mut self, data: &mut InstData, lanes: Reg) {
        let Some(index) = data.members() else { return };
        let named = data.operands[index].clone();
        let present =
            self.builder.compute(self.at, Type::B32, "vote.sync.ballot.b32", [Operand::Sink, Operand::Reg(lanes), all_lanes()]);
        let rest = match named {
            Operand::Imm(imm) if imm.integer_bits().is_some_and(|bits| bits as u32 == u32::MAX) => present,
            named => self.builder.compute(self.at, Type::B32, "and.b32", [Operand::Sink, Operand::Reg(present), named]),
        };
        data.operands[index] = Operand::Reg(rest);
    }

    /// Lets all lanes come to a barrier; those outside of the mask bring nothing.
    fn bring(&mut self, data: &mut InstData, inst: Inst, level: usize, lanes: Reg) {
        if let Some(own) = data.guard
            && !self.steady.guard(Some(&inst), level)
        {
            let some = self.combine(Some(lanes), own);
            data.guard = Some(Guard { reg: self.any(some), negated: false });
        }
        if !data.has(Modifier::Red) {
            return;
        }
        let Some(last) = data.operands.last().cloned() else { return };
        let (operation, lanes) =
            if data.has(Modifier::And) { ("or.pred", Operand::Not(lanes)) } else { ("and.pred", Operand::Reg(lanes)) };
        let brought = self.builder.compute(self.at, Type::Pred, operation, [Operand::Sink, lanes, last]);
        if let Some(last) = data.operands.last_mut() {
            *last = Operand::Reg(brought);
        }
    }
}
