//! Deterministic input data.
//!
//! Every case draws its inputs from a generator with its own seed (SplitMix64), so that each device and each
//! run sees the same bytes.

use broadloom_random::Random;

/// Returns the values of a function for every index.
pub(crate) fn values_at<I, T>(indices: impl IntoIterator<Item = I>, value: impl FnMut(I) -> T) -> Vec<T> {
    indices.into_iter().map(value).collect()
}

/// Stream of pseudo-random values.
pub(crate) struct Inputs(Random);

impl Inputs {
    /// Creates the stream of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Inputs(Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d)))
    }

    /// Returns 64 random bits.
    pub(crate) fn u64(&mut self) -> u64 {
        self.0.bits()
    }

    /// Returns 32 random bits.
    pub(crate) fn u32(&mut self) -> u32 {
        (self.u64() >> 32) as u32
    }

    /// Returns a number in `low..high`.
    pub(crate) fn below(&mut self, low: i64, high: i64) -> i64 {
        low + (self.u64() % (high - low) as u64) as i64
    }

    /// Returns a number in `[low, high)`.
    pub(crate) fn f64(&mut self, low: f64, high: f64) -> f64 {
        low + (self.u64() >> 11) as f64 / (1u64 << 53) as f64 * (high - low)
    }

    /// Returns `n` values that `draw` makes.
    pub(crate) fn many<T>(&mut self, n: usize, mut draw: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..n).map(|_| draw(self)).collect()
    }

    /// Returns `n` bytes.
    pub(crate) fn u8s(&mut self, n: usize) -> Vec<u8> {
        self.many(n, |r| r.u64() as u8)
    }

    /// Returns `n` words of 32 bits.
    pub(crate) fn u32s(&mut self, n: usize) -> Vec<u32> {
        self.many(n, Self::u32)
    }

    /// Returns `n` integers in `low..high`.
    pub(crate) fn i32s(&mut self, n: usize, low: i32, high: i32) -> Vec<i32> {
        self.many(n, |r| r.below(low.into(), high.into()) as i32)
    }

    /// Returns `n` floats in `[low, high)`.
    pub(crate) fn f32s(&mut self, n: usize, low: f32, high: f32) -> Vec<f32> {
        self.many(n, |r| r.f64(low.into(), high.into()) as f32)
    }

    /// Returns `n` doubles in `[low, high)`.
    pub(crate) fn f64s(&mut self, n: usize, low: f64, high: f64) -> Vec<f64> {
        self.many(n, |r| r.f64(low, high))
    }

    /// Returns a random permutation of `0..n`.
    pub(crate) fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(0, i as i64 + 1) as usize);
        }
        order
    }
}
