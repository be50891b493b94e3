//! Streams, timers and vectors as text: `( 1 2 3 )`, segment descriptors `[ 2 1 ]`.

use super::{Machine, wrong_types};
use crate::eval::{Fault, Run, StreamError};
use crate::run::Entry;
use crate::vcode::{Op, Type};
use std::sync::Arc;
use std::time::Instant;

impl Machine<'_, '_, '_> {
    pub(super) fn outside(&mut self, op: Op, ty: Type) -> Run<Vec<Entry>> {
        let range = self.range(op.operands().len() as u32, 0)?;
        let operands: Vec<Entry> = self.stack.drain(range).collect();
        match (op, &operands[..]) {
            (Op::StartTimer, []) => {
                *self.world.timer() = Instant::now();
                Ok(vec![])
            }
            (Op::StopTimer, []) => {
                let seconds = self.world.timer().elapsed().as_secs_f64();
                let seconds = self.world.round(seconds);
                Ok(vec![self.floats(vec![seconds])?])
            }
            (Op::SeedRandom, [seed]) => {
                let seed = scalar(op, seed)?;
                self.world.seed(seed);
                Ok(vec![self.bools(vec![true])?])
            }
            (Op::Read, []) => self.read(0, ty),
            (Op::ReadFrom, [stream]) => {
                let stream = scalar(op, stream)?;
                self.read(stream, ty)
            }
            (Op::Write, [values]) => self.write(2, values, ty),
            (Op::WriteTo, [values, stream]) => {
                let stream = scalar(op, stream)?;
                self.write(stream, values, ty)
            }
            (Op::Open, [name, mode]) => {
                let mode = scalar(op, mode)?;
                let name = String::from_utf8_lossy(&text(op, name)?).into_owned();
                if !(1..=3).contains(&mode) {
                    return Fault::at_run_time(format!("FOPEN has the modes 1 to 3, this is {mode}"));
                }
                let opened = self.world.open(&name, mode);
                let stream = self.ints(vec![*opened.as_ref().unwrap_or(&-1)])?;
                self.status(vec![stream], opened.map(|_| ()))
            }
            (Op::Close, [stream]) => {
                let closed = self.world.close(scalar(op, stream)?);
                self.status(vec![], closed)
            }
            (Op::ReadChars, [delimiters, limit, stream]) => {
                let limit = usize::try_from(scalar(op, limit)?).unwrap_or(usize::MAX);
                let read = self.world.read_until(scalar(op, stream)?, &text(op, delimiters)?, limit);
                let (bytes, end) = read.clone().unwrap_or((Arc::default(), -1));
                let bytes = self.bytes(bytes)?;
                let end = self.ints(vec![end])?;
                self.status(vec![bytes, end], read.map(|_| ()))
            }
            (Op::Spawn, [command, input, output, error]) => {
                let command = String::from_utf8_lossy(&text(op, command)?).into_owned();
                let streams = (scalar(op, input)?, scalar(op, output)?, scalar(op, error)?);
                let started = self.world.start_process(&command, streams.0, streams.1);
                let (input, output) = *started.as_ref().unwrap_or(&(-1, -1));
                let streams = [streams.2, output, input];
                let streams = streams.into_iter().map(|stream| self.ints(vec![stream])).collect::<Run<Vec<Entry>>>()?;
                self.status(streams, started.map(|_| ()))
            }
            _ => wrong_types(op, &operands),
        }
    }

    /// Appends the message and the flag that end the results of operations on streams.
    fn status(&mut self, mut results: Vec<Entry>, outcome: Result<(), StreamError>) -> Run<Vec<Entry>> {
        let message = outcome.as_ref().err().map(StreamError::to_string).unwrap_or_default();
        results.push(self.bytes(message.as_bytes().into())?);
        results.push(self.bools(vec![outcome.is_ok()])?);
        Ok(results)
    }

    fn write(&mut self, stream: i64, values: &Entry, ty: Type) -> Run<Vec<Entry>> {
        let bytes = match (ty, values) {
            (Type::Char, _) => text(Op::Write, values)?,
            (_, Entry::Pair(_)) => return wrong_types(Op::Write, std::slice::from_ref(values)),
            _ => show(values).into_bytes(),
        };
        let written = self.world.write_stream(stream, &bytes);
        self.status(vec![], written)
    }

    fn read(&mut self, stream: i64, ty: Type) -> Run<Vec<Entry>> {
        let outcome = self.world.rest(stream).and_then(|(bytes, at)| {
            let mut reader = Reader { bytes: &bytes, at };
            let words = reader.vector(ty);
            self.world.advance(stream, reader.at);
            words
        });
        let words = outcome.clone().unwrap_or_default();
        let entry = match ty {
            Type::Int => self.ints(words.iter().map(|word| self.world.wrap(word.parse().unwrap_or(0))).collect())?,
            Type::Float => self.floats(words.iter().map(|word| word.parse().unwrap_or(0.0)).collect())?,
            Type::Bool => self.bools(words.iter().map(|word| word == "T").collect())?,
            Type::Segdes => self.segdes(words.iter().map(|word| word.parse::<i64>().unwrap_or(0).max(0)).collect())?,
            Type::Char => self.bytes(words.concat().into_bytes().into())?,
        };
        self.status(vec![entry], outcome.map(|_| ()))
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.byte().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Reads a vector as words.
    fn vector(&mut self, ty: Type) -> Result<Vec<String>, StreamError> {
        let (open, close) = match ty {
            Type::Int | Type::Float | Type::Bool => (b'(', b')'),
            Type::Segdes => (b'[', b']'),
            Type::Char => (b'"', b'"'),
        };
        self.blanks();
        if self.byte() != Some(open) {
            return Err(StreamError::NoStart(char::from(open)));
        }
        self.at += 1;
        let mut words = vec![];
        loop {
            if ty != Type::Char {
                self.blanks();
            }
            let start = self.at;
            let ends = |byte: u8| byte == close || (ty != Type::Char && byte.is_ascii_whitespace());
            while self.byte().is_some_and(|byte| !ends(byte)) {
                self.at += 1;
            }
            let word = String::from_utf8_lossy(&self.bytes[start..self.at]).into_owned();
            let good = match ty {
                Type::Int | Type::Segdes => word.parse::<i64>().is_ok(),
                Type::Float => word.parse::<f64>().is_ok(),
                Type::Bool => word == "T" || word == "F",
                Type::Char => true,
            };
            if start < self.at && good {
                words.push(word);
            } else if self.byte() == Some(close) && start == self.at {
                self.at += 1;
                return Ok(words);
            } else {
                return Err(StreamError::NoEnd(char::from(close)));
            }
        }
    }
}

fn scalar(op: Op, entry: &Entry) -> Run<i64> {
    match entry {
        Entry::Int(values) if values.len() == 1 => Ok(values[0]),
        _ => Fault::at_run_time(format!("{} needs one INT, this is {} with {}", op.name(), entry.type_name(), entry.len())),
    }
}

fn text(op: Op, entry: &Entry) -> Run<Vec<u8>> {
    match entry {
        Entry::Int(_) | Entry::Bytes(_) => Ok(entry.text().unwrap_or_default().to_vec()),
        _ => wrong_types(op, std::slice::from_ref(entry)),
    }
}

/// Writes an entry as text, with a newline.
pub(super) fn show(entry: &Entry) -> String {
    let list = |words: Vec<String>, open: char, close: char| {
        let words: String = words.iter().map(|word| format!(" {word}")).collect();
        format!("{open}{words} {close}\n")
    };
    match entry {
        Entry::Int(values) => list(values.iter().map(ToString::to_string).collect(), '(', ')'),
        Entry::Bytes(values) => list(values.iter().map(ToString::to_string).collect(), '(', ')'),
        Entry::Float(values) => list(values.iter().map(|&value| float(value)).collect(), '(', ')'),
        Entry::Bool(values) => list(values.iter().map(|&value| if value { "T" } else { "F" }.to_owned()).collect(), '(', ')'),
        Entry::Segdes(segments) => list(segments.lengths.iter().map(ToString::to_string).collect(), '[', ']'),
        Entry::Pair(parts) => format!("pair({},{})\n", parts.0.type_name(), parts.1.type_name()),
        // The machine copies vectors to the host before it prints them.
        Entry::Device(_) | Entry::DeviceSegdes(_) => format!("{}\n", entry.type_name()),
    }
}

/// Writes a float with 14 digits after the point and an exponent of at least two digits, like C's `%.14e`.
fn float(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "nan".to_owned() } else { format!("{value}") };
    }
    let text = format!("{value:.14e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}
