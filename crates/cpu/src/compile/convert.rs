//! Conversions (manual: "cvt"). Values outside the range of an integer type are clamped to it.

use super::emitter::Emitter;
use super::evaluate::LoweringResult;
use super::float::rounds_specially;
use super::llvm::{RealPred, Val};
use broadloom_eval::Operation;
use broadloom_ptx::{Modifier, Type};

impl Emitter<'_> {
    pub(crate) fn cvt(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        if inputs.len() != 1 || op.has(Modifier::Relu) || op.has(Modifier::Satfinite) {
            return None;
        }
        let (to, from) = (op.ty, op.source_ty);
        let is_float = |ty: Type| matches!(ty, Type::F16 | Type::F32 | Type::F64);
        let is_int = |ty: Type| ty.is_integer() && ty.bits() >= 8;
        let source = match from == Type::F32 && op.has(Modifier::Ftz) {
            // Flushing loses the payload of a NaN.
            true if op.ty == Type::F64 => self.canonical(self.flushed(inputs[0])),
            true => self.flushed(inputs[0]),
            false => inputs[0],
        };
        match (is_float(to), is_float(from)) {
            (false, false) if is_int(to) && is_int(from) && !op.has(Modifier::Sat) => {
                Some(self.ir.resize(source, self.ir.int(to.bits()), from.is_signed()))
            }
            (false, true) if is_int(to) => self.to_integer(op, source),
            (true, false) if is_int(from) && !rounds_specially(op) => self.of_integer(op, source),
            (true, true) => self.to_float(op, source),
            _ => None,
        }
    }

    /// Rounds a float to an integral value of the same type.
    fn integral(&self, op: &Operation, value: Val) -> Val {
        let ir = self.ir;
        let name = if op.has(Modifier::Rni) {
            "llvm.roundeven"
        } else if op.has(Modifier::Rmi) {
            "llvm.floor"
        } else if op.has(Modifier::Rpi) {
            "llvm.ceil"
        } else if op.has(Modifier::Rzi) {
            "llvm.trunc"
        } else {
            return value;
        };
        ir.intrinsic(name, &[ir.type_of(value)], &[value])
    }

    /// Converts a float to an integer. NaN becomes zero, except from `f64` and to 64 bits, where it becomes 1
    /// << (width - 1).
    fn to_integer(&self, op: &Operation, value: Val) -> LoweringResult {
        let ir = self.ir;
        let (to, from) = (op.ty, op.source_ty);
        if from == Type::F16 || to.bits() < 32 {
            return None;
        }
        let rounded = if op.has(Modifier::Rzi) { value } else { self.integral(op, value) };
        let int = ir.like(ir.type_of(value), ir.int(to.bits()));
        let result = self.saturated_integer(rounded, to);
        if from == Type::F64 || to.bits() == 64 {
            let unordered = ir.fcmp(RealPred::LLVMRealUNO, value, value);
            return Some(ir.select(unordered, ir.constant(int, 1 << (to.bits() - 1)), result));
        }
        Some(result)
    }

    /// Converts to the nearest integer of a type, rounded toward zero; NaN becomes zero. LLVM's intrinsic
    /// would scalarise vectors.
    fn saturated_integer(&self, value: Val, to: Type) -> Val {
        let ir = self.ir;
        let ty = ir.type_of(value);
        let int = ir.like(ty, ir.int(to.bits()));
        if ir.lanes(value).is_none() {
            let name = if to.is_signed() { "llvm.fptosi.sat" } else { "llvm.fptoui.sat" };
            return ir.intrinsic(name, &[int, ty], &[value]);
        }
        let bits = to.bits();
        let (least, beyond) = match to.is_signed() {
            true => (-(2f64.powi(bits as i32 - 1)), 2f64.powi(bits as i32 - 1)),
            false => (0.0, 2f64.powi(bits as i32)),
        };
        let above = ir.fcmp(RealPred::LLVMRealOGE, value, ir.real(ty, beyond));
        let inside = ir.and(ir.fcmp(RealPred::LLVMRealOGE, value, ir.real(ty, least)), ir.not(above));
        let safe = ir.select(inside, value, ir.real(ty, 0.0));
        let whole = if to.is_signed() { ir.fptosi(safe, int) } else { ir.fptoui(safe, int) };
        let most = if to.is_signed() { (1 << (bits - 1)) - 1 } else { u64::MAX };
        let whole = ir.select(above, ir.constant(int, most), whole);
        if !to.is_signed() {
            return whole;
        }
        let below = ir.fcmp(RealPred::LLVMRealOLT, value, ir.real(ty, least));
        ir.select(below, ir.constant(int, 1 << (bits - 1)), whole)
    }

    fn of_integer(&self, op: &Operation, value: Val) -> LoweringResult {
        let ir = self.ir;
        if op.ty == Type::F16 {
            return None;
        }
        let ty = self.value_type(op.ty);
        let converted = if op.source_ty.is_signed() { ir.sitofp(value, ty) } else { ir.uitofp(value, ty) };
        Some(if op.has(Modifier::Sat) { self.saturated(converted) } else { converted })
    }

    fn to_float(&self, op: &Operation, value: Val) -> LoweringResult {
        let ir = self.ir;
        let (to, from) = (op.ty, op.source_ty);
        let finished = |value: Val| {
            let value = if to == Type::F32 && op.has(Modifier::Ftz) { self.flushed(value) } else { value };
            if op.has(Modifier::Sat) { self.saturated(value) } else { value }
        };
        match (to, from) {
            (Type::F32, Type::F32) | (Type::F64, Type::F64) if !op.has(Modifier::Sat) || to == Type::F32 => {
                Some(finished(self.integral(op, value)))
            }
            (Type::F64, Type::F32) | (Type::F32, Type::F16) | (Type::F64, Type::F16) if !op.has(Modifier::Sat) => {
                Some(finished(ir.fpext(value, self.value_type(to))))
            }
            (Type::F32, Type::F64) if !rounds_specially(op) => Some(finished(ir.fptrunc(value, ir.float()))),
            (Type::F16, Type::F32) if !rounds_specially(op) && !op.has(Modifier::Sat) => Some(self.half_from(value)),
            _ => None,
        }
    }
}
