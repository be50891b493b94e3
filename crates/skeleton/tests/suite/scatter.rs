//! Values sent to places, by all types and all ways to combine them.

use crate::support::{Given, Random, benches, identity, run};
use broadloom_scalar::{AccessorKind, Builder, Element, Literal, Type};
use broadloom_skeleton::{Combine, Domain, Pattern, Scatter, Sink, Source};

fn combined(combine: Combine, element: Element, a: Literal, b: Literal) -> Literal {
    let integers = |f: fn(i128, i128) -> i128| Literal::from_i128(element, f(a.as_i128().unwrap(), b.as_i128().unwrap()));
    match combine {
        Combine::Last => b,
        Combine::Add => match (a.as_f64(), b.as_f64()) {
            (Some(x), Some(y)) => Literal::from_f64(element, x + y).unwrap(),
            _ => integers(|a, b| a + b),
        },
        Combine::And => integers(|a, b| a & b),
        Combine::Or => integers(|a, b| a | b),
        Combine::Xor => integers(|a, b| a ^ b),
        Combine::Min | Combine::Max => match (a.as_f64(), b.as_f64()) {
            (Some(x), Some(y)) if x.is_nan() || y.is_nan() => {
                if x.is_nan() {
                    b
                } else {
                    a
                }
            }
            (Some(x), Some(y)) => {
                if x.total_cmp(&y).is_le() == (combine == Combine::Min) {
                    a
                } else {
                    b
                }
            }
            _ => integers(if combine == Combine::Min { i128::min } else { i128::max }),
        },
    }
}

#[test]
fn all_types_and_ways() {
    let ways = [Combine::Last, Combine::Add, Combine::Min, Combine::Max, Combine::And, Combine::Or, Combine::Xor];
    let mut tried = 0;
    for (name, bench) in benches() {
        for element in Element::ALL {
            for combine in ways {
                // The interpreter runs the programs of GPUs for all types.
                if name == "cpu as a gpu" && !matches!(element, Element::U8 | Element::F32) {
                    continue;
                }
                let f = Builder::function("sent");
                let i = f.parameter("i", Type::I32);
                let places = f.accessor("places", AccessorKind::Input, Type::I32, 1);
                let x = f.accessor("x", AccessorKind::Input, element, 1);
                let results = [f.read(places, &[i.into()]), f.read(x, &[i.into()])];
                let source = Source::new(f.finish_function(&results).unwrap(), 1).unwrap();
                let scatter = Scatter { domain: Domain::LINE, source, base: identity(element), combine, sink: Sink::STORE };
                if scatter.program(&bench.machine).is_err() {
                    let refused = match combine {
                        Combine::Last => false,
                        Combine::Add | Combine::Min | Combine::Max => element == Element::Bool,
                        Combine::And | Combine::Or | Combine::Xor => element.is_float(),
                    };
                    assert!(refused, "{element}, {combine:?}");
                    continue;
                }
                tried += 1;
                for (size, count) in [(0u64, 5u64), (7, 0), (3000, 40), (100, 2000)] {
                    let mut random = Random(size + count);
                    let places: Vec<i32> = (0..size).map(|_| random.below(count + 4) as i32 - 2).collect();
                    let (mut values, mut base) = (random.values(element, size), random.values(element, count));
                    if element.is_float() {
                        for list in [&mut values, &mut base] {
                            let step = list.len() / 5 + 1;
                            list.iter_mut().step_by(step).for_each(|x| *x = Literal::from_f64(element, f64::NAN).unwrap());
                        }
                    }
                    let mut expected = base.clone();
                    for (place, value) in places.iter().zip(&values) {
                        if let Some(held) = usize::try_from(*place).ok().and_then(|place| expected.get_mut(place)) {
                            *held = combined(combine, element, *held, *value);
                        }
                    }
                    let places: Vec<Literal> = places.into_iter().map(Literal::from).collect();
                    let inputs = [places, values, base];
                    let given = Given { inputs: &inputs, sizes: &[size, count], ..Given::default() };
                    let results = run(&bench, &Pattern::from(scatter.clone()), &given).concat();
                    let same = |(a, b): (&Literal, &Literal)| a == b || (a.is_nan() && b.is_nan());
                    assert!(
                        results.len() == expected.len() && results.iter().zip(&expected).all(same),
                        "{name}, {element}, {combine:?}, {size}"
                    );
                }
            }
        }
    }
    assert_eq!(tried, 2 * (12 + 3 * 11 + 3 * 9) + (7 + 4));
}
