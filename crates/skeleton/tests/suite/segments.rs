//! Scans and reductions within segments of any length.

use crate::support::{Given, Literals, Random, benches, h200, identity, joining, line, run};
use broadloom_scalar::{AccessorKind, Builder, Element, Literal, Type};
use broadloom_skeleton::{Domain, Operator, Pattern, Scan, ScanSpread, SegmentNumbers, SegmentedReduce, Sink, Source};

/// Returns marks for the starts of segments, and the number of the segment of each position.
fn marks(lengths: &[u64]) -> (Vec<Literal>, Vec<usize>) {
    let (mut marks, mut numbers) = (vec![], vec![]);
    for (number, length) in lengths.iter().enumerate() {
        for place in 0..*length {
            marks.push(Literal::from(place == 0));
            numbers.push(number);
        }
    }
    (marks, numbers)
}

#[test]
fn scans_and_reductions() {
    let f = Builder::function("marked");
    let i = f.parameter("i", Type::I32);
    let starts = f.accessor("starts", AccessorKind::Input, Type::BOOL, 1);
    let x = f.accessor("x", AccessorKind::Input, Type::I32, 1);
    let results = [f.read(starts, &[i.into()]), f.read(x, &[i.into()])];
    let source = Source::new(f.finish_function(&results).unwrap(), 1).unwrap();
    // Prefixes at every position, and the last prefix of each segment at the segment's number.
    let g = Builder::function("ends");
    let (i, _, sum) = (g.parameter("i", Type::I32), g.parameter("starts", Type::BOOL), g.parameter("sum", Type::I32));
    let last = g.parameter("last", Type::I32);
    let starts = g.accessor("starts", AccessorKind::Input, Type::BOOL, 1);
    let numbers = g.accessor("numbers", AccessorKind::Input, Type::I32, 1);
    let sums = g.accessor("sums", AccessorKind::Output, Type::I32, 1);
    let at_end = g.choose(g.lt(i, last), || g.read(starts, &[g.add(i, 1).into()]), || g.literal(true));
    g.if_then(at_end, || g.write(sums, &[g.read(numbers, &[i.into()]).into()], sum));
    let sink = Sink::new(g.finish_function(&[sum]).unwrap(), 1, 2).unwrap();
    for (name, bench) in benches() {
        let long = if name == "interp" { 3000 } else { 30_000 };
        let mut random = Random(9);
        let ragged: Vec<u64> = (0..400).map(|i| if i % 97 == 5 { 900 } else { random.below(12) }).collect();
        let ragged = if name == "interp" { ragged[..80].to_vec() } else { ragged };
        for lengths in [vec![], vec![1], vec![long], vec![1; 500], vec![0, 3, 0, 0, 70, 1], ragged] {
            let (starts, numbers) = marks(&lengths);
            let size = starts.len() as u64;
            let input = Random(size).values(Element::I32, size);
            let (mut prefixes, mut sums) = (vec![], vec![0i32; lengths.len()]);
            for (x, number) in input.iter().zip(&numbers) {
                sums[*number] = sums[*number].wrapping_add(x.as_i128().unwrap() as i32);
                prefixes.push(Literal::from(sums[*number]));
            }
            let scan = Scan {
                domain: Domain::LINE,
                axis: 0,
                source: source.clone(),
                operator: Operator::sum(Element::I32).unwrap().segmented().unwrap(),
                inclusive: true,
                sink: sink.clone(),
                spread: ScanSpread::of(&bench.machine, &[size], 0),
            };
            let numbers: Vec<Literal> = numbers.iter().map(|number| Literal::from(*number as i32)).collect();
            let inputs = [starts.clone(), input, starts, numbers];
            let scalars = [Literal::from(size as i32 - 1)];
            let given =
                Given { inputs: &inputs, scalars: &scalars, sizes: &[size], least: lengths.len() as u64, ..Given::default() };
            let results = run(&bench, &Pattern::from(scan), &given);
            let sums: Vec<Literal> = sums.into_iter().map(Literal::from).collect();
            assert!(results[0].starts_with(&prefixes), "{name}, {} segments", lengths.len());
            assert!(results[1][..sums.len()] == sums, "{name}, {} segments", lengths.len());
        }
    }
}

/// Returns segments of all kinds: none, empty ones, one long one, many short ones, and long ones among short
/// ones.
fn kinds(long: u64) -> Vec<Vec<u64>> {
    let mut random = Random(9);
    let ragged: Vec<u64> = (0..long / 8).map(|i| if i % 197 == 5 { long / 3 } else { random.below(12) }).collect();
    // More ends at one element than lanes in a warp, more ends than lanes in a row of elements, and segments
    // of whole rows.
    let crowded = (0..long / 4).map(|i| [0, 0, 3, 1, 1, 32, 64][(i / 40 % 7) as usize]).collect();
    vec![vec![], vec![0], vec![0; long as usize], vec![1], vec![long], vec![1; 500], vec![0, 3, 0, 0, 70, 1, 0], ragged, crowded]
}

fn offsets(lengths: &[u64], first: u32) -> Vec<Literal> {
    let mut all = first;
    let mut offsets = vec![Literal::from(first)];
    for length in lengths {
        all += *length as u32;
        offsets.push(all.into());
    }
    offsets
}

/// Numbers joined digit by digit: the order matters, and there are two values.
#[test]
fn reductions_keep_the_order() {
    let join = joining();
    // The sink adds the number of the segment, and also writes in reverse order.
    let g = Builder::function("both");
    let (s, joined, _) = (g.parameter("s", Type::I32), g.parameter("joined", Type::U32), g.parameter("m", Type::U32));
    let last = g.parameter("last", Type::I32);
    let backwards = g.accessor("backwards", AccessorKind::Output, Type::U32, 1);
    g.write(backwards, &[g.sub(last, s).into()], joined);
    let sink = Sink::new(g.finish_function(&[g.add(joined, g.convert(s, Type::U32))]).unwrap(), 1, 2).unwrap();
    let source = line("digit", Element::U32, |f, _, x| vec![x, f.constant(Type::U32, 37)]);
    let reduce = Pattern::from(SegmentedReduce { source, offsets: identity(Element::U32), operator: join, sink });
    for (name, bench) in benches() {
        for (number, lengths) in kinds(if name == "interp" { 2500 } else { 12_000 }).into_iter().enumerate() {
            // Some elements belong to no segment.
            let (before, behind) = if number % 2 == 1 { (3, 5) } else { (0, 0) };
            let size: u64 = lengths.iter().sum::<u64>() + before + behind;
            let input = Random(size).values(Element::U32, size);
            let mut digits = input.iter().skip(before as usize).map(|x| x.as_i128().unwrap() as u32);
            let joined: Vec<u32> = lengths
                .iter()
                .map(|length| digits.by_ref().take(*length as usize).fold(0u32, |a, b| a.wrapping_mul(37).wrapping_add(b)))
                .collect();
            let count = lengths.len() as u64;
            let inputs = [input, offsets(&lengths, before as u32)];
            let scalars = [Literal::from(count as i32 - 1)];
            let given = Given { inputs: &inputs, scalars: &scalars, sizes: &[size, count], least: count, ..Given::default() };
            let results = run(&bench, &reduce, &given);
            let added: Vec<Literal> = joined.iter().zip(0u32..).map(|(x, s)| Literal::from(x.wrapping_add(s))).collect();
            let backwards: Vec<Literal> = joined.iter().rev().map(|x| Literal::from(*x)).collect();
            assert!(results[0] == added && results[1] == backwards, "{name}, {size} in {count}");
        }
    }
}

#[test]
fn reductions_of_all_types() {
    for (name, bench) in benches().into_iter().chain([("h200", h200())]) {
        for element in Element::ALL {
            if name == "h200" && !matches!(element, Element::F32 | Element::F64) {
                continue;
            }
            let operator = Operator::sum(element).unwrap();
            let (source, offset_source) = (identity(element), identity(Element::U32));
            let reduce =
                Pattern::from(SegmentedReduce { source, offsets: offset_source, operator: operator.clone(), sink: Sink::STORE });
            // Sums of larger numbers of halves are not exact.
            let lengths = if element == Element::F16 { vec![3, 0, 200, 1] } else { vec![3, 0, 4500, 1, 90, 0, 0, 700] };
            let size: u64 = lengths.iter().sum();
            let input = Random(size).values(element, size);
            let mut rest = &input[..];
            let mut expected = vec![];
            for length in &lengths {
                let (own, others) = rest.split_at(*length as usize);
                let add = |sum: Literal, x: &Literal| operator.function().evaluate(&[sum, *x]).unwrap()[0];
                expected.push(own.iter().fold(Literal::zero(element), add));
                rest = others;
            }
            let inputs = [input.clone(), offsets(&lengths, 0)];
            let given = Given { inputs: &inputs, sizes: &[size, lengths.len() as u64], ..Given::default() };
            assert_eq!(run(&bench, &reduce, &given).concat(), expected, "{name}, {element}");
        }
    }
}

/// Products of 2×2 matrices. Their order matters, and they are too expensive for a scan.
fn matrices() -> Operator {
    let f = Builder::function("product");
    let [a, b] = ["a", "b"].map(|name| [0; 4].map(|_| f.parameter(name, Type::U32)));
    let cell = |row: usize, column: usize| f.add(f.mul(a[2 * row], b[column]), f.mul(a[2 * row + 1], b[2 + column]));
    let results = [cell(0, 0), cell(0, 1), cell(1, 0), cell(1, 1)];
    Operator::new(f.finish_function(&results).unwrap(), &[1u32, 0, 0, 1].map(Literal::from), false).unwrap()
}

/// Reductions of all kinds of segments by operators of several kinds: with and without an inverse, of several
/// independent values, of values that belong together, commutative and not.
#[test]
fn reductions_by_all_operators() {
    let sum = |element: Element| Operator::sum(element).unwrap();
    let both = Operator::all(&[sum(Element::F32), Operator::min(Element::F32).unwrap()]).unwrap();
    let alone: fn(Literal, usize) -> Vec<Literal> = |x, _| vec![x];
    let twice: fn(Literal, usize) -> Vec<Literal> = |x, _| vec![x; 2];
    let placed: fn(Literal, usize) -> Vec<Literal> = |x, place| vec![x, Literal::from(place as i32)];
    let shear: fn(Literal, usize) -> Vec<Literal> = |x, _| vec![x, 1u32.into(), 3u32.into(), x];
    let cases = [
        ("a sum of integers", Element::I32, sum(Element::I32), alone),
        ("a sum of floats", Element::F32, sum(Element::F32), alone),
        ("an exclusive or", Element::Bool, sum(Element::Bool), alone),
        ("a maximum", Element::F64, Operator::max(Element::F64).unwrap(), alone),
        ("two at once", Element::F32, both, twice),
        ("a place", Element::I32, Operator::arg_max_in_order(Element::I32, Element::I32).unwrap(), placed),
        ("a place in any order", Element::I32, Operator::arg_min(Element::I32, Element::I32).unwrap(), placed),
        ("matrices", Element::U32, matrices(), shear),
    ];
    for (case, element, operator, values) in cases {
        let source = line("x", element, |f, i, x| match operator.types().len() {
            1 => vec![x],
            2 if case == "two at once" => vec![x, x],
            2 => vec![x, i],
            _ => vec![x, f.literal(1u32), f.literal(3u32), x],
        });
        let reduce = SegmentedReduce { source, offsets: identity(Element::U32), operator: operator.clone(), sink: Sink::STORE };
        let reduce = Pattern::from(reduce);
        for (name, bench) in benches() {
            for lengths in kinds(if name == "interp" { 700 } else { 3000 }) {
                let size: u64 = lengths.iter().sum();
                let input = Random(size).values(element, size);
                let mut places = 0..size as usize;
                let combine = |sum: Vec<Literal>, place: usize| {
                    operator.function().evaluate(&[sum, values(input[place], place)].concat()).unwrap()
                };
                let each = |length: &u64| places.by_ref().take(*length as usize).fold(operator.identity().to_vec(), combine);
                let expected: Vec<Vec<Literal>> = lengths.iter().map(each).collect();
                let (inputs, count) = ([input.clone(), offsets(&lengths, 0)], lengths.len() as u64);
                let given = Given { inputs: &inputs, sizes: &[size, count], ..Given::default() };
                for (number, found) in run(&bench, &reduce, &given).iter().enumerate() {
                    let expected: Vec<Literal> = expected.iter().map(|values| values[number]).collect();
                    assert!(*found == expected, "{name}, {case}, {size} in {count}");
                }
            }
        }
    }
}

/// Sums of tiny segments, for which a warp takes two rows at a time. Ends are at all places of both rows.
/// Their number is that of the lanes, one less, and zero. Positions have 32 or 64 bits, and elements have all
/// widths.
#[test]
fn sums_of_tiny_segments() {
    let mut random = Random(21);
    let tiny: Vec<u64> = (0..2500).map(|_| random.below(9)).collect();
    let places: Vec<u64> = (0..=64).flat_map(|first| [first, 64 - first, 3]).collect();
    // 31 and 32 ends in 64 elements, 64 ends at one place, then none.
    let crowds: Vec<u64> = [vec![2; 31 + 64], vec![0; 64], vec![2; 500], vec![200; 3], vec![1; 300]].concat();
    let source = |index: Type, element: Element| {
        let f = Builder::function("x");
        let i = f.parameter("i", index);
        let x = f.accessor("x", AccessorKind::Input, element, 1);
        Source::new(f.finish_function(&[f.read(x, &[i.into()])]).unwrap(), 1).unwrap()
    };
    for (index, element) in
        [(Type::I32, Element::U32), (Type::I64, Element::I32), (Type::I32, Element::U64), (Type::I32, Element::U8)]
    {
        let reduce = Pattern::from(SegmentedReduce {
            source: source(index, element),
            offsets: source(index, Element::I32),
            operator: Operator::sum(element).unwrap(),
            sink: Sink::STORE,
        });
        for (name, bench) in benches() {
            for lengths in [&tiny, &places, &crowds] {
                let size: u64 = lengths.iter().sum();
                let input = Random(size).values(element, size);
                let mut rest = input.iter().map(|x| x.bits());
                let sum = |length: &u64| rest.by_ref().take(*length as usize).fold(0, u64::wrapping_add);
                let expected: Vec<Literal> = lengths.iter().map(sum).map(|bits| Literal::from_bits(element, bits)).collect();
                let inputs = [input.clone(), offsets(lengths, 0)];
                let given = Given { inputs: &inputs, sizes: &[size, lengths.len() as u64], ..Given::default() };
                assert!(
                    run(&bench, &reduce, &given).concat() == expected,
                    "{name}, {index}, {element}, {size} in {}",
                    lengths.len()
                );
            }
        }
    }
}

/// The minimum of NaNs alone is the identity, for tiny segments and for others.
#[test]
fn reductions_of_nans() {
    let operator = Operator::min(Element::F32).unwrap();
    let (source, offset_source) = (identity(Element::F32), identity(Element::U32));
    let reduce = SegmentedReduce { source, offsets: offset_source, operator: operator.clone(), sink: Sink::STORE };
    let reduce = Pattern::from(reduce);
    for (name, bench) in benches() {
        for lengths in [vec![1; 100], (0..200).map(|number| number % 5).collect(), vec![20; 50], vec![100; 9]] {
            let size: u64 = lengths.iter().sum();
            let number = |place: u64| if place % 7 == 3 { place as f32 } else { f32::NAN };
            let input: Vec<Literal> = (0..size).map(|place| Literal::from(number(place))).collect();
            let mut rest = input.iter();
            let least = |least: Literal, x: &Literal| operator.function().evaluate(&[least, *x]).unwrap()[0];
            let each = |length: &u64| rest.by_ref().take(*length as usize).fold(operator.identity()[0], least);
            let expected: Vec<Literal> = lengths.iter().map(each).collect();
            let inputs = [input.clone(), offsets(&lengths, 0)];
            let given = Given { inputs: &inputs, sizes: &[size, lengths.len() as u64], ..Given::default() };
            assert_eq!(run(&bench, &reduce, &given).concat(), expected, "{name}, {size} in {}", lengths.len());
        }
    }
}

/// The number of the segment of each element, and a flag for the first element.
#[test]
fn numbers_of_segments() {
    let pattern = |offsets: Element| {
        Pattern::from(SegmentNumbers { line: identity(Element::U8), offsets: identity(offsets), sink: Sink::STORE })
    };
    for (name, bench) in benches() {
        let long = if name == "interp" { 2500 } else { 12_000 };
        // Tiles that contain only ends.
        let apart = [vec![3], vec![0; 2 * long as usize], vec![2]].concat();
        for lengths in kinds(long).into_iter().chain([apart]) {
            let size: u64 = lengths.iter().sum();
            if size == 0 {
                continue;
            }
            let (heads, numbers) = marks(&lengths);
            let numbers: Vec<Literal> = numbers.into_iter().map(|number| Literal::from(number as i32)).collect();
            let inputs = [Random(size).values(Element::U8, size), offsets(&lengths, 0)];
            let given = Given { inputs: &inputs, sizes: &[size, lengths.len() as u64], ..Given::default() };
            let results = run(&bench, &pattern(Element::U32), &given);
            assert!(results[0] == numbers && results[1] == heads, "{name}, {size} in {}", lengths.len());
        }
    }
    // For any offsets, no memory outside is accessed: the interpreter would report it.
    let (_, bench) = benches().swap_remove(0);
    for (seed, count) in (0..).zip([3, 40, 3000]) {
        let mut random = Random(seed);
        let wild: Vec<Literal> = (0..=count).map(|_| Literal::from(random.below(900) - 50)).collect();
        let inputs = [random.values(Element::U8, 700), wild];
        let given = Given { inputs: &inputs, sizes: &[700, count], ..Given::default() };
        assert_eq!(run(&bench, &pattern(Element::I32), &given)[0].len(), 700);
    }
}

/// Segments over more tiles than a range of a chain has, whose sums are not found in near tiles, and many
/// empty segments.
#[test]
fn segments_of_a_thousand_tiles() {
    let reduce = Pattern::from(SegmentedReduce {
        source: identity(Element::U64),
        offsets: identity(Element::U32),
        operator: Operator::sum(Element::U64).unwrap(),
        sink: Sink::STORE,
    });
    let (_, bench) = benches().pop().unwrap();
    let (few, many) = (vec![5u64, 2_400_000, 3, 0, 200_000, 7], vec![0; 100_000]);
    let lengths: Vec<u64> = [few, many, vec![150_000, 1]].concat();
    let size: u64 = lengths.iter().sum();
    let input = Random(3).values(Element::U64, size);
    let mut rest = input.iter().map(|x| x.bits());
    let sum = |length: &u64| rest.by_ref().take(*length as usize).fold(0, u64::wrapping_add);
    let expected: Vec<Literal> = lengths.iter().map(sum).map(Literal::from).collect();
    let inputs = [input.clone(), offsets(&lengths, 0)];
    let given = Given { inputs: &inputs, sizes: &[size, lengths.len() as u64], ..Given::default() };
    assert!(run(&bench, &reduce, &given).concat() == expected);
}

/// For any offsets, no memory outside is accessed: the interpreter would report it.
#[test]
fn offsets_that_decrease_are_harmless() {
    let reduce = Pattern::from(SegmentedReduce {
        source: identity(Element::I32),
        offsets: identity(Element::I32),
        operator: Operator::sum(Element::I32).unwrap(),
        sink: Sink::STORE,
    });
    let (name, bench) = benches().swap_remove(0);
    assert_eq!(name, "interp");
    for seed in 0..6 {
        let mut random = Random(seed);
        let count = [3, 40, 5000][seed as usize % 3];
        let size = [5000, 70, 0][seed as usize / 2];
        let wild = |random: &mut Random| Literal::from(random.below(2 * size + 100) as i32 - 50);
        let offsets: Vec<Literal> = (0..=count).map(|_| wild(&mut random)).collect();
        let inputs = [random.values(Element::I32, size), offsets];
        let given = Given { inputs: &inputs, sizes: &[size, count], ..Given::default() };
        assert_eq!(run(&bench, &reduce, &given)[0].len() as u64, count);
    }
}
