//! `// tolerance:` lines: permitted differences of the floats of an approximate instruction.
//!
//! The manual bounds the error against the true value. An expectation is the true value rounded, so half a
//! unit in the last place is added to a relative or absolute bound. An expected zero, infinity or NaN must
//! match exactly.

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
    pub fn parse(text: &str) -> Result<Tolerance, String> {
        let wrong = || format!("`{text}` is not a tolerance such as `2 ulp`, `2^-22.9 relative`, `2^-20.5 absolute`");
        let (amount, unit) = text.trim().split_once(' ').ok_or_else(wrong)?;
        let unit = match unit.trim() {
            "ulp" => Unit::Ulp,
            "relative" => Unit::Relative,
            "absolute" => Unit::Absolute,
            _ => return Err(wrong()),
        };
        let amount = match amount.split_once('^') {
            Some(("2", exponent)) => exponent.parse::<f64>().map(f64::exp2),
            _ => amount.parse(),
        };
        match amount {
            Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(Tolerance { amount, unit }),
            _ => Err(wrong()),
        }
    }

    /// Returns whether two outputs of launches agree, except for floats within the tolerance.
    pub(crate) fn same(self, expected: &str, found: &str) -> bool {
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
        let (Some(float), Some(expected), Some(found)) = (Float::of(element), value(element, expected), value(element, found))
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

/// Float type.
#[derive(Clone, Copy)]
struct Float {
    least_exponent: i32,
    fraction_bits: i32,
}

impl Float {
    fn of(element: Element) -> Option<Float> {
        let (least_exponent, fraction_bits) = match element {
            Element::F16 => (-14, 10),
            Element::Bf16 => (-126, 7),
            Element::F32 => (-126, 23),
            Element::F64 => (-1022, 52),
            Element::B8 | Element::B16 | Element::B32 | Element::B64 => return None,
            Element::U8 | Element::U16 | Element::U32 | Element::U64 => return None,
            Element::I8 | Element::I16 | Element::I32 | Element::I64 => return None,
        };
        Some(Float { least_exponent, fraction_bits })
    }

    /// Returns the size of a unit in the last place of a value.
    fn last_place(self, value: f64) -> f64 {
        let exponent = (value.abs().log2().floor() as i32).max(self.least_exponent);
        f64::from(exponent - self.fraction_bits).exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(tolerance: &str, expected: &str, found: &str) -> bool {
        Tolerance::parse(tolerance).unwrap().same(expected, found)
    }

    #[test]
    fn floats_may_differ_by_as_much_as_said() {
        let expected = "out: f32[4]\n  0: 1.0 0.0 inf -2.5\n";
        assert!(same("1 ulp", expected, expected));
        assert!(same("1 ulp", expected, "out: f32[4]\n  0: 1.0000001 0.0 inf -2.5000002\n"));
        assert!(!same("1 ulp", expected, "out: f32[4]\n  0: 1.0000002 0.0 inf -2.5\n"));
        assert!(same("0.1 relative", expected, "out: f32[4]\n  0: 1.1 0.0 inf -2.75\n"));
        assert!(!same("0.1 relative", expected, "out: f32[4]\n  0: 1.11 0.0 inf -2.75\n"));
        // One unit apart, though more in the digits shown.
        assert!(same("1 ulp", "out: f32[1]\n  0: 1.1304742\n", "out: f32[1]\n  0: 1.1304743\n"));
        assert!(same("2^-2 absolute", expected, "out: f32[4]\n  0: 0.75 0.0 inf -2.5\n"));
        assert!(!same("2^-2 absolute", expected, "out: f32[4]\n  0: 0.7 0.0 inf -2.5\n"));
    }

    #[test]
    fn nothing_else_may() {
        let expected = "out: f32[4]\n  0: 1.0 0.0 inf nan(0x7fffffff)\n";
        for found in [
            "out: f32[4]\n  0: 1.0 -0.0 inf nan(0x7fffffff)\n",
            "out: f32[4]\n  0: 1.0 1e-40 inf nan(0x7fffffff)\n",
            "out: f32[4]\n  0: 1.0 0.0 3.4028235e38 nan(0x7fffffff)\n",
            "out: f32[4]\n  0: 1.0 0.0 inf nan(0x7fc00000)\n",
            "out: f32[4]\n  0: 1.0 0.0 inf\n",
            "out: f32[4]\n  4: 1.0 0.0 inf nan(0x7fffffff)\n",
            "",
        ] {
            assert!(!same("2 ulp", expected, found), "{found}");
        }
        assert!(!same("2 ulp", "out: i32[1]\n  0: 100\n", "out: i32[1]\n  0: 101\n"), "integers are exact");
    }

    #[test]
    fn what_is_no_tolerance_is_said() {
        for text in ["", "2", "ulp", "two ulp", "-1 ulp", "2 units", "3^-4 relative", "0 ulp"] {
            assert!(Tolerance::parse(text).is_err(), "{text}");
        }
    }
}
