//! Floating-point formats (manual: "Fundamental Types", "Alternate Floating-Point Data Formats").

use super::Exact;

/// What the encodings with the highest exponent mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Specials {
    /// Infinity and NaNs.
    Ieee,
    /// Numbers, but for all ones, which is NaN.
    NanOnly,
    /// Numbers.
    None,
}

/// How a floating-point number is written in bits: sign, exponent with the usual bias, fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) exponent_bits: u32,
    pub(crate) fraction_bits: u32,
    pub(crate) signed: bool,
    pub(crate) specials: Specials,
}

impl Format {
    pub(crate) const F16: Format = Format::ieee(5, 10);
    pub(crate) const BF16: Format = Format::ieee(8, 7);
    pub(crate) const F32: Format = Format::ieee(8, 23);
    pub(crate) const F64: Format = Format::ieee(11, 52);
    /// As many bits as count; in its register they stand above 13 zeros.
    pub(crate) const TF32: Format = Format::ieee(8, 10);
    pub(crate) const E5M2: Format = Format::ieee(5, 2);
    pub(crate) const E4M3: Format = Format { specials: Specials::NanOnly, ..Format::ieee(4, 3) };
    pub(crate) const E3M2: Format = Format { specials: Specials::None, ..Format::ieee(3, 2) };
    pub(crate) const E2M3: Format = Format { specials: Specials::None, ..Format::ieee(2, 3) };
    pub(crate) const E2M1: Format = Format { specials: Specials::None, ..Format::ieee(2, 1) };
    pub(crate) const UE5M3: Format = Format { specials: Specials::NanOnly, signed: false, ..Format::ieee(5, 3) };

    const fn ieee(exponent_bits: u32, fraction_bits: u32) -> Format {
        Format { exponent_bits, fraction_bits, signed: true, specials: Specials::Ieee }
    }

    pub(crate) const fn bits(self) -> u32 {
        self.exponent_bits + self.fraction_bits + self.signed as u32
    }

    pub(crate) const fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// The exponent of the smallest normal number.
    pub(crate) const fn least_exponent(self) -> i32 {
        1 - self.bias()
    }

    /// The bit of the sign; zero where there is none.
    pub(crate) const fn sign_bit(self) -> u64 {
        (self.signed as u64) << (self.exponent_bits + self.fraction_bits)
    }

    /// All bits but the sign.
    pub(crate) const fn magnitude_mask(self) -> u64 {
        (1 << (self.exponent_bits + self.fraction_bits)) - 1
    }

    const fn fraction_mask(self) -> u64 {
        (1 << self.fraction_bits) - 1
    }

    /// The exponent field of infinity, and infinity where the format has it.
    pub(crate) const fn infinity(self) -> u64 {
        self.magnitude_mask() & !self.fraction_mask()
    }

    /// The largest number.
    pub(crate) const fn largest(self) -> u64 {
        match self.specials {
            Specials::Ieee => self.infinity() - 1,
            Specials::NanOnly => self.magnitude_mask() - 1,
            Specials::None => self.magnitude_mask(),
        }
    }

    /// One.
    pub(crate) const fn one(self) -> u64 {
        (self.bias() as u64) << self.fraction_bits
    }

    /// The smallest normal number.
    pub(crate) const fn least_normal(self) -> u64 {
        1 << self.fraction_bits
    }

    /// The NaN that an instruction gives which does not hand one on: all ones below the sign, except for `f64`.
    pub(crate) const fn canonical_nan(self) -> u64 {
        if self.exponent_bits == 11 { 0xfff8_0000_0000_0000 } else { self.magnitude_mask() }
    }

    pub(crate) const fn is_nan(self, bits: u64) -> bool {
        let magnitude = bits & self.magnitude_mask();
        match self.specials {
            Specials::Ieee => magnitude > self.infinity(),
            Specials::NanOnly => magnitude == self.magnitude_mask(),
            Specials::None => false,
        }
    }

    pub(crate) const fn is_infinite(self, bits: u64) -> bool {
        matches!(self.specials, Specials::Ieee) && bits & self.magnitude_mask() == self.infinity()
    }

    pub(crate) const fn is_negative(self, bits: u64) -> bool {
        bits & self.sign_bit() != 0
    }

    pub(crate) const fn is_zero(self, bits: u64) -> bool {
        bits & self.magnitude_mask() == 0
    }

    pub(crate) const fn is_subnormal(self, bits: u64) -> bool {
        let magnitude = bits & self.magnitude_mask();
        magnitude != 0 && magnitude < self.least_normal()
    }

    /// Zero with the same sign where the number is subnormal (`.ftz` on an operand).
    pub(crate) const fn flushed(self, bits: u64) -> u64 {
        if self.is_subnormal(bits) { bits & self.sign_bit() } else { bits }
    }

    /// The bits with a sign put on.
    pub(crate) const fn with_sign(self, magnitude: u64, negative: bool) -> u64 {
        if negative { magnitude | self.sign_bit() } else { magnitude }
    }

    /// The exact value of bits that are neither NaN nor infinite.
    pub(crate) fn exact(self, bits: u64) -> Exact {
        let exponent = ((bits & self.magnitude_mask()) >> self.fraction_bits) as i32;
        let fraction = bits & self.fraction_mask();
        let significand = if exponent == 0 { fraction } else { fraction | self.least_normal() };
        Exact::new(self.is_negative(bits), exponent.max(1) - self.bias() - self.fraction_bits as i32, u128::from(significand))
    }
}
