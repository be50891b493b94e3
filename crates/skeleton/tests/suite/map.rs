//! Maps over domains of all shapes.

use crate::support::{Given, Literals, Random, benches, identity, run};
use broadloom_scalar::{AccessorKind, Builder, Element, Literal, Operand, Type};
use broadloom_skeleton::{Domain, Map, Pattern, Sink, Source};

const SIZES: [u64; 9] = [0, 1, 3, 31, 257, 1024, 4096, 5003, 20001];

#[test]
fn all_types_all_sizes_aligned_or_not() {
    for (name, bench) in benches() {
        for element in Element::ALL {
            let map = Pattern::from(Map { domain: Domain::LINE, source: identity(element), sink: Sink::STORE });
            for size in SIZES {
                for shifted in [0, element.bytes() as usize] {
                    let input = Random(size).values(element, size);
                    let inputs = [input.clone()];
                    let results = run(&bench, &map, &Given { inputs: &inputs, sizes: &[size], shifted, ..Given::default() });
                    assert_eq!(results, [input], "{name}, {element}, {size} shifted by {shifted}");
                }
            }
        }
        assert_eq!(bench.len(), Element::ALL.len(), "sizes compile nothing");
    }
}

#[test]
fn several_inputs_outputs_and_scalars_of_mixed_types() {
    let f = Builder::function("mixed");
    let (i, scale, bias) = (f.parameter("i", Type::I32), f.parameter("scale", Type::F32), f.parameter("bias", Type::I64));
    let bytes = f.accessor("bytes", AccessorKind::Input, Type::U8, 1);
    let doubles = f.accessor("doubles", AccessorKind::Input, Type::F64, 1);
    let byte = f.read(bytes, &[i.into()]);
    // The first input is also read at another place.
    let first = f.read(bytes, &[0.into()]);
    let sum = f.add(f.mul(f.convert(byte, Type::F32), scale), f.convert(first, Type::F32));
    let wide = f.add(f.convert(f.read(doubles, &[i.into()]), Type::I64), bias);
    let even = f.eq(f.and(i, 1), 0);
    let mixed = Source::new(f.finish_function(&[sum, wide, even]).unwrap(), 1).unwrap();

    // The sink adds its own input and writes its values in reverse order.
    let g = Builder::function("reverse");
    let (i, x) = (g.parameter("i", Type::I32), g.parameter("x", Type::F32));
    let (wide, even) = (g.parameter("wide", Type::I64), g.parameter("even", Type::BOOL));
    let last = g.parameter("last", Type::I32);
    let extra = g.accessor("extra", AccessorKind::Input, Type::I16, 1);
    let reversed = g.accessor("reversed", AccessorKind::Output, Type::F32, 1);
    g.write(reversed, &[g.sub(last, i).into()], x);
    let sum = g.add(wide, g.convert(g.read(extra, &[i.into()]), Type::I64));
    let sink = Sink::new(g.finish_function(&[sum, even]).unwrap(), 1, 3).unwrap();
    let map = Pattern::from(Map { domain: Domain::LINE, source: mixed.clone(), sink });
    let plain = Pattern::from(Map { domain: Domain::LINE, source: mixed, sink: Sink::STORE });
    for (name, bench) in benches() {
        for size in SIZES {
            let mut random = Random(size);
            let bytes: Vec<u8> = (0..size).map(|_| random.bits() as u8).collect();
            let doubles: Vec<f64> = (0..size).map(|_| random.below(1 << 20) as f64 - 1000.5).collect();
            let extra: Vec<i16> = (0..size).map(|_| random.bits() as i16).collect();
            let literals = [
                bytes.iter().map(|x| Literal::from(*x)).collect(),
                doubles.iter().map(|x| Literal::from(*x)).collect(),
                extra.iter().map(|x| Literal::from(*x)).collect::<Vec<Literal>>(),
            ];
            let scalars = [Literal::from(0.5f32), 7i64.into(), (size as i32 - 1).into()];
            let sums: Vec<f32> = bytes.iter().map(|x| f32::from(*x) * 0.5 + f32::from(bytes[0])).collect();
            let wide: Vec<i64> = doubles.iter().map(|x| *x as i64 + 7).collect();
            let even: Vec<Literal> = (0..size).map(|i| (i % 2 == 0).into()).collect();
            let list = |values: &[f32]| values.iter().map(|x| Literal::from(*x)).collect::<Vec<_>>();
            let longs = |values: Vec<i64>| values.into_iter().map(Literal::from).collect::<Vec<_>>();

            let given = Given { inputs: &literals[..2], scalars: &scalars[..2], sizes: &[size], ..Given::default() };
            let results = run(&bench, &plain, &given);
            assert_eq!(results, [list(&sums), longs(wide.clone()), even.clone()], "{name}, {size}");

            let given = Given { inputs: &literals, scalars: &scalars, sizes: &[size], least: size, ..Given::default() };
            let results = run(&bench, &map, &given);
            let added = wide.iter().zip(&extra).map(|(x, y)| x + i64::from(*y)).collect();
            let backwards: Vec<f32> = sums.iter().rev().copied().collect();
            assert_eq!(results, [longs(added), even, list(&backwards)], "{name}, {size}");
        }
    }
}

/// Positions of up to six axes, with long and short last axes, as numbers with three decimal digits per axis.
#[test]
fn positions_of_many_axes() {
    let shapes: [&[u64]; 16] = [
        &[],
        &[7],
        &[3, 5],
        &[5, 40],
        &[2, 5000],
        &[300, 33],
        &[4, 0],
        &[0, 64],
        &[2, 3, 4],
        &[3, 2, 100],
        &[100, 3, 1],
        &[2, 3, 2, 3],
        &[2, 1, 3, 65],
        &[2, 3, 2, 2, 3],
        &[2, 1, 3, 2, 33],
        &[2, 1, 3, 2, 2, 37],
    ];
    for (name, bench) in benches() {
        for index in [Type::I32, Type::U32, Type::I64, Type::U64] {
            for shape in shapes {
                let f = Builder::function("digits");
                let position: Vec<_> = shape.iter().map(|_| f.parameter("i", index)).collect();
                let input = f.accessor("input", AccessorKind::Input, Type::U8, 1);
                let mut number = f.constant(Type::I64, 1);
                for i in &position {
                    number = f.add(f.mul(number, 1000), f.convert(*i, Type::I64));
                }
                let first = position.first().map_or(Operand::from(0), Operand::from);
                let byte = f.read(input, &[first]);
                let digits = Source::new(f.finish_function(&[number, byte]).unwrap(), shape.len()).unwrap();
                let map = Pattern::from(Map { domain: Domain::of(shape), source: digits, sink: Sink::STORE });
                let input: Vec<Literal> = (0..shape.first().copied().unwrap_or(1)).map(|i| Literal::from(i as u8)).collect();
                let results = run(&bench, &map, &Given { inputs: &[input], sizes: shape, ..Given::default() });
                let count: u64 = shape.iter().product();
                let expected = |linear: u64| {
                    let (mut rest, mut number, mut scale, mut first) = (linear, 0, 1, 0);
                    for length in shape.iter().rev() {
                        first = rest % length;
                        number += (first * scale) as i64;
                        rest /= length;
                        scale *= 1000;
                    }
                    (number + scale as i64, first)
                };
                let numbers: Vec<Literal> = (0..count).map(|i| expected(i).0.into()).collect();
                let bytes: Vec<Literal> = (0..count).map(|i| (expected(i).1 as u8).into()).collect();
                assert_eq!(results, [numbers, bytes], "{name}, {shape:?}, {index}");
            }
        }
    }
}

#[test]
fn small_vectors_are_elements() {
    let f = Builder::function("negate");
    let i = f.parameter("i", Type::I32);
    let ty = Type::vector(Element::F32, 4).unwrap();
    let input = f.accessor("input", AccessorKind::Input, ty, 1);
    let negated = f.neg(f.read(input, &[i.into()]));
    let source = Source::new(f.finish_function(&[negated]).unwrap(), 1).unwrap();
    let map = Pattern::from(Map { domain: Domain::LINE, source, sink: Sink::STORE });
    for (name, bench) in benches() {
        for size in SIZES {
            let input: Vec<Literal> = (0..size * 4).map(|i| Literal::from(i as f32)).collect();
            let expected: Vec<Literal> = (0..size * 4).map(|i| Literal::from(-(i as f32))).collect();
            let results = run(&bench, &map, &Given { inputs: &[input], sizes: &[size], ..Given::default() });
            assert_eq!(results, [expected], "{name}, {size}");
        }
    }
}

/// A buffer that is shorter than the line, read only where it has elements. Wide loads do not read beyond its
/// end.
#[test]
fn what_is_read_under_a_condition_is_read_nowhere_else() {
    let f = Builder::function("padded");
    let (i, length) = (f.parameter("i", Type::I32), f.parameter("length", Type::I32));
    let x = f.accessor("x", AccessorKind::Input, Type::I32, 1);
    let padded = f.choose(f.lt(i, length), || f.read(x, &[i.into()]), || f.literal(-1i32));
    let source = Source::new(f.finish_function(&[padded]).unwrap(), 1).unwrap();
    let map = Pattern::from(Map { domain: Domain::LINE, source, sink: Sink::STORE });
    for (name, bench) in benches() {
        for (length, size) in [(1025u64, 5003u64), (3001, 4096), (1, 2048)] {
            let values = Random(size).values(Element::I32, length);
            let expected: Vec<Literal> = (0..size as usize).map(|i| values.get(i).copied().unwrap_or((-1i32).into())).collect();
            let given = Given { inputs: &[values], scalars: &[(length as i32).into()], sizes: &[size], ..Given::default() };
            assert_eq!(run(&bench, &map, &given), [expected], "{name}, {length} of {size}");
        }
    }
}
