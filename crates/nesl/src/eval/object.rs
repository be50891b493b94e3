//! Values in files: words between blanks. A sequence is `( n e … e )`; a character is its code.

use super::fault::Run;
use super::{Evaluation, StreamError, Value};
use crate::core::Primitive;
use crate::types::{Base, Type, TypeId};

impl Evaluation<'_> {
    pub(super) fn object(&mut self, primitive: Primitive, argument: Value, result: TypeId) -> Run<Value> {
        let (value, stream) = argument.parts();
        let stream = stream.int();
        if primitive == Primitive::WriteObject {
            let mut text = String::new();
            write(value, &mut text);
            text.push('\n');
            let written = self.write_stream(stream, text.as_bytes());
            return self.status(written);
        }
        let (bytes, at) = match self.rest(stream) {
            Ok(rest) => rest,
            Err(message) => {
                let neutral = if primitive == Primitive::ReadObject { value.clone() } else { self.seq(vec![])? };
                let status = self.status(Err(message))?;
                return Ok(Value::pair(neutral, status));
            }
        };
        let mut words = Words { bytes: &bytes, at };
        let read = if primitive == Primitive::ReadObject {
            let Type::Pair(ty, _) = self.env.types[result] else { return Ok(argument) };
            self.read(&mut words, ty)?
        } else {
            self.numbers(&mut words, matches!(value, Value::Float(_)))?
        };
        let end = words.at;
        self.advance(stream, end);
        let found = read.is_some();
        let value = match read {
            Some(read) => read,
            None if primitive == Primitive::ReadObject => value.clone(),
            None => self.seq(vec![])?,
        };
        let status = self.status(if found { Ok(()) } else { Err(StreamError::OtherType) })?;
        Ok(Value::pair(value, status))
    }

    fn read(&mut self, words: &mut Words<'_>, ty: TypeId) -> Run<Option<Value>> {
        Ok(match self.env.types[ty].clone() {
            Type::Base(base) => words.next().and_then(|word| scalar(word, base)).map(|value| self.fitted(value)),
            Type::Pair(first, rest) => {
                let Some(first) = self.read(words, first)? else { return Ok(None) };
                self.read(words, rest)?.map(|rest| Value::pair(first, rest))
            }
            Type::Seq(element) => {
                let count = if words.next() == Some("(") { words.next() } else { None };
                let Some(count) = count.and_then(|word| word.parse::<usize>().ok()) else { return Ok(None) };
                // Every element takes at least one byte, so a wrong count cannot cause a large allocation.
                if count > words.bytes.len() {
                    return Ok(None);
                }
                let mut values = Vec::with_capacity(count);
                for _ in 0..count {
                    let Some(value) = self.read(words, element)? else { return Ok(None) };
                    values.push(value);
                }
                let closed = words.next() == Some(")");
                let values = self.seq(values)?;
                closed.then_some(values)
            }
            Type::Data(datatype, parts) => {
                let content = self.env.datatypes[datatype].content;
                let content = crate::core::Instantiate::new(&mut self.env.types, &parts).ty(content);
                self.read(words, content)?
            }
            Type::Function { .. } | Type::Variable(_) | Type::Definition(_) | Type::Closure(..) => None,
        })
    }

    fn fitted(&self, value: Value) -> Value {
        match value {
            Value::Int(value) => Value::Int(self.wrap(value)),
            Value::Float(value) => Value::Float(self.round(value)),
            other => other,
        }
    }

    /// Reads `( n n n )`.
    fn numbers(&mut self, words: &mut Words<'_>, float: bool) -> Run<Option<Value>> {
        if words.next() != Some("(") {
            return Ok(None);
        }
        let mut values = vec![];
        loop {
            let Some(word) = words.next() else { return Ok(None) };
            if word == ")" {
                return self.seq(values).map(Some);
            }
            let base = if float { Base::Float } else { Base::Int };
            let Some(value) = scalar(word, base) else { return Ok(None) };
            values.push(self.fitted(value));
        }
    }
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Int(value) => out.push_str(&value.to_string()),
        Value::Float(value) => out.push_str(&format!("{value:?}")),
        Value::Bool(value) => out.push(if *value { 'T' } else { 'F' }),
        Value::Char(value) => out.push_str(&value.to_string()),
        Value::Pair(parts) => {
            write(&parts.0, out);
            out.push(' ');
            write(&parts.1, out);
        }
        Value::Seq(values) => {
            out.push_str(&format!("( {}", values.len()));
            for value in values.iter() {
                out.push(' ');
                write(value, out);
            }
            out.push_str(" )");
        }
        Value::Function(_) => out.push('F'),
    }
}

fn scalar(word: &str, base: Base) -> Option<Value> {
    match base {
        Base::Int => word.parse().ok().map(Value::Int),
        Base::Float => word.parse().ok().map(Value::Float),
        Base::Bool => match word {
            "T" | "t" => Some(Value::Bool(true)),
            "F" | "f" => Some(Value::Bool(false)),
            _ => None,
        },
        Base::Char => word.parse().ok().map(Value::Char),
    }
}

/// Words of a text; parentheses are separate words.
struct Words<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a str> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        let start = self.at;
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'(' | b')');
        while self.bytes.get(self.at).is_some_and(|byte| !ends(byte)) {
            self.at += 1;
        }
        if self.at == start && self.at < self.bytes.len() {
            self.at += 1;
        }
        std::str::from_utf8(&self.bytes[start..self.at]).ok().filter(|word| !word.is_empty())
    }
}
