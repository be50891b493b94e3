//! Benchmarks with much arithmetic and little memory traffic: a matrix product, bodies that attract each
//! other.
//!
//! At full size their references would take long. Only a few hundred rows or bodies, spread over the whole
//! result, are compared. The peer's checksum covers the rest.

use crate::inputs::{between, unit, units, weighed};
use crate::job::{Job, Work, close_at};
use broadloom::device::{Launch, Module, Result};

/// Maximum number of compared rows or bodies.
const COMPARED: usize = 128;

const SOFTENING: f32 = 1e-3;

pub(super) fn matrix_product(module: &Module, n: usize) -> Result<Job> {
    let device = module.device();
    let (a, b) = (device.upload(&units(n * n, 1, -0.5, 0.5))?, device.upload(&units(n * n, 2, -0.5, 0.5))?);
    let c = device.zeros::<f32>(n * n)?;
    let arguments = [(&a).into(), (&b).into(), (&c).into(), (n as i32).into()];
    let judge = move |_| {
        let got = c.read()?;
        let element = |i: usize, seed| f64::from(between(i as u32, seed, -0.5, 0.5));
        let want = |i| (0..n).map(|k| element(i / n * n + k, 1) * element(k * n + i % n, 2)).sum();
        // All elements of a small product are compared. Of a large one, the compared places reach every row
        // and column.
        let stride = (n / COMPARED).max(1) * 3 + 1;
        close_at(&got, (0..n * n).step_by(if n <= COMPARED { 1 } else { stride * 7 }), want, 1e-4, 1e-6 * n as f64)?;
        Ok(weighed(got.iter().map(|&x| f64::from(x)), 0))
    };
    let tiles = n.div_ceil(64) as u32;
    let launch = Launch::new([tiles, tiles, 1], [64, 8, 1]);
    Job::new(Work::arithmetic(12 * n * n, 2.0 * (n as f64).powi(3)), judge).keep((a, b)).step(
        module,
        "matrix_product",
        launch,
        &arguments,
    )
}

pub(super) fn nbody(module: &Module, n: usize) -> Result<Job> {
    let device = module.device();
    // Position and mass of a body are contiguous.
    let bodies: Vec<f32> = (0..4 * n).map(|i| unit((i / 4) as u32, 1 + (i % 4) as u32)).collect();
    let (input, out) = (device.upload(&bodies)?, device.zeros::<f32>(4 * n)?);
    let arguments = [(&input).into(), (&out).into(), (n as i32).into(), SOFTENING.into()];
    let judge = move |_| {
        let got = out.read()?;
        let stride = n.div_ceil(COMPARED) | 1;
        for body in (0..n).step_by(stride) {
            let want = acceleration(body, n);
            let size = want.iter().map(|x| x * x).sum::<f64>().sqrt();
            close_at(&got, 4 * body..4 * body + 3, |i| want[i % 4], 1e-4, 1e-4 * size)?;
        }
        Ok(weighed(got.iter().map(|&x| f64::from(x)), 0))
    };
    let launch = Launch::linear(n.div_ceil(256) as u32, 256);
    Job::new(Work::arithmetic(32 * n, 20.0 * (n as f64).powi(2)), judge).keep(input).step(module, "nbody", launch, &arguments)
}

fn acceleration(body: usize, n: usize) -> [f64; 3] {
    let place = |body: usize| [1, 2, 3].map(|axis| f64::from(unit(body as u32, axis)));
    let me = place(body);
    let mut sum = [0.0; 3];
    for other in 0..n {
        let at = place(other);
        let distance = [0, 1, 2].map(|axis| at[axis] - me[axis]);
        let square = distance.iter().map(|d| d * d).sum::<f64>() + f64::from(SOFTENING);
        let pull = f64::from(unit(other as u32, 4)) / (square * square.sqrt());
        (0..3).for_each(|axis| sum[axis] += distance[axis] * pull);
    }
    sum
}
