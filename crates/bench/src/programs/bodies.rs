//! Bodies that attract each other.

use super::floats::{Floats, Result};
use crate::arrays::job::repeated;
use crate::error::Failure;
use crate::inputs::{computed, unit, units, weighed};
use crate::job::{Job, Work, close};
use broadloom::array::Function;
use broadloom::{Array, Context};

const STEPS: usize = 2;
const STEP: f32 = 0.001;

/// Returns the next positions and velocities.
fn step(state: [&Floats; 6], mass: &Floats) -> Result<[Floats; 6]> {
    let (at, speed) = state.split_at(3);
    let apart = at.iter().map(|x| Ok(x.add_axis(0, 1)? - x.add_axis(1, 1)?)).collect::<Result<Vec<Floats>>>()?;
    let square = &apart[0] * &apart[0] + &apart[1] * &apart[1] + &apart[2] * &apart[2] + 1e-3;
    let weight = mass / (&square * square.sqrt());
    let pull = apart.iter().map(|apart| (apart * &weight).sum_along(&[1])).collect::<Result<Vec<Floats>>>()?;
    let speed: [Floats; 3] = std::array::from_fn(|k| speed[k] + &pull[k] * STEP);
    let at: [Floats; 3] = std::array::from_fn(|k| at[k] + &speed[k] * STEP);
    let ([a, b, c], [d, e, f]) = (at, speed);
    Ok([a, b, c, d, e, f])
}

pub(super) fn bodies(context: &Context, n: usize) -> std::result::Result<Job, Failure> {
    let line = |seed| Array::line(context, &units(n, seed, 0.0, 1.0));
    let (at, mass) = ([line(20)?, line(21)?, line(22)?], line(23)?);
    let rest = Array::full(context, n, 0.0f32)?;
    rest.evaluate()?;
    let function =
        Function::new(context, |a: &Floats, b: &Floats, c: &Floats, d: &Floats, e: &Floats, f: &Floats, mass: &Floats| {
            step([a, b, c, d, e, f], mass)
        });
    let expression = move || {
        let [a, b, c] = at.clone();
        let mut state = [a, b, c, rest.clone(), rest.clone(), rest.clone()];
        for _ in 0..STEPS {
            let [a, b, c, d, e, f] = &state;
            state = function.call((a, b, c, d, e, f, &mass))?;
        }
        let [.., speed, _, _] = state;
        Ok(vec![speed])
    };
    let judge = move |got: &[Vec<f32>]| {
        let of = |seed: u32| (0..n as u32).map(|i| f64::from(unit(i, seed))).collect::<Vec<f64>>();
        let (mut at, mass) = ([of(20), of(21), of(22)], of(23));
        let mut speed = vec![[0.0f64; 3]; n];
        for _ in 0..STEPS {
            let pulls = computed(n, |i| {
                let mut pull = [0.0; 3];
                for j in 0..n {
                    let apart = [0, 1, 2].map(|k| at[k][j] - at[k][i]);
                    let square = apart.iter().map(|x| x * x).sum::<f64>() + 1e-3;
                    let weight = mass[j] / (square * square.sqrt());
                    (0..3).for_each(|k| pull[k] += apart[k] * weight);
                }
                pull
            });
            for (speed, pull) in speed.iter_mut().zip(&pulls) {
                (0..3).for_each(|k| speed[k] += pull[k] * f64::from(STEP));
            }
            (0..3).for_each(|k| at[k].iter_mut().zip(&speed).for_each(|(at, speed)| *at += speed[k] * f64::from(STEP)));
        }
        let most = speed.iter().fold(0.0f64, |most, speed| most.max(speed[0].abs()));
        close(&got[0], |i| speed[i][0], 1e-3, 1e-4 * most)?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    Ok(repeated(Work::arithmetic(0, (n * n * STEPS * 20) as f64), expression, judge))
}
