//! A function and its results on devices.

use crate::support::{devices, exact_lowerings, map_kernel, run_map};
use broadloom_scalar::{Builder, Literal, Type};

/// An elementwise function with a loop and a condition, on every device.
#[test]
fn a_function_with_a_loop_runs_everywhere() {
    let f = Builder::function("collatz");
    let start = f.parameter("start", Type::U32);
    let (x, steps) = (f.variable_with(start), f.variable(Type::U32));
    f.while_loop(
        || f.gt(f.get(x), 1),
        || {
            let odd = f.ne(f.and(f.get(x), 1), 0);
            f.if_else(odd, || f.set(x, f.add(f.mul(f.get(x), 3), 1)), || f.set(x, f.shr(f.get(x), 1)));
            f.set(steps, f.add(f.get(steps), 1));
        },
    );
    let weighted = f.variable(Type::F64);
    f.for_range(0, f.get(steps), |i| f.set(weighted, f.add(f.get(weighted), f.convert(i, Type::F64))));
    let results = [f.get(steps), f.get(weighted)];
    let collatz = f.finish_function(&results).unwrap();

    let inputs: Vec<Literal> = (1u32..=200).map(Literal::from).collect();
    let expected: Vec<Vec<Literal>> = inputs.iter().map(|x| collatz.evaluate(&[*x]).unwrap()).collect();
    assert_eq!(expected[26][0], 111u32.into(), "27 takes 111 steps");
    let kernel = map_kernel(&collatz);
    for (name, device) in devices() {
        for (kind, lowering) in exact_lowerings() {
            let results = run_map(&device, &kernel, &lowering, std::slice::from_ref(&inputs), &collatz.result_types());
            for (index, expected) in expected.iter().enumerate() {
                assert_eq!([results[0][index], results[1][index]], expected[..], "{name}, {kind}, element {index}");
            }
        }
    }
}
