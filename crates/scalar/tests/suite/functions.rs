//! Functions as values: printed, compared, and inlined with bindings of their accessors.

use broadloom_scalar::{
    AccessorKind, Binding, Builder, Element, Environment, Function, Lanes, Literal, Precision, Type, Unroll, Value, popping,
    pushing, windowing, writing,
};
use std::collections::{HashSet, VecDeque};

/// Returns a function that sums a window with weights in a local array, and counts the visited elements.
pub(crate) fn blur() -> Function {
    let b = Builder::function("blur");
    let scale = b.parameter("scale", Type::F32);
    let image = b.accessor("image", AccessorKind::Window, Type::F32, 2);
    let output = b.accessor("output", AccessorKind::Output, Type::F32, 1);
    let weights = b.array(Type::F32, 3);
    for (index, weight) in [0.25, 0.5, 0.25].into_iter().enumerate() {
        b.set_element(weights, index, weight);
    }
    let (sum, bright) = (b.variable(Type::F32), b.variable(Type::U32));
    b.for_range(-1, 2, |y| {
        b.for_step(-1, 2, 1, Unroll::Full, |x| {
            let weight = b.mul(b.element(weights, b.add(x, 1)), b.element(weights, b.add(y, 1)));
            let pixel = b.window(image, &[y.into(), x.into()]);
            b.set(sum, b.add(b.get(sum), b.mul(weight, pixel)));
            b.if_then(b.gt(pixel, 0.5), || b.set(bright, b.add(b.get(bright), 1)));
        });
    });
    b.write(output, &[0.into()], b.mul(b.get(sum), scale));
    let results = [b.get(sum), b.get(bright)];
    b.finish_function(&results).unwrap()
}

#[test]
fn printed_code_is_readable_and_stable() {
    let text = blur().to_string();
    let expected = "\
fn blur(scale: f32) -> (f32, u32)
  window image: f32 of rank 2
  output output: f32 of rank 1
  var v0: f32
  var v1: u32
  local a0: f32[3]
  a0[0] = 0.25
  a0[1] = 0.5
  a0[2] = 0.25
  for i0 in -1..2 by 1
    for i1 in -1..2 by 1 unroll full
      t0 = a0[(i1 + 1)]
      t1 = a0[(i0 + 1)]
      t2 = image@[i0, i1]
      t3 = v0
      v0 = (t3 + ((t0 * t1) * t2))
      if (t2 > 0.5)
        t4 = v1
        v1 = (t4 + 1)
  t5 = v0
  output[0] = (t5 * scale)
  t6 = v0
  t7 = v1
  return t6, t7
";
    assert_eq!(text, expected, "{text}");
}

/// After unrolling, the array is in registers, and the variables are values.
#[test]
fn simplified_code_has_neither_loop_nor_array() {
    let text = blur().simplify().unwrap().to_string();
    for gone in ["for ", "a0", "v0 =", "if "] {
        assert!(!text.contains(gone), "{gone}\n{text}");
    }
    assert_eq!(text.matches("image@").count(), 9, "{text}");
    assert!(text.contains("0.125"), "weights are multiplied beforehand\n{text}");
}

#[test]
fn functions_are_compared_by_what_they_compute() {
    let named = |name: &str, factor: f32| {
        let b = Builder::function(name);
        let x = b.parameter("x", Type::F32);
        b.finish_function(&[b.mul(x, factor)]).unwrap()
    };
    let all: HashSet<Function> = [named("double", 2.0), named("double", 2.0), named("treble", 3.0)].into();
    assert_eq!(all.len(), 2);
    assert_eq!(blur(), blur());
    assert_eq!(blur().simplify().unwrap(), blur().simplify().unwrap());
}

/// The accessors of a function during evaluation.
#[derive(Default)]
struct World {
    written: Vec<f64>,
    queue: VecDeque<i32>,
    pushed: Vec<i128>,
}

impl Environment for World {
    fn window(&mut self, _: usize, offsets: &[i128]) -> Option<Lanes> {
        Some([Literal::from((offsets[0] * 10 + offsets[1]) as f32)].into_iter().collect())
    }
    fn write(&mut self, _: usize, _: &[i128], value: &[Literal]) -> Option<()> {
        self.written.push(value[0].as_f64()?);
        Some(())
    }
    fn pop(&mut self, _: usize) -> Option<Lanes> {
        Some([self.queue.pop_front()?.into()].into_iter().collect())
    }
    fn peek(&mut self, _: usize, offset: i128) -> Option<Lanes> {
        Some([(*self.queue.get(offset as usize)?).into()].into_iter().collect())
    }
    fn push(&mut self, _: usize, value: &[Literal]) -> Option<()> {
        self.pushed.push(value[0].as_i128()?);
        Some(())
    }
}

#[test]
fn windows_bound_to_code_and_to_the_host_are_the_same() {
    let mut world = World::default();
    let direct = blur().evaluate_in(&[2.0f32.into()], &mut world).unwrap();

    let b = Builder::function("caller");
    let scale = b.parameter("scale", Type::F32);
    let last = b.variable(Type::F32);
    let mut image = windowing(|b, offsets| {
        let number = b.add(b.mul(offsets[0], 10), offsets[1]);
        b.convert(number, Type::F32)
    });
    let mut output = writing(|b, _, value| b.set(last, value));
    let mut results = b.inline(&blur(), &[scale], &mut [&mut image, &mut output]);
    drop((image, output));
    results.push(b.get(last));
    let caller = b.finish_function(&results).unwrap();
    for caller in [caller.simplify().unwrap(), caller] {
        let inlined = caller.evaluate(&[2.0f32.into()]).unwrap();
        assert_eq!(inlined[..2], direct[..]);
        assert_eq!(inlined[2].as_f64(), Some(world.written[0]));
    }
}

/// A filter that pops two elements and pushes their sum and the next element.
#[test]
fn queues() {
    let f = Builder::function("filter");
    let source = f.accessor("source", AccessorKind::Source, Type::I32, 0);
    let sink = f.accessor("sink", AccessorKind::Sink, Type::I32, 0);
    let ahead = f.peek(source, 2);
    let sum = f.add(f.pop(source), f.pop(source));
    f.push(sink, sum);
    f.push(sink, ahead);
    let filter = f.finish_function(&[]).unwrap();

    let mut world = World { queue: [1, 2, 3].into(), ..World::default() };
    filter.evaluate_in(&[], &mut world).unwrap();
    assert_eq!(world.pushed, [3, 3]);
    assert_eq!(world.queue, [3]);
    let empty = filter.evaluate_in(&[], &mut World::default());
    assert!(empty.unwrap_err().to_string().contains("gives no such value"));

    // A binding with a position of its own.
    struct Counted {
        next: i32,
    }
    impl Binding for Counted {
        fn pop(&mut self, b: &Builder) -> Value {
            self.next += 1;
            b.literal(self.next - 1)
        }
        fn peek(&mut self, b: &Builder, offset: Value) -> Value {
            b.add(b.convert(offset, Type::I32), self.next)
        }
    }
    let b = Builder::function("caller");
    let mut pushed = vec![];
    let mut sink = pushing(|_, value| pushed.push(value));
    b.inline(&filter, &[], &mut [&mut Counted { next: 5 }, &mut sink]);
    drop(sink);
    let caller = b.finish_function(&pushed).unwrap();
    assert_eq!(caller.evaluate(&[]).unwrap(), [11i32.into(), 7i32.into()]);
    let mut only_pops = popping(|b| b.literal(1i32));
    let b = Builder::function("caller");
    b.inline(&filter, &[], &mut [&mut only_pops, &mut pushing(|_, _| {})]);
    assert!(b.finish_function(&[]).unwrap_err().to_string().contains("no queue to read"));
}

/// Vectors work lane by lane, also with plain values and literals.
#[test]
fn vectors() {
    let b = Builder::function("vectors");
    let pixel = b.parameter("pixel", Type::vector(Element::F32, 3).unwrap());
    let gain = b.parameter("gain", Type::F32);
    let bright = b.min(b.mul(b.add(pixel, 1), gain), 10.0);
    let chosen = b.select(b.gt(bright, 5.0), bright, 0.0);
    let total = b.variable_with(chosen);
    b.for_range(0, 2, |_| b.set(total, b.add(b.get(total), pixel)));
    let function = b.finish_function(&[b.get(total), b.lane(bright, 1)]).unwrap();
    let arguments: Vec<Literal> = [1.0f32, 2.0, 9.0, 2.0].map(Literal::from).into();
    let expected: Vec<Literal> = [2.0f32, 10.0, 28.0, 6.0].map(Literal::from).into();
    assert_eq!(function.evaluate(&arguments).unwrap(), expected);
    assert_eq!(function.simplify().unwrap().evaluate(&arguments).unwrap(), expected);
}

/// A builder that prefers fast operations also applies this to inlined code. Other builders do not.
#[test]
fn what_is_fast_is_preferred() {
    let b = Builder::function("accurate");
    let (x, y) = (b.parameter("x", Type::F32), b.parameter("y", Type::F32));
    let result = b.div(b.exp(x), b.sqrt(y));
    let accurate = b.finish_function(&[result]).unwrap();
    assert!(!accurate.to_string().contains("approx"), "{accurate}");
    let b = Builder::function("fast");
    b.prefer(Precision::Fast);
    let (x, y) = (b.parameter("x", Type::F32), b.parameter("y", Type::F32));
    let inlined = b.inline(&accurate, &[x, y], &mut []);
    let double = b.div(b.convert(x, Type::F64), b.convert(y, Type::F64));
    let fast = b.finish_function(&[inlined[0], double]).unwrap();
    let text = fast.to_string();
    assert!(text.contains("div_approx") && text.contains("sqrt_approx") && text.contains("fast"), "{text}");
    // Doubles remain exact.
    assert_eq!(text.matches("approx").count(), 2, "{text}");
}

/// A magnitude that is written with a selection, and even powers of a number and of its negation.
#[test]
fn a_number_and_its_negation_share_what_is_even() {
    let b = Builder::function("even");
    let x = b.parameter("x", Type::F32);
    let zero = b.literal(0.0f32);
    let even = |x: Value| {
        let magnitude = b.select(b.gt(x, 0.0), x, b.sub(zero, x));
        let square = b.mul(b.mul(x, -0.5), x);
        let side = b.select(b.gt(x, 0.0), 1.0, b.literal(2.0f32));
        [magnitude, square, b.mul(x, x), side]
    };
    let below = b.select(b.lt(x, 0.0), b.neg(x), b.add(x, 0.0));
    let results = [even(x).as_slice(), &even(b.sub(zero, x)), &[below, b.mul(b.neg(x), b.neg(x))]].concat();
    let function = b.finish_function(&results).unwrap();
    let simplified = function.simplify().unwrap();
    let text = simplified.to_string();
    assert_eq!((text.matches("abs").count(), text.matches("- x").count()), (1, 0), "{text}");
    assert!(text.matches('*').count() == 3, "{text}");
    let numbers = [0.0f32, -0.0, 1.5, -2.5, f32::MIN_POSITIVE / 4.0, -1e-44, 3e30, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    for number in numbers {
        let (want, found) = (function.evaluate(&[number.into()]).unwrap(), simplified.evaluate(&[number.into()]).unwrap());
        for (want, found) in want.iter().zip(&found) {
            let is_nan = |literal: &Literal| literal.as_f64().is_some_and(f64::is_nan);
            assert!(want == found || (is_nan(want) && is_nan(found)), "{number}: {want:?}, not {found:?}\n{text}");
        }
    }
}

/// Inputs that are all zero except one.
struct Unit {
    one: Option<i128>,
    written: Vec<f64>,
}

impl Environment for Unit {
    fn read(&mut self, _: usize, position: &[i128]) -> Option<Lanes> {
        Some([Literal::from(if self.one == Some(position[0]) { 1.0f32 } else { 0.0 })].into_iter().collect())
    }

    fn write(&mut self, _: usize, position: &[i128], value: &[Literal]) -> Option<()> {
        self.written[usize::try_from(position[0]).ok()?] = value[0].as_f64()?;
        Some(())
    }
}

/// One evaluation with linear forms gives the results of an evaluation for each input.
#[test]
fn linear_forms_have_the_factors_of_all_inputs() {
    let sums = |last: &dyn Fn(&Builder, Value) -> Value| {
        let b = Builder::function("sums");
        let input = b.accessor("input", AccessorKind::Input, Type::F32, 1);
        let output = b.accessor("output", AccessorKind::Output, Type::F32, 1);
        let (kept, sum) = (b.array(Type::F32, 8), b.variable_with(b.literal(0.5f32)));
        b.for_range(0, 8, |i| b.set_element(kept, i, b.mul(b.read(input, &[i.into()]), b.convert(i, Type::F32))));
        b.for_range(0, 8, |i| {
            let item = b.element(kept, b.sub(7, i));
            b.if_else(
                b.lt(i, 3),
                || b.set(sum, b.sub(item, b.get(sum))),
                || b.set(sum, b.add(b.div(b.neg(b.get(sum)), 2.0), item)),
            );
            b.write(output, &[i.into()], b.select(b.eq(b.rem(i, 2), 0), b.get(sum), b.fma(item, 3.0, b.get(sum))));
        });
        b.write(output, &[8.into()], last(&b, b.get(sum)));
        b.finish_function(&[]).unwrap()
    };
    let linear = sums(&|b, sum| b.add(sum, sum));
    let evaluated = |one: Option<i128>| {
        let mut unit = Unit { one, written: vec![0.0; 9] };
        linear.evaluate_in(&[], &mut unit).unwrap();
        unit.written
    };
    let constants = evaluated(None);
    let forms = linear.linear_forms(&[]).unwrap();
    assert_eq!(forms.len(), 9);
    for form in &forms {
        let place = form.position as usize;
        assert_eq!(form.constant, constants[place]);
        for item in 0..8 {
            let factor: f64 = form.factors.iter().filter(|(_, own, _)| *own == item).map(|(.., factor)| factor).sum();
            assert_eq!(factor, evaluated(Some(item))[place] - constants[place], "item {item} in {place}");
        }
    }
    for bent in [sums(&|b, sum| b.mul(sum, sum)), sums(&|b, sum| b.max(sum, 0.0)), sums(&|b, sum| b.div(1.0, sum))] {
        assert!(bent.linear_forms(&[]).unwrap_err().to_string().contains("not linear"));
    }
}
