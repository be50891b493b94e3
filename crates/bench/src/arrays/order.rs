//! Benchmarks that sort, select or count elements.

use super::job::repeated;
use crate::error::Failure;
use crate::inputs::{hashed, units, weighed};
use crate::job::{Job, Work, equal};
use broadloom::{Array, Context};

pub(super) fn sort(context: &Context, n: usize) -> Result<Job, Failure> {
    let keys: Vec<i32> = (0..n as u32).map(|i| hashed(i, 1) as i32).collect();
    let x = Array::line(context, &keys)?;
    let judge = move |got: &[Vec<i32>]| {
        let mut want = keys.clone();
        want.sort_unstable();
        equal(&got[0], |i| want[i])?;
        Ok(weighed(got[0].iter().map(|&key| f64::from(key)), 0))
    };
    Ok(repeated(Work::memory(8 * n, 0), move || Ok(vec![x.sort(0)?]), judge))
}

/// Number of elements in a sorted row.
pub(super) const ROW: usize = 100;

pub(super) fn sort_rows(context: &Context, rows: usize) -> Result<Job, Failure> {
    let values = units(rows * ROW, 1, 0.0, 1.0);
    let x = Array::new(context, &values, [rows, ROW])?;
    let judge = move |got: &[Vec<f32>]| {
        let mut want = values.clone();
        want.chunks_exact_mut(ROW).for_each(|row| row.sort_unstable_by(f32::total_cmp));
        equal(&got[0], |i| want[i])?;
        Ok(weighed(got[0].iter().map(|&value| f64::from(value)), 0))
    };
    Ok(repeated(Work::memory(8 * rows * ROW, 0), move || Ok(vec![x.sort(1)?]), judge))
}

pub(super) fn histogram(context: &Context, n: usize) -> Result<Job, Failure> {
    let bytes: Vec<u8> = (0..n as u32).map(|i| (hashed(i, 1) >> 24) as u8).collect();
    let x = Array::line(context, &bytes)?;
    let judge = move |got: &[Vec<u32>]| {
        let mut want = [0u32; 256];
        bytes.iter().for_each(|&byte| want[usize::from(byte)] += 1);
        equal(&got[0], |i| want[i])?;
        Ok(weighed(got[0].iter().map(|&count| f64::from(count)), 0))
    };
    Ok(repeated(Work::reading(n, 0), move || Ok(vec![x.histogram(256)?]), judge))
}

pub(super) fn pack(context: &Context, n: usize) -> Result<Job, Failure> {
    let values = units(n, 1, 0.0, 1.0);
    let x = Array::line(context, &values)?;
    let kept = values.iter().filter(|&&value| value > 0.5).count();
    let judge = move |got: &[Vec<f32>]| {
        let want: Vec<f32> = values.iter().copied().filter(|&value| value > 0.5).collect();
        if got[0].len() != want.len() {
            return Err(Failure::Wrong(format!("{} elements are kept, the reference says {}", got[0].len(), want.len())));
        }
        equal(&got[0], |i| want[i])?;
        Ok(weighed(got[0].iter().map(|&value| f64::from(value)), 0))
    };
    Ok(repeated(Work::memory(4 * (n + kept), n), move || Ok(vec![x.pack(&x.gt(0.5)?)?]), judge))
}
