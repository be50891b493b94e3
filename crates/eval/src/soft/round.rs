//! Rounding of exact values: to a format, to an integer (manual: "Rounding Modifiers", "cvt").

use super::{Exact, Format};

/// Rounding mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// `.rn`: to nearest, ties to even.
    Nearest,
    /// `.rna`: to nearest, ties away from zero.
    NearestAway,
    /// `.rz`: toward zero.
    Zero,
    /// `.rm`: down.
    Down,
    /// `.rp`: up.
    Up,
    /// `.rs`: away from zero if the lost fraction plus `count` random bits carries.
    Random { bits: u32, count: u32 },
}

/// Treatment of a value above the largest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Infinity, or the largest number, depending on the rounding; NaN in a format without infinity.
    Ieee,
    /// The largest number (`.satfinite`).
    Largest,
}

/// Treatment of a result below the smallest normal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// The subnormal number is the result.
    Keep,
    /// Zero with its sign (`.ftz`). The value rounded with unbounded exponents decides: one that reaches the
    /// smallest normal number is kept.
    Zero,
}

impl Rounding {
    /// Returns whether a magnitude is rounded up, given that it ends in an odd or even bit and `lost` was cut
    /// off.
    fn away(self, negative: bool, odd: bool, lost: LostFraction) -> bool {
        match self {
            Rounding::Nearest => lost.half > HalfComparison::At || lost.half == HalfComparison::At && odd,
            Rounding::NearestAway => lost.half >= HalfComparison::At,
            Rounding::Zero => false,
            Rounding::Down => negative && lost.half != HalfComparison::Nothing,
            Rounding::Up => !negative && lost.half != HalfComparison::Nothing,
            Rounding::Random { bits, count } => lost.carries(bits, count),
        }
    }

    /// Returns whether a value too large becomes infinite rather than the largest number.
    fn overflows(self, negative: bool) -> bool {
        match self {
            Rounding::Nearest | Rounding::NearestAway | Rounding::Random { .. } => true,
            Rounding::Zero => false,
            Rounding::Down => negative,
            Rounding::Up => !negative,
        }
    }
}

/// Comparison of the lost part with half a unit. `Nothing` means that nothing was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum HalfComparison {
    Nothing,
    Below,
    At,
    Above,
}

/// Lost part, as a fraction of one unit.
#[derive(Clone, Copy, Debug)]
struct LostFraction {
    half: HalfComparison,
    /// Fraction times 2^64, rounded down.
    fraction: u64,
}

impl LostFraction {
    /// Returns whether the fraction plus random bits, read as a binary fraction, is at least one.
    fn carries(self, bits: u32, count: u32) -> bool {
        let random = u64::from(bits) << (64 - count);
        self.fraction.checked_add(random).is_none()
    }
}

/// Cuts off the lowest `shift` bits. Returns the rest and the lost part.
fn cut(value: Exact, shift: i32) -> (u128, LostFraction) {
    if shift <= 0 {
        let half = if value.sticky { HalfComparison::Below } else { HalfComparison::Nothing };
        return (value.significand << -shift, LostFraction { half, fraction: 0 });
    }
    // The lost bits, moved to the top of a separate word.
    let (kept, lost, rest) = match shift {
        1..=127 => (value.significand >> shift, value.significand << (128 - shift), false),
        128 => (0, value.significand, false),
        129..=255 => (0, value.significand >> (shift - 128), value.significand << (256 - shift) != 0),
        _ => (0, 0, value.significand != 0),
    };
    let rest = rest || value.sticky;
    let half = match lost.cmp(&(1 << 127)) {
        std::cmp::Ordering::Less if lost == 0 && !rest => HalfComparison::Nothing,
        std::cmp::Ordering::Less => HalfComparison::Below,
        std::cmp::Ordering::Equal if rest => HalfComparison::Above,
        std::cmp::Ordering::Equal => HalfComparison::At,
        std::cmp::Ordering::Greater => HalfComparison::Above,
    };
    (kept, LostFraction { half, fraction: (lost >> 64) as u64 })
}

/// Returns the magnitude in units of 2^quantum, rounded.
fn rounded(value: Exact, quantum: i32, rounding: Rounding) -> u128 {
    let (kept, lost) = cut(value, quantum.saturating_sub(value.exponent));
    kept + u128::from(rounding.away(value.negative, kept & 1 == 1, lost))
}

/// Returns the bits of a value in a format.
pub fn round(value: Exact, format: Format, rounding: Rounding, overflow: Overflow, flush: Flush) -> u64 {
    if value.is_zero() {
        return format.with_sign(0, value.negative);
    }
    let fraction_bits = format.fraction_bits() as i32;
    let magnitude = value.magnitude();
    let least = format.least_exponent();
    if flush == Flush::Zero && magnitude < least {
        // One step below the least exponent, rounding may still reach it.
        let reaches = magnitude == least - 1 && rounded(value, magnitude - fraction_bits, rounding) == 1 << (fraction_bits + 1);
        return format.with_sign(if reaches { format.least_normal() } else { 0 }, value.negative);
    }
    let exponent = magnitude.max(least);
    let significand = rounded(value, exponent - fraction_bits, rounding) as u64;
    // The leading one of a normal number adds one to the exponent field, and so does a carry out of the
    // fraction.
    let biased = i64::from(exponent) + i64::from(format.bias()) - 1;
    let largest = format.largest();
    let top = (largest >> format.fraction_bits()) as i64;
    let bits = if biased > top { u64::MAX } else { ((biased as u64) << format.fraction_bits()) + significand };
    if bits <= largest {
        return format.with_sign(bits, value.negative);
    }
    match overflow {
        Overflow::Ieee if rounding.overflows(value.negative) => match format.specials() {
            super::Specials::Ieee => format.with_sign(format.infinity(), value.negative),
            super::Specials::NanOnly => format.canonical_nan(),
            super::Specials::None => format.with_sign(largest, value.negative),
        },
        Overflow::Ieee | Overflow::Largest => format.with_sign(largest, value.negative),
    }
}

/// Rounds the value to an integer, as an exact value with its sign; a zero keeps its sign.
pub fn integral(value: Exact, rounding: Rounding) -> Exact {
    if value.exponent >= 0 {
        return value;
    }
    Exact::new(value.negative, 0, rounded(value, 0, rounding))
}

/// Rounds the value to an integer and clamps it to a range.
pub fn to_integer(value: Exact, rounding: Rounding, least: i128, largest: i128) -> i128 {
    if value.significand != 0 && value.magnitude() >= 66 {
        return if value.negative { least } else { largest };
    }
    let magnitude = rounded(value, 0, rounding) as i128;
    (if value.negative { -magnitude } else { magnitude }).clamp(least, largest)
}
