//! Benchmarks that combine many elements: a sum, prefix sums, a histogram.

use crate::error::Failure;
use crate::inputs::{hashed, unit, units, weighed};
use crate::job::{Job, Work, close, equal};
use broadloom::device::{Launch, Module, Result};

/// Blocks of a grid-stride loop.
const BLOCKS: u32 = 1024;
/// Number of elements that a block of the scan processes.
pub(super) const TILE: usize = 4096;

pub(super) fn reduction(module: &Module, n: usize) -> Result<Job> {
    let device = module.device();
    let input = device.upload(&units(n, 1, 0.0, 1.0))?;
    let (sums, out) = (device.zeros::<f32>(BLOCKS as usize)?, device.zeros::<f32>(1)?);
    let blocks = BLOCKS.min(n.div_ceil(1024) as u32);
    let first = [(&input).into(), (&sums).into(), (n as i32).into()];
    let second = [(&sums).into(), (&out).into(), (blocks as i32).into()];
    let judge = move |_| {
        let got = out.read()?;
        let want: f64 = (0..n as u32).map(|i| f64::from(unit(i, 1))).sum();
        close(&got, |_| want, 1e-5, 0.0)?;
        Ok(weighed(got.iter().map(|&x| f64::from(x)), 0))
    };
    Job::new(Work::reading(4 * n, n), judge)
        .keep((input, sums))
        .step(module, "reduce_blocks", Launch::linear(blocks, 256), &first)?
        .step(module, "reduce_sums", Launch::linear(1, 256), &second)
}

pub(super) fn scan(module: &Module, n: usize) -> Result<Job> {
    let device = module.device();
    let value = |index: u32| hashed(index, 1) >> 24;
    let input = device.upload(&(0..n as u32).map(value).collect::<Vec<u32>>())?;
    let tiles = n / TILE;
    let (sums, out) = (device.zeros::<u32>(tiles)?, device.zeros::<u32>(n)?);
    let first = [(&input).into(), (&sums).into()];
    let second = [(&sums).into(), (tiles as i32).into()];
    let third = [(&input).into(), (&sums).into(), (&out).into()];
    let judge = move |_| -> std::result::Result<f64, Failure> {
        let got = out.read()?;
        let mut sum = 0u32;
        let want = (0..n as u32).map(|index| {
            sum = sum.wrapping_add(value(index));
            sum
        });
        let want: Vec<u32> = want.collect();
        equal(&got, |i| want[i])?;
        Ok(weighed(got.iter().map(|&x| f64::from(x)), 0))
    };
    let tiled = || Launch::linear(tiles as u32, 256);
    Job::new(Work::memory(8 * n, n), judge)
        .keep((input, sums))
        .step(module, "scan_tile_sums", tiled(), &first)?
        .step(module, "scan_sums", Launch::linear(1, 1024), &second)?
        .step(module, "scan_tiles", tiled(), &third)
}

pub(super) fn histogram(module: &Module, n: usize) -> Result<Job> {
    let device = module.device();
    let value = |index: u32| (hashed(index, 1) >> 24) as u8;
    let input = device.upload(&(0..n as u32).map(value).collect::<Vec<u8>>())?;
    let blocks = BLOCKS.min(n.div_ceil(1024) as u32);
    let (partial, out) = (device.zeros::<u32>(blocks as usize * 256)?, device.zeros::<u32>(256)?);
    let first = [(&input).into(), (&partial).into(), (n as i32).into()];
    let second = [(&partial).into(), (&out).into(), (blocks as i32).into()];
    let judge = move |_| -> std::result::Result<f64, Failure> {
        let got = out.read()?;
        let mut want = [0u32; 256];
        (0..n as u32).for_each(|index| want[usize::from(value(index))] += 1);
        equal(&got, |i| want[i])?;
        Ok(weighed(got.iter().map(|&x| f64::from(x)), 0))
    };
    Job::new(Work::reading(n, n), judge)
        .keep((input, partial))
        .step(module, "histogram_blocks", Launch::linear(blocks, 256), &first)?
        .step(module, "histogram_sums", Launch::linear(1, 256), &second)
}
