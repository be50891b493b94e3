//! Integer arithmetic (manual: "Integer Arithmetic Instructions").
//!
//! Sums, differences and low halves of products have the same bits signed and unsigned, so they are computed
//! in 64 bits and truncated by the engine. Everything else first extends its operands by the type of the
//! instruction. A packed type is several lanes of one narrow type.

use super::{number, sign_extend, truncate};
use crate::{Inputs, Operation};
use broadloom_ptx::{Modifier, Type};

/// Returns the width of a lane of a packed integer type; `None` for types that are not packed.
fn lane_bits(ty: Type) -> Option<u32> {
    if matches!(ty, Type::U16x2 | Type::S16x2) {
        Some(16)
    } else if matches!(ty, Type::U8x4 | Type::S8x4) {
        Some(8)
    } else {
        None
    }
}

/// Returns the value of an operand of the instruction's type.
fn operand(op: &Operation, value: u64) -> i128 {
    number(op.ty.is_signed(), op.ty.bits(), value)
}

/// Clamps to the range of an integer of this width.
pub(super) fn saturate(signed: bool, bits: u32, value: i128) -> i128 {
    let (low, high) = if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    value.clamp(low, high)
}

/// Applies a function to each lane, or to the only one, with `.sat` and `.relu` on each result.
fn each_lane(op: &Operation, inputs: &Inputs, apply: impl Fn(i128, i128) -> i128) -> u64 {
    let signed = op.ty.is_signed();
    let bits = lane_bits(op.ty).unwrap_or(op.ty.bits());
    let mut result = 0;
    for shift in (0..op.ty.bits()).step_by(bits as usize) {
        let mut lane = apply(number(signed, bits, inputs[0] >> shift), number(signed, bits, inputs[1] >> shift));
        if op.has(Modifier::Sat) {
            lane = saturate(signed, bits, lane);
        }
        if op.has(Modifier::Relu) {
            lane = lane.max(0);
        }
        result |= truncate(lane as u64, bits) << shift;
    }
    result
}

/// Returns whether lanes wrap around like 64 bits do: one lane, without `.sat` or `.relu`.
fn is_plain(op: &Operation) -> bool {
    lane_bits(op.ty).is_none() && !op.has(Modifier::Sat) && !op.has(Modifier::Relu)
}

pub(crate) fn add(op: &Operation, inputs: &Inputs) -> u64 {
    if is_plain(op) { inputs[0].wrapping_add(inputs[1]) } else { each_lane(op, inputs, |a, b| a + b) }
}

pub(crate) fn sub(op: &Operation, inputs: &Inputs) -> u64 {
    if is_plain(op) { inputs[0].wrapping_sub(inputs[1]) } else { each_lane(op, inputs, |a, b| a - b) }
}

pub(crate) fn neg(op: &Operation, inputs: &Inputs) -> u64 {
    if is_plain(op) { inputs[0].wrapping_neg() } else { each_lane(op, inputs, |a, _| -a) }
}

/// Computes `abs`. The most negative number has no counterpart and stays unchanged.
pub(crate) fn abs(op: &Operation, inputs: &Inputs) -> u64 {
    sign_extend(inputs[0], op.ty.bits()).unsigned_abs()
}

pub(crate) fn min(op: &Operation, inputs: &Inputs) -> u64 {
    if is_plain(op) { pick(inputs, is_less(op, inputs)) } else { each_lane(op, inputs, Ord::min) }
}

pub(crate) fn max(op: &Operation, inputs: &Inputs) -> u64 {
    if is_plain(op) { pick(inputs, !is_less(op, inputs)) } else { each_lane(op, inputs, Ord::max) }
}

fn is_less(op: &Operation, inputs: &Inputs) -> bool {
    let bits = op.ty.bits();
    if op.ty.is_signed() {
        sign_extend(inputs[0], bits) < sign_extend(inputs[1], bits)
    } else {
        truncate(inputs[0], bits) < truncate(inputs[1], bits)
    }
}

fn pick(inputs: &Inputs, first: bool) -> u64 {
    if first { inputs[0] } else { inputs[1] }
}

/// Returns all bits of a product; above twice the width of the type they continue its sign.
pub(super) fn product(signed: bool, bits: u32, a: u64, b: u64) -> u128 {
    if signed {
        (i128::from(sign_extend(a, bits)) * i128::from(sign_extend(b, bits))) as u128
    } else {
        u128::from(truncate(a, bits)) * u128::from(truncate(b, bits))
    }
}

/// Returns the part of the product that `.lo`, `.hi` or `.wide` selects.
fn part_of_product(op: &Operation, inputs: &Inputs) -> u64 {
    if op.has(Modifier::Lo) {
        return inputs[0].wrapping_mul(inputs[1]);
    }
    let bits = op.ty.bits();
    let all = product(op.ty.is_signed(), bits, inputs[0], inputs[1]);
    if op.has(Modifier::Hi) { (all >> bits) as u64 } else { all as u64 }
}

pub(crate) fn mul(op: &Operation, inputs: &Inputs) -> u64 {
    part_of_product(op, inputs)
}

/// Computes `mad`. With `.sat`, which only `mad.hi.sat.s32` has, the sum saturates.
pub(crate) fn mad(op: &Operation, inputs: &Inputs) -> u64 {
    add_third(op, part_of_product(op, inputs), inputs[2])
}

fn add_third(op: &Operation, part: u64, third: u64) -> u64 {
    if op.has(Modifier::Sat) {
        let sum = operand(op, part) + operand(op, third);
        return saturate(op.ty.is_signed(), op.ty.bits(), sum) as u64;
    }
    part.wrapping_add(third)
}

/// Computes `mul24`: bits 31..0 or 47..16 of the product of the low 24 bits. Higher bits of the operands are
/// ignored.
pub(crate) fn mul24(op: &Operation, inputs: &Inputs) -> u64 {
    let all = product(op.ty.is_signed(), 24, inputs[0], inputs[1]);
    truncate(if op.has(Modifier::Hi) { (all >> 16) as u64 } else { all as u64 }, 32)
}

pub(crate) fn mad24(op: &Operation, inputs: &Inputs) -> u64 {
    add_third(op, mul24(op, inputs), inputs[2])
}

pub(crate) fn sad(op: &Operation, inputs: &Inputs) -> u64 {
    let difference = (operand(op, inputs[0]) - operand(op, inputs[1])).unsigned_abs();
    (difference as u64).wrapping_add(inputs[2])
}

/// Computes `div`, rounded toward zero. The manual leaves division by zero to the machine, and does not
/// define the most negative number divided by -1. Machines give all ones for the former and the dividend for
/// the latter.
pub(crate) fn div(op: &Operation, inputs: &Inputs) -> u64 {
    let bits = op.ty.bits();
    if op.ty.is_signed() {
        let divisor = sign_extend(inputs[1], bits);
        return if divisor == 0 { u64::MAX } else { sign_extend(inputs[0], bits).wrapping_div(divisor) as u64 };
    }
    truncate(inputs[0], bits).checked_div(truncate(inputs[1], bits)).unwrap_or(u64::MAX)
}

/// Computes `rem`, with the sign of the dividend. For a divisor of zero, which the manual leaves to the
/// machine, the result is all ones.
pub(crate) fn rem(op: &Operation, inputs: &Inputs) -> u64 {
    let bits = op.ty.bits();
    if op.ty.is_signed() {
        let divisor = sign_extend(inputs[1], bits);
        return if divisor == 0 { u64::MAX } else { sign_extend(inputs[0], bits).wrapping_rem(divisor) as u64 };
    }
    truncate(inputs[0], bits).checked_rem(truncate(inputs[1], bits)).unwrap_or(u64::MAX)
}
