//! Programs that learn from points: means of clusters, logistic regression.

use super::floats::{Floats, Result};
use crate::arrays::job::repeated;
use crate::error::Failure;
use crate::inputs::{units, weighed};
use crate::job::{Job, Work, close};
use broadloom::array::Function;
use broadloom::{Array, Context, span};

const MEANS: usize = 16;
const AXES: usize = 8;
const KMEANS_ROUNDS: usize = 2;

fn nearest(points: &Floats, means: &Floats) -> Result<Array<i32>> {
    let apart = points.add_axis(1, 1)? - means.add_axis(0, 1)?;
    (&apart * &apart).sum_along(&[2])?.argmin_as::<i32>(1)
}

fn nearest_by_product(points: &Floats, means: &Floats) -> Result<Array<i32>> {
    ((means * means).sum_along(&[1])? - points.matmul(&means.t())? * 2.0).argmin_as::<i32>(1)
}

fn means_by_scatter(points: &Floats, near: &Array<i32>) -> Result<Floats> {
    let (context, axes) = (points.context(), points.shape().extents()[1]);
    let counts = near.histogram(MEANS)?.cast::<f32>()?;
    let (rows, columns) = (near.add_axis(1, axes)?, Array::<i32>::positions(context, points.shape(), 1)?);
    let sums = Array::full(context, [MEANS, axes], 0.0f32)?.scatter_sum(&[&rows, &columns], points)?;
    Ok(sums / counts.maximum(1.0)?.add_axis(1, 1)?)
}

fn means_by_product(points: &Floats, near: &Array<i32>) -> Result<Floats> {
    let all = Array::<i32>::iota(points.context(), MEANS)?.add_axis(1, 1)?;
    let hot = near.add_axis(0, 1)?.eq(all)?.cast::<f32>()?;
    Ok(hot.matmul(points)? / hot.sum_along(&[1])?.maximum(1.0)?.add_axis(1, 1)?)
}

type Prepared = std::result::Result<Job, Failure>;

pub(super) fn kmeans(context: &Context, n: usize) -> Prepared {
    kmeans_with(context, n, |p, c| means_by_scatter(p, &nearest(p, c)?))
}

pub(super) fn kmeans_mat(context: &Context, n: usize) -> Prepared {
    kmeans_with(context, n, |p, c| means_by_scatter(p, &nearest_by_product(p, c)?))
}

pub(super) fn kmeans_hot(context: &Context, n: usize) -> Prepared {
    kmeans_with(context, n, |p, c| means_by_product(p, &nearest(p, c)?))
}

pub(super) fn kmeans_hot_mat(context: &Context, n: usize) -> Prepared {
    kmeans_with(context, n, |p, c| means_by_product(p, &nearest_by_product(p, c)?))
}

fn kmeans_with(context: &Context, n: usize, step: fn(&Floats, &Floats) -> Result<Floats>) -> Prepared {
    let values = units(n * AXES, 2, 0.0, 1.0);
    let points = Array::new(context, &values, [n, AXES])?;
    let first = points.slice(&span![..MEANS as isize])?;
    first.evaluate()?;
    let function = Function::new(context, step);
    let expression = move || {
        let means = (0..KMEANS_ROUNDS).try_fold(first.clone(), |means, _| function.call((&points, &means)))?;
        Ok(vec![means])
    };
    let judge = move |got: &[Vec<f32>]| {
        let mut means: Vec<f64> = values[..MEANS * AXES].iter().map(|&x| f64::from(x)).collect();
        for _ in 0..KMEANS_ROUNDS {
            let (mut sums, mut counts) = (vec![0.0; MEANS * AXES], [0.0f64; MEANS]);
            for point in values.chunks_exact(AXES) {
                let apart = |mean: &[f64]| mean.iter().zip(point).map(|(m, &x)| (f64::from(x) - m).powi(2)).sum::<f64>();
                let apart: Vec<f64> = means.chunks_exact(AXES).map(apart).collect();
                let best = (0..MEANS).min_by(|a, b| apart[*a].total_cmp(&apart[*b])).unwrap_or(0);
                counts[best] += 1.0;
                sums[best * AXES..][..AXES].iter_mut().zip(point).for_each(|(sum, &x)| *sum += f64::from(x));
            }
            means = (0..MEANS * AXES).map(|i| sums[i] / counts[i / AXES].max(1.0)).collect();
        }
        // A point between two means may belong to either.
        close(&got[0], |i| means[i], 0.0, 1e-4 + 2.0 / n as f64)?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    let work = Work::arithmetic(4 * n * AXES, (3 * n * AXES * MEANS * KMEANS_ROUNDS) as f64);
    Ok(repeated(work, expression, judge))
}

const FEATURES: usize = 32;
const LOGISTIC_ROUNDS: usize = 5;

pub(super) fn logistic(context: &Context, n: usize) -> Prepared {
    logistic_with(context, n, |x, y, w| {
        let p = 1.0 / ((-x.matmul(&w.add_axis(1, 1)?)?).exp() + 1.0);
        let g = x.t().matmul(&(p - y.add_axis(1, 1)?))? / x.shape().extents()[0] as f32;
        Ok(w - g.index_axis(1, 0)? * 0.5)
    })
}

pub(super) fn logistic_sum(context: &Context, n: usize) -> Prepared {
    logistic_with(context, n, |x, y, w| {
        let p = 1.0 / ((-(x * w).sum_along(&[1])?).exp() + 1.0);
        let g = (x * (p - y).add_axis(1, 1)?).sum_along(&[0])? / x.shape().extents()[0] as f32;
        Ok(w - g * 0.5)
    })
}

fn logistic_with(context: &Context, n: usize, step: fn(&Floats, &Floats, &Floats) -> Result<Floats>) -> Prepared {
    let values = units(n * FEATURES, 3, -0.5, 0.5);
    let label = |row: &[f32]| f32::from(u8::from(row[0] + row[1] * 2.0 - row[5] > 0.1));
    let labels: Vec<f32> = values.chunks_exact(FEATURES).map(label).collect();
    let (x, y) = (Array::new(context, &values, [n, FEATURES])?, Array::line(context, &labels)?);
    let zero = Array::full(context, FEATURES, 0.0f32)?;
    zero.evaluate()?;
    let function = Function::new(context, step);
    let expression = move || {
        let weights = (0..LOGISTIC_ROUNDS).try_fold(zero.clone(), |weights, _| function.call((&x, &y, &weights)))?;
        Ok(vec![weights])
    };
    let judge = move |got: &[Vec<f32>]| {
        let mut weights = [0.0f64; FEATURES];
        for _ in 0..LOGISTIC_ROUNDS {
            let mut gradient = [0.0f64; FEATURES];
            for (row, &label) in values.chunks_exact(FEATURES).zip(&labels) {
                let z: f64 = row.iter().zip(&weights).map(|(&x, w)| f64::from(x) * w).sum();
                let off = 1.0 / ((-z).exp() + 1.0) - f64::from(label);
                gradient.iter_mut().zip(row).for_each(|(g, &x)| *g += f64::from(x) * off);
            }
            weights.iter_mut().zip(&gradient).for_each(|(w, g)| *w -= g / n as f64 * 0.5);
        }
        close(&got[0], |i| weights[i], 1e-4, 1e-6)?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    let passes = LOGISTIC_ROUNDS * n * FEATURES;
    Ok(repeated(Work::reading(4 * passes, 4 * passes), expression, judge))
}
