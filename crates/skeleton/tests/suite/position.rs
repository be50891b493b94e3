//! Positions of linear numbers.

use broadloom_scalar::{Builder, Literal, Type};
use broadloom_skeleton::kit::unravel_in_vectors;

/// Divisions by multiplication are exact for all numbers below 2³¹.
#[test]
fn positions_in_vectors_are_those_of_divisions() {
    let f = Builder::function("position");
    let [number, a, b] = ["number", "a", "b"].map(|name| f.parameter(name, Type::U32));
    let position = unravel_in_vectors(&f, number, &[a, a, b]);
    let function = f.finish_function(&position).unwrap();
    let edges = [1u32, 2, 3, 5, 7, 31, 32, 33, 641, 65535, 65537, (1 << 30) - 1, 1 << 30, (1 << 31) - 1];
    for a in edges {
        for b in edges {
            let near = |number: u32| [number.wrapping_sub(1), number, number.wrapping_add(1)];
            let far = u64::from(u32::MAX >> 1) / u64::from(b) * u64::from(b);
            for number in near(b).into_iter().chain(near(far as u32)).chain(near(a)).chain([0, u32::MAX >> 1, 1_234_567_890]) {
                let number = number & (u32::MAX >> 1);
                let wanted = [number / b / a, number / b % a, number % b].map(Literal::from);
                assert_eq!(function.evaluate(&[number, a, b].map(Literal::from)).unwrap(), wanted, "{number} {a} {b}");
            }
        }
    }
}
