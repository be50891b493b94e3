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

#[cfg(test)]
mod tests {
    use super::super::testing::{op, pairs, values};
    use super::*;

    type Reference = fn(i128, i128) -> i128;

    /// Returns the number that the low bits of a value stand for in a type.
    fn int(ty: &str, value: u64) -> i128 {
        let bits: u32 = ty[1..].parse().unwrap();
        let low = i128::from(value) & ((1 << bits) - 1);
        if ty.starts_with('s') && low >> (bits - 1) == 1 { low - (1 << bits) } else { low }
    }

    fn cut(bits: u32, value: i128) -> u64 {
        (value & ((1_i128 << bits) - 1)) as u64
    }

    fn check(function: fn(&Operation, &Inputs) -> u64, text: &str, ty: &str, out_bits: u32, reference: Reference) {
        let op = op(text);
        for (a, b) in pairs() {
            let expected = cut(out_bits, reference(int(ty, a), int(ty, b)));
            let found = truncate(function(&op, &[a, b, 0, 0, 0, 0]), out_bits);
            assert_eq!(found, expected, "{text} {a:#x} {b:#x}");
        }
    }

    #[test]
    fn plain_forms_agree_with_big_integers() {
        for ty in ["u16", "u32", "u64", "s16", "s32", "s64"] {
            let bits = ty[1..].parse().unwrap();
            check(add, &format!("add.{ty}"), ty, bits, |a, b| a + b);
            check(sub, &format!("sub.{ty}"), ty, bits, |a, b| a - b);
            check(min, &format!("min.{ty}"), ty, bits, |a, b| if a < b { a } else { b });
            check(max, &format!("max.{ty}"), ty, bits, |a, b| if a > b { a } else { b });
            check(mul, &format!("mul.lo.{ty}"), ty, bits, |a, b| a.wrapping_mul(b));
            check(sad, &format!("sad.{ty}"), ty, bits, |a, b| if a < b { b - a } else { a - b });
            check(div, &format!("div.{ty}"), ty, bits, |a, b| if b == 0 { -1 } else { a / b });
            check(rem, &format!("rem.{ty}"), ty, bits, |a, b| if b == 0 { -1 } else { a % b });
        }
        for ty in ["s16", "s32", "s64"] {
            let bits = ty[1..].parse().unwrap();
            check(neg, &format!("neg.{ty}"), ty, bits, |a, _| -a);
            check(abs, &format!("abs.{ty}"), ty, bits, |a, _| if a < 0 { -a } else { a });
        }
    }

    #[test]
    fn products_have_the_parts_that_are_asked_for() {
        for ty in ["u16", "u32", "s16", "s32", "s64"] {
            let bits: u32 = ty[1..].parse().unwrap();
            let high: Reference = match bits {
                16 => |a, b| (a * b) >> 16,
                32 => |a, b| (a * b) >> 32,
                _ => |a, b| (a * b) >> 64,
            };
            check(mul, &format!("mul.hi.{ty}"), ty, bits, high);
            if bits < 64 {
                check(mul, &format!("mul.wide.{ty}"), ty, 2 * bits, |a, b| a * b);
            }
        }
        // The square of all ones needs the 128th bit.
        assert_eq!(mul(&op("mul.hi.u64"), &[u64::MAX, u64::MAX, 0, 0, 0, 0]), u64::MAX - 1);
        check(mul24, "mul24.lo.u32", "u24", 32, |a, b| a * b);
        check(mul24, "mul24.hi.u32", "u24", 32, |a, b| (a * b) >> 16);
        check(mul24, "mul24.lo.s32", "s24", 32, |a, b| a * b);
        check(mul24, "mul24.hi.s32", "s24", 32, |a, b| (a * b) >> 16);
    }

    #[test]
    fn a_third_operand_is_added() {
        for (text, third) in [("mad.lo.s32", 32), ("mad.hi.u16", 16), ("mad.wide.s32", 64), ("mad24.hi.u32", 32), ("sad.u16", 16)]
        {
            let op = op(text);
            let function = match text.split('.').next() {
                Some("mad") => mad,
                Some("mad24") => mad24,
                _ => sad,
            };
            for ((a, b), c) in pairs().zip(values().into_iter().cycle()) {
                let without = function(&op, &[a, b, 0, 0, 0, 0]);
                let with = function(&op, &[a, b, c, 0, 0, 0]);
                assert_eq!(truncate(with, third), truncate(without.wrapping_add(c), third), "{text} {a:#x} {b:#x} {c:#x}");
            }
        }
        let clamp = |value: i128| value.clamp(-0x8000_0000, 0x7fff_ffff);
        for ((a, b), c) in pairs().zip(values().into_iter().cycle()) {
            let high = (int("s32", a) * int("s32", b)) >> 32;
            let found = mad(&op("mad.hi.sat.s32"), &[a, b, c, 0, 0, 0]);
            assert_eq!(truncate(found, 32), cut(32, clamp(high + int("s32", c))));
            let high = (int("s24", a) * int("s24", b)) >> 16;
            let found = mad24(&op("mad24.hi.sat.s32"), &[a, b, c, 0, 0, 0]);
            assert_eq!(truncate(found, 32), cut(32, clamp(high + int("s32", c))));
        }
    }

    #[test]
    fn saturation_and_relu_clamp_each_lane() {
        check(add, "add.sat.s32", "s32", 32, |a, b| (a + b).clamp(-0x8000_0000, 0x7fff_ffff));
        check(sub, "sub.sat.s32", "s32", 32, |a, b| (a - b).clamp(-0x8000_0000, 0x7fff_ffff));
        check(add, "add.sat.u32", "u32", 32, |a, b| (a + b).min(0xffff_ffff));
        check(max, "max.relu.s32", "s32", 32, |a, b| a.max(b).max(0));
        check(min, "min.relu.s32", "s32", 32, |a, b| a.min(b).max(0));
        let inputs = [0x7fff_8000, 0x0001_ffff, 0, 0, 0, 0];
        assert_eq!(add(&op("add.s16x2"), &inputs), 0x8000_7fff);
        assert_eq!(add(&op("add.sat.s16x2"), &inputs), 0x7fff_8000);
        assert_eq!(add(&op("add.sat.u16x2"), &inputs), 0x8000_ffff);
        assert_eq!(max(&op("max.u16x2"), &inputs), 0x7fff_ffff);
        assert_eq!(max(&op("max.s16x2"), &inputs), 0x7fff_ffff);
        assert_eq!(min(&op("min.s16x2"), &inputs), 0x0001_8000);
        assert_eq!(min(&op("min.relu.s16x2"), &inputs), 0x0001_0000);
        let inputs = [0x80ff_7f01, 0x0101_0102, 0, 0, 0, 0];
        assert_eq!(sub(&op("sub.u8x4"), &inputs), 0x7ffe_7eff);
        assert_eq!(sub(&op("sub.sat.u8x4"), &inputs), 0x7ffe_7e00);
        assert_eq!(sub(&op("sub.sat.s8x4"), &inputs), 0x80fe_7eff);
        assert_eq!(neg(&op("neg.s8x4"), &inputs), 0x8001_81ff);
    }
}
