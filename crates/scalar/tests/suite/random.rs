//! Random functions return the same bits evaluated and run, simplified or not.
//!
//! `BROADLOOM_SCALAR_FUNCTIONS=n` makes n of them, starting at the seed `BROADLOOM_SCALAR_SEED`.

use crate::support::random::{Literals, Random};
use crate::support::{devices, exact_lowerings, generate, map_kernel, run_map, same};
use broadloom_scalar::{Function, Literal};

const COUNT: usize = 48;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`, and it takes a number")))
}

fn inputs(function: &Function, seed: u64) -> Vec<Vec<Literal>> {
    let mut random = Random(seed);
    let parameters = function.parameters().iter();
    parameters.map(|parameter| (0..COUNT).map(|_| random.literal(parameter.ty.element())).collect()).collect()
}

fn evaluate(function: &Function, inputs: &[Vec<Literal>]) -> Vec<Vec<Literal>> {
    let evaluated = (0..COUNT).map(|index| {
        let arguments: Vec<Literal> = inputs.iter().map(|input| input[index]).collect();
        function.evaluate(&arguments).unwrap_or_else(|error| panic!("{error}\n{function}"))
    });
    evaluated.collect()
}

fn compare(found: &[Literal], expected: &[Literal], what: impl Fn() -> String) {
    for (result, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            same(*found, *expected),
            "result {result}: {found} ({:x}), not {expected} ({:x}): {}",
            found.bits(),
            expected.bits(),
            what()
        );
    }
}

#[test]
fn simplified_functions_evaluate_to_the_same() {
    let first = setting("BROADLOOM_SCALAR_SEED", 1);
    for seed in first..first + setting("BROADLOOM_SCALAR_FUNCTIONS", 300) {
        let function = generate::function(seed);
        let inputs = inputs(&function, seed);
        let expected = evaluate(&function, &inputs);
        let simplified = function.simplify().unwrap_or_else(|error| panic!("{seed}: {error}\n{function}"));
        let found = evaluate(&simplified, &inputs);
        for index in 0..COUNT {
            compare(&found[index], &expected[index], || format!("seed {seed}, element {index}\n{function}\n{simplified}"));
        }
    }
}

#[test]
fn functions_run_as_they_are_evaluated() {
    let first = setting("BROADLOOM_SCALAR_SEED", 1);
    let devices = devices();
    for seed in first..first + setting("BROADLOOM_SCALAR_FUNCTIONS", 40) {
        let original = generate::function(seed);
        // Every third one has fused products, which are then part of the function itself.
        let function = match seed % 3 {
            0 => {
                original.simplify().and_then(|function| function.contract()).unwrap_or_else(|error| panic!("{error}\n{original}"))
            }
            _ => original,
        };
        let inputs = inputs(&function, seed);
        let expected = evaluate(&function, &inputs);
        let kernel = map_kernel(&function);
        for (name, device) in &devices {
            for (kind, lowering) in exact_lowerings() {
                let found = run_map(device, &kernel, &lowering, &inputs, &function.result_types());
                for (index, expected) in expected.iter().enumerate() {
                    let found: Vec<Literal> = found.iter().map(|results| results[index]).collect();
                    compare(&found, expected, || {
                        let arguments: Vec<String> = inputs.iter().map(|input| input[index].to_string()).collect();
                        let simplified = kernel.simplify().map(|kernel| kernel.to_string());
                        format!(
                            "seed {seed}, {name}, {kind}, element {index} {arguments:?}\n{kernel}\n{}",
                            simplified.unwrap_or_default()
                        )
                    });
                }
            }
        }
    }
}
