//! Tests of the number of kernels of an expression, and the bytes moved. They detect a lost fusion without
//! measuring time.

use broadloom_array::{Array, Boundary, Context, Precision, Reason, Result, Shape, Span, evaluate_all, span};
use broadloom_device::{Backend, Device, Machine, MachineKind};
use broadloom_interp::Interp;

fn context() -> Context {
    Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())))
}

/// Returns a context that plans for an H200.
fn h200() -> Context {
    let machine = Machine {
        kind: MachineKind::Cuda,
        multiprocessors: 132,
        registers: Some(65536),
        resident_threads: Some(2048),
        peak_operations: Some(2.0 * 132.0 * 128.0 * 1.98e9),
        peak_bandwidth: Some(2.0 * 3.201e9 * 768.0),
        ..Interp::new(broadloom_interp::Options::default()).machine().clone()
    };
    let options = broadloom_interp::Options { machine: Some(machine), ..broadloom_interp::Options::default() };
    Context::new(&Device::new(Interp::new(options)))
}

fn image(context: &Context, rows: usize, columns: usize) -> Result<Array<f32>> {
    let values: Vec<f32> = (0..rows * columns).map(|i| ((i * 7919) % 1013) as f32 / 1013.0).collect();
    Array::new(context, &values, [rows, columns])
}

/// Returns the weighted sum of an image shifted along an axis: Figure 2 of the paper.
fn blur_along(image: &Array<f32>, axis: usize, weights: &[f32]) -> Result<Array<f32>> {
    let mut sum = Array::full(image.context(), image.shape(), 0.0f32)?;
    for (i, weight) in weights.iter().enumerate() {
        let mut by = [0, 0];
        by[axis] = i as i64 - weights.len() as i64 / 2;
        sum += image.shift(&by, Boundary::Clamp)? * *weight;
    }
    Ok(sum)
}

const GAUSS: [f32; 5] = [0.0625, 0.25, 0.375, 0.25, 0.0625];

#[test]
fn convolution_is_one_kernel() -> Result<()> {
    let context = context();
    let x = image(&context, 40, 50)?;
    let blurred = blur_along(&blur_along(&x, 1, &GAUSS)?, 0, &GAUSS)?;
    let plan = blurred.plan()?;
    assert_eq!(plan.kernels.len(), 1, "{}", plan.text());
    assert_eq!(plan.bytes_moved(), 2 * 40 * 50 * 4);
    assert!(plan.kernels[0].interior);
    // The definition.
    let (from, found) = (x.to_vec()?, blurred.to_vec()?);
    let at = |i: i64, j: i64| f64::from(from[i.clamp(0, 39) as usize * 50 + j.clamp(0, 49) as usize]);
    for (i, j) in (0..40).flat_map(|i| (0..50).map(move |j| (i, j))) {
        let mut sum = 0.0;
        for (a, b) in (0..5).flat_map(|a| (0..5).map(move |b| (a, b))) {
            // Clamping along one axis and then along the other equals clamping both.
            sum += f64::from(GAUSS[a as usize] * GAUSS[b as usize]) * at(i - a + 2, j - b + 2);
        }
        assert!((sum - f64::from(found[(i * 50 + j) as usize])).abs() < 1e-6, "{i} {j}");
    }
    Ok(())
}

fn life(cells: &Array<f32>) -> Result<Array<f32>> {
    let mut neighbours = Array::full(cells.context(), cells.shape(), 0.0f32)?;
    for (i, j) in [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)] {
        neighbours += cells.rotate(&[i, j])?;
    }
    let born = neighbours.eq(3.0f32)?;
    let stays = &neighbours.eq(2.0f32)? & &cells.gt(0.5f32)?;
    (born | stays).cond(1.0f32, 0.0f32)
}

#[test]
fn life_is_one_kernel() -> Result<()> {
    let context = context();
    let mut cells = vec![0.0f32; 16 * 16];
    for (i, j) in [(0, 1), (1, 2), (2, 0), (2, 1), (2, 2)] {
        cells[i * 16 + j] = 1.0;
    }
    let mut world = Array::new(&context, &cells, [16, 16])?;
    assert_eq!(life(&world)?.plan()?.kernels.len(), 1);
    // A glider moves by one along both axes in four generations. It returns to its start after sixteen times
    // as many.
    for _ in 0..64 {
        world = life(&world)?;
        world.evaluate()?;
    }
    assert_eq!(world.to_vec()?, cells);
    assert_eq!(context.statistics().plans, 1);
    Ok(())
}

/// Strips of rows already read and write at the speed of memory in `life`. Patches only pay for more reads
/// than that.
#[test]
fn patches_are_for_more_work_than_memory_takes() -> Result<()> {
    let context = h200();
    let cells = image(&context, 64, 64)?;
    let next = cells.window(Boundary::Wrap, |w| {
        let row = |y: i64| w.at(&[y, -1]) + w.at(&[y, 0]) + w.at(&[y, 1]);
        let (all, cell) = (row(-1) + row(0) + row(1), w.at(&[0, 0]));
        let none = cell.constant(0.0);
        all.eq(3.0).cond(cell.constant(1.0), all.eq(4.0).cond(cell, none))
    })?;
    assert_eq!(next.plan()?.kernels[0].patch, None, "{}", next.plan()?.text());
    let blurred = blur_along(&blur_along(&cells, 1, &GAUSS)?, 0, &GAUSS)?;
    let plan = blurred.plan()?;
    assert_eq!(plan.kernels.len(), 1);
    assert_eq!(plan.kernels[0].patch.map(|patch| patch.columns), Some(4), "{}", plan.text());
    Ok(())
}

fn black_scholes(price: &Array<f32>, strike: &Array<f32>, time: &Array<f32>) -> (Array<f32>, Array<f32>) {
    let (rate, volatility) = (0.02f32, 0.3f32);
    let root = time.sqrt();
    let d1 = ((price / strike).log() + time * (rate + 0.5 * volatility * volatility)) / (&root * volatility);
    let d2 = &d1 - &root * volatility;
    let discounted = strike * (time * -rate).exp();
    let call = price * d1.normcdf() - &discounted * d2.normcdf();
    let put = &discounted * (-&d2).normcdf() - price * (-&d1).normcdf();
    (call, put)
}

#[test]
fn black_scholes_is_one_kernel_with_two_results() -> Result<()> {
    let context = context();
    let line = |from: f32, to: f32| -> Result<Array<f32>> {
        Array::line(&context, &(0..100).map(|i| from + (to - from) * i as f32 / 99.0).collect::<Vec<_>>())
    };
    let (price, strike, time) = (line(10.0, 50.0)?, line(50.0, 12.0)?, line(0.25, 5.0)?);
    let (call, put) = black_scholes(&price, &strike, &time);
    let plan = context.explain(&[call.node().clone(), put.node().clone()])?;
    assert_eq!(plan.kernels.len(), 1, "{}", plan.text());
    assert_eq!(plan.kernels[0].results.len(), 2);
    assert_eq!(plan.bytes_moved(), 5 * 400);
    evaluate_all(&[call.node(), put.node()])?;
    // Put-call parity.
    let [price, strike, time, call, put] = [price, strike, time, call, put].map(|array| array.to_vec());
    let (price, strike, time, call, put) = (price?, strike?, time?, call?, put?);
    for i in 0..100 {
        let parity = price[i] - strike[i] * (-0.02 * time[i]).exp();
        assert!((call[i] - put[i] - parity).abs() < 2e-5, "{i}");
    }
    Ok(())
}

/// Results with a common subexpression become one kernel. The kernel computes the subexpression once and does
/// not write it.
#[test]
fn what_only_one_kernel_looks_at_is_not_written() -> Result<()> {
    let context = context();
    let along = |axis: usize| Array::<i32>::positions(&context, [20, 100], axis)?.cast::<f32>();
    let mask = (along(0)?.sin() * along(1)?.cos()).exp().sin().gt(0.9)?;
    let planes = [image(&context, 20, 100)?, image(&context, 20, 100)?, image(&context, 20, 100)?];
    let shown: Vec<Array<f32>> = planes.iter().map(|plane| mask.cond(&(plane * 2.0), 0.0)).collect::<Result<_>>()?;
    let plan = context.explain(&shown.iter().map(|shown| shown.node().clone()).collect::<Vec<_>>())?;
    assert_eq!(plan.kernels.len(), 1, "{}", plan.text());
    assert_eq!(plan.bytes_moved(), 6 * 20 * 100 * 4, "{}", plan.text());
    evaluate_all(&shown.iter().map(Array::node).collect::<Vec<_>>())?;
    let (mask, plane) = (mask.to_vec()?, planes[2].to_vec()?);
    let expected: Vec<f32> = mask.iter().zip(&plane).map(|(inside, value)| if *inside { value * 2.0 } else { 0.0 }).collect();
    assert_eq!(shown[2].to_vec()?, expected);
    Ok(())
}

#[test]
fn the_sum_of_absolute_values_is_one_pass() -> Result<()> {
    let context = context();
    let x = image(&context, 30, 70)?;
    let sum = (&x - 0.5).abs().sum();
    let plan = sum.plan()?;
    assert_eq!(plan.kernels.len(), 1, "{}", plan.text());
    assert_eq!(plan.kernels[0].bytes_read, 30 * 70 * 4);
    assert_eq!(plan.bytes_moved(), 30 * 70 * 4 + 4);
    let expected: f64 = x.to_vec()?.iter().map(|x| f64::from((x - 0.5).abs())).sum();
    assert!((f64::from(sum.item()?) - expected).abs() < 1e-3);
    Ok(())
}

#[test]
fn reductions_over_one_array_share_a_pass() -> Result<()> {
    let context = context();
    let x = image(&context, 20, 30)?;
    let (sum, low, high) = (x.sum(), x.min(), x.max());
    let plan = context.explain(&[sum.node().clone(), low.node().clone(), high.node().clone()])?;
    assert_eq!(plan.kernels.len(), 1, "{}", plan.text());
    evaluate_all(&[sum.node(), low.node(), high.node()])?;
    let values = x.to_vec()?;
    assert_eq!(low.item()?, values.iter().copied().fold(f32::INFINITY, f32::min));
    assert_eq!(high.item()?, values.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    Ok(())
}

/// Computes smoothing, gradients, wider smoothing of their products, and eigenvalues: the corner detection of
/// the paper.
fn corners(image: &Array<f32>) -> Result<Array<f32>> {
    let wide: Vec<f32> = (0..9).map(|i| (-((i as f32 - 4.0).powi(2)) / 8.0).exp() / 5.0).collect();
    let smooth = blur_along(&blur_along(image, 1, &GAUSS)?, 0, &GAUSS)?;
    let slope = |axis: usize| -> Result<Array<f32>> {
        let mut by = [0, 0];
        by[axis] = 1;
        let before = smooth.shift(&by, Boundary::Clamp)?;
        by[axis] = -1;
        Ok((smooth.shift(&by, Boundary::Clamp)? - before) * 0.5)
    };
    let (x, y) = (slope(1)?, slope(0)?);
    let blur = |image: &Array<f32>| blur_along(&blur_along(image, 1, &wide)?, 0, &wide);
    let (xx, xy, yy) = (blur(&(&x * &x))?, blur(&(&x * &y))?, blur(&(&y * &y))?);
    let (half, middle) = ((&xx - &yy) * 0.5, (&xx + &yy) * 0.5);
    let root = (&half * &half + &xy * &xy).sqrt();
    Ok((&middle + &root) * 0.5 + (&middle - &root))
}

#[test]
fn corner_detection_is_three_kernels_at_most() -> Result<()> {
    let context = context();
    let plan = corners(&image(&context, 64, 64)?)?.plan()?;
    assert!(plan.kernels.len() <= 3, "{}", plan.text());
    let reused = plan.kernels.iter().flat_map(|kernel| &kernel.results).filter(|r| matches!(r.reason, Reason::Reused { .. }));
    assert!(reused.count() >= 1, "{}", plan.text());
    Ok(())
}

#[test]
fn what_a_view_enlarges_much_is_kept_where_it_is_expensive() -> Result<()> {
    let context = context();
    let x = image(&context, 10, 10)?;
    let cheap = (&x + 1.0).replicate([100, 100])?;
    let dear = x.exp().sin().replicate([100, 100])?;
    let (cheap, dear) = (cheap.plan()?, dear.plan()?);
    assert_eq!((cheap.kernels.len(), dear.kernels.len()), (1, 2), "{}\n{}", cheap.text(), dear.text());
    assert!(matches!(dear.kernels[0].results[0].reason, Reason::Reused { .. }));
    Ok(())
}

#[test]
fn equal_expressions_are_computed_once() -> Result<()> {
    let context = context();
    let x = image(&context, 8, 8)?;
    let one = Array::scalar(&context, 1.0f32);
    let twice = (&x + &one).exp() * (&x + &one).exp();
    let once = {
        let e = (&x + &one).exp();
        &e * &e
    };
    assert_eq!(twice.plan()?.kernels[0].operations, once.plan()?.kernels[0].operations);
    Ok(())
}

#[test]
fn memory_is_taken_over_by_results() -> Result<()> {
    let context = context();
    let x = image(&context, 64, 64)?;
    // The row sums end a kernel. The following computation reuses the memory of dead values.
    let row = x.sum_along(&[1])?;
    let scaled = (&row * 2.0).sum_along(&[0])?;
    let plan = scaled.plan()?;
    assert_eq!(plan.kernels.len(), 2, "{}", plan.text());
    assert!(plan.peak_bytes <= 64 * 4 + 4, "{}", plan.text());
    Ok(())
}

#[test]
fn large_expressions_are_cut() -> Result<()> {
    let context = context();
    let x = image(&context, 4, 4)?;
    let mut sum = x.clone();
    for i in 0..2000 {
        sum += &x * (i as f32);
    }
    let plan = sum.plan()?;
    assert!(plan.kernels.len() > 1 && plan.kernels.len() < 100, "{}", plan.kernels.len());
    let (found, x) = (sum.to_vec()?, x.to_vec()?);
    for (found, x) in found.iter().zip(x) {
        let expected = f64::from(x) * (1.0 + 1999.0 * 1000.0);
        assert!((f64::from(*found) - expected).abs() <= 1e-5 * expected);
    }
    Ok(())
}

#[test]
fn what_feeds_a_product_is_computed_once() -> Result<()> {
    let context = context();
    let x = image(&context, 20, 20)?;
    // A transposed factor is read in place; a computed factor is stored.
    assert_eq!(x.matmul(&x.t())?.plan()?.kernels.len(), 1);
    let plan = x.exp().matmul(&x)?.plan()?;
    assert_eq!(plan.kernels.len(), 2, "{}", plan.text());
    assert_eq!(plan.kernels[0].results[0].reason, Reason::Operand);
    Ok(())
}

#[test]
fn one_row_or_column_of_a_product_is_a_sum_on_a_cpu() -> Result<()> {
    let options = broadloom_cpu::Options { threads: 2, memory_bytes: 1 << 28, ..broadloom_cpu::Options::default() };
    let context = Context::new(&Device::new(broadloom_cpu::Cpu::new(options).unwrap()));
    for (rows, common, columns) in [(1, 70, 50), (50, 70, 1), (1, 70, 1), (2, 70, 3)] {
        let (x, y) = (image(&context, rows, common)?, image(&context, common, columns)?);
        let product = x.matmul(&y)?;
        assert_eq!(product.shape().extents(), [rows, columns]);
        assert_eq!(product.plan()?.text().contains("matrix product"), rows > 1 && columns > 1, "{}", product.plan()?.text());
        let (left, right, found) = (x.to_vec()?, y.to_vec()?, product.to_vec()?);
        for (place, found) in found.into_iter().enumerate() {
            let (i, j) = (place / columns, place % columns);
            let term = |k: usize| f64::from(left[i * common + k]) * f64::from(right[k * columns + j]);
            let want: f64 = (0..common).map(term).sum();
            assert!((f64::from(found) - want).abs() <= 1e-6 * want, "{rows}×{common}×{columns} at {i}, {j}: {found}, {want}");
        }
    }
    Ok(())
}

#[test]
fn sorted_keys_and_their_places_are_one_sort() -> Result<()> {
    let context = context();
    let x = image(&context, 1, 300)?.flatten();
    let (sorted, places) = (x.sort(0)?, x.argsort(0)?);
    let plan = context.explain(&[sorted.node().clone(), places.node().clone()])?;
    assert_eq!(plan.kernels.len(), 1, "{}", plan.text());
    // The elements gathered at these indices are sorted.
    evaluate_all(&[sorted.node(), places.node()])?;
    assert_eq!(x.gather(&[&places], Boundary::Clamp)?.to_vec()?, sorted.to_vec()?);
    Ok(())
}

#[test]
fn a_long_chain_of_views_is_cut() -> Result<()> {
    let context = context();
    let mut x = Array::<i32>::iota(&context, 1000)?;
    for _ in 0..400 {
        // Two clamped shifts cannot be merged.
        x = x.shift(&[1], Boundary::Clamp)?.shift(&[-1], Boundary::Clamp)?;
    }
    let expected: Vec<i32> = (0..1000).map(|i| i.min(998)).collect();
    assert_eq!(x.to_vec()?, expected);
    Ok(())
}

#[test]
fn what_follows_a_reduction_is_in_its_kernel() -> Result<()> {
    let context = context();
    let x = image(&context, 40, 70)?;
    let values = x.to_vec()?;
    let norm = (&x * &x).sum().sqrt();
    let plan = norm.plan()?;
    assert_eq!(plan.kernels.len(), 1, "{}", plan.text());
    // The sum itself is not stored.
    assert_eq!((plan.kernels[0].bytes_written, plan.kernels[0].results.len()), (4, 1), "{}", plan.text());
    let expected = values.iter().map(|x| f64::from(x * x)).sum::<f64>().sqrt();
    assert!((f64::from(norm.item()?) - expected).abs() < 1e-4);
    // Means along an axis, with another array as operand. Reductions that share a pass also share the
    // operations after it.
    let weights = image(&context, 1, 40)?.flatten();
    let spread = (x.max_along(&[1])? - x.min_along(&[1])?) * &weights + x.mean_along(&[1])?;
    let plan = spread.plan()?;
    assert_eq!(plan.kernels.len(), 1, "{}", plan.text());
    assert_eq!(plan.kernels[0].results.len(), 1, "{}", plan.text());
    let weights = weights.to_vec()?;
    for (row, found) in spread.to_vec()?.into_iter().enumerate() {
        let row_values = &values[row * 70..(row + 1) * 70];
        let high = row_values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let low = row_values.iter().copied().fold(f32::INFINITY, f32::min);
        let expected = (high - low) * weights[row] + row_values.iter().sum::<f32>() / 70.0;
        assert!((found - expected).abs() < 1e-5, "{row}");
    }
    // A requested intermediate result is written too.
    let sum = x.sum();
    let root = sum.sqrt();
    let plan = context.explain(&[root.node().clone(), sum.node().clone()])?;
    assert_eq!((plan.kernels.len(), plan.kernels[0].results.len()), (1, 2), "{}", plan.text());
    evaluate_all(&[root.node(), sum.node()])?;
    assert_eq!(root.item()?, sum.item()?.sqrt());
    Ok(())
}

#[test]
fn what_follows_scans_sorts_products_and_scatters_is_in_their_kernels() -> Result<()> {
    let context = context();
    let x = image(&context, 1, 300)?.flatten();
    let total = x.sum();
    // The sum is a separate pass over the same input and comes first.
    let shares = x.cumulative_sum(0)? / &total;
    assert_eq!(shares.plan()?.kernels.len(), 2, "{}", shares.explain()?);
    assert!((shares.to_vec()?[299] - 1.0).abs() < 1e-5);
    let sorted = x.sort(0)?;
    let scaled = &sorted * 2.0 + Array::<i32>::iota(&context, 300)?.cast::<f32>()?;
    assert_eq!(scaled.plan()?.kernels.len(), 1, "{}", scaled.explain()?);
    let mut expected = x.to_vec()?;
    expected.sort_by(f32::total_cmp);
    let expected: Vec<f32> = expected.iter().enumerate().map(|(i, x)| x * 2.0 + i as f32).collect();
    assert_eq!(scaled.to_vec()?, expected);
    // A layer of a network.
    let (m, bias) = (image(&context, 20, 30)?, image(&context, 1, 20)?.flatten());
    let layer = (m.matmul(&m.t())? + &bias).clamp(0.0f32, f32::MAX)?;
    assert_eq!(layer.plan()?.kernels.len(), 1, "{}", layer.explain()?);
    let (values, bias) = (m.to_vec()?, bias.to_vec()?);
    for (place, found) in layer.to_vec()?.into_iter().enumerate() {
        let (i, j) = (place / 20, place % 20);
        let product: f32 = (0..30).map(|k| values[i * 30 + k] * values[j * 30 + k]).sum();
        assert!((found - (product + bias[j]).max(0.0)).abs() < 1e-4, "{i} {j}");
    }
    let at = Array::line(&context, &[1u32, 1, 5])?;
    let sent = Array::full(&context, 8, 1i32)?.scatter_sum(&[&at], &Array::line(&context, &[10, 20, 30])?)? * 2;
    assert_eq!(sent.plan()?.kernels.len(), 1, "{}", sent.explain()?);
    assert_eq!(sent.to_vec()?, [2, 62, 2, 2, 2, 62, 2, 2]);
    let frequencies = (&x * 10.0).cast::<u8>()?.histogram(10)?.cast::<f32>()? / 300.0;
    assert_eq!(frequencies.plan()?.kernels.len(), 1, "{}", frequencies.explain()?);
    assert!((frequencies.sum().item()? - 1.0).abs() < 1e-5);
    // A scan that is read at other indices must be stored in memory.
    let scan = x.cumulative_sum(0)?;
    let moving = &scan - &scan.shift(&[5], Boundary::Constant(0.0))?;
    assert_eq!(moving.plan()?.kernels.len(), 2, "{}", moving.explain()?);
    Ok(())
}

/// Softmax, layer norm and variance along rows read their input once and write their result once, in one
/// kernel.
#[test]
fn rows_that_stay_are_one_kernel() -> Result<()> {
    rows_that_stay_in(&context())?;
    rows_that_stay_in(&h200())
}

fn rows_that_stay_in(context: &Context) -> Result<()> {
    let x = image(context, 33, 50)?;
    let values = x.to_vec()?;
    let is_one = |plan: &broadloom_array::Summary, reads: u64, writes: u64| {
        let kernel = &plan.kernels[0];
        assert_eq!((plan.kernels.len(), kernel.launches), (1, 1), "{}", plan.text());
        assert_eq!((kernel.bytes_read, kernel.bytes_written), (4 * reads, 4 * writes), "{}", plan.text());
    };
    let high = x.max_along(&[1])?.add_axis(1, 50)?;
    let powers = (&x - &high).exp();
    let softmax = &powers / &powers.sum_along(&[1])?.add_axis(1, 50)?;
    is_one(&softmax.plan()?, 33 * 50, 33 * 50);
    for (row, found) in softmax.to_vec()?.chunks(50).enumerate() {
        let powers = values[row * 50..][..50].iter().map(|x| f64::from(*x).exp());
        let sum: f64 = powers.clone().sum();
        assert!(powers.zip(found).all(|(power, found)| (power / sum - f64::from(*found)).abs() < 1e-6), "{row}");
    }
    let gain = image(context, 1, 50)?.flatten();
    let off = &x - x.mean_along(&[1])?.add_axis(1, 1)?;
    let variance = (&off * &off).mean_along(&[1])?;
    is_one(&variance.plan()?, 33 * 50, 33);
    let norm = &off / (variance.add_axis(1, 1)? + 1e-5).sqrt() * &gain;
    is_one(&norm.plan()?, 33 * 50 + 50, 33 * 50);
    let (norm, gain, variance) = (norm.to_vec()?, gain.to_vec()?, variance.to_vec()?);
    for row in 0..33 {
        let own = values[row * 50..][..50].iter().map(|x| f64::from(*x));
        let mean = own.clone().sum::<f64>() / 50.0;
        let wanted = own.clone().map(|x| (x - mean).powi(2)).sum::<f64>() / 50.0;
        assert!((wanted - f64::from(variance[row])).abs() < 1e-5 * wanted.max(1.0), "{row}");
        for (column, x) in own.enumerate() {
            let wanted = (x - mean) / (wanted + 1e-5).sqrt() * f64::from(gain[column]);
            assert!((wanted - f64::from(norm[row * 50 + column])).abs() < 1e-4 * wanted.abs().max(1.0), "{row} {column}");
        }
    }
    Ok(())
}

#[test]
fn what_is_transposed_goes_through_tiles() -> Result<()> {
    let context = context();
    let x = image(&context, 40, 70)?;
    let (values, name) =
        (x.to_vec()?, |array: &Array<f32>| Ok::<_, broadloom_array::Error>(array.plan()?.kernels[0].name.clone()));
    let turned = x.t() * 2.0;
    assert_eq!(name(&turned)?, "transpose");
    let found = turned.to_vec()?;
    for (i, j) in (0..70).flat_map(|i| (0..40).map(move |j| (i, j))) {
        assert_eq!(found[i * 40 + j], values[j * 70 + i] * 2.0, "{i} {j}");
    }
    // Together with an array that is not transposed; shifted, reversed.
    let square = image(&context, 64, 64)?;
    // Doubling is exact, so fusing the multiplication and subtraction does not change the result.
    let both = &square - &square.t().reverse(&[1])? * 2.0;
    assert_eq!(name(&both)?, "transpose");
    let (found, values) = (both.to_vec()?, square.to_vec()?);
    for (i, j) in (0..64).flat_map(|i| (0..64).map(move |j| (i, j))) {
        assert_eq!(found[i * 64 + j], values[i * 64 + j] - values[(63 - j) * 64 + i] * 2.0, "{i} {j}");
    }
    // More axes, one of them in between and unchanged.
    let volume = Array::<i32>::iota(&context, 33 * 3 * 35)?.reshape([33, 3, 35])?;
    volume.evaluate()?;
    let turned = volume.transpose(&[2, 1, 0])?;
    assert_eq!(turned.plan()?.kernels[0].name, "transpose");
    let found = turned.to_vec()?;
    for (i, j, k) in (0..35).flat_map(|i| (0..3).flat_map(move |j| (0..33).map(move |k| (i, j, k)))) {
        assert_eq!(found[(i * 3 + j) * 33 + k], ((k * 3 + j) * 35 + i) as i32);
    }
    // Short rows produce no tiles, and neither do views that cross the edges.
    let thin = image(&context, 70, 3)?;
    assert_eq!(name(&(thin.t() + 1.0))?, "map");
    assert_eq!(name(&x.t().shift(&[1, 0], Boundary::Clamp)?)?, "map");
    Ok(())
}

#[test]
fn only_the_part_of_a_concatenation_is_computed_that_is_there() -> Result<()> {
    let context = context();
    let parts: Vec<Array<i32>> = (0..6).map(|k| Array::line(&context, &vec![k; 10 + k as usize])).collect::<Result<_>>()?;
    let all = Array::concatenate(0, &parts.iter().collect::<Vec<_>>())? * 2;
    assert_eq!(all.plan()?.kernels.len(), 1);
    let expected: Vec<i32> = (0..6).flat_map(|k| vec![2 * k; 10 + k as usize]).collect();
    assert_eq!(all.to_vec()?, expected);
    // One array at one position of two concatenations, and shifted within its part.
    let (a, b, c) = (&parts[3], &parts[4], &parts[5]);
    let moved = a.shift(&[2], Boundary::Constant(100))?;
    let twice = Array::concatenate(0, &[a, b])? * Array::concatenate(0, &[&moved, b])? + Array::concatenate(0, &[b, a])?;
    let (a, b, moved) = ([3; 13], [4; 14], [100, 100, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]);
    let first = a.iter().chain(&b).zip(moved.iter().chain(&b)).map(|(x, y)| x * y);
    let expected: Vec<i32> = first.zip(b.iter().chain(&a)).map(|(x, y)| x + y).collect();
    assert_eq!(twice.to_vec()?, expected);
    // Nested concatenation along rows.
    let rows = c.reshape([3, 5])?;
    let nested = Array::concatenate(1, &[&rows, &Array::concatenate(1, &[&(&rows * 2), &(&rows * 3)])?])?;
    assert_eq!(nested.shape().extents(), [3, 15]);
    let expected: Vec<i32> = (0..45).map(|i| 5 * (1 + (i % 15) / 5)).collect();
    assert_eq!(nested.to_vec()?, expected);
    // Other parts are not read with an out-of-range index along an axis that a view omits. The interpreter
    // would report it.
    let column = Array::line(&context, &[1, 0, 1])?;
    let copies = Array::line(&context, &[7, 8])?.broadcast_to([4, 2])?;
    let gathered = copies.gather(&[&(&column + 1), &column], Boundary::Clamp)?;
    let all = Array::concatenate(0, &[&gathered, &parts[1]])?;
    assert_eq!(all.to_vec()?[..5], [8, 7, 8, 1, 1]);
    Ok(())
}

/// Returns the sum of an array and its neighbours along an axis, three on each side.
fn seven_along(volume: &Array<f32>, axis: usize) -> Result<Array<f32>> {
    let at = |offset: i64| {
        let mut by = [0; 3];
        by[axis] = -offset;
        volume.shift(&by, Boundary::Clamp)
    };
    (-2..=3).try_fold(at(-3)?, |sum, offset| Ok(sum + at(offset)?))
}

#[test]
fn stereo_matching_is_one_kernel_that_keeps_no_volume() -> Result<()> {
    let context = context();
    let (depth, n) = (5, 40);
    let pixel = |seed: usize| (0..n * n).map(|i| ((i * 7919 + seed * 31) % 101) as f32).collect::<Vec<f32>>();
    let (left, right) = (pixel(1), pixel(2));
    let (left_image, right_image) = (Array::new(&context, &left, [n, n])?, Array::new(&context, &right, [n, n])?);
    let along = |axis: usize| Array::<i32>::positions(&context, [depth, n, n], axis);
    let moved = right_image.gather(&[&along(1)?, &(along(2)? - along(0)?)], Boundary::Clamp)?;
    let apart = &left_image - &moved;
    let best = seven_along(&seven_along(&(&apart * &apart), 1)?, 2)?.argmin_as::<i32>(0)?;
    let plan = best.plan()?;
    assert_eq!(plan.kernels.len(), 1, "{}", plan.text());
    assert_eq!(plan.kernels[0].name, "stencil");
    assert_eq!(plan.bytes_moved(), 3 * (n * n * 4) as u64);
    let found = best.to_vec()?;
    let held = |place: i64| place.clamp(0, n as i64 - 1) as usize;
    for (i, found) in found.iter().enumerate() {
        let (y, x) = ((i / n) as i64, (i % n) as i64);
        let cost = |d: i64| {
            let square = |dy: i64, dx: i64| {
                let (row, column) = (held(y + dy), held(x + dx));
                let apart = left[row * n + column] - right[row * n + held(column as i64 - d)];
                apart * apart
            };
            (-3..=3).flat_map(|dy| (-3..=3).map(move |dx| (dy, dx))).map(|(dy, dx)| square(dy, dx)).sum::<f32>()
        };
        let (mut least, mut best) = (f32::INFINITY, 0);
        for d in 0..depth as i64 {
            if cost(d) < least {
                (least, best) = (cost(d), d as i32);
            }
        }
        assert_eq!(*found, best, "{y} {x}");
    }
    Ok(())
}

/// Tests blocks of an image with the blocks along the last axis, and every other pixel of them. Neighbouring
/// lanes read other blocks correctly, also on a CPU.
#[test]
fn what_lies_apart_is_found() -> Result<()> {
    let cache = broadloom_cpu::CacheFolder::Nowhere;
    let options = broadloom_cpu::Options { threads: 2, memory_bytes: 1 << 28, cache, ..broadloom_cpu::Options::default() };
    let cpu = Context::new(&Device::new(broadloom_cpu::Cpu::new(options).unwrap()));
    let (across, side) = (33, 6);
    let n = across * side;
    let values: Vec<i32> = (0..n * n).map(|i| (i * 7919 % 100_003) as i32).collect();
    for context in [cpu, context()] {
        let image = Array::new(&context, &values, [n, n])?;
        let blocks = image.reshape([across, side, across, side])?.transpose(&[1, 3, 0, 2])?;
        let halves = blocks.section(&[(0, side / 2, 2), (1, side / 2, 2), (0, across, 1), (0, across, 1)], None)? * 2;
        let blocks = blocks.reshape([side, side, across * across])?;
        let at = |y: usize, x: usize| values[y * n + x];
        for (number, found) in blocks.to_vec()?.into_iter().enumerate() {
            let (i, j, block) = (number / across / across / side, number / across / across % side, number % (across * across));
            assert_eq!(found, at(block / across * side + i, block % across * side + j), "{number}");
        }
        for (number, found) in halves.to_vec()?.into_iter().enumerate() {
            let (i, j) = (number / across / across / (side / 2), number / across / across % (side / 2));
            let (row, column) = (number / across % across, number % across);
            assert_eq!(found, 2 * at(row * side + 2 * i, column * side + 2 * j + 1), "{number}");
        }
    }
    Ok(())
}

/// Tests products of gradients, summed over nine columns. On a CPU each lane computes the products of its own
/// column and takes the others from its neighbours.
#[test]
fn lanes_give_each_other_what_they_computed_of_their_columns() -> Result<()> {
    let cache = broadloom_cpu::CacheFolder::Nowhere;
    let options = broadloom_cpu::Options { threads: 2, memory_bytes: 1 << 28, cache, ..broadloom_cpu::Options::default() };
    let cpu = Context::new(&Device::new(broadloom_cpu::Cpu::new(options).unwrap()));
    let weights = [1, 3, 5, 7, 11, 13, 17, 19, 23];
    let summed = |context: &Context, values: &[i32], (rows, columns): (usize, usize)| -> Result<[Array<i32>; 2]> {
        let x = Array::new(context, values, [rows, columns])?;
        let slope = |by: [i64; 2]| -> Result<Array<i32>> {
            Ok(x.shift(&by.map(|by| -by), Boundary::Clamp)? - x.shift(&by, Boundary::Clamp)?)
        };
        let (across, down) = (slope([0, 1])?, slope([1, 0])?);
        let sum = |products: Array<i32>| -> Result<Array<i32>> {
            let mut sum = Array::full(context, [rows, columns], 0)?;
            for (i, weight) in weights.iter().enumerate() {
                sum += products.shift(&[0, 4 - i as i64], Boundary::Clamp)? * *weight;
            }
            Ok(sum)
        };
        Ok([sum(&across * &down)?, sum(&down * &down)?])
    };
    for (rows, columns) in [(16, 32), (17, 33), (90, 131), (33, 40)] {
        let values: Vec<i32> = (0..rows * columns).map(|i| (i * 7919 % 1013) as i32).collect();
        let results = summed(&cpu, &values, (rows, columns))?;
        let others = summed(&context(), &values, (rows, columns))?;
        let operations = |results: &[Array<i32>; 2]| -> Result<u64> {
            let plan = results[0].plan()?;
            assert_eq!(plan.kernels.len(), 1, "{}", plan.text());
            Ok(plan.kernels[0].operations)
        };
        assert!(operations(&results)? < operations(&others)?);
        evaluate_all(&[results[0].node(), results[1].node()])?;
        let at =
            |i: i64, j: i64| values[i.clamp(0, rows as i64 - 1) as usize * columns + j.clamp(0, columns as i64 - 1) as usize];
        let found = [results[0].to_vec()?, results[1].to_vec()?];
        for (i, j) in (0..rows as i64).flat_map(|i| (0..columns as i64).map(move |j| (i, j))) {
            let mut want = [0, 0];
            for (k, weight) in weights.iter().enumerate() {
                let j = (j + k as i64 - 4).clamp(0, columns as i64 - 1);
                let (across, down) = (at(i, j + 1) - at(i, j - 1), at(i + 1, j) - at(i - 1, j));
                want[0] += across * down * weight;
                want[1] += down * down * weight;
            }
            let place = i as usize * columns + j as usize;
            assert_eq!([found[0][place], found[1][place]], want, "{rows}×{columns}: {i} {j}");
        }
    }
    Ok(())
}

#[test]
fn a_fast_context_is_nearly_as_exact() -> Result<()> {
    let device = Device::new(Interp::new(broadloom_interp::Options::default()));
    let values: Vec<f32> = (1..200).map(|i| i as f32 / 16.0).collect();
    let computed = |context: &Context| {
        let x = Array::line(context, &values)?;
        x.map(|x| x.sqrt().exp() / (x + 1.0))?.to_vec()
    };
    let (accurate, fast) = (computed(&Context::new(&device))?, computed(&Context::with_precision(&device, Precision::Fast))?);
    assert_ne!(accurate, fast, "the same code");
    for (x, (accurate, fast)) in values.iter().zip(accurate.iter().zip(&fast)) {
        let want = f64::from(*x).sqrt().exp() / (f64::from(*x) + 1.0);
        assert!((f64::from(*accurate) - want).abs() <= 4e-7 * want, "{x}: {accurate}, {want}");
        assert!((f64::from(*fast) - want).abs() <= 4e-6 * want, "{x}: {fast}, {want}");
    }
    Ok(())
}

/// Padding of an array whose length only the device knows does not wait.
#[test]
fn padding_does_not_wait_for_a_length() -> Result<()> {
    let context = context();
    let x = Array::<i32>::iota(&context, 10)?;
    let x = x.pack(&x.gt(6)?)?;
    let rows = x.add_axis(1, 2)?;
    let (padded, mirrored) = (x.pad(&[(2, 1)], 7)?, x.extend(&[(1, 2)], Boundary::Mirror)?);
    let (wrapped, table) = (x.expand(&[(0, 4)])?, rows.pad(&[(1, 0), (0, 1)], 5)?);
    let edges = rows.extend(&[(0, 1), (1, 0)], Boundary::Clamp)?;
    evaluate_all(&[padded.node(), mirrored.node(), wrapped.node(), table.node(), edges.node()])?;
    assert_eq!(context.statistics().waits, 0);
    assert_eq!(padded.to_vec()?, [7, 7, 7, 8, 9, 7]);
    assert_eq!(mirrored.to_vec()?, [8, 7, 8, 9, 8, 7]);
    assert_eq!(wrapped.to_vec()?, [7, 8, 9, 7, 8, 9, 7]);
    assert_eq!((table.shape().extents(), table.to_vec()?), (&[4, 3][..], vec![5, 5, 5, 7, 7, 5, 8, 8, 5, 9, 9, 5]));
    assert_eq!((edges.shape().extents(), edges.to_vec()?), (&[4, 3][..], vec![7, 7, 7, 8, 8, 8, 9, 9, 9, 9, 9, 9]));
    Ok(())
}

/// Slices, rows and sums over a length that only the device knows do not wait. The rules of `Vec` are the
/// reference.
#[test]
fn parts_and_products_of_a_packed_array_wait_for_nothing() -> Result<()> {
    let context = context();
    let numbers = Array::<i32>::iota(&context, 40)?;
    for keep in [3, 7, 50] {
        let x = numbers.pack(&(&numbers % keep).eq(1)?)?;
        let host: Vec<i32> = (0..40).filter(|number| number % keep == 1).collect();
        let waits = context.statistics().waits;
        let spans: [(Span, Vec<i32>); 7] = [
            (span![1..-1][0], host.get(1..host.len().max(1) - 1).unwrap_or(&[]).to_vec()),
            (span![..-2][0], host[..host.len().saturating_sub(2)].to_vec()),
            (span![-3..][0], host[host.len().saturating_sub(3)..].to_vec()),
            (span![-3..-1][0], host[host.len().saturating_sub(3)..host.len() - 1].to_vec()),
            (span![.. ; 2][0], host.iter().copied().step_by(2).collect()),
            (span![.. ; -2][0], host.iter().rev().copied().step_by(2).collect()),
            (span![1..-1 ; 3][0], host.get(1..host.len().max(1) - 1).unwrap_or(&[]).iter().copied().step_by(3).collect()),
        ];
        let mut found = vec![];
        for (span, expected) in spans {
            found.push((x.slice(&[span])?, expected));
        }
        let steps = host.windows(2).map(|pair| pair[1] - pair[0]).collect();
        found.push((x.slice(&span![1..])? - x.slice(&span![..-1])?, steps));
        let (squares, pairs) = (host.iter().map(|x| x * x).sum::<i32>(), host.chunks_exact(2).map(|pair| pair[0] * pair[1]));
        found.push((x.rows_of(2)?.product_along(&[1])?, pairs.collect()));
        found.push((x.inner(&x)?.flatten(), vec![squares]));
        let both = x.outer(&Array::line(&context, &[1, 2])?)?;
        let sums = [1, 2, 2, 4].map(|factor| factor * squares).to_vec();
        found.push((both.t_matmul(&both)?.flatten(), sums));
        found.push((x.inner(&both)?, vec![squares, 2 * squares]));
        let table = numbers.rows_of(4)?;
        let rows = table.take(0, &(&x / 4), Boundary::Clamp)?;
        found.push((rows.index_axis(1, 3)?, host.iter().map(|x| x / 4 * 4 + 3).collect()));
        // Columns of an unknown number of rows, single rows and elements, and a shape that is stated.
        let columns = rows.take(1, &Array::line(&context, &[2, 0, 9])?, Boundary::Constant(-1))?;
        found.push((columns.flatten(), host.iter().flat_map(|x| [x / 4 * 4 + 2, x / 4 * 4, -1]).collect()));
        found.push((rows.take(0, &Array::full(&context, Shape::from([]), 0)?, Boundary::Clamp)?, (0..4).collect()));
        found.push((rows.index_axis(0, 0)?, (0..4).collect()));
        found.push((x.slice(&span![-1])?.flatten(), host[host.len() - 1..].to_vec()));
        found.push((rows.slice(&span![-1, 1..3])?, [1, 2].map(|column| host[host.len() - 1] / 4 * 4 + column).to_vec()));
        found.push((x.reshape([host.len(), 1])?.sum_along(&[1])?, host.clone()));
        let ones = Array::full(&context, [1, host.len()], 1)?;
        found.push((ones.matmul(&both)?.flatten(), [1, 2].map(|factor| factor * host.iter().sum::<i32>()).to_vec()));
        assert_eq!(context.statistics().waits, waits);
        for (number, (array, expected)) in found.into_iter().enumerate() {
            assert_eq!(array.to_vec()?, expected, "{keep} {number}");
        }
    }
    Ok(())
}

/// Arrays that are declared to have one shape are read at one position, which is clamped once.
#[test]
fn arrays_of_one_shape_are_read_at_one_place() -> Result<()> {
    let context = context();
    let image = |seed: i32| Array::new(&context, &(0..12).map(|i| i * seed).collect::<Vec<i32>>(), [3, 4]);
    let (red, green) = (image(1)?, image(10)?);
    let (y, x) = (Array::line(&context, &[0, 2, -1, 7])?, Array::line(&context, &[3, 9, 1, -2])?);
    let sum = |green: &Array<i32>| -> Result<Array<i32>> {
        Ok(red.gather(&[&y, &x], Boundary::Clamp)? + green.gather(&[&y, &x], Boundary::Clamp)?)
    };
    let clamps = |sum: &Array<i32>| -> Result<usize> { Ok(sum.plan()?.ptx()?.matches("min.s32").count()) };
    let (apart, alike) = (sum(&green)?, sum(&green.broadcast_with(&red)?)?);
    assert_eq!(clamps(&apart)?, 2 * clamps(&alike)?);
    assert_eq!(alike.plan()?.kernels.len(), 1);
    assert_eq!(alike.to_vec()?, [33, 121, 11, 88]);
    assert_eq!(apart.to_vec()?, [33, 121, 11, 88]);
    Ok(())
}
