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

/// A number as `d.ddde±n`, on the stack.
#[derive(Default)]
struct Scientific {
    bytes: [u8; 32],
    length: usize,
}

impl Scientific {
    fn of(number: fmt::Arguments<'_>) -> Scientific {
        let mut own = Scientific::default();
        // The longest number has 24 letters.
        let _ = own.write_fmt(number);
        own
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl Write for Scientific {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let place = self.bytes.get_mut(self.length..self.length + text.len()).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

/// Returns the digits that Java shows. These are the shortest that identify the number, except if one digit
/// would do and two digits are nearer.
fn digits<T: LowerExp + FromStr + PartialEq>(number: T) -> Scientific {
    let shortest = Scientific::of(format_args!("{number:e}"));
    if shortest.text().contains('.') {
        return shortest;
    }
    let two = Scientific::of(format_args!("{number:.1e}"));
    let is_it = !two.text().contains(".0e") && two.text().parse().is_ok_and(|same: T| same == number);
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
    if value.trunc() == value && value.abs() < 1e7 {
        let _ = write!(text, "{}.0", value.abs() as u32);
        return;
    }
    let digits = digits(number);
    let (mantissa, exponent) = digits.text().trim_start_matches('-').split_once('e').unwrap_or(("0", "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // The first digit, and those behind the point.
    let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    match exponent {
        -3..0 => {
            text.push_str("0.");
            (1..-exponent).for_each(|_| text.push('0'));
            text.push_str(first);
            text.push_str(rest);
        }
        0..7 => {
            let (whole, part) = rest.split_at_checked(exponent as usize).unwrap_or((rest, ""));
            text.push_str(first);
            text.push_str(whole);
            (whole.len()..exponent as usize).for_each(|_| text.push('0'));
            text.push('.');
            text.push_str(if part.is_empty() { "0" } else { part });
        }
        _ => {
            let rest = if rest.is_empty() { "0" } else { rest };
            let _ = write!(text, "{first}.{rest}E{exponent}");
        }
    }
}
