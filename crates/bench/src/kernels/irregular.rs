//! Benchmarks with data-dependent accesses: a sparse product, a sort.

use crate::error::Failure;
use crate::inputs::{hashed, ragged, unit, units, weighed};
use crate::job::{Job, Work, close, equal};
use broadloom::device::{Launch, Module, Result};

/// Number of keys in a sorted row.
pub(super) const KEYS: usize = 1024;

/// Approximate bytes of a row of the sparse matrix: 17 entries, their offset, and an element of each vector.
pub(super) const ROW_BYTES: u64 = 17 * 8 + 12;

pub(super) fn sparse_product(module: &Module, rows: usize) -> Result<Job> {
    let device = module.device();
    let mut starts = vec![0i32];
    let mut end = 0;
    starts.extend((0..rows as u32).map(|row| {
        end += ragged(row, 16) as i32;
        end
    }));
    let entries = end as usize;
    let column = move |entry: usize| ((u64::from(hashed(entry as u32, 15)) * rows as u64) >> 32) as usize;
    let columns: Vec<i32> = (0..entries).map(|entry| column(entry) as i32).collect();
    let places = (device.upload(&starts)?, device.upload(&columns)?);
    let vectors = (device.upload(&units(entries, 14, 0.0, 1.0))?, device.upload(&units(rows, 13, 0.0, 1.0))?);
    let y = device.zeros::<f32>(rows)?;
    drop(columns);
    let arguments =
        [(&places.0).into(), (&places.1).into(), (&vectors.0).into(), (&vectors.1).into(), (&y).into(), (rows as i32).into()];
    let judge = move |_| {
        let got = y.read()?;
        let product = |entry: usize| f64::from(unit(entry as u32, 14)) * f64::from(unit(column(entry) as u32, 13));
        close(&got, |row| (starts[row] as usize..starts[row + 1] as usize).map(product).sum(), 1e-4, 1e-6)?;
        Ok(weighed(got.iter().map(|&x| f64::from(x)), 0))
    };
    let launch = Launch::linear(rows.div_ceil(8) as u32, 256);
    let work = Work::reading(8 * entries + 12 * rows, 2 * entries);
    Job::new(work, judge).keep((places, vectors)).step(module, "sparse_product", launch, &arguments)
}

pub(super) fn bitonic_sort(module: &Module, rows: usize) -> Result<Job> {
    let device = module.device();
    let keys: Vec<u32> = (0..(rows * KEYS) as u32).map(|i| hashed(i, 1)).collect();
    let (input, out) = (device.upload(&keys)?, device.zeros::<u32>(rows * KEYS)?);
    drop(keys);
    let arguments = [(&input).into(), (&out).into()];
    let judge = move |_| -> std::result::Result<f64, Failure> {
        let got = out.read()?;
        let mut want = input.read()?;
        want.chunks_mut(KEYS).for_each(<[u32]>::sort_unstable);
        equal(&got, |i| want[i])?;
        Ok(weighed(got.iter().map(|&x| f64::from(x)), 0))
    };
    // The network has 55 steps. A step compares every pair once.
    let work = Work { in_memory: false, ..Work::memory(8 * rows * KEYS, 0) };
    Job::new(work, judge).step(module, "bitonic_sort", Launch::linear(rows as u32, KEYS as u32 / 2), &arguments)
}
