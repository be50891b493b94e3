//! Programs that sort rows.

use super::task::{Task, floats, program};
use crate::inputs::{hashed, unit, weighed};
use crate::job::{Work, equal};
use broadloom::stream::compiled::Precision;

/// Number of items in a row.
pub(super) const ROW: usize = 32;

fn of_floats(text: &'static str, stream: &str, rows: usize) -> Task {
    Task {
        text,
        stream: format!("{stream}({ROW})"),
        states: rows as u64,
        input: |word| unit(word, 1).to_bits(),
        precision: Precision::Fast,
        work: Work::memory(8 * rows * ROW, 0),
        judge: Box::new(move |words| {
            let got = floats(words);
            let mut want: Vec<f32> = (0..(rows * ROW) as u32).map(|i| unit(i, 1)).collect();
            want.chunks_exact_mut(ROW).for_each(|row| row.sort_unstable_by(f32::total_cmp));
            equal(&got, |i| want[i])?;
            Ok(weighed(got.iter().map(|&value| f64::from(value)), 0).into())
        }),
    }
}

pub(super) fn bitonic_sort(rows: usize) -> Task {
    of_floats(program!("bitonic_sort"), "BitonicSort", rows)
}

pub(super) fn batcher_sort(rows: usize) -> Task {
    of_floats(program!("batcher_sort"), "BatcherSort", rows)
}

pub(super) fn merge_sort(rows: usize) -> Task {
    of_floats(program!("merge_sort"), "MergeSort", rows)
}

pub(super) fn comparison_counting(rows: usize) -> Task {
    of_floats(program!("comparison_counting"), "ComparisonCounting", rows)
}

/// Makes the task for numbers of 16 bits, sorted by digits of 4 bits.
pub(super) fn radix_sort(rows: usize) -> Task {
    Task {
        text: program!("radix_sort"),
        stream: format!("RadixSort({ROW}, 16, 4)"),
        states: rows as u64,
        input: |word| hashed(word, 1) >> 16,
        precision: Precision::Fast,
        work: Work::memory(8 * rows * ROW, 0),
        judge: Box::new(move |words| {
            let mut want: Vec<u32> = (0..(rows * ROW) as u32).map(|i| hashed(i, 1) >> 16).collect();
            want.chunks_exact_mut(ROW).for_each(|row| row.sort_unstable());
            equal(words, |i| want[i])?;
            Ok(weighed(words.iter().map(|&value| f64::from(value)), 0).into())
        }),
    }
}
