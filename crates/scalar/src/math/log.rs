//! Logarithms: `log`, `log2`, `log10`, `log1p`, and the inverse hyperbolic functions, which are logarithms.
//!
//! A number is split into `2^e m` with `m` between `sqrt(1/2)` and `sqrt 2`. Then `log m = f + w` with
//! `f = m - 1` exact and `w = f^2 (-1/2 + f P(f))` by a polynomial, without a division. If the argument is a
//! sum, `log(1 + t)`, the scaled `f` is computed from `t` itself, so that adding 1 loses nothing.

use super::exp::{least_curved, ln2_low};
use super::float::{Coefficients, Float, FloatBits};
use std::f64::consts::{LN_2, LOG2_E, LOG10_2, LOG10_E};

/// `(log(1 + f) - f + f^2/2) / f^3`.
const LOG: Coefficients = Coefficients {
    single: &[
        0.3333333134651184,
        -0.2500081956386566,
        0.20001226663589478,
        -0.1662335991859436,
        0.14201782643795013,
        -0.13160187005996704,
        0.12761403620243073,
        -0.07634253799915314,
    ],
    double: &[
        0.3333333333333314,
        -0.24999999999987976,
        0.20000000000066612,
        -0.16666666669826025,
        0.14285714280094233,
        -0.12499999691430613,
        0.11111111147370092,
        -0.10000015206707043,
        0.0909092393568501,
        -0.08332913533240272,
        0.07691529737225017,
        -0.07149439545620853,
        0.06684590092890756,
        -0.06196679037213101,
        0.05668371725950788,
        -0.05677775376950406,
        0.06503503129867269,
        -0.05981736633122325,
        0.02615112930063973,
    ],
};

/// Splits a normal number into `2^e m`. Returns `e` at its place in the format, and `m`.
pub(super) fn split<'b>(x: Float<'b>) -> (FloatBits<'b>, Float<'b>) {
    let sqrt_half: i64 = x.pick(0x3f35_04f3, 0x3fe6_a09e_667f_3bcd);
    let e = (x.bits() - sqrt_half) & (-1i64 << x.mantissa_bits());
    (e, (x.bits() - e).float())
}

/// Returns the unit of the exponent of [`split`].
fn exponent_unit(x: Float<'_>) -> f64 {
    x.pick(2f64.powi(-23), 2f64.powi(-52))
}

/// Splits a positive number, also a subnormal one, into `2^e m`. Returns `e` and `m`.
pub(super) fn decompose<'b>(x: Float<'b>) -> (Float<'b>, Float<'b>) {
    let (up, scale) = x.pick((24.0, 2f64.powi(24)), (54.0, 2f64.powi(54)));
    let low = x.lt(x.least_normal());
    let (e, m) = split(low.select(x * scale, x));
    (e.to_float().fma(exponent_unit(x), low.select(-up, x.number(0.0))), m)
}

/// Returns `f^2`, and the factor for which their product is `log(1 + f) - f`.
fn curved<'b>(f: Float<'b>) -> (Float<'b>, Float<'b>) {
    (f * f, f.fma(f.polynomial(LOG), -0.5))
}

/// Terms of `log x = e ln 2 + f + w`, with `w` as a product.
struct LogTerms<'b> {
    e: Float<'b>,
    f: Float<'b>,
    w: (Float<'b>, Float<'b>),
}

fn parts<'b>(x: Float<'b>) -> LogTerms<'b> {
    let (e, m) = decompose(x);
    let f = m - 1.0;
    LogTerms { e, f, w: curved(f) }
}

/// Computes `e ln 2 + f + w`. Each term is less than the one before it.
fn sum<'b>(terms: LogTerms<'b>) -> Float<'b> {
    let LogTerms { e, f, w: (square, factor) } = terms;
    // In f32 the nearest number to ln 2 is exact enough.
    e.fma(LN_2, e.pick(square.fma(factor, f), f + square.fma(factor, e * ln2_low(e))))
}

/// Returns the result if the argument is positive and finite, otherwise the value of the C standard.
fn on_domain<'b>(x: Float<'b>, y: Float<'b>) -> Float<'b> {
    let y = x.lt(f64::INFINITY).select(y, x);
    x.gt(0.0).select(y, x.equals(0.0).select(-f64::INFINITY, x.number(f64::NAN)))
}

pub(super) fn log<'b>(x: Float<'b>) -> Float<'b> {
    on_domain(x, sum(parts(x)))
}

pub(super) fn log2<'b>(x: Float<'b>) -> Float<'b> {
    let LogTerms { e, f, w: (square, factor) } = parts(x);
    let w = square * factor;
    let low = x.pick(1.925963033500011e-08, 2.0355273740931033e-17);
    on_domain(x, e + f.fma(LOG2_E, f.fma(low, w * LOG2_E)))
}

pub(super) fn log10<'b>(x: Float<'b>) -> Float<'b> {
    let LogTerms { e, f, w: (square, factor) } = parts(x);
    let w = square * factor;
    let low = x.pick(-1.0103049952192578e-08, 1.098319650216765e-17);
    let low_of_2 = x.pick(-1.432098883924482e-08, -2.8037281277851704e-18);
    on_domain(x, e.fma(LOG10_2, f.fma(LOG10_E, w.fma(LOG10_E, f.fma(low, e * low_of_2)))))
}

/// Computes `log(1 + t + low) + extra ln 2`, for `t` above -1 and finite, and `low` so small that its square
/// is negligible.
fn log_one_plus<'b>(t: Float<'b>, rest: Option<(Float<'b>, Float<'b>)>) -> Float<'b> {
    let (e, m) = split(t + 1.0);
    let down = (t.pick(0x3f80_0000, 0x3ff0_0000_0000_0000) - e).float();
    // If 1 is negligible, 2^-e may be too small for the format.
    let big = t.gt(t.pick(2f64.powi(40), 2f64.powi(80)));
    let f = big.select(m - 1.0, t.fma(down, down - 1.0));
    let (square, factor) = curved(f);
    let e = e.to_float() * exponent_unit(t);
    let Some((low, extra)) = rest else { return sum(LogTerms { e, f, w: (square, factor) }) };
    // log(1 + f + d) is about log(1 + f) + d (1 - f).
    let e = e + extra;
    let w = (low * big.select(0.0, down)).fma(1.0 - f, square * factor);
    e.fma(LN_2, f + e.pick(w, e.fma(ln2_low(e), w)))
}

pub(super) fn log1p<'b>(x: Float<'b>) -> Float<'b> {
    let y = x.lt(f64::INFINITY).select(log_one_plus(x, None), x);
    let y = x.gt(-1.0).select(y, x.equals(-1.0).select(-f64::INFINITY, x.number(f64::NAN)));
    x.abs().lt(least_curved(x)).select(x, y)
}

/// Returns the limit above which the 1 is negligible in the squares of `asinh` and `acosh`, and the result is
/// `log x + ln 2`.
fn large(x: Float<'_>) -> f64 {
    x.pick(2f64.powi(26), 2f64.powi(54))
}

/// Computes `log(1 + t + low)`, or `log(2x)` if x is large.
fn log_or_large<'b>(x: Float<'b>, t: Float<'b>, low: Float<'b>) -> Float<'b> {
    let big = x.gt(large(x));
    let extra = big.select(1.0, x.number(0.0));
    log_one_plus(big.select(x, t), Some((big.select(0.0, low), extra)))
}

pub(super) fn asinh<'b>(x: Float<'b>) -> Float<'b> {
    // exp(asinh a) - 1 = a + a^2 / (1 + sqrt(1 + a^2))
    let a = x.abs();
    let w = (a * a) / (a.fma(a, 1.0).sqrt() + 1.0);
    let t = a + w;
    let y = log_or_large(a, t, (a - t) + w);
    let y = a.lt(least_curved(x)).select(a, a.lt(f64::INFINITY).select(y, a));
    y.with_sign_of(x)
}

pub(super) fn acosh<'b>(x: Float<'b>) -> Float<'b> {
    // exp(acosh x) - 1 = u + sqrt(2u + u^2) with u = x - 1
    let u = x - 1.0;
    let s = u.fma(u, u + u).sqrt();
    let t = s + u;
    let y = log_or_large(x, t, (s - t) + u);
    let y = x.lt(f64::INFINITY).select(y, x);
    let y = x.gt(1.0).select(y, x.number(f64::NAN));
    x.equals(1.0).select(0.0, y)
}

pub(super) fn atanh<'b>(x: Float<'b>) -> Float<'b> {
    // 2 atanh a = log(1 + 2a / (1 - a)). The rounding errors of the difference and the quotient are included.
    let a = x.abs();
    let d = 1.0 - a;
    let d_low = (1.0 - d) - a;
    let reciprocal = 1.0 / d;
    let twice = a + a;
    let q = twice * reciprocal;
    let q_low = q.fma(-d_low, q.fma(-d, twice)) * reciprocal;
    let y = log_one_plus(q, Some((q_low, x.number(0.0)))) * 0.5;
    let y = a.lt(1.0).select(y, a.equals(1.0).select(f64::INFINITY, x.number(f64::NAN)));
    a.lt(least_curved(x)).select(a, y).with_sign_of(x)
}
