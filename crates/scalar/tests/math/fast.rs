//! The fast mode has the stated accuracy, on the available devices.

use crate::applied::{Applied, cpu, interp};
use crate::reference::reference;
use crate::single::pairs;
use broadloom_scalar::{MathFunction, Precision, Type};

#[test]
fn the_fast_mode_is_as_exact_as_stated() {
    for device in [cpu(), interp()] {
        for function in MathFunction::ALL.iter().copied() {
            let Some(stated) = function.accuracy().fast else { continue };
            let (x, y) = if function.arguments() == 2 {
                pairs(function, 1 << 13)
            } else {
                // Arguments of all exponents, and most of them of usual size.
                let all = (0..=u32::MAX).step_by(1_048_583).map(f32::from_bits);
                let usual = (0..4096).map(|index| (index as f32 - 2048.0) / 23.0);
                let x: Vec<f32> = all.chain(usual).collect();
                (x.clone(), x)
            };
            let lists = [&x[..], &y[..]];
            let results = Applied::new(&device, function, Precision::Fast, Type::F32).run(&lists[..function.arguments()]);
            for ((&x, &y), &result) in x.iter().zip(&y).zip(&results) {
                let (wide, result) = (f64::from(x), f64::from(result));
                let right = reference(function, wide, y.into());
                let is_subnormal = |x: f64| x != 0.0 && x.abs() < f64::from(f32::MIN_POSITIVE);
                if wide.abs() > stated.range || is_subnormal(wide) || is_subnormal(y.into()) {
                    continue;
                }
                // An infinite argument does not matter if nothing grows.
                let by = if function == MathFunction::Pow { right.abs().ln() } else { wide };
                let growth = if stated.growth > 0.0 { stated.growth * by.abs() } else { 0.0 };
                let allowed = (stated.relative + growth) * right.abs() + stated.absolute + f64::from(f32::MIN_POSITIVE);
                let held = |value: f64| value.clamp(-2f64.powi(128), 2f64.powi(128));
                let right_enough = if right.is_nan() || result.is_nan() {
                    right.is_nan() == result.is_nan()
                } else {
                    held(result) == held(right) || (held(result) - held(right)).abs() <= allowed
                };
                assert!(right_enough, "{function}({x:e}, {y:e}) is {result:e}, not {right:e}");
            }
        }
    }
}
