//! Instructions under a mask.
//!
//! - Pure instructions run in all lanes: their results in masked-off lanes are not read.
//! - A plain load with a uniform address runs in all lanes. At least one lane is active, or the code would
//!   have been skipped, and an address that one lane may read, all may read. Its result is therefore uniform
//!   too.
//! - A barrier runs in all lanes. Missing lanes have no barrier ahead and count as exited, but they are part
//!   of the arriving warp. They contribute the neutral element to a reduction.
//! - A warp operation runs in the lanes of the mask, and those are all its members.
//! - A fence, and accesses to arguments and results of a call, run in all lanes.
//! - Everything else runs in the lanes of the mask.

use super::build::Variable;
use super::emit::{Emitter, Mask, all_lanes};
use crate::purity::is_speculable;
use broadloom_ptx::{
    Base, Class, Effects, Guard, Inst, InstData, Modifier, Opcode, Operand, Param, Reg, Space, Symbol, Type, Var,
};

/// Treatment of an instruction under a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuardTreatment {
    /// In all lanes.
    Everywhere,
    /// In the lanes of the mask.
    Masked,
    /// In the lanes of the mask, which are its members.
    Members,
    /// In all lanes, collectively.
    Together,
}

/// Returns the treatment of an instruction under a mask, except for plain loads with steady addresses.
pub(super) fn manner(data: &InstData) -> GuardTreatment {
    let effects = data.effects();
    if is_speculable(data) || data.class() == Some(Class::Fence) {
        GuardTreatment::Everywhere
    } else if is_collective(data) {
        GuardTreatment::Together
    } else if data.members().is_some() {
        GuardTreatment::Members
    } else if effects == Effects::default() && data.class() != Some(Class::Cluster) {
        // Carry chains are pure, but their order matters. The order is kept.
        GuardTreatment::Everywhere
    } else {
        GuardTreatment::Masked
    }
}

/// Returns whether all existing lanes must reach the instruction together.
pub(super) fn is_collective(data: &InstData) -> bool {
    let effects = data.effects();
    let aligned = effects.has(Effects::WARP) && data.class() != Some(Class::Warp) && data.members().is_none();
    // Each lane polls an mbarrier on its own.
    effects.has(Effects::BARRIER) && data.class() != Some(Class::Mbarrier) || aligned
}

impl Emitter<'_> {
    /// Emits an instruction here, for the lanes of a mask.
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
            let manner = if everywhere { GuardTreatment::Everywhere } else { manner(&data) };
            match manner {
                GuardTreatment::Everywhere => {}
                GuardTreatment::Masked => self.guard(&mut data, lanes),
                GuardTreatment::Members => {
                    self.reduce_members(&mut data, lanes);
                    self.guard(&mut data, lanes);
                }
                GuardTreatment::Together => self.bring(&mut data, inst, level, lanes),
            }
        }
        for reg in data.writes() {
            self.builder.write(Variable::Value(reg), self.at, reg);
        }
        self.builder.push(self.at, data);
    }

    /// Returns whether an instruction only accesses arguments or results of a call, which are private to each
    /// thread.
    fn passes_to_call(&self, data: &InstData) -> bool {
        let own = |var: Var| self.input.params.iter().chain(&self.input.results).any(|param| *param == Param::Memory(var));
        match (data.opcode(), data.space(), data.address().map(|address| address.base)) {
            (Some(Opcode::St | Opcode::Ld), Space::Param, Some(Base::Symbol(Symbol::Local(var)))) => !own(var),
            _ => false,
        }
    }

    /// Restricts an instruction to the lanes of a mask.
    fn guard(&mut self, data: &mut InstData, lanes: Reg) {
        let reg = match data.guard {
            Some(own) => self.combine(Some(lanes), own),
            None => lanes,
        };
        data.guard = Some(Guard { reg, negated: false });
    }

    /// Removes missing lanes from the member mask.
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

    /// Lets all lanes reach a barrier; those outside the mask contribute the neutral element.
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
