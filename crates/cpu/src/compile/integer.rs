//! Integer arithmetic (manual: "Integer Arithmetic Instructions").

use super::emitter::{Emitter, TranslationResult};
use super::evaluate::LoweringResult;
use super::llvm::{IntPred, Val};
use broadloom_eval::Operation;
use broadloom_ptx::{InstData, Modifier, Opcode, Operand, TypeKind};

impl Emitter<'_> {
    pub(crate) fn add(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        if op.has(Modifier::Sat) && is_plain_but_for_sat(op) {
            let name = if op.ty.is_signed() { "llvm.sadd.sat" } else { "llvm.uadd.sat" };
            return Some(self.ir.intrinsic(name, &[self.ir.type_of(inputs[0])], &inputs[..2]));
        }
        is_plain(op).then(|| self.ir.add(inputs[0], inputs[1]))
    }

    pub(crate) fn sub(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        if op.has(Modifier::Sat) && is_plain_but_for_sat(op) {
            let name = if op.ty.is_signed() { "llvm.ssub.sat" } else { "llvm.usub.sat" };
            return Some(self.ir.intrinsic(name, &[self.ir.type_of(inputs[0])], &inputs[..2]));
        }
        is_plain(op).then(|| self.ir.sub(inputs[0], inputs[1]))
    }

    pub(crate) fn neg(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        is_plain(op).then(|| self.ir.neg(inputs[0]))
    }

    pub(crate) fn abs(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let wrap = self.ir.constant(self.ir.int(1), 0);
        is_plain(op).then(|| self.ir.intrinsic("llvm.abs", &[self.ir.type_of(inputs[0])], &[inputs[0], wrap]))
    }

    pub(crate) fn min_max(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let name = match (op.opcode == Opcode::Min, op.ty.is_signed()) {
            (true, true) => "llvm.smin",
            (true, false) => "llvm.umin",
            (false, true) => "llvm.smax",
            (false, false) => "llvm.umax",
        };
        is_plain(op).then(|| self.ir.intrinsic(name, &[self.ir.type_of(inputs[0])], &inputs[..2]))
    }

    /// Returns the part of a product that the instruction selects.
    fn product(&self, op: &Operation, inputs: &[Val]) -> Val {
        let ir = self.ir;
        if op.has(Modifier::Lo) {
            return ir.mul(inputs[0], inputs[1]);
        }
        let bits = op.ty.bits();
        let signed = op.ty.is_signed();
        if bits == 64 && ir.lanes(inputs[0]).is_some() && ir.lanes(inputs[1]).is_some() {
            return self.high_half(inputs[0], inputs[1], signed);
        }
        let wide = ir.int(2 * bits);
        let (a, b) = (ir.resize(inputs[0], wide, signed), ir.resize(inputs[1], wide, signed));
        let all = ir.mul(a, b);
        if op.has(Modifier::Wide) {
            return all;
        }
        let shift = ir.constant(ir.type_of(all), u64::from(bits));
        ir.trunc(ir.lshr(all, shift), ir.int(bits))
    }

    /// Computes the high half of 64-bit products from products of their halves. No host has vectors of
    /// 128-bit integers, and scalar code for each lane is long.
    fn high_half(&self, a: Val, b: Val, signed: bool) -> Val {
        let ir = self.ir;
        let ty = ir.type_of(a);
        let (half, low_bits, sign) = (ir.constant(ty, 32), ir.constant(ty, u64::from(u32::MAX)), ir.constant(ty, 63));
        let (low, high) = (|value: Val| ir.and(value, low_bits), |value: Val| ir.lshr(value, half));
        let across = ir.add(ir.mul(high(a), low(b)), high(ir.mul(low(a), low(b))));
        let other = ir.add(ir.mul(low(a), high(b)), low(across));
        let all = ir.add(ir.add(ir.mul(high(a), high(b)), high(across)), high(other));
        if !signed {
            return all;
        }
        let if_negative = |value: Val, other: Val| ir.and(ir.ashr(value, sign), other);
        ir.sub(ir.sub(all, if_negative(a, b)), if_negative(b, a))
    }

    pub(crate) fn mul(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        is_plain(op).then(|| self.product(op, inputs))
    }

    pub(crate) fn mad(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        if op.has(Modifier::Cc) || !is_plain(op) {
            return None;
        }
        Some(self.ir.add(self.product(op, inputs), inputs[2]))
    }

    pub(crate) fn mul24(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        if op.has(Modifier::Hi) || op.has(Modifier::Sat) {
            return None;
        }
        let ir = self.ir;
        let cut = |value: Val| {
            let eight = ir.constant(ir.type_of(value), 8);
            let high = ir.shl(value, eight);
            if op.ty.is_signed() { ir.ashr(high, eight) } else { ir.lshr(high, eight) }
        };
        let product = ir.mul(cut(inputs[0]), cut(inputs[1]));
        Some(if op.opcode == Opcode::Mad24 { ir.add(product, inputs[2]) } else { product })
    }

    pub(crate) fn sad(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        let less = ir.icmp(if op.ty.is_signed() { IntPred::LLVMIntSLT } else { IntPred::LLVMIntULT }, inputs[0], inputs[1]);
        let (forth, back) = (ir.sub(inputs[0], inputs[1]), ir.sub(inputs[1], inputs[0]));
        Some(ir.add(ir.select(less, back, forth), inputs[2]))
    }

    /// Emits a division that never traps. Division by zero gives all ones; the most negative number is not
    /// divided by -1. The divisor is a scalar if all lanes have the same one.
    fn divide(&self, op: &Operation, [a, b]: [Val; 2], take: impl Fn(Val, Val) -> Val) -> LoweringResult {
        let ir = self.ir;
        let (ty, by) = (ir.type_of(a), ir.type_of(b));
        let by_zero = ir.icmp(IntPred::LLVMIntEQ, b, ir.constant(by, 0));
        let mut divisor = ir.select(by_zero, ir.constant(by, 1), b);
        if op.ty.is_signed() {
            // x / -1 = -x and x % -1 = 0 hold for all x in wrapping arithmetic.
            let minus = ir.icmp(IntPred::LLVMIntEQ, b, ir.constant(by, u64::MAX));
            divisor = ir.select(minus, ir.constant(by, 1), divisor);
            let quotient = take(a, divisor);
            let by_minus_one = if op.opcode == Opcode::Div { ir.neg(a) } else { ir.constant(ty, 0) };
            let value = ir.select(minus, by_minus_one, quotient);
            return Some(ir.select(by_zero, ir.constant(ty, u64::MAX), value));
        }
        let value = take(a, divisor);
        Some(ir.select(by_zero, ir.constant(ty, u64::MAX), value))
    }

    /// Returns the divisor of vectors of 32-bit integers as a scalar, if all lanes have the same one and it is
    /// not known before the launch.
    fn common_divisor(&self, op: &Operation, inst: &InstData, a: Val) -> TranslationResult<Option<Val>> {
        let Some((Operand::Reg(reg), ty)) = broadloom_eval::inputs(inst).nth(1) else { return Ok(None) };
        if self.ir.lanes(a).is_none() || op.ty.bits() != 32 || !self.shapes.shape(*reg).is_uniform() {
            return Ok(None);
        }
        let divisor = self.fetch(&Operand::Reg(*reg), ty, true)?;
        Ok((self.ir.lanes(divisor).is_none() && !self.ir.is_constant(divisor)).then_some(divisor))
    }

    pub(crate) fn div(&self, op: &Operation, inst: &InstData, inputs: &[Val]) -> TranslationResult<LoweringResult> {
        let divisor = self.common_divisor(op, inst, inputs[0])?.unwrap_or(inputs[1]);
        Ok(self.divide(op, [inputs[0], divisor], |a, b| self.quotient(op, a, b)))
    }

    pub(crate) fn rem(&self, op: &Operation, inst: &InstData, inputs: &[Val]) -> TranslationResult<LoweringResult> {
        let ir = self.ir;
        let divisor = self.common_divisor(op, inst, inputs[0])?.unwrap_or(inputs[1]);
        let operands = [inputs[0], divisor];
        if ir.lanes(inputs[0]).is_some() && op.ty.bits() <= 32 {
            let rest = |a: Val, b: Val| ir.sub(a, ir.mul(self.quotient(op, a, b), self.as_wide(b, ir.type_of(a))));
            return Ok(self.divide(op, operands, rest));
        }
        Ok(self.divide(op, operands, |a, b| if op.ty.is_signed() { ir.srem(a, b) } else { ir.urem(a, b) }))
    }

    /// Divides 32-bit integers as `f64`. No host divides integer vectors, but all divide vectors of `f64`,
    /// which holds 32 bits exactly. The quotient is never so close to the next integer that rounding reaches
    /// it.
    ///
    /// A scalar divisor *b* is inverted once. The dividend is moved by a half away from zero, so that the
    /// quotient is at least 1 / 2*b* away from all integers but its own. Its error is below 2⁻¹⁸ / *b*.
    fn quotient(&self, op: &Operation, a: Val, b: Val) -> Val {
        let ir = self.ir;
        let signed = op.ty.is_signed();
        if ir.lanes(a).is_none() || op.ty.bits() > 32 || ir.is_constant(b) {
            return if signed { ir.sdiv(a, b) } else { ir.udiv(a, b) };
        }
        let double = ir.double();
        let wide = |value: Val| if signed { ir.sitofp(value, double) } else { ir.uitofp(value, double) };
        let ty = ir.type_of(a);
        let quotient = match (ir.lanes(a), ir.lanes(b)) {
            (Some(lanes), None) => {
                let inverse = ir.fdiv(ir.real(double, 1.0), wide(b));
                let dividend = wide(a);
                let half = ir.real(ir.type_of(dividend), 0.5);
                let half = match signed {
                    true => ir.intrinsic("llvm.copysign", &[ir.type_of(dividend)], &[half, dividend]),
                    false => half,
                };
                ir.fmul(ir.fadd(dividend, half), ir.splat(inverse, lanes))
            }
            _ => ir.fdiv(wide(a), wide(b)),
        };
        if signed { ir.fptosi(quotient, ty) } else { ir.fptoui(quotient, ty) }
    }

    pub(crate) fn dp4a(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        let ty = ir.type_of(inputs[0]);
        let byte = |value: Val, index: u64, signed: bool| {
            let up = ir.shl(value, ir.constant(ty, 24 - 8 * index));
            let down = ir.constant(ty, 24);
            if signed { ir.ashr(up, down) } else { ir.lshr(up, down) }
        };
        let mut sum = inputs[2];
        for index in 0..4 {
            let (a, b) = (byte(inputs[0], index, op.ty.is_signed()), byte(inputs[1], index, op.source_ty.is_signed()));
            sum = ir.add(sum, ir.mul(a, b));
        }
        Some(sum)
    }
}

fn is_plain_but_for_sat(op: &Operation) -> bool {
    !op.has(Modifier::Relu) && op.ty.bits() <= 64 && op.ty.is_integer()
}

/// Returns whether an instruction has none of the modifiers that change a plain integer operation.
pub(crate) fn is_plain(op: &Operation) -> bool {
    !op.has(Modifier::Sat) && !op.has(Modifier::Relu) && op.ty.kind() != TypeKind::Packed
}
