//! Reductions along all axes, with all spreads.

use crate::support::{Given, Literals, Random, benches, identity, joining, line, run, sizes, strided, strides};
use broadloom_scalar::{AccessorKind, Builder, Element, Literal, Type};
use broadloom_skeleton::{Domain, Operator, Pattern, ReadSteps, Reduce, Sink, Source, Spread};

/// Combines the values in order.
fn fold(operator: &Operator, values: impl Iterator<Item = Vec<Literal>>) -> Vec<Literal> {
    let combine = |sum: Vec<Literal>, next: Vec<Literal>| operator.function().evaluate(&[sum, next].concat()).unwrap();
    values.fold(operator.identity().to_vec(), combine)
}

fn spreads() -> Vec<Spread> {
    let flags = [false, true];
    let all = flags.iter().flat_map(|along_kept| flags.iter().map(move |split| (*along_kept, *split)));
    let rows = [[1, 1], [1, 3], [2, 2]];
    all.flat_map(|(along_kept, split)| flags.map(|blocks| Spread { along_kept, blocks, split, ..Spread::default() }))
        .filter(|spread| !(spread.along_kept && spread.blocks))
        .flat_map(|spread| rows.map(|rows| Spread { rows, ..spread }))
        .filter(|spread| spread.along_kept || spread.rows == [1, 1])
        .flat_map(further)
        .collect()
}

/// Returns a spread with the numbers that apply to it: columns of lanes and groups of threads along kept
/// positions, few elements of a thread and few lanes of a result along reduced ones.
fn further(spread: Spread) -> Vec<Spread> {
    match (spread.along_kept, spread.rows) {
        (true, [1, 1]) => {
            vec![spread, Spread { columns: 1, ..spread }, Spread { columns: 3, ..spread }, Spread { groups: 8, ..spread }]
        }
        (true, _) => vec![Spread { columns: 1, ..spread }],
        (false, _) if spread.blocks => vec![spread, Spread { items: 1, ..spread }],
        (false, _) => vec![spread, Spread { items: 1, ..spread }, Spread { items: 4, lanes: 8, ..spread }],
    }
}

#[test]
fn spreads_have_numbers() {
    for spread in spreads() {
        assert_eq!(Spread::from_number(spread.number()), spread);
    }
}

/// Lanes work along the axis along which the elements of inputs are neighbours, in whichever order the axes
/// of the domain are.
#[test]
fn lanes_follow_memory() {
    for (name, bench) in benches() {
        let source = |of_row: Option<i64>, of_column: Option<i64>| {
            let f = Builder::function("some");
            let (i, j) = (f.parameter("i", Type::I32), f.parameter("j", Type::I32));
            let stride = f.parameter("stride", Type::I32);
            let input = f.accessor("input", AccessorKind::Input, Type::F32, 1);
            let along = |index, by: Option<i64>| match by {
                Some(by) => f.mul(index, by as i32),
                None => f.mul(index, stride),
            };
            let place = f.add(along(i, of_row), along(j, of_column));
            Source::new(f.finish_function(&[f.read(input, &[place.into()])]).unwrap(), 2).unwrap()
        };
        let (rows, columns) = (ReadSteps::of(&source(None, Some(1))), ReadSteps::of(&source(Some(1), None)));
        let spread =
            |sizes: [u64; 2], reduced: [bool; 2], reads| Spread::for_reads(&bench.machine, &sizes, &reduced, Some(reads));
        // Sums of columns of a matrix with few columns, as it is and transposed.
        assert!(spread([100_000, 31], [true, false], &rows).along_kept, "{name}");
        assert!(spread([31, 100_000], [false, true], &columns).along_kept, "{name}");
        // Sums of rows, as it is and transposed.
        assert!(!spread([31, 100_000], [false, true], &rows).along_kept, "{name}");
        assert!(!spread([100_000, 310], [true, false], &columns).along_kept, "{name}");
    }
}

#[test]
fn all_types_and_sizes() {
    for (name, bench) in benches() {
        for element in Element::ALL {
            // The interpreter runs the programs of GPUs for all types.
            if name == "cpu as a gpu" && !matches!(element, Element::Bool | Element::I8 | Element::F16 | Element::F64) {
                continue;
            }
            let mut operators = vec![Operator::sum(element)];
            if matches!(element, Element::Bool | Element::I8 | Element::U64 | Element::F16 | Element::F64) {
                operators.extend([Operator::min(element), Operator::max(element)]);
            }
            if matches!(element, Element::Bool | Element::U16) {
                operators.push(Operator::product(element));
            }
            for operator in operators {
                let operator = operator.unwrap();
                // Sums of larger numbers of halves are not exact.
                let sizes: &[u64] = if element == Element::F16 { &[0, 1, 33, 200] } else { &[0, 1, 33, 2049, 20011] };
                for size in sizes {
                    let size = if name == "interp" { size.min(&5000) } else { size };
                    let spread = Spread::of(&bench.machine, &[*size], &[true]);
                    let reduce = Reduce {
                        domain: Domain::LINE,
                        reduced: vec![true],
                        source: identity(element),
                        operator: operator.clone(),
                        sink: Sink::STORE,
                        spread,
                    };
                    let input = Random(*size).values(element, *size);
                    let expected = fold(&operator, input.iter().map(|value| vec![*value]));
                    for shifted in [0, element.bytes() as usize] {
                        let inputs = [input.clone()];
                        let given = Given { inputs: &inputs, sizes: &[*size], shifted, ..Given::default() };
                        let results = run(&bench, &Pattern::from(reduce.clone()), &given);
                        assert_eq!(results.concat(), expected, "{name}, {}, {element}, {size}", operator.function().name());
                    }
                }
            }
        }
    }
}

/// Every subset of axes, with every spread.
#[test]
fn any_axes() {
    // Rows that are longer than a warp's tile.
    let long: &[u64] = &[19, 2, 4, 130];
    let shapes: [&[u64]; 10] =
        [&[], &[130], &[7, 40], &[40, 7], &[300, 3], &[0, 5], &[3, 4, 35], &[2, 3, 4, 5], &[3, 2, 1, 2, 33], long];
    for (name, bench) in benches() {
        for shape in shapes {
            // The interpreter runs the programs of GPUs on all shapes.
            if name == "cpu as a gpu" && shape.len() > 2 || name != "cpu" && shape == long {
                continue;
            }
            let (strides, source) = (strides(shape), strided(shape.len(), Type::I32, Element::I64));
            let count: u64 = shape.iter().product();
            let input = Random(count).values(Element::I64, count);
            for subset in 0..1u32 << shape.len() {
                // For four axes and more, every fifth subset. For long rows, one subset with reduced axes
                // before and after a kept one.
                if shape.len() > 3 && !subset.is_multiple_of(5) || shape == long && subset != 5 {
                    continue;
                }
                let reduced: Vec<bool> = (0..shape.len()).map(|axis| subset >> axis & 1 == 1).collect();
                let kept: u64 = shape.iter().zip(&reduced).filter(|(_, reduced)| !**reduced).map(|(n, _)| n).product();
                let mut expected = vec![0i64; kept as usize];
                for linear in 0..count {
                    let mut place = 0;
                    for axis in 0..shape.len() {
                        if !reduced[axis] {
                            place = place * shape[axis] + linear / strides[axis] % shape[axis];
                        }
                    }
                    let sum = &mut expected[place as usize];
                    *sum = sum.wrapping_add(input[linear as usize].as_i128().unwrap() as i64);
                }
                let expected: Vec<Literal> = expected.into_iter().map(Literal::from).collect();
                let mut ways = if [[7, 40].as_slice(), &[3, 4, 35]].contains(&shape) { spreads() } else { vec![] };
                if shape == long {
                    ways.push(Spread { along_kept: true, split: true, ..Spread::default() });
                }
                ways.push(Spread::of(&bench.machine, shape, &reduced));
                for spread in ways {
                    let reduce = Reduce {
                        domain: Domain::of(shape),
                        reduced: reduced.clone(),
                        source: source.clone(),
                        operator: Operator::sum(Element::I64).unwrap(),
                        sink: Sink::STORE,
                        spread,
                    };
                    let scalars: Vec<Literal> = strides.iter().map(|stride| Literal::from(*stride as i32)).collect();
                    let given =
                        Given { inputs: std::slice::from_ref(&input), scalars: &scalars, sizes: shape, ..Given::default() };
                    let results = run(&bench, &Pattern::from(reduce), &given);
                    assert_eq!(results.concat(), expected, "{name}, {shape:?} reduced {reduced:?}, {spread:?}");
                }
            }
        }
    }
}

/// Numbers joined digit by digit: the order matters, and there are two values.
#[test]
fn the_order_of_elements_is_kept() {
    let join = joining();
    let source = line("digit", Element::U32, |f, _, x| vec![x, f.constant(Type::U32, 37)]);
    for (name, bench) in benches() {
        for size in sizes(name, &[0, 1, 2, 255, 256, 257, 2047, 2049, 9000, 33000], 4100) {
            let input = Random(size).values(Element::U32, size);
            let expected = fold(&join, input.iter().map(|x| vec![*x, 37u32.into()]));
            for spread in spreads().into_iter().filter(|spread| spread.lanes == 0) {
                let reduce = Reduce {
                    domain: Domain::LINE,
                    reduced: vec![true],
                    source: source.clone(),
                    operator: join.clone(),
                    sink: Sink::STORE,
                    spread,
                };
                let given = Given { inputs: std::slice::from_ref(&input), sizes: &[size], ..Given::default() };
                let results = run(&bench, &Pattern::from(reduce), &given);
                assert_eq!(results.concat(), expected, "{name}, {size}, {spread:?}");
            }
        }
    }
}

/// The minimum and maximum of each row with their places, a sum, and a sink that uses them all.
#[test]
fn several_at_once() {
    let operator = Operator::all(&[
        Operator::arg_min(Element::F32, Element::I32).unwrap(),
        Operator::arg_max(Element::F32, Element::I32).unwrap(),
        Operator::sum(Element::F32).unwrap(),
    ])
    .unwrap();
    let f = Builder::function("row");
    let (i, j, columns) = (f.parameter("i", Type::I32), f.parameter("j", Type::I32), f.parameter("columns", Type::I32));
    let x = f.accessor("x", AccessorKind::Input, Type::F32, 1);
    let value = f.read(x, &[f.add(f.mul(i, columns), j).into()]);
    let number = f.select(f.is_nan(value), 0.0, value);
    let source = Source::new(f.finish_function(&[value, j, value, j, number]).unwrap(), 2).unwrap();
    let g = Builder::function("summary");
    let i = g.parameter("i", Type::I32);
    let (low, at_low) = (g.parameter("low", Type::F32), g.parameter("at_low", Type::I32));
    let (_, at_high) = (g.parameter("high", Type::F32), g.parameter("at_high", Type::I32));
    let (sum, scale) = (g.parameter("sum", Type::F32), g.parameter("scale", Type::F32));
    let results = [low, at_low, at_high, g.mul(sum, scale), i];
    let sink = Sink::new(g.finish_function(&results).unwrap(), 1, 5).unwrap();
    for (name, bench) in benches() {
        for (rows, columns) in [(1u64, 5000u64), (3, 77), (40, 40), (200, 9), (2, 20000)] {
            let columns = if name == "interp" { columns.min(3000) } else { columns };
            let mut random = Random(rows * columns);
            let mut numbers: Vec<f32> = (0..rows * columns).map(|_| random.below(1000) as f32 - 500.0).collect();
            numbers[1] = f32::NAN;
            let mut expected = vec![vec![]; 5];
            for (row, numbers) in numbers.chunks(columns as usize).enumerate() {
                let (mut low, mut high) = ((f32::INFINITY, 0), (f32::NEG_INFINITY, 0));
                let mut sum = 0.0;
                for (place, x) in numbers.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
                    low = if *x < low.0 { (*x, place as i32) } else { low };
                    high = if *x > high.0 { (*x, place as i32) } else { high };
                    sum += x;
                }
                let row = [low.0.into(), low.1.into(), high.1.into(), (sum * 0.5).into(), Literal::from(row as i32)];
                expected.iter_mut().zip(row).for_each(|(list, value)| list.push(value));
            }
            let reduced = vec![false, true];
            let reduce = Reduce {
                domain: Domain::of(&[rows, columns]),
                spread: Spread::of(&bench.machine, &[rows, columns], &reduced),
                reduced,
                source: source.clone(),
                operator: operator.clone(),
                sink: sink.clone(),
            };
            let input: Vec<Literal> = numbers.iter().map(|x| Literal::from(*x)).collect();
            let scalars = [Literal::from(columns as i32), 0.5f32.into()];
            let given = Given { inputs: &[input], scalars: &scalars, sizes: &[rows, columns], ..Given::default() };
            assert_eq!(run(&bench, &Pattern::from(reduce), &given), expected, "{name}, {rows}×{columns}");
        }
    }
}

/// Sums of floats have the same bits in every run, at any address of the buffer.
#[test]
fn sums_of_floats_repeat() {
    let mut random = Random(5);
    let input: Vec<Literal> = (0..30011).map(|_| Literal::from(random.below(1 << 24) as f32 / 1e6)).collect();
    let exact: f64 = input.iter().map(|x| x.as_f64().unwrap()).sum();
    for (name, bench) in benches() {
        let spread = Spread::of(&bench.machine, &[input.len() as u64], &[true]);
        let operator = Operator::sum(Element::F32).unwrap();
        let (source, sink) = (identity(Element::F32), Sink::STORE);
        let reduce = Pattern::from(Reduce { domain: Domain::LINE, reduced: vec![true], source, operator, sink, spread });
        let inputs = [input.clone()];
        let mut seen = vec![];
        for shifted in [0, 4, 8, 0, 16] {
            let given = Given { inputs: &inputs, sizes: &[30011], shifted, ..Given::default() };
            seen.push(run(&bench, &reduce, &given)[0][0]);
        }
        assert!(seen.iter().all(|sum| *sum == seen[0]), "{name}: {seen:?}");
        let error = (seen[0].as_f64().unwrap() - exact).abs() / exact;
        assert!(error < 1e-6, "{name}: {error}");
    }
}

/// Rows of a matrix are far apart. On a CPU a reduction prefetches later rows, unless it computes so much
/// that memory is faster.
#[test]
fn rows_are_asked_for_before_they_are_reduced() {
    for (name, bench) in benches() {
        for (steps, small) in [(1, true), (400, false)] {
            let f = Builder::function("some");
            let (i, j) = (f.parameter("i", Type::I32), f.parameter("j", Type::I32));
            let input = f.accessor("input", AccessorKind::Input, Type::U32, 1);
            let mut value = f.read(input, &[f.add(f.mul(i, 64), j).into()]);
            for step in 0..steps {
                value = f.add(f.mul(value, value), step);
            }
            let source = Source::new(f.finish_function(&[value]).unwrap(), 2).unwrap();
            let (domain, reduced, sink) = (Domain::of(&[100, 64]), vec![true, false], Sink::STORE);
            let operator = Operator::sum(Element::U32).unwrap();
            let spread = Spread { along_kept: true, columns: 2, ..Spread::default() };
            let reduce = Reduce { domain, reduced, source, operator, sink, spread };
            let text = reduce.program(&bench.machine).unwrap().kernels[0].to_string();
            assert_eq!(text.contains("prefetch"), name == "cpu" && small, "{name}: {text}");
        }
    }
}
