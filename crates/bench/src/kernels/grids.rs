//! Benchmarks over points of a square: stencils, a transpose, the Game of Life.

use crate::inputs::{unit, units, weighed};
use crate::job::{Job, Work, close, equal, square};
use broadloom::device::{Argument, Buffer, Launch, Module, Result};

/// Returns input and output of a benchmark over a square.
fn images(module: &Module, n: usize) -> Result<(Buffer<f32>, Buffer<f32>)> {
    Ok((module.device().upload(&units(n * n, 1, 0.0, 1.0))?, module.device().zeros(n * n)?))
}

fn point(n: usize, x: usize, y: usize) -> f64 {
    f64::from(unit((y * n + x) as u32, 1))
}

/// Returns whether a point has at least `radius` neighbours on each side.
fn is_inner(n: usize, x: usize, y: usize, radius: usize) -> bool {
    x.min(y) >= radius && x.max(y) + radius < n
}

pub(super) fn stencil5(module: &Module, n: usize) -> Result<Job> {
    let (input, out) = images(module, n)?;
    let arguments = [(&input).into(), (&out).into(), (n as i32).into(), (n as i32).into(), 0.5f32.into(), 0.125f32.into()];
    let judge = move |_| {
        let got = out.read()?;
        let want = |i| match (i % n, i / n) {
            (x, y) if is_inner(n, x, y, 1) => {
                let sides = point(n, x - 1, y) + point(n, x + 1, y) + point(n, x, y - 1) + point(n, x, y + 1);
                0.5 * point(n, x, y) + 0.125 * sides
            }
            _ => 0.0,
        };
        close(&got, want, 1e-5, 0.0)?;
        Ok(weighed(got.iter().map(|&x| f64::from(x)), 0))
    };
    Job::new(Work::memory(8 * n * n, 6 * n * n), judge).keep(input).step(module, "stencil5", square(n), &arguments)
}

pub(super) fn stencil25(module: &Module, n: usize) -> Result<Job> {
    let (input, out) = images(module, n)?;
    let weights = Argument::Bytes((0..25).flat_map(|k| unit(k, 2).to_le_bytes()).collect());
    let arguments = [(&input).into(), (&out).into(), (n as i32).into(), (n as i32).into(), weights];
    let judge = move |_| {
        let got = out.read()?;
        let want = |i| match (i % n, i / n) {
            (x, y) if is_inner(n, x, y, 2) => {
                (0..25).map(|k| f64::from(unit(k as u32, 2)) * point(n, x + k % 5 - 2, y + k / 5 - 2)).sum()
            }
            _ => 0.0,
        };
        close(&got, want, 1e-5, 0.0)?;
        Ok(weighed(got.iter().map(|&x| f64::from(x)), 0))
    };
    Job::new(Work::memory(8 * n * n, 49 * n * n), judge).keep(input).step(module, "stencil25", square(n), &arguments)
}

pub(super) fn transpose(module: &Module, n: usize) -> Result<Job> {
    let (input, out) = images(module, n)?;
    let arguments = [(&input).into(), (&out).into(), (n as i32).into(), (n as i32).into()];
    let judge = move |_| {
        let got = out.read()?;
        equal(&got, |i| unit(((i % n) * n + i / n) as u32, 1))?;
        Ok(weighed(got.iter().map(|&x| f64::from(x)), 0))
    };
    let tiles = n.div_ceil(32) as u32;
    let launch = Launch::new([tiles, tiles, 1], [32, 8, 1]);
    Job::new(Work::memory(8 * n * n, 0), judge).keep(input).step(module, "transpose", launch, &arguments)
}

pub(super) fn life(module: &Module, n: usize) -> Result<Job> {
    let device = module.device();
    let alive = |i: usize| unit(i as u32, 1) < 0.35;
    let cells: Vec<f32> = (0..n * n).map(|i| if alive(i) { 1.0 } else { 0.0 }).collect();
    let (input, out) = (device.upload(&cells)?, device.zeros::<f32>(n * n)?);
    drop(cells);
    let arguments = [(&input).into(), (&out).into(), (n as i32).into()];
    let judge = move |_| {
        let got = out.read()?;
        let want = |i| {
            let (x, y) = (i % n, i / n);
            let around = (0..9).filter(|&k| k != 4 && alive((y + n + k / 3 - 1) % n * n + (x + n + k % 3 - 1) % n)).count();
            if around == 3 || around == 2 && alive(i) { 1.0 } else { 0.0 }
        };
        equal(&got, want)?;
        Ok(weighed(got.iter().map(|&x| f64::from(x)), 0))
    };
    Job::new(Work::memory(8 * n * n, 9 * n * n), judge).keep(input).step(module, "life", square(n), &arguments)
}
