//! Exponentials: `exp`, `exp2`, `exp10`, `expm1`.
//!
//! An argument is split into `n` steps of a power of two and a rest `r`: `exp x = 2^n exp r` with
//! `|r| <= ln 2 / 2`, for which a polynomial suffices. Adding the [`rounder`](Float::rounder) yields `n` in
//! the lowest bits, and a shift moves it into the exponent. Arguments are clamped to the range in which
//! results are neither 0 nor infinite, so two factors are enough to scale by `n`. A subnormal result is
//! rounded once, by the second factor.

use super::float::{Coefficients, Float};
use std::f64::consts::{LN_2, LOG2_10, LOG2_E, LOG10_2};

/// `(exp r - 1 - r) / r^2`, for a result near 1.
pub(super) const EXP: Coefficients = Coefficients {
    single: &[0.4999999403953552, 0.1666652113199234, 0.04166838899254799, 0.008368715643882751, 0.0013814588310196996],
    double: &[
        0.5000000000000011,
        0.16666666666666413,
        0.04166666666653017,
        0.008333333333494479,
        0.0013888888943627828,
        0.00019841269506549685,
        2.4801493101244676e-05,
        2.755758639539226e-06,
        2.7630247536115133e-07,
        2.500005567101886e-08,
    ],
};

/// Coefficients for a result near 0.
const EXPM1: Coefficients = Coefficients {
    single: &[0.5, 0.1666666716337204, 0.04166632518172264, 0.008333220146596432, 0.001394320628605783, 0.00019962115038651973],
    double: &[
        0.5000000000000001,
        0.1666666666666667,
        0.04166666666665229,
        0.008333333333326153,
        0.0013888888895596896,
        0.00019841269874764565,
        2.480157453842496e-05,
        2.7557255462241354e-06,
        2.756792696177375e-07,
        2.5105194085892593e-08,
        1.7687782370479206e-09,
    ],
};

/// `(2^r - 1) / r`.
const EXP2: Coefficients = Coefficients {
    single: &[
        0.6931472420692444,
        0.24022652208805084,
        0.055503103882074356,
        0.009617692790925503,
        0.0013406643411144614,
        0.00015594768046867102,
    ],
    double: &[
        0.6931471805599457,
        0.24022650695910097,
        0.05550410866479038,
        0.009618129107607008,
        0.001333355815344423,
        0.00015403530441562458,
        1.5252727381298823e-05,
        1.321544268097684e-06,
        1.0180649216131841e-07,
        7.072569372193152e-09,
        4.077844910345217e-10,
    ],
};

/// `(10^r - 1) / r`.
const EXP10: Coefficients = Coefficients {
    single: &[
        2.3025851249694824,
        2.650949239730835,
        2.034641742706299,
        1.1712019443511963,
        0.542340099811554,
        0.20956628024578094,
    ],
    double: &[
        2.302585092994047,
        2.650949055239202,
        2.0346785922923316,
        1.1712551489096503,
        0.5393829294795619,
        0.20699584934472076,
        0.06808933639123363,
        0.01959762918932823,
        0.005015191774466834,
        0.0011573899568253722,
        0.00022167835108824282,
    ],
};

/// Returns the difference of `ln 2` and its nearest number.
pub(super) fn ln2_low(x: Float<'_>) -> f64 {
    x.pick(-1.9046542121259336e-09, 2.3190468138462996e-17)
}

/// Returns the rounder plus `n`, and `r`, of `x = n ln 2 + r`.
pub(super) fn reduce<'b>(x: Float<'b>) -> (Float<'b>, Float<'b>) {
    let shifted = x.fma(LOG2_E, x.rounder());
    let n = shifted - x.rounder();
    (shifted, n.fma(-ln2_low(x), n.fma(-LN_2, x)))
}

/// Returns the limits between which `exp` is neither 0 nor infinite.
pub(super) fn range(x: Float<'_>) -> (f64, f64) {
    x.pick((-105.0, 89.0), (-746.0, 710.0))
}

/// Computes `exp r - 1` for a small `r`, exact enough for the sum with 1.
pub(super) fn less_one<'b>(r: Float<'b>) -> Float<'b> {
    (r * r).fma(r.polynomial(EXP), r)
}

/// Computes `p 2^n` for any `n` in the [`range`], and `p` near 1. `shifted` is the rounder plus `n`.
pub(super) fn scale<'b>(p: Float<'b>, shifted: Float<'b>) -> Float<'b> {
    let n = shifted.bits();
    let (width, bias) = (p.mantissa_bits(), p.bias() << p.mantissa_bits());
    let half = ((n >> 1) << width) + bias;
    let rest = (n << width) - half + 2 * bias;
    // Products, not sums of bits, so that NaN is preserved.
    p * half.float() * rest.float()
}

/// Computes `p 2^n` if `2^n` is a normal number.
pub(super) fn scale_normal<'b>(p: Float<'b>, shifted: Float<'b>) -> Float<'b> {
    let width = p.mantissa_bits();
    p * ((shifted.bits() << width) + (p.bias() << width)).float()
}

pub(super) fn exp<'b>(x: Float<'b>) -> Float<'b> {
    let (least, greatest) = range(x);
    let (shifted, r) = reduce(x.at_most(greatest).at_least(least));
    scale(less_one(r) + 1.0, shifted)
}

pub(super) fn exp2<'b>(x: Float<'b>) -> Float<'b> {
    let x = x.at_most(x.pick(129.0, 1025.0)).at_least(x.pick(-151.0, -1076.0));
    let shifted = x + x.rounder();
    let r = x - (shifted - x.rounder());
    scale(r.fma(r.polynomial(EXP2), 1.0), shifted)
}

pub(super) fn exp10<'b>(x: Float<'b>) -> Float<'b> {
    let x = x.at_most(x.pick(39.0, 309.0)).at_least(x.pick(-46.0, -324.0));
    let shifted = x.fma(LOG2_10, x.rounder());
    let n = shifted - x.rounder();
    let r = n.fma(-x.pick(-1.432098883924482e-08, -2.8037281277851704e-18), n.fma(-LOG10_2, x));
    scale(r.fma(r.polynomial(EXP10), 1.0), shifted)
}

pub(super) fn expm1<'b>(x: Float<'b>) -> Float<'b> {
    let (_, greatest) = range(x);
    let (shifted, r) = reduce(x.at_most(greatest).at_least(x.pick(-18.0, -40.0)));
    let p = (r * r).fma(r.polynomial(EXPM1), r);
    // Half of 2^n, so that the greatest n needs no special case.
    let width = x.mantissa_bits();
    let s = ((shifted.bits() << width) + ((x.bias() - 1) << width)).float();
    let y = s.fma(p, s - 0.5) * 2.0;
    x.abs().lt(least_curved(x)).select(x, y)
}

/// Returns the limit below which a function with slope 1 at 0 is equal to its argument.
pub(super) fn least_curved(x: Float<'_>) -> f64 {
    x.pick(2f64.powi(-26), 2f64.powi(-55))
}
