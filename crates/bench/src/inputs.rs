//! Inputs that a peer can make for itself: each number is a hash of its index, so nothing has to be sent.
//!
//! `peers/peer.h` has the same functions in C++. A change here is a change there.

/// A number for an index; seeds tell arrays apart.
pub(crate) fn hashed(index: u32, seed: u32) -> u32 {
    let mut x = index.wrapping_mul(0x9E37_79B1).wrapping_add(seed.wrapping_mul(0x85EB_CA77));
    x ^= x >> 16;
    x = x.wrapping_mul(0x7FEB_352D);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846C_A68B);
    x ^ x >> 16
}

/// A float from 0 up to 1, of 24 bits.
pub(crate) fn unit(index: u32, seed: u32) -> f32 {
    (hashed(index, seed) >> 8) as f32 / 16_777_216.0
}

/// Element `index` of what [`units`] gives.
pub(crate) fn between(index: u32, seed: u32, from: f32, to: f32) -> f32 {
    from + (to - from) * unit(index, seed)
}

/// An array of floats in a range.
pub(crate) fn units(count: usize, seed: u32, from: f32, to: f32) -> Vec<f32> {
    (0..count as u32).map(|index| between(index, seed, from, to)).collect()
}

/// The length of a row. Nine rows of ten have entries: up to `most`, and twice as many with a chance of 0.354 (2 to the power of -1.5), and so
/// on.
pub(crate) fn ragged(row: u32, most: u32) -> u32 {
    if (hashed(row, 1) >> 8).is_multiple_of(10) {
        return 0;
    }
    let doublings = (0..10).take_while(|k| hashed(row, 2 + k) >> 8 < 5_931_642).count();
    1 + (hashed(row, 12) >> 8) % (most << doublings)
}

/// The sum of magnitudes, each times 1 to 7 by its place: order matters, and nothing cancels. `first` is the place of the first.
pub(crate) fn weighed(values: impl Iterator<Item = f64>, first: usize) -> f64 {
    values.enumerate().map(|(index, value)| value.abs() * (1 + (first + index) % 7) as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_and_stay() {
        // Fixed by the C++ side as well: whoever changes these changes both.
        assert_eq!([hashed(0, 1), hashed(1, 1), hashed(2, 7)], [3_298_878_556, 39_170_614, 4_121_212_093]);
        let mean = units(10_000, 3, 0.0, 1.0).iter().map(|&x| f64::from(x)).sum::<f64>() / 1e4;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert!(units(1000, 3, -1.0, 1.0).iter().all(|x| (-1.0..1.0).contains(x)));
    }

    #[test]
    fn checksums_see_order() {
        assert_eq!(weighed([1.0, -2.0].into_iter(), 0), 5.0);
        assert_eq!(weighed([2.0, 1.0].into_iter(), 0), 4.0);
        assert_eq!(weighed([1.0].into_iter(), 6), 7.0);
    }
}
