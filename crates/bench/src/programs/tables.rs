//! Programs over tables: moments of columns, covariance, groups, bins.

use super::floats::Floats;
use crate::arrays::job::repeated;
use crate::error::Failure;
use crate::inputs::{hashed, unit, units, weighed};
use crate::job::{Job, Work, close, equal};
use broadloom::array::Function;
use broadloom::{Array, Context};

fn sum(values: &[f32], first: usize) -> f64 {
    weighed(values.iter().map(|&x| f64::from(x)), first)
}

const COLUMNS: usize = 31;

pub(super) fn column_moments(context: &Context, n: usize) -> Result<Job, Failure> {
    let values = units(n * COLUMNS, 19, 0.0, 1.0);
    let x = Array::new(context, &values, [n, COLUMNS])?;
    let function = Function::new(context, |x: &Floats| {
        let mean = x.mean_along(&[0])?;
        let off = x - &mean;
        Ok(((&off * &off).mean_along(&[0])?, mean, x.max_along(&[0])?))
    });
    let expression = move || {
        let (variance, mean, most) = function.call(&x)?;
        Ok(vec![variance, mean, most])
    };
    let judge = move |got: &[Vec<f32>]| {
        let column = |j: usize| values[j..].iter().step_by(COLUMNS).map(|&x| f64::from(x));
        let mean = |j: usize| column(j).sum::<f64>() / n as f64;
        let variance = |j: usize| {
            let mean = mean(j);
            column(j).map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64
        };
        close(&got[0], variance, 1e-4, 0.0)?;
        close(&got[1], mean, 1e-5, 0.0)?;
        close(&got[2], |j| column(j).fold(0.0, f64::max), 0.0, 0.0)?;
        Ok(sum(&got[0], 0) + sum(&got[1], 0) + sum(&got[2], 0))
    };
    Ok(repeated(Work::reading(8 * n * COLUMNS, 5 * n * COLUMNS), expression, judge))
}

const FEATURES: usize = 16;

pub(super) fn covariance(context: &Context, n: usize) -> Result<Job, Failure> {
    let values = units(n * FEATURES, 20, 0.0, 1.0);
    let x = Array::new(context, &values, [n, FEATURES])?;
    let function = Function::new(context, move |x: &Floats| {
        let off = x - x.mean_along(&[0])?;
        Ok(off.t().matmul(&off)? / n as f32)
    });
    let judge = move |got: &[Vec<f32>]| {
        let mut mean = [0.0f64; FEATURES];
        for row in values.chunks_exact(FEATURES) {
            mean.iter_mut().zip(row).for_each(|(mean, &x)| *mean += f64::from(x) / n as f64);
        }
        let mut want = vec![0.0f64; FEATURES * FEATURES];
        for row in values.chunks_exact(FEATURES) {
            let off: Vec<f64> = row.iter().zip(&mean).map(|(&x, mean)| f64::from(x) - mean).collect();
            want.iter_mut().enumerate().for_each(|(k, sum)| *sum += off[k / FEATURES] * off[k % FEATURES] / n as f64);
        }
        close(&got[0], |i| want[i], 1e-4, 1e-5)?;
        Ok(sum(&got[0], 0))
    };
    let work = Work::reading(8 * n * FEATURES, 2 * n * FEATURES * FEATURES);
    Ok(repeated(work, move || Ok(vec![function.call(&x)?]), judge))
}

const KEYS: usize = 10_000;

/// The sum, the number and the maximum of each group.
pub(super) fn group_by(context: &Context, n: usize) -> Result<Job, Failure> {
    let key = |row: usize| (hashed(row as u32, 21) % KEYS as u32) as i32;
    let keys = Array::line(context, &(0..n).map(key).collect::<Vec<i32>>())?;
    let values = Array::line(context, &units(n, 22, 0.0, 1.0))?;
    let own = context.clone();
    let expression = move || {
        let zeros = Array::full(&own, KEYS, 0.0f32)?;
        let counts = keys.histogram(KEYS)?.cast::<f32>()?;
        Ok(vec![zeros.scatter_sum(&[&keys], &values)?, counts, zeros.scatter_max(&[&keys], &values)?])
    };
    let judge = move |got: &[Vec<f32>]| {
        let (mut sums, mut counts, mut most) = (vec![0.0f64; KEYS], vec![0.0f64; KEYS], vec![0.0f64; KEYS]);
        for row in 0..n {
            let (key, value) = (key(row) as usize, f64::from(unit(row as u32, 22)));
            sums[key] += value;
            counts[key] += 1.0;
            most[key] = most[key].max(value);
        }
        close(&got[0], |i| sums[i], 1e-5, 0.0)?;
        close(&got[1], |i| counts[i], 0.0, 0.0)?;
        close(&got[2], |i| most[i], 0.0, 0.0)?;
        Ok(sum(&got[0], 0) + sum(&got[1], 0) + sum(&got[2], 0))
    };
    Ok(repeated(Work::reading(8 * n, 3 * n), expression, judge))
}

/// Sums into few and into many bins.
pub(super) fn bin_sums(context: &Context, n: usize) -> Result<Job, Failure> {
    let bins = [16, (n / 10).max(1)];
    let bin = move |row: usize, which: usize| (hashed(row as u32, 23) % bins[which] as u32) as i32;
    let line = |which: usize| Array::line(context, &(0..n).map(|row| bin(row, which)).collect::<Vec<i32>>());
    let (few, many) = (line(0)?, line(1)?);
    let values = Array::line(context, &units(n, 24, 0.0, 1.0))?;
    let own = context.clone();
    let expression = move || {
        let zeros = |bins: usize| Array::full(&own, bins, 0.0f32);
        Ok(vec![zeros(bins[0])?.scatter_sum(&[&few], &values)?, zeros(bins[1])?.scatter_sum(&[&many], &values)?])
    };
    let judge = move |got: &[Vec<f32>]| {
        let mut total = 0.0;
        for (which, got) in got.iter().enumerate() {
            let mut want = vec![0.0f64; bins[which]];
            (0..n).for_each(|row| want[bin(row, which) as usize] += f64::from(unit(row as u32, 24)));
            close(got, |i| want[i], 1e-5, 1e-6)?;
            total += sum(got, 0);
        }
        Ok(total)
    };
    Ok(repeated(Work::reading(16 * n, 2 * n), expression, judge))
}

const BINS: usize = 1_000_000;

pub(super) fn many_bins(context: &Context, n: usize) -> Result<Job, Failure> {
    let bin = |row: usize| (hashed(row as u32, 25) % BINS as u32) as i32;
    let keys = Array::line(context, &(0..n).map(bin).collect::<Vec<i32>>())?;
    let judge = move |got: &[Vec<u32>]| {
        let mut want = vec![0u32; BINS];
        (0..n).for_each(|row| want[bin(row) as usize] += 1);
        equal(&got[0], |i| want[i])?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    Ok(repeated(Work::memory(4 * n + 4 * BINS, n), move || Ok(vec![keys.histogram(BINS)?]), judge))
}
