//! Benchmarks over lines and tables of numbers.

use super::job::repeated;
use crate::error::Failure;
use crate::inputs::{self, hashed, ragged, unit, units, weighed};
use crate::job::{Job, Work, close, close_at, equal};
use crate::kernels::option;
use broadloom::array::Function;
use broadloom::{Array, Context, Segments};

/// Fails if a sum differs from the reference by more than a millionth.
fn near(got: &[Vec<f32>], want: f64) -> Result<f64, Failure> {
    let got = got.first().map_or(&[][..], Vec::as_slice);
    close(got, |_| want, 1e-6, 0.0)?;
    Ok(weighed(got.iter().map(|&x| f64::from(x)), 0))
}

fn between(index: usize, seed: u32) -> f64 {
    f64::from(2.0 * unit(index as u32, seed) - 1.0)
}

pub(super) fn sum_abs(context: &Context, n: usize) -> Result<Job, Failure> {
    let x = Array::line(context, &units(n, 1, -1.0, 1.0))?;
    let judge = move |got: &[Vec<f32>]| near(got, (0..n).map(|i| between(i, 1).abs()).sum());
    Ok(repeated(Work::reading(4 * n, 2 * n), move || Ok(vec![x.abs().sum()]), judge))
}

pub(super) fn dot(context: &Context, n: usize) -> Result<Job, Failure> {
    let (x, y) = (Array::line(context, &units(n, 1, 0.0, 1.0))?, Array::line(context, &units(n, 2, 0.0, 1.0))?);
    let judge = move |got: &[Vec<f32>]| near(got, (0..n as u32).map(|i| f64::from(unit(i, 1)) * f64::from(unit(i, 2))).sum());
    let work = Work { in_memory: false, ..Work::reading(8 * n, 2 * n) };
    Ok(repeated(work, move || Ok(vec![(&x * &y).sum()]), judge))
}

pub(super) fn matrix_vector(context: &Context, n: usize) -> Result<Job, Failure> {
    let matrix = Array::new(context, &units(n * n, 1, 0.0, 1.0), [n, n])?;
    let vector = Array::line(context, &units(n, 2, 0.0, 1.0))?;
    let judge = move |got: &[Vec<f32>]| {
        let row = |i: usize| (0..n).map(|j| f64::from(unit((i * n + j) as u32, 1)) * f64::from(unit(j as u32, 2))).sum();
        close(&got[0], row, 1e-6, 0.0)?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    Ok(repeated(Work::reading(4 * n * n, 2 * n * n), move || Ok(vec![matrix.inner(&vector)?]), judge))
}

pub(super) fn matrix_product(context: &Context, n: usize) -> Result<Job, Failure> {
    let factor = |seed| Array::new(context, &units(n * n, seed, -0.5, 0.5), [n, n]);
    let (left, right) = (factor(1)?, factor(2)?);
    let judge = move |got: &[Vec<f32>]| {
        let element = |i: usize, seed| f64::from(inputs::between(i as u32, seed, -0.5, 0.5));
        let want = |i| (0..n).map(|k| element(i / n * n + k, 1) * element(k * n + i % n, 2)).sum();
        let most = got[0].iter().fold(0.0f32, |most, value| most.max(value.abs()));
        // All elements of a small product are compared. Of a large one, the compared places reach every row
        // and column.
        let stride = if n <= 128 { 1 } else { (n * n / 16_384) | 1 };
        // Sums of more than a thousand products have larger rounding errors in any order; cuBLAS has them
        // too.
        let allowed = 1e-6 * (n as f64 / 1024.0).sqrt().max(1.0);
        close_at(&got[0], (0..n * n).step_by(stride), want, 0.0, allowed * f64::from(most))?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    let work = Work::arithmetic(12 * n * n, 2.0 * (n as f64).powi(3));
    Ok(repeated(work, move || Ok(vec![left.inner(&right)?]), judge))
}

/// Returns the normal distribution by a polynomial.
fn normal(d: &Array<f32>) -> broadloom::array::Result<Array<f32>> {
    let k = 1.0 / (d.abs() * 0.231_641_9 + 1.0);
    let polynomial = [1.330_274_5, -1.821_256, 1.781_478, -0.356_563_78, 0.319_381_54f32];
    let terms = polynomial[1..].iter().fold(&k * polynomial[0], |sum, &term| (sum + term) * &k);
    let below = (d * d * -0.5).exp() * 0.398_942_3 * terms;
    d.gt(0.0)?.cond(&(1.0 - &below), &below)
}

pub(super) fn black_scholes(context: &Context, n: usize) -> Result<Job, Failure> {
    let price = Array::line(context, &units(n, 1, 5.0, 30.0))?;
    let strike = Array::line(context, &units(n, 2, 1.0, 100.0))?;
    let years = Array::line(context, &units(n, 3, 0.25, 10.0))?;
    let (rate, volatility) = (0.02f32, 0.30f32);
    let options = Function::new(context, move |price: &Array<f32>, strike: &Array<f32>, years: &Array<f32>| {
        let spread = years.sqrt() * volatility;
        let d1 = ((price / strike).log() + years * (rate + 0.5 * volatility * volatility)) / &spread;
        let (n1, n2) = (normal(&d1)?, normal(&(&d1 - &spread))?);
        let present = strike * (years * -rate).exp();
        Ok(vec![price * &n1 - &present * &n2, &present * (1.0 - &n2) - price * (1.0 - &n1)])
    });
    let expression = move || options.call((&price, &strike, &years));
    let judge = move |got: &[Vec<f32>]| {
        close(&got[0], |i| option(i as u32).0, 1e-4, 1e-4)?;
        close(&got[1], |i| option(i as u32).1, 1e-4, 1e-4)?;
        let sum = |prices: &[f32], first| weighed(prices.iter().map(|&x| f64::from(x)), first);
        Ok(sum(&got[0], 0) + sum(&got[1], n))
    };
    Ok(repeated(Work { in_memory: false, ..Work::memory(20 * n, 57 * n) }, expression, judge))
}

pub(super) fn scan(context: &Context, n: usize) -> Result<Job, Failure> {
    let values: Vec<u32> = (0..n as u32).map(|i| hashed(i, 1) >> 24).collect();
    let x = Array::line(context, &values)?;
    let judge = move |got: &[Vec<u32>]| {
        let mut sums = values.clone();
        (1..n).for_each(|i| sums[i] = sums[i].wrapping_add(sums[i - 1]));
        equal(&got[0], |i| sums[i])?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    Ok(repeated(Work::memory(8 * n, n), move || Ok(vec![x.cumulative_sum(0)?]), judge))
}

pub(super) fn segmented_sum(context: &Context, n: usize) -> Result<Job, Failure> {
    let lengths: Vec<u32> = (0..n as u32).map(|row| ragged(row, 10)).collect();
    let count = lengths.iter().sum::<u32>() as usize;
    let segments = Segments::from_lengths(&Array::line(context, &lengths)?, count)?;
    segments.evaluate()?;
    let x = Array::line(context, &units(count, 14, 0.0, 1.0))?;
    let judge = move |got: &[Vec<f32>]| {
        let mut want = vec![0.0; n];
        let mut element = 0;
        for (want, length) in want.iter_mut().zip(&lengths) {
            *want = (element..element + length).map(|i| f64::from(unit(i, 14))).sum();
            element += length;
        }
        let most = want.iter().fold(0.0, |most: f64, sum| most.max(*sum));
        close(&got[0], |i| want[i], 0.0, 1e-6 * most)?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    Ok(repeated(Work::reading(4 * count + 8 * n, count), move || Ok(vec![x.segmented_sum(&segments)?]), judge))
}
