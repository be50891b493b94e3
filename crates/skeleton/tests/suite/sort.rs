//! Sorting by keys of all types.

use crate::support::{Given, Literals, Random, benches, h200, identity, line, run, sizes};
use broadloom_scalar::{AccessorKind, Builder, Element, Literal, Type};
use broadloom_skeleton::{Pattern, SegmentedSort, Sink, Sort, SortKey, Source};
use std::cmp::Ordering;

fn compare(a: Literal, b: Literal, descending: bool) -> Ordering {
    let order = match (a.as_f64(), b.as_f64()) {
        (Some(x), Some(y)) => match (x.is_nan(), y.is_nan()) {
            (false, false) => x.total_cmp(&y),
            // After all numbers, in ascending and descending order.
            (x, y) => return x.cmp(&y),
        },
        _ => a.as_i128().cmp(&b.as_i128()),
    };
    if descending { order.reverse() } else { order }
}

#[test]
fn all_types_of_keys_with_positions() {
    for (name, bench) in benches().into_iter().chain([("h200", h200())]) {
        for element in Element::ALL {
            // The interpreter runs the programs of GPUs for all types.
            let few = name == "h200" || name == "cpu as a gpu";
            if few && !matches!(element, Element::I32 | Element::F64) {
                continue;
            }
            for descending in [false, true] {
                if descending && !matches!(element, Element::Bool | Element::F32) {
                    continue;
                }
                let source = line("key", element, |_, i, x| vec![x, i]);
                let keys = vec![SortKey { descending, bits: None }];
                let sort = Pattern::from(Sort { source, keys, sink: Sink::STORE });
                for size in sizes(name, &[0, 1, 2, 33, 3000, 40007], 2100) {
                    let mut random = Random(size);
                    // Many bits, many equal keys, and the special values of floats.
                    let mut input: Vec<Literal> =
                        (0..size).map(|_| Literal::from_bits(element, random.bits() >> random.below(60))).collect();
                    for x in [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                        if let (Some(x), true) = (Literal::from_f64(element, x), size > 100) {
                            input[random.below(size) as usize] = x;
                        }
                    }
                    let mut expected: Vec<(Literal, Literal)> =
                        input.iter().enumerate().map(|(i, x)| (*x, Literal::from(i as i32))).collect();
                    expected.sort_by(|a, b| compare(a.0, b.0, descending));
                    let given = Given { inputs: &[input], sizes: &[size], ..Given::default() };
                    let results = run(&bench, &sort, &given);
                    let results = results[0].iter().zip(&results[1]).map(|(x, i)| (*x, *i));
                    assert!(results.eq(expected), "{name}, {element}, {size}, descending: {descending}");
                }
            }
        }
    }
}

/// Segments of all lengths, and two values of other types that move with the keys.
#[test]
fn within_segments() {
    let f = Builder::function("pairs");
    let i = f.parameter("i", Type::I64);
    let segments = f.accessor("segments", AccessorKind::Input, Type::U32, 1);
    let keys = f.accessor("keys", AccessorKind::Input, Type::I16, 1);
    let (segment, key) = (f.read(segments, &[i.into()]), f.read(keys, &[i.into()]));
    let results = [segment, key, f.convert(i, Type::F64), f.lt(key, 0)];
    let source = Source::new(f.finish_function(&results).unwrap(), 1).unwrap();
    let keys = vec![SortKey { bits: Some(10), ..SortKey::default() }, SortKey::default()];
    let sort = Pattern::from(Sort { source, keys, sink: Sink::STORE });
    for (name, bench) in benches() {
        for size in sizes(name, &[0, 5, 5000, 30011], 2500) {
            let mut random = Random(size);
            let mut segment = 0u32;
            let segments: Vec<Literal> = (0..size)
                .map(|_| {
                    segment += (random.below(40) == 0) as u32;
                    (segment % 1024).into()
                })
                .collect();
            let keys = random.values(Element::I16, size);
            let mut expected: Vec<usize> = (0..size as usize).collect();
            expected.sort_by_key(|i| (segments[*i].as_i128(), keys[*i].as_i128()));
            let inputs = [segments.clone(), keys.clone()];
            let results = run(&bench, &sort, &Given { inputs: &inputs, sizes: &[size], ..Given::default() });
            for (place, i) in expected.into_iter().enumerate() {
                let own: Vec<Literal> = results.iter().map(|list| list[place]).collect();
                let negative = keys[i].as_i128().unwrap() < 0;
                assert_eq!(own, [segments[i], keys[i], (i as f64).into(), negative.into()], "{name}, {size}");
            }
        }
    }
}

/// Segments that a lane, a warp or a block sorts in place, with values and without.
#[test]
fn within_short_segments() {
    for (name, bench) in benches() {
        for (element, descending) in [
            (Element::I32, false),
            (Element::U8, true),
            (Element::Bool, true),
            (Element::I64, false),
            (Element::F32, true),
            (Element::F16, false),
        ] {
            for with_places in [false, true] {
                for longest in [32u32, 64, 256, 512] {
                    if longest >= 256 && !matches!(element, Element::I32 | Element::F32) {
                        continue;
                    }
                    let source = line("key", element, |_, i, x| if with_places { vec![x, i] } else { vec![x] });
                    let keys = vec![SortKey { descending, bits: None }];
                    let offsets = identity(Element::U32);
                    let sort = Pattern::from(SegmentedSort { source, offsets, keys, sink: Sink::STORE, longest });
                    let mut random = Random(longest.into());
                    let mut ends = vec![2u32];
                    for number in 0..70 {
                        let length = if number % 9 == 1 { longest.into() } else { random.below(u64::from(longest) + 1) };
                        ends.push(ends[ends.len() - 1] + length as u32);
                    }
                    let size = u64::from(ends[ends.len() - 1]) + 3;
                    // Many equal keys, the greatest and the least values, and the special values of floats.
                    let mut input: Vec<Literal> = (0..size)
                        .map(|_| match random.below(8) {
                            0 => Literal::from_bits(element, u64::MAX),
                            1 => Literal::from_bits(element, u64::MAX >> (65 - element.bits().max(2))),
                            _ => random.value(element),
                        })
                        .collect();
                    if element.is_float() {
                        input.iter_mut().step_by(37).for_each(|x| *x = Literal::from_f64(element, -0.0).unwrap());
                    }
                    let mut expected: Vec<(Literal, Literal)> =
                        input.iter().enumerate().map(|(i, x)| (*x, Literal::from(i as i32))).collect();
                    for ends in ends.windows(2) {
                        expected[ends[0] as usize..ends[1] as usize].sort_by(|a, b| compare(a.0, b.0, descending));
                    }
                    let inside = ends[0] as usize..ends[ends.len() - 1] as usize;
                    let sizes = [size, ends.len() as u64 - 1];
                    let inputs = [input, ends.iter().map(|end| Literal::from(*end)).collect()];
                    let results = run(&bench, &sort, &Given { inputs: &inputs, sizes: &sizes, ..Given::default() });
                    for place in inside {
                        let (found, wanted) = (results[0][place], expected[place].0);
                        // Without values, NaNs are in the order of their bits.
                        let is_nan = |x: Literal| x.as_f64().is_some_and(f64::is_nan);
                        let same = found == wanted || !with_places && is_nan(found) && is_nan(wanted);
                        let same = same && (!with_places || results[1][place] == expected[place].1);
                        assert!(same, "{name}, {element}, up to {longest}, place {place}");
                    }
                }
            }
        }
    }
}

/// Enough elements for non-temporal stores on a CPU, with outputs aligned to cache lines and not, and keys
/// with equal upper bits.
#[test]
fn many_on_a_cpu() {
    let bench = benches().into_iter().find(|(name, _)| *name == "cpu").unwrap().1;
    for (element, bits, with_places) in [
        (Element::I32, 32, false),
        (Element::I32, 10, true),
        (Element::U8, 8, true),
        (Element::F64, 64, false),
        (Element::U64, 3, false),
    ] {
        let source = line("key", element, |_, i, x| if with_places { vec![x, i] } else { vec![x] });
        let sort = Pattern::from(Sort { source, keys: vec![SortKey::default()], sink: Sink::STORE });
        for shifted in [0, 8] {
            let size = 300_007;
            let mut random = Random(size + shifted as u64);
            let input: Vec<Literal> = (0..size).map(|_| Literal::from_bits(element, random.bits() >> (64 - bits))).collect();
            let mut expected: Vec<(Literal, Literal)> =
                input.iter().enumerate().map(|(i, x)| (*x, Literal::from(i as i32))).collect();
            expected.sort_by(|a, b| compare(a.0, b.0, false));
            let results = run(&bench, &sort, &Given { inputs: &[input], sizes: &[size], shifted, ..Given::default() });
            for (place, (key, i)) in expected.into_iter().enumerate() {
                // NaNs are equal and keep their order.
                let same = results[0][place] == key && (!with_places || results[1][place] == i);
                assert!(same, "{element}, {bits} bits, place {place}, shifted by {shifted}");
            }
        }
    }
}
