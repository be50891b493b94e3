//! Products and factors of matrices.

use super::floats::{Floats, Result};
use crate::arrays::job::repeated;
use crate::error::Failure;
use crate::inputs::{between, units, weighed};
use crate::job::{Job, Work, close, close_at};
use broadloom::array::Function;
use broadloom::{Array, Context};

type Prepared = std::result::Result<Job, Failure>;

const SIDE: usize = 16;
const TIMES: usize = 2;

pub(super) fn batched(context: &Context, n: usize) -> Prepared {
    let by_rows =
        |a: &Floats, b: &Floats| Ok((a.add_axis(2, 1)? * b.transpose(&[0, 2, 1])?.add_axis(1, 1)?).sum_along(&[3])? * 0.6);
    batched_with(context, n, by_rows)
}

pub(super) fn batched_mid(context: &Context, n: usize) -> Prepared {
    batched_with(context, n, |a, b| Ok((a.add_axis(3, 1)? * b.add_axis(1, 1)?).sum_along(&[2])? * 0.6))
}

fn batched_with(context: &Context, n: usize, step: fn(&Floats, &Floats) -> Result<Floats>) -> Prepared {
    let (left, right) = (units(n * SIDE * SIDE, 10, -0.5, 0.5), units(n * SIDE * SIDE, 11, -0.5, 0.5));
    let (a, b) = (Array::new(context, &left, [n, SIDE, SIDE])?, Array::new(context, &right, [n, SIDE, SIDE])?);
    let function = Function::new(context, step);
    let expression = move || Ok(vec![(0..TIMES).try_fold(a.clone(), |c, _| function.call((&c, &b)))?]);
    let judge = move |got: &[Vec<f32>]| {
        let mut want: Vec<f64> = left.iter().map(|&x| f64::from(x)).collect();
        for _ in 0..TIMES {
            let element = |place: usize| {
                let (row, column, first) = (place / SIDE * SIDE, place % SIDE, place / (SIDE * SIDE) * SIDE * SIDE);
                (0..SIDE).map(|k| want[row + k] * f64::from(right[first + k * SIDE + column])).sum::<f64>() * 0.6
            };
            want = (0..want.len()).map(element).collect();
        }
        close(&got[0], |i| want[i], 1e-4, 1e-5)?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    let work = Work::memory(TIMES * 12 * n * SIDE * SIDE, TIMES * 2 * n * SIDE * SIDE * SIDE);
    Ok(repeated(work, expression, judge))
}

const ROUNDS: usize = 3;

/// The greatest singular value by its power: the matrix and its transpose times a vector.
pub(super) fn power(context: &Context, n: usize) -> Prepared {
    let matrix = Array::new(context, &units(n * n, 12, 0.0, 1.0), [n, n])?;
    let first = Array::full(context, n, 1.0f32)?;
    first.evaluate()?;
    let function = Function::new(context, move |x: &Floats| {
        let y = matrix.t().inner(&matrix.inner(x)?)?;
        let norm = (&y * &y).sum().sqrt();
        Ok(y / norm)
    });
    let expression = move || Ok(vec![(0..ROUNDS).try_fold(first.clone(), |x, _| function.call(&x))?]);
    let judge = move |got: &[Vec<f32>]| {
        let at = |i: usize, j: usize| f64::from(between((i * n + j) as u32, 12, 0.0, 1.0));
        let mut x = vec![1.0f64; n];
        for _ in 0..ROUNDS {
            let mut y = vec![0.0f64; n];
            for i in 0..n {
                let product: f64 = (0..n).map(|j| at(i, j) * x[j]).sum();
                (0..n).for_each(|j| y[j] += at(i, j) * product);
            }
            let norm = y.iter().map(|y| y * y).sum::<f64>().sqrt();
            x = y.iter().map(|y| y / norm).collect();
        }
        close(&got[0], |i| x[i], 1e-4, 0.0)?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    Ok(repeated(Work::reading(ROUNDS * 8 * n * n, ROUNDS * 4 * n * n), expression, judge))
}

const ORDER: usize = 8;

/// The factors of many small matrices, column by column.
pub(super) fn cholesky(context: &Context, n: usize) -> Prepared {
    // A symmetric matrix with a large diagonal, from the elements of its lower triangle.
    let element = |m: usize, i: usize, j: usize| {
        let place = (m * ORDER * ORDER + i.max(j) * ORDER + i.min(j)) as u32;
        between(place, 13, -0.5, 0.5) + if i == j { 4.0 } else { 0.0 }
    };
    let at = |place: usize| element(place / (ORDER * ORDER), place / ORDER % ORDER, place % ORDER);
    let values: Vec<f32> = (0..n * ORDER * ORDER).map(at).collect();
    let matrices = Array::new(context, &values, [n, ORDER, ORDER])?;
    let function = Function::new(context, |a: &Floats| {
        let mut rest = a.clone();
        let mut columns = vec![];
        for j in 0..ORDER {
            let pivot = rest.index_axis(2, j)?.index_axis(1, j)?.sqrt();
            let own = Array::<i32>::positions(a.context(), [rest.shape().extents()[0], ORDER], 1)?.ge(j as i32)?;
            let column = own.cond(rest.index_axis(2, j)? / pivot.add_axis(1, 1)?, 0.0)?;
            rest -= column.add_axis(2, 1)? * column.add_axis(1, 1)?;
            columns.push(column.add_axis(2, 1)?);
        }
        Array::concatenate(2, &columns.iter().collect::<Vec<_>>())
    });
    let judge = move |got: &[Vec<f32>]| {
        // The factor times its transpose is the matrix.
        let product = |place: usize| {
            let (i, j, first) = (place / ORDER % ORDER, place % ORDER, place / (ORDER * ORDER) * ORDER * ORDER);
            let row = |i: usize| got[0][first + i * ORDER..][..ORDER].iter().map(|&x| f64::from(x));
            row(i).zip(row(j)).map(|(a, b)| a * b).sum::<f64>()
        };
        let stride = (values.len() / 100_000) | 1;
        close_at(&values, (0..values.len()).step_by(stride), product, 1e-4, 1e-5)?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    let expression = move || Ok(vec![function.call(&matrices)?]);
    Ok(repeated(Work::memory(8 * n * ORDER * ORDER, n * 240), expression, judge))
}
