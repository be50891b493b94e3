//! `cvt` to and from packed types: two halves, and the formats of eight, six and four bits (manual: "cvt",
//! "Alternate Floating-Point Data Formats").
//!
//! Lane 0 is the lowest. Of several `f32` operands the first goes to the highest lane. A scale factor is a
//! power of two in the format `ue8m0`: a value is divided by it on conversion to a narrow type, and
//! multiplied by it on conversion back.

use super::float::{Lanes, Mode};
use super::soft::{Exact, Format, Number, Rounding, to_integer};
use crate::{Inputs, Operation};
use broadloom_ptx::{Modifier, Type};

/// Encoding of one element of a packed type.
#[derive(Clone, Copy)]
enum Element {
    Float(Format),
    /// `ue8m0`.
    Power,
    /// `s2f6`: a signed byte, in units of 2^-6.
    Fixed,
}

/// Returns the elements of a packed type: encoding, number and stride.
fn elements(ty: Type) -> (Element, u32, u32) {
    match Lanes::of(ty) {
        Some(Lanes { format, count, stride }) => (Element::Float(format), count, stride),
        None if ty == Type::S2f6x2 => (Element::Fixed, 2, 8),
        // `ue8m0x2`: the table gives these forms no other type.
        None => (Element::Power, 2, 8),
    }
}

impl Element {
    fn number(self, bits: u64) -> Number {
        match self {
            Element::Float(format) => Number::of(format, bits & (format.magnitude_mask() | format.sign_bit())),
            Element::Power => Number::of_ue8m0(bits as u8),
            Element::Fixed => Number::Finite(Exact::integer(i128::from(bits as i8)).scaled(-6)),
        }
    }

    fn bits(self, number: Number, mode: Mode) -> u64 {
        match self {
            // An unsigned format takes magnitudes.
            Element::Float(format) if !format.is_signed() => mode.result(format, magnitude(number)),
            Element::Float(format) => mode.result(format, number),
            Element::Power => power_bits(magnitude(number), mode),
            Element::Fixed => fixed_bits(number, mode),
        }
    }
}

fn magnitude(number: Number) -> Number {
    match number {
        Number::Nan => Number::Nan,
        Number::Infinite { .. } => Number::Infinite { negative: false },
        Number::Finite(value) => Number::Finite(Exact { negative: false, ..value }),
    }
}

/// Returns the exponent of a magnitude in `ue8m0`: the next power of two below or above it. Values below the
/// smallest power become that power.
fn power_bits(number: Number, mode: Mode) -> u64 {
    const NAN: u64 = 0xff;
    let overflown = if mode.satfinite { NAN - 1 } else { NAN };
    match number {
        Number::Nan => NAN,
        Number::Infinite { .. } => overflown,
        Number::Finite(value) if value.is_zero() => 0,
        Number::Finite(value) => {
            let up = mode.rounding == Rounding::Up && !value.significand.is_power_of_two();
            let power = value.magnitude() + 127 + i32::from(up);
            if power >= NAN as i32 { overflown } else { power.max(0) as u64 }
        }
    }
}

/// Returns a signed byte in units of 2^-6.
fn fixed_bits(number: Number, mode: Mode) -> u64 {
    let units = match number {
        Number::Nan => 127,
        Number::Infinite { negative } => {
            if negative {
                -128
            } else {
                127
            }
        }
        Number::Finite(value) => to_integer(value.scaled(6), mode.rounding, -128, 127),
    };
    let units = if mode.relu { units.max(0) } else { units };
    units as u64 & 0xff
}

/// Returns the random bits of a lane for `.rs`.
fn random_rounding(ty: Type, random: u64, lane: u32) -> Rounding {
    let half = |index: u32| (random >> (16 * index)) as u32 & 0xffff;
    if ty == Type::F16x2 {
        return Rounding::Random { bits: half(lane) & 0x1fff, count: 13 };
    }
    let bits = if ty == Type::Bf16x2 {
        half(lane)
    } else if ty != Type::E2m1x4 {
        // The upper two lanes share the upper half, the lower two the lower one.
        half(lane / 2)
    } else if lane >= 2 {
        // The upper two lanes use the upper bytes of both halves, the lower two the lower ones.
        half(1) & 0xff00 | half(0) >> 8
    } else {
        (half(1) & 0xff) << 8 | half(0) & 0xff
    };
    Rounding::Random { bits, count: 16 }
}

/// Converts to or from a packed type.
pub(crate) fn cvt_packed(op: &Operation, inputs: &Inputs) -> u64 {
    let mode = Mode::of(op);
    let (from, sources, from_stride) = elements(op.source_ty);
    let (to, count, stride) = elements(op.ty);
    // One `f32` per lane, or one register with as many elements.
    let values = if sources == 1 { count } else { 1 };
    // The scale factor or the random bits follow them.
    let extra = inputs[values as usize];
    let widens = matches!(op.ty, Type::F16x2 | Type::Bf16x2);
    (0..count).fold(0, |register, lane| {
        let source = if sources == 1 { inputs[(count - 1 - lane) as usize] } else { inputs[0] >> (lane * from_stride) };
        let mut number = from.number(if sources == 1 { source } else { source & ((1 << from_stride) - 1) });
        if let Some(scale) = scale_factor(op, extra, lane) {
            number = match (scale, widens) {
                (None, _) => Number::Nan,
                (Some(exponent), true) => number.scaled(exponent),
                (Some(exponent), false) => number.scaled(-exponent),
            };
        }
        let mode = if op.has(Modifier::Rs) { Mode { rounding: random_rounding(op.ty, extra, lane), ..mode } } else { mode };
        register | positive_zero(op, to, to.bits(number, mode)) << (lane * stride)
    })
}

/// Returns the exponent of a lane's scale factor, `None` if it is NaN. The outer `None` means that the
/// instruction has no scale factors.
fn scale_factor(op: &Operation, factors: u64, lane: u32) -> Option<Option<i32>> {
    let factor = if op.has(Modifier::ScaledN2Ue8m0) {
        factors >> (lane * 8) & 0xff
    } else if op.has(Modifier::ScaledN1Ue8m0) {
        factors & 0xff
    } else {
        return None;
    };
    Some((factor != 0xff).then_some(factor as i32 - 127))
}

/// Applies `.pzo`: a zero has no sign.
fn positive_zero(op: &Operation, to: Element, bits: u64) -> u64 {
    match to {
        Element::Float(format) if op.has(Modifier::Pzo) && format.is_zero(bits) => 0,
        Element::Float(_) | Element::Power | Element::Fixed => bits,
    }
}
