//! Floats of 16 bits.
//!
//! The reference computes in double precision, where sums, products and fused products of 16-bit floats of
//! moderate size are exact, and rounds once.

use half::{bf16, f16};

use crate::compare::{close, same};
use crate::inputs::{Inputs, values_at};
use crate::trial::{Outcome, Trial, args};

/// Returns a number of either sign with a magnitude between 2^-5 and 4.
fn moderate(r: &mut Inputs) -> f64 {
    r.f64(0.5, 1.0) * 2f64.powi(r.below(-4, 3) as i32) * if r.below(0, 2) == 0 { 1.0 } else { -1.0 }
}

/// Rounds to a half towards negative infinity.
fn round_down(v: f64) -> f16 {
    let nearest = f16::from_f64(v);
    if nearest.to_f64() <= v {
        return nearest;
    }
    let bits = nearest.to_bits();
    f16::from_bits(if nearest.is_sign_negative() { bits + 1 } else { bits - 1 })
}

pub(crate) fn half_math(t: &mut Trial<'_>) -> Outcome {
    let n = 120;
    let mut r = Inputs::new(210);
    let (a, b): (Vec<f16>, Vec<f16>) = (r.many(n, |r| f16::from_f64(moderate(r))), r.many(n, |r| f16::from_f64(moderate(r))));
    let (da, db, out) = (t.upload(&a)?, t.upload(&b)?, t.output::<[f16; 12]>(n)?);
    t.launch("half_math", 2, 64, args![da, db, out, n as i32])?;
    let want: Vec<[f16; 12]> = values_at(0..n, |i| {
        let (x, y) = (a[i].to_f64(), b[i].to_f64());
        [
            x + y,
            x - y,
            x * y,
            x * y + x,
            x / y,
            -x.abs(),
            x.min(y),
            if x > y { x } else { (x + y).clamp(0.0, 1.0) },
            x.abs().sqrt(),
            x.trunc(),
            x.floor(),
            round_down(f64::from(a[i].to_f32() * 1.001)).to_f64(),
        ]
        .map(f16::from_f64)
    });
    let got = t.download(&out)?;
    // Quotients use an approximate reciprocal and are corrected; CUDA promises the nearest. Truncation to an
    // integer and back gives +0 where the reference has -0, and a saturated sum of -0 is +0.
    let positive_zero = |v: f16| if v == f16::ZERO { f16::ZERO } else { v };
    let plain = |rows: &[[f16; 12]]| -> Vec<f16> { rows.as_flattened().iter().copied().map(positive_zero).collect() };
    same("rows", &plain(&got), &plain(&want))?;

    let pairs = n / 2;
    let out = t.output::<[f16; 2]>(6 * pairs)?;
    t.launch("half2_math", 1, 64, args![da, db, out, pairs as i32])?;
    let want: Vec<[f16; 2]> = (0..pairs)
        .flat_map(|p| {
            let (x, y) = ([a[2 * p], a[2 * p + 1]].map(f16::to_f64), [b[2 * p], b[2 * p + 1]].map(f16::to_f64));
            let both = |f: &dyn Fn(f64, f64) -> f64| [f(x[0], y[0]), f(x[1], y[1])];
            [
                both(&|a, b| a + b),
                both(&|a, b| a * b + b),
                both(&|a, b| -a * b),
                both(&|a, b| f64::from(u8::from(a > b))),
                [x[1], x[0]],
                [x[0] * 2.0, y[1] * 0.5],
            ]
            .map(|pair| pair.map(f16::from_f64))
        })
        .collect();
    same("pairs", &t.download(&out)?, &want)?;

    let x: Vec<f16> = r.many(n, |r| f16::from_f64(r.f64(0.1, 3.0)));
    let (dx, out) = (t.upload(&x)?, t.output::<f32>(4 * n)?);
    t.launch("half_functions", 2, 64, args![dx, out, n as i32])?;
    let want: Vec<f64> = x.iter().map(|v| v.to_f64()).flat_map(|v| [v.exp(), v.ln(), v.sin(), 1.0 / v]).collect();
    let got: Vec<f64> = t.download(&out)?.iter().map(|v| f64::from(*v)).collect();
    // One unit in the last place of a half.
    close("functions", &got, &want, 1.0 / 1024.0, 1.0 / 8192.0)
}

pub(crate) fn bf16_math(t: &mut Trial<'_>) -> Outcome {
    let n = 120;
    let mut r = Inputs::new(211);
    let (a, b): (Vec<bf16>, Vec<bf16>) = (r.many(n, |r| bf16::from_f64(moderate(r))), r.many(n, |r| bf16::from_f64(moderate(r))));
    let (da, db, out) = (t.upload(&a)?, t.upload(&b)?, t.output::<[bf16; 8]>(n)?);
    t.launch("bf16_math", 2, 64, args![da, db, out, n as i32])?;
    let want: Vec<[bf16; 8]> = values_at(0..n, |i| {
        let (x, y) = (a[i].to_f64(), b[i].to_f64());
        let scaled = a[i].to_f32() * 1.003;
        [
            bf16::from_f64(x + y),
            bf16::from_f64(x * y),
            bf16::from_f64(x * y + x),
            bf16::from_f64(x.max(y)),
            bf16::from_f64(-x),
            // Towards zero: the lower half of the float is truncated.
            bf16::from_bits((scaled.to_bits() >> 16) as u16),
            bf16::from_f64(if x < y { x } else { y }),
            bf16::from_bits(a[i].to_bits() ^ 0x40),
        ]
    });
    same("rows", &t.download(&out)?, &want)?;

    let pairs = n / 2;
    let out = t.output::<[bf16; 2]>(3 * pairs)?;
    t.launch("bf162_math", 1, 64, args![da, db, out, pairs as i32])?;
    let want: Vec<[bf16; 2]> = (0..pairs)
        .flat_map(|p| {
            let (x, y) = ([a[2 * p], a[2 * p + 1]].map(bf16::to_f64), [b[2 * p], b[2 * p + 1]].map(bf16::to_f64));
            [[x[0] - y[0], x[1] - y[1]], [x[0] * y[0], x[1] * y[1]], [x[0] + 1.5, y[1] - 0.25]]
                .map(|pair| pair.map(bf16::from_f64))
        })
        .collect();
    same("pairs", &t.download(&out)?, &want)
}
