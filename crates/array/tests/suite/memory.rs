//! Tests of memory: the peak equals the plan's prediction, and the plan is minimal.

use broadloom_array::{Array, Context, Result, Segments, evaluate_all};
use broadloom_device::Device;
use broadloom_interp::Interp;

fn context(bytes: u64) -> Context {
    let options = broadloom_interp::Options { memory_bytes: bytes, ..broadloom_interp::Options::default() };
    Context::new(&Device::new(Interp::new(options)))
}

fn line(context: &Context, count: usize) -> Result<Array<f32>> {
    Array::line(context, &(0..count).map(|i| ((i * 7919) % 1013) as f32 / 1013.0 - 0.25).collect::<Vec<f32>>())
}

/// Function that builds some arrays from a one-dimensional one.
type Program = fn(&Array<f32>) -> Result<Vec<Array<f32>>>;

const COUNT: usize = 5000;
/// Memory allocated from the start. The interpreter needs a device that can hold the state of a block.
const BALLAST: usize = 16 << 20;

fn programs() -> Vec<(&'static str, Program)> {
    vec![
        ("a map", |x| Ok(vec![x * 2.0 + 1.0])),
        ("a reduction in parts", |x| Ok(vec![x.exp().sum().sqrt()])),
        ("a scan and its greatest", |x| Ok(vec![x.cumulative_sum(0)?.max()])),
        ("a sort, normalised", |x| {
            let sorted = x.sort(0)?;
            Ok(vec![&sorted / &sorted.max()])
        }),
        ("two results", |x| {
            let y = x.cumulative_sum(0)?;
            Ok(vec![&y - &y.reverse(&[0])?, y.sum()])
        }),
        ("many scans, one behind the other", |x| {
            let mut sum = x.sum();
            for k in 0..6 {
                sum += (x * k as f32).cumulative_sum(0)?.max();
            }
            Ok(vec![sum])
        }),
        ("segments", |x| {
            let offsets = Array::line(x.context(), &[0i64, 10, 10, 4000, 5000])?;
            Ok(vec![x.segmented_sum(&Segments::from_offsets(&offsets, COUNT)?)?])
        }),
        ("products", |x| {
            let m = x.reshape([50, 100])?;
            Ok(vec![m.matmul(&m.t())?.exp(), m.sum_along(&[0])?])
        }),
    ]
}

/// A program runs with exactly the memory of its inputs and plan, and fails with one byte less.
#[test]
fn the_peak_is_what_the_plan_says() -> Result<()> {
    for (name, program) in programs() {
        let wide = context(1 << 30);
        let x = line(&wide, COUNT)?;
        let results = program(&x)?;
        let nodes: Vec<_> = results.iter().map(|array| array.node()).collect();
        let plan = wide.explain(&nodes.iter().map(|node| (*node).clone()).collect::<Vec<_>>())?;
        let inputs = wide.device().memory().used;
        for (less, runs) in [(0, true), (1, false)] {
            let narrow = context(BALLAST as u64 + inputs + plan.peak_bytes - less);
            let ballast = narrow.device().allocate::<u8>(BALLAST).map_err(broadloom_array::Error::from)?;
            let results = program(&line(&narrow, COUNT)?)?;
            let nodes: Vec<_> = results.iter().map(|array| array.node()).collect();
            let ran = evaluate_all(&nodes);
            assert_eq!(ran.is_ok(), runs, "{name}, {less} bytes less: {ran:?}\n{}", plan.text());
            if let Err(error) = ran {
                assert!(error.to_string().contains("memory"), "{name}: {error}");
                // A failure leaves everything usable: the program runs once there is more memory.
                drop(ballast);
                evaluate_all(&nodes)?;
            }
        }
        // Only the results are in memory.
        evaluate_all(&nodes)?;
        let bytes: usize = results.iter().chain([&x]).map(|array| array.len() * 4).sum();
        assert_eq!(wide.device().memory().used, bytes as u64, "{name}\n{}", plan.text());
    }
    Ok(())
}

#[test]
fn one_scan_is_alive_at_a_time() -> Result<()> {
    let context = context(1 << 30);
    let mut sum = line(&context, COUNT)?.sum();
    for _ in 0..8 {
        // Expressions of one array would be one pass. These expressions share no array.
        sum += line(&context, COUNT)?.cumulative_sum(0)?.reverse(&[0])?.max();
    }
    let plan = sum.plan()?;
    // A scan and a few scalars, in addition to the kernels' own scratch memory.
    let besides = plan.kernels.iter().map(|kernel| kernel.bytes_besides).max().unwrap_or(0);
    assert!(plan.peak_bytes <= (COUNT * 4 + 16 * 4) as u64 + besides, "{}", plan.text());
    Ok(())
}

#[test]
fn results_take_the_place_of_what_is_dead() -> Result<()> {
    let context = context(1 << 30);
    let x = line(&context, COUNT)?;
    let y = x.cumulative_sum(0)?;
    // The maximum needs the whole scan, so the division is a separate kernel, which can work in place.
    let z = &y / &y.max();
    let plan = z.plan()?;
    assert_eq!(plan.kernels.len(), 3, "{}", plan.text());
    let besides = plan.kernels.iter().map(|kernel| kernel.bytes_besides).max().unwrap_or(0);
    assert!(plan.peak_bytes <= (COUNT * 4 + 4) as u64 + besides, "{}", plan.text());
    assert_eq!(z.max().item()?, 1.0);
    Ok(())
}

/// A packed array takes no more memory than its elements need. It may take up to four times as much if a copy
/// is not worthwhile.
#[test]
fn a_few_of_many_do_not_keep_them_all() -> Result<()> {
    let context = context(1 << 30);
    let x = line(&context, COUNT)?;
    let used = || context.device().memory().used;
    let before = used();
    let kept: Vec<Array<f32>> = (0..20).map(|i| x.pack(&x.gt(0.70 + i as f32 * 0.002)?)).collect::<Result<_>>()?;
    let elements: usize = kept.iter().map(Array::len).sum();
    assert!(elements > 1000 && used() - before <= (elements * 4 + 20 * 256) as u64, "{elements} {}", used() - before);
    assert!(kept.iter().all(|part| part.to_vec().is_ok_and(|part| part.iter().all(|x| *x > 0.69))));
    let none = x.pack(&x.gt(9.0)?)?;
    assert_eq!((none.len(), none.sum().item()?), (0, 0.0));
    Ok(())
}
