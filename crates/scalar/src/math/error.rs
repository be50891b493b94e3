//! The error function and functions derived from it: `erf`, `erfc`, `normcdf`; and `sigmoid`.
//!
//! Near zero `erf` is a polynomial. Beyond, `erf x = 1 - exp(-Q(x))` with a polynomial `Q`. This is exact
//! enough because the exponential is the small part. `erfc x = exp(-x^2) V(x)`, where `x^2` includes its
//! rounding error. `V` is a polynomial in `w = (x - k) / (x + k)`, whose last terms are summed with their
//! rounding errors.

use super::exp::{less_one, range, reduce, scale, scale_normal};
use super::float::{Coefficients, Float};
use std::f64::consts::FRAC_1_SQRT_2;

/// `erf x / x - 1` of `x^2`, up to 1.
const ERF: Coefficients = Coefficients {
    single: &[
        0.12837916612625122,
        -0.3761262595653534,
        0.1128358542919159,
        -0.026853812858462334,
        0.005188328213989735,
        -0.0008010197780095041,
        7.853877468733117e-05,
    ],
    double: &[
        0.1283791670955126,
        -0.3761263890318375,
        0.11283791670954857,
        -0.026866170645072896,
        0.005223977624780866,
        -0.0008548326978741976,
        0.00012055331036883503,
        -1.4925593506321011e-05,
        1.6460972805183036e-06,
        -1.6350025071295918e-07,
        1.4657878671701991e-08,
        -1.1365660928310303e-09,
        5.945252500169893e-11,
    ],
};

/// `-log(erfc x)` from 1 to the point where `erf` is 1.
const ERF_TAIL: Coefficients = Coefficients {
    single: &[
        0.00034160513314418495,
        1.1270889043807983,
        0.638145387172699,
        0.10310628265142441,
        -0.021837839856743813,
        0.0029476024210453033,
        -0.00018637353787198663,
    ],
    double: &[
        5.028413861390372e-07,
        1.1283740895607968,
        0.6366436276946728,
        0.10270344063468592,
        -0.01899018101311406,
        -0.0004106249113642998,
        0.001915940298387591,
        -0.0007706409128737297,
        0.00013504906719662138,
        2.026721922939457e-05,
        -2.2822684623752186e-05,
        8.667208419514583e-06,
        -2.135684942924662e-06,
        3.733035935056083e-07,
        -4.6422885166258596e-08,
        3.934250806780359e-09,
        -2.0449532728565735e-10,
        4.928587962197177e-12,
    ],
};

/// `exp(x^2) erfc(x) (x + k)` of `w = (x - k) / (x + k)`, from 0.45 to the point where `erfc` is 0; `k` is 2
/// for `f32` and 4 for `f64`.
const ERFC: Coefficients = Coefficients {
    single: &[
        1.0215827226638794,
        -0.6871606707572937,
        0.27947208285331726,
        -0.03644233196973801,
        -0.02151048183441162,
        0.006480687763541937,
        0.003088532015681267,
        -0.0008465759456157684,
        -0.000652397342491895,
        6.0997648688498884e-05,
        0.0001194415963254869,
    ],
    double: &[
        1.095995661000491,
        -0.976548729080882,
        0.7732087022652361,
        -0.5408538313132353,
        0.3308515878780769,
        -0.17401093723994032,
        0.07638151490766382,
        -0.0263700533400294,
        0.006112055677161706,
        -0.00028095887011142436,
        -0.0004550528481339724,
        0.0001768128546367901,
        -3.6343873355016885e-06,
        -1.886104708344195e-05,
        4.6920183578157e-06,
        1.4246093774200152e-06,
        -8.41543633319214e-07,
        -7.61424944284271e-08,
        1.1862895527968482e-07,
        1.3330081880348804e-09,
        -1.1844941664342319e-08,
    ],
};

/// Computes `erf x` for `|x|` up to 1.
fn near_zero<'b>(x: Float<'b>) -> Float<'b> {
    x.fma((x * x).polynomial(ERF), x)
}

pub(super) fn erf<'b>(x: Float<'b>) -> Float<'b> {
    let a = x.abs().at_most(x.pick(3.9375, 6.0));
    let (shifted, r) = reduce(-a.polynomial(ERF_TAIL));
    let rest = scale_normal(less_one(r) + 1.0, shifted);
    a.lt(1.0).select(near_zero(a), 1.0 - rest).with_sign_of(x)
}

/// Computes `exp(-(s + s_low)) V(a + a_low)`, for `a` of at least 0.45.
fn tail<'b>(a: Float<'b>, a_low: Float<'b>, s: Float<'b>, s_low: Float<'b>) -> Float<'b> {
    let k = a.pick(2.0, 4.0);
    let c = a.pick(ERFC.single, ERFC.double);
    // 1 / (a + k) and w, each with its rounding error.
    let d = a + k;
    let d_low = (a - (d - k)) + a_low;
    let u = 1.0 / d;
    let u_low = u * u.fma(-d_low, u.fma(-d, 1.0));
    let n = a - k;
    let w = n * u;
    let w_low = u * (w.fma(-d_low, w.fma(-d, n)) + a_low);
    // The last two steps of the polynomial include their rounding errors. The low part of w is multiplied by
    // the slope, which may be rough.
    let inner = w.evaluate(&c[2..]);
    let q = w.fma(inner, c[1]);
    let q_low = w.fma(inner, c[1] - q);
    let p = w.fma(q, c[0]);
    let p_low = w.fma(q_low, w.fma(q, c[0] - p) + a.pick(-1.739551613866297e-08, 6.006717399563162e-17));
    let slope = w.evaluate(&[c[1], 2.0 * c[2], 3.0 * c[3], 4.0 * c[4], 5.0 * c[5]]);
    let p_low = w_low.fma(slope, p_low);
    let v = u * p;
    let v_low = u_low.fma(p, u.fma(p_low, u.fma(p, -v)));
    let (shifted, r) = reduce(-s);
    let m = less_one(r - s_low);
    scale(v + v.fma(m, v_low.fma(m, v_low)), shifted)
}

pub(super) fn erfc<'b>(x: Float<'b>) -> Float<'b> {
    let a = x.abs().at_most(x.pick(10.1, 27.3));
    let square = a * a;
    let y = tail(a, x.number(0.0), square, a.fma(a, -square));
    let y = x.lt(0.0).select(2.0 - y, y);
    a.lt(0.5).select(1.0 - near_zero(x), y)
}

pub(super) fn normcdf<'b>(x: Float<'b>) -> Float<'b> {
    // Half of erfc(-x / sqrt 2). Its exponential is that of x^2 / 2.
    let a = x.abs().at_most(x.pick(14.25, 38.6));
    let half = a * 0.5;
    let square = half * a;
    let t = a * FRAC_1_SQRT_2;
    let t_low = a.fma(x.pick(1.2101617485882343e-08, -4.833646656726457e-17), a.fma(FRAC_1_SQRT_2, -t));
    let y = tail(t, t_low, square, half.fma(a, -square));
    let y = x.gt(0.0).select(y.fma(-0.5, 1.0), y * 0.5);
    t.lt(0.5).select(near_zero(x * FRAC_1_SQRT_2).fma(0.5, 0.5), y)
}

pub(super) fn sigmoid<'b>(x: Float<'b>) -> Float<'b> {
    // With e = exp(-|x|) the result is 1 / (1 + e), or e / (1 + e) if x is negative. e is 2^n (p + p_low).
    let (least, _) = range(x);
    let (shifted, r) = reduce((-x.abs()).at_least(least));
    let m = less_one(r);
    let p = m + 1.0;
    let p_low = (1.0 - p) + m;
    let n = shifted.bits() - x.rounder_bits();
    let power = ((n + x.bias()).at_least(0) << x.mantissa_bits()).float();
    let d = power.fma(p, 1.0);
    let d_low = power.fma(p_low, power.fma(p, 1.0 - d));
    let reciprocal = 1.0 / d;
    let negative = x.lt(0.0);
    let (above, above_low) = (negative.select(p, x.number(1.0)), negative.select(p_low, x.number(0.0)));
    let q = above * reciprocal;
    let q = reciprocal.fma(q.fma(-d, above) + q.fma(-d_low, above_low), q);
    scale(q, negative.select(shifted, x.number(x.rounder())))
}
