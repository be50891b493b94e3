//! Tests of segments of all lengths, and of scatter operations, on the interpreter and on the CPU.

use broadloom_array::{Array, Context, Result, Segments};
use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_device::Device;
use broadloom_interp::Interp;
use broadloom_random::Random;

/// Returns the devices, each with the number of elements to test.
fn contexts() -> Result<Vec<(&'static str, Context, usize)>> {
    let options = broadloom_cpu::Options { threads: 2, cache: CacheFolder::Nowhere, ..broadloom_cpu::Options::default() };
    let cpu = Device::new(Cpu::new(options).map_err(broadloom_array::Error::from)?);
    let interp = Device::new(Interp::new(broadloom_interp::Options::default()));
    Ok(vec![("interp", Context::new(&interp), 3000), ("cpu", Context::new(&cpu), 100_000)])
}

/// Returns reproducible pseudo-random numbers.
fn numbers(count: usize, seed: u64) -> impl Iterator<Item = u64> {
    let mut random = Random::new(seed);
    (0..count).map(move |_| random.bits() >> 20)
}

/// Returns segment lengths with a given sum: many short segments, some empty ones, and one with a third of
/// all elements.
fn lengths(count: usize) -> Vec<u32> {
    let mut lengths = vec![0, 1, count as u32 / 3, 0, 0];
    let mut left = count as u32 - count as u32 / 3 - 1;
    for number in numbers(count, 5) {
        let length = (number % 9) as u32;
        if length > left {
            break;
        }
        lengths.push(length);
        left -= length;
    }
    lengths.push(left);
    lengths.push(0);
    lengths
}

#[test]
fn segments_of_any_length() -> Result<()> {
    for (name, context, count) in contexts()? {
        let lengths = lengths(count);
        let integers: Vec<i64> = numbers(count, 1).map(|n| (n % 2001) as i64 - 1000).collect();
        let a = Array::line(&context, &integers)?;
        let segments = Segments::from_lengths(&Array::line(&context, &lengths)?, count)?;
        segments.evaluate()?;
        assert_eq!((segments.count(), segments.length()), (lengths.len(), count));
        assert_eq!(segments.lengths()?.to_vec()?, lengths.iter().map(|length| i64::from(*length)).collect::<Vec<_>>());
        let mut parts: Vec<&[i64]> = vec![];
        let mut rest = &integers[..];
        for length in &lengths {
            let (part, behind) = rest.split_at(*length as usize);
            parts.push(part);
            rest = behind;
        }
        let each = |f: &dyn Fn(&[i64]) -> i64| parts.iter().map(|part| f(part)).collect::<Vec<i64>>();
        let sums = a.segmented_sum(&segments)?;
        assert_eq!(sums.to_vec()?, each(&|part| part.iter().sum()), "{name}");
        let low = each(&|part| part.iter().copied().min().unwrap_or(i64::MAX));
        assert_eq!(a.segmented_min(&segments)?.to_vec()?, low, "{name}");
        let high = each(&|part| part.iter().copied().max().unwrap_or(i64::MIN));
        assert_eq!(a.segmented_max(&segments)?.to_vec()?, high, "{name}");
        let odd = (&a & 1).eq(1i64)?;
        let any: Vec<bool> = parts.iter().map(|part| part.iter().any(|x| x & 1 == 1)).collect();
        assert_eq!(odd.segmented_any(&segments)?.to_vec()?, any, "{name}");
        let every = |f: &dyn Fn(&[i64]) -> Vec<i64>| parts.iter().flat_map(|part| f(part)).collect::<Vec<i64>>();
        let running = |part: &[i64]| {
            let sums = part.iter().scan(0i64, |sum, x| {
                *sum += x;
                Some(*sum)
            });
            sums.collect::<Vec<i64>>()
        };
        assert_eq!(a.segmented_cumulative_sum(&segments)?.to_vec()?, every(&running), "{name}");
        let before = |part: &[i64]| running(part).iter().zip(part).map(|(sum, own)| sum - own).collect();
        assert_eq!(a.segmented_sum_before(&segments)?.to_vec()?, every(&before), "{name}");
        let sorted = |part: &[i64]| {
            let mut sorted = part.to_vec();
            sorted.sort_unstable();
            sorted
        };
        assert_eq!(a.segmented_sort(&segments)?.to_vec()?, every(&sorted), "{name}");
        // Sorts all segments together, and each in place.
        let longest = parts.iter().map(|part| part.len()).max().unwrap_or(0);
        for segments in [segments.clone(), segments.clone().no_longer_than(longest)] {
            let places = a.segmented_argsort(&segments)?;
            let found = a.gather(&[&places], broadloom_array::Boundary::Clamp)?;
            assert_eq!(found.to_vec()?, every(&sorted), "{name}");
        }
        // Fusion on both sides.
        let scaled = (a.cast::<f64>()? * 0.5).segmented_sum(&segments)? + 1.0;
        let expected: Vec<f64> = parts.iter().map(|part| part.iter().sum::<i64>() as f64 * 0.5 + 1.0).collect();
        assert_eq!(scaled.to_vec()?, expected, "{name}");
    }
    Ok(())
}

#[test]
fn elements_sent_to_places() -> Result<()> {
    for (name, context, count) in contexts()? {
        let places = 97usize;
        // Some indices are out of range.
        let at: Vec<i32> = numbers(count, 3).map(|n| (n % (places as u64 + 2)) as i32 - 1).collect();
        let values: Vec<i32> = numbers(count, 4).map(|n| (n % 1000) as i32 - 500).collect();
        let base: Vec<i32> = (0..places as i32).collect();
        let (index, sent) = (Array::line(&context, &at)?, Array::line(&context, &values)?);
        let start = Array::line(&context, &base)?;
        let host = |combine: fn(i32, i32) -> i32| {
            let mut result = base.clone();
            for (at, value) in at.iter().zip(&values) {
                if let Some(there) = usize::try_from(*at).ok().and_then(|at| result.get_mut(at)) {
                    *there = combine(*there, *value);
                }
            }
            result
        };
        assert_eq!(start.scatter(&[&index], &sent)?.to_vec()?, host(|_, b| b), "{name}");
        assert_eq!(start.scatter_sum(&[&index], &sent)?.to_vec()?, host(|a, b| a.wrapping_add(b)), "{name}");
        assert_eq!(start.scatter_product(&[&index], &sent)?.to_vec()?, host(|a, b| a.wrapping_mul(b)), "{name}");
        assert_eq!(start.scatter_min(&[&index], &sent)?.to_vec()?, host(i32::min), "{name}");
        assert_eq!(start.scatter_max(&[&index], &sent)?.to_vec()?, host(i32::max), "{name}");
        // Sums of floats are exact here, and deterministic.
        let floats = start.cast::<f64>()?.scatter_sum(&[&index], &sent.cast()?)?.to_vec()?;
        assert_eq!(floats, host(|a, b| a + b).iter().map(|x| f64::from(*x)).collect::<Vec<_>>(), "{name}");
        let thirds = sent.cast::<f32>()? / 3.0;
        let zeros = Array::full(&context, places, 0.0f32)?;
        let bits = |array: Array<f32>| {
            Ok::<_, broadloom_array::Error>(array.to_vec()?.into_iter().map(f32::to_bits).collect::<Vec<_>>())
        };
        let first = bits(zeros.scatter_sum(&[&index], &thirds)?)?;
        assert_eq!(bits(zeros.scatter_sum(&[&index], &thirds)?)?, first, "{name}");
        // Two index arrays, and one value of four lanes for all indices.
        let ones = Array::full(&context, [10, 10], [1.0f32; 4])?;
        let (i, j) = (Array::line(&context, &[1u8, 1, 10])?, Array::line(&context, &[2u8, 2, 0])?);
        let sum = ones.scatter_sum(&[&i, &j], &Array::scalar(&context, [1.0, 2.0, 3.0, 4.0]))?.to_vec()?;
        let mut expected = vec![[1.0f32; 4]; 100];
        expected[12] = [3.0, 5.0, 7.0, 9.0];
        assert_eq!(sum, expected, "{name}");
    }
    Ok(())
}

/// Rows of keys alone need no positions. A CPU sorts up to 1024 elements of 4 bytes in place.
#[test]
fn long_rows_are_sorted_where_they_lie() -> Result<()> {
    let contexts = contexts()?;
    let context = &contexts[1].1;
    let (rows, columns) = (40, 1000);
    let values: Vec<f32> = numbers(rows * columns, 5).map(|number| (number % 1013) as f32 - 500.0).collect();
    let a = Array::new(context, &values, [rows, columns])?;
    let kernels = |plan: broadloom_array::Summary| plan.kernels.iter().map(|kernel| kernel.name.clone()).collect::<Vec<_>>();
    let (sorted, descending) = (a.sort(1)?, a.sort_descending(1)?);
    assert_eq!(kernels(sorted.plan()?), ["segmented sort"]);
    assert_eq!(kernels(a.argsort(1)?.plan()?), ["segmented sort"]);
    let (sorted, descending, places) = (sorted.to_vec()?, descending.to_vec()?, a.argsort(1)?.to_vec()?);
    for (row, values) in values.chunks(columns).enumerate() {
        let own = row * columns..(row + 1) * columns;
        let mut expected: Vec<(f32, i32)> = values.iter().copied().zip(0..).collect();
        expected.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(sorted[own.clone()].iter().zip(&expected).all(|(x, (y, _))| x == y), "row {row}");
        assert!(descending[own.clone()].iter().rev().zip(&expected).all(|(x, (y, _))| x == y), "row {row}");
        assert!(places[own].iter().zip(&expected).all(|(x, (_, y))| x == y), "row {row}");
    }
    Ok(())
}
