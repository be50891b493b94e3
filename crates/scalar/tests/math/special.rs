//! Zeros, infinities, NaN and the ends of domains: the results of annex F of the C standard, which the host's
//! libraries follow.

use crate::applied::{Applied, cpu};
use crate::reference::reference;
use broadloom_scalar::{MathFunction, Precision, Type};

/// Returns arguments that are special for some function, with both signs.
fn arguments() -> Vec<f32> {
    let positive = [
        0.0,
        f32::INFINITY,
        f32::NAN,
        1.0,
        0.5,
        1.5,
        2.0,
        3.0,
        4.0,
        0.25,
        1e-45,
        1e-40,
        f32::MIN_POSITIVE,
        1e38,
        f32::MAX,
        16_777_215.0,
        16_777_216.0,
        8_388_607.5,
        1e10,
        0.1,
        1.0 - f32::EPSILON / 2.0,
        1.0 + f32::EPSILON,
        127.0,
        128.0,
        149.0,
        150.0,
        171.0,
        184.5,
    ];
    positive.into_iter().flat_map(|x| [x, -x]).collect()
}

/// Returns true if both are NaN, the same infinity, or the same zero, or if neither is one of these.
fn alike(a: f64, b: f64) -> bool {
    let special = |x: f64| !x.is_finite() || x == 0.0;
    (a.is_nan() && b.is_nan()) || if special(a) || special(b) { a.to_bits() == b.to_bits() } else { true }
}

fn check(function: MathFunction, x: &[f32], y: &[f32]) {
    let device = cpu();
    let wide = |list: &[f32]| list.iter().copied().map(f64::from).collect::<Vec<f64>>();
    let (wide_x, wide_y) = (wide(x), wide(y));
    let (single, double) =
        if function.arguments() == 2 { (vec![x, y], vec![&wide_x[..], &wide_y[..]]) } else { (vec![x], vec![&wide_x[..]]) };
    let singles = Applied::new(&device, function, Precision::Accurate, Type::F32).run(&single);
    let doubles = Applied::new(&device, function, Precision::Accurate, Type::F64).run(&double);
    for index in 0..x.len() {
        let (x, y) = (wide_x[index], wide_y[index]);
        let right = reference(function, x, y);
        // A result between two numbers of f32 may be rounded to either. Only unambiguous results are
        // compared.
        let narrow = f64::from(right as f32);
        let close = right != narrow && (narrow == 0.0 || narrow.is_infinite() || narrow.abs() == f64::from(f32::MAX));
        assert!(
            close || alike(singles[index].into(), narrow),
            "{function}({x:e}, {y:e}) is {:e}, not {narrow:e}",
            singles[index]
        );
        assert!(alike(doubles[index], right), "{function}({x:e}, {y:e}) in f64 is {:e}, not {right:e}", doubles[index]);
        let error = ((doubles[index] - right) / right).abs();
        let is_near = right == 0.0 || !right.is_finite() || error < 1e-13 || right.abs() < f64::MIN_POSITIVE;
        assert!(is_near, "{function}({x:e}, {y:e}) in f64 is {:e}, not {right:e}", doubles[index]);
    }
}

#[test]
fn special_values_of_functions_of_one_argument() {
    let x = arguments();
    for function in MathFunction::ALL.iter().copied().filter(|function| function.arguments() == 1) {
        check(function, &x, &x);
    }
}

#[test]
fn special_values_of_functions_of_two_arguments() {
    let list = arguments();
    let (x, y): (Vec<f32>, Vec<f32>) = list.iter().flat_map(|x| list.iter().map(|y| (*x, *y))).unzip();
    for function in MathFunction::ALL.iter().copied().filter(|function| function.arguments() == 2) {
        check(function, &x, &y);
    }
}
