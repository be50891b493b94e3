//! Instructions that are functions of their inputs: vector code for the common ones, and lane-by-lane
//! evaluation of the others.

use super::Service;
use super::emit::{Emitted, Emitter};
use super::llvm::Val;
use crate::code::Rare;
use broadloom_eval::Operation;
use broadloom_ptx::{InstData, Modifier, Opcode, Operand, Type, TypeKind, opcodes};

/// Result of lowering: the value written, or `None` if there is no vector code.
pub(crate) type Lowered = Option<Val>;

impl Emitter<'_> {
    /// Returns the results of a pure instruction, in all lanes or in lane 0 like its inputs. Returns `None`
    /// if the runtime must evaluate it.
    pub(crate) fn lower_pure(&mut self, inst: &InstData, inputs: &[Val]) -> Emitted<Option<Vec<Val>>> {
        let Some(op) = Operation::of(inst) else { return Ok(None) };
        let one = |value: Lowered| Ok(value.map(|value| vec![value]));
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

    /// Emits a rare instruction: the runtime evaluates it lane by lane.
    pub(crate) fn evaluate(&mut self, inst: &InstData, written: &[(Operand, Type)], scalar: bool) -> Emitted<()> {
        for ((operand, ty), value) in written.iter().zip(self.evaluated(inst, written, scalar)?) {
            self.assign(operand, *ty, value)?;
        }
        Ok(())
    }

    /// Returns the results of the runtime for an instruction, one value for each written operand.
    pub(crate) fn evaluated(&mut self, inst: &InstData, written: &[(Operand, Type)], scalar: bool) -> Emitted<Vec<Val>> {
        let ir = self.ir;
        let (i32, i64) = (ir.int(32), ir.int(64));
        let inputs = self.inputs(inst, scalar)?;
        let lanes = self.lanes.unwrap_or(1);
        let number = self.rare.len() as u64;
        self.rare.push(Rare::of(inst));
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

    /// Calls a function of the runtime.
    pub(crate) fn serve(&self, service: Service, result: super::llvm::Ty, arguments: &[Val]) -> Val {
        let place = self.ir.offset_by(self.services, service.offset());
        let function = self.ir.load_invariant(self.ir.pointer(), place, 8);
        self.ir.call(function, result, arguments)
    }
}

/// Returns whether an instruction has none of the modifiers that change a plain integer operation.
pub(crate) fn is_plain(op: &Operation) -> bool {
    !op.has(Modifier::Sat) && !op.has(Modifier::Relu) && op.ty.kind() != TypeKind::Packed
}
