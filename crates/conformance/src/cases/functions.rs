//! Elementary and special functions, in double, single and fast form.

use std::f64::consts::PI;

use crate::compare::{close, same};
use crate::inputs::Inputs;
use crate::trial::{Outcome, Trial, args};

fn flat(rows: impl Iterator<Item = Vec<f64>>) -> Vec<f64> {
    rows.flatten().collect()
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|v| f64::from(*v)).collect()
}

pub(crate) fn double_math(t: &mut Trial<'_>) -> Outcome {
    let n = 60;
    let x = Inputs::new(200).f64s(n, 0.05, 6.0);
    let dx = t.upload(&x)?;
    let trigonometry = |v: f64| {
        let (s, c) = (v * 3.0).sin_cos();
        vec![v.sin(), v.cos(), v.tan(), s * c, v.atan2(2.0) + (1.0 / (1.0 + v)).asin(), (v * 0.25 * PI).sin()]
    };
    let exponentials = |v: f64| {
        vec![
            v.exp() + (-v).exp2(),
            v.ln() + v.log2() + v.log10(),
            v.powf(1.75),
            (v * 1e-3).exp_m1() + (v * 1e-3).ln_1p(),
            v.sinh() + v.tanh(),
            v.cbrt() + v.hypot(3.0) + 1.0 / v.sqrt() + v.sqrt(),
        ]
    };
    let special = |v: f64| {
        vec![
            libm::erf(v),
            libm::erfc(v),
            libm::lgamma(v),
            libm::tgamma(v * 0.5),
            (v * 7.0) % 0.9,
            v.floor() + (v * 0.5).ceil() + (v * 2.5).round_ties_even() + (v * 1.5).trunc(),
        ]
    };
    type Reference<'a> = &'a dyn Fn(f64) -> Vec<f64>;
    let kernels: [(&str, Reference<'_>); 3] =
        [("double_trigonometry", &trigonometry), ("double_exponentials", &exponentials), ("double_special", &special)];
    for (kernel, reference) in kernels {
        let out = t.output::<f64>(6 * n)?;
        t.launch(kernel, 1, 64, args![dx, out, n as i32])?;
        // Both libraries promise a few units in the last place; sums may cancel.
        close(kernel, &t.download(&out)?, &flat(x.iter().map(|v| reference(*v))), 1e-14, 1e-14)?;
    }
    Ok(())
}

pub(crate) fn float_math(t: &mut Trial<'_>) -> Outcome {
    let n = 100;
    let x = Inputs::new(201).f32s(n, 0.05, 6.0);
    let (dx, out) = (t.upload(&x)?, t.output::<f32>(12 * n)?);
    t.launch("float_math", 1, 128, args![dx, out, n as i32])?;
    let want = flat(x.iter().map(|single| {
        let v = f64::from(*single);
        // Products that the kernel rounds to single precision before it continues.
        let rounded = |scale: f32| f64::from(single * scale);
        vec![
            v.sin(),
            v.cos(),
            rounded(0.5).tan(),
            v.exp() + (-v).exp2() + 10f64.powf(rounded(0.125)),
            v.ln() + v.log2() + v.log10(),
            v.powf(1.75) + v.powf(-0.5),
            v.atan2(2.0) + v.atan() + (1.0 / (1.0 + v)).asin(),
            v.tanh() + rounded(0.5).sinh() + rounded(0.5).cosh(),
            v.cbrt() + v.hypot(3.0) + 1.0 / v.sqrt() + v.sqrt(),
            libm::erf(v) + libm::erfc(v) + inverse_erf(1.0 / (2.0 + v)),
            libm::lgamma(v) + rounded(1e-3).exp_m1() + v.ln_1p(),
            rounded(7.0) % f64::from(0.9f32) + round_half_away(rounded(3.3)) + (-v).floor() + v.ceil() + rounded(5.5).trunc(),
        ]
    }));
    close("float_math", &wide(&t.download(&out)?), &want, 1e-6, 2e-6)
}

fn round_half_away(v: f64) -> f64 {
    v.round()
}

/// Returns the argument at which the error function has a value in (-1, 1), by bisection.
fn inverse_erf(y: f64) -> f64 {
    let (mut low, mut high) = (-6.0, 6.0);
    for _ in 0..100 {
        let mid = 0.5 * (low + high);
        if libm::erf(mid) < y {
            low = mid;
        } else {
            high = mid;
        }
    }
    low
}

pub(crate) fn fast_math(t: &mut Trial<'_>) -> Outcome {
    let n = 150;
    let mut r = Inputs::new(202);
    let x = r.f32s(n, 0.01, 3.0);
    let (dx, out) = (t.upload(&x)?, t.output::<f32>(10 * n)?);
    t.launch("fast_math", 2, 96, args![dx, out, n as i32])?;
    let want = flat(x.iter().map(|v| f64::from(*v)).map(|v| {
        vec![
            v.sin(),
            v.cos(),
            v.exp(),
            10f64.powf(v),
            v.ln(),
            v.log2(),
            v.powf(2.5),
            v / f64::from(3.7f32),
            2.0 / v.sqrt(),
            v.tanh(),
        ]
    }));
    // sin and cos: 2^-20.5 absolute; exponentials: a few units in the last place times the argument;
    // logarithms near one: 2^-21 absolute; tanh: 2^-11 relative.
    let got = wide(&t.download(&out)?);
    let bounds = [
        (0.0, 7e-7),
        (0.0, 7e-7),
        (1e-6, 0.0),
        (2e-6, 0.0),
        (1e-6, 5e-7),
        (1e-6, 5e-7),
        (3e-6, 0.0),
        (3e-7, 0.0),
        (5e-7, 0.0),
        (5e-4, 0.0),
    ];
    for (k, (relative, absolute)) in bounds.iter().enumerate() {
        let column = |values: &[f64]| -> Vec<f64> { values.iter().skip(k).step_by(10).copied().collect() };
        close(&format!("column {k}"), &column(&got), &column(&want), *relative, *absolute)?;
    }

    let mut x = r.f32s(n, 0.01, 100.0);
    // Subnormal and special operands: with .ftz the first counts as zero.
    x[..4].copy_from_slice(&[1e-40, 0.0, f32::INFINITY, 1.0]);
    let (dx, out) = (t.upload(&x)?, t.output::<f32>(6 * n)?);
    t.launch("fast_instructions", 2, 96, args![dx, out, n as i32])?;
    let want = flat(x.iter().map(|v| {
        let flushed = if v.is_subnormal() { 0.0 } else { f64::from(*v) };
        let power = flushed.exp2();
        vec![
            1.0 / flushed,
            f64::from(*v).sqrt(),
            if power > f64::from(f32::MAX) { f64::INFINITY } else { power },
            f64::from(*v).log2(),
            f64::from(*v) / f64::from(7.3f32),
            1.0 / flushed.sqrt(),
        ]
    }));
    let got = wide(&t.download(&out)?);
    // A subnormal quotient is exact to half of the smallest subnormal at best.
    close("fast_instructions", &got, &want, 4e-7, 4e-7)?;
    same("special reciprocals", &[got[0], got[6], got[12]], &[f64::INFINITY, f64::INFINITY, 0.0])
}

pub(crate) fn fast_flags(t: &mut Trial<'_>) -> Outcome {
    let n = 150;
    let mut r = Inputs::new(203);
    let (x, y) = (r.f32s(n, 0.05, 3.0), r.f32s(n, 0.05, 3.0));
    let (dx, dy, out) = (t.upload(&x)?, t.upload(&y)?, t.output::<f32>(8 * n)?);
    t.launch("fast_flags", 2, 96, args![dx, dy, out, n as i32])?;
    let want = flat(x.iter().zip(&y).map(|(v, w)| (f64::from(*v), f64::from(*w))).map(|(v, w)| {
        vec![
            v / w,
            v.sqrt() + 1.0 / w.sqrt(),
            v.sin() * w.cos(),
            v.exp() - w.exp2(),
            v.ln() + w.log10(),
            v.powf(w),
            v * w + v,
            // At most 9e-40, which is subnormal.
            0.0,
        ]
    }));
    close("fast_flags", &wide(&t.download(&out)?), &want, 2e-6, 2e-6)?;
    let last: Vec<f32> = t.download(&out)?.iter().skip(7).step_by(8).copied().collect();
    same("flushed products", &last, &vec![0.0; n])
}
