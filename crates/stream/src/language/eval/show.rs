//! Values as printed by `print`: numbers have the format of Java's `Float.toString` and `Integer.toString`.

use crate::language::core::Value;

/// Returns the text that `print` writes for a value.
pub fn show_value(value: &Value) -> String {
    match value {
        Value::Unset | Value::Portal(_) => "?".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::Bit(value) => u8::from(*value).to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => {
            let shortest = at_least_two(format!("{value:e}"), format!("{value:.1e}"), |text| text.parse() == Ok(*value));
            floating(&shortest, f64::from(*value))
        }
        Value::Double(value) => {
            let shortest = at_least_two(format!("{value:e}"), format!("{value:.1e}"), |text| text.parse() == Ok(*value));
            floating(&shortest, *value)
        }
        Value::Complex(real, imaginary) => {
            format!("({}, {})", show_value(&Value::Float(*real)), show_value(&Value::Float(*imaginary)))
        }
        Value::Array(parts) | Value::Struct(parts) => {
            let parts: Vec<String> = parts.iter().map(show_value).collect();
            format!("{{{}}}", parts.join(", "))
        }
        Value::Text(text) => text.to_string(),
    }
}

/// Chooses the digits that Java shows. These are the shortest that identify the number, except if one digit
/// would do and two digits are nearer.
fn at_least_two(shortest: String, two: String, is_it: impl Fn(&str) -> bool) -> String {
    if !shortest.contains('.') && !two.contains(".0e") && is_it(&two) { two } else { shortest }
}

/// Formats the shortest digits of a number, given as `d.ddde±n`.
fn floating(shortest: &str, value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}Infinity");
    }
    if value == 0.0 {
        return format!("{sign}0.0");
    }
    let (digits, exponent) = shortest.trim_start_matches('-').split_once('e').unwrap_or((shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    if !(-3..7).contains(&exponent) {
        let rest = if digits.len() > 1 { &digits[1..] } else { "0" };
        return format!("{sign}{}.{rest}E{exponent}", &digits[..1]);
    }
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize));
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        return format!("{sign}{digits}{}.0", "0".repeat(whole - digits.len()));
    }
    format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
}
