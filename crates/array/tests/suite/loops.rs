//! Tests of loops: no replanning or recompilation, no growth of memory, arrays shared between threads.

use broadloom_array::{Array, Boundary, Context, Result};
use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_device::Device;
use broadloom_interp::Interp;

fn interp() -> Context {
    Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())))
}

#[test]
fn a_long_loop_neither_plans_nor_grows() -> Result<()> {
    let context = interp();
    let mut x = Array::line(&context, &[1.0f32, 2.0, 3.0, 4.0])?;
    x = &x * 0.5 + 1.0;
    x.evaluate()?;
    let (plans, used) = (context.statistics().plans, context.device().memory().used);
    let programs = context.statistics().programs;
    for step in 0..1000 {
        // A different scalar in every step, with the same expression.
        x = &x * (0.5 + step as f32 * 1e-6) + 1.0;
        x.evaluate()?;
    }
    let after = context.statistics();
    assert_eq!((after.plans, after.programs), (plans, programs));
    assert_eq!(context.device().memory().used, used);
    assert!(x.to_vec()?.iter().all(|x| (1.9..2.1).contains(x)));
    Ok(())
}

fn cpu() -> Result<Context> {
    let options = broadloom_cpu::Options { cache: CacheFolder::Nowhere, ..broadloom_cpu::Options::default() };
    Ok(Context::new(&Device::new(Cpu::new(options).map_err(broadloom_array::Error::from)?)))
}

/// Runs `BROADLOOM_LOOP_STEPS` steps of a simulation. Every step needs the previous one. Device memory,
/// cached memory, plans and programs must not grow.
#[test]
fn a_very_long_loop_does_not_grow() -> Result<()> {
    let steps = std::env::var("BROADLOOM_LOOP_STEPS").map_or(20_000u32, |text| {
        text.parse().unwrap_or_else(|_| panic!("BROADLOOM_LOOP_STEPS is `{text}`, and it takes a number"))
    });
    let context = cpu()?;
    let mut x = Array::<f32>::random(&context, 256, 3)?;
    let mut mean = x.mean()?;
    let mut settled = None;
    for step in 0..steps {
        let left = x.shift(&[1], Boundary::Wrap)?;
        // A different scalar in every step. Values stay between the minimum and maximum of the start.
        let share = (step % 1000) as f32 * 1e-3;
        x = &x * (1.0 - share) + &left * share;
        x.evaluate()?;
        if step % 16 == 0 {
            // The host reads a value at intervals, as for the end condition of a loop.
            mean = (x.mean()? + &mean) * 0.5;
            mean.evaluate()?;
        }
        if step % 256 == 255 {
            assert!(mean.item()?.is_finite());
            context.device().synchronise().map_err(broadloom_array::Error::from)?;
            let (statistics, memory) = (context.statistics(), context.device().memory());
            let now = (statistics.plans, statistics.programs, memory.used, memory.pooled);
            assert_eq!(*settled.get_or_insert(now), now, "step {step}");
        }
    }
    assert!(settled.is_some());
    Ok(())
}

#[test]
fn other_sizes_need_no_other_plan() -> Result<()> {
    let context = interp();
    for (rows, columns) in [(40, 50), (33, 64), (100, 41), (35, 90)] {
        let x = Array::full(&context, [rows, columns], 1.0f32)?.shift(&[1, 2], Boundary::Constant(0.0))?;
        let y = Array::new(&context, &vec![2.0f32; rows * columns], [rows, columns])?;
        let sum = y.shift(&[1, 2], Boundary::Constant(0.0))? + &x * 3.0;
        assert_eq!(sum.sum().item()?, 5.0 * ((rows - 1) * (columns - 2)) as f32);
    }
    let statistics = context.statistics();
    assert_eq!((statistics.evaluations, statistics.plans), (4, 1));
    Ok(())
}

#[test]
fn a_chain_of_any_length_is_dropped_without_a_stack() -> Result<()> {
    let context = interp();
    let mut x = Array::line(&context, &[1i32])?;
    for _ in 0..1_000_000 {
        x += 1;
    }
    drop(x);
    Ok(())
}

#[test]
fn threads_share_arrays() -> Result<()> {
    let context = interp();
    let x = Array::<i32>::iota(&context, 1000)?;
    let y = &x * 2;
    let sums: Vec<i32> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|k| (y.clone() + k).sum()).map(|sum| scope.spawn(move || sum.item())).collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()?.ok()).collect()
    });
    assert_eq!(sums, [999_000, 1_000_000, 1_001_000, 1_002_000]);
    Ok(())
}

/// Measures the host time of ten operations: building, plan lookup, launching. On an idle machine in release
/// mode it is a few microseconds. Here it must only be of the same order.
#[test]
fn overhead_is_small() -> Result<()> {
    let context = cpu()?;
    let x = Array::line(&context, &[1.0f32; 64])?;
    let y = Array::line(&context, &[2.0f32; 64])?;
    let run = || -> Result<Array<f32>> {
        let mut z = &x + &y;
        for _ in 0..4 {
            z = z * &x + 1.0;
        }
        z = z.abs();
        z.evaluate()?;
        Ok(z)
    };
    run()?;
    context.device().synchronise().map_err(broadloom_array::Error::from)?;
    let mut best = std::time::Duration::MAX;
    for _ in 0..200 {
        let start = std::time::Instant::now();
        run()?;
        best = best.min(start.elapsed());
    }
    assert!(best.as_micros() < 2000, "{best:?}");
    Ok(())
}
