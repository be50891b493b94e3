//! Random numbers whose sequence never changes.
//!
//! One generator serves the inputs of buffers, random kernels and graphs, NESL's `rand`, and tests. It must not know what the numbers are for.

/// Random numbers by SplitMix64: the same seed gives the same numbers, on every machine and in every version.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

/// A type of number that can be a limit.
pub trait Limit: Copy {
    /// The limit as 64 bits; less than 1 counts as 1.
    fn to_bits(self) -> u64;
    /// A number below the limit.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! limits {
    ($($number:ty)*) => {
        $(impl Limit for $number {
            fn to_bits(self) -> u64 {
                self.max(1) as u64
            }

            fn from_bits(bits: u64) -> Self {
                bits as $number
            }
        })*
    };
}

limits! { i32 i64 u8 u16 u32 u64 usize }

impl Random {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to a limit; 0 where the limit is less than 1.
    pub fn below<N: Limit>(&mut self, limit: N) -> N {
        N::from_bits(self.bits() % limit.to_bits())
    }

    /// A number of a range, both ends included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below(high - low + 1)
    }

    /// True in one of `n` cases.
    pub fn one_in<N: Limit>(&mut self, n: N) -> bool {
        self.bits().is_multiple_of(n.to_bits())
    }

    /// One of a list that is not empty.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    /// 32 bits that are often a corner: zeros, ones, extremes, special floats.
    pub fn corner32(&mut self) -> u32 {
        const CORNERS: &[u32] = &[
            0,
            1,
            2,
            31,
            32,
            33,
            63,
            0x7f,
            0x80,
            0xff,
            0x7fff,
            0x8000,
            0xffff,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            0x3f80_0000,
            0xbf80_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0001,
            0x0000_0001,
            0x007f_ffff,
            0x0080_0000,
            0x7f7f_ffff,
            0x3c00_4000,
            0x7c00_fc00,
            0x7e00_0001,
            0x4b00_0000,
            0x4f00_0000,
            0xcf00_0000,
            0x3f00_0000,
        ];
        if self.one_in(2) { *self.pick(CORNERS) } else { self.bits() as u32 }
    }

    /// 32 bits that are often a corner, but neither infinite nor NaN as an `f32` or as the upper half of an `f64`.
    pub fn finite32(&mut self) -> u32 {
        loop {
            let bits = self.corner32();
            if bits & 0x7f80_0000 != 0x7f80_0000 && bits & 0x7ff0_0000 != 0x7ff0_0000 {
                return bits;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the published generator for seed 0.
    #[test]
    fn the_sequence_is_splitmix64() {
        let mut random = Random::new(0);
        assert_eq!([random.bits(), random.bits()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
        assert_eq!((random.below(0usize), random.below(-3), random.below(1u64)), (0, 0, 0));
        assert!((0..100).all(|_| (-2..=2).contains(&random.between(-2, 2))));
    }
}
