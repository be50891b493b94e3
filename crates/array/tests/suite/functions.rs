//! Tests of functions: their results equal those of the plain closure on every device, and errors are
//! reported.

use broadloom_array::{Array, Boundary, Context, Error, Function, Result, Segments, evaluate_all, span};
use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_device::Device;
use broadloom_interp::Interp;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn interp() -> Context {
    Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())))
}

fn devices() -> Result<Vec<Context>> {
    let options = broadloom_cpu::Options { cache: CacheFolder::Nowhere, ..broadloom_cpu::Options::default() };
    Ok(vec![interp(), Context::new(&Device::new(Cpu::new(options)?))])
}

fn told<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => "no error".into(),
        Err(error) => error.to_string(),
    }
}

fn image(context: &Context, rows: usize, columns: usize, seed: u64) -> Result<Array<f32>> {
    let image = Array::<f32>::random(context, [rows, columns], seed)?;
    image.evaluate()?;
    Ok(image)
}

type Several = (Array<f32>, Array<f32>, Array<i32>, Array<f32>);

/// Computes views, boundaries, reductions, a scan, a matrix product, and a value that is kept between
/// kernels.
fn several(x: &Array<f32>, weight: &Array<f32>) -> Result<Several> {
    let near = x.shift(&[0, 1], Boundary::Clamp)? * weight + x.shift(&[-1, 0], Boundary::Constant(2.0))?;
    let total = near.sum();
    let shares = (&near / &total).exp();
    let best = shares.argmax_as::<i32>(1)?;
    let product = shares.matmul(&near.t())?;
    Ok((shares, total, best, product.cumulative_sum(0)?))
}

#[test]
fn a_call_gives_what_the_closure_gives() -> Result<()> {
    for context in devices()? {
        let function = Function::new(&context, several);
        for (step, (rows, columns)) in [(5, 7), (40, 33), (5, 7), (40, 33), (1, 1)].into_iter().enumerate() {
            let (x, weight) = (image(&context, rows, columns, step as u64)?, 0.5 + step as f32);
            let found = function.call((&x, weight))?;
            let wanted = several(&x, &Array::scalar(&context, weight))?;
            assert_eq!(found.0.shape(), wanted.0.shape());
            assert_eq!(found.0.to_vec()?, wanted.0.to_vec()?);
            assert_eq!(found.1.item()?, wanted.1.item()?);
            assert_eq!(found.2.to_vec()?, wanted.2.to_vec()?);
            assert_eq!(found.3.to_vec()?, wanted.3.to_vec()?);
        }
    }
    Ok(())
}

#[test]
fn a_closure_is_traced_once_for_each_number_that_it_reads() -> Result<()> {
    let context = interp();
    let traced = Arc::new(AtomicUsize::new(0));
    let count = traced.clone();
    let function = Function::new(&context, move |x: &Array<i32>, by: &Array<i32>| {
        count.fetch_add(1, Ordering::Relaxed);
        x * by + x.len() as i32
    });
    for round in 0..3 {
        for length in [3usize, 4] {
            let x = Array::<i32>::iota(&context, length)?;
            x.evaluate()?;
            let wanted: Vec<i32> = (0..length as i32).map(|x| x * round + length as i32).collect();
            assert_eq!(function.call((&x, round))?.to_vec()?, wanted);
        }
    }
    assert_eq!(traced.load(Ordering::Relaxed), 2);
    // An evaluated scalar is another kind of argument.
    let by = Array::scalar(&context, 5);
    by.evaluate()?;
    assert_eq!(function.call((&Array::line(&context, &[1, 2, 3])?, &by))?.to_vec()?, [8, 13, 18]);
    assert_eq!(traced.load(Ordering::Relaxed), 3);
    // The least recently used trace is dropped.
    for length in 10..40usize {
        function.call((&Array::line(&context, &vec![1; length])?, 1))?;
    }
    assert_eq!(traced.load(Ordering::Relaxed), 33);
    function.call((&Array::line(&context, &[1; 39])?, 1))?;
    assert_eq!(traced.load(Ordering::Relaxed), 33);
    function.call((&Array::line(&context, &[1; 3])?, 1))?;
    assert_eq!(traced.load(Ordering::Relaxed), 34);
    Ok(())
}

/// A function that does not read extents as numbers is traced once for all extents.
#[test]
fn other_extents_need_no_other_trace() -> Result<()> {
    fn body(x: &Array<i32>, line: &Array<i32>) -> Result<Vec<Array<i32>>> {
        let flat = x.flatten();
        let inner = x.slice(&span![1..-1, 1..])?;
        let zeros = Array::full(x.context(), x.shape(), 0)?;
        let segments = Segments::from_lengths(line, flat.shape().size())?;
        Ok(vec![
            inner.t() * 2,
            flat.reverse(&[0])?.rotate(&[1])? - &flat,
            x.pad(&[(1, 0), (0, 2)], 7)?.sum_along(&[0])?,
            line.slice(&span![-2..])?,
            line.outer(&x.index_axis(0, 1)?)?,
            x.take(1, line, Boundary::Clamp)?.max_along(&[0])?,
            (line.cast::<f32>()?.mean()? * 100.0).cast()?,
            Array::concatenate(0, &[&flat, line, line])?.cumulative_sum(0)?,
            zeros.add_axis(1, 3)?.sum_along(&[0, 1])?,
            line.pack(&line.gt(2)?)?.histogram(4)?.cast()?,
            x.sort(0)?,
            x.sort(1)?.slice(&span![.. ; 2, 1.. ; -3])?,
            x.argsort_descending(0)?,
            flat.segmented_sum(&segments)?,
            flat.segmented_cumulative_sum(&segments)? + segments.ids()?,
            flat.segmented_sort(&segments)?,
        ])
    }
    let context = interp();
    let function = Function::new(&context, body);
    let mut traces = 0;
    for round in 0..40 {
        let (rows, columns, length) = (3 + round * 7 % 11, 3 + round * 5 % 13, 2 + round * 3 % 13);
        let x = Array::<i32>::iota(&context, rows * columns)?.reshape([rows, columns])? % 10;
        let line = Array::<i32>::iota(&context, length)? % 5;
        let found = function.call((&x, &line))?;
        for (number, (found, wanted)) in found.iter().zip(body(&x, &line)?).enumerate() {
            assert_eq!(found.shape(), wanted.shape(), "{number}: {rows} {columns} {length}");
            assert_eq!(found.to_vec()?, wanted.to_vec()?, "{number}: {rows} {columns} {length}");
        }
        if round == 0 {
            traces = context.statistics().traces;
        }
    }
    assert_eq!((traces, context.statistics().traces), (1, 1));
    Ok(())
}

#[test]
fn evaluating_inside_is_a_stage() -> Result<()> {
    for context in devices()? {
        let body = |x: &Array<f32>, y: &Array<f32>| {
            let (a, b) = (x * 2.0, x + y);
            evaluate_all(&[a.node(), b.node()])?;
            let c = (&a - &b).reshape([6])?;
            c.evaluate()?;
            Ok([c.sum(), (&c * &c).max(), a.sum()])
        };
        let (x, y) = (image(&context, 2, 3, 1)?, image(&context, 2, 3, 2)?);
        let wanted: [Array<f32>; 3] = body(&x, &y)?;
        let wanted: Vec<f32> = wanted.iter().map(Array::item).collect::<Result<_>>()?;
        let function = Function::new(&context, body);
        // A call does not wait, and pending work holds memory.
        function.call((&x, &y))?.iter().try_for_each(|result| result.item().map(drop))?;
        let used = context.device().memory().used;
        let (plans, kernels) = (context.statistics().plans, context.statistics().kernels);
        let found: Vec<f32> = function.call((&x, &y))?.iter().map(Array::item).collect::<Result<_>>()?;
        assert_eq!(found, wanted);
        let after = context.statistics();
        assert_eq!(after.plans, plans);
        assert!(after.kernels >= kernels + 3, "three stages have three kernels at least");
        assert_eq!(context.device().memory().used, used, "what was between is gone");
    }
    Ok(())
}

#[test]
fn what_is_captured_is_constant() -> Result<()> {
    let context = interp();
    let (ready, pending) = (Array::line(&context, &[1, 2, 3])?, Array::<i32>::iota(&context, 3)? * 10);
    let kept = ready.clone();
    let function = Function::new(&context, move |x: &Array<i32>| vec![x + &ready, x + &pending, ready.clone(), x.clone()]);
    let x = Array::line(&context, &[100, 200, 300])?;
    let found: Vec<Vec<i32>> = function.call(&x)?.iter().map(Array::to_vec).collect::<Result<_>>()?;
    assert_eq!(found, [[101, 202, 303], [100, 210, 320], [1, 2, 3], [100, 200, 300]]);
    drop(kept);
    assert_eq!(function.call(x * 2)?[0].to_vec()?, [201, 402, 603]);
    Ok(())
}

#[test]
fn a_scalar_can_come_out_and_be_reshaped() -> Result<()> {
    let context = interp();
    let function = Function::new(&context, |x: &Array<f32>, s: &Array<f32>| -> Result<(Array<f32>, Array<f32>)> {
        Ok((s.clone(), x.reshape([2, 2])?.t() * s.broadcast_to([2, 2])?))
    });
    let x = Array::line(&context, &[1.0, 2.0, 3.0, 4.0])?;
    for s in [2.0, 3.0] {
        let (same, product) = function.call((&x, s))?;
        assert_eq!((same.item()?, product.to_vec()?), (s, vec![s, 3.0 * s, 2.0 * s, 4.0 * s]));
    }
    assert_eq!(context.statistics().plans, 1);
    Ok(())
}

#[test]
fn a_function_inside_of_another_is_part_of_it() -> Result<()> {
    let context = interp();
    let square = Function::new(&context, |x: &Array<i32>| x * x);
    let constant = Array::line(&context, &[5])?;
    let sum = Function::new(&context, move |x: &Array<i32>, y: &Array<i32>| -> Result<Array<i32>> {
        // The last call is computed while the outer function is traced.
        Ok(square.call(x)? + square.call(y)? + square.call(&constant)?)
    });
    let (x, y) = (Array::line(&context, &[1, 2])?, Array::line(&context, &[3, 4])?);
    assert_eq!(sum.call((&x, &y))?.to_vec()?, [35, 45]);
    let before = context.statistics();
    assert_eq!(sum.call((&y, &x))?.to_vec()?, [35, 45]);
    let after = context.statistics();
    assert_eq!((after.plans, after.kernels), (before.plans, before.kernels + 1));
    Ok(())
}

#[test]
fn elements_cannot_be_read_inside() -> Result<()> {
    let context = interp();
    let wanted = "`read`: inside of a function that is traced arrays have no elements yet; they come when it is called";
    let x = Array::line(&context, &[1, 2, 3])?;
    let read = Function::new(&context, |x: &Array<i32>| Array::line(x.context(), &(x + 1).to_vec()?));
    assert_eq!(told(read.call(&x)), wanted);
    let item = Function::new(&context, |x: &Array<i32>, s: &Array<i32>| if s.item()? > 1 { Ok(x + 1) } else { Ok(x - 1) });
    assert_eq!(told(item.call((&x, 2))), wanted);
    // The number of elements cannot be read either, if only the device knows it. A function that does not
    // read it works normally.
    let shaped = Function::new(&context, |x: &Array<i32>| x.pack(&x.gt(1)?)?.reshape([2, 1]));
    assert_eq!(told(shaped.call(&x)), wanted);
    let pack = Function::new(&context, |x: &Array<i32>| x.pack(&x.gt(1)?));
    assert_eq!(pack.call(&x)?.to_vec()?, [2, 3]);
    assert_eq!(pack.call(&Array::line(&context, &[0, 4, 1])?)?.to_vec()?, [4]);
    // A symbol cannot be read outside the function either.
    let smuggled = Arc::new(std::sync::Mutex::new(None));
    let (inside, outside) = (smuggled.clone(), Function::new(&context, |x: &Array<i32>| x + 1));
    let smuggler = Function::new(&context, move |x: &Array<i32>| {
        *inside.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(x * 2);
        x + 1
    });
    assert_eq!(smuggler.call(&x)?.to_vec()?, [2, 3, 4]);
    let escaped = smuggled.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    let Some(escaped) = escaped else { panic!("the closure was not called") };
    assert_eq!(told(escaped.to_vec()), wanted);
    assert_eq!(told(outside.call(&escaped).and_then(|sum| sum.to_vec())), wanted);
    assert!(matches!(escaped.evaluate(), Err(Error::Symbolic { .. })));
    Ok(())
}

#[test]
fn arrays_of_another_device_are_refused() -> Result<()> {
    let (context, other) = (interp(), interp());
    let function = Function::new(&context, |x: &Array<i32>| x + 1);
    let wanted = "`function`: the arrays belong to two contexts, both on `interp`; `to_context` copies one of them";
    assert_eq!(told(function.call(&Array::line(&other, &[1])?)), wanted);
    function.call(&Array::line(&context, &[1])?)?;
    assert_eq!(told(function.call(&Array::line(&other, &[1])?)), wanted);
    let foreign = Array::line(&other, &[1])?;
    let function = Function::new(&context, move |_: &Array<i32>| foreign.clone());
    assert_eq!(told(function.call(&Array::line(&context, &[1])?)), wanted);
    Ok(())
}

#[test]
fn threads_call_one_function() -> Result<()> {
    for context in devices()? {
        let function = Function::new(&context, |x: &Array<i32>, y: &Array<i32>| (x * y).sum());
        let x = Array::<i32>::iota(&context, 100)?;
        x.evaluate()?;
        let sums: Vec<i32> = std::thread::scope(|scope| {
            let (function, x) = (&function, &x);
            let workers: Vec<_> = (0..4).map(|y| scope.spawn(move || function.call((x, y)).and_then(|sum| sum.item()))).collect();
            workers.into_iter().filter_map(|worker| worker.join().ok()?.ok()).collect()
        });
        assert_eq!(sums, [0, 4950, 9900, 14850]);
    }
    Ok(())
}

/// Tests kernels without positions, empty results, and functions without results.
#[test]
fn nothing_is_computed_of_nothing() -> Result<()> {
    let context = interp();
    let function = Function::new(&context, |x: &Array<f32>| (x * 2.0, x.sum()));
    let (empty, sum) = function.call(&Array::line(&context, &[])?)?;
    assert_eq!((empty.to_vec()?, sum.item()?), (vec![], 0.0));
    let none = Function::new(&context, |_: &Array<f32>| Vec::<Array<f32>>::new());
    assert!(none.call(&Array::line(&context, &[1.0])?)?.is_empty());
    Ok(())
}

/// Tests a reduction over windows around many columns, for several candidates. Windows are inside the image,
/// or clamped to it.
#[test]
fn windows_are_summed_inside_and_at_the_edges() -> Result<()> {
    let (side, columns) = (3, 40);
    for context in devices()? {
        for (candidates, beyond) in [(3, 0), (3, 2), (7, 0), (1, 1)] {
            let extent = side + candidates - 1;
            let values: Vec<i32> = (0..(extent * extent * columns) as i32).map(|i| i * 7919 % 1013).collect();
            let image = Array::new(&context, &values, [extent, extent, columns])?;
            let along = |axis: usize| Array::<i32>::positions(&context, [side, side, candidates, candidates, columns], axis);
            let (y, x) = (along(0)? + along(2)? + beyond, along(1)? + along(3)? - beyond);
            let sums = image.gather(&[&y, &x, &along(4)?], Boundary::Clamp)?.sum_along(&[0, 1])?.to_vec()?;
            let held = |place: i32| place.clamp(0, extent as i32 - 1) as usize;
            let sum = |number: usize| {
                let (place, column) = (number / columns, number % columns);
                let (cy, cx) = ((place / candidates) as i32, (place % candidates) as i32);
                let at = |y: i32, x: i32| values[(held(y + cy + beyond) * extent + held(x + cx - beyond)) * columns + column];
                (0..9).map(|k| at(k / 3, k % 3)).sum::<i32>()
            };
            let expected: Vec<i32> = (0..candidates * candidates * columns).map(sum).collect();
            assert_eq!(sums, expected, "{candidates} candidates, {beyond} beyond");
        }
    }
    Ok(())
}

/// Tests axes that are split and exchanged, then read with a step.
#[test]
fn split_axes_find_their_elements() -> Result<()> {
    for context in devices()? {
        let (rows, columns) = (12, 40);
        let values: Vec<i32> = (0..4 * rows * columns).collect();
        let image = Array::new(&context, &values, [2 * rows as usize, 2 * columns as usize])?;
        // A quarter of the image, every second pixel, in blocks of 3×4 along the last axes.
        let part = image.section(&[(1, rows as usize, 2), (0, columns as usize, 2)], None)? + 1;
        let blocks = part.reshape([4, 3, 10, 4])?.transpose(&[1, 3, 0, 2])?.to_vec()?;
        // Axes: row in a block, column in a block, row of blocks, column of blocks.
        let expected = |i: i32| {
            let (y, x) = (i / 10 % 4 * 3 + i / 160, i % 10 * 4 + i / 40 % 4);
            (2 * y + 1) * 2 * columns + 2 * x + 1
        };
        assert_eq!(blocks, (0..rows * columns).map(expected).collect::<Vec<i32>>());
    }
    Ok(())
}

/// Arguments with another extent are traced anew, and then refused. A length of the device is compared with the
/// next read.
#[test]
fn only_an_axis_of_extent_1_is_dropped() -> Result<()> {
    for context in devices()? {
        let function = Function::new(&context, |x: &Array<i32>| x.drop_axis(1));
        let column = Array::<i32>::iota(&context, 4)?;
        assert_eq!(function.call(&column.reshape([4, 1])?)?.to_vec()?, [0, 1, 2, 3]);
        let wide = told(function.call(&column.reshape([2, 2])?));
        assert!(wide.contains("axis 1 has extent 2"), "{wide}");
        let packed = |above: i32| column.pack(&column.gt(above)?);
        assert_eq!(packed(2)?.drop_axis(0)?.item()?, 3);
        for (above, extent) in [(1, 2), (3, 0)] {
            let dropped = packed(above)?.drop_axis(0)?;
            let error = told(dropped.item());
            assert!(error.contains(&format!("axis 0 has extent {extent}")), "{error}");
        }
        // The length along axis 0 is of no concern.
        assert_eq!(packed(1)?.add_axis(1, 1)?.drop_axis(1)?.to_vec()?, [2, 3]);
    }
    Ok(())
}
