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
