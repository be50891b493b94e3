//! `cvt` with a floating-point type on one side (manual: "cvt").
//!
//! A source register may be wider than its type: only the bits of the type count. A result of a signed type
//! is sign-extended, so that a wider destination is correct. `.ftz` applies to `f32` only, as operand or as
//! result.
//!
//! NaN becomes zero as an integer, except from `f64` or to 64 bits, where it becomes 1 << (width - 1). To and
//! from `f64` it keeps its sign and the top of its payload and becomes quiet. `bf16` to `f32`, and `cvt`
//! without any effect, keep the bits. All others give the canonical NaN.

use super::float::{Lanes, Mode, half};
use super::narrow::cvt_packed;
use super::soft::{Exact, Format, Number, Rounding, integral, to_integer};
use super::{sign_extend, truncate};
use crate::{Inputs, One, Operation};
use broadloom_ptx::{Modifier, Type};

/// Returns the format of a scalar floating-point type.
fn scalar(ty: Type) -> Option<Format> {
    Lanes::of(ty).filter(|lanes| lanes.count == 1).map(|lanes| lanes.format)
}

/// Returns the function that converts between the types of an instruction. The conversions of most kernels
/// have a version specialised for their formats.
pub(crate) fn cvt(op: &Operation) -> One {
    use Format::{BF16, F16, F32, F64};
    let pair = (op.ty, op.source_ty);
    if op.ty.is_integer() && op.source_ty == Type::F32 {
        |op, inputs| integer(op, F32, inputs[0])
    } else if op.ty.is_integer() && op.source_ty == Type::F64 {
        |op, inputs| integer(op, F64, inputs[0])
    } else if op.source_ty.is_integer() && op.ty == Type::F32 {
        |op, inputs| from_integer(op, F32, inputs[0])
    } else if op.source_ty.is_integer() && op.ty == Type::F64 {
        |op, inputs| from_integer(op, F64, inputs[0])
    } else if pair == (Type::F32, Type::F64) {
        |op, inputs| float(op, F64, F32, inputs[0])
    } else if pair == (Type::F64, Type::F32) {
        |op, inputs| float(op, F32, F64, inputs[0])
    } else if pair == (Type::F32, Type::F16) {
        |op, inputs| float(op, F16, F32, inputs[0])
    } else if pair == (Type::F16, Type::F32) {
        |op, inputs| float(op, F32, F16, inputs[0])
    } else if pair == (Type::F32, Type::Bf16) {
        |op, inputs| float(op, BF16, F32, inputs[0])
    } else if pair == (Type::Bf16, Type::F32) {
        |op, inputs| float(op, F32, BF16, inputs[0])
    } else if pair == (Type::F32, Type::F32) {
        |op, inputs| float(op, F32, F32, inputs[0])
    } else {
        cvt_any
    }
}

fn cvt_any(op: &Operation, inputs: &Inputs) -> u64 {
    match (scalar(op.ty), scalar(op.source_ty)) {
        (Some(to), None) if op.source_ty.is_integer() => from_integer(op, to, inputs[0]),
        (None, Some(from)) if op.ty.is_integer() => integer(op, from, inputs[0]),
        // The significant bits stand above 13 others.
        (Some(to), Some(from)) if op.ty == Type::Tf32 => float(op, from, to, inputs[0]) << 13,
        (Some(to), Some(from)) => float(op, from, to, inputs[0]),
        (Some(_) | None, Some(_) | None) => cvt_packed(op, inputs),
    }
}

/// Returns the integer rounding mode of an instruction.
fn integer_rounding(op: &Operation) -> Option<Rounding> {
    if op.has(Modifier::Rni) {
        Some(Rounding::Nearest)
    } else if op.has(Modifier::Rzi) {
        Some(Rounding::Zero)
    } else if op.has(Modifier::Rmi) {
        Some(Rounding::Down)
    } else if op.has(Modifier::Rpi) {
        Some(Rounding::Up)
    } else {
        None
    }
}

/// Returns the operand with `.ftz` applied. Flushing loses a NaN's payload.
fn operand(op: &Operation, from: Format, register: u64) -> u64 {
    let bits = truncate(register, from.bits());
    match from == Format::F32 && op.has(Modifier::Ftz) {
        true if from.is_nan(bits) => from.canonical_nan(),
        true => from.flushed(bits),
        false => bits,
    }
}

fn result_mode(op: &Operation, to: Format) -> Mode {
    let mode = Mode::of(op);
    Mode { ftz: mode.ftz && to == Format::F32, ..mode }
}

#[inline(always)]
fn from_integer(op: &Operation, to: Format, register: u64) -> u64 {
    let width = op.source_ty.bits();
    let signed = op.source_ty.is_signed();
    let value = if signed { i128::from(sign_extend(register, width)) } else { i128::from(truncate(register, width)) };
    let mode = result_mode(op, to);
    if mode.rounding == Rounding::Nearest {
        // The host converts to nearest.
        let bits = match (to, signed) {
            (Format::F32, true) => u64::from((value as i64 as f32).to_bits()),
            (Format::F32, false) => u64::from((value as u64 as f32).to_bits()),
            (Format::F64, true) => (value as i64 as f64).to_bits(),
            (Format::F64, false) => (value as u64 as f64).to_bits(),
            (_, true | false) => return mode.result(to, Number::Finite(Exact::integer(value))),
        };
        return mode.clamp(to, bits);
    }
    mode.result(to, Number::Finite(Exact::integer(value)))
}

/// Rounds a number to an integer with the host's operations, which are exact.
#[inline(always)]
fn host_integral(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest | Rounding::NearestAway | Rounding::Random { .. } => value.round_ties_even(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    }
}

/// Converts an `f32` or `f64` to the host's double.
#[inline(always)]
fn host_value(from: Format, bits: u64) -> f64 {
    if from == Format::F64 { f64::from_bits(bits) } else { f64::from(f32::from_bits(bits as u32)) }
}

#[inline(always)]
fn integer(op: &Operation, from: Format, register: u64) -> u64 {
    let bits = operand(op, from, register);
    let width = op.ty.bits();
    if matches!(from, Format::F32 | Format::F64) && !from.is_nan(bits) {
        let value = host_integral(host_value(from, bits), integer_rounding(op).unwrap_or(Rounding::Zero));
        // A cast clamps values that are out of range.
        return match (op.ty.is_signed(), width) {
            (true, 64) => value as i64 as u64,
            (true, _) => (value as i64).clamp(-1 << (width - 1), (1 << (width - 1)) - 1) as u64,
            (false, 64) => value as u64,
            (false, _) => (value as u64).min((1 << width) - 1),
        };
    }
    let (least, largest) =
        if op.ty.is_signed() { (-1i128 << (width - 1), (1i128 << (width - 1)) - 1) } else { (0, (1i128 << width) - 1) };
    let rounding = integer_rounding(op).unwrap_or(Rounding::Zero);
    let value = match Number::of(from, bits) {
        Number::Nan if from != Format::F64 && width < 64 => 0,
        Number::Nan => -1 << (width - 1),
        Number::Infinite { negative: true } => least,
        Number::Infinite { negative: false } => largest,
        Number::Finite(value) => to_integer(value, rounding, least, largest),
    };
    // A signed value is extended; an unsigned one is truncated to its width.
    if op.ty.is_signed() { value as u64 } else { truncate(value as u64, width) }
}

#[inline(always)]
fn float(op: &Operation, from: Format, to: Format, register: u64) -> u64 {
    let bits = operand(op, from, register);
    let mode = result_mode(op, to);
    let to_integral = integer_rounding(op);
    let changes = to_integral.is_some() || mode.ftz || mode.sat || mode.relu || mode.satfinite;
    if from == to && !changes && matches!(op.ty, Type::F32 | Type::F64) {
        return bits;
    }
    if from.is_nan(bits) {
        return mode.clamp(to, nan(from, to, bits, mode));
    }
    if let Some(result) = float_by_host(op, from, to, bits, mode) {
        return result;
    }
    let number = match (Number::of(from, bits), to_integral) {
        (Number::Finite(value), Some(rounding)) => Number::Finite(integral(value, rounding)),
        (number, _) => number,
    };
    let result = mode.result(to, number);
    if op.has(Modifier::Pzo) && to.is_zero(result) { 0 } else { result }
}

/// Converts with the host's operations: the conversions of most kernels are exact, or round to nearest.
/// Returns `None` for the others.
#[inline(always)]
fn float_by_host(op: &Operation, from: Format, to: Format, bits: u64, mode: Mode) -> Option<u64> {
    if mode.rounding != Rounding::Nearest || mode.ftz || mode.satfinite || op.has(Modifier::Pzo) {
        return None;
    }
    let value = match from {
        Format::F32 | Format::F64 => host_value(from, bits),
        Format::F16 | Format::BF16 => half::to_f64(from, bits),
        _ => return None,
    };
    let value = match integer_rounding(op) {
        Some(rounding) => host_integral(value, rounding),
        None => value,
    };
    let result = match to {
        Format::F32 => u64::from((value as f32).to_bits()),
        Format::F64 => value.to_bits(),
        Format::F16 | Format::BF16 => half::from_f64(to, value),
        _ => return None,
    };
    Some(mode.clamp(to, result))
}

/// Converts NaN to another format.
fn nan(from: Format, to: Format, bits: u64, mode: Mode) -> u64 {
    if from == Format::BF16 && to == Format::F32 && !mode.ftz {
        return bits << 16;
    }
    if from != Format::F64 && to != Format::F64 {
        return to.canonical_nan();
    }
    let payload = (bits & (from.least_normal() - 1)) << (64 - from.fraction_bits()) >> (64 - to.fraction_bits());
    let quiet = to.least_normal() >> 1;
    to.with_sign(to.infinity() | quiet | payload, from.is_negative(bits))
}
