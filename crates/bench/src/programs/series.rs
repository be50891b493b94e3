//! Programs over series of time: Fourier transforms, rolling statistics, filters, drawdowns.

use super::floats::{Floats, Result};
use crate::arrays::job::repeated;
use crate::error::Failure;
use crate::inputs::{units, weighed};
use crate::job::{Job, Work, close, close_at};
use broadloom::array::{Boundary, Function};
use broadloom::{Array, Context, span};
use std::f32::consts::TAU;

type Prepared = std::result::Result<Job, Failure>;

fn sum(values: &[f32], first: usize) -> f64 {
    weighed(values.iter().map(|&x| f64::from(x)), first)
}

const LENGTH: usize = 1024;

/// Transforms real and imaginary parts by the algorithm of Stockham: in each stage the halves of the rows are
/// combined, and their results interleaved.
fn transform(re: &Floats, im: &Floats) -> Result<(Floats, Floats)> {
    let rows = re.shape().extents()[0];
    let (mut re, mut im) = (re.clone(), im.clone());
    let mut stride = 1;
    while stride < LENGTH {
        let half = LENGTH / 2 / stride;
        let shape = [rows, 2, half, stride];
        let part = |x: &Floats, which: usize| x.reshape(shape)?.index_axis(1, which);
        let (ar, ai, br, bi) = (part(&re, 0)?, part(&im, 0)?, part(&re, 1)?, part(&im, 1)?);
        let angle = Array::<i32>::positions(re.context(), [half, stride], 0)?.cast::<f32>()? * (-TAU / (2 * half) as f32);
        let (cos, sin) = (angle.cos(), angle.sin());
        let (dr, di) = (&ar - &br, &ai - &bi);
        let stacked = |sum: Floats, rest: Floats| {
            Array::concatenate(2, &[&sum.add_axis(2, 1)?, &rest.add_axis(2, 1)?])?.reshape([rows, LENGTH])
        };
        re = stacked(ar + br, &dr * &cos - &di * &sin)?;
        im = stacked(ai + bi, &dr * &sin + &di * &cos)?;
        stride *= 2;
    }
    Ok((re, im))
}

pub(super) fn fourier(context: &Context, n: usize) -> Prepared {
    let values = units(n * LENGTH, 26, -1.0, 1.0);
    let re = Array::new(context, &values, [n, LENGTH])?;
    let im = Array::full(context, [n, LENGTH], 0.0f32)?;
    im.evaluate()?;
    let function = Function::new(context, transform);
    let expression = move || {
        let (re, im) = function.call((&re, &im))?;
        Ok(vec![re, im])
    };
    let judge = move |got: &[Vec<f32>]| {
        let at = |place: usize, turn: f64| {
            let (row, k) = (place / LENGTH * LENGTH, place % LENGTH);
            let term = |t: usize| {
                let angle = std::f64::consts::TAU * ((k * t) % LENGTH) as f64 / LENGTH as f64;
                f64::from(values[row + t]) * (angle + turn).cos()
            };
            (0..LENGTH).map(term).sum::<f64>()
        };
        let stride = (values.len() / 4096) | 1;
        close_at(&got[0], (0..values.len()).step_by(stride), |i| at(i, 0.0), 0.0, 2e-3)?;
        close_at(&got[1], (0..values.len()).step_by(stride), |i| at(i, std::f64::consts::FRAC_PI_2), 0.0, 2e-3)?;
        Ok(sum(&got[0], 0) + sum(&got[1], 0))
    };
    Ok(repeated(Work::memory(16 * n * LENGTH, 50 * n * LENGTH), expression, judge))
}

const WINDOW: usize = 64;

/// Means and variances of the last elements at each place, by differences of running sums.
pub(super) fn rolling(context: &Context, n: usize) -> Prepared {
    let values: Vec<f64> = units(n, 27, -1.0, 1.0).into_iter().map(f64::from).collect();
    let x = Array::line(context, &values)?;
    let function = Function::new(context, |x: &Array<f64>| {
        let over = |sums: &Array<f64>| -> Result<Array<f64>> {
            Ok((sums - sums.shift(&[WINDOW as i64], Boundary::Constant(0.0))?) / WINDOW as f64)
        };
        let mean = over(&x.cumulative_sum(0)?)?;
        let square = over(&(x * x).cumulative_sum(0)?)?;
        (square - &mean * &mean).cast::<f32>()
    });
    let judge = move |got: &[Vec<f32>]| {
        let of = |i: usize| {
            let own = &values[(i + 1).saturating_sub(WINDOW)..=i];
            let mean = own.iter().sum::<f64>() / WINDOW as f64;
            own.iter().map(|x| x * x).sum::<f64>() / WINDOW as f64 - mean * mean
        };
        close(&got[0], of, 1e-5, 1e-6)?;
        Ok(sum(&got[0], 0))
    };
    Ok(repeated(Work::memory(12 * n, 10 * n), move || Ok(vec![function.call(&x)?]), judge))
}

const FILTERED: usize = 12;

/// Steps of a Kalman filter of position and velocity, written out in one function.
pub(super) fn kalman(context: &Context, n: usize) -> Prepared {
    let values = units(n * FILTERED, 28, -1.0, 1.0);
    let seen = Array::new(context, &values, [FILTERED, n])?;
    let function = Function::new(context, |seen: &Floats| {
        let first = seen.index_axis(0, 0)?;
        let full = |value: f32| Array::full(first.context(), first.shape(), value);
        let (mut at, mut speed) = (full(0.0)?, full(0.0)?);
        let (mut p00, mut p01, mut p11) = (full(1.0)?, full(0.0)?, full(1.0)?);
        for step in 0..FILTERED {
            at = &at + &speed * 0.1;
            p00 = &p00 + &p01 * 0.2 + &p11 * 0.01 + 0.01;
            p01 = &p01 + &p11 * 0.1;
            p11 = &p11 + 0.01;
            let off = seen.index_axis(0, step)? - &at;
            let all = &p00 + 0.5;
            let (k0, k1) = (&p00 / &all, &p01 / &all);
            at = &at + &k0 * &off;
            speed = &speed + &k1 * &off;
            p11 = &p11 - &k1 * &p01;
            p01 = &p01 - &k0 * &p01;
            p00 = &p00 - &k0 * &p00;
        }
        Ok((at, speed))
    });
    let expression = move || {
        let (at, speed) = function.call(&seen)?;
        Ok(vec![at, speed])
    };
    let judge = move |got: &[Vec<f32>]| {
        let of = |i: usize| {
            let (mut at, mut speed, mut p) = (0.0f64, 0.0f64, [1.0f64, 0.0, 1.0]);
            for step in 0..FILTERED {
                at += speed * 0.1;
                p = [p[0] + p[1] * 0.2 + p[2] * 0.01 + 0.01, p[1] + p[2] * 0.1, p[2] + 0.01];
                let (off, all) = (f64::from(values[step * n + i]) - at, p[0] + 0.5);
                let (k0, k1) = (p[0] / all, p[1] / all);
                at += k0 * off;
                speed += k1 * off;
                p = [p[0] - k0 * p[0], p[1] - k0 * p[1], p[2] - k1 * p[1]];
            }
            [at, speed]
        };
        close(&got[0], |i| of(i)[0], 1e-4, 1e-5)?;
        close(&got[1], |i| of(i)[1], 1e-4, 1e-5)?;
        Ok(sum(&got[0], 0) + sum(&got[1], 0))
    };
    Ok(repeated(Work::memory(4 * n * (FILTERED + 2), 30 * n * FILTERED), expression, judge))
}

const DAYS: usize = 250;

/// The largest fall from an earlier maximum, and the day of the end.
pub(super) fn drawdown(context: &Context, n: usize) -> Prepared {
    let values = units(n * DAYS, 29, -0.02, 0.021);
    let returns = Array::new(context, &values, [n, DAYS])?;
    let function = Function::new(context, |returns: &Floats| {
        let level = returns.cumulative_sum(1)?;
        let fall = level.cumulative_max(1)? - &level;
        Ok((fall.max_along(&[1])?, level.slice(&span![.., -1])?))
    });
    let expression = move || {
        let (fall, last) = function.call(&returns)?;
        Ok(vec![fall, last])
    };
    let judge = move |got: &[Vec<f32>]| {
        let of = |i: usize| {
            let (mut level, mut most, mut fall) = (0.0f64, f64::MIN, 0.0f64);
            for &change in &values[i * DAYS..][..DAYS] {
                level += f64::from(change);
                most = most.max(level);
                fall = fall.max(most - level);
            }
            [fall, level]
        };
        close(&got[0], |i| of(i)[0], 1e-4, 1e-5)?;
        close(&got[1], |i| of(i)[1], 1e-4, 1e-5)?;
        Ok(sum(&got[0], 0) + sum(&got[1], 0))
    };
    Ok(repeated(Work::reading(4 * n * DAYS, 4 * n * DAYS), expression, judge))
}
