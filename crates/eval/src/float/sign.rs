//! `abs`, `neg`, `copysign`, `testp`: instructions on the sign and the class of a value.

use super::{Lanes, lanes, quiet_nan_f64};
use crate::soft::Format;
use crate::{Inputs, Operation};
use broadloom_ptx::{Modifier, Type};

/// Applies a function of the bits to each lane that is not NaN.
#[inline(always)]
fn each(op: &Operation, register: u64, change: impl Fn(Format, u64) -> u64) -> u64 {
    if op.ty == Type::F32 {
        of_format(op, Format::F32, register, &change)
    } else if op.ty == Type::F64 {
        of_format(op, Format::F64, register, &change)
    } else {
        let lanes = lanes(op);
        lanes.make(|lane| of_format(op, lanes.format, lanes.get(register, lane), &change))
    }
}

#[inline(always)]
fn of_format(op: &Operation, format: Format, bits: u64, change: &impl Fn(Format, u64) -> u64) -> u64 {
    let bits = if op.has(Modifier::Ftz) { format.flushed(bits) } else { bits };
    match format.is_nan(bits) {
        // A NaN of `f64` passes through with its sign.
        true if format == Format::F64 => quiet_nan_f64(&[bits]).unwrap_or(bits),
        true => format.canonical_nan(),
        false => change(format, bits),
    }
}

pub(crate) fn abs(op: &Operation, inputs: &Inputs) -> u64 {
    each(op, inputs[0], |format, bits| bits & !format.sign_bit())
}

pub(crate) fn neg(op: &Operation, inputs: &Inputs) -> u64 {
    each(op, inputs[0], |format, bits| bits ^ format.sign_bit())
}

/// Computes `copysign` on bits: NaNs keep their payload.
pub(crate) fn copysign(op: &Operation, inputs: &Inputs) -> u64 {
    let sign = lanes(op).format.sign_bit();
    inputs[0] & sign | inputs[1] & !sign
}

pub(crate) fn testp(op: &Operation, inputs: &Inputs) -> u64 {
    let Lanes { format, .. } = lanes(op);
    let bits = inputs[0];
    let finite = !format.is_nan(bits) && !format.is_infinite(bits);
    u64::from(if op.has(Modifier::Finite) {
        finite
    } else if op.has(Modifier::Infinite) {
        format.is_infinite(bits)
    } else if op.has(Modifier::Number) {
        !format.is_nan(bits)
    } else if op.has(Modifier::Notanumber) {
        format.is_nan(bits)
    } else if op.has(Modifier::Subnormal) {
        format.is_subnormal(bits)
    } else {
        // `.normal`; zeros count as normal.
        finite && !format.is_subnormal(bits)
    })
}
