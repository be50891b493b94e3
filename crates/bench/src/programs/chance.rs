//! Prices of options by random paths.

use super::floats::Floats;
use crate::arrays::job::repeated;
use crate::error::Failure;
use crate::inputs::{computed, weighed};
use crate::job::{Job, Work, close};
use broadloom::array::{Function, Traced};
use broadloom::{Array, Context};
use std::cell::Cell;
use std::f32::consts::TAU;

const STEPS: usize = 8;
const START: f32 = 100.0;
const STRIKE: f32 = 100.0;
const RATE: f32 = 0.03;
const SIGMA: f32 = 0.2;

/// Standard deviation and mean of a step's logarithm.
fn step_moments() -> (f32, f32) {
    let years = 1.0 / STEPS as f32;
    (SIGMA * years.sqrt(), (RATE - 0.5 * SIGMA * SIGMA) * years)
}

fn mixed(h: Traced<'_, u32>) -> Traced<'_, u32> {
    let h = (h ^ (h >> 16)) * 0x7feb_352d;
    let h = (h ^ (h >> 15)) * 0x846c_a68b;
    h ^ (h >> 16)
}

/// Returns the price by the definition, from a function that gives two uniform numbers of a path and a step.
fn price(paths: usize, uniform: impl Fn(usize, u32) -> [f32; 2] + Sync) -> f64 {
    let (deviation, drift) = step_moments();
    let of_path = |path: usize| {
        let (mut level, mut sum) = (0.0f64, 0.0f64);
        for step in 0..STEPS as u32 {
            let [a, b] = uniform(path, step).map(f64::from);
            level += (a.ln() * -2.0).sqrt() * (b * f64::from(TAU)).cos() * f64::from(deviation) + f64::from(drift);
            sum += level.exp() * f64::from(START);
        }
        (sum / STEPS as f64 - f64::from(STRIKE)).max(0.0)
    };
    computed(paths, of_path).iter().sum::<f64>() / paths as f64 * (-f64::from(RATE)).exp()
}

pub(super) fn paths_hash(context: &Context, n: usize) -> Result<Job, Failure> {
    let (deviation, drift) = step_moments();
    let own = context.clone();
    let function = Function::new(context, move |seed: &Array<u32>| {
        let payoff = Array::<u32>::iota(&own, n)?.zip_with(seed, |path, seed| {
            let mut level = path.cast::<f32>() * 0.0;
            let mut sum = level;
            for step in 0..STEPS as u32 {
                let first = path * 16 + 2 * step + seed * 0x9e37_79b9;
                let (a, b) = ((mixed(first) >> 8).cast::<f32>() * (1.0 / 16_777_216.0) + 2.980_232_2e-8, mixed(first + 1));
                let b = (b >> 8).cast::<f32>() * (1.0 / 16_777_216.0);
                let normal = (a.log() * -2.0).sqrt() * (b * TAU).cos();
                level = level + normal * deviation + drift;
                sum = sum + level.exp() * START;
            }
            (sum * (1.0 / STEPS as f32) - STRIKE).max(0.0) * (-RATE).exp()
        })?;
        payoff.mean()
    });
    let judge = move |got: &[Vec<f32>]| {
        let mix = |mut h: u32| {
            h = (h ^ (h >> 16)).wrapping_mul(0x7feb_352d);
            h = (h ^ (h >> 15)).wrapping_mul(0x846c_a68b);
            ((h ^ (h >> 16)) >> 8) as f32 / 16_777_216.0
        };
        let want = price(n, |path, step| {
            let first = (path as u32).wrapping_mul(16).wrapping_add(2 * step).wrapping_add(0x9e37_79b9);
            [mix(first) + 2.980_232_2e-8, mix(first.wrapping_add(1))]
        });
        close(&got[0], |_| want, 1e-4, 0.0)?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    let work = Work::arithmetic(0, (n * STEPS * 60) as f64);
    Ok(repeated(work, move || Ok(vec![function.call(1u32)?]), judge))
}

pub(super) fn paths_random(context: &Context, n: usize) -> Result<Job, Failure> {
    let (deviation, drift) = step_moments();
    let (own, seed) = (context.clone(), Cell::new(8u64));
    let expression = move || {
        // Each repetition has numbers of its own.
        seed.set(seed.get() + 2);
        let uniform = |seed: u64| Array::<f32>::random(&own, [n, STEPS], seed);
        let (a, b): (Floats, Floats) = (uniform(seed.get())?, uniform(seed.get() + 1)?);
        let normal = ((1.0 - a).log() * -2.0).sqrt() * (b * TAU).cos();
        let path = (normal * deviation + drift).cumulative_sum(1)?.exp() * START;
        Ok(vec![((path.mean_along(&[1])? - STRIKE).maximum(0.0)? * (-RATE).exp()).mean()?])
    };
    let judge = move |got: &[Vec<f32>]| {
        // The price of paths of hashes; the error of a mean falls with the root of their number.
        let want = price(200_000, |path, step| {
            let unit = |seed| crate::inputs::unit((path * STEPS) as u32 + step, seed);
            [1.0 - unit(31), unit(32)]
        });
        close(&got[0], |_| want, 0.01 + 8.0 / (n as f64).sqrt(), 0.0)?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    Ok(repeated(Work::arithmetic(0, (n * STEPS * 80) as f64), expression, judge))
}
