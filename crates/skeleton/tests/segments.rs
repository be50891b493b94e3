//! Scans and reductions within segments of any length.

mod support;

use broadloom_scalar::{AccessorKind, Builder, Element, Literal, Type};
use broadloom_skeleton::{Domain, Operator, Pattern, Scan, ScanSpread, Sink, Source};
use support::{Given, Random, benches, run};

/// The starts of segments as marks, and the number of the segment of each position.
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
    // Prefixes at every position, and the last one of each segment at the segment's number.
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
