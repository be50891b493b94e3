//! Events: points in streams for waiting and for measuring time.

use crate::objects::shared_files::SharedEvent;
use crate::objects::work::Event;
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// Flag: the event records no time.
pub(crate) const DISABLE_TIMING: u32 = 2;
/// Flag: the event can be shared with other processes.
const INTERPROCESS: u32 = 4;
/// Mask of all valid flags.
const FLAGS: u32 = 7;

impl Runtime {
    pub(crate) fn create_event(&self, flags: u32) -> Outcome<usize> {
        if flags & !FLAGS != 0 {
            return Err(Status::INVALID_VALUE);
        }
        // Events shared between processes have no time.
        if flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let shares = flags & INTERPROCESS != 0 && self.device()?.unified;
        let shared = if shares { Some(SharedEvent::create()?) } else { None };
        self.add_event(flags, shared)
    }

    /// Opens an event of another process.
    pub(crate) fn import_event(&self, shared: SharedEvent) -> Outcome<usize> {
        self.add_event(INTERPROCESS | DISABLE_TIMING, Some(shared))
    }

    fn add_event(&self, flags: u32, shared: Option<SharedEvent>) -> Outcome<usize> {
        let id = self.judge(self.device()?.backend().create_event())?;
        let event = Event { id, flags, recorded: AtomicBool::new(false), shared, captured: Mutex::new(None) };
        Ok(self.events.insert(event))
    }

    pub(crate) fn destroy_event(&self, handle: usize) -> Outcome {
        let opened = self.device()?;
        let event = self.events.remove(handle)?;
        self.judge(opened.backend().destroy_event(event.id))
    }

    /// Tests if an event has completed.
    pub(crate) fn query_event(&self, handle: usize) -> Outcome {
        let opened = self.device()?;
        let event = self.events.get(handle)?;
        if event.in_capture() {
            return Err(Status::CAPTURED_EVENT);
        }
        let over = match &event.shared {
            Some(shared) => shared.is_over()(),
            None => self.judge(opened.backend().query_event(event.id))?,
        };
        if over { Ok(()) } else { Err(Status::NOT_READY) }
    }

    pub(crate) fn wait_for_event(&self, handle: usize) -> Outcome {
        let opened = self.device()?;
        let event = self.events.get(handle)?;
        if event.in_capture() {
            return Err(Status::CAPTURED_EVENT);
        }
        if let Some(shared) = &event.shared {
            crate::objects::words::poll(shared.is_over());
            return self.device().map(drop);
        }
        self.judge(opened.backend().synchronise_event(event.id))
    }

    /// Returns the milliseconds between two events.
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
