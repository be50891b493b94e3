//! Pack, partition, histogram, transpose, random numbers.

use crate::support::{Given, Literals, Random, benches, line, run, sizes};
use broadloom_scalar::{AccessorKind, Builder, Element, Literal, Type};
use broadloom_skeleton::{Domain, Histogram, Map, Pack, Pattern, Sink, Source, Transpose, random};

#[test]
fn pack_and_partition() {
    for (name, bench) in benches() {
        for element in [Element::U8, Element::I16, Element::I32, Element::F64] {
            for rest in [false, true] {
                // Positions with even values, and their indices.
                let source = line("even", element, |f, i, x| {
                    let bits = f.convert(x, Type::I64);
                    vec![f.eq(f.and(bits, 1), 0), x, i]
                });
                let pack = Pattern::from(Pack { source, sink: Sink::STORE, rest });
                // The last size has more tiles than a warp sees at once.
                for size in sizes(name, &[0, 1, 31, 33, 2048, 2049, 9001, 70001, 600_001], 6001) {
                    let input = Random(size).values(element, size);
                    let even = |x: &Literal| match x.as_f64() {
                        Some(x) => x as i64 % 2 == 0,
                        None => x.as_i128().unwrap() % 2 == 0,
                    };
                    let (mut chosen, others): (Vec<_>, Vec<_>) =
                        input.iter().enumerate().map(|(i, x)| (*x, Literal::from(i as i32))).partition(|(x, _)| even(x));
                    let count = chosen.len();
                    if rest {
                        chosen.extend(others);
                    }
                    let given = Given { inputs: &[input], sizes: &[size], ..Given::default() };
                    let results = run(&bench, &pack, &given);
                    assert_eq!(results[2], [Literal::from(count as u32)], "{name}, {size}");
                    let stored: Vec<_> = results[0].iter().zip(&results[1]).map(|(x, i)| (*x, *i)).take(chosen.len()).collect();
                    assert!(stored == chosen, "{name}, {element}, {size}, rest: {rest}");
                }
            }
        }
    }
}

/// Small values only, many per thread: contiguous in memory, and every second one.
#[test]
fn pack_small_values() {
    for (name, bench) in benches() {
        for (element, every) in [(Element::I32, 1u64), (Element::U8, 1), (Element::I32, 2), (Element::U8, 2)] {
            let f = Builder::function("small");
            let i = f.parameter("i", Type::I32);
            let x = f.accessor("x", AccessorKind::Input, element, 1);
            let x = f.read(x, &[if every == 1 { i.into() } else { f.mul(i, every as i32).into() }]);
            let is_chosen = f.eq(f.and(f.convert(x, Type::I32), 3), 0);
            let source = Source::new(f.finish_function(&[is_chosen, x]).unwrap(), 1).unwrap();
            let pack = Pattern::from(Pack { source, sink: Sink::STORE, rest: false });
            for size in sizes(name, &[1, 8191, 8192, 16_385, 300_001], 8193) {
                let input = Random(size).values(element, every * size);
                let seen = input.iter().step_by(every as usize);
                let chosen: Vec<Literal> = seen.filter(|x| x.as_i128().unwrap() & 3 == 0).copied().collect();
                let given = Given { inputs: &[input], sizes: &[size], ..Given::default() };
                let results = run(&bench, &pack, &given);
                assert_eq!(results[1], [Literal::from(chosen.len() as u32)], "{name}, {size}");
                assert!(results[0][..chosen.len()] == chosen, "{name}, {element}, every {every}, {size}");
            }
        }
    }
}

#[test]
fn histograms() {
    for (name, bench) in benches() {
        for element in [Element::U8, Element::I16, Element::I64] {
            for (bins, size) in [
                (0u64, 100u64),
                (1, 300),
                (200, 0),
                (200, 1),
                (200, 5001),
                (256, 20003),
                (9000, 150_001),
                (8192, 40001),
                (40000, 5001),
            ] {
                let size = if name == "interp" { size.min(5003) } else { size };
                let source = line("bin", element, |_, _, x| vec![x]);
                let histogram =
                    Pattern::from(Histogram { domain: Domain::LINE, source, sink: Sink::STORE, room: Histogram::room(bins) });
                let input = Random(size).values(element, size);
                let mut expected = vec![0u32; bins as usize];
                for value in &input {
                    if let Some(bin) = usize::try_from(value.as_i128().unwrap()).ok().and_then(|bin| expected.get_mut(bin)) {
                        *bin += 1;
                    }
                }
                let given = Given { inputs: &[input], sizes: &[size, bins], ..Given::default() };
                let expected: Vec<Literal> = expected.into_iter().map(Literal::from).collect();
                assert!(run(&bench, &histogram, &given).concat() == expected, "{name}, {element}, {bins} bins, {size}");
            }
        }
        // Two axes, 64-bit positions, and a sink.
        let f = Builder::function("diagonal");
        let (i, j) = (f.parameter("i", Type::I64), f.parameter("j", Type::I64));
        let source = Source::new(f.finish_function(&[f.sub(i, j)]).unwrap(), 2).unwrap();
        let g = Builder::function("plus");
        let (bin, count) = (g.parameter("bin", Type::I64), g.parameter("count", Type::U64));
        let sink = Sink::new(g.finish_function(&[g.add(g.convert(count, Type::I64), bin)]).unwrap(), 1, 1).unwrap();
        let histogram = Histogram { domain: Domain::of(&[60, 50]), source, sink, room: Histogram::room(70) };
        let results = run(&bench, &histogram.into(), &Given { sizes: &[60, 50, 70], ..Given::default() });
        let counted = |bin: i64| (0..60).flat_map(|i| (0..50).map(move |j| i - j)).filter(|d| *d == bin).count() as i64;
        let expected: Vec<Literal> = (0..70).map(|bin| Literal::from(counted(bin) + bin)).collect();
        assert_eq!(results.concat(), expected, "{name}");
    }
}

#[test]
fn transposes_of_all_types() {
    for (name, bench) in benches() {
        for element in Element::ALL {
            for shape in [[0u64, 5], [1, 1], [32, 32], [33, 31], [100, 7], [5, 200]] {
                let f = Builder::function("matrix");
                let (i, j) = (f.parameter("i", Type::I32), f.parameter("j", Type::I32));
                let columns = f.parameter("columns", Type::I32);
                let x = f.accessor("x", AccessorKind::Input, element, 1);
                let value = f.read(x, &[f.add(f.mul(i, columns), j).into()]);
                let source = Source::new(f.finish_function(&[value]).unwrap(), 2).unwrap();
                let transpose = Pattern::from(Transpose { axes: 2, axis: 0, source, sink: Sink::STORE });
                let input = Random(shape[0]).values(element, shape[0] * shape[1]);
                let at = |i: u64, j: u64| input[(i * shape[1] + j) as usize];
                let expected: Vec<Literal> =
                    (0..shape[1]).flat_map(|j| (0..shape[0]).map(move |i| (i, j))).map(|(i, j)| at(i, j)).collect();
                let inputs = [input.clone()];
                let given = Given { inputs: &inputs, scalars: &[(shape[1] as i32).into()], sizes: &shape, ..Given::default() };
                assert!(run(&bench, &transpose, &given).concat() == expected, "{name}, {element}, {shape:?}");
            }
        }
    }
}

#[test]
fn transposes_of_any_axis_with_last() {
    for (name, bench) in benches() {
        for shape in [vec![3u64, 40, 35], vec![2, 3, 4, 37], vec![2, 2, 3, 2, 33]] {
            for axis in 0..shape.len() - 1 {
                // Positions as numbers. The sink also stores the number of its own position.
                let f = Builder::function("digits");
                let position: Vec<_> = shape.iter().map(|_| f.parameter("i", Type::I32)).collect();
                let number =
                    position.iter().fold(f.constant(Type::I64, 0), |n, i| f.add(f.mul(n, 100), f.convert(*i, Type::I64)));
                let source = Source::new(f.finish_function(&[number]).unwrap(), shape.len()).unwrap();
                let g = Builder::function("both");
                let position: Vec<_> = shape.iter().map(|_| g.parameter("i", Type::I32)).collect();
                let value = g.parameter("value", Type::I64);
                let own = position.iter().fold(g.constant(Type::I64, 0), |n, i| g.add(g.mul(n, 100), g.convert(*i, Type::I64)));
                let sink = Sink::new(g.finish_function(&[value, own]).unwrap(), shape.len(), 1).unwrap();
                let transpose = Pattern::from(Transpose { axes: shape.len(), axis, source, sink });
                let results = run(&bench, &transpose, &Given { sizes: &shape, ..Given::default() });
                let mut exchanged = shape.clone();
                exchanged.swap(axis, shape.len() - 1);
                let count: u64 = shape.iter().product();
                for linear in 0..count {
                    let (mut rest, mut position) = (linear, vec![]);
                    for length in exchanged.iter().rev() {
                        position.insert(0, rest % length);
                        rest /= length;
                    }
                    let number = |position: &[u64]| Literal::from(position.iter().fold(0, |n, i| n * 100 + *i as i64));
                    let own = number(&position);
                    position.swap(axis, shape.len() - 1);
                    let place = linear as usize;
                    assert_eq!((results[0][place], results[1][place]), (number(&position), own), "{name}, {shape:?}, {axis}");
                }
            }
        }
    }
}

/// Random words are the same on every device, and numbers are distributed evenly.
#[test]
fn random_numbers() {
    let f = Builder::function("draw");
    let (i, seed) = (f.parameter("i", Type::I32), f.parameter("seed", Type::U64));
    let words = random::words_at(&f, i, seed, 3);
    let (single, double) = (random::uniform_f32(&f, words[0]), random::uniform_f64(&f, words[2], words[3]));
    let draw = f.finish_function(&[words[0], words[1], single, double]).unwrap();
    let seed = Literal::from(0x1234_5678_9abc_def0u64);
    let map = Pattern::from(Map { domain: Domain::LINE, source: Source::new(draw.clone(), 1).unwrap(), sink: Sink::STORE });
    for (name, bench) in benches() {
        let results = run(&bench, &map, &Given { scalars: &[seed], sizes: &[4000], ..Given::default() });
        for i in [0, 1, 77, 3999] {
            let expected = draw.evaluate(&[Literal::from(i), seed]).unwrap();
            let own: Vec<Literal> = results.iter().map(|list| list[i as usize]).collect();
            assert_eq!(own, expected, "{name}, {i}");
        }
        for list in &results[2..] {
            let mean = list.iter().map(|x| x.as_f64().unwrap()).sum::<f64>() / 4000.0;
            assert!(
                (mean - 0.5).abs() < 0.02 && list.iter().all(|x| (0.0..1.0).contains(&x.as_f64().unwrap())),
                "{name}: {mean}"
            );
        }
    }
}
