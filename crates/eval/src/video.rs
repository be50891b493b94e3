//! Scalar video instructions (manual: "Scalar Video Instructions").
//!
//! All of them take the same steps. A byte, halfword or word is selected from each source and extended by its
//! type. The operation is done without loss. `.sat` clamps to the range of the destination, or of the written
//! part of it. Then the result is combined with a third operand, or its low bits replace a part of that
//! operand.
//!
//! Current machines have no such instructions, and NVIDIA's assembler deviates from the manual in places: an
//! upper bound of `.u32.sat`, a merge into `.h1`, a `.sat` merge of negative results and the sign of the
//! third operand of some `vmad` and `vset` are wrong there. This implementation follows the manual.

use super::arith::saturate;
use super::compare::{operator, relation};
use super::{number, truncate};
use crate::{Inputs, Operation};
use broadloom_ptx::{Modifier, Selector, Type};

/// Returns the position of a part of a word, and its number of bits.
fn place(selector: Option<Selector>) -> (u32, u32) {
    match selector {
        Some(Selector::B0) => (0, 8),
        Some(Selector::B1) => (8, 8),
        Some(Selector::B2) => (16, 8),
        Some(Selector::B3) => (24, 8),
        Some(Selector::H0) => (0, 16),
        Some(Selector::H1) => (16, 16),
        Some(Selector::Lanes(_) | Selector::Mask(_)) | None => (0, 32),
    }
}

/// Returns the value of the selected part of a source in its type.
fn source(op: &Operation, inputs: &Inputs, index: usize, ty: Type) -> i128 {
    let (shift, bits) = place(op.from[index].selector);
    number(ty.is_signed(), bits, inputs[index] >> shift)
}

/// Finishes the result of the operation: saturates it, then combines it with the third operand or merges it
/// into it.
fn finish(op: &Operation, inputs: &Inputs, result: i128, signed: bool) -> u64 {
    let into = op.into.selector;
    let (shift, bits) = place(into);
    let result = if op.has(Modifier::Sat) { saturate(signed, bits, result) } else { result };
    if into.is_some() {
        let field = truncate(u64::MAX, bits) << shift;
        return ((result as u64) << shift & field) | (inputs[2] & !field);
    }
    let third = number(signed, 32, inputs[2]);
    let combined = if op.has(Modifier::Add) {
        result + third
    } else if op.has(Modifier::Min) {
        result.min(third)
    } else if op.has(Modifier::Max) {
        result.max(third)
    } else {
        result
    };
    combined as u64
}

/// Computes `vop.dtype.atype.btype`.
fn arithmetic(op: &Operation, inputs: &Inputs, apply: impl Fn(i128, i128) -> i128) -> u64 {
    let result = apply(source(op, inputs, 0, op.source_ty), source(op, inputs, 1, op.third_ty));
    finish(op, inputs, result, op.ty.is_signed())
}

pub(crate) fn vadd(op: &Operation, inputs: &Inputs) -> u64 {
    arithmetic(op, inputs, |a, b| a + b)
}

pub(crate) fn vsub(op: &Operation, inputs: &Inputs) -> u64 {
    arithmetic(op, inputs, |a, b| a - b)
}

pub(crate) fn vabsdiff(op: &Operation, inputs: &Inputs) -> u64 {
    arithmetic(op, inputs, |a, b| (a - b).abs())
}

pub(crate) fn vmin(op: &Operation, inputs: &Inputs) -> u64 {
    arithmetic(op, inputs, Ord::min)
}

pub(crate) fn vmax(op: &Operation, inputs: &Inputs) -> u64 {
    arithmetic(op, inputs, Ord::max)
}

/// Returns the shift amount: at most 32, or modulo 32.
fn amount(op: &Operation, by: i128) -> i128 {
    if op.has(Modifier::Clamp) { by.min(32) } else { by & 31 }
}

pub(crate) fn vshl(op: &Operation, inputs: &Inputs) -> u64 {
    arithmetic(op, inputs, |a, b| a << amount(op, b))
}

pub(crate) fn vshr(op: &Operation, inputs: &Inputs) -> u64 {
    arithmetic(op, inputs, |a, b| a >> amount(op, b))
}

/// Computes `vset.atype.btype.cmp`. Its result and its third operand are unsigned.
pub(crate) fn vset(op: &Operation, inputs: &Inputs) -> u64 {
    let (a, b) = (source(op, inputs, 0, op.ty), source(op, inputs, 1, op.source_ty));
    let holds = relation(a, b) & operator(&op.modifiers) != 0;
    finish(op, inputs, i128::from(holds), false)
}

/// Computes `vmad`. Product and sum are exact; a minus before a factor negates the product. The result is
/// signed if a factor is signed or something is negated, and then the third operand is signed too.
pub(crate) fn vmad(op: &Operation, inputs: &Inputs) -> u64 {
    let negate_product = op.from[0].negated ^ op.from[1].negated;
    let negate_third = op.from[2].negated;
    let signed = op.source_ty.is_signed() || op.third_ty.is_signed() || negate_product || negate_third;
    let product = source(op, inputs, 0, op.source_ty) * source(op, inputs, 1, op.third_ty);
    // A negated third operand is complemented in 32 bits, extended, and incremented.
    let third = number(signed, 32, if negate_third && !negate_product { !inputs[2] } else { inputs[2] });
    let sum = if op.has(Modifier::Po) {
        product + third + 1
    } else if negate_product {
        third - product
    } else {
        product + third + i128::from(negate_third)
    };
    let scaled = if op.has(Modifier::Shr7) {
        sum >> 7
    } else if op.has(Modifier::Shr15) {
        sum >> 15
    } else {
        sum
    };
    (if op.has(Modifier::Sat) { saturate(signed, 32, scaled) } else { scaled }) as u64
}

#[cfg(test)]
mod tests {
    use super::super::testing::{op, pairs};
    use super::*;
    use crate::operation::Part;

    fn op_with(text: &str, into: Option<Selector>, from: [(Option<Selector>, bool); 3]) -> Operation {
        let mut op = op(text);
        op.into.selector = into;
        op.from = from.map(|(selector, negated)| Part { selector, negated });
        op
    }

    fn plain(text: &str) -> Operation {
        op_with(text, None, [(None, false); 3])
    }

    fn low(value: u64) -> u32 {
        value as u32
    }

    #[test]
    fn words_are_extended_by_their_types() {
        for (a, b) in pairs() {
            let inputs = [a & 0xffff_ffff, b & 0xffff_ffff, 0, 0, 0, 0];
            let (sa, ub) = (i64::from(a as u32 as i32), (b & 0xffff_ffff) as i64);
            let clamp_s = |value: i64| value.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32;
            let clamp_u = |value: i64| value.clamp(0, 0xffff_ffff) as u32;
            assert_eq!(low(vadd(&plain("vadd.s32.s32.u32.sat"), &inputs)), clamp_s(sa + ub));
            assert_eq!(low(vadd(&plain("vadd.u32.s32.u32.sat"), &inputs)), clamp_u(sa + ub));
            assert_eq!(low(vsub(&plain("vsub.u32.s32.u32"), &inputs)), (sa - ub) as u32);
            assert_eq!(low(vabsdiff(&plain("vabsdiff.s32.s32.u32.sat"), &inputs)), clamp_s((sa - ub).abs()));
            assert_eq!(low(vmin(&plain("vmin.s32.s32.u32.sat"), &inputs)), clamp_s(sa.min(ub)));
            assert_eq!(low(vmax(&plain("vmax.u32.s32.u32"), &inputs)), sa.max(ub) as u32);
            assert_eq!(low(vset(&plain("vset.s32.u32.lt"), &inputs)), u32::from(sa < ub));
            assert_eq!(low(vset(&plain("vset.s32.u32.ne"), &inputs)), u32::from(sa != ub));
        }
    }

    #[test]
    fn parts_are_selected_and_merged() {
        let parts = [Selector::B0, Selector::B1, Selector::B2, Selector::B3, Selector::H0, Selector::H1];
        let masks = [0xff_u32, 0xff00, 0x00ff_0000, 0xff00_0000, 0xffff, 0xffff_0000];
        let (a, b, c) = (0x80fe_7f81_u32, 0x01ff_80fe_u32, 0x1234_5678_u32);
        let inputs = [u64::from(a), u64::from(b), u64::from(c), 0, 0, 0];
        for (selector, mask) in parts.into_iter().zip(masks) {
            let shift = mask.trailing_zeros();
            let field = |word: u32| i64::from((word & mask) >> shift);
            let bits = mask.count_ones();
            let signed = |word: u32| (field(word) << (64 - bits)) >> (64 - bits);
            let from = [(Some(selector), false), (Some(selector), false), (None, false)];
            let sum = signed(a) + field(b);
            assert_eq!(low(vadd(&op_with("vadd.s32.s32.u32", None, from), &inputs)), sum as u32);
            let merged = ((sum as u32) << shift & mask) | (c & !mask);
            assert_eq!(low(vadd(&op_with("vadd.s32.s32.u32", Some(selector), from), &inputs)), merged);
            let most = (1_i64 << (bits - 1)) - 1;
            let merged = ((sum.clamp(-most - 1, most) as u32) << shift & mask) | (c & !mask);
            assert_eq!(low(vadd(&op_with("vadd.s32.s32.u32.sat", Some(selector), from), &inputs)), merged);
        }
        let from = [(Some(Selector::B0), false), (Some(Selector::B0), false), (None, false)];
        assert_eq!(low(vadd(&op_with("vadd.s32.s32.s32.add", None, from), &inputs)), (-127 - 2 + 0x1234_5678_i32) as u32);
        assert_eq!(low(vadd(&op_with("vadd.s32.s32.s32.min", None, from), &inputs)), -129_i32 as u32);
        assert_eq!(low(vadd(&op_with("vadd.s32.s32.s32.max", None, from), &inputs)), c);
    }

    #[test]
    fn shifts_clamp_or_wrap() {
        let shift = |function: fn(&Operation, &Inputs) -> u64, text: &str, a: u32, by: u32| {
            low(function(&plain(text), &[u64::from(a), u64::from(by), 0, 0, 0, 0]))
        };
        assert_eq!(shift(vshl, "vshl.u32.u32.u32.clamp", 0x8000_0001, 1), 2);
        assert_eq!(shift(vshl, "vshl.u32.u32.u32.sat.clamp", 0x8000_0001, 1), 0xffff_ffff);
        assert_eq!(shift(vshl, "vshl.u32.u32.u32.clamp", 1, 32), 0);
        assert_eq!(shift(vshl, "vshl.u32.u32.u32.wrap", 1, 32), 1);
        assert_eq!(shift(vshr, "vshr.s32.s32.u32.clamp", 0x8000_0000, 99), 0xffff_ffff);
        assert_eq!(shift(vshr, "vshr.u32.u32.u32.wrap", 0x8000_0000, 63), 1);
    }

    #[test]
    fn products_are_negated_scaled_and_saturated() {
        let halves = |negate: [bool; 3]| [(Some(Selector::H0), negate[0]), (Some(Selector::H1), negate[1]), (None, negate[2])];
        for (a, b) in pairs() {
            let c = (a ^ b) as u32;
            let inputs = [a & 0xffff_ffff, b & 0xffff_ffff, u64::from(c), 0, 0, 0];
            let (x, y) = (i64::from(a as u16 as i16), i64::from((b >> 16) as u16));
            let sc = i64::from(c as i32);
            let plain = |text: &str| low(vmad(&op_with(text, None, halves([false; 3])), &inputs));
            assert_eq!(plain("vmad.s32.s32.u32"), (x * y + sc) as u32);
            assert_eq!(plain("vmad.s32.s32.u32.shr7"), ((x * y + sc) >> 7) as u32);
            assert_eq!(plain("vmad.s32.s32.u32.po.shr15"), ((x * y + sc + 1) >> 15) as u32);
            let clamp = |value: i64| value.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32;
            assert_eq!(plain("vmad.s32.s32.u32.sat"), clamp(x * y + sc));
            let negated = |negate| low(vmad(&op_with("vmad.s32.s32.u32", None, halves(negate)), &inputs));
            assert_eq!(negated([true, false, false]), (sc - x * y) as u32);
            assert_eq!(negated([false, true, false]), (sc - x * y) as u32);
            assert_eq!(negated([true, true, false]), (sc + x * y) as u32);
            assert_eq!(negated([false, false, true]), (x * y - sc) as u32);
            let (x, y) = (i64::from(a as u16), i64::from((b >> 16) as u16));
            assert_eq!(plain("vmad.u32.u32.u32.sat"), (x * y + i64::from(c)).min(0xffff_ffff) as u32);
        }
    }
}
