//! `// tolerance:` lines: permitted differences of the floats of an approximate instruction.
//!
//! The manual bounds the error against the true value. An expectation is the true value rounded, so half a
//! unit in the last place is added to a relative or absolute bound. An expected zero, infinity or NaN must
//! match exactly.

use crate::failure::Failure;
use broadloom_launch::Element;
use half::{bf16, f16};

/// Permitted difference of a float from the expected one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    amount: f64,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Units in the last place.
    Ulp,
    /// Fraction of the expected value.
    Relative,
    Absolute,
}

impl Tolerance {
    /// Parses `2 ulp`, `2^-22.9 relative`, `0.001 absolute`.
    pub fn parse(text: &str) -> Result<Tolerance, Failure> {
        let wrong = || format!("`{text}` is not a tolerance such as `2 ulp`, `2^-22.9 relative`, `2^-20.5 absolute`");
        let (amount, unit) = text.trim().split_once(' ').ok_or_else(wrong)?;
        let unit = match unit.trim() {
            "ulp" => Unit::Ulp,
            "relative" => Unit::Relative,
            "absolute" => Unit::Absolute,
            _ => return Err(wrong().into()),
        };
        let amount = match amount.split_once('^') {
            Some(("2", exponent)) => exponent.parse::<f64>().map(f64::exp2),
            _ => amount.parse(),
        };
        match amount {
            Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(Tolerance { amount, unit }),
            _ => Err(wrong().into()),
        }
    }

    /// Returns whether two outputs of launches agree, except for floats within the tolerance.
    pub fn same(self, expected: &str, found: &str) -> bool {
        let mut element = None;
        let (expected, found): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
        expected.len() == found.len()
            && expected.iter().zip(found).all(|(expected, found)| {
                if *expected == found {
                    element = shown_element(expected).or(element);
                    return true;
                }
                let (expected, found): (Vec<&str>, Vec<&str>) =
                    (expected.split_whitespace().collect(), found.split_whitespace().collect());
                expected.len() == found.len()
                    && expected.iter().zip(found).all(|(expected, found)| {
                        *expected == found || element.is_some_and(|element| self.allows(element, expected, found))
                    })
            })
    }

    fn allows(self, element: Element, expected: &str, found: &str) -> bool {
        let (Some(float), Some(expected), Some(found)) =
            (FloatType::of(element), value(element, expected), value(element, found))
        else {
            return false;
        };
        if !expected.is_finite() || !found.is_finite() || expected == 0.0 {
            return false;
        }
        let ulp = float.last_place(expected);
        let bound = match self.unit {
            Unit::Ulp => self.amount * ulp,
            Unit::Relative => self.amount * expected.abs() + ulp / 2.0,
            Unit::Absolute => self.amount + ulp / 2.0,
        };
        (expected - found).abs() <= bound
    }
}

/// Returns the type of the buffer that a line such as `out: f32[8]` starts.
fn shown_element(line: &str) -> Option<Element> {
    let (_, rest) = line.split_once(": ")?;
    Element::from_name(rest.split_once('[')?.0)
}

/// Returns the value of a text in a float type: that of its bits. The text shows only as many digits as
/// needed.
fn value(element: Element, text: &str) -> Option<f64> {
    let bytes = element.parse(text).ok()?;
    let [a, b, c, d, ..] = bytes;
    Some(match element {
        Element::F16 => f16::from_le_bytes([a, b]).to_f64(),
        Element::Bf16 => bf16::from_le_bytes([a, b]).to_f64(),
        Element::F32 => f64::from(f32::from_le_bytes([a, b, c, d])),
        Element::F64 => f64::from_le_bytes(bytes),
        Element::B8 | Element::B16 | Element::B32 | Element::B64 => return None,
        Element::U8 | Element::U16 | Element::U32 | Element::U64 => return None,
        Element::I8 | Element::I16 | Element::I32 | Element::I64 => return None,
    })
}

#[derive(Clone, Copy)]
struct FloatType {
    least_exponent: i32,
    fraction_bits: i32,
}

impl FloatType {
    fn of(element: Element) -> Option<FloatType> {
        let (least_exponent, fraction_bits) = match element {
            Element::F16 => (-14, 10),
            Element::Bf16 => (-126, 7),
            Element::F32 => (-126, 23),
            Element::F64 => (-1022, 52),
            Element::B8 | Element::B16 | Element::B32 | Element::B64 => return None,
            Element::U8 | Element::U16 | Element::U32 | Element::U64 => return None,
            Element::I8 | Element::I16 | Element::I32 | Element::I64 => return None,
        };
        Some(FloatType { least_exponent, fraction_bits })
    }

    /// Returns the size of a unit in the last place of a value.
    fn last_place(self, value: f64) -> f64 {
        let exponent = (value.abs().log2().floor() as i32).max(self.least_exponent);
        f64::from(exponent - self.fraction_bits).exp2()
    }
}
