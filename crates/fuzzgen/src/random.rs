//! A small generator of random numbers whose sequence never changes.

/// Random numbers by SplitMix64: the same seed gives the same numbers, on every machine and in every version.
#[derive(Clone, Debug)]
pub struct Random(u64);

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

    /// A number below a limit, which is at least 1.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit.max(1) as u64) as usize
    }

    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
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

    /// The same, but neither infinite nor NaN as an `f32` or as the upper half of an `f64`.
    pub fn finite32(&mut self) -> u32 {
        loop {
            let bits = self.corner32();
            if bits & 0x7f80_0000 != 0x7f80_0000 && bits & 0x7ff0_0000 != 0x7ff0_0000 {
                return bits;
            }
        }
    }
}
