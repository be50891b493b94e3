//! For any input, the builder returns an error with its place, and never panics, overflows the stack or
//! hangs.

use broadloom_scalar::{
    AccessorKind, Axis, Builder, Cache, Element, Error, LaunchBounds, Literal, MAX_NESTING, Order, Type, Unroll, Value, lower,
    reading,
};

/// Returns the problems that finishing a function reports.
fn problems(build: impl FnOnce(&Builder) -> Vec<Value>) -> String {
    let b = Builder::function("bad");
    let results = build(&b);
    match b.finish_function(&results) {
        Err(Error::Invalid { name, problems }) => {
            assert_eq!(name, "bad");
            problems.join("\n")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn mistakes_say_what_and_where() {
    let two = |b: &Builder| (b.parameter("x", Type::F32), b.parameter("n", Type::I32));
    let cases: Vec<(&str, String)> = vec![
        (
            "expected `f32`, found `i32`",
            problems(|b| {
                let (x, n) = two(b);
                vec![b.add(x, n)]
            }),
        ),
        (
            "`&` does not take `f32`",
            problems(|b| {
                let (x, _) = two(b);
                vec![b.and(x, x)]
            }),
        ),
        (
            "`sqrt` does not take `i32`",
            problems(|b| {
                let (_, n) = two(b);
                vec![b.sqrt(n)]
            }),
        ),
        (
            "`0.5` is no `i32`",
            problems(|b| {
                let (_, n) = two(b);
                vec![b.mul(n, 0.5)]
            }),
        ),
        ("`300` is no `u8`", problems(|b| vec![b.constant(Type::U8, 300)])),
        ("two numbers do not say of which type", problems(|b| vec![b.add(1, 2)])),
        (
            "expected `bool`",
            problems(|b| {
                let (x, n) = two(b);
                b.if_then(n, || {});
                vec![x]
            }),
        ),
        (
            "an index is an integer",
            problems(|b| {
                let (x, _) = two(b);
                let array = b.array(Type::F32, 4);
                vec![b.element(array, x)]
            }),
        ),
        (
            "index 4 of a local array of 4",
            problems(|b| {
                let array = b.array(Type::F32, 4);
                vec![b.element(array, 4)]
            }),
        ),
        (
            "a local array of 100000",
            problems(|b| {
                b.array(Type::F32, 100_000);
                vec![]
            }),
        ),
        (
            "there are no vectors of 5 lanes",
            problems(|b| {
                let (x, _) = two(b);
                vec![b.vector(&[x; 5])]
            }),
        ),
        (
            "`f32` has no lane 1",
            problems(|b| {
                let (x, _) = two(b);
                vec![b.lane(x, 1)]
            }),
        ),
        (
            "the bits of `f32` are not those of `i64`",
            problems(|b| {
                let (x, _) = two(b);
                vec![b.bitcast(x, Type::I64)]
            }),
        ),
        (
            "behind the end of the block",
            problems(|b| {
                let (_, n) = two(b);
                let mut escaped = n;
                b.for_range(0, n, |i| escaped = i);
                vec![b.add(escaped, 1)]
            }),
        ),
        (
            "`end_if` without `begin_if`",
            problems(|b| {
                b.end_if();
                vec![]
            }),
        ),
        (
            "`begin_else` without `begin_if`",
            problems(|b| {
                b.begin_while();
                b.begin_else();
                b.begin_while_body(true);
                b.end_while();
                vec![]
            }),
        ),
        (
            "a condition is not ended",
            problems(|b| {
                b.begin_if(true);
                vec![]
            }),
        ),
        (
            "`break_loop` outside of loops",
            problems(|b| {
                b.break_loop();
                vec![]
            }),
        ),
        (
            "counts by 0",
            problems(|b| {
                let (_, n) = two(b);
                b.for_step(0, n, 0, Unroll::Auto, |_| {});
                vec![]
            }),
        ),
        (
            "a loop counts integers, not `f32`",
            problems(|b| {
                let (x, _) = two(b);
                b.for_range(0, x, |i| {
                    b.add(i, 1);
                });
                vec![]
            }),
        ),
        (
            "a barrier in a function",
            problems(|b| {
                b.barrier();
                vec![]
            }),
        ),
        (
            "a position of `input` has 2 indices, not 1",
            problems(|b| {
                let (_, n) = two(b);
                let input = b.accessor("input", AccessorKind::Input, Type::F32, 2);
                vec![b.read(input, &[n.into()])]
            }),
        ),
        (
            "`input` cannot be used like this",
            problems(|b| {
                let input = b.accessor("input", AccessorKind::Input, Type::F32, 1);
                vec![b.pop(input)]
            }),
        ),
        (
            "a table has 1 to 65,536 entries",
            problems(|b| {
                b.table(&[]);
                vec![]
            }),
        ),
        (
            "a value of another function",
            problems(|b| {
                let other = Builder::function("other");
                vec![b.neg(other.parameter("x", Type::F32))]
            }),
        ),
        (
            "`exp` takes floats",
            problems(|b| {
                let (_, n) = two(b);
                vec![b.exp(n)]
            }),
        ),
        ("a function is ended by `finish_function`", {
            let b = Builder::function("bad");
            b.finish_kernel().unwrap_err().to_string()
        }),
        ("a load that releases", {
            let b = Builder::kernel("bad");
            let memory = b.pointer("p", Element::F32);
            b.load_as(memory, 0, 1, Order::Release(broadloom_scalar::Scope::Device), Cache::Normal);
            b.finish_kernel().unwrap_err().to_string()
        }),
    ];
    for (wanted, found) in cases {
        assert!(found.contains(wanted), "`{wanted}` is not in `{found}`");
        assert!(found.contains("hostile.rs:") || found.contains("/src/"), "no place in `{found}`");
    }
}

#[test]
fn one_mistake_is_told_once() {
    let text = problems(|b| {
        let x = b.parameter("x", Type::F32);
        let mut bad = b.and(x, x);
        for _ in 0..100 {
            bad = b.mul(b.add(bad, 1), x);
        }
        vec![]
    });
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn blocks_nested_without_end() {
    for depth in [MAX_NESTING - 1, MAX_NESTING + 1, 5000] {
        let b = Builder::function("deep");
        let x = b.variable(Type::I32);
        let condition = b.parameter("c", Type::BOOL);
        for level in 0..depth {
            if level % 2 == 0 {
                b.begin_if(condition)
            } else {
                b.begin_for(0, 2, 1, Unroll::Never);
            }
        }
        b.set(x, b.add(b.get(x), 1));
        for level in (0..depth).rev() {
            if level % 2 == 0 { b.end_if() } else { b.end_for() }
        }
        let result = b.finish_function(&[b.get(x)]);
        if depth < MAX_NESTING {
            let function = result.unwrap();
            assert!(function.simplify().unwrap().to_string().contains("return"));
        } else {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("nested more than") && error.len() < 300, "{error}");
        }
    }
}

#[test]
fn kernels_that_no_device_takes() {
    let fails = |build: &dyn Fn(&Builder)| {
        let b = Builder::kernel("bad");
        build(&b);
        b.finish_kernel().unwrap_err().to_string()
    };
    let big = fails(&|b| {
        b.shared(Element::F32, 8192);
        b.shared(Element::F32, 8192);
    });
    assert!(big.contains("beside 32768 bytes"), "{big}");
    let wide = fails(&|b| b.launch_bounds(LaunchBounds::block(2048)));
    assert!(wide.contains("no launch is like"), "{wide}");
    let named = |name: &str| Builder::kernel(name).finish_kernel().unwrap();
    let twins = lower(&[named("a b"), named("a-b")]).unwrap_err().to_string();
    assert!(twins.contains("have one name in PTX, `a_b`"), "{twins}");
    lower(&[named("1st"), named("")]).unwrap();
}

/// `while` opens two blocks per loop.
#[test]
fn loops_nested_without_end() {
    let b = Builder::function("deep");
    for _ in 0..3000 {
        b.begin_while();
        b.begin_while_body(true);
    }
    for _ in 0..3000 {
        b.end_while();
    }
    let error = b.finish_function(&[]).unwrap_err().to_string();
    assert!(error.contains("nested more than"), "{error}");
}

#[test]
fn expressions_without_end() {
    let k = Builder::kernel("long");
    let (input, output) = (k.pointer("input", Element::I32), k.pointer("output", Element::I32));
    let i = k.thread(Axis::X);
    let first = k.load(input, i);
    let mut x = first;
    for round in 0..60_000 {
        x = if round % 2 == 0 { k.add(x, k.xor(x, first)) } else { k.mul(x, first) };
    }
    k.store(output, i, x);
    let kernel = k.finish_kernel().unwrap();
    assert!(kernel.to_string().len() > 1000);
    let simplified = kernel.simplify().unwrap();
    assert!(simplified.body().nodes().len() > 60_000);
}

#[test]
fn sums_of_indices_without_end() {
    let k = Builder::kernel("far");
    let (memory, n) = (k.pointer("memory", Element::I32), k.parameter("n", Type::I64));
    let mut start = n;
    for _ in 0..3000 {
        start = k.mul(k.add(start, n), n);
    }
    k.for_range(0, n, |i| {
        let mut index = i;
        for part in 0..3000i64 {
            index = k.add(index, k.add(start, k.mul(n, part)));
        }
        k.store(memory, index, 1);
    });
    lower(&[k.finish_kernel().unwrap()]).unwrap();
}

#[test]
fn loops_that_are_too_long_to_unroll_or_never_end() {
    let b = Builder::function("endless");
    let x = b.variable(Type::I64);
    b.for_step(0, b.literal(i64::MAX), 1, Unroll::Full, |i| b.set(x, b.add(b.get(x), i)));
    let long = b.finish_function(&[b.get(x)]).unwrap();
    assert!(long.simplify().unwrap().to_string().contains("for "));

    let b = Builder::function("endless");
    b.while_loop(|| b.literal(true), || {});
    let endless = b.finish_function(&[]).unwrap();
    assert!(endless.evaluate(&[]).unwrap_err().to_string().contains("does not come to an end"));
    endless.simplify().unwrap();

    // A counter that wraps never reaches its end. The loop is not treated as one of known length.
    let b = Builder::function("wraps");
    let x = b.variable(Type::U8);
    b.for_step(b.literal(0u8), 250, 100, Unroll::Full, |i| b.set(x, i));
    let wraps = b.finish_function(&[b.get(x)]).unwrap();
    assert!(wraps.simplify().unwrap().to_string().contains("for "));
}

#[test]
fn nests_of_unrolled_loops_stay_small() {
    let b = Builder::function("nest");
    let x = b.variable(Type::I32);
    for _ in 0..12 {
        b.begin_for(0, 16, 1, Unroll::Full);
    }
    b.set(x, b.add(b.get(x), 1));
    for _ in 0..12 {
        b.end_for();
    }
    let nest = b.finish_function(&[b.get(x)]).unwrap();
    assert!(nest.simplify().unwrap().body().nodes().len() < 1 << 18);
}

#[test]
fn evaluation_finds_what_is_left_open() {
    let b = Builder::function("open");
    let i = b.parameter("i", Type::U32);
    let array = b.array(Type::F32, 4);
    b.set_element(array, 0, 1.0);
    let x = b.element(array, i);
    let open = b.finish_function(&[x]).unwrap();
    let fault = |i: u32| open.evaluate(&[i.into()]).unwrap_err().to_string();
    assert_eq!(open.evaluate(&[0u32.into()]).unwrap(), [1.0f32.into()]);
    assert!(fault(1).contains("before it is set"));
    assert!(fault(4).contains("index 4"));
    assert!(open.evaluate(&[1i32.into()]).unwrap_err().to_string().contains("is no `u32`"));
    assert!(open.evaluate(&[]).is_err());

    let b = Builder::function("promise");
    let x = b.assume(b.parameter("x", Type::I32), 0, 10);
    let promise = b.finish_function(&[x]).unwrap();
    assert!(promise.evaluate(&[11i32.into()]).unwrap_err().to_string().contains("as was promised"));
}

#[test]
fn bindings_that_do_not_fit() {
    let f = Builder::function("reads");
    let input = f.accessor("input", AccessorKind::Input, Type::F32, 1);
    let x = f.read(input, &[0.into()]);
    let reads = f.finish_function(&[x]).unwrap();

    let b = Builder::function("caller");
    b.inline(&reads, &[], &mut []);
    assert!(b.finish_function(&[]).unwrap_err().to_string().contains("1 accessors"));

    let b = Builder::function("caller");
    let mut wrong = reading(|b, _| b.literal(Literal::from(1i32)));
    b.inline(&reads, &[], &mut [&mut wrong]);
    assert!(b.finish_function(&[]).unwrap_err().to_string().contains("expected `f32`, found `i32`"));
}

#[test]
fn local_arrays_beyond_the_limit_are_named() {
    let b = Builder::kernel("wide");
    let out = b.pointer("out", Element::F64);
    let i = b.load(b.pointer("at", Element::U32), 0);
    let arrays: Vec<_> = (0..3).map(|_| b.array(Type::F64, 40_000)).collect();
    for &array in &arrays {
        b.for_step(b.literal(0u32), 40_000, 1, Unroll::Never, |k| b.set_element(array, k, 1.0));
    }
    let sum = arrays.iter().fold(b.literal(0.0), |sum, &array| b.add(sum, b.element(array, i)));
    b.store(out, 0, sum);
    let refused = lower(&[b.finish_kernel().unwrap()]).unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("`wide` is too large") && text.contains("960000 bytes, more than the 524288 there are"), "{text}");
}
