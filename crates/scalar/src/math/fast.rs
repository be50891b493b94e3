//! The fast mode: hardware instructions for `f32`, without code for rare arguments.
//!
//! [`accuracy`](super::accuracy) states the error of each function. Results may differ between devices in
//! their last bits. All other functions, and all of `f64`, are computed as in the accurate mode.

use super::float::Float;
use super::power::with_signs;
use super::trig;
use crate::math_function::MathFunction;
use crate::op::UnaryOp;
use std::f64::consts::{FRAC_1_PI, LN_2, LOG2_10, LOG2_E, LOG10_2, PI};

/// Returns the function of `f32`, if it has a faster form.
pub(super) fn expand<'b>(function: MathFunction, x: Float<'b>, y: Option<Float<'b>>) -> Option<Float<'b>> {
    Some(match function {
        MathFunction::Exp => exp2(x * LOG2_E),
        MathFunction::Exp2 => exp2(x),
        MathFunction::Exp10 => exp2(x * LOG2_10),
        MathFunction::Log => log2(x) * LN_2,
        MathFunction::Log2 => log2(x),
        MathFunction::Log10 => log2(x) * LOG10_2,
        MathFunction::Sin => within_a_turn(x).approximate(UnaryOp::SinApprox),
        MathFunction::Cos => within_a_turn(x).approximate(UnaryOp::CosApprox),
        MathFunction::Tan => trig::tan_of_usual(x),
        MathFunction::Tanh => x.approximate(UnaryOp::TanhApprox),
        MathFunction::Rsqrt => x.approximate(UnaryOp::RsqrtApprox),
        MathFunction::Pow => pow(x, y?),
        MathFunction::Sigmoid => (exp2(x * -LOG2_E) + 1.0).approximate(UnaryOp::RcpApprox),
        MathFunction::Expm1
        | MathFunction::Log1p
        | MathFunction::Sinpi
        | MathFunction::Cospi
        | MathFunction::Asin
        | MathFunction::Acos
        | MathFunction::Atan
        | MathFunction::Atan2
        | MathFunction::Sinh
        | MathFunction::Cosh
        | MathFunction::Asinh
        | MathFunction::Acosh
        | MathFunction::Atanh
        | MathFunction::Cbrt
        | MathFunction::Hypot
        | MathFunction::Erf
        | MathFunction::Erfc
        | MathFunction::Lgamma
        | MathFunction::Tgamma
        | MathFunction::Fmod
        | MathFunction::Remainder
        | MathFunction::NormCdf => return None,
    })
}

fn exp2<'b>(x: Float<'b>) -> Float<'b> {
    x.approximate(UnaryOp::Exp2Approx)
}

fn log2<'b>(x: Float<'b>) -> Float<'b> {
    x.approximate(UnaryOp::Log2Approx)
}

/// Reduces an angle by whole turns to the range from -pi to pi. Usable up to some tens of thousands.
fn within_a_turn<'b>(x: Float<'b>) -> Float<'b> {
    let turns = x.fma(0.5 * FRAC_1_PI, x.rounder()) - x.rounder();
    turns.fma(1.7484555314695172e-07, turns.fma(-2.0 * PI, x))
}

/// Computes `2^(y log2 |x|)`, with the signs and special values of the accurate function.
fn pow<'b>(x: Float<'b>, y: Float<'b>) -> Float<'b> {
    with_signs(x, y, exp2(log2(x.abs()) * y))
}
