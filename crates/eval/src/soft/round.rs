//! Rounding of exact values: to a format, to an integer (manual: "Rounding Modifiers", "cvt").

use super::{Exact, Format};

/// Which neighbour an exact value becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// `.rn`: the nearer, of two equally near the even one.
    Nearest,
    /// `.rna`: the nearer, of two equally near the one farther from zero.
    NearestAway,
    /// `.rz`: the one nearer to zero.
    Zero,
    /// `.rm`: the lower.
    Down,
    /// `.rp`: the upper.
    Up,
    /// `.rs`: the one farther from zero if what is cut off and these random bits, as many as said, have a carry.
    Random { bits: u32, count: u32 },
}

/// What becomes of a value above the largest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// Infinity, or the largest number where the rounding says so; NaN in a format without infinity.
    Ieee,
    /// The largest number (`.satfinite`).
    Largest,
}

/// What becomes of a result below the smallest normal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// It stays.
    Keep,
    /// Zero with its sign (`.ftz`). What counts is the value rounded as if exponents had no end: one that reaches the smallest
    /// normal number stays.
    Zero,
}

impl Rounding {
    /// Whether a magnitude goes up, that ends in an odd or even bit and has `lost` of a unit cut off.
    fn away(self, negative: bool, odd: bool, lost: Lost) -> bool {
        match self {
            Rounding::Nearest => lost.half > Half::At || lost.half == Half::At && odd,
            Rounding::NearestAway => lost.half >= Half::At,
            Rounding::Zero => false,
            Rounding::Down => negative && lost.half != Half::Nothing,
            Rounding::Up => !negative && lost.half != Half::Nothing,
            Rounding::Random { bits, count } => lost.carries(bits, count),
        }
    }

    /// Whether a value too large becomes infinite rather than the largest number.
    fn overflows(self, negative: bool) -> bool {
        match self {
            Rounding::Nearest | Rounding::NearestAway | Rounding::Random { .. } => true,
            Rounding::Zero => false,
            Rounding::Down => negative,
            Rounding::Up => !negative,
        }
    }
}

/// How much was cut off, against half a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Half {
    Nothing,
    Below,
    At,
    Above,
}

/// What was cut off, as a share of one unit.
#[derive(Clone, Copy, Debug)]
struct Lost {
    half: Half,
    /// The share, times 2^64, rounded down.
    fraction: u64,
}

impl Lost {
    /// Whether the share and random bits, read as a binary fraction, make one or more.
    fn carries(self, bits: u32, count: u32) -> bool {
        let random = u64::from(bits) << (64 - count);
        self.fraction.checked_add(random).is_none()
    }
}

/// Cuts the lowest `shift` bits off: what stays, and what was lost.
fn cut(value: Exact, shift: i32) -> (u128, Lost) {
    if shift <= 0 {
        let half = if value.sticky { Half::Below } else { Half::Nothing };
        return (value.significand << -shift, Lost { half, fraction: 0 });
    }
    // The lost bits, moved to the top of a word of their own.
    let (kept, lost, rest) = match shift {
        1..=127 => (value.significand >> shift, value.significand << (128 - shift), false),
        128 => (0, value.significand, false),
        129..=255 => (0, value.significand >> (shift - 128), value.significand << (256 - shift) != 0),
        _ => (0, 0, value.significand != 0),
    };
    let rest = rest || value.sticky;
    let half = match lost.cmp(&(1 << 127)) {
        std::cmp::Ordering::Less if lost == 0 && !rest => Half::Nothing,
        std::cmp::Ordering::Less => Half::Below,
        std::cmp::Ordering::Equal if rest => Half::Above,
        std::cmp::Ordering::Equal => Half::At,
        std::cmp::Ordering::Greater => Half::Above,
    };
    (kept, Lost { half, fraction: (lost >> 64) as u64 })
}

/// The magnitude in units of 2^quantum, rounded.
fn rounded(value: Exact, quantum: i32, rounding: Rounding) -> u128 {
    let (kept, lost) = cut(value, quantum.saturating_sub(value.exponent));
    kept + u128::from(rounding.away(value.negative, kept & 1 == 1, lost))
}

/// The bits of a value in a format.
pub(crate) fn round(value: Exact, format: Format, rounding: Rounding, overflow: Overflow, flush: Flush) -> u64 {
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
    // The leading one of a normal number adds one to the exponent field, and so does a carry out of the fraction.
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

/// The value rounded to an integer, as an exact value with its sign; a zero keeps it.
pub(crate) fn integral(value: Exact, rounding: Rounding) -> Exact {
    if value.exponent >= 0 {
        return value;
    }
    Exact::new(value.negative, 0, rounded(value, 0, rounding))
}

/// The value rounded to an integer and brought into a range.
pub(crate) fn to_integer(value: Exact, rounding: Rounding, least: i128, largest: i128) -> i128 {
    if value.significand != 0 && value.magnitude() >= 66 {
        return if value.negative { least } else { largest };
    }
    let magnitude = rounded(value, 0, rounding) as i128;
    (if value.negative { -magnitude } else { magnitude }).clamp(least, largest)
}
