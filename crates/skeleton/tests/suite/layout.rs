//! Functions bound to memory of every layout.

use crate::support::{Given, Literals, Random, benches, run};
use broadloom_scalar::{AccessorKind, Builder, Element, Function, Lanes, Literal, Type, Value};
use broadloom_skeleton::{Access, Boundary, Domain, Error, Layout, Map, Number, Pattern, Sink, Source};

fn i64s(values: &[i64]) -> Vec<Literal> {
    values.iter().map(|value| Literal::from(*value)).collect()
}

/// Reads the element at a position of two axes.
fn element(ty: Type) -> Function {
    let f = Builder::function("element");
    let (y, x) = (f.parameter("y", Type::I32), f.parameter("x", Type::I32));
    let image = f.accessor("image", AccessorKind::Input, ty, 2);
    f.finish_function(&[f.read(image, &[y.into(), x.into()])]).unwrap()
}

/// Pixels of three channels: interleaved with padding after each row, in planes, and in three buffers. One
/// function serves all layouts.
#[test]
fn one_function_for_all_layouts() {
    let (height, width, pitch) = (5u64, 37u64, 128i64);
    let function = |element: Element| self::element(Type::vector(element, 3).unwrap());
    for (name, bench) in benches() {
        for element in Element::ALL {
            let pixels = Random(7).values(element, height * width * 3);
            let pixel = |y: u64, x: u64, c: u64| pixels[((y * width + x) * 3 + c) as usize];
            let place = |size: i64, index: &dyn Fn(i64, i64, i64) -> i64| {
                let mut memory = vec![Literal::zero(element); size as usize];
                for (y, x, c) in (0..height).flat_map(|y| (0..width).flat_map(move |x| (0..3).map(move |c| (y, x, c)))) {
                    memory[index(y as i64, x as i64, c as i64) as usize] = pixel(y, x, c);
                }
                memory
            };
            let scalar = Number::Scalar;
            let interleaved = Layout::strided(&[scalar, 3.into()]).offset(2).lanes_apart(1);
            let planes = Layout::strided(&[scalar, 1.into()]).offset(scalar).lanes_apart(scalar);
            let backwards = Layout::strided(&[scalar, (-1).into()]).offset(scalar).lanes_apart(scalar);
            let apart = Layout::pitched().lanes_in_buffers();
            let [w, h] = [width as i64, height as i64];
            let cases = [
                (interleaved, vec![pitch], vec![place(h * pitch + 2, &|y, x, c| y * pitch + 3 * x + c + 2)]),
                (planes, vec![w, 4, h * w], vec![place(4 + 3 * h * w, &|y, x, c| 4 + (c * h + y) * w + x)]),
                (backwards, vec![w, w - 1, h * w], vec![place(3 * h * w, &|y, x, c| (c * h + y) * w + w - 1 - x)]),
                (
                    apart,
                    vec![pitch],
                    (0..3).map(|c| place(h * pitch, &|y, x, own| if own == c { y * pitch + x } else { y * pitch + w })).collect(),
                ),
            ];
            for (layout, numbers, inputs) in cases {
                let source = Source::bound(&function(element), 2, &[layout.clone().into()]).unwrap();
                let map = Pattern::from(Map { domain: Domain::of(&[5, 40]), source, sink: Sink::STORE });
                let given = Given { inputs: &inputs, scalars: &i64s(&numbers), sizes: &[height, width], ..Given::default() };
                assert_eq!(run(&bench, &map, &given), std::slice::from_ref(&pixels), "{name}, {element}, {layout:?}");
            }
            if name != "interp" {
                break;
            }
        }
    }
}

/// Fields of records, read from one buffer and written to another type of record, both without a copy.
#[test]
fn records_of_fields() {
    let f = Builder::function("fields");
    let i = f.parameter("i", Type::I64);
    let weight = f.accessor("weight", AccessorKind::Input, Type::F32, 1);
    let number = f.accessor("number", AccessorKind::Input, Type::U16, 1);
    let fields = f.finish_function(&[f.read(weight, &[i.into()]), f.read(number, &[i.into()])]).unwrap();
    // Records of 12 bytes: a weight, four unrelated bytes, a number, two bytes of padding.
    let record = |bytes: i64, offset: i64| Layout::strided(&[(12 / bytes).into()]).offset(offset / bytes);
    let source = Source::bound(&fields, 1, &[record(4, 0).into(), record(2, 8).into()]).unwrap();
    let g = Builder::function("swapped");
    let (i, weight, number) = (g.parameter("i", Type::I64), g.parameter("w", Type::F32), g.parameter("n", Type::U16));
    let out = g.accessor("out", AccessorKind::Output, Type::F32, 2);
    g.write(out, &[i.into(), 0.into()], g.convert(number, Type::F32));
    g.write(out, &[i.into(), 1.into()], weight);
    let swapped = g.finish_function(&[]).unwrap();
    let sink = Sink::bound(&swapped, 1, 2, &[Layout::strided(&[2.into(), 1.into()]).into()]).unwrap();
    let map = Pattern::from(Map { domain: Domain::LINE, source, sink });
    for (name, bench) in benches() {
        for count in [0u64, 1, 1000] {
            let words: Vec<Literal> = (0..3 * count)
                .map(|i| {
                    if i % 3 == 2 {
                        Literal::from((i / 3 % 65536) as u32)
                    } else {
                        Literal::from_bits(Element::U32, u64::from((i as f32).to_bits()))
                    }
                })
                .collect();
            let expected: Vec<Literal> =
                (0..count).flat_map(|i| [Literal::from((i % 65536) as f32), Literal::from((3 * i) as f32)]).collect();
            let inputs = [words.clone(), words];
            let given = Given { inputs: &inputs, sizes: &[count], least: 2 * count, ..Given::default() };
            assert_eq!(run(&bench, &map, &given), [expected], "{name}, {count}");
        }
    }
}

/// Windows with a scalar as radius, over an image with a pitch.
#[test]
fn windows_with_a_radius_of_the_call() {
    let f = Builder::function("sum");
    f.parameter("y", Type::I32);
    f.parameter("x", Type::I32);
    let radius = f.parameter("radius", Type::I32);
    let image = f.accessor("image", AccessorKind::Window, Type::I32, 2);
    let sum = f.variable_with(f.literal(0i32));
    let around = |body: &dyn Fn(Value)| f.for_range(f.neg(radius), f.add(radius, 1), body);
    around(&|dy| around(&|dx| f.set(sum, f.add(f.mul(f.get(sum), 3), f.window(image, &[dy.into(), dx.into()])))));
    let function = f.finish_function(&[f.get(sum)]).unwrap();
    let outside = Boundary::Constant(Lanes::from_slice(&[Literal::from(9i32)]));
    let (height, width, pitch) = (7i64, 35i64, 48i64);
    let memory = Random(3).values(Element::I32, (height * pitch) as u64);
    for (name, bench) in benches() {
        for boundary in [Boundary::Clamp, Boundary::Wrap, Boundary::Mirror, outside.clone()] {
            let access = Access::Window { layout: Layout::pitched(), around: vec![0, 1], boundary: boundary.clone() };
            let source = Source::bound(&function, 2, &[access]).unwrap();
            let map = Pattern::from(Map { domain: Domain::of(&[7, 40]), source, sink: Sink::STORE });
            for radius in [0i32, 1, 4] {
                let at = |y: i64, x: i64| match (boundary.rule().index(y, height), boundary.rule().index(x, width)) {
                    (Some(y), Some(x)) => memory[(y * pitch + x) as usize].as_i128().unwrap() as i32,
                    _ => 9,
                };
                let sum = |i: i64| {
                    let around = || -i64::from(radius)..=i64::from(radius);
                    let all = around().flat_map(|dy| around().map(move |dx| (i / width + dy, i % width + dx)));
                    all.fold(0i32, |sum, (y, x)| sum.wrapping_mul(3).wrapping_add(at(y, x)))
                };
                let expected: Vec<Literal> = (0..height * width).map(|i| Literal::from(sum(i))).collect();
                let scalars: Vec<Literal> = std::iter::once(Literal::from(radius)).chain(i64s(&[pitch, height, width])).collect();
                let inputs = [memory.clone()];
                let given = Given { inputs: &inputs, scalars: &scalars, sizes: &[7, 35], ..Given::default() };
                assert_eq!(run(&bench, &map, &given), [expected], "{name}, {boundary:?}, {radius}");
            }
        }
        assert_eq!(bench.len(), 4, "a radius compiles nothing");
    }
}

/// Firings that take three elements, peek at two more, and append two. The elements of the queue between them
/// have a stride.
#[test]
fn queues() {
    let f = Builder::function("fire");
    f.parameter("firing", Type::U32);
    let queue = f.accessor("queue", AccessorKind::Source, Type::I32, 0);
    let ahead = f.peek(queue, 4);
    let sum = f.variable_with(f.literal(0i32));
    f.for_range(0, 3, |_| f.set(sum, f.add(f.mul(f.get(sum), 5), f.pop(queue))));
    let behind = f.peek(queue, 0);
    let source = f.finish_function(&[f.get(sum), f.sub(ahead, behind)]).unwrap();
    let g = Builder::function("append");
    g.parameter("firing", Type::U32);
    let (x, y) = (g.parameter("x", Type::I32), g.parameter("y", Type::I32));
    let queue = g.accessor("queue", AccessorKind::Sink, Type::I32, 0);
    g.push(queue, x);
    g.push(queue, y);
    let sink = g.finish_function(&[]).unwrap();
    let taken = Access::Queue { layout: Layout::strided(&[2.into()]), axis: 0, rate: Number::Scalar };
    let appended = Access::Queue { layout: Layout::line(), axis: 0, rate: 2.into() };
    let map = Pattern::from(Map {
        domain: Domain::LINE,
        source: Source::bound(&source, 1, &[taken]).unwrap(),
        sink: Sink::bound(&sink, 1, 2, &[appended]).unwrap(),
    });
    for (name, bench) in benches() {
        for firings in [0u64, 1, 1000] {
            let memory = Random(firings).values(Element::I32, 2 * (3 * firings + 2));
            let at = |i: u64| memory[2 * i as usize].as_i128().unwrap() as i32;
            let fire = |i: u64| {
                let first = 3 * i;
                let sum = (0..3).fold(0i32, |sum, k| sum.wrapping_mul(5).wrapping_add(at(first + k)));
                [sum, at(first + 4).wrapping_sub(at(first + 3))]
            };
            let expected: Vec<Literal> = (0..firings).flat_map(fire).map(Literal::from).collect();
            let inputs = [memory.clone()];
            let given =
                Given { inputs: &inputs, scalars: &i64s(&[3]), sizes: &[firings], least: 2 * firings, ..Given::default() };
            assert_eq!(run(&bench, &map, &given), [expected], "{name}, {firings}");
        }
    }
}

#[test]
fn bindings_that_do_not_fit_are_refused() {
    let reason = |result: broadloom_skeleton::Result<Source>| match result {
        Err(Error::Function { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    let function = element(Type::F32);
    let unbound = reason(Source::new(function.clone(), 2));
    assert_eq!(unbound, "`image` is not read or written at one index; bind it to a layout");
    assert_eq!(reason(Source::bound(&function, 2, &[])), "it has 1 accessors, and 0 are bound");
    let rank = reason(Source::bound(&function, 2, &[Layout::line().into()]));
    assert_eq!(rank, "`image` is bound to a layout of 1 indices in another way than it is used");
    let queue = Access::Queue { layout: Layout::line(), axis: 0, rate: 1.into() };
    assert_eq!(reason(Source::bound(&function, 2, &[queue])), rank);
    let f = Builder::function("around");
    f.parameter("x", Type::I32);
    let image = f.accessor("image", AccessorKind::Window, Type::F32, 1);
    let around = f.finish_function(&[f.window(image, &[0.into()])]).unwrap();
    let window = |axis: usize, boundary: Boundary| Access::Window { layout: Layout::line(), around: vec![axis], boundary };
    let axis = reason(Source::bound(&around, 1, &[window(1, Boundary::Clamp)]));
    assert_eq!(axis, "`image` is bound to index 1 of a position with 1 indices");
    let constant = Boundary::Constant(Lanes::from_slice(&[Literal::from(1u8)]));
    assert_eq!(reason(Source::bound(&around, 1, &[window(0, constant)])), "the constant outside of `image` is no `f32`");
}
