//! The open streams of a session.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::{fmt, io};

/// The open streams of a session. Streams below 3 are the console.
#[derive(Default)]
pub(super) struct Files {
    pub(super) streams: BTreeMap<i64, Stream>,
}

pub(super) enum Stream {
    /// The rest of a file, from a position on.
    In(Arc<[u8]>, usize),
    /// A file being written.
    Out(String),
    /// The input of a process that has not started, by the stream of its output.
    ProcessIn(i64),
    /// The output of a process: its command and its input, until the first read.
    ProcessOut(String, Vec<u8>),
}

/// Maximum number of open streams.
const MAX_STREAMS: usize = 256;

/// Failure of an operation on a stream. Programs receive it as a text.
#[derive(Clone, Debug)]
pub(crate) enum StreamError {
    /// The host failed, for this reason.
    Host(String),
    NotOpen,
    OpenForReading,
    OpenForWriting,
    ProcessEnded,
    TooMany,
    /// Text that does not start with the bracket of a vector.
    NoStart(char),
    /// Text of a vector that does not end with its bracket.
    NoEnd(char),
    /// Text that does not hold a value of the wanted type.
    OtherType,
}

impl From<io::Error> for StreamError {
    fn from(error: io::Error) -> StreamError {
        StreamError::Host(error.to_string())
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Host(reason) => f.write_str(reason),
            StreamError::NotOpen => f.write_str("the stream is not open"),
            StreamError::OpenForReading => f.write_str("the stream is open for reading"),
            StreamError::OpenForWriting => f.write_str("the stream is open for writing"),
            StreamError::ProcessEnded => f.write_str("the process has ended"),
            StreamError::TooMany => write!(f, "more than {MAX_STREAMS} streams are open"),
            StreamError::NoStart(bracket) => write!(f, "input error: a vector must start with {bracket}"),
            StreamError::OtherType => f.write_str("the text does not hold a value of this type"),
            StreamError::NoEnd(bracket) => write!(f, "input error: a vector must end with {bracket}"),
        }
    }
}

impl Files {
    pub(super) fn add(&mut self, stream: Stream) -> Result<i64, StreamError> {
        if self.streams.len() >= MAX_STREAMS {
            return Err(StreamError::TooMany);
        }
        let free = (3..).find(|number| !self.streams.contains_key(number)).unwrap_or(i64::MAX);
        self.streams.insert(free, stream);
        Ok(free)
    }
}
