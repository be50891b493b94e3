//! Approximate instructions (manual: `div.approx`, `rcp.approx`, `rsqrt`, `sin`, `cos`, `lg2`, `ex2`,
//! `tanh`).
//!
//! All except those that keep only the upper half of an `f64` are computed in `f64`, whose error is far below
//! the bounds of the manual, and rounded once to the type of the instruction. `.ftz` applies to operands and
//! results as in exact instructions.

use super::{Mode, half, lanes, quiet_nan_f64};
use crate::soft::{Format, Number};
use crate::{Inputs, Operation};
use broadloom_ptx::{Modifier, Type};

/// Applies a function in `f64` to each lane. The function never gets a NaN.
#[inline(always)]
fn each(op: &Operation, register: u64, function: impl Fn(f64) -> f64) -> u64 {
    let ftz = op.has(Modifier::Ftz);
    let flushed = |format: Format, bits: u64| if ftz { format.flushed(bits) } else { bits };
    if op.ty == Type::F32 {
        let operand = f32::from_bits(flushed(Format::F32, register) as u32);
        let result = if operand.is_nan() { f32::NAN } else { function(f64::from(operand)) as f32 };
        let bits = if result.is_nan() { Format::F32.canonical_nan() } else { u64::from(result.to_bits()) };
        return flushed(Format::F32, bits);
    }
    let (lanes, mode) = (lanes(op), Mode::of(op));
    let format = lanes.format;
    lanes.make(|lane| {
        let bits = flushed(format, lanes.get(register, lane));
        if format.is_nan(bits) {
            return format.canonical_nan();
        }
        let result = function(half::to_f64(format, bits));
        mode.result(format, Number::of(Format::F64, result.to_bits()))
    })
}

/// Computes `div.approx.f32`: the dividend times the reciprocal of the divisor, which is flushed if it would
/// be subnormal.
pub(super) fn div(op: &Operation, inputs: &Inputs) -> u64 {
    const FORMAT: Format = Format::F32;
    /// 2^126.
    const LARGE: u64 = 0x7e80_0000;
    let mode = Mode::of(op);
    let [a, b] = [inputs[0], inputs[1]].map(|bits| mode.operand(FORMAT, bits));
    let divisor = b & FORMAT.magnitude_mask();
    if divisor > LARGE && divisor < FORMAT.infinity() && !FORMAT.is_nan(a) {
        let negative = FORMAT.is_negative(a) != FORMAT.is_negative(b);
        return if FORMAT.is_infinite(a) { FORMAT.canonical_nan() } else { FORMAT.with_sign(0, negative) };
    }
    mode.result(FORMAT, Number::of(FORMAT, a).div(Number::of(FORMAT, b)))
}

/// Returns the upper word of an `f64` as a number, with subnormals flushed to zero; `None` for NaN.
fn upper_word(bits: u64) -> Option<f64> {
    let upper = Format::F64.flushed(bits & 0xffff_ffff_0000_0000);
    (!Format::F64.is_nan(upper)).then_some(f64::from_bits(upper))
}

/// Truncates a result to its upper word; NaN and subnormals follow the manual.
fn to_upper_word(value: f64) -> u64 {
    if value.is_nan() {
        return 0x7fff_ffff_0000_0000;
    }
    Format::F64.flushed(value.to_bits() & 0xffff_ffff_0000_0000)
}

/// Computes `rcp.approx.ftz.f64`.
pub(super) fn rcp_f64(bits: u64) -> u64 {
    to_upper_word(upper_word(bits).map_or(f64::NAN, f64::recip))
}

/// Computes `rsqrt.approx.ftz.f64`.
fn rsqrt_upper_f64(bits: u64) -> u64 {
    to_upper_word(upper_word(bits).map_or(f64::NAN, inverse_root))
}

/// Computes `rsqrt.approx.f64`.
fn rsqrt_f64(bits: u64) -> u64 {
    let result = inverse_root(f64::from_bits(bits));
    if result.is_nan() {
        return quiet_nan_f64(&[bits]).unwrap_or(Format::F64.canonical_nan());
    }
    result.to_bits()
}

fn inverse_root(value: f64) -> f64 {
    // The root of -0 is -0, and its inverse -∞, as the manual says.
    value.sqrt().recip()
}

pub(crate) fn rsqrt(op: &Operation, inputs: &Inputs) -> u64 {
    if op.ty != Type::F64 {
        each(op, inputs[0], inverse_root)
    } else if op.has(Modifier::Ftz) {
        rsqrt_upper_f64(inputs[0])
    } else {
        rsqrt_f64(inputs[0])
    }
}

pub(crate) fn sin(op: &Operation, inputs: &Inputs) -> u64 {
    each(op, inputs[0], f64::sin)
}

pub(crate) fn cos(op: &Operation, inputs: &Inputs) -> u64 {
    each(op, inputs[0], f64::cos)
}

pub(crate) fn lg2(op: &Operation, inputs: &Inputs) -> u64 {
    each(op, inputs[0], f64::log2)
}

pub(crate) fn ex2(op: &Operation, inputs: &Inputs) -> u64 {
    each(op, inputs[0], f64::exp2)
}

pub(crate) fn tanh(op: &Operation, inputs: &Inputs) -> u64 {
    each(op, inputs[0], f64::tanh)
}
