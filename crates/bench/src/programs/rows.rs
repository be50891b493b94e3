//! Programs along rows: softmax, layer norm, sums of short rows.

use super::floats::Floats;
use crate::arrays::job::repeated;
use crate::error::Failure;
use crate::inputs::{computed, units, weighed};
use crate::job::{Job, Work, close};
use broadloom::array::Function;
use broadloom::{Array, Context};

fn sum(values: &[f32], first: usize) -> f64 {
    weighed(values.iter().map(|&x| f64::from(x)), first)
}

pub(super) fn softmax(context: &Context, n: usize) -> Result<Job, Failure> {
    let values = units(n * n, 12, 0.0, 8.0);
    let x = Array::new(context, &values, [n, n])?;
    let function = Function::new(context, |x: &Floats| {
        let e = (x - x.max_along(&[1])?.add_axis(1, 1)?).exp();
        Ok(&e / e.sum_along(&[1])?.add_axis(1, 1)?)
    });
    let judge = move |got: &[Vec<f32>]| {
        let want = computed(n, |row| {
            let row = &values[row * n..][..n];
            let most = row.iter().fold(f64::MIN, |most, &x| most.max(f64::from(x)));
            let e: Vec<f64> = row.iter().map(|&x| (f64::from(x) - most).exp()).collect();
            let all: f64 = e.iter().sum();
            e.iter().map(|e| e / all).collect::<Vec<f64>>()
        });
        close(&got[0], |i| want[i / n][i % n], 1e-5, 1e-9)?;
        Ok(sum(&got[0], 0))
    };
    Ok(repeated(Work::memory(8 * n * n, 10 * n * n), move || Ok(vec![function.call(&x)?]), judge))
}

pub(super) fn layer_norm(context: &Context, n: usize) -> Result<Job, Failure> {
    let (values, gains, shifts) = (units(n * n, 13, 0.0, 1.0), units(n, 14, 0.0, 1.0), units(n, 15, 0.0, 1.0));
    let x = Array::new(context, &values, [n, n])?;
    let (gain, shift) = (Array::line(context, &gains)?, Array::line(context, &shifts)?);
    let function = Function::new(context, |x: &Floats, gain: &Floats, shift: &Floats| {
        let off = x - x.mean_along(&[1])?.add_axis(1, 1)?;
        let variance = (&off * &off).mean_along(&[1])?.add_axis(1, 1)?;
        Ok(&off / (variance + 1e-5).sqrt() * gain + shift)
    });
    let judge = move |got: &[Vec<f32>]| {
        let want = computed(n, |row| {
            let row = &values[row * n..][..n];
            let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / n as f64;
            let variance = row.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n as f64;
            let scaled = |(x, (gain, shift)): (&f32, (&f32, &f32))| {
                (f64::from(*x) - mean) / (variance + 1e-5).sqrt() * f64::from(*gain) + f64::from(*shift)
            };
            row.iter().zip(gains.iter().zip(&shifts)).map(scaled).collect::<Vec<f64>>()
        });
        close(&got[0], |i| want[i / n][i % n], 1e-4, 1e-4)?;
        Ok(sum(&got[0], 0))
    };
    let expression = move || Ok(vec![function.call((&x, &gain, &shift))?]);
    Ok(repeated(Work::memory(8 * n * n, 8 * n * n), expression, judge))
}

pub(super) fn short_rows(context: &Context, n: usize) -> Result<Job, Failure> {
    let values = units(n * 16, 17, 0.0, 1.0);
    let x = Array::line(context, &values)?;
    let expression = move || {
        let by = |width: usize| x.reshape([n * 16 / width, width])?.sum_along(&[1]);
        Ok(vec![by(4)?, by(8)?, by(16)?])
    };
    let judge = move |got: &[Vec<f32>]| {
        let mut total = 0.0;
        for (got, width) in got.iter().zip([4, 8, 16]) {
            let row = |i: usize| values[i * width..][..width].iter().map(|&x| f64::from(x)).sum();
            close(got, row, 1e-6, 0.0)?;
            total += sum(got, 0);
        }
        Ok(total)
    };
    Ok(repeated(Work::reading(3 * 64 * n, 48 * n), expression, judge))
}
