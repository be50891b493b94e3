//! Results of lanes: memory that a stream of its own writes, and the events that other streams wait for.

use crate::expr::error::Result;
use broadloom_device::{Buffer, Device, Event, RawBuffer, Stream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Results of lanes that the stream of the context has not waited for yet.
#[derive(Debug, Default)]
pub(crate) struct LaneResults {
    /// True if there are any. Without lanes, no lock is taken.
    some: AtomicBool,
    known: Mutex<Vec<LaneResult>>,
}

/// Memory that a lane writes.
#[derive(Debug)]
struct LaneResult {
    memory: Weak<RawBuffer>,
    stream: Stream,
    event: Arc<Event>,
}

impl LaneResults {
    /// Makes a lane wait for all work that its context has submitted so far.
    pub(crate) fn fork(&self, device: &Device, lane: Stream) -> Result<()> {
        let event = device.event()?;
        event.record(Stream::default())?;
        Ok(event.hold_up(lane)?)
    }

    /// Records the buffers that a lane writes.
    pub(crate) fn note(&self, device: &Device, lane: Stream, buffers: &[Buffer<u8>]) -> Result<()> {
        let event = Arc::new(device.event()?);
        event.record(lane)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|result| result.memory.strong_count() > 0);
        let result =
            |buffer: &Buffer<u8>| LaneResult { memory: Arc::downgrade(buffer.raw()), stream: lane, event: event.clone() };
        known.extend(buffers.iter().map(result));
        self.some.store(true, Ordering::Release);
        Ok(())
    }

    /// Makes a stream wait for the lanes that write the buffers it is about to read.
    pub(crate) fn join<'b>(&self, stream: Stream, buffers: impl Iterator<Item = &'b Buffer<u8>>) -> Result<()> {
        if !self.some.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for buffer in buffers {
            let is_it =
                |result: &LaneResult| std::ptr::eq(result.memory.as_ptr(), Arc::as_ptr(buffer.raw())) && result.stream != stream;
            for result in known.iter().filter(|result| is_it(result)) {
                result.event.hold_up(stream)?;
            }
            if stream == Stream::default() {
                // Later work of the context runs after it, and so do lanes: they start after the work of the
                // context.
                known.retain(|result| !is_it(result));
            }
        }
        self.some.store(!known.is_empty(), Ordering::Release);
        Ok(())
    }
}
