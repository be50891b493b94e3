//! Arc functions: `asin`, `acos`, `atan`, `atan2`.
//!
//! Arguments are reduced to at most 1/2 (sine) or 1 (tangent), for which a polynomial suffices. The rest is a
//! multiple of pi/2, whose low part is added to the small terms.

use super::float::{Coefficients, Float, Truth};
use std::f64::consts::FRAC_PI_2;

/// `(asin s - s) / (s z)` of `z = s^2`, up to 1/2.
const ASIN: Coefficients = Coefficients {
    single: &[0.16666752099990845, 0.07495298236608505, 0.04547034204006195, 0.02417968399822712, 0.04216601699590683],
    double: &[
        0.1666666666666676,
        0.07499999999970795,
        0.04464285717461585,
        0.030381942707618244,
        0.022372214991661563,
        0.01735161195145437,
        0.013980821195539598,
        0.011398907538346088,
        0.010780276509386063,
        0.00370632614834355,
        0.0217076353545331,
        -0.020999315273854305,
        0.03262877518594232,
    ],
};

/// `(atan q - q) / (q z)` of `z = q^2`, up to 1.
const ATAN: Coefficients = Coefficients {
    single: &[
        -0.33333298563957214,
        0.19998547434806824,
        -0.14264240860939026,
        0.10952179878950119,
        -0.08403434604406357,
        0.05795735865831375,
        -0.031177636235952377,
        0.010914504528045654,
        -0.0017936014337465167,
    ],
    double: &[
        -0.3333333333333307,
        0.19999999999951465,
        -0.14285714282575326,
        0.11111111007030246,
        -0.09090907003031728,
        0.0769227983947691,
        -0.06666404057274636,
        0.05880527804484746,
        -0.052535184787325266,
        0.0472232188667138,
        -0.04219177924276178,
        0.03664188713035689,
        -0.029903817146351576,
        0.021984798846833135,
        -0.013900505869677404,
        0.007196463110613115,
        -0.002884897108724336,
        0.0008313140992922821,
        -0.00015215914937623102,
        1.3224900569603995e-05,
    ],
};

/// Returns the difference of pi/2 and its nearest number.
fn half_pi_low(x: Float<'_>) -> f64 {
    x.pick(-4.371138828673793e-08, 6.123233995736766e-17)
}

/// Returns a condition, `s` and `t`. The condition is true if `a` is above 1/2. `asin a` is
/// `pi/2 - 2 (s + t)` if it is true, and `s + t` otherwise.
fn arc_sine<'b>(a: Float<'b>) -> (Truth<'b>, Float<'b>, Float<'b>) {
    let big = a.gt(0.5);
    let z = big.select(a.fma(-0.5, 0.5), a * a);
    let s = big.select(z.sqrt(), a);
    (big, s, (s * z) * z.polynomial(ASIN))
}

pub(super) fn asin<'b>(x: Float<'b>) -> Float<'b> {
    let (big, s, t) = arc_sine(x.abs());
    let rest = (s + (t - 0.5 * half_pi_low(x))).fma(-2.0, FRAC_PI_2);
    big.select(rest, s + t).with_sign_of(x)
}

pub(super) fn acos<'b>(x: Float<'b>) -> Float<'b> {
    let (big, s, t) = arc_sine(x.abs());
    let low = half_pi_low(x);
    let negative = x.lt(0.0);
    let middle = FRAC_PI_2 - (negative.select(-s, s) + (negative.select(-t, t) - low));
    let lower = (s + (t - low)).fma(-2.0, x.number(FRAC_PI_2) * 2.0);
    big.select(negative.select(lower, (s + t) * 2.0), middle)
}

/// Returns two numbers whose sum is `atan q`, for `q` up to 1.
fn arc_tangent<'b>(q: Float<'b>) -> (Float<'b>, Float<'b>) {
    let z = q * q;
    (q, (q * z) * z.polynomial(ATAN))
}

pub(super) fn atan<'b>(x: Float<'b>) -> Float<'b> {
    let a = x.abs();
    let big = a.gt(1.0);
    let (s, t) = arc_tangent(big.select(1.0 / a, a));
    big.select(FRAC_PI_2 - (s + (t - half_pi_low(x))), s + t).with_sign_of(x)
}

pub(super) fn atan2<'b>(y: Float<'b>, x: Float<'b>) -> Float<'b> {
    let (a, b) = (y.abs(), x.abs());
    let steep = a.gt(b);
    let (least, greatest) = (steep.select(b, a), steep.select(a, b));
    // The quotient of two zeros is 0, that of two infinities 1.
    let alike = greatest.equals(0.0).select(0.0, x.number(1.0));
    let (s, t) = arc_tangent(least.equals(greatest).select(alike, least / greatest));
    // By octants: s + t, pi/2 - (s + t), pi/2 + (s + t), pi - (s + t).
    let negative = x.bits().is_negative();
    let turn = steep ^ negative;
    let (s, t) = (turn.select(-s, s), turn.select(-t, t));
    let quarters = steep.select(1.0, negative.select(2.0, x.number(0.0)));
    let angle = quarters.fma(FRAC_PI_2, s) + quarters.fma(half_pi_low(x), t);
    (y.is_nan() | x.is_nan()).select(x + y, angle).with_sign_of(y)
}
