//! Programs over grids: heat, edges of an image, conjugate gradients.

use super::floats::{Floats, Result};
use crate::arrays::job::repeated;
use crate::error::Failure;
use crate::inputs::{computed, hashed, units, weighed};
use crate::job::{Job, Work, close};
use broadloom::array::{Boundary, Function};
use broadloom::{Array, Context};

const STEPS: usize = 20;

fn heat_step(u: &Floats) -> Result<Floats> {
    let at = |down, along| u.shift(&[down, along], Boundary::Clamp);
    let around = at(1, 0)? + at(-1, 0)? + at(0, 1)? + at(0, -1)?;
    Ok(u + (around - u * 4.0) * 0.1)
}

pub(super) fn heat(context: &Context, n: usize) -> std::result::Result<Job, Failure> {
    heat_with(context, n, 1)
}

pub(super) fn heat_by4(context: &Context, n: usize) -> std::result::Result<Job, Failure> {
    heat_with(context, n, 4)
}

pub(super) fn heat_large(context: &Context, n: usize) -> std::result::Result<Job, Failure> {
    heat_with(context, n, 1)
}

/// Makes the job with a function of some steps.
fn heat_with(context: &Context, n: usize, at_once: usize) -> std::result::Result<Job, Failure> {
    let values = units(n * n, 1, 0.0, 1.0);
    let start = Array::new(context, &values, [n, n])?;
    let function = Function::new(context, move |u: &Floats| (0..at_once).try_fold(u.clone(), |u, _| heat_step(&u)));
    let expression = move || {
        let end = (0..STEPS / at_once).try_fold(start.clone(), |u, _| function.call(&u))?;
        Ok(vec![end])
    };
    let judge = move |got: &[Vec<f32>]| {
        let mut u = values.clone();
        for _ in 0..STEPS {
            let at = |i: usize, j: usize| u[i * n + j];
            let next = |k: usize| {
                let (i, j) = (k / n, k % n);
                let around = at(i.saturating_sub(1), j)
                    + at((i + 1).min(n - 1), j)
                    + at(i, j.saturating_sub(1))
                    + at(i, (j + 1).min(n - 1));
                at(i, j) + (around - at(i, j) * 4.0) * 0.1
            };
            u = computed(n * n, next);
        }
        close(&got[0], |i| f64::from(u[i]), 0.0, 1e-5)?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    Ok(repeated(Work::memory(8 * n * n * STEPS, 6 * n * n * STEPS), expression, judge))
}

const WEIGHTS: [f32; 5] = [0.0625, 0.25, 0.375, 0.25, 0.0625];

fn blur(a: &Floats, axis: usize) -> Result<Floats> {
    let at = |k: i64| if axis == 0 { [k, 0] } else { [0, k] };
    a.window(Boundary::Clamp, |w| {
        let terms = (1..5).map(|k| w.at(&at(k - 2)) * WEIGHTS[k as usize]);
        terms.fold(w.at(&at(-2)) * WEIGHTS[0], |sum, term| sum + term)
    })
}

fn sobel(a: &Floats) -> Result<Floats> {
    a.window(Boundary::Clamp, |w| {
        let at = |down, along| w.at(&[down, along]);
        let along = at(-1, 1) - at(-1, -1) + (at(0, 1) - at(0, -1)) * 2.0 + at(1, 1) - at(1, -1);
        let down = at(1, -1) - at(-1, -1) + (at(1, 0) - at(-1, 0)) * 2.0 + at(1, 1) - at(-1, 1);
        (along * along + down * down).sqrt()
    })
}

pub(super) fn edges(context: &Context, n: usize) -> std::result::Result<Job, Failure> {
    let level = move |k: usize| ((k / n / 7 * 13 + k % n / 11 * 29) as u32 + hashed(k as u32, 4) % 20) as u8;
    let values = computed(n * n, level);
    let image = Array::new(context, &values, [n, n])?;
    let function = Function::new(context, |image: &Array<u8>| {
        let edges = sobel(&blur(&blur(&image.cast::<f32>()?, 1)?, 0)?)?.clamp(0.0, 255.0)?.cast::<u8>()?;
        Ok((edges.histogram(256)?, edges))
    });
    let expression = move || Ok(vec![function.call(&image)?.0]);
    let judge = move |got: &[Vec<u32>]| {
        let clamped = |i: usize, by: i64| (i as i64 + by).clamp(0, n as i64 - 1) as usize;
        let blurred = |from: &[f32], down: i64, along: i64| -> Vec<f32> {
            let at = |k: usize, by: i64| from[clamped(k / n, by * down) * n + clamped(k % n, by * along)];
            computed(n * n, |k| (0..5).map(|i| at(k, i - 2) * WEIGHTS[i as usize]).sum())
        };
        let floats: Vec<f32> = values.iter().map(|&level| f32::from(level)).collect();
        let smooth = blurred(&blurred(&floats, 0, 1), 1, 0);
        let bins = computed(n * n, |k| {
            let at = |down: i64, along: i64| smooth[clamped(k / n, down) * n + clamped(k % n, along)];
            let along = at(-1, 1) - at(-1, -1) + (at(0, 1) - at(0, -1)) * 2.0 + at(1, 1) - at(1, -1);
            let down = at(1, -1) - at(-1, -1) + (at(1, 0) - at(-1, 0)) * 2.0 + at(1, 1) - at(-1, 1);
            (along * along + down * down).sqrt().clamp(0.0, 255.0) as u8
        });
        let mut counts = [0u32; 256];
        bins.iter().for_each(|bin| counts[usize::from(*bin)] += 1);
        // Rounding moves few points to the next bin.
        let apart: u32 = counts.iter().zip(&got[0]).map(|(want, got)| want.abs_diff(*got)).sum();
        if got[0].len() != 256 || apart as usize > n * n / 500 + 4 {
            return Err(Failure::Wrong(format!("{apart} counts differ from the reference")));
        }
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    Ok(repeated(Work::memory(2 * n * n, 34 * n * n), expression, judge))
}

const ROUNDS: usize = 10;

fn laplacian(x: &Floats) -> Result<Floats> {
    let at = |down, along| x.shift(&[down, along], Boundary::Constant(0.0));
    Ok(x * 4.0 - at(1, 0)? - at(-1, 0)? - at(0, 1)? - at(0, -1)?)
}

pub(super) fn gradients(context: &Context, n: usize) -> std::result::Result<Job, Failure> {
    let values = units(n * n, 7, -0.5, 0.5);
    let right = Array::new(context, &values, [n, n])?;
    let zero = Array::full(context, [n, n], 0.0f32)?;
    let first = (&right * &right).sum();
    broadloom::array::evaluate_all(&[zero.node(), first.node()])?;
    let function = Function::new(context, |x: &Floats, r: &Floats, p: &Floats, square: &Floats| {
        let along = laplacian(p)?;
        let alpha = square / (p * &along).sum();
        let (x, r) = (x + p * &alpha, r - &along * &alpha);
        let next = (&r * &r).sum();
        let p = &r + p * (&next / square);
        Ok((x, r, p, next))
    });
    let expression = move || {
        let mut state = (zero.clone(), right.clone(), right.clone(), first.clone());
        for _ in 0..ROUNDS {
            state = function.call((&state.0, &state.1, &state.2, &state.3))?;
        }
        Ok(vec![state.0])
    };
    let judge = move |got: &[Vec<f32>]| {
        let want = by_gradients(&values, n);
        close(&got[0], |i| want[i], 1e-3, 1e-3)?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    Ok(repeated(Work::memory(36 * n * n * ROUNDS, 16 * n * n * ROUNDS), expression, judge))
}

/// Returns the result of the conjugate gradients with `f64`.
fn by_gradients(right: &[f32], n: usize) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut r: Vec<f64> = right.iter().map(|&x| f64::from(x)).collect();
    let (mut x, mut p, mut square) = (vec![0.0; n * n], r.clone(), dot(&r, &r));
    for _ in 0..ROUNDS {
        let at = |i: usize, j: usize| if i < n && j < n { p[i * n + j] } else { 0.0 };
        let applied = |k: usize| {
            let (i, j) = (k / n, k % n);
            4.0 * at(i, j) - at(i.wrapping_sub(1), j) - at(i + 1, j) - at(i, j.wrapping_sub(1)) - at(i, j + 1)
        };
        let along = computed(n * n, applied);
        let alpha = square / dot(&p, &along);
        x.iter_mut().zip(&p).for_each(|(x, p)| *x += p * alpha);
        r.iter_mut().zip(&along).for_each(|(r, a)| *r -= a * alpha);
        let next = dot(&r, &r);
        p.iter_mut().zip(&r).for_each(|(p, r)| *p = r + *p * (next / square));
        square = next;
    }
    x
}
