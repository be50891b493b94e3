//! Roots and powers: `rsqrt`, `cbrt`, `hypot`, `pow`.

use super::exp;
use super::float::{Coefficients, Float};
use super::log::decompose;

/// `(log((1 + s) / (1 - s)) - 2s - 2/3 s z) / (s z^2)` of `z = s^2`.
const POW_LOG: Coefficients = Coefficients {
    single: &[0.40000152587890625, 0.2854713499546051, 0.23418575525283813],
    double: &[
        0.3999999999999998,
        0.285714285714451,
        0.2222222221753923,
        0.18181818869979652,
        0.15384556893561946,
        0.1333631656103063,
        0.11674835743321453,
        0.11988870922017031,
    ],
};

pub(super) fn rsqrt<'b>(x: Float<'b>) -> Float<'b> {
    1.0 / x.sqrt()
}

/// Computes the cube root by the reciprocal root. Its first approximation divides the exponent by three, and
/// its iteration needs no division.
pub(super) fn cbrt<'b>(x: Float<'b>) -> Float<'b> {
    let a = x.abs();
    let low = a.lt(x.least_normal());
    let (up, down) = x.pick((2f64.powi(24), 2f64.powi(-8)), (2f64.powi(54), 2f64.powi(-18)));
    let v = low.select(a * up, a);
    // A third of the upper bits, by a product that does not overflow.
    let (dropped, third, shift) = x.pick((16, 0xaaab_i64, 17), (32, 0xaaaa_aaab_i64, 33));
    let bits = v.bits();
    let third = ((bits >> dropped) * third).shift_right_logical(shift) << dropped;
    let guess = (x.pick(0x54a2_1d2a, 0x553e_f0ff_289d_d796) - third).float();
    // r (1 - e)^(-1/3) with e = 1 - v r^3, as a series in e.
    let closer = |r: Float<'b>, series: &[f64]| {
        let e = (r * r).fma(-(r * v), 1.0);
        (r * e).fma(e.evaluate(series), r)
    };
    let long = [1.0 / 3.0, 2.0 / 9.0, 14.0 / 81.0];
    let r = closer(closer(guess, &long), x.pick(&long[..2], &long));
    // v r^2 is the root. One more step uses the error of its cube.
    let square = r * r;
    let y = v * square;
    let y_square = y * y;
    let left = y.fma(-y.fma(y, -y_square), y.fma(-y_square, v));
    let y = (square * (1.0 / 3.0)).fma(left, y) * low.select(down, x.number(1.0));
    (a.gt(0.0) & a.lt(f64::INFINITY)).select(y.with_sign_of(x), x)
}

pub(super) fn hypot<'b>(x: Float<'b>, y: Float<'b>) -> Float<'b> {
    let (p, q) = (x.abs(), y.abs());
    let more = p.gt(q);
    let (a, b) = (more.select(p, q), more.select(q, p));
    // Numbers that are too large or too small are scaled before they are squared.
    let (large, down) = x.pick((2f64.powi(62), 2f64.powi(-66)), (2f64.powi(510), 2f64.powi(-520)));
    let (small, up) = x.pick((2f64.powi(-38), 2f64.powi(100)), (2f64.powi(-450), 2f64.powi(700)));
    let (is_large, is_small) = (a.gt(large), a.lt(small));
    let scale = |large: f64, small: f64| is_large.select(large, is_small.select(small, x.number(1.0)));
    let (to, from) = (scale(down, up), scale(1.0 / down, 1.0 / up));
    let (a, b) = (a * to, b * to);
    let length = a.fma(a, b * b).sqrt() * from;
    (p.equals(f64::INFINITY) | q.equals(f64::INFINITY)).select(f64::INFINITY, length)
}

/// Computes the logarithm of a positive number as a sum of two numbers. With `s = f / (2 + f)` it is
/// `2s + s z (2/3 + z P(z))`. The first terms are computed with their rounding errors.
pub(super) fn log_pair<'b>(a: Float<'b>) -> (Float<'b>, Float<'b>) {
    let (e, m) = decompose(a);
    let f = m - 1.0;
    let d = f + 2.0;
    let d_low = (2.0 - d) + f;
    let reciprocal = 1.0 / d;
    let s = f * reciprocal;
    let s_low = s.fma(-d_low, s.fma(-d, f)) * reciprocal;
    let z = s * s;
    let z_low = (s + s).fma(s_low, s.fma(s, -z));
    // 2/3 + z P(z)
    let (third, third_low) = a.pick((0.6666666865348816, -1.9868215517249155e-08), (0.6666666666666666, 3.700743415417188e-17));
    let p = z * z.polynomial(POW_LOG);
    let c = p + third;
    let c_low = ((third - c) + p) + third_low;
    // Times z, times s.
    let t = z * c;
    let t_low = z.fma(c, -t) + z.fma(c_low, z_low * c);
    let u = s * t;
    let u_low = s.fma(t, -u) + s.fma(t_low, s_low * t);
    // The upper part of ln 2 is so short that its product with e is exact.
    let (ln2, ln2_low) = a.pick((0.693145751953125, 1.428606765330187e-06), (0.6931471805598903, 5.497923018708371e-14));
    let whole = e * ln2;
    let twice = s + s;
    let first = whole + twice;
    let first_low = (whole - first) + twice;
    let second = first + u;
    let second_low = (first - second) + u;
    let low = (first_low + second_low) + e.fma(ln2_low, s_low.fma(2.0, u_low));
    let high = second + low;
    (high, (second - high) + low)
}

pub(super) fn pow<'b>(x: Float<'b>, y: Float<'b>) -> Float<'b> {
    let a = x.abs();
    let (log, log_low) = log_pair(a);
    let product = log * y;
    let (least, greatest) = exp::range(x);
    let inside = product.gt(least) & product.lt(greatest);
    let product_low = inside.select(log_low.fma(y, log.fma(y, -product)), x.number(0.0));
    let (shifted, r) = exp::reduce(product.at_most(greatest).at_least(least));
    let v = exp::scale(exp::less_one(r + product_low) + 1.0, shifted);
    // The values of the C standard for zeros, infinities, ones, signs and NaN.
    let zero = a.equals(0.0);
    let edge = (zero ^ y.gt(0.0)).select(f64::INFINITY, x.number(0.0));
    let v = (zero | a.equals(f64::INFINITY)).select(edge, v);
    with_signs(x, y, v)
}

/// Converts `v`, a power of `|x|`, to that of `x`: ones, signs and NaN.
pub(super) fn with_signs<'b>(x: Float<'b>, y: Float<'b>, v: Float<'b>) -> Float<'b> {
    let v = x.abs().equals(1.0).select(1.0, v);
    let whole = y.trunc().equals(y);
    let half = y * 0.5;
    let odd = whole & !half.trunc().equals(half);
    let v = odd.select(v.times_sign_of(x), v);
    let v = (x.lt(0.0) & x.gt(-f64::INFINITY) & !whole).select(f64::NAN, v);
    let v = (x.is_nan() | y.is_nan()).select(x + y, v);
    (y.equals(0.0) | x.equals(1.0)).select(1.0, v)
}
