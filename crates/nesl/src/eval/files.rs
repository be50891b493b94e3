//! Streams, processes and the console.

use super::fault::Run;
use super::stream::{Stream, StreamError};
use super::{Evaluation, Value};
use crate::core::Primitive;
use std::sync::Arc;
use std::time::Instant;

impl Evaluation<'_> {
    pub(super) fn outside(&mut self, primitive: Primitive, argument: Value) -> Run<Value> {
        match primitive {
            Primitive::PrintString => {
                (self.out)(&argument.bytes());
                Ok(Value::Bool(true))
            }
            Primitive::Open => {
                let (path, mode) = argument.parts();
                let opened = self.open(&path.text(), mode.int());
                let stream = Value::Int(*opened.as_ref().unwrap_or(&-1));
                let status = self.status(opened.map(|_| ()))?;
                Ok(Value::pair(stream, status))
            }
            Primitive::Close => {
                let closed = self.close(argument.int());
                self.status(closed)
            }
            Primitive::Write => {
                let (text, stream) = argument.parts();
                let written = self.write_stream(stream.int(), &text.bytes());
                self.status(written)
            }
            Primitive::Read => {
                let (delimiters, limit, stream) = argument.three();
                let limit = usize::try_from(limit.int()).unwrap_or(usize::MAX);
                let read = self.read_until(stream.int(), &delimiters.bytes(), limit);
                let (read, status) = match read {
                    Ok(read) => (read, Ok(())),
                    Err(message) => ((Arc::default(), -1), Err(message)),
                };
                let value = Value::pair(self.shared_text(read.0)?, Value::Int(read.1));
                let status = self.status(status)?;
                Ok(Value::pair(value, status))
            }
            Primitive::Spawn => self.spawn(argument),
            Primitive::EnvironmentVariable => {
                let value = self.host.environment_variable(&argument.text());
                self.text(value.as_bytes())
            }
            Primitive::StartTimer => {
                self.state.timer = Instant::now();
                Ok(argument)
            }
            _ => Ok(Value::Float(self.round(self.state.timer.elapsed().as_secs_f64()))),
        }
    }

    /// Prints bytes.
    pub(crate) fn print(&mut self, bytes: &[u8]) {
        (self.out)(bytes);
    }

    /// Makes the pair of a flag and a message that ends the result of every operation on streams.
    pub(super) fn status(&mut self, result: Result<(), StreamError>) -> Run<Value> {
        let message = result.as_ref().err().map(StreamError::to_string).unwrap_or_default();
        let message = self.text(message.as_bytes())?;
        Ok(Value::pair(Value::Bool(result.is_ok()), message))
    }

    pub(crate) fn close(&mut self, stream: i64) -> Result<(), StreamError> {
        let known = self.state.files.streams.remove(&stream).is_some() || (0..3).contains(&stream);
        if known { Ok(()) } else { Err(StreamError::NotOpen) }
    }

    pub(crate) fn open(&mut self, path: &str, mode: i64) -> Result<i64, StreamError> {
        let stream = match mode {
            1 => Stream::In(self.host.read_file(path)?.into(), 0),
            _ => {
                self.host.write_file(path, b"", mode == 3)?;
                Stream::Out(path.to_owned())
            }
        };
        self.state.files.add(stream)
    }

    pub(crate) fn write_stream(&mut self, stream: i64, bytes: &[u8]) -> Result<(), StreamError> {
        if stream == 1 || stream == 2 {
            (self.out)(bytes);
            return Ok(());
        }
        match self.state.files.streams.get(&stream) {
            Some(Stream::Out(path)) => Ok(self.host.write_file(path, bytes, true)?),
            Some(&Stream::ProcessIn(output)) => match self.state.files.streams.get_mut(&output) {
                Some(Stream::ProcessOut(_, input)) => {
                    input.extend_from_slice(bytes);
                    Ok(())
                }
                _ => Err(StreamError::ProcessEnded),
            },
            Some(_) => Err(StreamError::OpenForReading),
            None => Err(StreamError::NotOpen),
        }
    }

    /// Returns the remaining bytes of a stream. A process runs when its output is first read.
    pub(crate) fn rest(&mut self, stream: i64) -> Result<(Arc<[u8]>, usize), StreamError> {
        if let Some(Stream::ProcessOut(command, input)) = self.state.files.streams.get(&stream) {
            let output = self.host.run_command(command, input)?;
            self.state.files.streams.insert(stream, Stream::In(output.into(), 0));
        }
        match self.state.files.streams.get(&stream) {
            Some(Stream::In(bytes, at)) => Ok((bytes.clone(), *at)),
            Some(_) => Err(StreamError::OpenForWriting),
            None if stream == 0 => {
                let line = self.host.read_console()?;
                self.state.files.streams.insert(0, Stream::In(line.into(), 0));
                self.rest(0)
            }
            None => Err(StreamError::NotOpen),
        }
    }

    /// Moves the position of a stream. A console line that was read completely is dropped.
    pub(crate) fn advance(&mut self, stream: i64, to: usize) {
        match self.state.files.streams.get_mut(&stream) {
            Some(Stream::In(bytes, _)) if stream == 0 && to >= bytes.len() => {
                self.state.files.streams.remove(&0);
            }
            Some(Stream::In(_, at)) => *at = to,
            _ => {}
        }
    }

    /// Reads up to a delimiter. The delimiter is consumed and returned as its code; -1 is the end, -2 the
    /// limit.
    pub(crate) fn read_until(&mut self, stream: i64, delimiters: &[u8], limit: usize) -> Result<(Arc<[u8]>, i64), StreamError> {
        let (bytes, at) = self.rest(stream)?;
        let rest = &bytes[at..];
        let length = match delimiters {
            [] => rest.len(),
            _ => rest.iter().position(|byte| delimiters.contains(byte)).unwrap_or(rest.len()),
        };
        let (length, end, taken) = if limit < length || (limit == length && length == rest.len() && limit > 0) {
            (limit, -2, limit)
        } else if length == rest.len() {
            (length, -1, length)
        } else {
            (length, i64::from(rest[length]), length + 1)
        };
        // A whole file is not copied.
        let text = if length == bytes.len() { bytes.clone() } else { rest[..length].into() };
        self.advance(stream, at + taken);
        Ok((text, end))
    }

    fn spawn(&mut self, argument: Value) -> Run<Value> {
        let (command, streams) = argument.parts();
        let (input, output, error) = streams.three();
        let (input, output, error) = (input.int(), output.int(), error.int());
        let started = self.start_process(&command.text(), input, output);
        let (opened_in, opened_out) = *started.as_ref().unwrap_or(&(-1, -1));
        let streams = Value::pair(Value::Int(opened_in), Value::pair(Value::Int(opened_out), Value::Int(error)));
        let status = self.status(started.map(|_| ()))?;
        Ok(Value::pair(streams, status))
    }

    pub(crate) fn start_process(&mut self, command: &str, input: i64, output: i64) -> Result<(i64, i64), StreamError> {
        let given = if input >= 0 {
            let (bytes, at) = self.rest(input)?;
            self.advance(input, bytes.len());
            bytes[at..].to_vec()
        } else {
            vec![]
        };
        if output >= 0 {
            let text = self.host.run_command(command, &given)?;
            self.write_stream(output, &text)?;
            return Ok((input, output));
        }
        let opened = self.state.files.add(Stream::ProcessOut(command.to_owned(), given))?;
        let input = if input >= 0 { input } else { self.state.files.add(Stream::ProcessIn(opened))? };
        Ok((input, opened))
    }
}
