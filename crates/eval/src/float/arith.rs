//! `add`, `sub`, `mul`, `fma`, `mad`, `div`, `rcp`, `sqrt`.

use super::{Mode, approx, half, lanes, mixed, quiet_nan_f64};
use crate::soft::{Format, Number, Rounding};
use crate::{Inputs, Operation};
use broadloom_ptx::{Modifier, Type};

/// Applies an operation to the lanes of an instruction: with the host's operation if it rounds to nearest,
/// else exactly. Halves are computed in `f64`; the result must be exact, rounded to odd, or wide enough that
/// double rounding equals single rounding. `first` is the order in which NaN operands of `f64` are
/// propagated.
#[inline(always)]
fn apply<const N: usize>(
    op: &Operation,
    inputs: &Inputs,
    first: [usize; N],
    host32: impl Fn([f32; N]) -> f32,
    host64: impl Fn([f64; N]) -> f64,
    soft: impl Fn([Number; N], Rounding) -> Number,
) -> u64 {
    let mode = Mode::of(op);
    let operands: [u64; N] = std::array::from_fn(|index| inputs[index]);
    if op.ty == Type::F32 {
        return single(mode, operands, &host32, &soft);
    }
    if op.ty == Type::F64 {
        let result = double(mode, operands, &host64, &soft);
        if !Format::F64.is_nan(result) {
            return result;
        }
        return quiet_nan_f64(&first.map(|index| operands[index])).unwrap_or(result);
    }
    let lanes = lanes(op);
    lanes.make(|lane| {
        let operands = operands.map(|register| lanes.get(register, lane));
        match lanes.format {
            Format::F32 => single(mode, operands, &host32, &soft),
            Format::F16 if mode.rounding == Rounding::Nearest && !mode.ftz => by_way_of_f64(Format::F16, mode, operands, &host64),
            Format::BF16 if mode.rounding == Rounding::Nearest && !mode.ftz => {
                by_way_of_f64(Format::BF16, mode, operands, &host64)
            }
            format => exactly(format, mode, operands, &soft),
        }
    })
}

#[inline(always)]
fn by_way_of_f64<const N: usize>(format: Format, mode: Mode, operands: [u64; N], host: &impl Fn([f64; N]) -> f64) -> u64 {
    mode.clamp(format, half::from_f64(format, host(operands.map(|bits| half::to_f64(format, bits)))))
}

/// Computes an operation exactly and rounds the result.
fn exactly<const N: usize>(
    format: Format,
    mode: Mode,
    operands: [u64; N],
    soft: &impl Fn([Number; N], Rounding) -> Number,
) -> u64 {
    let numbers = operands.map(|bits| Number::of(format, mode.operand(format, bits)));
    mode.result(format, soft(numbers, mode.rounding))
}

#[inline(always)]
fn single<const N: usize>(
    mode: Mode,
    operands: [u64; N],
    host: &impl Fn([f32; N]) -> f32,
    soft: &impl Fn([Number; N], Rounding) -> Number,
) -> u64 {
    const FORMAT: Format = Format::F32;
    if mode.rounding != Rounding::Nearest {
        return exactly(FORMAT, mode, operands, soft);
    }
    let result = host(operands.map(|bits| f32::from_bits(mode.operand(FORMAT, bits) as u32)));
    if result.is_nan() {
        return mode.clamp(FORMAT, FORMAT.canonical_nan());
    }
    let bits = u64::from(result.to_bits());
    if mode.ftz {
        // The host may have rounded up to the smallest normal number a value that is flushed before that.
        if bits & FORMAT.magnitude_mask() == FORMAT.least_normal() {
            return exactly(FORMAT, mode, operands, soft);
        }
        return mode.clamp(FORMAT, FORMAT.flushed(bits));
    }
    mode.clamp(FORMAT, bits)
}

#[inline(always)]
fn double<const N: usize>(
    mode: Mode,
    operands: [u64; N],
    host: &impl Fn([f64; N]) -> f64,
    soft: &impl Fn([Number; N], Rounding) -> Number,
) -> u64 {
    if mode.rounding != Rounding::Nearest {
        return exactly(Format::F64, mode, operands, soft);
    }
    let result = host(operands.map(f64::from_bits));
    if result.is_nan() { Format::F64.canonical_nan() } else { result.to_bits() }
}

pub(crate) fn add(op: &Operation, inputs: &Inputs) -> u64 {
    if op.source_ty != op.ty {
        return mixed::add(op, inputs);
    }
    apply(op, inputs, [1, 0], |[a, b]| a + b, |[a, b]| a + b, |[a, b], rounding| a.add(b, rounding))
}

pub(crate) fn sub(op: &Operation, inputs: &Inputs) -> u64 {
    if op.source_ty != op.ty {
        return mixed::sub(op, inputs);
    }
    apply(op, inputs, [1, 0], |[a, b]| a - b, |[a, b]| a - b, |[a, b], rounding| a.add(b.negated(), rounding))
}

pub(crate) fn mul(op: &Operation, inputs: &Inputs) -> u64 {
    if op.source_ty != op.ty || op.third_ty != op.ty {
        return mixed::mul(op, inputs);
    }
    apply(op, inputs, [1, 0], |[a, b]| a * b, |[a, b]| a * b, |[a, b], _| a.mul(b))
}

/// Computes `fma`, and `mad` on floats, which is the same.
pub(crate) fn fma(op: &Operation, inputs: &Inputs) -> u64 {
    if op.source_ty != op.ty || op.third_ty != op.ty {
        return mixed::fma(op, inputs);
    }
    if op.has(Modifier::Oob) {
        return fma_oob(op, inputs);
    }
    let soft = |[a, b, c]: [Number; 3], rounding| a.fma(b, c, rounding);
    if op.ty == Type::F32 || op.ty == Type::F64 || op.ty == Type::F32x2 {
        return apply(op, inputs, [1, 2, 0], |[a, b, c]| a.mul_add(b, c), |[a, b, c]| a.mul_add(b, c), soft);
    }
    // The product of two halves is exact in `f64`.
    apply(op, inputs, [1, 2, 0], |[a, b, c]| a.mul_add(b, c), |[a, b, c]| half::sum_to_odd(a * b, c), soft)
}

/// NaN that tensor copies store out of bounds, with either sign; it has the same bits in `f16` and `bf16`.
/// `.oob` makes the result zero if a factor has this value.
const OUT_OF_BOUNDS: u64 = 0x7ff7;

fn fma_oob(op: &Operation, inputs: &Inputs) -> u64 {
    let (lanes, mode) = (lanes(op), Mode::of(op));
    lanes.make(|lane| {
        let operands @ [a, b, _] = [0, 1, 2].map(|index| lanes.get(inputs[index], lane));
        if [a, b].iter().any(|factor| factor & lanes.format.magnitude_mask() == OUT_OF_BOUNDS) {
            return 0;
        }
        exactly(lanes.format, mode, operands, &|[a, b, c]: [Number; 3], rounding| a.fma(b, c, rounding))
    })
}

pub(crate) fn div(op: &Operation, inputs: &Inputs) -> u64 {
    if op.has(Modifier::Approx) {
        return approx::div(op, inputs);
    }
    // `.full` may be off by two units; it is correctly rounded here.
    apply(op, inputs, [0, 1], |[a, b]| a / b, |[a, b]| a / b, |[a, b], _| a.div(b))
}

pub(crate) fn rcp(op: &Operation, inputs: &Inputs) -> u64 {
    if op.has(Modifier::Approx) && op.ty == Type::F64 {
        return approx::rcp_f64(inputs[0]);
    }
    // `.approx` may be off by one unit; it is correctly rounded here.
    let one = Number::of(Format::F32, Format::F32.one());
    apply(op, inputs, [0], |[a]| a.recip(), |[a]| a.recip(), |[a], _| one.div(a))
}

pub(crate) fn sqrt(op: &Operation, inputs: &Inputs) -> u64 {
    // `.approx` may be off by a factor of 1 + 2^-23; it is correctly rounded here.
    apply(op, inputs, [0], |[a]| a.sqrt(), |[a]| a.sqrt(), |[a], _| a.sqrt())
}
