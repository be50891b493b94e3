//! Floating-point formats (manual: "Fundamental Types", "Alternate Floating-Point Data Formats").

use super::Exact;

/// Meaning of the encodings with the highest exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Specials {
    /// Infinity and NaNs.
    Ieee,
    /// Numbers, except for all ones, which is NaN.
    NanOnly,
    /// Numbers.
    None,
}

/// Encoding of a floating-point number: sign, exponent with the usual bias, fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    F16,
    BF16,
    F32,
    F64,
    /// The significant bits only; in its register they stand above 13 zeros.
    TF32,
    E5M2,
    E4M3,
    E3M2,
    E2M3,
    E2M1,
    UE5M3,
}

impl Format {
    #[inline(always)]
    pub const fn exponent_bits(self) -> u32 {
        match self {
            Format::F64 => 11,
            Format::BF16 | Format::F32 | Format::TF32 => 8,
            Format::F16 | Format::E5M2 | Format::UE5M3 => 5,
            Format::E4M3 => 4,
            Format::E3M2 => 3,
            Format::E2M3 | Format::E2M1 => 2,
        }
    }

    /// Returns the number of fraction bits, without the implicit leading one.
    #[inline(always)]
    pub const fn fraction_bits(self) -> u32 {
        match self {
            Format::F64 => 52,
            Format::F32 => 23,
            Format::F16 | Format::TF32 => 10,
            Format::BF16 => 7,
            Format::E4M3 | Format::E2M3 | Format::UE5M3 => 3,
            Format::E5M2 | Format::E3M2 => 2,
            Format::E2M1 => 1,
        }
    }

    #[inline(always)]
    pub const fn is_signed(self) -> bool {
        !matches!(self, Format::UE5M3)
    }

    #[inline(always)]
    pub const fn specials(self) -> Specials {
        match self {
            Format::F16 | Format::BF16 | Format::F32 | Format::F64 | Format::TF32 | Format::E5M2 => Specials::Ieee,
            Format::E4M3 | Format::UE5M3 => Specials::NanOnly,
            Format::E3M2 | Format::E2M3 | Format::E2M1 => Specials::None,
        }
    }

    #[inline(always)]
    pub const fn bits(self) -> u32 {
        self.exponent_bits() + self.fraction_bits() + self.is_signed() as u32
    }

    #[inline(always)]
    pub const fn bias(self) -> i32 {
        (1 << (self.exponent_bits() - 1)) - 1
    }

    /// Returns the exponent of the smallest normal number.
    #[inline(always)]
    pub const fn least_exponent(self) -> i32 {
        1 - self.bias()
    }

    /// Returns the sign bit; zero if there is none.
    #[inline(always)]
    pub const fn sign_bit(self) -> u64 {
        (self.is_signed() as u64) << (self.exponent_bits() + self.fraction_bits())
    }

    /// Returns a mask of all bits except the sign.
    #[inline(always)]
    pub const fn magnitude_mask(self) -> u64 {
        (1 << (self.exponent_bits() + self.fraction_bits())) - 1
    }

    #[inline(always)]
    const fn fraction_mask(self) -> u64 {
        (1 << self.fraction_bits()) - 1
    }

    /// Returns the exponent field of infinity, which is infinity if the format has it.
    #[inline(always)]
    pub const fn infinity(self) -> u64 {
        self.magnitude_mask() & !self.fraction_mask()
    }

    /// Returns the largest number.
    #[inline(always)]
    pub const fn largest(self) -> u64 {
        match self.specials() {
            Specials::Ieee => self.infinity() - 1,
            Specials::NanOnly => self.magnitude_mask() - 1,
            Specials::None => self.magnitude_mask(),
        }
    }

    /// Returns the encoding of 1.
    #[inline(always)]
    pub const fn one(self) -> u64 {
        (self.bias() as u64) << self.fraction_bits()
    }

    /// Returns the smallest normal number.
    #[inline(always)]
    pub const fn least_normal(self) -> u64 {
        1 << self.fraction_bits()
    }

    /// Returns the NaN of an instruction that does not propagate one: all ones below the sign, except for
    /// `f64`.
    #[inline(always)]
    pub const fn canonical_nan(self) -> u64 {
        if matches!(self, Format::F64) { 0xfff8_0000_0000_0000 } else { self.magnitude_mask() }
    }

    #[inline(always)]
    pub const fn is_nan(self, bits: u64) -> bool {
        let magnitude = bits & self.magnitude_mask();
        match self.specials() {
            Specials::Ieee => magnitude > self.infinity(),
            Specials::NanOnly => magnitude == self.magnitude_mask(),
            Specials::None => false,
        }
    }

    #[inline(always)]
    pub const fn is_infinite(self, bits: u64) -> bool {
        matches!(self.specials(), Specials::Ieee) && bits & self.magnitude_mask() == self.infinity()
    }

    #[inline(always)]
    pub const fn is_negative(self, bits: u64) -> bool {
        bits & self.sign_bit() != 0
    }

    #[inline(always)]
    pub const fn is_zero(self, bits: u64) -> bool {
        bits & self.magnitude_mask() == 0
    }

    #[inline(always)]
    pub const fn is_subnormal(self, bits: u64) -> bool {
        let magnitude = bits & self.magnitude_mask();
        magnitude != 0 && magnitude < self.least_normal()
    }

    /// Flushes a subnormal number to zero with the same sign (`.ftz` on an operand).
    #[inline(always)]
    pub const fn flushed(self, bits: u64) -> u64 {
        if self.is_subnormal(bits) { bits & self.sign_bit() } else { bits }
    }

    /// Adds a sign to the bits.
    #[inline(always)]
    pub const fn with_sign(self, magnitude: u64, negative: bool) -> u64 {
        if negative { magnitude | self.sign_bit() } else { magnitude }
    }

    /// Returns the exact value of bits that are neither NaN nor infinite.
    #[inline]
    pub fn exact(self, bits: u64) -> Exact {
        let exponent = ((bits & self.magnitude_mask()) >> self.fraction_bits()) as i32;
        let fraction = bits & self.fraction_mask();
        let significand = if exponent == 0 { fraction } else { fraction | self.least_normal() };
        Exact::new(self.is_negative(bits), exponent.max(1) - self.bias() - self.fraction_bits() as i32, u128::from(significand))
    }
}
