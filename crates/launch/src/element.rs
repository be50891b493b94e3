//! Types of scalars and buffer elements, and their values as text.

use broadloom_ptx::{Type, TypeKind};
use half::{bf16, f16};
use std::fmt;

macro_rules! elements {
    ($($variant:ident $name:literal $ty:ident,)*) => {
        /// Type of a scalar or of a buffer's elements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Element {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        /// Text that is no value of an element type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElementError {
    /// Type without values.
    #[error("`{0}` has no values")]
    NoValues(Element),
    /// Text that is not an integer.
    #[error("`{0}` is not an integer")]
    NotInteger(String),
    /// Integer of more than 64 bits.
    #[error("`{0}` does not fit 64 bits")]
    Wide(String),
    /// Integer that the type does not hold.
    #[error("`{text}` does not fit `{element}`, which holds {least} to {most}")]
    OutOfRange {
        /// The word that is no type.
        text: String,
        /// The type.
        element: Element,
        /// Lowest value.
        least: i128,
        /// Highest value.
        most: i128,
    },
    /// Text that is not a number.
    #[error("`{0}` is not a number")]
    NotNumber(String),
    /// More bits than the type has.
    #[error("`{text}` has more than the {width} bits of `{element}`")]
    Bits {
        /// The word that is no number of the type.
        text: String,
        /// Bits of the type.
        width: u32,
        /// The type.
        element: Element,
    },
    /// Bits that are not a NaN.
    #[error("`{0}` are not the bits of a NaN")]
    NotNan(String),
}

impl Element {
            /// All types.
            pub const ALL: &'static [Element] = &[$(Element::$variant,)*];

            /// Returns the name in an argument.
            pub const fn name(self) -> &'static str {
                match self { $(Element::$variant => $name,)* }
            }

            /// Returns the PTX type.
            pub const fn ty(self) -> Type {
                match self { $(Element::$variant => Type::$ty,)* }
            }
        }
    };
}

elements! {
    B8 "b8" B8,
    B16 "b16" B16,
    B32 "b32" B32,
    B64 "b64" B64,
    U8 "u8" U8,
    U16 "u16" U16,
    U32 "u32" U32,
    U64 "u64" U64,
    I8 "i8" S8,
    I16 "i16" S16,
    I32 "i32" S32,
    I64 "i64" S64,
    F16 "f16" F16,
    Bf16 "bf16" Bf16,
    F32 "f32" F32,
    F64 "f64" F64,
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Element {
    /// Returns the type of a name. PTX's `s32` is accepted for `i32`.
    pub fn from_name(name: &str) -> Option<Element> {
        let same = |element: &&Element| element.name() == name || element.ty().name() == name;
        Element::ALL.iter().find(same).copied()
    }

    /// Returns the size of a value in bytes.
    pub const fn bytes(self) -> usize {
        self.ty().bytes() as usize
    }

    fn bits(self) -> u32 {
        self.ty().bits()
    }

    /// Parses a value to little-endian bytes, the first [`Element::bytes`] of the eight. Returns an error
    /// text on failure.
    pub fn parse(self, text: &str) -> Result<[u8; 8], ElementError> {
        let bits = match self.ty().kind() {
            TypeKind::Float => self.parse_float(text)?,
            TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed => self.parse_integer(text)?,
            TypeKind::Predicate | TypeKind::Packed | TypeKind::Alternate | TypeKind::Opaque => {
                return Err(ElementError::NoValues(self));
            }
        };
        Ok(bits.to_le_bytes())
    }

    fn parse_integer(self, text: &str) -> Result<u64, ElementError> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (digits, base) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(digits) => (digits, 16),
            None => (digits, 10),
        };
        let wrong = || ElementError::NotInteger(text.to_owned());
        if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(base)) {
            return Err(wrong());
        }
        let magnitude = i128::from_str_radix(digits, base).map_err(|_| ElementError::Wide(text.to_owned()))?;
        let value = if negative { -magnitude } else { magnitude };
        let half = 1i128 << (self.bits() - 1);
        // Signed types also accept bits in hexadecimal: `i32:0xFFFFFFFF` is -1.
        let (least, most) = match self.ty().kind() {
            TypeKind::Unsigned => (0, 2 * half - 1),
            TypeKind::Signed if base == 10 => (-half, half - 1),
            _ => (-half, 2 * half - 1),
        };
        if value < least || value > most {
            return Err(ElementError::OutOfRange { text: text.to_owned(), element: self, least, most });
        }
        Ok(value as u64)
    }

    fn parse_float(self, text: &str) -> Result<u64, ElementError> {
        let wrong = || ElementError::NotNumber(text.to_owned());
        let hexadecimal = |digits: &str| -> Result<u64, ElementError> {
            let bits = u64::from_str_radix(digits, 16).map_err(|_| wrong())?;
            match self.bits() {
                64 => Ok(bits),
                width if bits >> width == 0 => Ok(bits),
                width => Err(ElementError::Bits { text: text.to_owned(), width, element: self }),
            }
        };
        if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            return hexadecimal(digits);
        }
        if let Some(digits) = text.strip_prefix("nan(0x").and_then(|rest| rest.strip_suffix(')')) {
            let bits = hexadecimal(digits)?;
            return if self.is_nan(bits) { Ok(bits) } else { Err(ElementError::NotNan(text.to_owned())) };
        }
        let known = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
        if !matches!(text, "inf" | "-inf" | "nan") && !text.chars().all(known) {
            return Err(wrong());
        }
        let value: f64 = text.parse().map_err(|_| wrong())?;
        let single = || text.parse::<f32>().unwrap_or(value as f32);
        Ok(match self {
            Element::F16 => u64::from(f16::from_f64(value).to_bits()),
            Element::Bf16 => u64::from(bf16::from_f64(value).to_bits()),
            Element::F32 => u64::from(single().to_bits()),
            _ => value.to_bits(),
        })
    }

    fn is_nan(self, bits: u64) -> bool {
        match self {
            Element::F16 => f16::from_bits(bits as u16).is_nan(),
            Element::Bf16 => bf16::from_bits(bits as u16).is_nan(),
            Element::F32 => f32::from_bits(bits as u32).is_nan(),
            _ => f64::from_bits(bits).is_nan(),
        }
    }

    /// Formats a value from its little-endian bytes as text that [`Element::parse`] converts to the same
    /// bytes.
    pub fn show(self, bytes: &[u8]) -> String {
        let mut wide = [0; 8];
        let length = self.bytes().min(bytes.len());
        wide[..length].copy_from_slice(&bytes[..length]);
        let bits = u64::from_le_bytes(wide);
        let shift = 64 - self.bits();
        match self {
            Element::B8 | Element::B16 | Element::B32 | Element::B64 => format!("0x{bits:0width$x}", width = 2 * self.bytes()),
            Element::U8 | Element::U16 | Element::U32 | Element::U64 => bits.to_string(),
            Element::I8 | Element::I16 | Element::I32 | Element::I64 => ((bits << shift) as i64 >> shift).to_string(),
            Element::F16 | Element::Bf16 | Element::F32 | Element::F64 if self.is_nan(bits) => {
                format!("nan(0x{bits:0width$x})", width = 2 * self.bytes())
            }
            Element::F16 => format!("{:?}", f16::from_bits(bits as u16).to_f32()),
            Element::Bf16 => format!("{:?}", bf16::from_bits(bits as u16).to_f32()),
            Element::F32 => format!("{:?}", f32::from_bits(bits as u32)),
            Element::F64 => format!("{:?}", f64::from_bits(bits)),
        }
    }

    /// Converts an index: wrapping around for integers, rounded for floats.
    pub fn from_index(self, index: u64) -> [u8; 8] {
        let bits = match self {
            Element::F16 => u64::from(f16::from_f64(index as f64).to_bits()),
            Element::Bf16 => u64::from(bf16::from_f64(index as f64).to_bits()),
            Element::F32 => u64::from((index as f32).to_bits()),
            Element::F64 => (index as f64).to_bits(),
            _ => index,
        };
        bits.to_le_bytes()
    }

    /// Converts 64 random bits: to floats in the range 0 to below 1 that the type represents exactly, or to
    /// integers of any bits.
    pub fn from_random(self, random: u64) -> [u8; 8] {
        // As many bits as the significand has, so that nothing is rounded up to 1.
        let unit = |digits: u32| (random >> (64 - digits)) as f64 / (1u64 << digits) as f64;
        let bits = match self {
            Element::F16 => u64::from(f16::from_f64(unit(11)).to_bits()),
            Element::Bf16 => u64::from(bf16::from_f64(unit(8)).to_bits()),
            Element::F32 => u64::from((unit(24) as f32).to_bits()),
            Element::F64 => unit(53).to_bits(),
            _ => random,
        };
        bits.to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(element: Element, text: &str) -> u64 {
        u64::from_le_bytes(element.parse(text).unwrap()) & (u64::MAX >> (64 - element.bits()))
    }

    #[test]
    fn reads_values() {
        assert_eq!(bits(Element::I32, "-1"), 0xFFFF_FFFF);
        assert_eq!(bits(Element::I32, "0xFFFFFFFF"), 0xFFFF_FFFF);
        assert_eq!(bits(Element::I64, "-9223372036854775808"), 1 << 63);
        assert_eq!(bits(Element::U64, "18446744073709551615"), u64::MAX);
        assert_eq!(bits(Element::F32, "0.1"), u64::from(0.1f32.to_bits()));
        assert_eq!(bits(Element::F32, "nan(0x7f800001)"), 0x7f80_0001);
        assert_eq!(bits(Element::F32, "0x80000000"), 0x8000_0000);
        assert_eq!(bits(Element::F16, "-inf"), 0xFC00);
        assert_eq!(bits(Element::Bf16, "1"), 0x3F80);
        assert_eq!(bits(Element::F64, "-0.0"), 1 << 63);
    }

    #[test]
    fn refuses_what_does_not_fit() {
        for (element, text) in [
            (Element::U8, "256"),
            (Element::U32, "-1"),
            (Element::I8, "128"),
            (Element::I32, "2147483648"),
            (Element::I64, "99999999999999999999999999999999999999999999"),
            (Element::B16, "0x10000"),
            (Element::I32, "1.5"),
            (Element::I32, ""),
            (Element::I32, "-"),
            (Element::I32, "0x"),
            (Element::I32, "--1"),
            (Element::F32, "one"),
            (Element::F32, "0x100000000"),
            (Element::F32, "nan(0x3f800000)"),
            (Element::F32, "infinity"),
            (Element::F16, "nan(0x)"),
        ] {
            assert!(element.parse(text).is_err(), "{element}:{text}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for element in Element::ALL {
            for seed in 0..2000u64 {
                let random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(seed as u32);
                let before = &random.to_le_bytes()[..element.bytes()];
                let text = element.show(before);
                assert_eq!(&element.parse(&text).unwrap()[..element.bytes()], before, "{element}:{text}");
            }
        }
    }

    #[test]
    fn random_floats_stay_below_one() {
        for element in [Element::F16, Element::Bf16, Element::F32, Element::F64] {
            let largest = element.from_random(u64::MAX);
            assert!(element.show(&largest).parse::<f64>().unwrap() < 1.0);
        }
    }
}
