//! Values sent to places, of all types and with all ways to combine them.

use crate::support::{Given, Literals, Random, benches, identity, run};
use broadloom_scalar::{AccessorKind, Builder, Element, Literal, Type};
use broadloom_skeleton::{Combine, Domain, Pattern, Scatter, ScatterTables, Sink, Source};

fn combined(combine: Option<&Combine>, element: Element, a: Literal, b: Literal) -> Literal {
    let integers = |f: fn(i128, i128) -> i128| Literal::from_i128(element, f(a.as_i128().unwrap(), b.as_i128().unwrap()));
    match combine {
        None => b,
        Some(Combine::Sum) => match (a.as_f64(), b.as_f64()) {
            (Some(x), Some(y)) => Literal::from_f64(element, x + y).unwrap(),
            _ => integers(|a, b| a + b),
        },
        Some(Combine::All) => integers(|a, b| a & b),
        Some(Combine::Any) => integers(|a, b| a | b),
        Some(Combine::Odd) => integers(|a, b| a ^ b),
        Some(Combine::Product | Combine::By(_)) => unreachable!("there is no such scatter"),
        Some(Combine::Min | Combine::Max) => match (a.as_f64(), b.as_f64()) {
            (Some(x), Some(y)) if x.is_nan() || y.is_nan() => {
                if x.is_nan() {
                    b
                } else {
                    a
                }
            }
            (Some(x), Some(y)) => {
                if x.total_cmp(&y).is_le() == (combine == Some(&Combine::Min)) {
                    a
                } else {
                    b
                }
            }
            _ => integers(if combine == Some(&Combine::Min) { i128::min } else { i128::max }),
        },
    }
}

#[test]
fn all_types_and_ways() {
    let ways = [Combine::Sum, Combine::Min, Combine::Max, Combine::All, Combine::Any, Combine::Odd];
    let ways: Vec<Option<Combine>> = std::iter::once(None).chain(ways.map(Some)).collect();
    let mut tried = 0;
    for (name, bench) in benches() {
        for element in Element::ALL {
            for combine in &ways {
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
                let scatter = Scatter {
                    domain: Domain::LINE,
                    source,
                    base: identity(element),
                    combine: combine.clone(),
                    sink: Sink::STORE,
                    tables: ScatterTables::Common,
                };
                // Blocks with tables of their own, of few and of all places.
                let has_tables = name == "cpu" && matches!(element, Element::U8 | Element::I64 | Element::F16 | Element::F32);
                let mut tables = vec![ScatterTables::Common];
                if has_tables {
                    tables.extend([ScatterTables::Shared(16), ScatterTables::Own]);
                }
                if scatter.program(&bench.machine).is_err() {
                    let refused = match combine {
                        Some(Combine::Sum | Combine::Min | Combine::Max) => element == Element::Bool,
                        Some(Combine::All | Combine::Any | Combine::Odd) => element.is_float(),
                        None | Some(Combine::Product | Combine::By(_)) => false,
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
                            *held = combined(combine.as_ref(), element, *held, *value);
                        }
                    }
                    let places: Vec<Literal> = places.into_iter().map(Literal::from).collect();
                    let inputs = [places, values, base];
                    let given = Given { inputs: &inputs, sizes: &[size, count], ..Given::default() };
                    for tables in &tables {
                        let scatter = Scatter { tables: *tables, ..scatter.clone() };
                        let results = run(&bench, &Pattern::from(scatter), &given).concat();
                        let same = |(a, b): (&Literal, &Literal)| a == b || (a.is_nan() && b.is_nan());
                        assert!(
                            results.len() == expected.len() && results.iter().zip(&expected).all(same),
                            "{name}, {element}, {combine:?}, {size}, {tables:?}"
                        );
                    }
                }
            }
        }
    }
    assert_eq!(tried, 2 * (12 + 3 * 11 + 3 * 9) + (7 + 4));
}
