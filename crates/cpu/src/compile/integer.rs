//! Integer arithmetic (manual: "Integer Arithmetic Instructions").

use super::emit::Emitter;
use super::llvm::{IntPred, Val};
use super::pure::{Lowered, is_plain};
use broadloom_eval::Operation;
use broadloom_ptx::{Modifier, Opcode};

impl Emitter<'_> {
    pub(crate) fn add(&self, op: &Operation, inputs: &[Val]) -> Lowered {
        if op.has(Modifier::Sat) && is_plain_but_for_sat(op) {
            let name = if op.ty.is_signed() { "llvm.sadd.sat" } else { "llvm.uadd.sat" };
            return Some(self.ir.intrinsic(name, &[self.ir.type_of(inputs[0])], &inputs[..2]));
        }
        is_plain(op).then(|| self.ir.add(inputs[0], inputs[1]))
    }

    pub(crate) fn sub(&self, op: &Operation, inputs: &[Val]) -> Lowered {
        if op.has(Modifier::Sat) && is_plain_but_for_sat(op) {
            let name = if op.ty.is_signed() { "llvm.ssub.sat" } else { "llvm.usub.sat" };
            return Some(self.ir.intrinsic(name, &[self.ir.type_of(inputs[0])], &inputs[..2]));
        }
        is_plain(op).then(|| self.ir.sub(inputs[0], inputs[1]))
    }

    pub(crate) fn neg(&self, op: &Operation, inputs: &[Val]) -> Lowered {
        is_plain(op).then(|| self.ir.neg(inputs[0]))
    }

    pub(crate) fn abs(&self, op: &Operation, inputs: &[Val]) -> Lowered {
        let wrap = self.ir.constant(self.ir.int(1), 0);
        is_plain(op).then(|| self.ir.intrinsic("llvm.abs", &[self.ir.type_of(inputs[0])], &[inputs[0], wrap]))
    }

    pub(crate) fn min_max(&self, op: &Operation, inputs: &[Val]) -> Lowered {
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

    pub(crate) fn mul(&self, op: &Operation, inputs: &[Val]) -> Lowered {
        is_plain(op).then(|| self.product(op, inputs))
    }

    pub(crate) fn mad(&self, op: &Operation, inputs: &[Val]) -> Lowered {
        if op.has(Modifier::Cc) || !is_plain(op) {
            return None;
        }
        Some(self.ir.add(self.product(op, inputs), inputs[2]))
    }

    pub(crate) fn mul24(&self, op: &Operation, inputs: &[Val]) -> Lowered {
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

    pub(crate) fn sad(&self, op: &Operation, inputs: &[Val]) -> Lowered {
        let ir = self.ir;
        let less = ir.icmp(if op.ty.is_signed() { IntPred::LLVMIntSLT } else { IntPred::LLVMIntULT }, inputs[0], inputs[1]);
        let (forth, back) = (ir.sub(inputs[0], inputs[1]), ir.sub(inputs[1], inputs[0]));
        Some(ir.add(ir.select(less, back, forth), inputs[2]))
    }

    /// Emits a division that never traps. Division by zero gives all ones; the most negative number is not
    /// divided by -1.
    fn divide(&self, op: &Operation, inputs: &[Val], take: impl Fn(Val, Val) -> Val) -> Lowered {
        let ir = self.ir;
        let ty = ir.type_of(inputs[0]);
        let (zero, one) = (ir.constant(ty, 0), ir.constant(ty, 1));
        let by_zero = ir.icmp(IntPred::LLVMIntEQ, inputs[1], zero);
        let mut divisor = ir.select(by_zero, one, inputs[1]);
        if op.ty.is_signed() {
            // x / -1 = -x and x % -1 = 0 hold for all x in wrapping arithmetic.
            let minus = ir.icmp(IntPred::LLVMIntEQ, inputs[1], ir.constant(ty, u64::MAX));
            divisor = ir.select(minus, one, divisor);
            let quotient = take(inputs[0], divisor);
            let by_minus_one = if op.opcode == Opcode::Div { ir.neg(inputs[0]) } else { zero };
            let value = ir.select(minus, by_minus_one, quotient);
            return Some(ir.select(by_zero, ir.constant(ty, u64::MAX), value));
        }
        let value = take(inputs[0], divisor);
        Some(ir.select(by_zero, ir.constant(ty, u64::MAX), value))
    }

    pub(crate) fn div(&self, op: &Operation, inputs: &[Val]) -> Lowered {
        self.divide(op, inputs, |a, b| self.quotient(op, a, b))
    }

    pub(crate) fn rem(&self, op: &Operation, inputs: &[Val]) -> Lowered {
        let ir = self.ir;
        if ir.lanes(inputs[0]).is_some() && op.ty.bits() <= 32 {
            return self.divide(op, inputs, |a, b| ir.sub(a, ir.mul(self.quotient(op, a, b), b)));
        }
        self.divide(op, inputs, |a, b| if op.ty.is_signed() { ir.srem(a, b) } else { ir.urem(a, b) })
    }

    /// Divides 32-bit integers as `f64`. No host divides integer vectors, but all divide vectors of `f64`,
    /// which holds 32 bits exactly. The quotient is never so close to the next integer that rounding reaches
    /// it.
    fn quotient(&self, op: &Operation, a: Val, b: Val) -> Val {
        let ir = self.ir;
        let signed = op.ty.is_signed();
        if ir.lanes(a).is_none() || op.ty.bits() > 32 || ir.is_constant(b) {
            return if signed { ir.sdiv(a, b) } else { ir.udiv(a, b) };
        }
        let double = ir.double();
        let wide = |value: Val| if signed { ir.sitofp(value, double) } else { ir.uitofp(value, double) };
        let quotient = ir.fdiv(wide(a), wide(b));
        let ty = ir.type_of(a);
        if signed { ir.fptosi(quotient, ty) } else { ir.fptoui(quotient, ty) }
    }

    pub(crate) fn dp4a(&self, op: &Operation, inputs: &[Val]) -> Lowered {
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
