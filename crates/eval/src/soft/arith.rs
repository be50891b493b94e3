//! Sums, products, quotients and roots of exact values.

use super::{Exact, Rounding};

/// Position of the highest bit when two values are added: above it there is space for a carry.
const TOP: i32 = 125;

/// Returns the product. Its significand has as many bits as both together: at most 106.
pub(super) fn multiply(a: Exact, b: Exact) -> Exact {
    Exact::new(a.negative != b.negative, a.exponent + b.exponent, a.significand * b.significand)
}

/// Returns the sum. For two zeros, and for two values that cancel, the sign depends on the rounding (IEEE
/// 754, 6.3).
pub(super) fn sum(a: Exact, b: Exact, rounding: Rounding) -> Exact {
    let zero = |negative| Exact::new(negative, 0, 0);
    if a.is_zero() || b.is_zero() {
        return match (a.is_zero(), b.is_zero()) {
            (true, true) if a.negative == b.negative => zero(a.negative),
            (true, true) => zero(rounding == Rounding::Down),
            (true, false) => b,
            (false, _) => a,
        };
    }
    let (a, b) = (a.with_top_at(TOP), b.with_top_at(TOP));
    let (large, small) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
    // Bits are lost only if the exponents differ by more than TOP - 105. Then the difference keeps its high
    // bits and rounds like the exact one.
    let small = small.shifted_right(large.exponent - small.exponent);
    if large.negative == small.negative {
        return Exact { significand: large.significand + small.significand, sticky: small.sticky, ..large };
    }
    if large.significand < small.significand {
        return Exact { significand: small.significand - large.significand, ..small };
    }
    // The sticky part is subtracted too: one unit less, plus something above it.
    let difference = large.significand - small.significand - u128::from(small.sticky);
    if difference == 0 {
        return zero(rounding == Rounding::Down);
    }
    Exact { significand: difference, sticky: small.sticky, ..large }
}

/// Returns the quotient of two values; the divisor is not zero.
pub(super) fn divide(a: Exact, b: Exact) -> Exact {
    let negative = a.negative != b.negative;
    if a.is_zero() {
        return Exact::new(negative, 0, 0);
    }
    let dividend = a.with_top_at(127);
    let quotient = dividend.significand / b.significand;
    Exact {
        negative,
        exponent: dividend.exponent - b.exponent,
        significand: quotient,
        sticky: quotient * b.significand != dividend.significand,
    }
}

/// Returns the square root of a value that is not negative.
pub(super) fn square_root(a: Exact) -> Exact {
    if a.is_zero() {
        return a;
    }
    let a = a.with_top_at(126);
    // The exponent must be even to be halved.
    let a = if a.exponent % 2 == 0 { a } else { Exact { significand: a.significand << 1, exponent: a.exponent - 1, ..a } };
    let root = a.significand.isqrt();
    Exact { negative: false, exponent: a.exponent / 2, significand: root, sticky: root * root != a.significand }
}
