//! Streams and events that are given back when they are dropped.

use crate::{Device, EventId, Result, Stream, trace};
use std::time::Duration;

/// A stream of one's own, given back when it is dropped; its work is done all the same.
#[derive(Debug)]
pub struct OwnedStream {
    device: Device,
    stream: Stream,
}

impl OwnedStream {
    pub(crate) fn new(device: &Device) -> Result<OwnedStream> {
        Ok(OwnedStream { stream: device.backend().create_stream()?, device: device.clone() })
    }

    /// The stream, for launches and copies.
    pub fn id(&self) -> Stream {
        self.stream
    }

    /// Waits for its work; an error of any of it comes back here at the latest.
    pub fn synchronise(&self) -> Result<()> {
        let _span = trace::span("wait for a stream");
        self.device.backend().synchronise_stream(self.stream)
    }
}

impl Drop for OwnedStream {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.device.backend().destroy_stream(self.stream);
    }
}

/// A point in a stream, given back when it is dropped.
#[derive(Debug)]
pub struct Event {
    device: Device,
    event: EventId,
}

impl Event {
    pub(crate) fn new(device: &Device) -> Result<Event> {
        Ok(Event { event: device.backend().create_event()?, device: device.clone() })
    }

    /// Puts it behind all work that a stream was given so far.
    pub fn record(&self, stream: Stream) -> Result<()> {
        self.device.backend().record_event(self.event, stream)
    }

    /// Makes later work of a stream wait for it.
    pub fn hold_up(&self, stream: Stream) -> Result<()> {
        self.device.backend().wait_event(stream, self.event)
    }

    /// Whether it has happened, without waiting.
    pub fn has_happened(&self) -> Result<bool> {
        self.device.backend().query_event(self.event)
    }

    /// Waits until it has happened.
    pub fn synchronise(&self) -> Result<()> {
        let _span = trace::span("wait for an event");
        self.device.backend().synchronise_event(self.event)
    }

    /// The time since another event as the device measured it. Waits for both.
    pub fn since(&self, start: &Event) -> Result<Duration> {
        let _span = trace::span("wait for an event");
        self.device.backend().elapsed(start.event, self.event)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.device.backend().destroy_event(self.event);
    }
}
