//! Primitives on values of any type.

use super::fault::{Fault, Run};
use super::number::digits;
use super::{Evaluation, Value, format_float};
use crate::codes;
use crate::core::Primitive;

impl Evaluation<'_> {
    pub(super) fn generic(&mut self, primitive: Primitive, argument: Value) -> Run<Value> {
        match primitive {
            Primitive::Eql => {
                let (a, b) = argument.parts();
                Ok(Value::Bool(equal(a, b)))
            }
            Primitive::Identity => self.neutral(&argument),
            Primitive::HashCode => Ok(Value::Int(self.wrap(hash(&argument)))),
            Primitive::Show => {
                let mut text = vec![];
                self.string(&argument, true, &mut text);
                self.text(&text)
            }
            Primitive::Digits => {
                let (value, count) = argument.parts();
                let (text, point) = digits(value.float(), count.int().clamp(1, 40) as usize);
                Ok(Value::pair(self.text(text.as_bytes())?, Value::Int(point)))
            }
            Primitive::Decimal => Ok(Value::Float(self.round(argument.text().parse().unwrap_or(0.0)))),
            Primitive::Require => {
                let (holds, message) = argument.parts();
                if holds.bool() { Ok(Value::Bool(true)) } else { Fault::at_run_time(message.text()) }
            }
            _ => Err(Fault::new(codes::USER_ERROR, argument.text())),
        }
    }

    /// Returns the neutral value of the type of a value.
    fn neutral(&mut self, value: &Value) -> Run<Value> {
        Ok(match value {
            Value::Int(_) => Value::Int(0),
            Value::Float(_) => Value::Float(0.0),
            Value::Bool(_) => Value::Bool(false),
            Value::Char(_) => Value::Char(b' '),
            Value::Pair(parts) => Value::pair(self.neutral(&parts.0)?, self.neutral(&parts.1)?),
            Value::Seq(_) => self.seq(vec![])?,
            Value::Function(_) => value.clone(),
        })
    }

    /// Writes a value like `@`: strings as sequences of characters, right parts of tuples without
    /// parentheses.
    fn string(&self, value: &Value, parentheses: bool, out: &mut Vec<u8>) {
        match value {
            Value::Int(value) => out.extend(value.to_string().bytes()),
            Value::Float(value) => out.extend(self.float_string(*value).bytes()),
            Value::Bool(value) => out.push(if *value { b't' } else { b'f' }),
            Value::Char(value) => out.extend([b'`', *value]),
            Value::Pair(parts) => {
                out.extend(parentheses.then_some(b'('));
                self.string(&parts.0, true, out);
                out.extend(b", ");
                self.string(&parts.1, false, out);
                out.extend(parentheses.then_some(b')'));
            }
            Value::Seq(values) => {
                out.push(b'[');
                for (index, value) in values.iter().enumerate() {
                    out.extend_from_slice(if index == 0 { b"" } else { b", " });
                    self.string(value, true, out);
                }
                out.push(b']');
            }
            Value::Function(_) => out.extend(b"function"),
        }
    }

    /// Writes a float with eight significant digits.
    fn float_string(&self, value: f64) -> String {
        if value == 0.0 || !value.is_finite() {
            return format_float(value.abs(), false);
        }
        let sign = if value < 0.0 { "-" } else { "" };
        let (digits, point) = digits(value.abs(), 8);
        let stripped = |text: &str| {
            let text = text.trim_end_matches('0');
            if text.is_empty() { "0".to_owned() } else { text.to_owned() }
        };
        if !(-2..=7).contains(&point) {
            let exponent = point - 1;
            return format!("{sign}{}.{}e{exponent:+}", &digits[..1], stripped(&digits[1..]));
        }
        if point < 1 {
            return format!("{sign}0.{}{}", "0".repeat(-point as usize), stripped(&digits));
        }
        let point = point as usize;
        format!("{sign}{}.{}", &digits[..point], stripped(&digits[point..]))
    }
}

/// Compares two values of one type part by part. All functions of one type are equal.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Char(a), Value::Char(b)) => a == b,
        (Value::Pair(a), Value::Pair(b)) => equal(&a.0, &b.0) && equal(&a.1, &b.1),
        (Value::Seq(a), Value::Seq(b)) if a.text().is_some() && b.text().is_some() => a.text() == b.text(),
        (Value::Seq(a), Value::Seq(b)) => a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| equal(a, b)),
        _ => true,
    }
}

/// Hashes a value: equal values have equal hashes. The hash of a sequence is a sum, so that
/// flattened code can compute it.
fn hash(value: &Value) -> i64 {
    const ODD: i64 = 0x2545_F491;
    match value {
        Value::Int(value) => *value,
        // Zeros of both signs are equal.
        Value::Float(value) => {
            let bits = if *value == 0.0 { 0 } else { value.to_bits() as i64 };
            bits ^ (bits >> 32)
        }
        Value::Bool(value) => i64::from(*value),
        Value::Char(value) => i64::from(*value),
        Value::Pair(parts) => hash(&parts.0).wrapping_add(hash(&parts.1).wrapping_add(1).wrapping_mul(ODD)),
        Value::Seq(values) => {
            let mut sum = values.len() as i64;
            let mut add = |index: usize, own: i64| {
                let weight = (index as i64).wrapping_mul(0x5851_F42D).wrapping_add(ODD);
                sum = sum.wrapping_add(own.wrapping_add(1).wrapping_mul(weight.wrapping_mul(weight)));
            };
            match values.text() {
                Some(text) => text.iter().enumerate().for_each(|(index, code)| add(index, i64::from(*code))),
                None => values.iter().enumerate().for_each(|(index, value)| add(index, hash(value))),
            }
            sum
        }
        Value::Function(_) => 0,
    }
}
