//! Ragged benchmarks against Awkward Array: lists of different lengths, some of them empty.

use super::{Contest, line, near};
use crate::error::Failure;
use crate::inputs::{ragged_offsets, unit, weighed};
use crate::job::Work;
use broadloom::array::Precision;

/// The seed of the elements.
const SEED: u32 = 14;

/// Makes a contest over lists of floats. `most` is the maximum of their usual lengths.
fn lists(
    n: usize,
    most: u32,
    text: &str,
    judge: impl Fn(&[Vec<f64>], &dyn Fn(usize) -> Vec<f32>, usize) -> Result<f64, Failure> + 'static,
) -> Contest {
    let starts = ragged_offsets(n, most);
    let total = starts[n] as usize;
    let judged = starts.clone();
    Contest {
        text: text.to_owned(),
        precision: Precision::Fast,
        work: Work::reading(4 * total + 8 * n, 0),
        arguments: Box::new(move |context| {
            let values: Vec<f32> = (0..total as u32).map(|i| unit(i, SEED)).collect();
            Ok(vec![line(context, &starts)?, line(context, &values)?])
        }),
        judge: Box::new(move |found| {
            let list = |row: usize| (judged[row]..judged[row + 1]).map(|i| unit(i as u32, SEED)).collect::<Vec<f32>>();
            judge(found, &list, n)
        }),
    }
}

/// Returns the rows that are compared with the reference.
fn sample(n: usize) -> impl Iterator<Item = usize> {
    (0..n).step_by(n / 1000 + 1)
}

/// Makes a contest: for each list, the sum of the elements above a half.
pub(super) fn filter_sums(n: usize) -> Contest {
    let text = "function contest(lists) : [[float]] -> [float] = {sum({x in list | x > 0.5}) : list in lists};";
    lists(n, 5, text, |found, list, n| {
        for row in sample(n) {
            let want = list(row).iter().filter(|x| **x > 0.5).map(|x| f64::from(*x)).sum();
            near("a sum", found[0][row], want, 1e-5, 0.0)?;
        }
        Ok(weighed(found[0].iter().copied(), 0))
    })
}

/// Makes a contest: for each list, the index of the smallest element, or -1 for an empty list.
pub(super) fn list_argmin(n: usize) -> Contest {
    let text = "function contest(lists) : [[float]] -> [int] = \
                {let i = min_index(list) in if #list == 0 then -1 else i : list in lists};";
    lists(n, 2, text, |found, list, n| {
        for row in sample(n) {
            let list = list(row);
            let least = (0..list.len()).min_by(|&a, &b| list[a].total_cmp(&list[b]));
            near("an index", found[0][row], least.map_or(-1.0, |index| index as f64), 0.0, 0.0)?;
        }
        Ok(weighed(found[0].iter().copied(), 0))
    })
}

/// Makes a contest: for each list, the sum of the differences of all pairs.
pub(super) fn list_pairs(n: usize) -> Contest {
    let text = "function contest(lists) : [[float]] -> [float] = \
                {sum({sum({abs(x - y) : y in drop(list, i + 1)}) : x in list; i in index(#list)}) : list in lists};";
    lists(n, 5, text, |found, list, n| {
        for row in sample(n) {
            let list = list(row);
            let difference = |a: usize, b: usize| f64::from((list[a] - list[b]).abs());
            let want: f64 = (0..list.len()).map(|a| (a + 1..list.len()).map(|b| difference(a, b)).sum::<f64>()).sum();
            near("a sum", found[0][row], want, 1e-4, 1e-6)?;
        }
        Ok(weighed(found[0].iter().copied(), 0))
    })
}

/// Makes a contest: for each list, its elements in ascending order.
pub(super) fn list_sort(n: usize) -> Contest {
    let text = "function contest(lists) : [[float]] -> [[float]] = {sort(list) : list in lists};";
    lists(n, 5, text, |found, list, n| {
        for row in sample(n) {
            let (start, end) = (found[0][row] as usize, found[0][row + 1] as usize);
            let mut want = list(row);
            want.sort_unstable_by(f32::total_cmp);
            let got = found[1].get(start..end).unwrap_or_default();
            if got.len() != want.len() || got.iter().zip(&want).any(|(got, want)| *got != f64::from(*want)) {
                return Err(Failure::Wrong(format!("list {row} is not sorted")));
            }
        }
        Ok(weighed(found[1].iter().copied(), 0))
    })
}
