//! Numbers: widths, and floats as text.

use super::Machine;

impl Machine<'_> {
    /// Wraps an integer to the width of integers.
    pub(crate) fn wrap(&self, value: i64) -> i64 {
        if self.state.options.widths.wide_int { value } else { i64::from(value as i32) }
    }

    /// Rounds a float to the width of floats.
    pub(crate) fn round(&self, value: f64) -> f64 {
        if self.state.options.widths.narrow_float { f64::from(value as f32) } else { value }
    }

    /// Converts a float to an int, saturating at the range of ints.
    pub(crate) fn to_int(&self, value: f64) -> i64 {
        if self.state.options.widths.wide_int { value as i64 } else { i64::from(value as i32) }
    }

    pub(crate) fn least_int(&self) -> i64 {
        if self.state.options.widths.wide_int { i64::MIN } else { i64::from(i32::MIN) }
    }

    pub(crate) fn largest_int(&self) -> i64 {
        !self.least_int()
    }
}

/// Returns the maximum of an empty set of floats; its negation is the minimum. It is finite, so it can be
/// printed.
pub(crate) fn largest_float() -> f64 {
    f64::from(1.0e36f32)
}

/// Prints a float like the top level: 15 significant digits without trailing zeros (7 for 32-bit floats).
/// Numbers below 0.001 and from ten million on get an exponent.
pub fn format_float(value: f64, narrow: bool) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    let digits = if narrow { format!("{:e}", value as f32) } else { format!("{value:.14e}") };
    let value: f64 = digits.parse().unwrap_or(value);
    if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if mantissa.contains('.') { "" } else { ".0" };
    format!("{mantissa}{point}E{exponent}")
}

/// Returns the first `count` significant decimal digits of a positive float, rounded, and the position of its
/// point.
pub(crate) fn digits(value: f64, count: usize) -> (String, i64) {
    if !value.is_finite() || value <= 0.0 {
        return ("0".repeat(count), 1);
    }
    let text = format!("{value:.*e}", count.saturating_sub(1));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = mantissa.chars().filter(char::is_ascii_digit).collect();
    (digits, exponent.parse::<i64>().unwrap_or(0) + 1)
}
