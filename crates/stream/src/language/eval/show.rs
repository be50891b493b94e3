//! Values as printed by `print`: numbers have the format of Java's `Float.toString` and `Integer.toString`.

use crate::language::core::Value;
use std::fmt::{self, LowerExp, Write};
use std::str::FromStr;

/// Returns the text that `print` writes for a value.
pub fn show_value(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

/// Appends the text that `print` writes for a value.
pub(super) fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Unset | Value::Portal(_) => text.push('?'),
        Value::Boolean(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Bit(value) => text.push(if *value { '1' } else { '0' }),
        Value::Int(value) => {
            let _ = write!(text, "{value}");
        }
        Value::Float(value) => write_float(*value, f64::from(*value), text),
        Value::Double(value) => write_float(*value, *value, text),
        Value::Complex(real, imaginary) => {
            write_list(&[Value::Float(*real), Value::Float(*imaginary)], ['(', ')'], text);
        }
        Value::Array(parts) | Value::Struct(parts) => write_list(parts, ['{', '}'], text),
        Value::Text(own) => text.push_str(own),
    }
}

fn write_list(parts: &[Value], [open, close]: [char; 2], text: &mut String) {
    text.push(open);
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        write_value(part, text);
    }
    text.push(close);
}

/// The decimal digits of a number, and the exponent of the first one.
#[derive(Default)]
struct Digits {
    digits: [u8; 20],
    count: usize,
    exponent: i32,
    /// The sign of the exponent, once the number's `e` was read.
    sign: Option<i32>,
}

impl Digits {
    /// Reads a number in scientific notation.
    fn of(number: fmt::Arguments<'_>) -> Digits {
        let mut own = Digits::default();
        // The longest number has 17 digits.
        let _ = own.write_fmt(number);
        own
    }

    /// Returns a range of digits as text.
    fn part(&self, range: std::ops::Range<usize>) -> &str {
        std::str::from_utf8(&self.digits[range]).unwrap_or_default()
    }
}

impl Write for Digits {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.bytes() {
            match (letter, self.sign) {
                (b'e', _) => self.sign = Some(1),
                (b'-', Some(_)) => self.sign = Some(-1),
                (b'0'..=b'9', Some(sign)) => self.exponent = 10 * self.exponent + sign * i32::from(letter - b'0'),
                (b'0'..=b'9', None) => {
                    *self.digits.get_mut(self.count).ok_or(fmt::Error)? = letter;
                    self.count += 1;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns the digits that Java shows. These are the shortest that identify the number, except if one digit
/// would do and two digits are nearer.
fn digits<T: LowerExp + FromStr + PartialEq>(number: T) -> Digits {
    let shortest = Digits::of(format_args!("{number:e}"));
    if shortest.count > 1 {
        return shortest;
    }
    let two = Digits::of(format_args!("{number:.1e}"));
    let is_it = two.digits[1] != b'0' && format!("{number:.1e}").parse().is_ok_and(|same: T| same == number);
    if is_it { two } else { shortest }
}

/// Appends a number. `value` is the same number as a double.
fn write_float<T: LowerExp + FromStr + PartialEq>(number: T, value: f64, text: &mut String) {
    if value.is_nan() {
        return text.push_str("NaN");
    }
    if value.is_sign_negative() {
        text.push('-');
    }
    if value.is_infinite() {
        return text.push_str("Infinity");
    }
    // All digits of such a whole number are shown.
    if value.abs() < 1e7 && f64::from(value as i32) == value {
        let _ = write!(text, "{}.0", value.abs() as i32);
        return;
    }
    let digits = digits(number);
    let (count, exponent) = (digits.count, digits.exponent);
    match exponent {
        -3..0 => {
            text.push_str(&"0.00"[..(1 - exponent) as usize]);
            text.push_str(digits.part(0..count));
        }
        // Such a number has more digits than those before the point.
        0..7 => {
            let whole = (exponent as usize + 1).min(count);
            text.push_str(digits.part(0..whole));
            text.push('.');
            text.push_str(digits.part(whole..count));
        }
        _ => {
            let rest = if count > 1 { digits.part(1..count) } else { "0" };
            let _ = write!(text, "{}.{rest}E{exponent}", digits.part(0..1));
        }
    }
}
