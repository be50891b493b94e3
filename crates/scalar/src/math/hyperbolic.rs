//! Hyperbolic functions: `sinh`, `cosh`, `tanh`.
//!
//! With `|x| = n ln 2 + r`, `U = 2^n / 2` and `D = 2^-n / 2`: `sinh x = (U - D) cosh r + (U + D) sinh r` and
//! `cosh x = (U + D) cosh r + (U - D) sinh r`. For `n = 0` the first is `sinh r` itself, so small arguments
//! need no special case.

use super::exp::{least_curved, less_one, reduce, scale_normal};
use super::float::{Coefficients, Float};

/// `(cosh r - 1) / z` of `z = r^2`.
const COSH: Coefficients = Coefficients {
    single: &[0.5, 0.041666269302368164, 0.0013946025865152478],
    double: &[
        0.5,
        0.04166666666666671,
        0.0013888888888864209,
        2.4801587362941652e-05,
        2.7557242168874935e-07,
        2.092432843712405e-09,
    ],
};

/// `(sinh r - r) / (r z)` of `z = r^2`.
const SINH: Coefficients = Coefficients {
    single: &[0.1666666716337204, 0.008333289064466953, 0.00019904882356058806],
    double: &[0.16666666666666677, 0.00833333333332167, 0.0001984126988602093, 2.755724431838061e-06, 2.510899825270918e-08],
};

/// `(tanh a - a) / (a z)` of `z = a^2`, up to [`SMALL`].
const TANH: Coefficients = Coefficients {
    single: &[-0.3333331346511841, 0.1333245187997818, -0.05383743718266487, 0.021007487550377846, -0.006179847754538059],
    double: &[
        -0.3333333333333333,
        0.1333333333333291,
        -0.05396825396793572,
        0.02186948852410166,
        -0.00886323526182807,
        0.0035921242305925324,
        -0.001455798219395579,
        0.0005897916143150056,
        -0.0002380661045999,
        9.363299704612862e-05,
        -3.253352885013472e-05,
        7.2046570553944476e-06,
    ],
};

/// Maximum argument for which `tanh` is a polynomial.
const SMALL: f64 = 0.5625;

/// Common terms of `sinh` and `cosh`.
struct HyperbolicTerms<'b> {
    /// A quarter of `2^n`. A half would be infinite for the greatest arguments.
    up: Float<'b>,
    /// A quarter of `2^-n`, or 0 if that is negligible.
    down: Float<'b>,
    /// `cosh r - 1`.
    even: Float<'b>,
    /// `sinh r`.
    odd: Float<'b>,
}

fn parts<'b>(a: Float<'b>) -> HyperbolicTerms<'b> {
    let (shifted, r) = reduce(a.at_most(a.pick(89.6, 710.6)));
    let n = shifted.bits() - a.rounder_bits();
    let (width, offset) = (a.mantissa_bits(), a.bias() - 2);
    let z = r * r;
    HyperbolicTerms {
        up: ((n + offset) << width).float(),
        down: ((offset - n).at_least(0) << width).float(),
        even: z * z.polynomial(COSH),
        odd: (z * r).fma(z.polynomial(SINH), r),
    }
}

pub(super) fn sinh<'b>(x: Float<'b>) -> Float<'b> {
    let a = x.abs();
    let HyperbolicTerms { up, down, even, odd } = parts(a);
    let (difference, sum) = (up - down, up + down);
    let lost = (up - difference) - down;
    let y = (difference + sum.fma(odd, difference.fma(even, lost))) * 2.0;
    a.lt(least_curved(x)).select(a, y).with_sign_of(x)
}

pub(super) fn cosh<'b>(x: Float<'b>) -> Float<'b> {
    let HyperbolicTerms { up, down, even, odd } = parts(x.abs());
    let (difference, sum) = (up - down, up + down);
    let lost = down - (sum - up);
    (sum + difference.fma(odd, sum.fma(even, lost))) * 2.0
}

pub(super) fn tanh<'b>(x: Float<'b>) -> Float<'b> {
    let a = x.abs().at_most(x.pick(10.0, 20.0));
    let (shifted, r) = reduce(a + a);
    let e = scale_normal(less_one(r) + 1.0, shifted);
    let z = a * a;
    let small = (a * z).fma(z.polynomial(TANH), a);
    a.lt(SMALL).select(small, 1.0 - 2.0 / (e + 1.0)).with_sign_of(x)
}
