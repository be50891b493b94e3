//! Comparison of bits in the evaluator, in the interpreter and on the CPU.

use crate::applied::{Applied, cpu, function_of, interp};
use crate::single::{pairs, random};
use crate::support::map_kernel;
use broadloom_ptx::print;
use broadloom_scalar::{Literal, Lowering, MathFunction, Precision, Type, lower_with};

/// Returns arguments that every function should handle, then some of all exponents.
fn arguments(count: usize) -> Vec<f32> {
    let special = [0.0, 1.0, 0.5, 2.0, f32::INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE, 1e-45, 1e10, 3.0, 88.8, 0.3, 7e4];
    let mut next = random(2_463_534_242);
    special
        .into_iter()
        .flat_map(|x| [x, -x])
        .chain(std::iter::repeat_with(|| f32::from_bits(next() as u32)))
        .take(count)
        .collect()
}

#[test]
fn results_are_the_same_everywhere() {
    let (cpu, interp) = (cpu(), interp());
    for function in MathFunction::ALL.iter().copied() {
        let (x, y) = if function.arguments() == 2 { pairs(function, 1024) } else { (arguments(1024), vec![]) };
        let wide = |values: &[f32]| values.iter().map(|value| f64::from(*value) * (1.0 + 1e-9)).collect::<Vec<f64>>();
        let (wide_x, wide_y) = (wide(&x), wide(&y));
        let (narrow, double) =
            if y.is_empty() { (vec![&x[..]], vec![&wide_x[..]]) } else { (vec![&x[..], &y[..]], vec![&wide_x[..], &wide_y[..]]) };
        let results = |device| {
            let single = Applied::new(device, function, Precision::Accurate, Type::F32).run(&narrow);
            (single, Applied::new(device, function, Precision::Accurate, Type::F64).run(&double))
        };
        let (a, b) = (results(&cpu), results(&interp));
        let evaluated =
            [function_of(function, Precision::Accurate, Type::F32), function_of(function, Precision::Accurate, Type::F64)];
        for index in 0..x.len() {
            let place = format!("{function} of {:?}", narrow.iter().map(|list| list[index]).collect::<Vec<f32>>());
            let same = |p: Literal, q: Literal| p == q || (p.is_nan() && q.is_nan());
            assert!(
                same(a.0[index].into(), b.0[index].into()),
                "{place}: {:e} on the CPU, {:e} in the interpreter",
                a.0[index],
                b.0[index]
            );
            assert!(
                same(a.1[index].into(), b.1[index].into()),
                "f64 {place}: {:e} on the CPU, {:e} in the interpreter",
                a.1[index],
                b.1[index]
            );
            // The evaluator starts again for each argument.
            if index < 48 {
                let single: Vec<Literal> = narrow.iter().map(|list| list[index].into()).collect();
                let double: Vec<Literal> = double.iter().map(|list| list[index].into()).collect();
                assert!(same(evaluated[0].evaluate(&single).unwrap()[0], a.0[index].into()), "{place}: the evaluator");
                assert!(same(evaluated[1].evaluate(&double).unwrap()[0], a.1[index].into()), "f64 {place}: the evaluator");
            }
        }
    }
}

/// Contraction would change results. Expansions fuse products explicitly, so it finds nothing.
#[test]
fn contraction_finds_nothing_in_expansions() {
    let mut found = vec![];
    for function in MathFunction::ALL.iter().copied() {
        for ty in [Type::F32, Type::F64] {
            let kernel = map_kernel(&function_of(function, Precision::Accurate, ty));
            let fused = |contract| {
                let lowering = Lowering { contract, ..Lowering::default() };
                print(&lower_with(std::slice::from_ref(&kernel), &lowering).unwrap()).matches("fma.rn").count()
            };
            let (with, without) = (fused(true), fused(false));
            if with != without {
                found.push(format!("{function} of {ty}: {without} became {with}"));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
