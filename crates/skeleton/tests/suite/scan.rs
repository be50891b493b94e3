//! Scans along all axes, with all spreads.

use crate::support::{Given, Literals, Random, benches, h200, identity, joining, line, run, strided, strides};
use broadloom_scalar::{Builder, Element, Literal, Type};
use broadloom_skeleton::Call;
use broadloom_skeleton::{Domain, Operator, Pattern, Scan, ScanSpread, Sink};

/// Returns the expected scan of a line.
fn prefixes(operator: &Operator, values: &[Vec<Literal>], inclusive: bool) -> Vec<Vec<Literal>> {
    let mut sum = operator.identity().to_vec();
    let step = |own: &Vec<Literal>| {
        let before = sum.clone();
        sum = operator.function().evaluate(&[sum.clone(), own.clone()].concat()).unwrap();
        if inclusive { sum.clone() } else { before }
    };
    values.iter().map(step).collect()
}

fn spreads() -> Vec<ScanSpread> {
    [false, true].into_iter().flat_map(|split| [false, true].map(|along_axis| ScanSpread { along_axis, split })).collect()
}

#[test]
fn all_types_and_sizes() {
    for (name, bench) in benches() {
        for element in Element::ALL {
            // The interpreter runs the programs of GPUs for all types.
            if name == "cpu as a gpu" && !matches!(element, Element::Bool | Element::I8 | Element::F16 | Element::F64) {
                continue;
            }
            for inclusive in if element.is_float() { vec![true] } else { vec![false, true] } {
                let operator = Operator::sum(element).unwrap();
                let sizes: &[u64] = if element == Element::F16 { &[0, 1, 200] } else { &[0, 1, 32, 1025, 4099, 20011] };
                for size in sizes {
                    let size = if name == "interp" { size.min(&5000) } else { size };
                    let scan = Scan {
                        domain: Domain::LINE,
                        axis: 0,
                        source: identity(element),
                        operator: operator.clone(),
                        inclusive,
                        sink: Sink::STORE,
                        spread: ScanSpread::of(&bench.machine, &[*size], 0),
                    };
                    let input = Random(*size).values(element, *size);
                    let values: Vec<Vec<Literal>> = input.iter().map(|x| vec![*x]).collect();
                    let expected = prefixes(&operator, &values, inclusive).concat();
                    let given = Given { inputs: &[input], sizes: &[*size], ..Given::default() };
                    let results = run(&bench, &Pattern::from(scan), &given).concat();
                    assert!(results == expected, "{name}, {element}, {size}, inclusive: {inclusive}");
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
        for size in [0, 1, 2, 255, 257, 2047, 4097, 33000] {
            let size = if name == "interp" { size.min(4100) } else { size };
            let input = Random(size).values(Element::U32, size);
            let values: Vec<Vec<Literal>> = input.iter().map(|x| vec![*x, 37u32.into()]).collect();
            for spread in spreads() {
                let expected = prefixes(&join, &values, spread.split);
                let scan = Scan {
                    domain: Domain::LINE,
                    axis: 0,
                    source: source.clone(),
                    operator: join.clone(),
                    inclusive: spread.split,
                    sink: Sink::STORE,
                    spread,
                };
                let given = Given { inputs: std::slice::from_ref(&input), sizes: &[size], ..Given::default() };
                let results = run(&bench, &Pattern::from(scan), &given);
                let both = results[0].iter().zip(&results[1]).map(|(a, m)| vec![*a, *m]);
                assert!(both.eq(expected), "{name}, {size}, {spread:?}");
            }
        }
    }
}

#[test]
fn any_axis() {
    let shapes: [&[u64]; 8] = [&[130], &[7, 40], &[40, 7], &[3000, 3], &[0, 5], &[3, 70, 35], &[2, 5, 4, 9], &[2, 3, 2, 5, 33]];
    for (name, bench) in benches() {
        for shape in shapes {
            // The interpreter runs the programs of GPUs on all shapes.
            if name == "cpu as a gpu" && shape.len() > 2 {
                continue;
            }
            // A block of these programs has one line of any length, so the interpreter takes fewer lines.
            let shape = if name == "interp" && shape == [3000, 3] { &[400, 3] } else { shape };
            let (strides, source) = (strides(shape), strided(shape.len(), Type::I64, Element::I32));
            // The sink subtracts the last index.
            let g = Builder::function("less");
            let position: Vec<_> = shape.iter().map(|_| g.parameter("i", Type::I64)).collect();
            let sum = g.parameter("sum", Type::I32);
            let less = g.sub(sum, g.convert(*position.last().unwrap(), Type::I32));
            let sink = Sink::new(g.finish_function(&[less]).unwrap(), shape.len(), 1).unwrap();
            let count: u64 = shape.iter().product();
            let input = Random(count).values(Element::I32, count);
            let number = |place: u64| input[place as usize].as_i128().unwrap() as i32;
            for axis in 0..shape.len() {
                let (stride, length) = (strides[axis], shape[axis]);
                let expected: Vec<Literal> = (0..count)
                    .map(|place| {
                        let start = place - place / stride % length * stride;
                        let sum =
                            (start..=place).step_by(stride as usize).fold(0i32, |sum, place| sum.wrapping_add(number(place)));
                        sum.wrapping_sub((place % shape[shape.len() - 1]) as i32).into()
                    })
                    .collect();
                let mut ways = if shape.len() < 3 { spreads() } else { vec![] };
                ways.push(ScanSpread::of(&bench.machine, shape, axis));
                for spread in ways {
                    let scan = Scan {
                        domain: Domain::of(shape),
                        axis,
                        source: source.clone(),
                        operator: Operator::sum(Element::I32).unwrap(),
                        inclusive: true,
                        sink: sink.clone(),
                        spread,
                    };
                    let scalars: Vec<Literal> = strides.iter().map(|stride| Literal::from(*stride as i64)).collect();
                    let given =
                        Given { inputs: std::slice::from_ref(&input), scalars: &scalars, sizes: shape, ..Given::default() };
                    let results = run(&bench, &Pattern::from(scan), &given);
                    assert!(results.concat() == expected, "{name}, {shape:?} along {axis}, {spread:?}");
                }
            }
        }
    }
}

/// More tiles than a group or a range has. Sums of floats are equal in every run, and near the exact ones.
#[test]
fn long_lines() {
    let bench = h200();
    let size = 4_400_003;
    let scan = |element: Element, inclusive: bool| Scan {
        domain: Domain::LINE,
        axis: 0,
        source: identity(element),
        operator: Operator::sum(element).unwrap(),
        inclusive,
        sink: Sink::STORE,
        spread: ScanSpread::of(&bench.machine, &[size], 0),
    };
    let mut random = Random(3);
    let integers: Vec<i32> = (0..size).map(|_| random.bits() as i32).collect();
    let input = bench.device.upload(&integers).unwrap();
    let output = bench.device.allocate::<i32>(size as usize).unwrap();
    let (inputs, outputs) = ([input.view().unwrap()], [output.view().unwrap()]);
    let call = Call { inputs: &inputs, outputs: &outputs, sizes: &[size], ..Call::default() };
    let program = bench.get(&scan(Element::I32, false).into());
    assert_eq!(program.program().steps.len(), 1, "one pass");
    program.run(&call).unwrap();
    let mut sum = 0i32;
    let exact = output.read().unwrap().into_iter().zip(&integers).all(|(result, x)| {
        let before = sum;
        sum = sum.wrapping_add(*x);
        result == before
    });
    assert!(exact);

    let floats: Vec<f32> = integers.iter().map(|x| *x as f32 / 2f32.powi(33)).collect();
    let input = bench.device.upload(&floats).unwrap();
    let inputs = [input.view().unwrap()];
    let call = Call { inputs: &inputs, ..call };
    let program = bench.get(&scan(Element::F32, true).into());
    let mut runs = (0..3).map(|_| {
        program.run(&call).unwrap();
        output.read().unwrap()
    });
    let first = runs.next().unwrap();
    assert!(runs.all(|bits| bits == first));
    let mut sum = 0.0;
    for (bits, x) in first.into_iter().zip(&floats) {
        sum += f64::from(*x);
        assert!((f64::from(f32::from_bits(bits as u32)) - sum).abs() < 1e-2);
    }
}
