//! Elementwise benchmarks.

use crate::error::Failure;
use crate::inputs::{between, unit, units, weighed};
use crate::job::{Job, Verdict, Work, close, one_each, square};
use broadloom::device::{Launch, Module, Result};

const RATE: f64 = 0.02;
const VOLATILITY: f64 = 0.30;

pub(super) fn vector_add(module: &Module, n: usize) -> Result<Job> {
    let device = module.device();
    let (a, b) = (device.upload(&units(n, 1, 0.0, 1.0))?, device.upload(&units(n, 2, 0.0, 1.0))?);
    let c = device.zeros::<f32>(n)?;
    let arguments = [(&a).into(), (&b).into(), (&c).into(), (n as i32).into()];
    let judge = move |_| {
        let got = c.read()?;
        close(&got, |i| f64::from(unit(i as u32, 1) + unit(i as u32, 2)), 0.0, 0.0)?;
        Ok(weighed(got.iter().map(|&x| f64::from(x)), 0))
    };
    Job::new(Work::memory(12 * n, n), judge).keep((a, b)).step(module, "vector_add", one_each(n, 256), &arguments)
}

pub(super) fn saxpy(module: &Module, n: usize) -> Result<Job> {
    let device = module.device();
    let (x, y) = (device.upload(&units(n, 1, 0.0, 1.0))?, device.upload(&units(n, 2, 0.0, 1.0))?);
    let arguments = [0.5f32.into(), (&x).into(), (&y).into(), (n as i32).into()];
    let judge = move |repetitions: u64| {
        let got = y.read()?;
        // Each repetition adds to y and rounds once.
        let want = |i| f64::from(unit(i as u32, 2)) + 0.5 * repetitions as f64 * f64::from(unit(i as u32, 1));
        close(&got, want, 1e-7 * (1 + repetitions) as f64, 0.0)?;
        // The peer has a different number of repetitions. Therefore the increment of one repetition is
        // compared.
        let added = got.iter().enumerate().map(|(i, &y)| (f64::from(y) - f64::from(unit(i as u32, 2))) / repetitions as f64);
        Ok(weighed(added, 0))
    };
    let blocks = one_each(n, 256).grid[0].min(8192);
    Job::new(Work::memory(12 * n, 2 * n), judge).keep(x).step(module, "saxpy", Launch::linear(blocks, 256), &arguments)
}

pub(super) fn black_scholes(module: &Module, n: usize) -> Result<Job> {
    let device = module.device();
    let price = device.upload(&units(n, 1, 5.0, 30.0))?;
    let strike = device.upload(&units(n, 2, 1.0, 100.0))?;
    let years = device.upload(&units(n, 3, 0.25, 10.0))?;
    let (call, put) = (device.zeros::<f32>(n)?, device.zeros::<f32>(n)?);
    let arguments = [
        (&price).into(),
        (&strike).into(),
        (&years).into(),
        (&call).into(),
        (&put).into(),
        (n as i32).into(),
        (RATE as f32).into(),
        (VOLATILITY as f32).into(),
    ];
    let judge = move |_| {
        let (call, put) = (call.read()?, put.read()?);
        close(&call, |i| option(i as u32).0, 1e-4, 1e-4)?;
        close(&put, |i| option(i as u32).1, 1e-4, 1e-4)?;
        let sum = |prices: &[f32], first| weighed(prices.iter().map(|&x| f64::from(x)), first);
        Ok(sum(&call, 0) + sum(&put, n))
    };
    // Operations as written; a function counts as one.
    Job::new(Work { in_memory: false, ..Work::memory(20 * n, 57 * n) }, judge).keep((price, strike, years)).step(
        module,
        "black_scholes",
        one_each(n, 256),
        &arguments,
    )
}

/// Returns the prices of call and put.
pub(crate) fn option(index: u32) -> (f64, f64) {
    let price = f64::from(between(index, 1, 5.0, 30.0));
    let strike = f64::from(between(index, 2, 1.0, 100.0));
    let years = f64::from(between(index, 3, 0.25, 10.0));
    let spread = VOLATILITY * years.sqrt();
    let d1 = ((price / strike).ln() + (RATE + 0.5 * VOLATILITY * VOLATILITY) * years) / spread;
    let (n1, n2) = (normal(d1), normal(d1 - spread));
    let present = strike * (-RATE * years).exp();
    (price * n1 - present * n2, present * (1.0 - n2) - price * (1.0 - n1))
}

/// Returns the normal distribution by a polynomial, as in the kernel.
fn normal(d: f64) -> f64 {
    let k = 1.0 / (1.0 + 0.231_641_9 * d.abs());
    let terms = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_53];
    let c = 0.398_942_280_401_432_7 * (-0.5 * d * d).exp() * terms.iter().fold(0.0, |sum, term| (sum + term) * k);
    if d > 0.0 { 1.0 - c } else { c }
}

const LIMIT: i32 = 256;

pub(super) fn mandelbrot(module: &Module, n: usize) -> Result<Job> {
    let device = module.device();
    let out = device.zeros::<i32>(n * n)?;
    let step = 2.5 / n as f32;
    let arguments =
        [(&out).into(), (n as i32).into(), (n as i32).into(), (-2.0f32).into(), (-1.25f32).into(), step.into(), LIMIT.into()];
    let judge = move |_| {
        let got = out.read()?;
        let place = |i: usize| (-2.0 + step * (i % n) as f32, -1.25 + step * (i / n) as f32);
        // Rounding decides when a point near the edge escapes, so a few points may differ.
        let different = got.iter().enumerate().filter(|&(i, &steps)| escape(place(i)) != steps).count();
        if different > n * n / 100 {
            return Err(Failure::Wrong(format!("{different} of {} points escape at another step than in the reference", n * n)));
        }
        let steps: f64 = got.iter().map(|&steps| f64::from(steps)).sum();
        Ok(Verdict { checksum: weighed(got.iter().map(|&x| f64::from(x)), 0), operations: Some(8.0 * steps) })
    };
    Job::new(Work::arithmetic(4 * n * n, 0.0), judge).step(module, "mandelbrot", square(n), &arguments)
}

fn escape(c: (f32, f32)) -> i32 {
    let (cx, cy) = c;
    let (mut x, mut y, mut steps) = (0.0f32, 0.0f32, 0);
    while steps < LIMIT && x * x + y * y <= 4.0 {
        (x, y) = (x * x - y * y + cx, 2.0 * x * y + cy);
        steps += 1;
    }
    steps
}
