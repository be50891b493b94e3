//! Programs that select and sort.

use crate::arrays::job::repeated;
use crate::error::Failure;
use crate::inputs::{hashed, units, weighed};
use crate::job::{Job, Work, equal};
use broadloom::array::{Boundary, Function};
use broadloom::{Array, Context, span};

fn sum(values: &[f32]) -> f64 {
    weighed(values.iter().map(|&x| f64::from(x)), 0)
}

pub(super) fn run_lengths(context: &Context, n: usize) -> Result<Job, Failure> {
    let values: Vec<u8> = (0..n as u32).map(|i| (hashed(i / 5, 8) % 5) as u8).collect();
    let a = Array::line(context, &values)?;
    let own = context.clone();
    let expression = move || {
        let first = a.ne(a.shift(&[1], Boundary::Constant(255))?)?;
        let starts = Array::<i32>::iota(&own, n)?.pack(&first)?;
        let values = a.pack(&first)?;
        let lengths = starts.shift(&[-1], Boundary::Constant(n as i32))? - &starts;
        Ok(vec![lengths, values.cast::<i32>()?])
    };
    let judge = move |got: &[Vec<i32>]| {
        let (mut lengths, mut levels): (Vec<i32>, Vec<i32>) = (vec![], vec![]);
        for run in values.chunk_by(|a, b| a == b) {
            lengths.push(run.len() as i32);
            levels.push(i32::from(run[0]));
        }
        if got[0].len() != lengths.len() || got[1].len() != levels.len() {
            return Err(Failure::Wrong(format!("{} runs, the reference says {}", got[0].len(), lengths.len())));
        }
        equal(&got[0], |i| lengths[i])?;
        equal(&got[1], |i| levels[i])?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    Ok(repeated(Work::memory(n + n / 4 * 8, n), expression, judge))
}

pub(super) fn compact(context: &Context, n: usize) -> Result<Job, Failure> {
    let values = units(n, 9, 0.0, 1.0);
    let x = Array::line(context, &values)?;
    let judge = move |got: &[Vec<f32>]| {
        let want: Vec<f32> = values.iter().copied().filter(|&x| x > 0.5).collect();
        if got[0].len() != want.len() {
            return Err(Failure::Wrong(format!("{} elements are kept, the reference says {}", got[0].len(), want.len())));
        }
        equal(&got[0], |i| want[i])?;
        Ok(sum(&got[0]))
    };
    Ok(repeated(Work::memory(6 * n, n), move || Ok(vec![x.pack(&x.gt(0.5)?)?]), judge))
}

pub(super) fn compact_padded(context: &Context, n: usize) -> Result<Job, Failure> {
    let values = units(n, 9, 0.0, 1.0);
    let x = Array::line(context, &values)?;
    let function = Function::new(context, |x: &Array<f32>| Ok(x.pack_padded(&x.gt(0.5)?, 0.0)?.0));
    let judge = move |got: &[Vec<f32>]| {
        let want: Vec<f32> = values.iter().copied().filter(|&x| x > 0.5).collect();
        equal(&got[0], |i| want.get(i).copied().unwrap_or(0.0))?;
        Ok(sum(&got[0]))
    };
    Ok(repeated(Work::memory(8 * n, n), move || Ok(vec![function.call(&x)?]), judge))
}

/// Returns the values in ascending order.
fn sorted(values: &[f32]) -> Vec<f32> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    sorted
}

pub(super) fn top_k(context: &Context, n: usize) -> Result<Job, Failure> {
    let values = units(n, 16, 0.0, 1.0);
    let x = Array::line(context, &values)?;
    let function = Function::new(context, |x: &Array<f32>| x.sort_descending(0)?.slice(&span![..100]));
    let judge = move |got: &[Vec<f32>]| {
        let want = sorted(&values);
        equal(&got[0], |i| want[n - 1 - i])?;
        Ok(sum(&got[0]))
    };
    Ok(repeated(Work::reading(4 * n, n), move || Ok(vec![function.call(&x)?]), judge))
}

pub(super) fn sort_floats(context: &Context, n: usize) -> Result<Job, Failure> {
    let values = units(n, 16, 0.0, 1.0);
    let x = Array::line(context, &values)?;
    let judge = move |got: &[Vec<f32>]| {
        let want = sorted(&values);
        equal(&got[0], |i| want[i])?;
        Ok(sum(&got[0]))
    };
    Ok(repeated(Work::memory(8 * n, 0), move || Ok(vec![x.sort(0)?]), judge))
}

pub(super) fn argsort(context: &Context, n: usize) -> Result<Job, Failure> {
    let values = units(n, 16, 0.0, 1.0);
    let x = Array::line(context, &values)?;
    let judge = move |got: &[Vec<i32>]| {
        let mut want: Vec<i32> = (0..n as i32).collect();
        want.sort_by(|a, b| values[*a as usize].total_cmp(&values[*b as usize]));
        equal(&got[0], |i| want[i])?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    Ok(repeated(Work::memory(8 * n, 0), move || Ok(vec![x.argsort(0)?]), judge))
}
