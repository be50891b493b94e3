//! Printing of values at the top level. The type distinguishes strings and datatypes.

use super::{Value, format_float};
use crate::core::{Environment, Instantiate};
use crate::types::{Base, Type, TypeId};

/// Number of characters of a string that are printed for each printed element of other sequences.
const CHARACTERS: usize = 100;

/// Prints a value of a type. At most `limit` elements of each sequence are printed, and 100 times as many
/// characters of a string.
pub fn show_value(env: &mut Environment, value: &Value, ty: TypeId, limit: usize, narrow: bool) -> String {
    let mut shower = ValuePrinter { env, limit, narrow, out: String::new() };
    shower.show(value, ty, true);
    shower.out
}

struct ValuePrinter<'a> {
    env: &'a mut Environment,
    limit: usize,
    narrow: bool,
    out: String,
}

impl ValuePrinter<'_> {
    fn show(&mut self, value: &Value, ty: TypeId, parentheses: bool) {
        if let Type::Data(datatype, parts) = self.env.types[ty].clone() {
            let data = self.env.datatypes[datatype].clone();
            let content = Instantiate::new(&mut self.env.types, &parts).ty(data.content);
            self.out.push_str(data.name.as_str());
            self.out.push('(');
            self.show(value, content, false);
            self.out.push(')');
            return;
        }
        match value {
            Value::Int(value) => self.out.push_str(&value.to_string()),
            Value::Float(value) => {
                let text = format_float(*value, self.narrow);
                self.out.push_str(&text);
            }
            Value::Bool(value) => self.out.push(if *value { 'T' } else { 'F' }),
            Value::Char(value) => {
                self.out.push('`');
                self.out.push_str(&String::from_utf8_lossy(&[*value]));
            }
            Value::Pair(pair) => {
                let Type::Pair(first, rest) = self.env.types[ty] else { return };
                self.out.push_str(if parentheses { "(" } else { "" });
                self.show(&pair.0, first, true);
                self.out.push_str(", ");
                self.show(&pair.1, rest, false);
                self.out.push_str(if parentheses { ")" } else { "" });
            }
            Value::Seq(values) => {
                let Type::Seq(element) = self.env.types[ty] else { return };
                if self.env.types[element] == Type::Base(Base::Char) {
                    let text = value.bytes();
                    let limit = self.limit.saturating_mul(CHARACTERS);
                    let shown = String::from_utf8_lossy(&text[..text.len().min(limit)]);
                    self.out.push('"');
                    self.out.push_str(&shown.replace('\\', "\\\\").replace('"', "\\\""));
                    self.out.push_str(if text.len() > limit { "\"..." } else { "\"" });
                } else {
                    self.elements(values, element);
                }
            }
            Value::Function(_) => self.out.push_str("fn"),
        }
    }

    fn elements(&mut self, values: &[Value], element: TypeId) {
        if self.limit == 0 && !values.is_empty() {
            return self.out.push_str("[...]");
        }
        self.out.push('[');
        for (index, value) in values.iter().take(self.limit).enumerate() {
            self.out.push_str(if index == 0 { "" } else { ", " });
            self.show(value, element, true);
        }
        self.out.push_str(if values.len() > self.limit { ",...]" } else { "]" });
    }
}
