//! Inputs that a peer can compute itself: each number is a hash of its index, so no data is sent.
//!
//! `peers/peer.h` has the same functions in C++. A change here must be repeated there.

use std::panic::resume_unwind;
use std::thread;

/// Computes an element for each index below `count`, on all cores.
pub(crate) fn computed<T: Send>(count: usize, element: impl Fn(usize) -> T + Sync) -> Vec<T> {
    const FEW: usize = 256;
    let threads = thread::available_parallelism().map_or(1, usize::from).min(count.div_ceil(FEW)).max(1);
    let each = count.div_ceil(threads);
    let part = |number: usize| (number * each..count.min((number + 1) * each)).map(&element).collect::<Vec<T>>();
    thread::scope(|scope| {
        let part = &part;
        let others: Vec<_> = (1..threads).map(|number| scope.spawn(move || part(number))).collect();
        let mut all = part(0);
        all.reserve_exact(count - all.len());
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    })
}

/// Returns a pseudo-random number for an index. Different seeds give different arrays.
pub(crate) fn hashed(index: u32, seed: u32) -> u32 {
    let mut x = index.wrapping_mul(0x9E37_79B1).wrapping_add(seed.wrapping_mul(0x85EB_CA77));
    x ^= x >> 16;
    x = x.wrapping_mul(0x7FEB_352D);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846C_A68B);
    x ^ x >> 16
}

/// Returns a float from 0 to below 1, with 24 random bits.
pub(crate) fn unit(index: u32, seed: u32) -> f32 {
    (hashed(index, seed) >> 8) as f32 / 16_777_216.0
}

/// Returns element `index` of the array that [`units`] returns.
pub(crate) fn between(index: u32, seed: u32, from: f32, to: f32) -> f32 {
    from + (to - from) * unit(index, seed)
}

/// Returns an array of floats in a range.
pub(crate) fn units(count: usize, seed: u32, from: f32, to: f32) -> Vec<f32> {
    computed(count, |index| between(index as u32, seed, from, to))
}

/// Returns the length of a row. One row of ten is empty. The others have up to `most` entries. With a
/// probability of 0.354 (2 to the power of -1.5) the maximum is doubled, and so on.
pub(crate) fn ragged(row: u32, most: u32) -> u32 {
    if (hashed(row, 1) >> 8).is_multiple_of(10) {
        return 0;
    }
    let doublings = (0..10).take_while(|k| hashed(row, 2 + k) >> 8 < 5_931_642).count();
    1 + (hashed(row, 12) >> 8) % (most << doublings)
}

/// Returns the offsets of ragged rows, whose lengths are those of [`ragged`].
pub(crate) fn ragged_offsets(rows: usize, most: u32) -> Vec<i64> {
    let lengths = (0..rows as u32).map(|row| i64::from(ragged(row, most)));
    let ends = lengths.scan(0, |end, length| {
        *end += length;
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

/// Returns the weighted sum of absolute values. The weights are 1 to 7 by position, so that the order matters
/// and nothing cancels. `first` is the position of the first value.
pub(crate) fn weighed(values: impl Iterator<Item = f64>, first: usize) -> f64 {
    values.enumerate().map(|(index, value)| value.abs() * (1 + (first + index) % 7) as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_and_stay() {
        // The C++ side uses these values too. A change here must be repeated there.
        assert_eq!([hashed(0, 1), hashed(1, 1), hashed(2, 7)], [3_298_878_556, 39_170_614, 4_121_212_093]);
        let mean = units(10_000, 3, 0.0, 1.0).iter().map(|&x| f64::from(x)).sum::<f64>() / 1e4;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert!(units(1000, 3, -1.0, 1.0).iter().all(|x| (-1.0..1.0).contains(x)));
    }

    #[test]
    fn elements_are_in_order() {
        for count in [0, 1, 255, 257, 1000, 10_007] {
            assert_eq!(computed(count, |index| index * 3), (0..count).map(|index| index * 3).collect::<Vec<_>>());
        }
    }

    #[test]
    fn checksums_see_order() {
        assert_eq!(weighed([1.0, -2.0].into_iter(), 0), 5.0);
        assert_eq!(weighed([2.0, 1.0].into_iter(), 0), 4.0);
        assert_eq!(weighed([1.0].into_iter(), 6), 7.0);
    }
}
