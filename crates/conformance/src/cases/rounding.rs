//! Directed rounding, subnormals, and the parts of a float.
//!
//! The reference for directed rounding uses no rounding modes: it takes the result rounded to nearest, finds
//! by exact arithmetic on which side of it the true value lies, and steps to the neighbour if the mode
//! requires it.

use std::cmp::Ordering;

use crate::compare::same;
use crate::inputs::{Inputs, values_at};
use crate::trial::{Outcome, Trial, args};

/// Returns the sign of the exact sum of `terms`: an expansion of doubles that do not overlap (Shewchuk), the
/// last of which decides.
fn sign_of_sum(terms: &[f64]) -> Ordering {
    let mut expansion: Vec<f64> = Vec::new();
    for term in terms {
        let mut sum = *term;
        for part in &mut expansion {
            let total = sum + *part;
            let virtual_part = total - sum;
            let error = (sum - (total - virtual_part)) + (*part - virtual_part);
            *part = error;
            sum = total;
        }
        expansion.push(sum);
    }
    let largest = expansion.iter().rev().find(|part| **part != 0.0);
    largest.map_or(Ordering::Equal, |part| part.total_cmp(&0.0))
}

/// Returns a product as two doubles whose sum is exact.
fn exact_product(a: f64, b: f64) -> [f64; 2] {
    [a * b, a.mul_add(b, -(a * b))]
}

/// Float that can step to its neighbours.
trait SteppableFloat: Copy + Into<f64> {
    fn up(self) -> Self;
    fn down(self) -> Self;
}

impl SteppableFloat for f32 {
    fn up(self) -> f32 {
        self.next_up()
    }
    fn down(self) -> f32 {
        self.next_down()
    }
}

impl SteppableFloat for f64 {
    fn up(self) -> f64 {
        self.next_up()
    }
    fn down(self) -> f64 {
        self.next_down()
    }
}

/// Returns the result in the modes rn, rz, ru, rd, given the nearest one and the side on which the true value
/// lies.
fn directed<T: SteppableFloat>(nearest: T, side: Ordering) -> [T; 4] {
    let (low, high) = match side {
        Ordering::Less => (nearest.down(), nearest),
        Ordering::Equal => (nearest, nearest),
        Ordering::Greater => (nearest, nearest.up()),
    };
    let towards_zero = if Into::<f64>::into(nearest) < 0.0 { high } else { low };
    [nearest, towards_zero, high, low]
}

/// Returns add, multiply, fused multiply-add, divide and square root in all modes. The arguments are of
/// moderate size.
fn all_operations<T: SteppableFloat>(a: T, b: T, c: T, nearest: [T; 5]) -> Vec<T> {
    let (x, y, z): (f64, f64, f64) = (a.into(), b.into(), c.into());
    let [sum, product, fused, quotient, root] = nearest.map(Into::<f64>::into);
    let [p, pe] = exact_product(x, y);
    let [q, qe] = exact_product(quotient, y);
    let [s, se] = exact_product(root, root);
    let remainder = sign_of_sum(&[x, -q, -qe]);
    let sides = [
        sign_of_sum(&[x, y, -sum]),
        sign_of_sum(&[p, pe, -product]),
        sign_of_sum(&[p, pe, z, -fused]),
        if y < 0.0 { remainder.reverse() } else { remainder },
        sign_of_sum(&[x.abs(), -s, -se]),
    ];
    nearest.into_iter().zip(sides).flat_map(|(n, side)| directed(n, side)).collect()
}

pub(crate) fn rounding(t: &mut Trial<'_>) -> Outcome {
    let n = 80;
    let mut r = Inputs::new(180);
    let draw = |r: &mut Inputs| -> Vec<f64> {
        // Small whole numbers give exact results sometimes.
        (0..n)
            .map(|i| if i % 8 == 0 { r.below(1, 9) as f64 } else { r.f64(-2.0, 2.0) * 2f64.powi(r.below(-6, 7) as i32) })
            .collect()
    };
    let (a, b, c) = (draw(&mut r), draw(&mut r), draw(&mut r));
    let (da, db, dc, out) = (t.upload(&a)?, t.upload(&b)?, t.upload(&c)?, t.output::<f64>(20 * n)?);
    t.launch("rounding_f64", 1, 96, args![da, db, dc, out, n as i32])?;
    let row = |i: usize| {
        let (x, y, z) = (a[i], b[i], c[i]);
        all_operations(x, y, z, [x + y, x * y, x.mul_add(y, z), x / y, x.abs().sqrt()])
    };
    same("doubles", &t.download(&out)?, &(0..n).flat_map(row).collect::<Vec<f64>>())?;

    let narrow = |values: &[f64]| -> Vec<f32> { values.iter().map(|v| *v as f32).collect() };
    let (a, b, c) = (narrow(&a), narrow(&b), narrow(&c));
    let (da, db, dc, out) = (t.upload(&a)?, t.upload(&b)?, t.upload(&c)?, t.output::<f32>(20 * n)?);
    t.launch("rounding_f32", 1, 96, args![da, db, dc, out, n as i32])?;
    let row = |i: usize| {
        let (x, y, z) = (a[i], b[i], c[i]);
        all_operations(x, y, z, [x + y, x * y, x.mul_add(y, z), x / y, x.abs().sqrt()])
    };
    same("floats", &t.download(&out)?, &(0..n).flat_map(row).collect::<Vec<f32>>())
}

/// Returns zeros, subnormals, ordinary values, infinities and NaN.
fn corners() -> Vec<f32> {
    let positive =
        [0.0, f32::from_bits(1), 1e-40, f32::MIN_POSITIVE, 1e-20, 0.75, 1.0, 3.5, 1e20, f32::MAX, f32::INFINITY, f32::NAN];
    positive.iter().flat_map(|v| [*v, -*v]).collect()
}

/// Returns all pairs of corner values.
fn corner_pairs() -> (Vec<f32>, Vec<f32>) {
    let values = corners();
    values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b))).unzip()
}

/// Computes PTX's minimum and maximum: a NaN loses against a number, and -0 is less than +0.
fn ordered(a: f32, b: f32, greatest: bool) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if (a.total_cmp(&b) == Ordering::Greater) == greatest => a,
        _ => b,
    }
}

pub(crate) fn flush_to_zero(t: &mut Trial<'_>) -> Outcome {
    let (a, b) = corner_pairs();
    let n = a.len();
    let (da, db, out) = (t.upload(&a)?, t.upload(&b)?, t.output::<[f32; 10]>(n)?);
    t.launch("flush_to_zero", (n as u32).div_ceil(128), 128, args![da, db, out, n as i32])?;
    let flush = |v: f32| if v.is_subnormal() { 0f32.copysign(v) } else { v };
    let want: Vec<[f32; 10]> = values_at(0..n, |i| {
        let (x, y) = (a[i], b[i]);
        let (fx, fy) = (flush(x), flush(y));
        [
            x + y,
            flush(fx + fy),
            x * y,
            flush(fx * fy),
            x.mul_add(y, y),
            flush(fx.mul_add(fy, fy)),
            ordered(fx, fy, false),
            ordered(x, y, true),
            f32::from(u8::from(x < y)),
            f32::from(u8::from(fx < fy)),
        ]
    });
    same("rows", &t.download(&out)?, &want)
}

/// Returns the fraction in [0.5, 1) and the exponent of a finite value.
fn split(v: f32) -> (f32, i32) {
    if v == 0.0 {
        return (v, 0);
    }
    let (mut fraction, mut exponent) = (f64::from(v), 0);
    while fraction.abs() >= 1.0 {
        (fraction, exponent) = (fraction / 2.0, exponent + 1);
    }
    while fraction.abs() < 0.5 {
        (fraction, exponent) = (fraction * 2.0, exponent - 1);
    }
    (fraction as f32, exponent)
}

/// Returns the remainder of the nearest quotient, ties to even.
fn nearest_remainder(a: f64, b: f64) -> f64 {
    // Rust's remainder is exact; one more step decides between the two candidates, with the parity of the
    // quotient.
    let twice = a % (2.0 * b);
    let (size, step) = (twice.abs(), b.abs());
    let rest = if size <= 0.5 * step {
        size
    } else if size < 1.5 * step {
        size - step
    } else {
        size - 2.0 * step
    };
    if rest == 0.0 { 0f64.copysign(a) } else { rest.copysign(rest * twice.signum()) }
}

pub(crate) fn float_anatomy(t: &mut Trial<'_>) -> Outcome {
    let (a, b) = corner_pairs();
    let n = a.len();
    let (da, db, classes) = (t.upload(&a)?, t.upload(&b)?, t.output::<u32>(n)?);
    let (parts, wide) = (t.output::<[f32; 8]>(n)?, t.output::<[f64; 4]>(n)?);
    t.launch("float_anatomy", (n as u32).div_ceil(128), 128, args![da, db, classes, parts, wide, n as i32])?;
    let class = |i: usize| {
        let (x, y) = (a[i], b[i]);
        let bits = [
            x.is_nan(),
            x.is_infinite(),
            x.is_finite(),
            // Not every step on the way keeps the sign of a NaN.
            x.is_sign_negative() && !x.is_nan(),
            x < y,
            x >= y,
            x != y,
            x.is_nan() || y.is_nan(),
        ];
        bits.iter().enumerate().fold(0, |word, (k, bit)| word | u32::from(*bit) << k)
    };
    let signless: Vec<u32> = t.download(&classes)?.iter().zip(&a).map(|(c, x)| if x.is_nan() { c & !8 } else { *c }).collect();
    same("classes", &signless, &(0..n).map(class).collect::<Vec<u32>>())?;

    let row = |i: usize| {
        let (x, y) = (a[i], b[i]);
        let (fraction, exponent) = if x.is_finite() { split(x) } else { (0.0, 0) };
        let next = match x.partial_cmp(&y) {
            None => f32::NAN,
            Some(Ordering::Less) => x.next_up(),
            Some(Ordering::Greater) => x.next_down(),
            Some(Ordering::Equal) => y,
        };
        let scaled = (1.5 * 2f64.powi(exponent)) as f32;
        [ordered(x, y, false), ordered(x, y, true), x.copysign(y), x.abs(), next, fraction, exponent as f32, scaled]
    };
    same("parts", &t.download(&parts)?, &(0..n).map(row).collect::<Vec<[f32; 8]>>())?;

    let row = |i: usize| {
        let (x, y) = (f64::from(a[i]), f64::from(b[i]));
        let finite = x.is_finite();
        [
            f64::from(ordered(a[i], b[i], false)),
            if finite && y.is_finite() && y != 0.0 { nearest_remainder(x, y) } else { 0.0 },
            if finite { x } else { 0.0 },
            if finite && x != 0.0 { f64::from(split(a[i]).1 - 1) } else { 0.0 },
        ]
    };
    same("wide", &t.download(&wide)?, &(0..n).map(row).collect::<Vec<[f64; 4]>>())
}
