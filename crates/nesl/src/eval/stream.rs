//! The open streams of a session.

use std::collections::BTreeMap;
use std::sync::Arc;

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

impl Files {
    pub(super) fn add(&mut self, stream: Stream) -> Result<i64, String> {
        if self.streams.len() >= MAX_STREAMS {
            return Err(format!("more than {MAX_STREAMS} streams are open"));
        }
        let free = (3..).find(|number| !self.streams.contains_key(number)).unwrap_or(i64::MAX);
        self.streams.insert(free, stream);
        Ok(free)
    }
}
