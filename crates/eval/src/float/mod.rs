//! Floating-point instructions (manual: "Floating-Point Instructions", "Half Precision Floating-Point
//! Instructions", "Mixed Precision Floating-Point Instructions").
//!
//! All formats share one implementation: an instruction splits its operands into lanes, computes the exact
//! result and rounds it once. `f32` and `f64` rounded to nearest use the host's operations, which IEEE 754
//! defines bit for bit, and halves those of `f64`.
//!
//! Where the manual leaves a choice, the hardware is followed. An instruction on `f32`, `f16` or `bf16` whose
//! result is NaN gives the canonical one, all ones below the sign. On `f64`, NaN operands are propagated and
//! made quiet: the second before the first, for `fma` the second, then the third, then the first, for `div`
//! the dividend first. An invalid operation gives `0xfff8000000000000`.

pub(crate) mod approx;
pub(crate) mod arith;
pub mod half;
pub(crate) mod mixed;
pub(crate) mod order;
pub(crate) mod sign;

use super::soft::{Flush, Format, Number, Overflow, Rounding};
use super::truncate;
use crate::Operation;
use broadloom_ptx::{Modifier, Type};

/// Floats in a register of some type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lanes {
    pub(crate) format: Format,
    pub(crate) count: u32,
    /// Stride of the lanes in bits.
    pub(crate) stride: u32,
}

impl Lanes {
    const fn one(format: Format) -> Lanes {
        Lanes { format, count: 1, stride: format.bits() }
    }

    const fn packed(format: Format, count: u32, stride: u32) -> Lanes {
        Lanes { format, count, stride }
    }

    /// Returns the layout of the floats of a type in a register; `None` for other types and for formats
    /// without a fraction.
    pub(crate) const fn of(ty: Type) -> Option<Lanes> {
        Some(match ty {
            Type::F16 => Lanes::one(Format::F16),
            Type::Bf16 => Lanes::one(Format::BF16),
            Type::F32 => Lanes::one(Format::F32),
            Type::F64 => Lanes::one(Format::F64),
            Type::Tf32 => Lanes::packed(Format::TF32, 1, 32),
            Type::F16x2 => Lanes::packed(Format::F16, 2, 16),
            Type::Bf16x2 => Lanes::packed(Format::BF16, 2, 16),
            Type::F32x2 => Lanes::packed(Format::F32, 2, 32),
            Type::E4m3 | Type::Ue4m3 => Lanes::packed(Format::E4M3, 1, 8),
            Type::E5m2 => Lanes::packed(Format::E5M2, 1, 8),
            Type::E3m2 => Lanes::packed(Format::E3M2, 1, 8),
            Type::E2m3 => Lanes::packed(Format::E2M3, 1, 8),
            Type::E2m1 => Lanes::packed(Format::E2M1, 1, 8),
            Type::E4m3x2 => Lanes::packed(Format::E4M3, 2, 8),
            Type::E5m2x2 => Lanes::packed(Format::E5M2, 2, 8),
            Type::E3m2x2 => Lanes::packed(Format::E3M2, 2, 8),
            Type::E2m3x2 => Lanes::packed(Format::E2M3, 2, 8),
            Type::E2m1x2 => Lanes::packed(Format::E2M1, 2, 4),
            Type::Ue5m3x2 => Lanes::packed(Format::UE5M3, 2, 8),
            Type::E4m3x4 => Lanes::packed(Format::E4M3, 4, 8),
            Type::E5m2x4 => Lanes::packed(Format::E5M2, 4, 8),
            Type::E3m2x4 => Lanes::packed(Format::E3M2, 4, 8),
            Type::E2m3x4 => Lanes::packed(Format::E2M3, 4, 8),
            Type::E2m1x4 => Lanes::packed(Format::E2M1, 4, 4),
            Type::E2m1p4x4 => Lanes::packed(Format::E2M1, 4, 8),
            Type::B1 | Type::B4 | Type::B8 | Type::B16 | Type::B32 | Type::B64 | Type::B128 => return None,
            Type::U4 | Type::U8 | Type::U16 | Type::U32 | Type::U64 => return None,
            Type::S4 | Type::S8 | Type::S16 | Type::S32 | Type::S64 => return None,
            Type::U16x2 | Type::S16x2 | Type::U8x4 | Type::S8x4 | Type::S2f6x2 => return None,
            Type::Ue8m0 | Type::Ue8m0x2 | Type::Ue8m0x4 => return None,
            Type::Pred | Type::Texref | Type::Samplerref | Type::Surfref => return None,
        })
    }

    /// Returns the bits of one lane.
    pub(crate) fn get(self, register: u64, lane: u32) -> u64 {
        truncate(register >> (lane * self.stride), self.format.bits())
    }

    /// Packs the lanes made by a function.
    pub(crate) fn make(self, mut lane: impl FnMut(u32) -> u64) -> u64 {
        (0..self.count).fold(0, |register, index| register | lane(index) << (index * self.stride))
    }
}

/// Returns whether a type has floats in its lanes.
pub(crate) fn is_float(ty: Type) -> bool {
    Lanes::of(ty).is_some()
}

/// Returns the lanes of an instruction's type. The table gives these instructions no type without lanes.
pub(crate) fn lanes(op: &Operation) -> Lanes {
    Lanes::of(op.ty).unwrap_or(Lanes::one(Format::F32))
}

/// Treatment of operands and result, from the modifiers of an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mode {
    pub(crate) rounding: Rounding,
    /// Subnormal operands and results become zero.
    pub(crate) ftz: bool,
    /// The result is clamped to [0, 1].
    pub(crate) sat: bool,
    /// A negative result becomes zero.
    pub(crate) relu: bool,
    /// No result is infinite.
    pub(crate) satfinite: bool,
}

impl Mode {
    pub(crate) fn of(op: &Operation) -> Mode {
        Mode {
            rounding: rounding(op),
            ftz: op.flushes(),
            sat: op.has(Modifier::Sat),
            relu: op.has(Modifier::Relu),
            satfinite: op.has(Modifier::Satfinite),
        }
    }

    /// Returns the operand with `.ftz` applied.
    #[inline(always)]
    pub(crate) fn operand(self, format: Format, bits: u64) -> u64 {
        if self.ftz { format.flushed(bits) } else { bits }
    }

    /// Returns the bits of a result. A NaN is canonical.
    pub(crate) fn result(self, format: Format, number: Number) -> u64 {
        let overflow = if self.satfinite { Overflow::Largest } else { Overflow::Ieee };
        let flush = if self.ftz { Flush::Zero } else { Flush::Keep };
        self.clamp(format, number.to_bits(format, self.rounding, overflow, flush))
    }

    /// Applies `.sat` and `.relu` to the bits of a result.
    #[inline]
    pub(crate) fn clamp(self, format: Format, bits: u64) -> u64 {
        if self.sat {
            return if format.is_nan(bits) || format.is_negative(bits) { 0 } else { bits.min(format.one()) };
        }
        if self.relu && format.is_negative(bits) && !format.is_nan(bits) { 0 } else { bits }
    }
}

/// Returns the rounding mode of an instruction; to nearest if it has none.
pub(crate) fn rounding(op: &Operation) -> Rounding {
    if op.has(Modifier::Rz) {
        Rounding::Zero
    } else if op.has(Modifier::Rm) {
        Rounding::Down
    } else if op.has(Modifier::Rp) {
        Rounding::Up
    } else if op.has(Modifier::Rna) {
        Rounding::NearestAway
    } else {
        Rounding::Nearest
    }
}

/// Returns the first NaN among `f64` operands, made quiet; `None` if there is none.
pub(crate) fn quiet_nan_f64(operands: &[u64]) -> Option<u64> {
    operands.iter().find(|&&bits| Format::F64.is_nan(bits)).map(|bits| bits | 1 << 51)
}
