//! The gamma function and its logarithm.
//!
//! For arguments that are not small, Stirling's formula is used:
//! `log gamma(s) = (s - 1/2) log s - s + log(2 pi)/2 + M(1/s)`. The large terms are sums of two numbers each,
//! and `M`, or its exponential, is a polynomial. Small arguments of `tgamma` are moved up by three:
//! `gamma(z) = gamma(z + 3) / (z (z + 1) (z + 2))`. Around its zeros at 1 and 2, `lgamma` is a polynomial
//! times both distances. Negative arguments are reflected: `gamma(-z) = -pi / (z sin(pi z) gamma(z))`.
//!
//! All is computed in `f64`, also for `f32`. These functions are rarely used, and the `f32` results become
//! nearly correctly rounded in this way.

use super::exp::{less_one, range, reduce, scale};
use super::float::Float;
use super::log::log;
use super::power::log_pair;
use super::trig::sinpi;
use std::f64::consts::PI;

/// `M(v) / v`, for `v` up to 1 / 2.25.
const STIRLING: &[f64] = &[
    0.08333333333333301,
    9.158935743303429e-14,
    -0.0027777777867451312,
    4.466435497869582e-10,
    0.0007936374810025513,
    2.599834449949794e-07,
    -0.0005987553106004481,
    3.413125495059319e-05,
    0.0005994379713996242,
    0.0012658924611276471,
    -0.006726771041179506,
    0.012714610728904683,
    -0.014049665407686159,
    0.009516914014624834,
    -0.0036174410585022945,
    0.0005688708240025726,
];

/// `(exp M(v) - 1) sqrt(2 pi) / v`, for `v` up to 1/3.
const SCALE: &[f64] = &[
    0.20888568955258321,
    0.008703570398076501,
    -0.0067210904799370735,
    -0.0005752008989087638,
    0.0019652832708980587,
    0.00017504156846884897,
    -0.0014883182539737626,
    -8.620615118486627e-05,
    0.0017609522956618078,
    0.0021518399655510194,
    -0.012886366437596025,
    0.02208466919340103,
    -0.01982391589160855,
    0.00893187197776618,
    -0.001311638313384599,
];

/// `lgamma(x) / ((x - 1) (x - 2))` of `w = (x - 1) / (x + 1)`, for `x` from 0.75 to 2.25.
const AROUND_ZEROS: &[f64] = &[
    0.5772156649015329,
    -0.4905027370451606,
    0.13123432641064198,
    -0.16820095064431523,
    0.08701556722877418,
    -0.1014733775533001,
    0.06462417112079125,
    -0.07249649544921986,
    0.051360025093649085,
    -0.05633654435173128,
    0.04260419456132538,
    -0.046038306910176005,
    0.036452370157798945,
    -0.03926739378752084,
    0.03203050543442455,
    -0.029423709544593633,
    0.00921800860546688,
    0.007603750770889372,
    -0.013945627212152872,
];

/// Difference of pi and its nearest number.
const PI_LOW: f64 = 1.2246467991473532e-16;
/// Square root of 2 pi, as a number and a correction.
const SQRT_TWO_PI: (f64, f64) = (2.5066282746310007, -1.8328579980459167e-16);
/// Half the logarithm of 2 pi, as a number and a correction.
const HALF_LOG_TWO_PI: (f64, f64) = (0.9189385332046728, -3.8782941580672414e-17);
/// Magnitude below which `gamma(x)` is `1 / x`.
const TINY: f64 = 8.673617379884035e-19;

/// Returns the sum and its rounding error.
fn sum_exactly<'b>(a: Float<'b>, b: Float<'b>) -> (Float<'b>, Float<'b>) {
    let sum = a + b;
    let back = sum - a;
    (sum, (a - (sum - back)) + (b - back))
}

/// Computes `(s - 1/2) log s - s` with its rounding error. `log` is the logarithm of `s`, and `log_low` its
/// rounding error.
fn stirling<'b>(s: Float<'b>, log: Float<'b>, log_low: Float<'b>) -> (Float<'b>, Float<'b>) {
    let a = s - 0.5;
    let product = a * log;
    let product_low = a.fma(log_low, a.fma(log, -product));
    let e = product - s;
    (e, ((product - e) - s) + product_low)
}

pub(super) fn tgamma<'b>(x: Float<'b>) -> Float<'b> {
    tgamma_double(x.widen()).as_wide_as(x)
}

fn tgamma_double<'b>(x: Float<'b>) -> Float<'b> {
    let (zero, one) = (x.number(0.0), x.number(1.0));
    let negative = x.lt(0.0);
    let z = x.abs().at_most(200.0);
    let small = z.lt(3.0);
    let s = small.select(z + 3.0, z);
    let s_low = small.select(z - (s - 3.0), zero);
    let log = log_pair(s);
    let v = 1.0 / s;
    let (e, e_low) = stirling(s, log.0, log.1);
    // The slope of the logarithm of gamma is about log s - 1 / (2s).
    let e_low = s_low.fma(v.fma(-0.5, log.0), e_low);
    let t = v * v.evaluate(SCALE);
    let factor = t + SQRT_TWO_PI.0;
    let factor_low = ((SQRT_TWO_PI.0 - factor) + t) + SQRT_TWO_PI.1;
    // (z + 1) (z + 2) = z (z + 3) + 2
    let zs = z * s;
    let (q, q_low) = sum_exactly(zs, x.number(2.0));
    let q_low = q_low + z.fma(s_low, z.fma(s, -zs));
    let (q, q_low) = (small.select(q, one), small.select(q_low, zero));
    // For positive x the result is factor exp(e) / q / z, for negative x it is pi q exp(-e) / factor /
    // -sin(pi z). If z is not small, the first is without z and q, and the second is without q and with z.
    let pi_q = q * PI;
    let pi_q_low = q.fma(PI, -pi_q) + q.fma(PI_LOW, q_low * PI);
    let (above, above_low) = (negative.select(pi_q, factor), negative.select(pi_q_low, factor_low));
    let (below, below_low) = (negative.select(factor, q), negative.select(factor_low, q_low));
    let sine = sinpi(x.abs());
    let other = negative.select(-(sine * small.select(1.0, z)), small.select(z, one));
    let (least, greatest) = range(x);
    let (shifted, r) = reduce(negative.select(-e, e).at_most(greatest).at_least(least));
    let m = less_one(r + negative.select(-e_low, e_low));
    let curved = above.fma(m, above_low);
    let n = above + curved;
    let n_low = (above - n) + curved;
    let reciprocal = 1.0 / below;
    let y = n * reciprocal;
    let y = reciprocal.fma(y.fma(-below, n) + y.fma(-below_low, n_low), y);
    let y = scale(y / other, shifted);
    let y = x.gt(171.7).select(f64::INFINITY, y);
    let y = x.lt(-184.1).select(zero.times_sign_of(-sine), y);
    let y = x.abs().lt(TINY).select(1.0 / x, y);
    let y = (negative & x.trunc().equals(x)).select(f64::NAN, y);
    x.is_nan().select(x, y)
}

pub(super) fn lgamma<'b>(x: Float<'b>) -> Float<'b> {
    lgamma_double(x.widen()).as_wide_as(x)
}

fn lgamma_double<'b>(x: Float<'b>) -> Float<'b> {
    let z = x.abs();
    let negative = x.lt(0.0);
    let log_z = log_pair(z);
    // Around the zeros. Below 0.75 the value of z + 1, less log z.
    let small = z.lt(0.75);
    let from_one = small.select(z, z - 1.0);
    let from_two = small.select(z - 1.0, z - 2.0);
    let w = from_one / (from_one + 2.0);
    let product = from_one * from_two;
    let near = product.fma(AROUND_ZEROS[0], (product * w) * w.evaluate(&AROUND_ZEROS[1..]));
    let near = small.select((near - log_z.1) - log_z.0, near);
    // Stirling's formula. If its product is too large, z replaces s - 1/2.
    let v = 1.0 / z;
    let (e, e_low) = stirling(z, log_z.0, log_z.1);
    let (sum, lost) = sum_exactly(e, x.number(HALF_LOG_TWO_PI.0));
    let far = sum + (v.fma(v.evaluate(STIRLING), HALF_LOG_TWO_PI.1) + (lost + e_low));
    let far = z.gt(1e300).select(z * (log_z.0 - 1.0), far);
    let y = z.lt(2.25).select(near, far);
    let reflection = log(PI / (z * sinpi(z).abs()));
    let y = negative.select(reflection - y, y);
    let y = z.lt(TINY).select(-log_z.0, y);
    let pole = z.equals(0.0) | (negative & x.trunc().equals(x));
    let y = (pole | z.equals(f64::INFINITY)).select(f64::INFINITY, y);
    let y = x.equals(1.0).select(0.0, y);
    x.is_nan().select(x, y)
}
