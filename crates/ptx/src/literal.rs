//! Constants of PTX text (manual: "Constants"): integers in four bases, floats in decimal and as bits.

use crate::inst::Imm;
use std::fmt;

/// Error in a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralError {
    /// Letter that is not a digit of the base.
    Digit {
        /// The first letter that is no digit of the base.
        letter: char,
        /// The base of the number: 2, 8, 10 or 16.
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
pub fn read(text: &str) -> Result<Imm, LiteralError> {
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
pub fn split_number(name: &str) -> Option<(&str, u64)> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (prefix, number) = name.split_at(name.len() - digits);
    if number.is_empty() || prefix.is_empty() || (number.len() > 1 && number.starts_with('0')) {
        return None;
    }
    Some((prefix, number.parse().ok()?))
}
