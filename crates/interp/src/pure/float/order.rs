//! `min` and `max` of two or three floats.

use super::{Lanes, Mode, lanes, quiet_nan_f64};
use crate::op::{Arg, Inputs, Op};
use crate::pure::soft::Format;
use broadloom_ptx::Modifier;

/// A number whose order is that of the values; -0 lies below +0.
fn key(format: Format, bits: u64) -> i64 {
    let magnitude = (bits & format.magnitude_mask()) as i64;
    if format.is_negative(bits) { !magnitude } else { magnitude }
}

#[derive(Clone, Copy)]
struct Choice {
    format: Format,
    largest: bool,
    /// Any NaN makes the result NaN (`.NaN`); else a number beats it.
    nan: bool,
}

impl Choice {
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

fn choose(op: &Op, inputs: &Inputs, largest: bool) -> u64 {
    let (lanes, mode) = (lanes(op), Mode::of(op));
    let Lanes { format, .. } = lanes;
    let choice = Choice { format, largest, nan: op.has(Modifier::NaN) };
    let (abs, xorsign) = (op.has(Modifier::Abs), op.has(Modifier::Xorsign));
    let third = matches!(op.reads.get(2), Some(arg) if *arg != Arg::Sink);
    lanes.make(|lane| {
        let operand = |index: usize| mode.operand(format, lanes.get(inputs[index], lane));
        let magnitude = |bits: u64| if abs { bits & !format.sign_bit() } else { bits };
        let (a, b) = (operand(0), operand(1));
        let mut result = choice.of_two(magnitude(a), magnitude(b));
        if third {
            result = choice.of_two(result, magnitude(operand(2)));
        }
        if xorsign && !format.is_nan(result) { result | (a ^ b) & format.sign_bit() } else { result }
    })
}

pub(crate) fn min(op: &Op, inputs: &Inputs) -> u64 {
    choose(op, inputs, false)
}

pub(crate) fn max(op: &Op, inputs: &Inputs) -> u64 {
    choose(op, inputs, true)
}
