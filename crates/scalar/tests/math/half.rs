//! `f16`: all arguments.

use crate::applied::{Applied, cpu};
use crate::reference::reference;
use broadloom_scalar::{MathFunction, Precision, Type};
use half::f16;

#[test]
fn half_precision_is_single_precision_rounded() {
    let device = cpu();
    let bits: Vec<u16> = (0..=u16::MAX).collect();
    let wide: Vec<f32> = bits.iter().map(|bits| f16::from_bits(*bits).to_f32()).collect();
    for function in MathFunction::ALL.iter().copied().filter(|function| function.arguments() == 1) {
        let halves = Applied::new(&device, function, Precision::Accurate, Type::F16).run(&[&bits]);
        let singles = Applied::new(&device, function, Precision::Accurate, Type::F32).run(&[&wide]);
        for ((x, half), single) in wide.iter().zip(halves).zip(singles) {
            let (half, rounded) = (f16::from_bits(half), f16::from_f32(single));
            let same = half.to_bits() == rounded.to_bits() || (half.is_nan() && rounded.is_nan());
            assert!(same, "{function}({x:e}) is {half}, not {rounded}");
            // It is also one of the two numbers nearest to the correct result.
            let right = reference(function, f64::from(*x), 0.0);
            let unit = 2f64.powi((right.abs().log2().floor().max(-14.0) as i32) - 10);
            if right.is_finite() && right.abs() < 65_504.0 && right != 0.0 {
                assert!((half.to_f64() - right).abs() <= 0.51 * unit, "{function}({x:e}) is {half}, not {right:e}");
            }
        }
    }
}
