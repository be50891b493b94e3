//! Floating-point arithmetic in software: exact values, and one function that rounds them to any format.
//!
//! A finite number is taken apart into an [`Exact`] value, sign · significand · 2^exponent. Operations on exact values lose
//! nothing that rounding could ask for: what does not fit below the significand is remembered as one sticky bit. [`round`] then
//! makes the bits of a [`Format`] in a [`Rounding`] (manual: "Rounding Modifiers"). A [`Number`] is an exact value, an infinity or
//! NaN, with the operations of IEEE 754 on them; which NaN an instruction gives is the business of whoever knows the instruction.
//!
//! Widths: a significand has at most 53 bits, a product 106. Sums keep 126 bits and quotients and roots at least 57, always
//! more than the 53 bits of the widest format and its two bits for rounding.

mod arith;
mod format;
mod number;
mod round;
#[cfg(test)]
mod tests;

pub(crate) use format::{Format, Specials};
pub(crate) use number::Number;
pub(crate) use round::{Flush, Overflow, Rounding, integral, round, to_integer};

/// A finite number: sign · (significand + something below one if sticky) · 2^exponent. A sticky one has a significand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exact {
    pub(crate) negative: bool,
    pub(crate) exponent: i32,
    pub(crate) significand: u128,
    /// Whether something above zero and below one unit of the significand is missing from it.
    pub(crate) sticky: bool,
}

impl Exact {
    pub(crate) fn new(negative: bool, exponent: i32, significand: u128) -> Self {
        Exact { negative, exponent, significand, sticky: false }
    }

    /// An integer.
    pub(crate) fn integer(value: i128) -> Self {
        Exact::new(value < 0, 0, value.unsigned_abs())
    }

    pub(crate) fn is_zero(self) -> bool {
        self.significand == 0
    }

    pub(crate) fn negated(self) -> Self {
        Exact { negative: !self.negative, ..self }
    }

    /// The same times a power of two.
    pub(crate) fn scaled(self, exponent: i32) -> Self {
        Exact { exponent: self.exponent + exponent, ..self }
    }

    /// The exponent of the highest bit; for numbers that are not zero.
    pub(crate) fn magnitude(self) -> i32 {
        self.exponent + 127 - self.significand.leading_zeros() as i32
    }

    /// The same number with its highest bit at a place; bits that fall off become sticky.
    fn with_top_at(self, bit: i32) -> Self {
        let shift = bit - (127 - self.significand.leading_zeros() as i32);
        if shift >= 0 {
            return Exact { significand: self.significand << shift, exponent: self.exponent - shift, ..self };
        }
        self.shifted_right(-shift)
    }

    /// The same number with its exponent raised; bits that fall off become sticky.
    fn shifted_right(self, shift: i32) -> Self {
        let (kept, lost) = match shift {
            0 => (self.significand, 0),
            1..=127 => (self.significand >> shift, self.significand << (128 - shift)),
            _ => (0, self.significand),
        };
        Exact { significand: kept, exponent: self.exponent.saturating_add(shift), sticky: self.sticky || lost != 0, ..self }
    }
}
