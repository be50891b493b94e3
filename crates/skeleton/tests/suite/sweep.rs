//! Sweeps along every axis, forwards and backwards, compared to the step applied position by position on the
//! host.

use crate::support::{Bench, Given, Literals, Random, benches, run, strided, strides};
use broadloom_scalar::{AccessorKind, Builder, Element, Environment, Function, Lanes, Literal, Type, Value};
use broadloom_skeleton::{Boundary, Domain, Error, Operator, Pattern, Sink, Source, Split, Sweep, SweepSpread};

/// The values around a position of a line.
struct Line<'a> {
    values: &'a dyn Fn(i64) -> Option<Literal>,
    outside: Literal,
    reach: (u32, u32),
    at: i64,
}

impl Environment for Line<'_> {
    fn window(&mut self, _: usize, offsets: &[i128]) -> Option<Lanes> {
        let offset = (offsets[0] as i64).clamp(-i64::from(self.reach.0), self.reach.1.into());
        Some(std::iter::once((self.values)(self.at + offset).unwrap_or(self.outside)).collect())
    }
}

/// Returns a step with a state and an output of one type. The state is between 1 and 100, so that sums of
/// floats are exact.
fn step(element: Element) -> Function {
    let f = Builder::function("step");
    let (state, radius) = (f.parameter("state", element), f.parameter("radius", Type::I32));
    let x = f.accessor("x", AccessorKind::Window, element, 1);
    let at = |offset: i32| f.window(x, &[offset.into()]);
    let far = f.window(x, &[f.mul(radius, 2).into()]);
    let next = match element {
        Element::Bool => f.xor(f.xor(state, at(-1)), f.and(far, at(0))),
        _ => f.max(
            f.min(f.sub(f.add(state, at(-1)), far), f.literal(Literal::from_i128(element, 100))),
            f.literal(Literal::from_i128(element, 1)),
        ),
    };
    // The output is the maximum within the radius (exclusive or for `bool`), in a loop over offsets.
    let sum = f.variable_with(at(0));
    f.for_range(f.neg(radius), f.add(radius, 1), |offset| {
        let one = f.window(x, &[offset.into()]);
        let both = if element == Element::Bool { f.xor(f.get(sum), one) } else { f.max(f.get(sum), one) };
        f.set(sum, both);
    });
    f.finish_function(&[next, f.get(sum)]).unwrap()
}

/// Returns the state at the start of each line, a scalar, and the radius, another scalar.
fn start(axes: usize, element: Element) -> Source {
    let f = Builder::function("start");
    (0..axes).for_each(|_| {
        f.parameter("i", Type::I32);
    });
    let (state, radius) = (f.parameter("state", element), f.parameter("radius", Type::I32));
    Source::new(f.finish_function(&[state, radius]).unwrap(), axes).unwrap()
}

fn expected(sweep: &Sweep, values: &[Literal], shape: &[u64], given: [Literal; 2]) -> Vec<Literal> {
    let (axis, length) = (sweep.axis, shape[sweep.axis] as i64);
    let stride = strides(shape)[axis] as i64;
    let mut result = values.to_vec();
    let outside = sweep.boundary.constant().map_or(values.first().copied().unwrap_or(given[0]), |lanes| lanes[0][0]);
    let starts = (0..values.len() as i64).filter(|i| i / stride % length == 0);
    for first in starts {
        let mut state = given[0];
        for t in 0..length {
            let at = if sweep.backwards { length - 1 - t } else { t };
            let read = |i: i64| sweep.boundary.rule().index(i, length).map(|i| values[(first + i * stride) as usize]);
            let mut line = Line { values: &read, outside, reach: sweep.reach, at };
            let results = sweep.step.evaluate_in(&[state, given[1]], &mut line).unwrap();
            state = results[0];
            result[(first + at * stride) as usize] = results[1];
        }
    }
    result
}

fn check(name: &str, bench: &Bench, sweep: &Sweep, shape: &[u64], element: Element) {
    let count: u64 = shape.iter().product();
    let values = Random(count).values(element, count);
    let given = [Literal::from_i128(element, 1), Literal::from(1i32)];
    let strides: Vec<Literal> = strides(shape).into_iter().map(|stride| Literal::from(stride as i32)).collect();
    let scalars: Vec<Literal> = strides.into_iter().chain(given).collect();
    let inputs = [values.clone()];
    let results =
        run(bench, &sweep.clone().into(), &Given { inputs: &inputs, scalars: &scalars, sizes: shape, ..Given::default() });
    let told = (sweep.axis, sweep.backwards, sweep.spread, &sweep.boundary);
    assert_eq!(results, [expected(sweep, &values, shape, given)], "{name}, {shape:?}, {element}, {told:?}");
}

pub(crate) fn sweep(axes: usize, axis: usize, element: Element, number: usize) -> Sweep {
    let constant = vec![Lanes::from_slice(&[Literal::from_i128(element, 5)])];
    // Only the output goes to memory. The state stays in registers.
    Sweep {
        domain: Domain::of(&vec![40; axes]),
        axis,
        backwards: number % 2 == 1,
        source: strided(axes, Type::I32, element),
        start: start(axes - 1, element),
        restarts: false,
        states: 1,
        step: step(element),
        reach: [(1, 2), (3, 2), (1, 1)][number % 3],
        boundary: [Boundary::Clamp, Boundary::Wrap, Boundary::Mirror, Boundary::Constant(constant)][number % 4].clone(),
        sink: Sink::STORE,
        split: None,
        spread: SweepSpread { staged: number / 2 % 2 == 1, split: false },
    }
}

#[test]
fn every_axis_direction_and_boundary() {
    let shapes: [&[u64]; 9] = [&[0], &[1], &[70], &[5, 40], &[40, 5], &[67, 35], &[3, 0], &[0, 3], &[2, 3, 37]];
    for (name, bench) in benches() {
        for number in 0..12 {
            for shape in shapes {
                let axis = number % shape.len();
                check(name, &bench, &sweep(shape.len(), axis, Element::I32, number), shape, Element::I32);
            }
        }
    }
}

#[test]
fn every_element_type() {
    for (name, bench) in benches() {
        for (number, element) in Element::ALL.into_iter().enumerate() {
            if name == "interp" || number % 3 == 0 {
                check(name, &bench, &sweep(2, number % 2, element, number), &[35, 34], element);
            }
        }
    }
}

/// Returns a sweep of `state · (x[0] | 1) + x[1]`, with windows at offsets 0 and 1. Steps are combined as
/// linear functions.
pub(crate) fn linear(axes: usize, axis: usize, backwards: bool, spread: SweepSpread) -> Sweep {
    let factor_and_sum = |f: &Builder| -> [Value; 2] {
        let x = f.accessor("x", AccessorKind::Window, Type::I32, 1);
        [f.or(f.window(x, &[0.into()]), 1), f.window(x, &[1.into()])]
    };
    let f = Builder::function("step");
    let state = f.parameter("state", Type::I32);
    let [a, b] = factor_and_sum(&f);
    let next = f.add(f.mul(state, a), b);
    let step = f.finish_function(&[next, next]).unwrap();
    let f = Builder::function("lift");
    let element = factor_and_sum(&f);
    let lift = f.finish_function(&element).unwrap();
    let f = Builder::function("compose");
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| f.parameter(name, Type::I32));
    let composed = [f.mul(a, c), f.add(f.mul(b, c), d)];
    let operator = Operator::new(f.finish_function(&composed).unwrap(), &[1i32.into(), 0i32.into()], false).unwrap();
    let f = Builder::function("apply");
    let [state, a, b] = ["state", "a", "b"].map(|name| f.parameter(name, Type::I32));
    let apply = f.finish_function(&[f.add(f.mul(state, a), b)]).unwrap();
    let f = Builder::function("start");
    (1..axes).for_each(|_| {
        f.parameter("i", Type::I32);
    });
    let start = Source::new(f.finish_function(&[f.literal(7i32)]).unwrap(), axes - 1).unwrap();
    Sweep {
        domain: Domain::of(&vec![40; axes]),
        axis,
        backwards,
        source: strided(axes, Type::I32, Element::I32),
        start,
        restarts: false,
        states: 1,
        step,
        reach: (0, 1),
        boundary: Boundary::Wrap,
        sink: Sink::STORE,
        split: Some(Split { lift, operator, apply }),
        spread,
    }
}

#[test]
fn long_lines_are_split() {
    let shapes: [(&[u64], usize); 5] = [(&[5000], 0), (&[3, 1000], 1), (&[700, 3], 0), (&[1], 0), (&[0, 40], 1)];
    for (name, bench) in benches() {
        for (number, (shape, axis)) in shapes.into_iter().enumerate() {
            for split in [false, true] {
                let spread = SweepSpread { staged: number % 2 == 1, split };
                let sweep = linear(shape.len(), axis, number % 2 == 0, spread);
                let count: u64 = shape.iter().product();
                let values = Random(count).values(Element::I32, count);
                let (length, stride) = (shape[axis] as i64, strides(shape)[axis] as i64);
                let mut expected = values.clone();
                for first in (0..count as i64).filter(|i| i / stride % length == 0) {
                    let mut state = 7i32;
                    for t in 0..length {
                        let at = if sweep.backwards { length - 1 - t } else { t };
                        let x = |i: i64| values[(first + i.rem_euclid(length) * stride) as usize].as_i128().unwrap() as i32;
                        state = state.wrapping_mul(x(at) | 1).wrapping_add(x(at + 1));
                        expected[(first + at * stride) as usize] = state.into();
                    }
                }
                let scalars: Vec<Literal> = strides(shape).into_iter().map(|stride| Literal::from(stride as i32)).collect();
                let inputs = [values.clone()];
                let given = Given { inputs: &inputs, scalars: &scalars, sizes: shape, ..Given::default() };
                assert_eq!(run(&bench, &Pattern::from(sweep), &given), [expected], "{name}, {shape:?}, {spread:?}");
            }
        }
    }
}

/// The machine and the sizes determine the spread. Extreme sizes do not overflow.
#[test]
fn spreads_follow_from_machine_and_sizes() {
    let (_, bench) = benches().remove(1);
    let along = |axis: usize, sizes: &[u64]| linear(sizes.len(), axis, false, SweepSpread::default()).best(&bench.machine, sizes);
    assert_eq!(along(1, &[1 << 20, 64]), SweepSpread { staged: true, split: false });
    assert_eq!(along(0, &[64, 1 << 20]), SweepSpread { staged: false, split: false });
    assert_eq!(along(0, &[1 << 30]), SweepSpread { staged: false, split: true });
    assert_eq!(along(1, &[u64::MAX, u64::MAX]), SweepSpread { staged: true, split: false });
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let (_, bench) = benches().remove(0);
    let good = sweep(2, 0, Element::F32, 0);
    let refused = |change: &dyn Fn(&mut Sweep)| {
        let mut sweep = good.clone();
        change(&mut sweep);
        match sweep.program(&bench.machine) {
            Err(Error::Pattern { pattern: "sweep", reason }) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&|s| s.axis = 2), "there is no axis 2 among 2");
    assert_eq!(refused(&|s| s.start = start(2, Element::F32)), "positions of the start have 2 indices, and lines have 1");
    assert_eq!(refused(&|s| s.states = 3), "start and step do not give the same 3 values of a state");
    assert_eq!(
        refused(&|s| s.source = strided(2, Type::I32, Element::I8)),
        "`step` does not have a window of one index for each value of the source"
    );
    assert_eq!(refused(&|s| s.reach.1 = 1 << 21), "a window of 2097152 positions; at most 1048576 on each side are possible");
    let outside = vec![Lanes::from_slice(&[Literal::from(1u8)])];
    assert_eq!(
        refused(&|s| s.boundary = Boundary::Constant(outside.clone())),
        "the constants outside of a line do not have the types of the source's values"
    );
}
