//! Events: points in streams that programs wait for and take times between.

use crate::graphs::Captured;
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use broadloom_device::EventId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// An event was made without times.
pub(crate) const DISABLE_TIMING: u32 = 2;
/// All flags that there are.
const FLAGS: u32 = 7;

/// An event.
#[derive(Debug)]
pub(crate) struct Event {
    id: EventId,
    flags: u32,
    recorded: AtomicBool,
    /// Where it stands in a capture, when it was last recorded in one.
    pub(crate) captured: Mutex<Option<Captured>>,
}

impl Event {
    /// The executor's event.
    pub(crate) fn id(&self) -> EventId {
        self.id
    }

    /// Whether it was recorded at all.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorded.load(Ordering::Relaxed)
    }

    /// It is recorded now, in no capture.
    pub(crate) fn note_recorded(&self) {
        self.recorded.store(true, Ordering::Relaxed);
        *self.captured.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn in_capture(&self) -> bool {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl Runtime {
    /// A new event.
    pub(crate) fn create_event(&self, flags: u32) -> Outcome<usize> {
        if flags & !FLAGS != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let id = self.judge(self.device()?.backend().create_event())?;
        Ok(self.events.insert(Event { id, flags, recorded: AtomicBool::new(false), captured: Mutex::new(None) }))
    }

    /// Gives an event back.
    pub(crate) fn destroy_event(&self, handle: usize) -> Outcome {
        let opened = self.device()?;
        let event = self.events.remove(handle)?;
        self.judge(opened.backend().destroy_event(event.id))
    }

    /// Whether an event has happened.
    pub(crate) fn query_event(&self, handle: usize) -> Outcome {
        let opened = self.device()?;
        let event = self.events.get(handle)?;
        if event.in_capture() {
            return Err(Status::CAPTURED_EVENT);
        }
        match self.judge(opened.backend().query_event(event.id))? {
            true => Ok(()),
            false => Err(Status::NOT_READY),
        }
    }

    /// Waits for an event.
    pub(crate) fn wait_for_event(&self, handle: usize) -> Outcome {
        let opened = self.device()?;
        let event = self.events.get(handle)?;
        if event.in_capture() {
            return Err(Status::CAPTURED_EVENT);
        }
        self.judge(opened.backend().synchronise_event(event.id))
    }

    /// Milliseconds between two events.
    pub(crate) fn elapsed(&self, start: usize, end: usize) -> Outcome<f32> {
        let opened = self.device()?;
        let (start, end) = (self.events.get(start)?, self.events.get(end)?);
        let timed = |event: &Arc<Event>| event.flags & DISABLE_TIMING == 0 && event.is_recorded();
        if !timed(&start) || !timed(&end) {
            return Err(Status::INVALID_HANDLE);
        }
        for event in [&start, &end] {
            if !self.judge(opened.backend().query_event(event.id))? {
                return Err(Status::NOT_READY);
            }
        }
        let there = self.judge(opened.backend().elapsed(start.id, end.id))?;
        if there.is_zero() {
            let back = self.judge(opened.backend().elapsed(end.id, start.id))?;
            return Ok(-(back.as_secs_f64() * 1e3) as f32);
        }
        Ok((there.as_secs_f64() * 1e3) as f32)
    }
}
