//! `f16` and `bf16` computed in the host's `f64`: faster than exact arithmetic, with the same results.

use crate::soft::Format;

/// Converts a half to `f64`. The payload of a NaN is unspecified.
#[inline(always)]
pub fn to_f64(format: Format, bits: u64) -> f64 {
    let bias = (Format::F64.bias() - format.bias()) as u64;
    let magnitude = bits & format.magnitude_mask();
    let sign = (bits & format.sign_bit()) << (64 - format.bits());
    if magnitude < format.least_normal() {
        // Scaled by the value of its last bit.
        let unit = (bias + 1 - u64::from(format.fraction_bits())) << 52;
        return f64::from_bits((magnitude as f64 * f64::from_bits(unit)).to_bits() | sign);
    }
    let wide = magnitude << (52 - format.fraction_bits());
    let exponent = if magnitude >= format.infinity() { 0x7ff << 52 } else { bias << 52 };
    f64::from_bits(sign | if magnitude >= format.infinity() { wide | exponent } else { wide + exponent })
}

/// Rounds to nearest, ties to even. NaN becomes canonical.
#[inline(always)]
pub fn from_f64(format: Format, value: f64) -> u64 {
    let bits = value.to_bits();
    let sign = bits >> 63 << (format.bits() - 1);
    if value.is_nan() {
        return format.canonical_nan();
    }
    let exponent = (bits >> 52 & 0x7ff) as i32 - Format::F64.bias();
    let significand = bits & ((1 << 52) - 1) | u64::from(exponent > -Format::F64.bias()) << 52;
    let least = format.least_exponent();
    if exponent > format.bias() {
        return sign | format.infinity();
    }
    let shift = 52 - format.fraction_bits() as i32 + (least - exponent).max(0);
    if shift > 54 {
        return sign;
    }
    let (kept, lost, half) = (significand >> shift, significand & ((1 << shift) - 1), 1u64 << (shift - 1));
    let up = lost > half || lost == half && kept & 1 == 1;
    // The leading one adds to the exponent field, and so does a carry. Beyond the largest number the result
    // is infinity.
    let field = (exponent.max(least) - least) as u64;
    sign | ((field << format.fraction_bits()) + kept + u64::from(up))
}

/// Returns the sum, rounded to odd unless it is exact: a second rounding to fewer bits then equals a single
/// rounding.
#[inline(always)]
pub fn sum_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    // Exact rounding error.
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    let bits = sum.to_bits();
    if error == 0.0 || !sum.is_finite() || bits & 1 == 1 {
        return sum;
    }
    f64::from_bits(if (error > 0.0) == (sum > 0.0) { bits + 1 } else { bits - 1 })
}
