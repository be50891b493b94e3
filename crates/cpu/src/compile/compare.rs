//! Comparison and selection (manual: "Comparison and Selection Instructions").

use super::emitter::Emitter;
use super::evaluate::LoweringResult;
use super::llvm::{IntPred, RealPred, Val};
use broadloom_eval::Operation;
use broadloom_ptx::{Modifier, Type, TypeKind};

/// Comparison operators: for signed and unsigned integers, and for floats.
const OPERATORS: [(Modifier, IntPred, IntPred, RealPred); 18] = [
    (Modifier::Eq, IntPred::LLVMIntEQ, IntPred::LLVMIntEQ, RealPred::LLVMRealOEQ),
    (Modifier::Ne, IntPred::LLVMIntNE, IntPred::LLVMIntNE, RealPred::LLVMRealONE),
    (Modifier::Lt, IntPred::LLVMIntSLT, IntPred::LLVMIntULT, RealPred::LLVMRealOLT),
    (Modifier::Le, IntPred::LLVMIntSLE, IntPred::LLVMIntULE, RealPred::LLVMRealOLE),
    (Modifier::Gt, IntPred::LLVMIntSGT, IntPred::LLVMIntUGT, RealPred::LLVMRealOGT),
    (Modifier::Ge, IntPred::LLVMIntSGE, IntPred::LLVMIntUGE, RealPred::LLVMRealOGE),
    (Modifier::Lo, IntPred::LLVMIntULT, IntPred::LLVMIntULT, RealPred::LLVMRealOLT),
    (Modifier::Ls, IntPred::LLVMIntULE, IntPred::LLVMIntULE, RealPred::LLVMRealOLE),
    (Modifier::Hi, IntPred::LLVMIntUGT, IntPred::LLVMIntUGT, RealPred::LLVMRealOGT),
    (Modifier::Hs, IntPred::LLVMIntUGE, IntPred::LLVMIntUGE, RealPred::LLVMRealOGE),
    (Modifier::Equ, IntPred::LLVMIntEQ, IntPred::LLVMIntEQ, RealPred::LLVMRealUEQ),
    (Modifier::Neu, IntPred::LLVMIntNE, IntPred::LLVMIntNE, RealPred::LLVMRealUNE),
    (Modifier::Ltu, IntPred::LLVMIntSLT, IntPred::LLVMIntULT, RealPred::LLVMRealULT),
    (Modifier::Leu, IntPred::LLVMIntSLE, IntPred::LLVMIntULE, RealPred::LLVMRealULE),
    (Modifier::Gtu, IntPred::LLVMIntSGT, IntPred::LLVMIntUGT, RealPred::LLVMRealUGT),
    (Modifier::Geu, IntPred::LLVMIntSGE, IntPred::LLVMIntUGE, RealPred::LLVMRealUGE),
    (Modifier::Num, IntPred::LLVMIntEQ, IntPred::LLVMIntEQ, RealPred::LLVMRealORD),
    (Modifier::Nan, IntPred::LLVMIntNE, IntPred::LLVMIntNE, RealPred::LLVMRealUNO),
];

impl Emitter<'_> {
    /// Emits the comparison of an instruction, on operands of a type.
    fn comparison(&self, op: &Operation, ty: Type, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        let (_, signed, unsigned, real) = OPERATORS.iter().find(|(modifier, ..)| op.has(*modifier))?;
        match ty {
            Type::F32 | Type::F64 | Type::F16 => {
                let flush = op.has(Modifier::Ftz) && ty == Type::F32;
                if ty == Type::F16 && op.has(Modifier::Ftz) {
                    return None;
                }
                let seen = |value: Val| if flush { self.flushed(value) } else { value };
                Some(ir.fcmp(*real, seen(inputs[0]), seen(inputs[1])))
            }
            ty if ty.is_integer() || ty.kind() == TypeKind::Bits => {
                Some(ir.icmp(if ty.is_signed() { *signed } else { *unsigned }, inputs[0], inputs[1]))
            }
            _ => None,
        }
    }

    /// Combines the result with the third operand by the instruction's BoolOp.
    fn combined(&self, op: &Operation, value: Val, third: Option<&Val>) -> Val {
        match third {
            Some(third) if op.has(Modifier::And) => self.ir.and(value, *third),
            Some(third) if op.has(Modifier::Or) => self.ir.or(value, *third),
            Some(third) if op.has(Modifier::Xor) => self.ir.xor(value, *third),
            _ => value,
        }
    }

    pub(crate) fn setp(&self, op: &Operation, inputs: &[Val]) -> Option<Vec<Val>> {
        let ty = op.source_ty;
        let value = self.comparison(op, ty, inputs)?;
        let first = self.combined(op, value, inputs.get(2));
        let second = self.combined(op, self.ir.not(value), inputs.get(2));
        Some(vec![first, second])
    }

    pub(crate) fn set(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        let value = self.comparison(op, op.source_ty, inputs)?;
        let value = self.combined(op, value, inputs.get(2));
        match op.ty {
            Type::F32 => {
                let ty = ir.like(ir.type_of(value), ir.float());
                Some(ir.select(value, ir.real(ty, 1.0), ir.real(ty, 0.0)))
            }
            Type::U32 | Type::S32 => Some(ir.sext(value, ir.int(32))),
            _ => None,
        }
    }

    pub(crate) fn slct(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        let ty = ir.type_of(inputs[2]);
        let condition = match op.source_ty {
            Type::S32 => ir.icmp(IntPred::LLVMIntSGE, inputs[2], ir.constant(ty, 0)),
            Type::F32 => {
                let value = if op.has(Modifier::Ftz) { self.flushed(inputs[2]) } else { inputs[2] };
                ir.fcmp(RealPred::LLVMRealOGE, value, ir.real(ty, 0.0))
            }
            _ => return None,
        };
        Some(ir.select(condition, inputs[0], inputs[1]))
    }
}
