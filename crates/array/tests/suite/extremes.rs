//! Tests of extreme cases: very long and very wide expressions, numbers at the limits of their types, views
//! larger than any memory.

use broadloom_array::{Array, Boundary, Context, Error, Function, Result, Span, evaluate_all, span};
use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_device::Device;
use broadloom_interp::Interp;

fn interp() -> Context {
    Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())))
}

fn cpu() -> Result<Context> {
    let options = broadloom_cpu::Options { cache: CacheFolder::Nowhere, ..broadloom_cpu::Options::default() };
    Ok(Context::new(&Device::new(Cpu::new(options).map_err(Error::from)?)))
}

/// Applies an operation `count` times.
fn chain<T>(first: Array<T>, count: usize, step: impl Fn(&Array<T>) -> Result<Array<T>>) -> Result<Array<T>> {
    (0..count).try_fold(first, |last, _| step(&last))
}

#[test]
fn chains_are_cut_into_kernels() -> Result<()> {
    let context = interp();
    let start = || Array::line(&context, &[1i64, 2, 3]);
    assert_eq!(chain(start()?, 2000, |a| a.add(Array::scalar(&context, 1)))?.to_vec()?, [2001, 2002, 2003]);
    assert_eq!(chain(start()?, 1000, |a| a.map(|x| x ^ 5))?.to_vec()?, [1, 2, 3]);
    // Each value is used twice.
    assert_eq!(chain(start()?, 1000, |a| Ok(a.xor(&(a + a))? & 0xff))?.to_vec()?, chain_of_bytes([1, 2, 3], 1000));
    let shifted = chain(start()?, 400, |a| Ok((a + a.shift(&[1], Boundary::Wrap)?) & 0xff))?;
    assert_eq!(shifted.sum().item()? & 0xff, 0);
    let function = Function::new(&context, |x: &Array<i64>| chain(x.clone(), 1000, |a| Ok(a + 1)));
    assert_eq!(function.call(&start()?)?.to_vec()?, [1001, 1002, 1003]);
    Ok(())
}

/// The size of a closure is limited. Larger closures are reported, and kernels are split by size.
#[test]
fn closures_are_as_long_as_compilers_bear() -> Result<()> {
    let context = interp();
    let start = Array::line(&context, &[1i64, 2, 3])?;
    let steps = |a: &Array<i64>, count: i64| a.map(|x| (0..count).fold(x, |y, i| (y ^ i) + x));
    let error = steps(&start, 20_000).err().map(|error| error.to_string()).unwrap_or_default();
    assert_eq!(
        error,
        "`map`: a closure of 40000 operations, and at most 32768 are possible; several calls, one behind the other, may do more"
    );
    let error = start
        .reduce_with(&[0], 0, |x, y| (0..300).fold(x, |x, i| (x ^ i) + y))
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    assert!(error.contains("a closure of 600 operations, and at most 512 are possible"), "{error}");
    assert_eq!(steps(&start, 1000)?.to_vec()?, [1i64, 2, 3].map(|x| (0..1000).fold(x, |y, i| (y ^ i) + x)));
    let powers = |a: &Array<f32>| a.map(|x| (0..10).fold(x, |y, _| (y + x).exp()));
    let plan = chain(Array::line(&context, &[1.0f32, 2.0])?, 30, powers)?.explain()?;
    assert!(plan.starts_with("2 kernels"), "{plan}");
    Ok(())
}

/// A large closure is emitted once, in a loop over elements. The elements at the end are excluded from the
/// loop.
#[test]
fn large_closures_are_right_at_the_ends() -> Result<()> {
    for (context, count) in [(interp(), 1100), (cpu()?, 9001)] {
        let steps = |x: i64| (0..600).fold(x, |y, i| (y ^ i) + x);
        for (shape, fill) in [(vec![count], 1), (vec![3, count / 3], 3)] {
            let a = Array::<i64>::positions(&context, shape.clone(), shape.len() - 1)?;
            let values = a.map(|x| (0..600).fold(x, |y, i| (y ^ i) + x))?.to_vec()?;
            let row: Vec<i64> = (0..(count / fill) as i64).map(steps).collect();
            assert!(values == row.repeat(fill), "{shape:?}");
        }
    }
    Ok(())
}

/// Patterns emit their operator once per element of a thread, so large closures are computed in a separate
/// kernel before.
#[test]
fn large_closures_stay_out_of_patterns() -> Result<()> {
    let context = cpu()?;
    let line = Array::<i64>::positions(&context, [999], 0)?;
    let large = line.map(|x| (0..600).fold(x, |y, i| (y ^ i) + x))?;
    let values: Vec<i64> = (0..999).map(|x| (0..600).fold(x, |y, i| (y ^ i) + x)).collect();
    let mut sorted = values.clone();
    sorted.sort_unstable();
    let running = |sum: &mut i64, x: &i64| {
        *sum += x;
        Some(*sum)
    };
    let kinds = [
        (large.sum().reshape([1])?, vec![values.iter().sum()]),
        (large.cumulative_sum(0)?, values.iter().scan(0, running).collect()),
        (large.sort(0)?, sorted),
        (line.scatter_sum(&[&line], &large)?, (0..).zip(&values).map(|(i, x)| i + x).collect()),
        // After a pattern.
        (line.cumulative_sum(0)?.map(|x| (0..600).fold(x, |y, i| (y ^ i) + x))?, {
            (0..999).map(|i| i * (i + 1) / 2).map(|x| (0..600).fold(x, |y, i| (y ^ i) + x)).collect()
        }),
    ];
    for (array, expected) in kinds {
        let plan = array.explain()?;
        assert!(plan.starts_with("2 kernels"), "{plan}");
        assert_eq!(array.to_vec()?, expected, "{plan}");
    }
    Ok(())
}

/// Small numbers are not lost in the sum of many numbers, for any distribution of the work.
#[test]
fn sums_of_very_many_floats_are_near() -> Result<()> {
    let context = cpu()?;
    for shape in [vec![1 << 25], vec![4, 1 << 23], vec![100, 1 << 18]] {
        let last = shape.len() - 1;
        let count = shape[last] as f32;
        let same = Array::<i32>::positions(&context, shape, 0)?.cast::<f32>()?.map(|x| x * 0.0 + 1.1)?;
        let means = same.sum_along(&[last])?.map(|sum| sum / count)?.to_vec()?;
        assert!(means.iter().all(|mean| (mean - 1.1).abs() < 1e-6), "{means:?}");
    }
    Ok(())
}

fn chain_of_bytes(start: [i64; 3], count: usize) -> Vec<i64> {
    start.into_iter().map(|x| (0..count).fold(x, |x, _| (x ^ (x + x)) & 0xff)).collect()
}

/// Counts of packs of different values by the same mask, without the values.
#[test]
fn numbers_of_several_packs_are_wanted_alone() -> Result<()> {
    let context = interp();
    let (a, b) = (Array::line(&context, &[1, 2, 3, 4, 5])?, Array::line(&context, &[9, 8, 7, 6, 5])?);
    let chosen = a.gt(2)?;
    let numbers = [a.pack_padded(&chosen, 0)?.1, b.pack_padded(&chosen, 0)?.1];
    evaluate_all(&[numbers[0].node(), numbers[1].node()])?;
    assert_eq!([numbers[0].item()?, numbers[1].item()?], [3, 3]);
    // With the values of one of them.
    let ((values, first), (_, second)) = (a.pack_padded(&chosen, 0)?, b.pack_padded(&chosen, 0)?);
    assert_eq!((&first + &second).item()?, 6);
    assert_eq!(values.to_vec()?, [3, 4, 5, 0, 0]);
    Ok(())
}

/// Printing or dropping a long chain needs no deep stack, on any thread.
#[test]
fn very_long_chains_are_shown_and_dropped() -> Result<()> {
    let context = interp();
    let long = chain(Array::line(&context, &[1.0f32])?, 300_000, |a| Ok(a + 1.0))?;
    assert_eq!(format!("{long:?} {:?}", long.node()), "Array<f32>[1] Node<f32>[1]");
    let small = std::thread::Builder::new().stack_size(64 << 10);
    assert!(small.spawn(move || drop(long)).is_ok_and(|thread| thread.join().is_ok()));
    Ok(())
}

/// Planning visits each node a few times, for any number of paths through the expression.
#[test]
fn many_ways_through_an_expression_are_not_walked() -> Result<()> {
    let context = interp();
    let a = Array::full(&context, [2, 16, 32], 1i64)?;
    a.evaluate()?;
    let doubled = chain(a.cbrt_like()?, 40, |a| Ok((a + a.shift(&[0, 0, 1], Boundary::Clamp)?) & 0xffff))?;
    assert_eq!(doubled.min_along(&[0])?.max().item()?, 0);
    // Positions, multiplied by 2^40, as indices.
    let places = chain(Array::<i64>::iota(&context, 4)?, 40, |p| Ok(p + p))?;
    let values = Array::line(&context, &[5, 6, 7])?;
    assert_eq!(values.gather(&[&places], Boundary::Clamp)?.to_vec()?, [5, 7, 7, 7]);
    Ok(())
}

/// Value that is more expensive to recompute than to store.
trait Costly: Sized {
    fn cbrt_like(&self) -> Result<Self>;
}

impl Costly for Array<i64> {
    fn cbrt_like(&self) -> Result<Array<i64>> {
        self.cast::<f64>()?.cbrt().exp().log().round_even().cast()
    }
}

#[test]
fn many_arrays_at_once() -> Result<()> {
    let context = interp();
    let parts: Vec<Array<i32>> = (0..300).map(|i| Array::line(&context, &[i, -i])).collect::<Result<_>>()?;
    let joined = Array::concatenate(0, &parts.iter().collect::<Vec<_>>())?;
    assert_eq!(joined.to_vec()?, (0..300).flat_map(|i| [i, -i]).collect::<Vec<i32>>());
    let one = Array::line(&context, &[1, 2, 3])?;
    assert_eq!(Array::concatenate(0, &vec![&one; 1000])?.sum().item()?, 6000);
    assert_eq!(parts.iter().try_fold(parts[0].clone(), |sum, part| sum.add(part))?.to_vec()?, [44850, -44850]);
    let results: Vec<Array<i32>> = (0..500).map(|i| &one + i).collect();
    evaluate_all(&results.iter().map(Array::node).collect::<Vec<_>>())?;
    assert_eq!(results[499].to_vec()?, [500, 501, 502]);
    Ok(())
}

#[test]
fn what_is_too_much_is_told() -> Result<()> {
    let context = interp();
    let told = |result: Result<Array<i32>>| result.map_or_else(|error| error.to_string(), |_| "no error".into());
    let a = Array::<i32>::iota(&context, 9)?;
    let sum = |places: i64| a.window(Boundary::Constant(0), |w| (1..places).fold(w.at(&[0]), |sum, i| sum + w.at(&[i])));
    assert_eq!(sum(300)?.to_vec()?, [36, 36, 35, 33, 30, 26, 21, 15, 8]);
    assert_eq!(told(sum(301)), "`window` of an array of shape [9]: it is of 301 arrays or places, and at most 300 are possible");
    let bins = a.histogram(1 << 31).map_or_else(|error| error.to_string(), |_| "no error".into());
    assert_eq!(bins, "`histogram` of an array of shape [9]: 2147483648 bins, and at most 2^31 - 1 are possible");
    let shapes = (0..1 << 16).map(|i| Array::<i32>::iota(&context, i + 1)?.slice(&span![0]));
    let sum = shapes.reduce(|sum, one| sum?.add(&one?)).unwrap_or(Ok(a))?;
    assert_eq!(
        sum.item().map_or_else(|error| error.to_string(), |_| "no error".into()),
        "`evaluate` of an array of shape []: the expression has more than 65535 different shapes; evaluate parts of it first"
    );
    Ok(())
}

#[test]
fn numbers_at_the_ends_of_their_types() -> Result<()> {
    let context = interp();
    let a = Array::<i32>::iota(&context, 6)?;
    for section in [(i64::MIN, 3, 1), (0, 3, i64::MIN), (i64::MAX, 3, 1), (0, 3, i64::MAX)] {
        let error = a.section(&[section], Some(Boundary::Clamp)).map_or_else(|error| error.to_string(), |_| "no error".into());
        assert_eq!(error, "`section` of an array of shape [6]: a number along axis 0 is too large");
    }
    let slice = |span: Span| a.slice(&[span])?.to_vec();
    assert_eq!(slice(Span::ALL.by(isize::MAX).by(2))?, [0]);
    assert_eq!(slice(Span::ALL.by(isize::MIN))?, [5]);
    assert_eq!(slice(Span::ALL.by(isize::MIN).by(-1))?, [0]);
    assert_eq!(slice(Span::from(2..=isize::MAX))?, [2, 3, 4, 5]);
    assert_eq!(slice(Span::from(isize::MIN..isize::MAX))?, [0, 1, 2, 3, 4, 5]);
    assert_eq!(a.rotate(&[i64::MIN])?.to_vec()?, a.rotate(&[i64::MIN % 6])?.to_vec()?);
    Ok(())
}

/// Taking a part of an array that is larger than memory works as for any other array.
#[test]
fn parts_of_what_is_larger_than_memory() -> Result<()> {
    for context in [interp(), cpu()?] {
        let a = Array::<i64>::iota(&context, 1 << 36)?.slice(&span![-1000..])?;
        let third = |rest: i64| (&a % 3).eq(rest);
        assert_eq!(a.pack(&third(0)?)?.slice(&span![..2])?.to_vec()?, [(1 << 36) - 1000, (1 << 36) - 997]);
        let (padded, count) = a.pack_padded(&third(1)?, -1)?;
        assert_eq!((padded.slice(&span![-1])?.item()?, count.item()?), (-1, 333));
        let (sides, count) = a.partition(&third(2)?)?;
        assert_eq!((sides.slice(&span![0])?.item()?, count.item()?), ((1 << 36) - 998, 333));
        assert_eq!(a.sort_descending(0)?.slice(&span![0])?.item()?, (1 << 36) - 1);
        // Positions as `i32` wrap around after 2^32.
        let values = Array::line(&context, &[5, 6, 7])?;
        let taken = values.gather(&[&Array::<i32>::iota(&context, 1 << 33)?], Boundary::Constant(-1))?;
        assert_eq!(taken.slice(&span![(1 << 32) - 1..(1 << 32) + 4])?.to_vec()?, [-1, 5, 6, 7, -1]);
    }
    Ok(())
}

/// Sums of positions are separate indices. They are exact if the positions are, even if 32 bits would not
/// suffice.
#[test]
fn sums_of_positions_do_not_overflow() -> Result<()> {
    let context = cpu()?;
    let places = chain(Array::<i64>::iota(&context, 3 << 26)?, 4, |p| Ok(p + p))?;
    let values = Array::line(&context, &[0i64, 0, 1])?;
    let last = values.gather(&[&places], Boundary::Clamp)?.sum().item()?;
    assert_eq!(last, (3 << 26) - 1);
    Ok(())
}
