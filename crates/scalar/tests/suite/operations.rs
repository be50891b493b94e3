//! Every operation on every type that supports it: evaluator, interpreter and CPU return the same bits.

use crate::support::random::{Literals, Random};
use crate::support::{devices, exact_lowerings, map_kernel, run_map, same};
use broadloom_scalar::{BinaryOp, Builder, CompareOp, Element, Function, Literal, Type, UnaryOp, Value};

const COUNT: usize = 600;

/// Checks a function on random values, on all devices. `names` are the names of its results.
fn check(function: &Function, names: &[String]) {
    let mut random = Random(7);
    let inputs: Vec<Vec<Literal>> = function
        .parameters()
        .iter()
        .map(|parameter| (0..COUNT).map(|_| random.literal(parameter.ty.element())).collect())
        .collect();
    let kernel = map_kernel(function);
    let expected: Vec<Vec<Literal>> = (0..COUNT)
        .map(|index| {
            let arguments: Vec<Literal> = inputs.iter().map(|input| input[index]).collect();
            function.evaluate(&arguments).unwrap()
        })
        .collect();
    let ways = devices()
        .into_iter()
        .flat_map(|(name, device)| exact_lowerings().map(|(kind, how)| (format!("{name}, {kind}"), device.clone(), how)));
    for (device_name, device, lowering) in ways {
        let results = run_map(&device, &kernel, &lowering, &inputs, &function.result_types());
        for (result, name) in names.iter().enumerate() {
            for index in 0..COUNT {
                let arguments: Vec<String> =
                    inputs.iter().map(|input| format!("{} ({:x})", input[index], input[index].bits())).collect();
                let (found, expected) = (results[result][index], expected[index][result]);
                assert!(
                    same(found, expected),
                    "{name} of {arguments:?} on {device_name}: {found} ({:x}), not {expected} ({:x})",
                    found.bits(),
                    expected.bits()
                );
            }
        }
    }
}

/// Approximations may differ between executors.
fn is_exact(op: UnaryOp) -> bool {
    !op.name().ends_with("_approx")
}

fn unary_takes(op: UnaryOp, element: Element) -> bool {
    let b = Builder::function("probe");
    let x = b.parameter("x", element);
    b.unary(op, x);
    !b.has_failed()
}

fn binary_takes(op: BinaryOp, element: Element) -> bool {
    let b = Builder::function("probe");
    let x = b.parameter("x", element);
    let y = if matches!(op, BinaryOp::Shl | BinaryOp::Shr) { b.parameter("y", Type::U32) } else { x };
    b.binary(op, x, y);
    // The remainder of floats is an elementary function.
    let elementary = op == BinaryOp::Rem && element.is_float();
    !b.has_failed() && !elementary && op != BinaryOp::DivApprox
}

#[test]
fn every_operation_on_every_type() {
    for element in Element::ALL {
        let b = Builder::function("operations");
        let (x, y, z) = (b.parameter("x", element), b.parameter("y", element), b.parameter("z", element));
        let (c, n) = (b.parameter("c", Type::BOOL), b.parameter("n", Type::U32));
        let (mut results, mut names) = (vec![], vec![]);
        let mut add = |value: Value, name: String| {
            results.push(value);
            names.push(format!("`{name}` on {element}"));
        };
        for op in UnaryOp::ALL.iter().filter(|op| is_exact(**op) && unary_takes(**op, element)) {
            add(b.unary(*op, x), op.name().into());
        }
        for op in BinaryOp::ALL.iter().filter(|op| binary_takes(**op, element)) {
            let y = if matches!(op, BinaryOp::Shl | BinaryOp::Shr) { n } else { y };
            add(b.binary(*op, x, y), op.name().into());
        }
        for op in CompareOp::ALL {
            if element != Element::Bool || matches!(op, CompareOp::Eq | CompareOp::Ne) {
                add(b.compare(*op, x, y), op.name().into());
            }
        }
        if element.is_float() {
            add(b.fma(x, y, z), "fma".into());
            add(b.round(x), "round".into());
            add(b.is_finite(x), "is_finite".into());
        }
        add(b.select(c, x, y), "select".into());
        let function = b.finish_function(&results).unwrap();
        check(&function, &names);
    }
}

#[test]
fn every_conversion() {
    for from in Element::ALL {
        let b = Builder::function("conversions");
        let x = b.parameter("x", from);
        let (mut results, mut names) = (vec![], vec![]);
        for to in Element::ALL {
            if to != from {
                results.push(b.convert(x, to));
                names.push(format!("{from} as {to}"));
            }
        }
        // The bits of NaN are not specified, so only bits of integers are compared.
        if from.is_integer() {
            for to in Element::ALL.into_iter().filter(|to| to.bits() == from.bits()) {
                results.push(b.bitcast(x, to));
                names.push(format!("bits of {from} as {to}"));
            }
        }
        check(&b.finish_function(&results).unwrap(), &names);
    }
}

/// Shifts by counts of every type, tables, bit fields, vectors that are split and joined.
#[test]
fn what_is_made_of_operations() {
    let b = Builder::function("made");
    let (x, y) = (b.parameter("x", Type::I64), b.parameter("y", Type::U32));
    let (mut results, mut names) = (vec![], vec![]);
    for count in [Element::I8, Element::U8, Element::I16, Element::I32, Element::I64, Element::U64] {
        let count_value = b.convert(y, count);
        results.extend([b.shl(x, count_value), b.shr(x, count_value)]);
        names.extend([format!("<< by {count}"), format!(">> by {count}")]);
    }
    results.push(b.extract_bits(x, 5, 7));
    names.push("extract_bits".into());
    let words = b.bitcast(x, Type::vector(Element::U16, 4).unwrap());
    let swapped = b.vector(&[b.lane(words, 3), b.lane(words, 1), b.lane(words, 2), b.lane(words, 0)]);
    results.push(b.bitcast(b.add(swapped, 1), Type::I64));
    names.push("words".into());
    let table = b.table(&[3i16, 1, 4, 1, 5].map(Literal::from));
    results.push(b.lookup(table, b.and(y, 7)));
    names.push("table".into());
    check(&b.finish_function(&results).unwrap(), &names);
}
