//! Sine, cosine and tangent, of radians and of half turns.
//!
//! An angle is split into quarter turns and a rest of at most pi/4. For angles of usual size, `n` times pi/2
//! is subtracted in three parts, each a fused multiplication, the first of which is exact. All other angles
//! go through [`reduce_any`], the method of Payne and Hanek. Of the binary digits of 2/pi only a window of
//! 192 bits matters, at a place that depends on the exponent. Multiplied with the mantissa, digits before the
//! window give whole turns, and digits after it are negligible. A branch skips this code if no thread needs
//! it.

use super::float::{Coefficients, Float, FloatBits, Truth};
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, PI};

/// `(sin r - r) / (r z)` of `z = r^2`.
const SIN: Coefficients = Coefficients {
    single: &[-0.16666655242443085, 0.008332159370183945, -0.0001951512967934832],
    double: &[
        -0.1666666666666663,
        0.00833333333332209,
        -0.00019841269829566597,
        2.7557313613161753e-06,
        -2.505074643648586e-08,
        1.5896151120443276e-10,
    ],
};

/// `(cos r - 1 + z/2) / z^2` of `z = r^2`.
const COS: Coefficients = Coefficients {
    single: &[0.04166664555668831, -0.0013887315290048718, 2.4432985810562968e-05],
    double: &[
        0.041666666666666595,
        -0.0013888888888873019,
        2.4801587288826933e-05,
        -2.7557314171941154e-07,
        2.087569981665562e-09,
        -1.1358482178488786e-11,
    ],
};

/// `(tan r - r) / (r z)` of `z = r^2`.
const TAN: Coefficients = Coefficients {
    single: &[
        0.33333349227905273,
        0.13332660496234894,
        0.0540601946413517,
        0.02128070406615734,
        0.010839765891432762,
        8.43929301481694e-05,
        0.004378875717520714,
    ],
    double: &[
        0.33333333333332776,
        0.1333333333341486,
        0.05396825392655279,
        0.021869489611810386,
        0.008863219123952524,
        0.003592289449238741,
        0.0014547556730689678,
        0.0005950745780373108,
        0.00022235033283419937,
        0.00013658707547868705,
        -2.647385688197526e-05,
        8.953369610610773e-05,
        -4.492085544149032e-05,
        2.087399598365057e-05,
    ],
};

/// The binary digits of 2/pi after the point, with 64 zeros before them.
const TWO_OVER_PI: [u64; 20] = [
    0x0000_0000_0000_0000,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// Returns the difference of pi/2 and its nearest number, as two numbers.
fn half_pi_low(x: Float<'_>) -> (f64, f64) {
    x.pick((-4.371138828673793e-08, -1.7151245100058819e-15), (6.123233995736766e-17, -1.4973849048591698e-33))
}

/// Returns the limit up to which three parts of pi/2 are enough: the first product is exact, and the
/// remaining error is less than the distance of any argument from a multiple.
fn usual(x: Float<'_>) -> f64 {
    x.pick(65_536.0, 268_435_456.0)
}

/// Tests if [`reduce_any`] is needed, which is also the case for NaN and infinities.
fn is_unusual<'b>(x: Float<'b>) -> Truth<'b> {
    !x.abs().le(usual(x))
}

/// Returns `r` and the rounder plus `n`, of `x = n pi/2 + r` of usual size.
fn reduce_usual<'b>(x: Float<'b>) -> (Float<'b>, Float<'b>) {
    let (second, third) = half_pi_low(x);
    let shifted = x.fma(FRAC_2_PI, x.rounder());
    let n = shifted - x.rounder();
    (n.fma(-third, n.fma(-second, n.fma(-FRAC_PI_2, x))), shifted)
}

/// Reduces an argument of any size. Only the two lowest bits of `n` are meaningful.
fn reduce<'b>(x: Float<'b>) -> (Float<'b>, Float<'b>) {
    let (r, shifted) = reduce_usual(x);
    let [r, shifted] = Float::unless(is_unusual(x), [r, shifted], || {
        let [r, _, shifted] = reduce_any(x);
        [r, shifted]
    });
    (r, shifted)
}

/// Reduces an argument and returns the rounding error as well: `r`, its error, and the rounder plus `n`.
fn reduce_exactly<'b>(x: Float<'b>) -> [Float<'b>; 3] {
    let (second, third) = half_pi_low(x);
    let shifted = x.fma(FRAC_2_PI, x.rounder());
    let n = shifted - x.rounder();
    let first = n.fma(-FRAC_PI_2, x);
    let product = n * second;
    let r = first - product;
    let back = r - first;
    let lost = (first - (r - back)) - (product + back);
    let low = n.fma(-third, lost - n.fma(second, -product));
    Float::unless(is_unusual(x), [r, low, shifted], || reduce_any(x))
}

/// Reduces any argument through `f64`, for both widths.
fn reduce_any<'b>(x: Float<'b>) -> [Float<'b>; 3] {
    let [wide, wide_low, n] = reduce_double(x.widen());
    let r = wide.as_wide_as(x);
    let low = ((wide - r.widen()) + wide_low).as_wide_as(x);
    let r = x.abs().lt(f64::INFINITY).select(r, x.number(f64::NAN));
    [r, low, n.as_wide_as(x) + x.rounder()]
}

/// Returns `r`, its rounding error, and `n` modulo 4 or its negative, of an `f64` of at least 1.
fn reduce_double<'b>(x: Float<'b>) -> [Float<'b>; 3] {
    let magnitude = x.abs().bits();
    let mantissa = (magnitude & ((1i64 << 52) - 1)) | (1i64 << 52);
    // The window starts at the digit whose product with the mantissa's lowest bit has the weight 2. Digits
    // above give whole turns.
    let start = magnitude.shift_right_logical(52) - (1023 - 10);
    let (word, shift) = (start >> 6, start & 63);
    let back = 64 - shift;
    let digits: [FloatBits<'b>; 4] = [0, 1, 2, 3].map(|k: i64| (word + k).lookup(&TWO_OVER_PI));
    let [w0, w1, w2] = [0, 1, 2].map(|k| digits[k].shift_left(shift) | digits[k + 1].shift_right_logical(back));
    // The product modulo 4, in units of 2^-62 and 2^-126.
    let middle = mantissa * w1;
    let low = middle + mantissa.multiply_high(w2);
    let carry = low.is_below(middle).select_bits(1, low.number(0));
    let high = mantissa * w0 + mantissa.multiply_high(w1) + carry;
    // To the nearest quarter turn.
    let n = (high + (1i64 << 61)).shift_right_logical(62);
    let high = high - (n << 62);
    let sign = high >> 63;
    let (high, low) = (high ^ sign, low ^ sign);
    // Conversion to two floats of 53 bits each.
    let zeros = high.leading_zeros();
    let top = high.shift_left(zeros) | low.shift_right_logical(64 - zeros);
    let bottom = low.shift_left(zeros);
    let f = top.shift_right_logical(11).to_float();
    let g = (((top & 0x7ff) << 42) | bottom.shift_right_logical(22)).to_float() * 2f64.powi(-53);
    let scale = (((1023 - 51) - zeros) << 52) ^ (sign << 63);
    let scale = scale.float().times_sign_of(x);
    // Times pi/2.
    let (pi_low, _) = half_pi_low(x);
    let product = f * FRAC_PI_2;
    let rest = f.fma(FRAC_PI_2, -product) + g.fma(FRAC_PI_2, f * pi_low);
    let r = product + rest;
    [r * scale, ((product - r) + rest) * scale, n.to_float().times_sign_of(x)]
}

/// Computes the sine of `r` plus `n` quarter turns.
fn sine_in_quadrant<'b>(r: Float<'b>, n: FloatBits<'b>) -> Float<'b> {
    let z = r * r;
    let sine = (r * z).fma(z.polynomial(SIN), r);
    let cosine = z.fma(z.fma(z.polynomial(COS), -0.5), 1.0);
    let y = (n & 1).is_zero().select(sine, cosine);
    (y.bits() ^ ((n & 2) << r.pick(30, 62))).float()
}

pub(super) fn sin<'b>(x: Float<'b>) -> Float<'b> {
    let (r, shifted) = reduce(x);
    // The polynomial would turn -0 into +0.
    x.equals(0.0).select(x, sine_in_quadrant(r, shifted.bits()))
}

pub(super) fn cos<'b>(x: Float<'b>) -> Float<'b> {
    let (r, shifted) = reduce(x);
    sine_in_quadrant(r, shifted.bits() + 1)
}

/// Computes the tangent of `r + low` plus `n` quarter turns.
fn tangent_in_quadrant<'b>(r: Float<'b>, low: Float<'b>, n: FloatBits<'b>) -> Float<'b> {
    let z = r * r;
    let curved = (r * z).fma(z.polynomial(TAN), low.fma(z, low));
    let y = r + curved;
    let y_low = (r - y) + curved;
    // If n is odd, -1 over it, with its rounding error corrected.
    let v = -1.0 / y;
    let v = v.fma(v.fma(y_low, v.fma(y, 1.0)), v);
    (n & 1).is_zero().select(y, v)
}

pub(super) fn tan<'b>(x: Float<'b>) -> Float<'b> {
    let [r, low, shifted] = reduce_exactly(x);
    x.equals(0.0).select(x, tangent_in_quadrant(r, low, shifted.bits()))
}

/// Computes the tangent of an angle for which [`is_unusual`] is false, with less accuracy.
pub(super) fn tan_of_usual<'b>(x: Float<'b>) -> Float<'b> {
    let (r, shifted) = reduce_usual(x);
    let z = r * r;
    let y = (r * z).fma(z.polynomial(TAN), r);
    let odd = !(shifted.bits() & 1).is_zero();
    let above = odd.select(-1.0, y);
    above.divide_approximately(odd.select(y, x.number(1.0)))
}

/// Reduces an angle of `x` half turns. Returns `r` in radians, its rounding error, and `n` modulo 4 in the
/// lowest bits.
fn reduce_half_turns<'b>(x: Float<'b>) -> (Float<'b>, Float<'b>, FloatBits<'b>) {
    // Larger numbers are whole turns, or not numbers.
    let x = x.abs().lt(x.pick(2f64.powi(25), 2f64.powi(54))).select(x, x * 0.0);
    let n = (x + x).round_even();
    let half_turns = n.fma(-0.5, x);
    let n = (n * 0.25).trunc().fma(-4.0, n) + x.rounder();
    let r = half_turns * PI;
    let pi_low = x.pick(-8.742277657347586e-08, 1.2246467991473532e-16);
    (r, half_turns.fma(pi_low, half_turns.fma(PI, -r)), n.bits())
}

/// Computes the sine of `r + low` plus `n` quarter turns.
fn exact_sine_in_quadrant<'b>(r: Float<'b>, low: Float<'b>, n: FloatBits<'b>) -> Float<'b> {
    let z = r * r;
    let sine = r + (r * z).fma(z.polynomial(SIN), low);
    let cosine = z.fma(z.fma(z.polynomial(COS), -0.5), -(r * low)) + 1.0;
    let y = (n & 1).is_zero().select(sine, cosine);
    (y.bits() ^ ((n & 2) << r.pick(30, 62))).float()
}

pub(super) fn sinpi<'b>(x: Float<'b>) -> Float<'b> {
    let (r, low, n) = reduce_half_turns(x);
    let zero = r.equals(0.0) & (n & 1).is_zero();
    zero.select(x.number(0.0).with_sign_of(x), exact_sine_in_quadrant(r, low, n))
}

pub(super) fn cospi<'b>(x: Float<'b>) -> Float<'b> {
    let (r, low, n) = reduce_half_turns(x);
    let n = n + 1;
    let zero = r.equals(0.0) & (n & 1).is_zero();
    zero.select(0.0, exact_sine_in_quadrant(r, low, n))
}
