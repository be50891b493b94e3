//! Rare instructions: the runtime evaluates them lane by lane.

use super::emitter::{Emitter, TranslationResult};
use super::llvm::Val;
use super::runtime::Service;
use crate::code::RareInstruction;
use broadloom_ptx::{InstData, Operand, Type};

/// Result of lowering: the value written, or `None` if there is no vector code.
pub(crate) type LoweringResult = Option<Val>;

impl Emitter<'_> {
    /// Emits a rare instruction: the runtime evaluates it lane by lane.
    pub(crate) fn evaluate(&mut self, inst: &InstData, written: &[(Operand, Type)], scalar: bool) -> TranslationResult<()> {
        for ((operand, ty), value) in written.iter().zip(self.evaluated(inst, written, scalar)?) {
            self.assign(operand, *ty, value)?;
        }
        Ok(())
    }

    /// Returns the results of the runtime for an instruction, one value for each written operand.
    pub(crate) fn evaluated(
        &mut self,
        inst: &InstData,
        written: &[(Operand, Type)],
        scalar: bool,
    ) -> TranslationResult<Vec<Val>> {
        let ir = self.ir;
        let (i32, i64) = (ir.int(32), ir.int(64));
        let inputs = self.inputs(inst, scalar)?;
        let lanes = self.lanes.unwrap_or(1);
        let number = self.rare.len() as u64;
        self.rare.push(RareInstruction::of(inst));
        // The runtime writes both results of an instruction that can have two, even if only one is used.
        let from = self.room(ir.vector(i64, lanes * (inputs.len() + written.len().max(2)) as u32));
        let to = ir.offset_by(from, inputs.len() as u64 * 8 * u64::from(lanes));
        for (index, value) in inputs.iter().enumerate() {
            let bits = ir.bitcast(*value, ir.int(ir.bits(ir.type_of(*value))));
            let wide = ir.resize(bits, i64, false);
            ir.store(wide, ir.offset_by(from, index as u64 * 8 * u64::from(lanes)), 8);
        }
        // One lane is enough if all are equal.
        let mask = ir.constant(i32, if scalar { 1 } else { 0xffff_ffff });
        self.serve(Service::Evaluate, ir.void(), &[self.warp, ir.constant(i32, number), mask, from, to]);
        let mut values = vec![];
        for (index, (operand, ty)) in written.iter().enumerate() {
            let place = ir.offset_by(to, index as u64 * 8 * u64::from(lanes));
            let value = if scalar { ir.load(i64, place, 8) } else { ir.load(ir.lanes_of(i64, self.lanes), place, 8) };
            let bits = if *ty == Type::Pred { 1 } else { self.result_bits(operand, *ty) };
            let value = ir.resize(value, ir.int(bits), false);
            values.push(if ir.bits(self.value_type(*ty)) == bits { ir.bitcast(value, self.value_type(*ty)) } else { value });
        }
        Ok(values)
    }

    /// Returns the width of a result of the runtime: that of the type, or of the whole register if a part of
    /// it is written.
    fn result_bits(&self, operand: &Operand, ty: Type) -> u32 {
        match operand {
            Operand::Part { reg, .. } => self.function.regs[*reg].ty.bits(),
            _ => ty.bits(),
        }
    }
}
