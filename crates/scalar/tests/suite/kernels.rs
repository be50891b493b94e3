//! Features of kernels only: warps, barriers, shared memory, atomics, wide accesses. The interpreter checks
//! for races.

use crate::support::{devices, exact_lowerings, keep};
use broadloom_device::{Argument, Device, Launch};
use broadloom_interp::Interp;
use broadloom_scalar::{
    AtomicOp, Axis, Builder, Cache, Element, Kernel, LaunchBounds, Level, Literal, Lowering, Order, Scope, Shuffle, Type, Value,
    Vote, WarpReduce, lower_with,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Checks the buffers after a launch, on every device and with every lowering.
fn check(kernel: &Kernel, launch: &Launch, buffers: &[Vec<u8>], expected: &[Vec<u8>]) {
    let watched = Interp::new(broadloom_interp::Options { check: true, ..broadloom_interp::Options::default() });
    let mut devices = devices();
    devices.push(("watched", Device::new(watched.clone())));
    for (name, device) in devices {
        for (kind, lowering) in exact_lowerings() {
            let module =
                Arc::new(lower_with(std::slice::from_ref(kernel), &lowering).unwrap_or_else(|e| panic!("{e}\n{kernel}")));
            keep(&module);
            let text = broadloom_ptx::print(&module);
            let loaded = device.load(&module).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let memory: Vec<_> = buffers.iter().map(|bytes| device.upload(bytes).unwrap()).collect();
            let arguments: Vec<Argument> = memory.iter().map(Argument::from).collect();
            let ran = loaded.kernel(kernel.name()).unwrap().launch(launch, &arguments).and_then(|()| device.synchronise());
            ran.unwrap_or_else(|error| panic!("{name}, {kind}: {error}\n{text}"));
            for (index, (memory, expected)) in memory.iter().zip(expected).enumerate() {
                assert_eq!(&memory.read().unwrap(), expected, "{name}, {kind}, buffer {index}\n{text}");
            }
        }
    }
    assert!(watched.findings().is_empty(), "{:?}", watched.findings());
}

fn bytes<T: Into<Literal> + Copy>(values: &[T]) -> Vec<u8> {
    Literal::to_bytes(&values.iter().map(|value| (*value).into()).collect::<Vec<_>>())
}

/// Returns a kernel of one warp whose results, all of one type, are stored at `out[which * 32 + lane]`.
fn warp_kernel(element: Element, build: impl FnOnce(&Builder, Value) -> Vec<Value>) -> Kernel {
    let b = Builder::kernel("warp");
    b.launch_bounds(LaunchBounds::block(32));
    let out = b.pointer("out", element);
    let lane = b.thread(Axis::X);
    for (index, value) in build(&b, lane).into_iter().enumerate() {
        b.store(out, b.add(lane, index as u32 * 32), value);
    }
    b.finish_kernel().unwrap()
}

fn check_warp<T: Into<Literal> + Copy>(kernel: &Kernel, expected: &[[T; 32]]) {
    let expected: Vec<u8> = expected.iter().flat_map(|row| bytes(row)).collect();
    check(kernel, &Launch::linear(1, 32), &[vec![0; expected.len()]], &[expected]);
}

#[test]
fn shuffles_of_every_type() {
    for element in Element::ALL {
        let kernel = warp_kernel(element, |b, lane| {
            let value = b.convert(b.mul(lane, 3), element);
            vec![
                b.shuffle(Shuffle::Up, value, 3),
                b.shuffle(Shuffle::Down, value, 3),
                b.shuffle(Shuffle::Xor, value, 5),
                b.shuffle(Shuffle::Index, value, b.sub(31, lane)),
                b.shuffle_in(Shuffle::Up, value, 1, 8, None),
                b.shuffle_in(Shuffle::Index, value, 2, 4, None),
            ]
        });
        let value = |lane: usize| {
            let number = lane as i128 * 3;
            if element == Element::Bool { Literal::from(number != 0) } else { Literal::from_i128(element, number) }
        };
        let row = |from: &dyn Fn(usize) -> usize| -> [Literal; 32] { std::array::from_fn(|lane| value(from(lane))) };
        check_warp(
            &kernel,
            &[
                row(&|lane| if lane < 3 { lane } else { lane - 3 }),
                row(&|lane| if lane > 28 { lane } else { lane + 3 }),
                row(&|lane| lane ^ 5),
                row(&|lane| 31 - lane),
                row(&|lane| if lane % 8 == 0 { lane } else { lane - 1 }),
                row(&|lane| (lane & !3) + 2),
            ],
        );
    }
}

#[test]
fn votes_matches_and_reductions() {
    let kernel = warp_kernel(Element::U32, |b, lane| {
        let odd = b.eq(b.and(lane, 1), 1);
        let third = b.rem(lane, 3);
        let low = b.literal(0xffffu32);
        vec![
            b.ballot(odd, None),
            b.convert(b.vote(Vote::Any, b.eq(lane, 7), None), Type::U32),
            b.convert(b.vote(Vote::All, b.lt(lane, 31), None), Type::U32),
            b.convert(b.vote(Vote::Uniform, b.lt(lane, 32), None), Type::U32),
            b.match_any(third, None),
            b.match_any(b.convert(third, Type::F64), None),
            b.warp_reduce(WarpReduce::Add, lane, None),
            b.warp_reduce(WarpReduce::Max, lane, None),
            b.warp_reduce(WarpReduce::Xor, third, None),
            b.active_mask(),
            b.choose(b.lt(lane, 16), || b.ballot(odd, Some(low)), || b.constant(Type::U32, 5)),
            b.special(broadloom_scalar::Special::LaneMaskLt),
            b.special(broadloom_scalar::Special::Lane),
        ]
    });
    let mask = |test: &dyn Fn(usize) -> bool| (0..32).filter(|lane| test(*lane)).fold(0u32, |mask, lane| mask | 1 << lane);
    let matches: [u32; 32] = std::array::from_fn(|lane| mask(&|other| other % 3 == lane % 3));
    check_warp(
        &kernel,
        &[
            [0xaaaa_aaaau32; 32],
            [1; 32],
            [0; 32],
            [1; 32],
            matches,
            matches,
            [496; 32],
            [31; 32],
            [(0..32).map(|lane| lane % 3).fold(0, |a, b| a ^ b); 32],
            [u32::MAX; 32],
            std::array::from_fn(|lane| if lane < 16 { 0xaaaa } else { 5 }),
            std::array::from_fn(|lane| (1u32 << lane) - 1),
            std::array::from_fn(|lane| lane as u32),
        ],
    );
}

/// Several adjacent elements, of every type and width, copied with one added to each.
#[test]
fn wide_accesses_of_every_type() {
    for element in Element::ALL {
        for lanes in [1, 2, 3, 4, 8, 16] {
            let b = Builder::kernel("wide");
            let (input, output) = (b.pointer("input", element), b.pointer("output", element));
            let first = b.mul(b.thread(Axis::X), lanes);
            let value = b.load_as(input, first, lanes as usize, Order::Weak, Cache::ReadOnlyStreaming);
            let value = if element == Element::Bool { b.not(value) } else { b.add(value, 1) };
            b.store_as(output, first, value, Order::Weak, Cache::Streaming);
            let kernel = b.finish_kernel().unwrap();
            let count = 8 * lanes as usize;
            let values: Vec<Literal> = (0..count).map(|index| Literal::from_i128(element, index as i128 % 2)).collect();
            let expected: Vec<Literal> = (0..count)
                .map(|index| {
                    let value = index as i128 % 2;
                    Literal::from_i128(element, if element == Element::Bool { 1 - value } else { value + 1 })
                })
                .collect();
            let inputs = Literal::to_bytes(&values);
            check(
                &kernel,
                &Launch::linear(1, 8),
                &[inputs.clone(), vec![0; inputs.len()]],
                &[inputs, Literal::to_bytes(&expected)],
            );
        }
    }
}

/// Stores of single elements and of vectors in some threads only; conditions that are known leave a plain store or none.
#[test]
fn stores_under_conditions() {
    for element in [Element::U8, Element::F16, Element::I32, Element::F64] {
        for lanes in [1, 4] {
            let b = Builder::kernel("conditions");
            let (input, output) = (b.pointer("input", element), b.pointer("output", element));
            let thread = b.thread(Axis::X);
            let first = b.mul(thread, lanes);
            let value = b.load_vector(input, first, lanes as usize);
            b.store_if(b.eq(b.rem(thread, 3), 1), output, first, b.add(value, 1));
            b.store_if(b.literal(false), output, first, b.add(value, 2));
            b.if_then(b.eq(thread, 6), || b.store_if(b.literal(true), output, first, b.add(value, 3)));
            let kernel = b.finish_kernel().unwrap();
            let values = |added: &dyn Fn(i128) -> Option<i128>| -> Vec<u8> {
                let value = |index: i128| added(index / lanes as i128).map_or(0, |added| index + added);
                let each = (0..8 * lanes as i128).map(|index| Literal::from_i128(element, value(index)));
                Literal::to_bytes(&each.collect::<Vec<_>>())
            };
            let inputs = values(&|_| Some(0));
            let expected = values(&|thread| match thread {
                1 | 4 | 7 => Some(1),
                6 => Some(3),
                _ => None,
            });
            check(&kernel, &Launch::linear(1, 8), &[inputs.clone(), vec![0; inputs.len()]], &[inputs, expected]);
        }
    }
}

/// Every atomic operation on every type that supports it, in global and in shared memory. Sums of floats are
/// exact here.
#[test]
fn atomic_operations() {
    use AtomicOp::{Add, And, Exchange, Max, Min, Or, Xor};
    for element in [Element::I32, Element::U32, Element::I64, Element::U64, Element::F16, Element::F32, Element::F64] {
        let ops: Vec<AtomicOp> = match element {
            Element::F16 => vec![Add],
            Element::F32 | Element::F64 => vec![Add, Exchange],
            _ => vec![Add, Min, Max, And, Or, Xor, Exchange],
        };
        let b = Builder::kernel("atomics");
        b.launch_bounds(LaunchBounds::block(64));
        let (out, copy) = (b.pointer("out", element), b.pointer("copy", element));
        let shared = b.shared(element, ops.len() as u32);
        let thread = b.thread(Axis::X);
        let here = b.lt(thread, ops.len() as u32);
        b.if_then(here, || b.store(shared, thread, 6));
        b.barrier();
        for (index, op) in ops.iter().enumerate() {
            // All threads exchange one value, so their order does not matter.
            let value = if *op == Exchange { b.constant(element, 9) } else { b.convert(b.and(thread, 7), element) };
            b.atomic(*op, out, index, value, Order::Weak);
            b.atomic(*op, shared, index, value, Order::Relaxed(Scope::Block));
        }
        b.barrier();
        b.if_then(here, || b.store(copy, thread, b.load(shared, thread)));
        let kernel = b.finish_kernel().unwrap();
        let number = |value: i128| Literal::from_i128(element, value);
        let expected: Vec<Literal> = ops
            .iter()
            .map(|op| {
                number(match op {
                    Add => 6 + 8 * 28,
                    Min | And => 0,
                    Max | Or => 7,
                    Xor => 6,
                    Exchange => 9,
                    AtomicOp::CompareExchange => unreachable!("not in the lists"),
                })
            })
            .collect();
        let expected = Literal::to_bytes(&expected);
        let start = Literal::to_bytes(&vec![number(6); ops.len()]);
        check(&kernel, &Launch::linear(1, 64), &[start.clone(), vec![0; start.len()]], &[expected.clone(), expected]);
    }
}

#[test]
fn compare_and_exchange_counts() {
    for element in [Element::U16, Element::I16, Element::I32, Element::U64] {
        let b = Builder::kernel("cas");
        b.launch_bounds(LaunchBounds::block(32));
        let counter = b.pointer("counter", element);
        // Each number is taken by one thread.
        let mine = b.convert(b.thread(Axis::X), element);
        b.for_range(0, b.literal(32u32), |turn| {
            b.if_then(b.eq(turn, b.thread(Axis::X)), || {
                let old = b.atomic_compare_exchange(counter, 0, mine, b.add(mine, 1), Order::AcquireRelease(Scope::Device));
                b.if_then(b.ne(old, mine), || b.store(counter, 1, 77));
            });
            b.warp_barrier();
        });
        let kernel = b.finish_kernel().unwrap();
        let before = Literal::to_bytes(&[Literal::zero(element); 2]);
        check(
            &kernel,
            &Launch::linear(1, 32),
            &[before],
            &[Literal::to_bytes(&[Literal::from_i128(element, 32), Literal::zero(element)])],
        );
    }
}

/// A prefetch may be outside of the memory. Prefetches of shared memory have no effect.
#[test]
fn memory_that_is_asked_for_ahead() {
    let b = Builder::kernel("ahead");
    b.launch_bounds(LaunchBounds::block(32));
    let (from, to) = (b.pointer("from", Element::U32), b.pointer("to", Element::U32));
    let near = b.shared(Element::U32, 32);
    let thread = b.thread(Axis::X);
    b.prefetch(from, thread, Level::First);
    b.prefetch(from, b.add(thread, 1 << 20), Level::Second);
    b.prefetch(near, thread, Level::First);
    b.store(to, thread, b.load(from, thread));
    let kernel = b.finish_kernel().unwrap();
    let text = broadloom_ptx::print(&lower_with(std::slice::from_ref(&kernel), &exact_lowerings()[0].1).unwrap());
    assert_eq!(text.matches("prefetch.global.L1").count(), 1, "{text}");
    assert_eq!(text.matches("prefetch.global.L2").count(), 1, "{text}");
    let numbers = bytes(&(0..32u32).collect::<Vec<_>>());
    check(&kernel, &Launch::linear(1, 32), &[numbers.clone(), vec![0; 128]], &[numbers.clone(), numbers]);
}

/// Dynamic shared memory viewed as two types, a counting barrier, fences and ordered accesses.
#[test]
fn shared_views_barriers_and_orders() {
    let b = Builder::kernel("views");
    b.launch_bounds(LaunchBounds::block(64));
    let (out, flag) = (b.pointer("out", Element::U32), b.pointer("flag", Element::U64));
    let thread = b.thread(Axis::X);
    let words = b.dynamic_shared(Element::U32);
    let doubles = b.shared_view(words, Element::F64, 256);
    b.store(words, thread, b.mul(thread, 2));
    b.store(doubles, b.sub(63, thread), b.convert(thread, Type::F64));
    b.barrier();
    let odd = b.barrier_count(b.eq(b.and(thread, 1), 1));
    let mirrored = b.convert(b.load(doubles, thread), Type::U32);
    let next = b.load(words, b.and(b.add(thread, 1), 63));
    b.store(out, thread, b.add(b.add(mirrored, next), odd));
    b.if_then(b.eq(thread, 0), || {
        b.fence(Scope::Device);
        b.store_as(flag, 0, 41, Order::Release(Scope::Device), Cache::Normal);
        let seen = b.load_as(flag, 0, 1, Order::Acquire(Scope::Device), Cache::Normal);
        b.store_as(flag, 1, b.add(seen, 1), Order::Relaxed(Scope::System), Cache::Normal);
        let pair = b.load_as(flag, 0, 2, Order::Volatile, Cache::Normal);
        b.store(flag, 2, b.add(b.lane(pair, 0), b.lane(pair, 1)));
    });
    let kernel = b.finish_kernel().unwrap();
    let expected: Vec<u32> = (0..64).map(|thread| (63 - thread) + 2 * ((thread + 1) & 63) + 32).collect();
    check(
        &kernel,
        &Launch::linear(1, 64).shared(256 + 512),
        &[vec![0; 256], vec![0; 24]],
        &[bytes(&expected), bytes(&[41u64, 42, 83])],
    );
}

/// A local array with unknown indices remains an array, and its results equal those of one in registers.
#[test]
fn local_arrays_with_any_index() {
    let b = Builder::kernel("locals");
    b.launch_bounds(LaunchBounds::block(32));
    let out = b.pointer("out", Element::I16);
    let thread = b.thread(Axis::X);
    let array = b.array(Type::vector(Element::I16, 2).unwrap(), 8);
    b.for_range(0, b.literal(8u32), |i| {
        let value = b.convert(b.mul(i, thread), Type::I16);
        b.set_element(array, i, b.vector(&[value, b.neg(value)]));
    });
    let pair = b.element(array, b.and(thread, 7));
    b.store(out, b.mul(thread, 2), pair);
    let kernel = b.finish_kernel().unwrap();
    let expected: Vec<i16> = (0..32i16).flat_map(|thread| [(thread & 7) * thread, -(thread & 7) * thread]).collect();
    check(&kernel, &Launch::linear(1, 32), &[vec![0; 128]], &[bytes(&expected)]);
    assert_eq!(Literal::from_bytes(Element::I16, &bytes(&expected)).count(), 64);
}

/// Returns a kernel that reads five neighbours from a computed place on, with replacements outside of the
/// input. It stores their sum, and the last one or the sum again.
fn looked_up(between: impl Fn(&Builder, broadloom_scalar::Memory)) -> Kernel {
    let b = Builder::kernel("looked_up");
    b.launch_bounds(LaunchBounds::block(32));
    let (input, output) = (b.pointer("input", Element::F32), b.pointer("output", Element::F32));
    let lane = b.thread(Axis::X);
    let place = b.mul(b.sub(b.convert(lane, Type::F32), 8.0f32), 1.5f32);
    let inside = b.and(b.ge(place, 0.0f32), b.lt(place, 28.0f32));
    let first = b.convert(b.min(b.max(place, 0.0f32), 27.0f32), Type::U32);
    let load = |step: u32| b.load(input, b.add(first, step));
    let mut values: Vec<Value> = (0..2).map(load).collect();
    between(&b, input);
    values.extend((2..5).map(load));
    let sum = values[..4].iter().copied().reduce(|a, x| b.add(a, x)).unwrap();
    b.store(output, lane, b.select(inside, sum, -1.0f32));
    b.store(output, b.add(lane, 32), b.select(inside, b.mul(sum, 2.0f32), values[4]));
    b.finish_kernel().unwrap()
}

#[test]
fn loads_under_the_condition_they_hang_on() {
    let input: Vec<f32> = (0..32).map(|i| (i * i) as f32).collect();
    let at = |lane: usize| ((lane as f32 - 8.0) * 1.5).clamp(0.0, 27.0) as usize;
    let inside = |lane: usize| (8..27).contains(&lane);
    let sum = |lane: usize| (0..4).map(|step| input[at(lane) + step]).sum::<f32>();
    let first = (0..32).map(|lane| if inside(lane) { sum(lane) } else { -1.0 });
    let second = (0..32).map(|lane| if inside(lane) { 2.0 * sum(lane) } else { input[at(lane) + 4] });
    let expected = bytes(&first.chain(second).collect::<Vec<f32>>());
    let kernel = looked_up(|_, _| {});
    check(&kernel, &Launch::linear(1, 32), &[bytes(&input), vec![0; 256]], &[bytes(&input), expected]);

    // Each side executes only its own loads.
    let text = |kernel: &Kernel| broadloom_ptx::print(&broadloom_scalar::lower(std::slice::from_ref(kernel)).unwrap());
    let moved = text(&kernel);
    let loads: Vec<usize> = moved.split("bra").map(|part| part.matches("ld.global").count()).collect();
    assert_eq!(loads, [0, 4, 1], "{moved}");

    // Loads do not move over a store, which may be to the same address.
    let stored = |b: &Builder, input| b.store(input, b.add(b.thread(Axis::X), 64), 1.0f32);
    let kept = text(&looked_up(stored));
    assert!(!kept.contains("bra"), "{kept}");
}

/// Returns the maximum number of live `%f` registers in a kernel without branches.
fn alive(kernel: &Kernel) -> usize {
    let module = lower_with(std::slice::from_ref(kernel), &Lowering::default()).unwrap();
    let text = broadloom_ptx::print(&module);
    let mut spans: Vec<(usize, usize)> = vec![];
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for (line, text) in text.lines().enumerate().filter(|(_, text)| text.ends_with(';') && !text.contains(".reg")) {
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '%').filter(|word| word.starts_with("%f")) {
            match numbers.get(word) {
                Some(number) => spans[*number].1 = line,
                None => {
                    numbers.insert(word.to_owned(), spans.len());
                    spans.push((line, line));
                }
            }
        }
    }
    spans.iter().map(|(at, _)| spans.iter().filter(|(from, to)| from <= at && at < to).count()).max().unwrap_or(0)
}

/// Loads of read-only memory are used early if that frees registers, and late if it would take more.
#[test]
fn few_values_are_alive_at_once() {
    // Sums of neighbours: a sum is stored as soon as its last element is loaded.
    let b = Builder::kernel("sums");
    let (input, output) = (b.pointer("input", Element::F32), b.pointer("output", Element::F32));
    let elements: Vec<Value> = (0..34).map(|i| b.load_as(input, i, 1, Order::Weak, Cache::ReadOnly)).collect();
    for (i, three) in elements.windows(3).enumerate() {
        b.store(output, i as u32, b.add(b.add(three[0], three[1]), three[2]));
    }
    assert!(alive(&b.finish_kernel().unwrap()) <= 6);

    // Multiples of one element: each is computed right before its store, which keeps its place.
    let b = Builder::kernel("multiples");
    let (input, output) = (b.pointer("input", Element::F32), b.pointer("output", Element::F32));
    let element = b.load_as(input, 0, 1, Order::Weak, Cache::ReadOnly);
    for i in 1..33u32 {
        b.store_as(output, i, b.mul(element, i as f32 + 0.5), Order::Relaxed(Scope::Device), Cache::Normal);
    }
    assert!(alive(&b.finish_kernel().unwrap()) <= 6);
}
