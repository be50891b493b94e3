//! Constants of PTX text (manual: "Constants"): integers in four bases, floats in decimal and as bits.

use crate::inst::Imm;
use std::fmt;

/// Error in a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LiteralError {
    /// Letter that is not a digit of the base.
    Digit {
        /// The letter.
        letter: char,
        /// The base.
        base: u32,
    },
    /// Base prefix without digits.
    NoDigits,
    /// Malformed float.
    Float,
    /// Value of more than 64 bits.
    TooLarge,
    /// `0f` without 8 or `0d` without 16 hexadecimal digits.
    FloatDigits,
}

/// Parses a constant that starts with a digit, or with the point of a float.
pub(crate) fn read(text: &str) -> Result<Imm, LiteralError> {
    let bytes = text.as_bytes();
    if bytes.len() > 1 && bytes[0] == b'0' {
        match bytes[1] {
            b'f' | b'F' => return float_bits(&text[2..], 8).map(|bits| Imm::F32(bits as u32)),
            b'd' | b'D' => return float_bits(&text[2..], 16).map(Imm::F64),
            _ => {}
        }
    }
    let is_hex = bytes.len() > 1 && bytes[0] == b'0' && matches!(bytes[1], b'x' | b'X');
    if !is_hex && bytes.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return text.parse::<f64>().map(|value| Imm::F64(value.to_bits())).map_err(|_| LiteralError::Float);
    }
    let digits = text.strip_suffix(['U', 'u']).unwrap_or(text);
    let (base, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    integer(digits, base).map(Imm::from_u64)
}

fn integer(digits: &str, base: u32) -> Result<u64, LiteralError> {
    if digits.is_empty() {
        return Err(LiteralError::NoDigits);
    }
    let mut value: u64 = 0;
    for letter in digits.chars() {
        let digit = letter.to_digit(base).ok_or(LiteralError::Digit { letter, base })?;
        value = value.checked_mul(u64::from(base)).and_then(|v| v.checked_add(u64::from(digit))).ok_or(LiteralError::TooLarge)?;
    }
    Ok(value)
}

fn float_bits(digits: &str, count: usize) -> Result<u64, LiteralError> {
    if digits.len() != count || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(LiteralError::FloatDigits);
    }
    u64::from_str_radix(digits, 16).map_err(|_| LiteralError::FloatDigits)
}

impl fmt::Display for Imm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Imm::Int(value) => write!(f, "{value}"),
            Imm::Uint(value) => write!(f, "{value}"),
            Imm::F32(bits) => write!(f, "0f{bits:08X}"),
            Imm::F64(bits) => write!(f, "0d{bits:016X}"),
        }
    }
}

/// Splits a name into prefix and number: `%r12`.
pub(crate) fn split_number(name: &str) -> Option<(&str, u64)> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (prefix, number) = name.split_at(name.len() - digits);
    if number.is_empty() || prefix.is_empty() || (number.len() > 1 && number.starts_with('0')) {
        return None;
    }
    Some((prefix, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_notation() {
        assert_eq!(read("0"), Ok(Imm::Int(0)));
        assert_eq!(read("42"), Ok(Imm::Int(42)));
        assert_eq!(read("0x1F"), Ok(Imm::Int(31)));
        assert_eq!(read("017"), Ok(Imm::Int(15)));
        assert_eq!(read("0b101"), Ok(Imm::Int(5)));
        assert_eq!(read("7U"), Ok(Imm::Int(7)));
        assert_eq!(read("18446744073709551615"), Ok(Imm::Uint(u64::MAX)));
        assert_eq!(read("0f3F800000"), Ok(Imm::F32(0x3f80_0000)));
        assert_eq!(read("0d3FF0000000000000"), Ok(Imm::F64(1f64.to_bits())));
        assert_eq!(read("1.5e3"), Ok(Imm::F64(1500f64.to_bits())));
        assert_eq!(read("2."), Ok(Imm::F64(2f64.to_bits())));
        assert_eq!(read(".5"), Ok(Imm::F64(0.5f64.to_bits())));
    }

    #[test]
    fn refuses_the_rest() {
        assert_eq!(read("18446744073709551616"), Err(LiteralError::TooLarge));
        assert_eq!(read("08"), Err(LiteralError::Digit { letter: '8', base: 8 }));
        assert_eq!(read("0x"), Err(LiteralError::NoDigits));
        assert_eq!(read("1.5f"), Err(LiteralError::Float));
        assert_eq!(read("0f3F8"), Err(LiteralError::FloatDigits));
        assert_eq!(read("0d3F800000"), Err(LiteralError::FloatDigits));
        assert_eq!(read("12ab"), Err(LiteralError::Digit { letter: 'a', base: 10 }));
    }

    #[test]
    fn numbers_of_names_have_no_leading_zero() {
        assert_eq!(split_number("%r12"), Some(("%r", 12)));
        assert_eq!(split_number("%r0"), Some(("%r", 0)));
        assert_eq!(split_number("%r01"), None);
        assert_eq!(split_number("%r"), None);
        assert_eq!(split_number("%r99999999999999999999"), None);
    }
}
