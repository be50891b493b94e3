//! Lengths that only the device knows: they cause neither waits nor compilation, and results equal those of
//! the naive evaluator.

use crate::support::functions::firing;
use crate::support::gpu::{counting_gpu, interp_as_gpu};
use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_device::Device;
use broadloom_graph::{
    AxisMap, Boundary, Combine, Context, Elementwise, Error, Extreme, Length, Node, Reads, Result, Segments, Shape, SortKey,
    Total, naive,
};
use broadloom_interp::Interp;
use broadloom_scalar::{AccessorKind, BinaryOp, Builder, CompareOp, Element, Literal, Precision, Type};
use smallvec::smallvec;
use std::sync::atomic::Ordering;

fn cpu() -> Device {
    let cache = CacheFolder::Nowhere;
    let mut options = broadloom_cpu::Options { threads: 2, memory_bytes: 1 << 28, cache, ..broadloom_cpu::Options::default() };
    options.compile.optimise = false;
    Device::new(Cpu::new(options).unwrap_or_else(|error| panic!("{error}")))
}

fn upload(context: &Context, shape: Shape) -> Result<Node> {
    let bytes: Vec<u8> = (0..shape.count() as i32).flat_map(|i| (i * 7 % 23 - 9).to_le_bytes()).collect();
    Node::upload(context, Type::I32, shape, &bytes)
}

fn binary(op: BinaryOp, a: &Node, b: &Node) -> Result<Node> {
    Node::elementwise(Elementwise::Binary(op), &[a, b])
}

fn number(context: &Context, value: i32) -> Result<Node> {
    Node::fill(context, Shape::from([]), &[Literal::from(value)])
}

fn greater(a: &Node, than: i32) -> Result<Node> {
    Node::elementwise(Elementwise::Compare(CompareOp::Gt), &[a, &number(a.context(), than)?])
}

/// Returns the number of packs in the loop; `make soak` uses 10,000.
fn packs() -> i32 {
    std::env::var("BROADLOOM_PACKS").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

#[test]
fn a_loop_of_packs_compiles_nothing_and_waits_for_nothing() -> Result<()> {
    let (device, counts) = counting_gpu();
    let context = Context::new(&device);
    let seen = |what: &std::sync::atomic::AtomicU64| what.load(Ordering::Relaxed);
    let (mut loads, mut last) = (0, vec![]);
    for round in 0..packs() {
        let x = upload(&context, Shape::from((2 + round * 37 % 61) as usize))?;
        let y = x.pack(&greater(&x, round % 9 - 5)?)?;
        let z = binary(BinaryOp::Add, &y, &y)?;
        let rest = z.pack(&greater(&z, 1)?)?;
        let sum = rest.reduce(Combine::Sum, &[0])?;
        last = vec![rest, sum];
        let expected =
            (round == packs() - 1).then(|| last.iter().map(naive::evaluate).collect::<Result<Vec<_>>>()).transpose()?;
        if round == packs() - 1 {
            // The naive evaluator reads the uploaded arrays.
            counts.waits.store(0, Ordering::Relaxed);
        }
        context.evaluate(&last)?;
        // All sizes have occurred. Small and large ones may have kernels of their own.
        if round == 61 {
            loads = seen(&counts.loads);
        }
        if let Some(expected) = expected {
            assert_eq!((seen(&counts.waits), context.statistics().waits), (0, 0));
            assert_eq!(vec![last[0].read()?, last[1].read()?], expected);
            assert!(seen(&counts.waits) > 0);
        } else {
            assert_eq!(seen(&counts.waits), 0);
        }
    }
    assert_eq!(seen(&counts.loads), loads);
    assert_eq!(context.statistics().plans, 1);
    assert_eq!(last[0].shape().rank(), 1);
    Ok(())
}

#[test]
fn maps_over_rows_in_memory_write_whole_rows() -> Result<()> {
    for device in [cpu(), Device::new(Interp::new(broadloom_interp::Options::default())), interp_as_gpu()] {
        let context = Context::new(&device);
        let x = upload(&context, 40.into())?;
        let rows = x.pack(&greater(&x, -3)?)?.rows_of(3)?;
        context.evaluate(std::slice::from_ref(&rows))?;
        let sum = binary(BinaryOp::Add, &rows, &rows)?;
        let expected = naive::evaluate(&sum)?;
        context.evaluate(std::slice::from_ref(&sum))?;
        assert_eq!(sum.read()?, expected);
        // A gather by rows of indices.
        let places = Node::elementwise(Elementwise::Binary(BinaryOp::And), &[&rows, &number(&context, 15)?])?;
        context.evaluate(std::slice::from_ref(&places))?;
        let found = x.gather(&[&places], &Boundary::Clamp)?;
        let expected = naive::evaluate(&found)?;
        context.evaluate(std::slice::from_ref(&found))?;
        assert_eq!(found.read()?, expected);
    }
    Ok(())
}

#[test]
fn one_element_is_there_beside_a_length_of_none() -> Result<()> {
    for device in [cpu(), Device::new(Interp::new(broadloom_interp::Options::default())), interp_as_gpu()] {
        let context = Context::new(&device);
        let x = upload(&context, 1.into())?;
        let none = x.pack(&greater(&x, 1000)?)?;
        let one = binary(BinaryOp::Add, &x, &number(&context, 20)?)?;
        let nodes = [binary(BinaryOp::Mul, &none, &one)?, binary(BinaryOp::Sub, &one, &none)?, one];
        let expected = nodes.iter().map(naive::evaluate).collect::<Result<Vec<_>>>()?;
        context.evaluate(&nodes)?;
        let found = nodes.iter().map(Node::read).collect::<Result<Vec<_>>>()?;
        assert_eq!(found, expected);
        assert_eq!(found[2].lanes.len(), 1);
    }
    Ok(())
}

/// Returns a function of 13 positions that reads an array before and after its ends.
fn looked_up(x: &Node, boundary: &Boundary) -> Result<Vec<Node>> {
    let f = Builder::function("look");
    let position = f.parameter("i", Type::I64);
    let read = f.accessor("x", AccessorKind::Input, Type::I32, 1);
    let value = f.read(read, &[f.sub(f.mul(position, 3i64), 5i64).into()]);
    let function = f.finish_function(&[value])?;
    Node::compute(&function, &Shape::from(13), &[], &[(x, Reads::At(boundary.clone()))], &[])
}

/// Returns rows, slices at the end, padding, products over the length, and queues.
fn rows_and_queues(x: &Node, column: &Node) -> Result<Vec<Node>> {
    let wide = binary(BinaryOp::Mul, column, &upload(x.context(), 3.into())?)?;
    let mut all = vec![x.rows_of(3)?, wide.rows_of(2)?, x.every(2)?, x.last(4)?, x.without_last(3)?, wide.last(2)?];
    all.push(x.rows_of(2)?.reduce(Combine::Sum, &[1])?);
    // Slices that are known to be equally long.
    let parts = [x.without_last(2)?, x.first_part(1, None)?.without_last(1)?, x.first_part(2, None)?];
    all.push(binary(BinaryOp::Sub, &binary(BinaryOp::Sub, &parts[0], &parts[1])?, &parts[2])?);
    for boundary in [Boundary::Clamp, Boundary::Wrap, Boundary::Constant(smallvec![Literal::from(8i32)])] {
        all.push(x.enlarged("test", &[(5, 6)], &boundary)?);
    }
    all.push(wide.enlarged("test", &[(1, 0), (2, 1)], &Boundary::Constant(smallvec![Literal::from(8i32)]))?);
    all.extend([wide.columns_product(column)?, column.columns_product(&wide)?, wide.columns_product(&wide)?]);
    for rate in [1, 3] {
        let function = firing(Type::I32, rate)?;
        let fired = Node::compute_like(&function, &x.firings(rate)?, &[], &[(x, Reads::Queue(rate))], &[2])?;
        all.push(fired[1].scan(Combine::Sum, 0, true)?);
        all.extend(fired);
    }
    Ok(all)
}

/// Returns all operations on an array of unknown length that need no wait.
fn uses(x: &Node, other: &Node) -> Result<Vec<Node>> {
    let context = x.context();
    let key = |descending: bool| SortKey { descending, bits: None };
    let places = x.position_like(0, Element::I32)?;
    let floats = Node::elementwise(Elementwise::Convert(Element::F32), &[x])?;
    let mut all = vec![binary(BinaryOp::Add, &binary(BinaryOp::Mul, x, x)?, &places)?];
    for combine in [Combine::Sum, Combine::Min, Combine::Max] {
        all.push(x.reduce(combine.clone(), &[0])?);
        all.push(x.scan(combine, 0, false)?);
    }
    all.push(x.segmented_scan(&greater(x, 3)?, Combine::Sum, 0)?);
    for descending in [false, true] {
        all.extend(Node::sort(&[(x, key(descending))], &[&places])?);
        all.extend(Node::sort(&[(&floats, key(descending))], &[x])?);
    }
    all.push(x.histogram(9)?);
    all.push(Node::elementwise(Elementwise::Convert(Element::U8), &[x])?.histogram(256)?);
    all.push(other.scatter(&[&places], x, Some(Combine::Sum))?);
    all.push(other.gather(&[x], &Boundary::Wrap)?);
    let boundaries = [Boundary::Clamp, Boundary::Wrap, Boundary::Mirror, Boundary::Constant(smallvec![Literal::from(77i32)])];
    for boundary in boundaries.clone() {
        all.push(x.moved("test", &[2], &boundary)?);
        all.push(x.moved("test", &[-1], &boundary)?);
    }
    all.push(x.gather(&[other], &Boundary::Constant(smallvec![Literal::from(55i32)]))?);
    let joined = Node::concatenate(0, &[x, other, x])?;
    all.push(joined.scan(Combine::Sum, 0, true)?);
    all.push(joined);
    all.extend([x.reversed("test", &[0])?, x.first_part(2, None)?, x.first_part(1, Some(4))?, x.first_part(0, Some(100))?]);
    let (tail, other_tail) = (x.first_part(1, None)?, places.first_part(1, None)?);
    all.push(binary(BinaryOp::Add, &tail, &other_tail)?);
    all.push(x.scatter(&[&places], &number(context, 7)?, Some(Combine::Sum))?);
    all.push(x.scatter(&[&Node::position(context, 3.into(), 0, Element::I64)?], &number(context, 70)?, None)?);
    let column = x.reshape_rows(&Shape::from(1))?;
    all.push(binary(BinaryOp::Mul, &column, &upload(context, 3.into())?)?.flattened()?);
    all.push(column.product(&upload(context, [1, 4].into())?)?);
    all.extend(rows_and_queues(x, &column)?);
    all.extend(looked_up(x, &boundaries[0])?);
    let (sides, count) = x.partition(&greater(x, 0)?)?;
    all.extend([sides, count, x.unique()?]);
    let (values, lengths) = x.runs()?;
    all.extend([values.clone(), lengths.clone(), x.reduce(Combine::Sum, &[0])?]);
    all.push(values.repeat_each(&lengths, 40)?);
    all.push(x.segmented_reduce(
        &Node::upload(context, Type::I32, 4.into(), &[0u8, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0])?,
        Combine::Sum,
    )?);
    Ok(all)
}

#[test]
fn lengths_are_read_where_kernels_run() -> Result<()> {
    let (counting, counts) = counting_gpu();
    for device in [counting, Device::new(broadloom_interp::Interp::new(Default::default())), cpu()] {
        let context = Context::new(&device);
        for limit in [100, 12, 5, -20] {
            let (line, other) = (upload(&context, 30.into())?, upload(&context, 11.into())?);
            let x = line.pack(&greater(&line, limit)?)?;
            let waits = context.statistics().waits;
            let mut all = uses(&x, &other)?;
            assert_eq!(context.statistics().waits, waits);
            if limit < 100 {
                // An empty array has no extreme.
                all.push(x.extreme(Extreme::Least, 0, Element::I32)?);
            }
            let expected = all.iter().map(naive::evaluate).collect::<Result<Vec<_>>>()?;
            counts.waits.store(0, Ordering::Relaxed);
            context.evaluate(&all)?;
            assert_eq!(counts.waits.load(Ordering::Relaxed), 0);
            for (number, (node, expected)) in all.iter().zip(&expected).enumerate() {
                let (found, kind) = (node.read()?, device.machine().kind);
                // Elements taken from an empty array are unspecified.
                if limit == 100 && [11, 13].contains(&expected.shape.count()) {
                    continue;
                }
                assert_eq!(found, *expected, "{kind:?}, above {limit}, {number}");
            }
        }
    }
    Ok(())
}

/// Only the device knows the number of rows of a matrix.
#[test]
fn the_first_of_several_axes_may_have_such_a_length() -> Result<()> {
    for device in [interp_as_gpu(), cpu()] {
        let context = Context::new(&device);
        for (rows, columns) in [(7, 3), (20, 40)] {
            let matrix = upload(&context, [rows, columns].into())?;
            for count in [0, 5, 400, -3] {
                let length = Length::new(&number(&context, count)?, rows)?;
                let x = matrix.shortened(&length)?;
                let row = upload(&context, columns.into())?;
                let scaled = binary(BinaryOp::Mul, &x, &row)?;
                let sums = scaled.reduce(Combine::Sum, &[1])?;
                let all = vec![
                    scaled.reduce(Combine::Sum, &[0])?,
                    scaled.reduce(Combine::Max, &[0, 1])?,
                    scaled.scan(Combine::Sum, 0, true)?,
                    scaled.scan(Combine::Sum, 1, true)?,
                    scaled.moved("test", &[1, -1], &Boundary::Clamp)?,
                    scaled.flattened()?,
                    binary(BinaryOp::Sub, &scaled.flattened()?, &x.flattened()?)?.scan(Combine::Sum, 0, true)?,
                    scaled.reversed("test", &[0])?,
                    scaled.reversed("test", &[0, 1])?,
                    scaled.reversed("test", &[1])?,
                    scaled.first_part(2, Some(rows))?,
                    scaled.reshape_rows(&[columns, 1].into())?.reshape_rows(&columns.into())?,
                    x.product(&upload(&context, [columns, 5].into())?)?,
                    x.product(&upload(&context, [columns, 1].into())?)?,
                    scaled.affine_rows("test", &[AxisMap::fixed(0)], &[2.into()], &[].into(), None)?,
                    x.scatter(
                        &[&number(&context, 0)?, &Node::position(&context, 2.into(), 0, Element::I32)?],
                        &number(&context, 9)?,
                        None,
                    )?,
                    binary(BinaryOp::Sub, &sums, &sums.position_like(0, Element::I32)?)?,
                    Node::concatenate(1, &[&x, &scaled])?,
                    scaled,
                ];
                let expected = all.iter().map(naive::evaluate).collect::<Result<Vec<_>>>()?;
                context.evaluate(&all)?;
                for (number, (node, expected)) in all.iter().zip(&expected).enumerate() {
                    assert_eq!(node.read()?, *expected, "{rows} {columns} {count} {number}");
                    assert_eq!(*node.shape(), expected.shape);
                }
            }
        }
    }
    Ok(())
}

/// The host reads lengths that are not known to be equal, and a mismatch is reported.
#[test]
fn lengths_that_are_not_known_to_be_equal_are_asked_for() -> Result<()> {
    let context = Context::new(&interp_as_gpu());
    let line = upload(&context, 30.into())?;
    let (a, b) = (line.pack(&greater(&line, 2)?)?, line.pack(&greater(&line, 1)?)?);
    let same = binary(BinaryOp::Add, &a, &line.pack(&greater(&line, 2)?)?)?;
    assert!(same.length().is_none());
    assert_eq!(same.shape(), a.shape());
    assert!(matches!(binary(BinaryOp::Add, &a, &b), Err(Error::Shapes { .. })));
    let matrix = a.reshape([a.shape().count() / 2, 2].into());
    assert_eq!(matrix.is_ok(), a.shape().count() % 2 == 0);
    assert!(context.statistics().waits > 0);
    Ok(())
}

/// Operations that rely on the length do not wait for it. A queue must have enough elements, so it causes one
/// wait. An unexpected length is an error of the next read only.
#[test]
fn a_length_that_is_compared_with_numbers_is_compared_when_something_is_read() -> Result<()> {
    let context = Context::new(&interp_as_gpu());
    let line = upload(&context, 30.into())?;
    let packed = || line.pack(&greater(&line, 2)?);
    let count = packed()?.shape().count();
    type Use<'a> = &'a dyn Fn(&Node) -> Result<Node>;
    let reshape: Use<'_> = &|x| x.reshape([1, count].into());
    let product: Use<'_> = &|x| upload(&context, [2, count].into())?.product(&x.reshape_rows(&1.into())?);
    let queue: Use<'_> = &|x| {
        let function = firing(Type::I32, 2)?;
        Ok(Node::compute(&function, &Shape::from(count / 2), &[], &[(x, Reads::Queue(2))], &[2])?.swap_remove(1))
    };
    let first: Use<'_> = &|x| x.index_first("index", 0);
    let last: Use<'_> = &|x| x.index_first("index", -1);
    for (of, waits) in [(reshape, 0), (product, 0), (first, 0), (last, 0), (queue, 1)] {
        let x = packed()?;
        let (result, before) = (naive::evaluate(&of(&packed()?)?)?, context.statistics().waits);
        context.confirm()?;
        let before = context.statistics().waits.max(before);
        let node = of(&x)?;
        node.evaluate()?;
        assert_eq!(context.statistics().waits, before + waits);
        assert_eq!(node.read()?, result);
    }
    let all = packed()?.read()?;
    assert_eq!(last(&packed()?)?.read()?.lanes, all.lanes[count - 1..]);
    // The host can see that these are larger than the bound.
    assert!(packed()?.reshape([2, 30].into()).is_err());
    assert!(packed()?.index_first("index", 30).is_err());
    let fewer = packed()?.reshape([1, count - 1].into())?;
    let wider = upload(&context, [2, count + 1].into())?.product(&packed()?.reshape_rows(&1.into())?)?;
    let beyond = packed()?.index_first("index", count as i64)?;
    [&fewer, &wider, &beyond].into_iter().try_for_each(|node| node.evaluate().map(|_| ()))?;
    let error = fewer.read().expect_err("the shape has one element less").to_string();
    assert_eq!(error, format!("`reshape`: the shapes [{count}] and [1, {}] do not fit together", count - 1));
    // All conditions were confirmed.
    assert_eq!(all, packed()?.read()?);
    let beyond = packed()?.index_first("index", count as i64)?;
    let error = beyond.read().expect_err("the index is the length").to_string();
    assert_eq!(error, format!("`index` of an array of shape [{count}]: axis 0 has no index {count}"));
    let wider = upload(&context, [2, count + 1].into())?.product(&packed()?.reshape_rows(&1.into())?)?;
    let error = wider.read().expect_err("the left factor has a column more").to_string();
    assert_eq!(error, format!("`matrix product`: the shapes [2, {}] and [{count}, 1] do not fit together", count + 1));
    Ok(())
}

/// A template accepts and returns lengths, and a call does not wait.
#[test]
fn templates_take_and_give_lengths() -> Result<()> {
    let (device, counts) = counting_gpu();
    let context = Context::new(&device);
    let packed = |limit: i32| -> Result<Node> {
        let line = upload(&context, 30.into())?;
        line.pack(&greater(&line, limit)?)
    };
    let function = |inputs: &[Node]| -> Result<Vec<Node>> {
        let double = binary(BinaryOp::Add, &inputs[0], &inputs[0])?;
        Ok(vec![double.clone(), double.pack(&greater(&double, 8)?)?, double.reduce(Combine::Sum, &[0])?])
    };
    let template = context.template(&[packed(3)?], function)?;
    let plans = context.statistics().plans;
    for limit in [100, 5, 0, -20] {
        let x = packed(limit)?;
        let expected = function(std::slice::from_ref(&x))?.iter().map(naive::evaluate).collect::<Result<Vec<_>>>()?;
        assert!(template.fits(std::slice::from_ref(&x)));
        counts.waits.store(0, Ordering::Relaxed);
        let results = template.call(std::slice::from_ref(&x))?;
        let both = binary(BinaryOp::Sub, &results[0], &x)?;
        context.evaluate(std::slice::from_ref(&both))?;
        assert_eq!(counts.waits.load(Ordering::Relaxed), 0);
        for (node, expected) in results.iter().zip(&expected) {
            assert_eq!(node.read()?, *expected);
        }
        assert_eq!(both.read()?, x.read()?);
    }
    // One plan for the pack, one for the difference.
    assert!(context.statistics().plans <= plans + 2);
    Ok(())
}

/// Chains of arrays with lengths are dropped without a stack.
#[test]
fn long_chains_of_packs_are_dropped() -> Result<()> {
    let context = Context::new(&interp_as_gpu());
    let mut x = upload(&context, 3.into())?;
    for _ in 0..20_000 {
        x = x.pack(&greater(&x, 0)?)?;
    }
    drop(x);
    Ok(())
}

/// Packs and scans have temporaries that must be zero. One fill serves all kernels of a plan.
#[test]
fn a_plan_fills_memory_once() -> Result<()> {
    let (device, counts) = counting_gpu();
    let context = Context::new(&device);
    let x = upload(&context, 70_000.into())?;
    let sums = x.scan(Combine::Sum, 0, true)?;
    let (packed, count) = sums.pack_counted(&greater(&sums, 1000)?)?;
    let (others, number) = x.pack_counted(&greater(&sums, 2000)?)?;
    let nodes = [packed, count, others, number];
    let expected = nodes.iter().map(naive::evaluate).collect::<Result<Vec<_>>>()?;
    counts.fills.store(0, Ordering::Relaxed);
    context.evaluate(&nodes)?;
    assert_eq!(counts.fills.load(Ordering::Relaxed), 1);
    for (node, expected) in [(1, 1), (3, 3)].map(|(node, place)| (&nodes[node], &expected[place])) {
        assert_eq!(node.read()?.lanes, expected.lanes);
    }
    Ok(())
}

/// Lanes run concurrently, and events join them where their results meet.
#[test]
fn lanes_are_joined_by_events() -> Result<()> {
    let (gpu, counts) = counting_gpu();
    for device in [gpu, cpu()] {
        let context = Context::new(&device);
        let lanes = [context.lane()?, context.lane()?];
        let x = upload(&context, 5000.into())?;
        let double = binary(BinaryOp::Add, &x, &x)?;
        let expected = binary(BinaryOp::Add, &double.scan(Combine::Sum, 0, true)?, &double.scan(Combine::Max, 0, true)?)?;
        let expected = naive::evaluate(&expected)?;
        counts.waits.store(0, Ordering::Relaxed);
        for _ in 0..20 {
            let double = binary(BinaryOp::Add, &x, &x)?;
            context.evaluate(std::slice::from_ref(&double))?;
            let halves = [double.scan(Combine::Sum, 0, true)?, double.scan(Combine::Max, 0, true)?];
            for (lane, half) in lanes.iter().zip(&halves) {
                lane.evaluate(std::slice::from_ref(half))?;
            }
            let both = binary(BinaryOp::Add, &halves[0], &halves[1])?;
            lanes[0].evaluate(std::slice::from_ref(&both))?;
            let twice = binary(BinaryOp::Add, &both, &both)?;
            context.evaluate(std::slice::from_ref(&twice))?;
            assert_eq!(counts.waits.load(Ordering::Relaxed), 0);
            assert_eq!(both.read()?, expected);
            counts.waits.store(0, Ordering::Relaxed);
        }
    }
    assert!(counts.joins.load(Ordering::Relaxed) >= 20 * 5);
    Ok(())
}

#[test]
fn lengths_that_are_promised_to_be_equal_are_used_together() -> Result<()> {
    let context = Context::new(&interp_as_gpu());
    let x = upload(&context, Shape::from(40))?;
    let flags = greater(&x, 0)?;
    // One number, counted twice; the second line has a larger bound.
    let y = x.pack(&flags)?;
    let wide = Node::concatenate(0, &[&x, &x])?;
    let longer = Node::concatenate(0, &[&flags, &greater(&x, 100)?])?;
    let z = wide.pack(&longer)?;
    let (Some(own), Some(other)) = (y.length(), z.length()) else { panic!("packs have lengths") };
    assert!(!own.is_same(other));
    other.unite(own);
    assert!(own.is_same(other) && own.known().is_none());
    let z = z.first_elements(Some(own), own.bound())?;
    let sum = binary(BinaryOp::Add, &y, &z)?;
    context.evaluate(std::slice::from_ref(&sum))?;
    assert_eq!(context.statistics().waits, 0);
    let expected: Vec<i128> = (0..40).map(|i| i128::from(i * 7 % 23 - 9)).filter(|x| *x > 0).map(|x| 2 * x).collect();
    let found: Vec<i128> = sum.read()?.lanes.iter().filter_map(|lane| lane.as_i128()).collect();
    assert_eq!(found, expected);
    // A learned number holds for both lengths, and shortens arrays without a wait.
    assert_eq!((own.known(), other.known()), (Some(expected.len()), Some(expected.len())));
    let waits = context.statistics().waits;
    assert_eq!(y.first_elements(None, expected.len())?.shape().count(), expected.len());
    assert_eq!(context.statistics().waits, waits);
    assert!(y.first_elements(None, 41).is_err());
    // Dropping a chain of promises needs no stack.
    let count = Node::fill(&context, Shape::from([]), &[Literal::from(3u32)])?;
    let mut last = Length::new(&count, 5)?;
    for _ in 0..20_000 {
        let next = Length::new(&count, 5)?;
        last.unite(&next);
        last = next;
    }
    drop(last);
    Ok(())
}

#[test]
fn a_context_can_ask_for_few_launches() -> Result<()> {
    let device = interp_as_gpu();
    for (context, kernels) in [(Context::new(&device), 2), (Context::with_few_launches(&device, Precision::Accurate), 1)] {
        let (x, z) = (upload(&context, Shape::from(40))?, upload(&context, Shape::from(40))?);
        let y = x.pack(&greater(&x, 0)?)?;
        context.evaluate(std::slice::from_ref(&y))?;
        let Some(length) = y.length() else { panic!("a pack has a length") };
        let z = z.first_elements(Some(length), length.bound())?;
        // Equally long, without shared inputs.
        let both = [binary(BinaryOp::Add, &y, &y)?, binary(BinaryOp::Mul, &z, &z)?];
        assert!(context.explain(&both)?.kernels.len() <= kernels);
        let expected = both.iter().map(naive::evaluate).collect::<Result<Vec<_>>>()?;
        context.evaluate(&both)?;
        assert_eq!(both.iter().map(Node::read).collect::<Result<Vec<_>>>()?, expected);
    }
    Ok(())
}

/// Indices clamped to a length of 0 read nothing: that memory was never written.
#[test]
fn nothing_is_read_of_an_array_that_turns_out_empty() -> Result<()> {
    let watched = Interp::new(broadloom_interp::Options { check: true, ..broadloom_interp::Options::default() });
    let context = Context::new(&Device::new(watched.clone()));
    for kept in [0, 3] {
        let x = upload(&context, Shape::from(40))?;
        let chosen = x.pack(&greater(&x, if kept == 0 { 100 } else { 10 })?)?;
        let places = Node::position(&context, Shape::from(5), 0, Element::I32)?;
        let fill = Boundary::Constant(smallvec![Literal::from(7i32)]);
        let filled = chosen.gather(&[&places], &fill)?.scan(Combine::Sum, 0, true)?;
        let others = [Boundary::Clamp, Boundary::Wrap, Boundary::Mirror].map(|boundary| chosen.gather(&[&places], &boundary));
        let others = others.into_iter().collect::<Result<Vec<_>>>()?;
        let segments = Segments::from_lengths(&chosen, Total::Within(1000))?;
        let starts = segments.starts()?;
        // An element gathered from an empty array is arbitrary unless it is a constant.
        let expected = (kept > 0).then(|| others.iter().map(naive::evaluate).collect::<Result<Vec<_>>>()).transpose()?;
        let sums = naive::evaluate(&filled)?;
        context.evaluate(&[&[filled.clone(), starts], &others[..]].concat())?;
        assert_eq!(filled.read()?.lanes, sums.lanes);
        for (other, expected) in others.iter().zip(expected.into_iter().flatten()) {
            assert_eq!(other.read()?.lanes, expected.lanes);
        }
    }
    assert!(watched.findings().is_empty(), "{:?}", watched.findings());
    Ok(())
}

/// Lines whose lengths happen to be equal are packed and scanned together; those that differ are refused. The
/// host waits to compare them.
#[test]
fn lengths_that_are_equal_by_number_fit_together() -> Result<()> {
    let context = Context::new(&interp_as_gpu());
    let x = upload(&context, Shape::from(40))?;
    // Two lines of this length: one with another bound, one with the same bound.
    let odd = |line: &Node| {
        Node::elementwise(Elementwise::Convert(Element::Bool), &[&binary(BinaryOp::And, line, &number(line.context(), 1)?)?])
    };
    let shorter = x.pack(&greater(&x, 2)?)?;
    let count = shorter.shape().count();
    let flags = |bound: usize| {
        let places = Node::position(&context, Shape::from(bound), 0, Element::I32)?;
        let first = Node::elementwise(Elementwise::Compare(CompareOp::Lt), &[&places, &number(&context, count as i32)?])?;
        odd(&places.pack(&first)?)
    };
    for bound in [count, 40, 64] {
        let chosen = flags(bound)?;
        let results = [
            shorter.pack(&chosen)?,
            shorter.pack_padded(&chosen, &[Literal::from(7i32)])?.0,
            shorter.partition(&chosen)?.0,
            Node::pack_lines(&chosen, &[&shorter, &shorter.hosted()?])?.1,
            shorter.segmented_scan(&chosen, Combine::Sum, 0)?,
        ];
        let expected = results.iter().map(naive::evaluate).collect::<Result<Vec<_>>>()?;
        for (result, expected) in results.iter().zip(expected) {
            assert_eq!(result.read()?, expected);
        }
        assert_eq!(results[0].shape().count(), count / 2);
        assert_eq!(results[1].shape().count(), count);
    }
    let longer = x.pack(&greater(&x, 1)?)?;
    assert!(longer.shape().count() > count);
    let chosen = flags(40)?;
    for refused in [longer.pack(&chosen), longer.segmented_scan(&chosen, Combine::Sum, 0)] {
        assert!(matches!(refused, Err(Error::Shapes { .. })), "{refused:?}");
    }
    Ok(())
}
