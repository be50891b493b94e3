//! Functions that read arrays, and arrays with any memory layout: refused cases, and cases without an extra
//! kernel.

use broadloom_device::Device;
use broadloom_graph::{Boundary, Context, Elementwise, Layout, Node, Reads, Result, Shape, Step};
use broadloom_interp::Interp;
use broadloom_scalar::{AccessorKind, BinaryOp, Builder, Function, Literal, Type};

fn context() -> Context {
    Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())))
}

/// An image with a pitch, a field of records and planes are read in the kernel that uses them.
#[test]
fn buffers_from_outside_need_no_kernel() -> Result<()> {
    let context = context();
    let bytes: Vec<u8> = (0..240).collect();
    let buffer = context.device().upload(&bytes)?;
    let from = |ty: Type, layout: &Layout| Node::from_layout(&context, ty, Shape::from([4, 5]), buffer.clone(), layout);
    let three = Type::vector(broadloom_scalar::Element::U8, 3).unwrap_or(Type::U8);
    let pitched = from(Type::U8, &Layout::pitched(Type::U8, 60))?;
    let odd = from(Type::U8, &Layout { offset: 7, strides: vec![17, 3], lanes: 1 })?;
    let planes = from(three, &Layout { offset: 1, strides: vec![9, 1], lanes: 50 })?;
    let plane = Node::elementwise(Elementwise::Lane(2), &[&planes])?;
    let add = |a: &Node, b: &Node| Node::elementwise(Elementwise::Binary(BinaryOp::Add), &[a, b]);
    let sum = add(&add(&pitched, &odd)?, &plane)?;
    assert_eq!(context.explain(std::slice::from_ref(&sum))?.kernels.len(), 1);
    let place = |y: usize, x: usize| (60 * y + x) + (7 + 17 * y + 3 * x) + (101 + 9 * y + x);
    let expected: Vec<u8> = (0..20).map(|i| place(i / 5, i % 5) as u8).collect();
    assert_eq!(sum.read()?.to_bytes(), expected);
    // Another pitch is another number and reuses the plan.
    let other = from(Type::U8, &Layout { offset: 3, strides: vec![19, 2], lanes: 1 })?;
    let plans = |node: &Node| -> Result<u64> {
        context.evaluate(&[add(node, node)?])?;
        Ok(context.statistics().plans)
    };
    assert_eq!(plans(&odd)?, plans(&other)?);
    Ok(())
}

#[test]
fn layouts_that_leave_the_buffer_are_refused() -> Result<()> {
    let context = context();
    let buffer = context.device().upload(&[0u8; 64])?;
    let refused = |ty: Type, layout: Layout| match Node::from_layout(&context, ty, Shape::from([4, 4]), buffer.clone(), &layout) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{layout:?} is taken"),
    };
    let layout = |offset: i64, strides: &[i64]| Layout { offset, strides: strides.to_vec(), lanes: 1 };
    assert!(refused(Type::U8, layout(0, &[21, 1])).contains("from 0 to 66 of a buffer that has 64"));
    assert!(refused(Type::F32, layout(1, &[4, 1])).contains("from 1 to 16 of a buffer that has 16"));
    assert!(refused(Type::U8, layout(2, &[-1, 1])).contains("from -1 to 5"));
    assert!(refused(Type::U8, layout(0, &[i64::MAX, 1])).contains("beyond 64 bits"));
    assert!(refused(Type::U8, layout(0, &[1])).contains("the layout has 1 strides"));
    let shifted = buffer.slice(1, 63).ok_or_else(|| panic!("a part"));
    let shifted = shifted.and_then(|part| Node::from_layout(&context, Type::F32, Shape::from(2), part, &layout(0, &[1])));
    assert!(shifted.is_err_and(|error| error.to_string().contains("a multiple of 4 bytes")));
    Ok(())
}

fn fire() -> Result<Function> {
    let f = Builder::function("fire");
    f.parameter("firing", Type::I32);
    let x = f.accessor("x", AccessorKind::Source, Type::I32, 0);
    let out = f.accessor("out", AccessorKind::Sink, Type::I32, 0);
    f.push(out, f.add(f.pop(x), f.peek(x, 100)));
    Ok(f.finish_function(&[])?)
}

/// Peeks after the end return the last element; missing elements are zeros.
#[test]
fn queues_have_ends() -> Result<()> {
    let context = context();
    let bytes: Vec<u8> = (1..=6i32).flat_map(i32::to_le_bytes).collect();
    let x = Node::upload(&context, Type::I32, Shape::from(6), &bytes)?;
    let results = Node::compute(&fire()?, &Shape::from(3), &[], &[(&x, Reads::Queue(2))], &[2])?;
    let numbers = results[0].read()?.lanes;
    assert_eq!(numbers, [7, 0, 9, 0, 11, 0].map(|x: i32| Literal::from(x)));
    let refused = |firings: usize, rate: usize, appended: &[usize]| -> Result<String> {
        let results = Node::compute(&fire()?, &Shape::from(firings), &[], &[(&x, Reads::Queue(rate))], appended);
        Ok(results.err().map(|error| error.to_string()).unwrap_or_default())
    };
    let said = |result: Result<String>, text: &str| result.is_ok_and(|said| said.contains(text));
    assert!(said(refused(4, 2, &[1]), "`x` has 6 elements, and 2 are taken each time"));
    assert!(said(refused(usize::MAX >> 30, usize::MAX, &[1]), "are taken each time"));
    assert!(said(refused(3, 2, &[0]), "`out` is no queue to append 0 elements to"));
    assert!(said(refused(3, 2, &[1000]), "at most 256 elements can be appended each time"));
    assert!(said(refused(3, 2, &[]), "the function has 2 accessors, and is given 1"));
    Ok(())
}

#[test]
fn functions_that_do_not_fit_are_refused() -> Result<()> {
    let context = context();
    let x = Node::upload(&context, Type::U8, Shape::from([2, 3]), &[0; 6])?;
    let empty = Node::upload(&context, Type::U8, Shape::from([0, 3]), &[])?;
    let f = Builder::function("around");
    f.parameter("y", Type::I32);
    f.parameter("x", Type::I32);
    let window = f.accessor("window", AccessorKind::Window, Type::U8, 2);
    let function = f.finish_function(&[f.window(window, &[0.into(), 0.into()])])?;
    let said = |result: Result<Vec<Node>>| result.err().map(|error| error.to_string()).unwrap_or_default();
    let call = |node: &Node, reads: Reads| said(Node::compute(&function, &Shape::from([2, 3]), &[], &[(node, reads)], &[]));
    assert!(call(&x, Reads::At(Boundary::Clamp)).contains("cannot read an array of shape"));
    assert!(call(&empty, Reads::Window(Boundary::Clamp)).contains("`window` has no elements to read"));
    let wrong = Boundary::Constant([Literal::from(1.0f32)].into_iter().collect());
    assert!(call(&x, Reads::Window(wrong)).contains("f32"));
    assert_eq!(call(&x, Reads::Window(Boundary::Wrap)), "");
    let declared = said(Node::window(&function, &[&x], &[], &[(1, 1)], &Boundary::Clamp));
    assert!(declared.contains("the window is declared along 1 axes"), "{declared}");
    let step = Step { function, states: 1, reach: (0, 0), backwards: false, boundary: Boundary::Clamp, split: None };
    let swept = said(Node::sweep(&step, 0, &[&x], &[&x]));
    assert!(!swept.is_empty());
    Ok(())
}
