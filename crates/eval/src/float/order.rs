//! `min` and `max` of two or three floats.

use super::{lanes, quiet_nan_f64};
use crate::soft::Format;
use crate::{Inputs, Operation};
use broadloom_ptx::{Modifier, Type};

/// Returns a number with the order of the values; -0 is below +0.
fn key(format: Format, bits: u64) -> i64 {
    let magnitude = (bits & format.magnitude_mask()) as i64;
    if format.is_negative(bits) { !magnitude } else { magnitude }
}

#[derive(Clone, Copy)]
struct Choice {
    format: Format,
    largest: bool,
    /// True for `.NaN`: any NaN makes the result NaN. Otherwise a number beats it.
    nan: bool,
}

impl Choice {
    #[inline(always)]
    fn of_two(self, a: u64, b: u64) -> u64 {
        let format = self.format;
        let (a_nan, b_nan) = (format.is_nan(a), format.is_nan(b));
        if a_nan && b_nan || self.nan && (a_nan || b_nan) {
            let payload = if format == Format::F64 { quiet_nan_f64(&[b, a]) } else { None };
            return payload.unwrap_or(format.canonical_nan());
        }
        if a_nan {
            return b;
        }
        if b_nan {
            return a;
        }
        if (key(format, a) > key(format, b)) == self.largest { a } else { b }
    }
}

#[inline(always)]
fn choose(op: &Operation, inputs: &Inputs, largest: bool) -> u64 {
    // The formats of most kernels are constants here.
    if op.ty == Type::F32 {
        of_format(op, Format::F32, largest, |index| inputs[index])
    } else if op.ty == Type::F64 {
        of_format(op, Format::F64, largest, |index| inputs[index])
    } else {
        let lanes = lanes(op);
        lanes.make(|lane| of_format(op, lanes.format, largest, |index| lanes.get(inputs[index], lane)))
    }
}

#[inline(always)]
fn of_format(op: &Operation, format: Format, largest: bool, input: impl Fn(usize) -> u64) -> u64 {
    let choice = Choice { format, largest, nan: op.has(Modifier::NaN) };
    let ftz = op.has(Modifier::Ftz);
    let operand = |index: usize| if ftz { format.flushed(input(index)) } else { input(index) };
    let (a, b) = (operand(0), operand(1));
    let three = op.inputs > 2;
    if !op.has(Modifier::Abs) {
        let result = choice.of_two(a, b);
        return if three { choice.of_two(result, operand(2)) } else { result };
    }
    let magnitude = |bits: u64| bits & !format.sign_bit();
    let mut result = choice.of_two(magnitude(a), magnitude(b));
    if three {
        result = choice.of_two(result, magnitude(operand(2)));
    }
    if op.has(Modifier::Xorsign) && !format.is_nan(result) { result | (a ^ b) & format.sign_bit() } else { result }
}

pub(crate) fn min(op: &Operation, inputs: &Inputs) -> u64 {
    choose(op, inputs, false)
}

pub(crate) fn max(op: &Operation, inputs: &Inputs) -> u64 {
    choose(op, inputs, true)
}
