//! Conversions between numbers.
//!
//! The reference converts through 128-bit integers and comparisons of doubles, never through the conversion
//! under test.

use std::cmp::Ordering;

use crate::compare::same;
use crate::inputs::{Inputs, values_at};
use crate::trial::{Outcome, Trial, args};

#[derive(Clone, Copy)]
enum Mode {
    Nearest,
    Zero,
    Up,
    Down,
}

/// Converts a float to an integer in a rounding mode, clamped to `low..=high`; NaN becomes `nan`.
fn to_integer(v: f64, mode: Mode, low: i128, high: i128, nan: i128) -> i128 {
    if v.is_nan() {
        return nan;
    }
    let whole = match mode {
        Mode::Nearest => v.round_ties_even(),
        Mode::Zero => v.trunc(),
        Mode::Up => v.ceil(),
        Mode::Down => v.floor(),
    };
    // All values here are far below 2^127, except the infinities, for which the cast saturates.
    (whole as i128).clamp(low, high)
}

/// Converts an integer to a double or, with `bits` of precision, to a shorter float, in a rounding mode.
fn from_integer(v: i128, bits: u32, mode: Mode) -> f64 {
    let magnitude = v.unsigned_abs();
    let excess = (128 - magnitude.leading_zeros()).saturating_sub(bits);
    let (kept, cut, half) = (magnitude >> excess, magnitude & ((1 << excess) - 1), (1u128 << excess) / 2);
    let away = match mode {
        _ if cut == 0 => false,
        Mode::Nearest => match cut.cmp(&half) {
            Ordering::Less => false,
            Ordering::Equal => kept & 1 == 1,
            Ordering::Greater => true,
        },
        Mode::Zero => false,
        Mode::Up => v > 0,
        Mode::Down => v < 0,
    };
    // The kept part has at most 53 bits (54 if it was rounded up to a power of two), so this product is
    // exact.
    let size = (kept + u128::from(away)) as f64 * 2f64.powi(excess as i32);
    if v < 0 { -size } else { size }
}

/// Returns the nearest floats below and above a double.
fn float_bounds(v: f64) -> (f32, f32) {
    let nearest = v as f32;
    match f64::from(nearest).partial_cmp(&v) {
        Some(Ordering::Less) => (nearest, nearest.next_up()),
        Some(Ordering::Greater) => (nearest.next_down(), nearest),
        _ => (nearest, nearest),
    }
}

fn values(r: &mut Inputs, n: usize) -> Vec<f64> {
    let special = [
        0.0,
        -0.0,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        1e-30,
        2147483647.0,
        2147483648.0,
        -2147483648.0,
        -2147483904.0,
        4294967295.0,
        4294967296.0,
        9.3e18,
        -9.3e18,
        1.9e19,
        3e38,
        -3e38,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e-45,
    ];
    (0..n).map(|i| special.get(i).copied().unwrap_or_else(|| r.f64(-4.0, 4.0) * 2f64.powi(r.below(-3, 66) as i32))).collect()
}

pub(crate) fn conversions(t: &mut Trial<'_>) -> Outcome {
    float_to_integer(t)?;
    integer_to_float(t)?;
    integer_widths(t)
}

fn float_to_integer(t: &mut Trial<'_>) -> Outcome {
    let n = 150;
    let mut r = Inputs::new(190);
    let f: Vec<f32> = values(&mut r, n).iter().map(|v| *v as f32).collect();
    let d = values(&mut r, n);
    let (df, dd, out) = (t.upload(&f)?, t.upload(&d)?, t.output::<[i64; 12]>(n)?);
    t.launch("float_to_integer", 2, 96, args![df, dd, out, n as i32])?;
    let s32 = |v: f64, mode| to_integer(v, mode, i32::MIN.into(), i32::MAX.into(), 0) as i64;
    let u32 = |v: f64, mode| to_integer(v, mode, 0, u32::MAX.into(), 0) as i64;
    // A NaN becomes the word with only its highest bit set if the result has 64 bits, or if it comes from a
    // double.
    let s64 = |v: f64, mode| to_integer(v, mode, i64::MIN.into(), i64::MAX.into(), i64::MIN.into()) as i64;
    let u64 = |v: f64, mode| to_integer(v, mode, 0, u64::MAX.into(), 1 << 63) as i64;
    let s32_wide = |v: f64, mode| to_integer(v, mode, i32::MIN.into(), i32::MAX.into(), i32::MIN.into()) as i64;
    let u32_wide = |v: f64, mode| to_integer(v, mode, 0, u32::MAX.into(), 1 << 31) as i64;
    let want: Vec<[i64; 12]> = values_at(0..n, |i| {
        let (v, w) = (f64::from(f[i]), d[i]);
        let (low, high) = float_bounds(w);
        [
            s32(v, Mode::Nearest),
            s32(v, Mode::Zero),
            s32(v, Mode::Up),
            s32(v, Mode::Down),
            u32(v, Mode::Zero),
            s64(v, Mode::Down),
            u64(v, Mode::Up),
            s32_wide(w, Mode::Nearest),
            u32_wide(w, Mode::Zero),
            s64(w, Mode::Up),
            u64(w, Mode::Nearest),
            // Two equal NaNs differ in no bit.
            if w.is_nan() { 0 } else { i64::from((low.to_bits() ^ high.to_bits()) as i32) },
        ]
    });
    same("float_to_integer", &t.download(&out)?, &want)
}

fn integer_to_float(t: &mut Trial<'_>) -> Outcome {
    let n = 150;
    let mut r = Inputs::new(191);
    let mut input: Vec<i64> = r.many(n, |r| (r.u64() as i64) >> r.below(0, 63));
    input[..6].copy_from_slice(&[0, -1, i64::MIN, i64::MAX, (1 << 24) + 1, (1 << 53) + 1]);
    let (di, floats, doubles) = (t.upload(&input)?, t.output::<[f32; 8]>(n)?, t.output::<[f64; 5]>(n)?);
    t.launch("integer_to_float", 2, 96, args![di, floats, doubles, n as i32])?;
    let want: Vec<[f32; 8]> = input
        .iter()
        .map(|v| {
            let (signed, unsigned) = (i128::from(*v as i32), i128::from(*v as u32));
            let (long, unsigned_long) = (i128::from(*v), i128::from(*v as u64));
            [
                from_integer(signed, 24, Mode::Nearest),
                from_integer(signed, 24, Mode::Zero),
                from_integer(unsigned, 24, Mode::Up),
                from_integer(unsigned, 24, Mode::Down),
                from_integer(long, 24, Mode::Nearest),
                from_integer(unsigned_long, 24, Mode::Zero),
                f64::from(*v as i16),
                f64::from(*v as u8),
            ]
            .map(|v| v as f32)
        })
        .collect();
    same("floats", &t.download(&floats)?, &want)?;
    let want: Vec<[f64; 5]> = input
        .iter()
        .map(|v| {
            [
                from_integer(i128::from(*v as i32), 53, Mode::Nearest),
                from_integer(i128::from(*v as u32), 53, Mode::Nearest),
                from_integer(i128::from(*v), 53, Mode::Up),
                from_integer(i128::from(*v as u64), 53, Mode::Down),
                f64::from(*v as i8),
            ]
        })
        .collect();
    same("doubles", &t.download(&doubles)?, &want)
}

fn integer_widths(t: &mut Trial<'_>) -> Outcome {
    let n = 100;
    let input: Vec<i64> = Inputs::new(192).many(n, |r| r.u64() as i64);
    let (di, out) = (t.upload(&input)?, t.output::<[i64; 7]>(n)?);
    t.launch("integer_widths", 2, 64, args![di, out, n as i32])?;
    // The lowest bits of a number, sign-extended or not.
    let cut = |v: i64, bits: u32, signed: bool| {
        let low = i128::from(v).rem_euclid(1 << bits);
        (if signed && low >= 1 << (bits - 1) { low - (1 << bits) } else { low }) as i64
    };
    let want: Vec<[i64; 7]> = input
        .iter()
        .map(|v| {
            let product = cut(*v, 8, true) * cut(*v >> 8, 16, false);
            [
                cut(*v, 8, true),
                cut(*v, 8, false),
                cut(*v, 16, true),
                cut(*v, 16, false),
                cut(*v, 32, true),
                cut(*v, 32, false),
                product,
            ]
        })
        .collect();
    same("widths", &t.download(&out)?, &want)
}
