//! Floating-point arithmetic in software: exact values, and one function that rounds them to any format.
//!
//! A finite number is represented as an [`Exact`] value, sign · significand · 2^exponent. Operations on exact
//! values lose nothing that matters for rounding: bits that do not fit below the significand are recorded as
//! one sticky bit. `round` then computes the bits in a [`Format`] with a [`Rounding`] (manual: "Rounding
//! Modifiers"). A [`Number`] is an exact value, an infinity or NaN, with the operations of IEEE 754. The
//! caller chooses the NaN of an instruction.
//!
//! Widths: a significand has at most 53 bits, a product 106. Sums keep 126 bits and quotients and roots at
//! least 57, always more than the 53 bits of the widest format and its two rounding bits.

mod arith;
mod format;
mod number;
mod round;

pub use format::{Format, Specials};
pub use number::Number;
pub use round::{Flush, Overflow, Rounding, integral, round, to_integer};

/// Finite number: sign · (significand + a part below one if sticky) · 2^exponent. A sticky one has a nonzero
/// significand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exact {
    pub negative: bool,
    pub exponent: i32,
    pub significand: u128,
    /// True if a part above zero and below one unit of the significand is missing.
    pub sticky: bool,
}

impl Exact {
    pub fn new(negative: bool, exponent: i32, significand: u128) -> Self {
        Exact { negative, exponent, significand, sticky: false }
    }

    /// Converts an integer.
    pub fn integer(value: i128) -> Self {
        Exact::new(value < 0, 0, value.unsigned_abs())
    }

    pub fn is_zero(self) -> bool {
        self.significand == 0
    }

    pub fn negated(self) -> Self {
        Exact { negative: !self.negative, ..self }
    }

    /// Returns the value times a power of two.
    pub fn scaled(self, exponent: i32) -> Self {
        Exact { exponent: self.exponent + exponent, ..self }
    }

    /// Returns the exponent of the highest bit, for numbers that are not zero.
    pub fn magnitude(self) -> i32 {
        self.exponent + 127 - self.significand.leading_zeros() as i32
    }

    /// Returns the same number with its highest bit at a position; lost bits become sticky.
    fn with_top_at(self, bit: i32) -> Self {
        let shift = bit - (127 - self.significand.leading_zeros() as i32);
        if shift >= 0 {
            return Exact { significand: self.significand << shift, exponent: self.exponent - shift, ..self };
        }
        self.shifted_right(-shift)
    }

    /// Returns the same number with its exponent raised; lost bits become sticky.
    fn shifted_right(self, shift: i32) -> Self {
        let (kept, lost) = match shift {
            0 => (self.significand, 0),
            1..=127 => (self.significand >> shift, self.significand << (128 - shift)),
            _ => (0, self.significand),
        };
        Exact { significand: kept, exponent: self.exponent.saturating_add(shift), sticky: self.sticky || lost != 0, ..self }
    }
}
