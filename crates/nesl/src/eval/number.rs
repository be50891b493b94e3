//! Numbers: widths, and floats as text.

use super::Evaluation;
use crate::infer::Widths;

impl Evaluation<'_> {
    pub(crate) fn widths(&self) -> Widths {
        self.state.options.widths
    }

    /// Wraps an integer to the width of integers.
    pub(crate) fn wrap(&self, value: i64) -> i64 {
        self.widths().wrap(value)
    }

    /// Rounds a float to the width of floats.
    pub(crate) fn round(&self, value: f64) -> f64 {
        self.widths().round(value)
    }
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
