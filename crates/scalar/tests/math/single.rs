//! `f32`: functions of one argument on arguments of all exponents, or on all arguments; functions of two
//! arguments on random ones.
//!
//! `BROADLOOM_MATH_STEP=1` takes every argument, which takes minutes of all cores for a function. Every
//! 65,537th is the default. `BROADLOOM_MATH_ONLY=sin` tests one function.

use crate::applied::{Applied, cpu};
use crate::reference::{reference, single_error};
use broadloom_scalar::{MathFunction, Precision, Type};
use std::thread;

/// Arguments with the greatest errors among billions.
const HARDEST: &[(MathFunction, u32)] = &[
    (MathFunction::Exp, 0xc1db_0878),
    (MathFunction::Exp2, 0xbef3_e18f),
    (MathFunction::Exp10, 0xc08a_dcd7),
    (MathFunction::Expm1, 0x4188_040a),
    (MathFunction::Log2, 0x3fb2_eb5d),
    (MathFunction::Log10, 0x3fa9_c6e2),
    (MathFunction::Log1p, 0x3ed4_c897),
    (MathFunction::Sin, 0x4530_e0f0),
    (MathFunction::Sin, 0xfd2d_8c50),
    (MathFunction::Cos, 0x6341_8876),
    (MathFunction::Tan, 0x7f2d_f15e),
    (MathFunction::Tan, 0x4772_25e8),
    (MathFunction::Asin, 0x3f07_50f1),
    (MathFunction::Acos, 0x3f19_2399),
    (MathFunction::Atan, 0xbf81_e9d0),
    (MathFunction::Atan, 0x3f80_b4e5),
    (MathFunction::Tanh, 0xbf11_8a31),
    (MathFunction::Erf, 0x3f87_3619),
    (MathFunction::Erfc, 0x40df_a15c),
    (MathFunction::Acosh, 0x3f87_e41d),
    (MathFunction::Asinh, 0xbed4_3099),
    (MathFunction::Sinh, 0xbebe_7f1d),
    (MathFunction::Cosh, 0xc0bc_f145),
    (MathFunction::Atanh, 0xbe2f_c590),
    (MathFunction::Cbrt, 0x8095_7da7),
    (MathFunction::Rsqrt, 0x2c80_cab3),
    (MathFunction::NormCdf, 0xbf31_df3c),
    (MathFunction::Sinh, 0x3ebb_2a9f),
    (MathFunction::Cosh, 0x4090_d856),
    (MathFunction::Atanh, 0x3e2f_b2a1),
    (MathFunction::Cbrt, 0x0095_e726),
    (MathFunction::NormCdf, 0xbf2f_f6a6),
    (MathFunction::Sigmoid, 0xc219_b5fa),
    (MathFunction::Log, 0x3fc8_404f),
    (MathFunction::Log1p, 0x3ed4_db1f),
    (MathFunction::Sinpi, 0xbe80_107f),
    (MathFunction::Cospi, 0xbe7a_f1e9),
    (MathFunction::Tan, 0x5a0b_43c0),
    (MathFunction::Cos, 0xc72b_3bf6),
];

fn step() -> u64 {
    let step = std::env::var("BROADLOOM_MATH_STEP").ok();
    let step = step.map(|text| text.parse().unwrap_or_else(|_| panic!("BROADLOOM_MATH_STEP is `{text}`, and it takes a number")));
    step.filter(|step| *step > 0).unwrap_or(65_537)
}

fn is_asked_for(function: MathFunction) -> bool {
    !std::env::var("BROADLOOM_MATH_ONLY").is_ok_and(|only| only != function.name())
}

/// Returns the possible error of the reference itself.
fn doubt(function: MathFunction, x: f64) -> f64 {
    // Large terms cancel near the zeros of lgamma other than 1 and 2.
    if function == MathFunction::Lgamma && x < 0.0 { 1e-14 } else { 0.0 }
}

/// Returns the greatest error among these, and its arguments.
fn worst(function: MathFunction, x: &[f32], y: &[f32], results: &[f32]) -> (f64, f32, f32) {
    let mut worst = (0.0, 0.0, 0.0);
    for ((&x, &y), &result) in x.iter().zip(y).zip(results) {
        let right = reference(function, x.into(), y.into());
        let mut error = single_error(result, right);
        let doubt = doubt(function, x.into());
        if doubt > 0.0 && (f64::from(result) - right).abs() < doubt {
            error = 0.0;
        }
        if error > worst.0 || error.is_nan() {
            worst = (error, x, y);
        }
    }
    worst
}

/// Calls [`worst`] on all cores.
fn worst_of_many(function: MathFunction, x: &[f32], y: &[f32], results: &[f32]) -> (f64, f32, f32) {
    let part = x.len().div_ceil(thread::available_parallelism().map_or(1, |cores| cores.get())).max(1);
    thread::scope(|scope| {
        let parts = x.chunks(part).zip(y.chunks(part)).zip(results.chunks(part));
        let running: Vec<_> = parts.map(|((x, y), r)| scope.spawn(move || worst(function, x, y, r))).collect();
        let found = running.into_iter().map(|part| part.join().unwrap());
        found.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0.0, 0.0))
    })
}

#[test]
fn functions_of_one_argument_are_as_exact_as_stated() {
    let (device, step) = (cpu(), step());
    let mut wrong = vec![];
    for function in MathFunction::ALL.iter().copied().filter(|f| f.arguments() == 1 && is_asked_for(*f)) {
        let applied = Applied::new(&device, function, Precision::Accurate, Type::F32);
        let hardest = HARDEST.iter().filter(|(hard, _)| *hard == function).map(|(_, bits)| f32::from_bits(*bits));
        let mut arguments = hardest.chain((0..=u32::MAX).step_by(step as usize).map(f32::from_bits));
        let mut found = (0.0, 0.0, 0.0);
        loop {
            let x: Vec<f32> = arguments.by_ref().take(1 << 22).collect();
            if x.is_empty() {
                break;
            }
            let results = applied.run(&[&x]);
            let here = worst_of_many(function, &x, &x, &results);
            found = if here.0 > found.0 { here } else { found };
        }
        let stated = function.accuracy().single;
        if found.0 > stated {
            wrong.push(format!("{function}({:e}, bits {:08x}): {} ulp, stated {stated}", found.1, found.1.to_bits(), found.0));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns a generator of repeatable numbers (xorshift).
pub(crate) fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// Returns pairs of all sizes, pairs of similar size, and for `pow` bases and exponents whose power is in
/// range.
pub(crate) fn pairs(function: MathFunction, count: usize) -> (Vec<f32>, Vec<f32>) {
    let mut next = random(88_172_645_463_325_252);
    let pair = |index: usize| {
        let bits = next();
        let (x, y) = (f32::from_bits(bits as u32), f32::from_bits((bits >> 32) as u32));
        let near_one = |bits: u32| f32::from_bits((bits & 0x87ff_ffff) | 0x3800_0000);
        match (index % 4, function) {
            (1, _) => (near_one(bits as u32), near_one((bits >> 32) as u32)),
            (2, MathFunction::Pow) => {
                let share = (next() >> 11) as f64 / 2f64.powi(53) - 0.5;
                (x.abs(), (share * 300.0 / f64::from(x.abs()).log2()) as f32)
            }
            (3, MathFunction::Pow) => {
                let x = f32::from_bits(0x3f80_0000 ^ (bits as u32 & 0x00ff_ffff));
                let share = (next() >> 11) as f64 / 2f64.powi(53) - 0.5;
                (x, (share * 300.0 / f64::from(x).log2()) as f32)
            }
            (2 | 3, _) => (x, x * (1.0 + (bits >> 40) as f32 / 1e7)),
            _ => (x, y),
        }
    };
    (0..count).map(pair).unzip()
}

#[test]
fn functions_of_two_arguments_are_as_exact_as_stated() {
    let device = cpu();
    let count = if step() == 1 { 1 << 26 } else { 1 << 17 };
    let mut wrong = vec![];
    for function in MathFunction::ALL.iter().copied().filter(|f| f.arguments() == 2 && is_asked_for(*f)) {
        let applied = Applied::new(&device, function, Precision::Accurate, Type::F32);
        let (x, y) = pairs(function, count);
        let results = applied.run(&[&x, &y]);
        let (error, x, y) = worst_of_many(function, &x, &y, &results);
        let stated = function.accuracy().single;
        if error > stated {
            wrong.push(format!("{function}({x:e}, {y:e}): {error} ulp, stated {stated}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
