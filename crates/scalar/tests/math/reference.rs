//! Reference results: the functions in `f64` from the libraries of the host, for tests of `f32`, and
//! distances in ulp.

use broadloom_scalar::MathFunction;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Returns the function of `x` (and `y`), to about the precision of `f64`.
pub(crate) fn reference(function: MathFunction, x: f64, y: f64) -> f64 {
    match function {
        MathFunction::Exp => x.exp(),
        MathFunction::Exp2 => x.exp2(),
        MathFunction::Exp10 => libm::exp10(x),
        MathFunction::Expm1 => x.exp_m1(),
        MathFunction::Log => x.ln(),
        MathFunction::Log2 => x.log2(),
        MathFunction::Log10 => x.log10(),
        MathFunction::Log1p => x.ln_1p(),
        MathFunction::Sin => x.sin(),
        MathFunction::Cos => x.cos(),
        MathFunction::Tan => x.tan(),
        MathFunction::Sinpi => sinpi(x),
        MathFunction::Cospi => cospi(x),
        MathFunction::Asin => x.asin(),
        MathFunction::Acos => x.acos(),
        MathFunction::Atan => x.atan(),
        MathFunction::Atan2 => x.atan2(y),
        MathFunction::Sinh => x.sinh(),
        MathFunction::Cosh => x.cosh(),
        MathFunction::Tanh => x.tanh(),
        // The functions of the standard library lose digits.
        MathFunction::Asinh => libm::asinh(x),
        MathFunction::Acosh if x < 1.0 => f64::NAN,
        MathFunction::Acosh => libm::acosh(x),
        MathFunction::Atanh => libm::atanh(x),
        MathFunction::Rsqrt => 1.0 / x.sqrt(),
        MathFunction::Cbrt => x.cbrt(),
        MathFunction::Hypot => x.hypot(y),
        MathFunction::Pow => libm::pow(x, y),
        MathFunction::Erf => libm::erf(x),
        MathFunction::Erfc => libm::erfc(x),
        MathFunction::Lgamma => libm::lgamma(x),
        MathFunction::Tgamma => libm::tgamma(x),
        MathFunction::Fmod => x % y,
        MathFunction::Remainder => libm::remainder(x, y),
        MathFunction::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        MathFunction::NormCdf => 0.5 * libm::erfc(-x * FRAC_1_SQRT_2),
    }
}

/// Returns the quarter turns modulo 4, and the rest in radians.
fn quarter_turns(x: f64) -> (i32, f64) {
    let turn = x % 2.0;
    let n = (2.0 * turn).round_ties_even();
    (n as i32 & 3, (turn - 0.5 * n) * PI)
}

fn sinpi(x: f64) -> f64 {
    match quarter_turns(x) {
        (0 | 2, 0.0) => 0f64.copysign(x),
        (0, rest) => rest.sin(),
        (1, rest) => rest.cos(),
        (2, rest) => -rest.sin(),
        (_, rest) => -rest.cos(),
    }
}

fn cospi(x: f64) -> f64 {
    match quarter_turns(x) {
        (1 | 3, 0.0) => 0.0,
        (0, rest) => rest.cos(),
        (1, rest) => -rest.sin(),
        (2, rest) => -rest.cos(),
        (_, rest) => rest.sin(),
    }
}

/// Returns the distance in ulp of an `f32` result from the correct result. It is infinite if only one of them
/// is NaN, or if a zero has the wrong sign. The greatest number and infinity may replace each other if they
/// are that close.
pub(crate) fn single_error(result: f32, right: f64) -> f64 {
    let (wide, limit, ulp_there) = (f64::from(result), 2f64.powi(128), 2f64.powi(104));
    let rounded = right as f32;
    if result.is_nan() || right.is_nan() {
        return if result.is_nan() && right.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if right == 0.0 && result == 0.0 {
        return if right.is_sign_negative() == result.is_sign_negative() { 0.0 } else { f64::INFINITY };
    }
    if rounded == result {
        return if result.is_infinite() { 0.0 } else { distance(wide, right) };
    }
    if rounded.is_infinite() || result.is_infinite() {
        let held = |value: f64| value.clamp(-limit, limit);
        return if right.is_finite() { (held(wide) - held(right)).abs() / ulp_there } else { f64::INFINITY };
    }
    distance(wide, right)
}

/// Returns the distance of finite numbers in units in the last place of an `f32` of the size of the second
/// one.
fn distance(result: f64, right: f64) -> f64 {
    let exponent = if right == 0.0 { -126 } else { right.abs().log2().floor() as i32 };
    // The logarithm may round up to the next power of two.
    let exponent = if right != 0.0 && 2f64.powi(exponent) > right.abs() { exponent - 1 } else { exponent };
    (result - right).abs() / 2f64.powi(exponent.max(-126) - 23)
}
