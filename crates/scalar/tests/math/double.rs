//! `f64`, compared to results of arbitrary precision.
//!
//! For each function, `double.txt` has arguments of all sizes and the hardest of many thousands. Each row has
//! the bits of the arguments, the bits of the nearest result, and the distance of the exact result from it,
//! in ulp.

use crate::applied::{Applied, cpu};
use crate::single::random;
use broadloom_scalar::math::accuracy::LGAMMA_SCALE;
use broadloom_scalar::{MathFunction, Precision, Type};

/// The arguments of one function and the correct results.
struct Rows {
    function: MathFunction,
    arguments: Vec<Vec<f64>>,
    right: Vec<(f64, f64)>,
}

fn table() -> Vec<Rows> {
    let mut functions: Vec<Rows> = vec![];
    for line in include_str!("double.txt").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let [name] = words[..] {
            let function = *MathFunction::ALL.iter().find(|function| function.name() == name).unwrap();
            functions.push(Rows { function, arguments: vec![vec![]; function.arguments()], right: vec![] });
            continue;
        }
        let number = |word: &str| f64::from_bits(u64::from_str_radix(word, 16).unwrap());
        let rows = functions.last_mut().unwrap();
        let [arguments @ .., right, rest] = &words[..] else { panic!("{line}") };
        assert_eq!(arguments.len(), rows.arguments.len(), "{line}");
        rows.arguments.iter_mut().zip(arguments).for_each(|(list, word)| list.push(number(word)));
        rows.right.push((number(right), rest.parse().unwrap()));
    }
    functions
}

/// Returns the unit in the last place of a number of this size.
fn ulp(size: f64) -> f64 {
    let exponent = (size.abs().to_bits() >> 52).max(1);
    if exponent > 52 { f64::from_bits((exponent - 52) << 52) } else { f64::from_bits(1 << (exponent - 1)) }
}

fn error(function: MathFunction, x: f64, result: f64, exact: (f64, f64)) -> f64 {
    let (right, rest) = exact;
    if right.is_infinite() || result.is_infinite() {
        // The greatest number is one ulp from infinity.
        let held = |value: f64| value.clamp(-f64::MAX, f64::MAX);
        return (held(result) - held(right)).abs() / ulp(f64::MAX) + if right == result { 0.0 } else { 1.0 };
    }
    let unit = ulp(right);
    let distance = ((result - right) / unit - rest).abs();
    let is_relative = function != MathFunction::Lgamma || x > 0.0 || right.abs() > LGAMMA_SCALE;
    if is_relative { distance } else { distance * unit / ulp(LGAMMA_SCALE) }
}

#[test]
fn double_precision_is_as_exact_as_stated() {
    let (device, mut wrong, mut seen) = (cpu(), vec![], vec![]);
    for Rows { function, arguments, right } in table() {
        let lists: Vec<&[f64]> = arguments.iter().map(Vec::as_slice).collect();
        let results = Applied::new(&device, function, Precision::Accurate, Type::F64).run(&lists);
        let stated = function.accuracy().double;
        for (index, result) in results.into_iter().enumerate() {
            let error = error(function, arguments[0][index], result, right[index]);
            // NaN is not a small error.
            if error.is_nan() || error > stated {
                let at: Vec<f64> = arguments.iter().map(|list| list[index]).collect();
                wrong.push(format!("{function} of {at:?}: {result:e}, not {:e}: {error} ulp, stated {stated}", right[index].0));
            }
        }
        seen.push(function);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let missing: Vec<MathFunction> = MathFunction::ALL.iter().copied().filter(|function| !seen.contains(function)).collect();
    assert_eq!(missing, [MathFunction::Fmod, MathFunction::Remainder], "these are tested below");
}

#[test]
fn remainders_of_doubles_are_exact() {
    let device = cpu();
    let mut next = random(88_172_645_463_325_252);
    // Of all sizes, and with quotients that are not large.
    let (x, y): (Vec<f64>, Vec<f64>) = (0..1 << 14)
        .map(|index| {
            let (x, bits) = (f64::from_bits(next()), next());
            let like = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | (x.to_bits() & 0x7ff0_0000_0000_0000));
            (x, if index % 8 == 0 { f64::from_bits(bits) } else { like * 2f64.powi(-((bits >> 58) as i32)) })
        })
        .unzip();
    for (function, right) in
        [(MathFunction::Fmod, (|x, y| x % y) as fn(f64, f64) -> f64), (MathFunction::Remainder, libm::remainder)]
    {
        let results = Applied::new(&device, function, Precision::Accurate, Type::F64).run(&[&x, &y]);
        for ((&x, &y), &result) in x.iter().zip(&y).zip(&results) {
            let right = right(x, y);
            let same = result.to_bits() == right.to_bits() || (result.is_nan() && right.is_nan());
            assert!(same, "{function}({x:e}, {y:e}) is {result:e}, not {right:e}");
        }
    }
}
