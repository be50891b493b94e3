//! Instructions that are functions of their inputs: vector code for the common ones, and lane-by-lane
//! evaluation of the others.

use super::emitter::{Emitter, TranslationResult};
use super::evaluate::LoweringResult;
use super::llvm::Val;
use super::nans::is_choice;
use broadloom_eval::Operation;
use broadloom_ptx::{InstData, Opcode, Operand, Type, TypeKind, opcodes};

impl Emitter<'_> {
    /// Returns the results of a pure instruction, in all lanes or in lane 0 like its inputs. Returns `None`
    /// if the runtime must evaluate it.
    pub(crate) fn lower_pure(&mut self, inst: &InstData, inputs: &[Val]) -> TranslationResult<Option<Vec<Val>>> {
        let Some(op) = Operation::of(inst) else { return Ok(None) };
        let one = |value: LoweringResult| Ok(value.map(|value| vec![value]));
        let integer = op.ty.is_integer() || op.ty.kind() == TypeKind::Bits;
        match op.opcode {
            Opcode::Add if integer => one(self.add(&op, inputs)),
            Opcode::Sub if integer => one(self.sub(&op, inputs)),
            Opcode::Mul if integer => one(self.mul(&op, inputs)),
            Opcode::Mad if integer => one(self.mad(&op, inputs)),
            Opcode::Div if integer => one(self.div(&op, inst, inputs)?),
            Opcode::Rem => one(self.rem(&op, inst, inputs)?),
            Opcode::Abs if integer => one(self.abs(&op, inputs)),
            Opcode::Neg if integer => one(self.neg(&op, inputs)),
            Opcode::Min | Opcode::Max if integer => one(self.min_max(&op, inputs)),
            Opcode::Sad => one(self.sad(&op, inputs)),
            Opcode::Mul24 | Opcode::Mad24 => one(self.mul24(&op, inputs)),
            Opcode::Dp4a => one(self.dp4a(&op, inputs)),

            Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Mad | Opcode::Fma | Opcode::Div => {
                one(self.float_arith(&op, inputs))
            }
            Opcode::Rcp | Opcode::Sqrt | Opcode::Rsqrt => one(self.root(&op, inputs)),
            Opcode::Abs | Opcode::Neg => one(self.float_sign(&op, inputs)),
            Opcode::Min | Opcode::Max => one(self.float_min_max(&op, inputs)),
            Opcode::Copysign => one(self.copysign(inputs)),
            Opcode::Testp => one(self.testp(&op, inputs)),
            Opcode::Sin => one(self.approximate(&op, inputs, |emitter, x| emitter.sine(x, false))),
            Opcode::Cos => one(self.approximate(&op, inputs, |emitter, x| emitter.sine(x, true))),
            Opcode::Lg2 => one(self.approximate(&op, inputs, Self::lg2)),
            Opcode::Ex2 => one(self.approximate(&op, inputs, Self::ex2)),
            Opcode::Tanh => one(self.approximate(&op, inputs, Self::tanh)),

            Opcode::Setp => Ok(self.setp(&op, inputs)),
            Opcode::Set => one(self.set(&op, inputs)),
            Opcode::Selp => one(Some(self.ir.select(inputs[2], inputs[0], inputs[1]))),
            Opcode::Slct => one(self.slct(&op, inputs)),

            Opcode::And => one(Some(self.ir.and(inputs[0], inputs[1]))),
            Opcode::Or => one(Some(self.ir.or(inputs[0], inputs[1]))),
            Opcode::Xor => one(Some(self.ir.xor(inputs[0], inputs[1]))),
            Opcode::Not => one(Some(self.ir.not(inputs[0]))),
            Opcode::Cnot => one(self.cnot(inputs)),
            Opcode::Lop3 => Ok(self.lop3(&op, inputs)),
            Opcode::Shl | Opcode::Shr => one(self.shift(&op, inputs)),
            Opcode::Shf => one(self.funnel(&op, inputs)),
            Opcode::Popc => one(self.popc(inputs)),
            Opcode::Clz => one(self.clz(inputs)),
            Opcode::Brev => one(self.brev(inputs)),
            Opcode::Bfind => one(self.bfind(&op, inputs)),
            Opcode::Bfe => one(self.bfe(&op, inputs)),
            Opcode::Bfi => one(self.bfi(&op, inputs)),
            Opcode::Prmt => one(self.prmt(&op, inputs)),

            Opcode::Cvt => one(self.cvt(&op, inputs)),

            Opcode::Clmad | Opcode::Dp2a | Opcode::Fns | Opcode::Szext | Opcode::Bmsk | Opcode::CvtPack => Ok(None),
            Opcode::MbarrierPendingCount | opcodes!(class carry) | opcodes!(class video) => Ok(None),
            // These are more than a function of their inputs: `machine` handles or rejects them.
            opcodes!(other) => Ok(None),
        }
    }

    /// Emits an instruction that is a function of its inputs.
    pub(super) fn pure(&mut self, inst: &InstData) -> TranslationResult<()> {
        let results = inst.writes();
        if results.is_empty() {
            return Ok(());
        }
        let scalar = results.iter().all(|reg| self.is_kept_as_scalar(*reg));
        let written: Vec<(Operand, Type)> = self.written(inst);
        let inputs: Vec<Val> = match (is_choice(inst), results.iter().any(|reg| self.is_noisy(*reg))) {
            (false, _) => self.vector_inputs(inst, scalar)?,
            (true, true) => {
                let each = broadloom_eval::inputs(inst).map(|(operand, ty)| self.fetch_as_is(operand, ty, scalar));
                each.collect::<TranslationResult<_>>()?
            }
            (true, false) => self.inputs(inst, scalar)?,
        };
        match self.lower_pure(inst, &inputs)? {
            Some(mut values) => {
                if super::float::may_flush_late(inst) {
                    values = self.flush_before_rounding(inst, &written, values, scalar)?;
                }
                for ((operand, ty), value) in written.iter().zip(values) {
                    self.assign(operand, *ty, value)?;
                }
                Ok(())
            }
            None => self.evaluate(inst, &written, scalar),
        }
    }
}
