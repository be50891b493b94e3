//! CUDA: a binary of `nvcc`, with no GPU.

use crate::report::{Row, Times};
use crate::session::Session;
use crate::{Result, plain};
use std::time::Instant;

const STEP: f32 = 0.03;

pub(crate) fn run(session: &Session) -> Result<Row> {
    let (stars, steps) = (session.size(8192, 512), session.size(20, 2));
    let arguments = [stars.to_string(), steps.to_string()];
    let (first, again) = session.call(&["exec", "--", "examples/demo/nbody", &arguments[0], &arguments[1]])?;
    print!("{}", first.succeeded()?);
    again.succeeded()?;

    let start = Instant::now();
    let distance = plain(stars, steps);
    let plain = start.elapsed();
    let printed = first.output.split_whitespace().last().unwrap_or("").parse::<f64>()?;
    if (printed - distance).abs() > 1e-3 {
        return Err(format!("the program printed {printed}, the plain loop has {distance:.4}").into());
    }
    let answer = format!("{stars} stars, {steps} steps, mean distance {printed}");
    Ok(Row { job: "n-body, CUDA binary", answer, times: Times { first: first.time, again: again.time, plain: Some(plain) } })
}

/// A number in 0 … 1 that looks random, as in `examples/demo/nbody.cu`.
fn unit(i: usize, stream: u32) -> f32 {
    let x = (i as u32).wrapping_mul(0x9e37_79b9).wrapping_add(stream.wrapping_mul(0x85eb_ca6b));
    let x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    let x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    (x ^ (x >> 16)) as f32 / 4_294_967_296.0
}

/// Simulates the galaxies of `examples/demo/nbody.cu` by plain loops; returns the mean distance from the middle.
fn plain(n: usize, steps: usize) -> f64 {
    let (mut stars, mut velocities) = (vec![], vec![]);
    for i in 0..n {
        let side = if i < n / 2 { -1.0 } else { 1.0 };
        let (radius, angle) = (0.1 + 0.9 * unit(i, 1).sqrt(), std::f32::consts::TAU * unit(i, 2));
        let (x, y, z) = (radius * angle.cos(), radius * angle.sin(), 0.1 * (unit(i, 3) - 0.5));
        let speed = (0.5 * radius).sqrt();
        stars.push([x + 1.1 * side, y * if side < 0.0 { 0.5 } else { 0.9 } + 0.35 * side, z, 1.0 / n as f32]);
        velocities.push([-speed * y / radius - 0.4 * side, speed * x / radius, 0.0]);
    }
    for _ in 0..steps {
        plain::pull(&stars, &mut velocities, STEP);
        for (star, velocity) in stars.iter_mut().zip(&velocities) {
            star.iter_mut().zip(velocity).for_each(|(at, velocity)| *at += velocity * STEP);
        }
    }
    stars.iter().map(|star| f64::from(star[0].abs()) / n as f64).sum()
}
