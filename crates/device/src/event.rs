//! Owned streams and events, destroyed on drop.

use crate::{Device, EventId, Result, Stream, trace};
use std::time::Duration;

/// Owned stream, destroyed on drop. Its pending work is still done.
#[derive(Debug)]
pub struct OwnedStream {
    device: Device,
    stream: Stream,
}

impl OwnedStream {
    pub(crate) fn new(device: &Device) -> Result<OwnedStream> {
        Ok(OwnedStream { stream: device.backend().create_stream()?, device: device.clone() })
    }

    /// Returns the stream, for launches and copies.
    pub fn id(&self) -> Stream {
        self.stream
    }

    /// Waits for its work. Any error of the work is returned here at the latest.
    pub fn synchronise(&self) -> Result<()> {
        let _span = trace::span("wait for a stream");
        self.device.backend().synchronise_stream(self.stream)
    }
}

impl Drop for OwnedStream {
    fn drop(&mut self) {
        // A destructor cannot report an error.
        let _ = self.device.backend().destroy_stream(self.stream);
    }
}

/// Owned event, destroyed on drop.
#[derive(Debug)]
pub struct Event {
    device: Device,
    event: EventId,
}

impl Event {
    pub(crate) fn new(device: &Device) -> Result<Event> {
        Ok(Event { event: device.backend().create_event()?, device: device.clone() })
    }

    /// Records it after all work submitted to a stream so far.
    pub fn record(&self, stream: Stream) -> Result<()> {
        self.device.backend().record_event(self.event, stream)
    }

    /// Makes later work of a stream wait for it.
    pub fn hold_up(&self, stream: Stream) -> Result<()> {
        self.device.backend().wait_event(stream, self.event)
    }

    /// Tests without waiting if it has completed.
    pub fn has_happened(&self) -> Result<bool> {
        self.device.backend().query_event(self.event)
    }

    /// Waits until it has completed.
    pub fn synchronise(&self) -> Result<()> {
        let _span = trace::span("wait for an event");
        self.device.backend().synchronise_event(self.event)
    }

    /// Returns the time since another event as measured by the device. Waits for both.
    pub fn since(&self, start: &Event) -> Result<Duration> {
        let _span = trace::span("wait for an event");
        self.device.backend().elapsed(start.event, self.event)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // A destructor cannot report an error.
        let _ = self.device.backend().destroy_event(self.event);
    }
}
