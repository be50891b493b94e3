//! Remainders of divisions: `fmod` and `remainder`. Both are exact.

use super::float::{Float, FloatBits};

/// Returns the biased exponent of a positive number.
fn exponent<'b>(x: Float<'b>) -> FloatBits<'b> {
    x.bits().shift_right_logical(x.mantissa_bits())
}

/// Computes `a` modulo `b`, for finite `a >= 0` and `b > 0`.
///
/// Each round subtracts a multiple of `b 2^k`. `k` is chosen so that the quotient is an integer with fewer
/// bits than the format has. Such a quotient is off by at most one, and the rest is a number of the format,
/// so the fused product computes it exactly. One round suffices for operands of similar size.
fn modulo<'b>(a: Float<'b>, b: Float<'b>) -> Float<'b> {
    let up = a.pick(24, 54);
    let low = b.lt(b.least_normal());
    let b_exponent = exponent(low.select(b * 2f64.powi(up), b)) - low.select_bits(up.into(), b.integer(0));
    a.step_while(
        |r| r.ge(b),
        |r| {
            let k = (exponent(r) - b_exponent - r.pick(22, 51)).at_least(0);
            let half = k >> 1;
            let power = |n: FloatBits<'b>| ((n + b.bias()) << b.mantissa_bits()).float();
            let divisor = b * power(half) * power(k - half);
            let quotient = (r / divisor).trunc();
            let next = quotient.fma(-divisor, r);
            next.lt(0.0).select(next + divisor, next)
        },
    )
}

pub(super) fn fmod<'b>(x: Float<'b>, y: Float<'b>) -> Float<'b> {
    let (a, b) = (x.abs(), y.abs());
    let defined = a.lt(f64::INFINITY) & b.gt(0.0);
    // The loop gets only numbers.
    let r = modulo((defined & b.lt(f64::INFINITY)).select(a, x.number(0.0)), b.gt(0.0).select(b, x.number(1.0)));
    let r = b.equals(f64::INFINITY).select(a, r).with_sign_of(x);
    defined.select(r, x.number(f64::NAN))
}

pub(super) fn remainder<'b>(x: Float<'b>, y: Float<'b>) -> Float<'b> {
    let (a, b) = (x.abs(), y.abs());
    let defined = a.lt(f64::INFINITY) & b.gt(0.0);
    // First reduced to less than two divisors, unless two divisors are infinite.
    let huge = b.gt(x.pick(f64::from(f32::MAX), f64::MAX) / 2.0);
    let divisor = b.gt(0.0).select(b, x.number(1.0));
    let r = modulo((defined & !huge).select(a, x.number(0.0)), huge.select(1.0, divisor + divisor));
    let r = huge.select(a, r);
    // Then reduced to at most half a divisor. Half of a small divisor may lose its last bit, so the remainder
    // is doubled instead.
    let small = b.lt(x.least_normal() * 2.0);
    let half = b * 0.5;
    let once = ((small & (r + r).gt(b)) | (!small & r.gt(half))).select(r - b, r);
    let again = (small & (once + once).ge(b)) | (!small & once.ge(half));
    let nearest = (again & r.gt(once)).select(once - b, once);
    let signed = b.equals(f64::INFINITY).select(a, nearest).times_sign_of(x);
    defined.select(signed, x.number(f64::NAN))
}
