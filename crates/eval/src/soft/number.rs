//! Numbers of any format with the operations of IEEE 754, before rounding.

use super::arith::{divide, multiply, square_root, sum};
use super::{Exact, Flush, Format, Overflow, Rounding, Specials, round};

/// Value of a floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Not a number, with any payload.
    Nan,
    Infinite {
        negative: bool,
    },
    Finite(Exact),
}

#[expect(clippy::should_implement_trait, reason = "a sum takes a rounding, so none is an operator")]
impl Number {
    /// Returns the value of bits.
    pub fn of(format: Format, bits: u64) -> Number {
        if format.is_nan(bits) {
            Number::Nan
        } else if format.is_infinite(bits) {
            Number::Infinite { negative: format.is_negative(bits) }
        } else {
            Number::Finite(format.exact(bits))
        }
    }

    /// Returns the bits of the value in a format. NaN becomes canonical; if the format has none, the largest
    /// number.
    pub fn to_bits(self, format: Format, rounding: Rounding, overflow: Overflow, flush: Flush) -> u64 {
        match (self, format.specials(), overflow) {
            (Number::Nan, Specials::None, _) => format.largest(),
            (Number::Nan, Specials::Ieee | Specials::NanOnly, _) => format.canonical_nan(),
            (Number::Infinite { negative }, Specials::Ieee, Overflow::Ieee) => format.with_sign(format.infinity(), negative),
            (Number::Infinite { .. }, Specials::NanOnly, Overflow::Ieee) => format.canonical_nan(),
            (Number::Infinite { negative }, Specials::None, _) | (Number::Infinite { negative }, _, Overflow::Largest) => {
                format.with_sign(format.largest(), negative)
            }
            (Number::Finite(value), ..) => round(value, format, rounding, overflow, flush),
        }
    }

    /// Returns the value of a `ue8m0`: a power of two.
    pub fn of_ue8m0(bits: u8) -> Number {
        match bits {
            0xff => Number::Nan,
            exponent => Number::Finite(Exact::new(false, i32::from(exponent) - 127, 1)),
        }
    }

    pub fn negated(self) -> Number {
        match self {
            Number::Nan => Number::Nan,
            Number::Infinite { negative } => Number::Infinite { negative: !negative },
            Number::Finite(value) => Number::Finite(value.negated()),
        }
    }

    /// Returns the value times a power of two.
    pub fn scaled(self, exponent: i32) -> Number {
        match self {
            Number::Nan | Number::Infinite { .. } => self,
            Number::Finite(value) => Number::Finite(value.scaled(exponent)),
        }
    }

    fn is_negative(self) -> bool {
        match self {
            Number::Nan => false,
            Number::Infinite { negative } => negative,
            Number::Finite(value) => value.negative,
        }
    }

    pub fn add(self, other: Number, rounding: Rounding) -> Number {
        match (self, other) {
            (Number::Nan, _) | (_, Number::Nan) => Number::Nan,
            (Number::Infinite { negative: a }, Number::Infinite { negative: b }) if a != b => Number::Nan,
            (Number::Infinite { .. }, _) => self,
            (_, Number::Infinite { .. }) => other,
            (Number::Finite(a), Number::Finite(b)) => Number::Finite(sum(a, b, rounding)),
        }
    }

    pub fn mul(self, other: Number) -> Number {
        let negative = self.is_negative() != other.is_negative();
        match (self, other) {
            (Number::Nan, _) | (_, Number::Nan) => Number::Nan,
            (Number::Infinite { .. }, Number::Finite(zero)) | (Number::Finite(zero), Number::Infinite { .. })
                if zero.is_zero() =>
            {
                Number::Nan
            }
            (Number::Infinite { .. }, _) | (_, Number::Infinite { .. }) => Number::Infinite { negative },
            (Number::Finite(a), Number::Finite(b)) => Number::Finite(multiply(a, b)),
        }
    }

    pub fn fma(self, factor: Number, addend: Number, rounding: Rounding) -> Number {
        self.mul(factor).add(addend, rounding)
    }

    pub fn div(self, divisor: Number) -> Number {
        let negative = self.is_negative() != divisor.is_negative();
        match (self, divisor) {
            (Number::Nan, _) | (_, Number::Nan) | (Number::Infinite { .. }, Number::Infinite { .. }) => Number::Nan,
            (Number::Infinite { .. }, Number::Finite(_)) => Number::Infinite { negative },
            (Number::Finite(_), Number::Infinite { .. }) => Number::Finite(Exact::new(negative, 0, 0)),
            (Number::Finite(a), Number::Finite(b)) if b.is_zero() => {
                if a.is_zero() {
                    Number::Nan
                } else {
                    Number::Infinite { negative }
                }
            }
            (Number::Finite(a), Number::Finite(b)) => Number::Finite(divide(a, b)),
        }
    }

    pub fn sqrt(self) -> Number {
        match self {
            Number::Nan | Number::Infinite { negative: true } => Number::Nan,
            Number::Infinite { negative: false } => self,
            Number::Finite(value) if value.negative && !value.is_zero() => Number::Nan,
            Number::Finite(value) => Number::Finite(square_root(value)),
        }
    }
}
