//! Timing of work by driver events around it.
//!
//! Work is timed while a trace is active, and launches also if statistics were requested. Two events enclose
//! each piece. They are read when the host has waited for the queue anyway, so timing adds no waits. To
//! convert to host time, one more event is recorded on the idle queue and waited for. The host knows its
//! time, and the driver reports how long before it the piece began. **Work that cannot be timed is still
//! done. Work that was running when a context was lost is shown as such.**

use crate::context::Context;
use crate::ffi::EventHandle;
use crate::queue::Queue;
use crate::statistics::Record;
use broadloom_device::trace::{self, Note};
use broadloom_device::{Launch, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of pieces with unread times. Beyond it, the host waits.
const MOST_PENDING: usize = 1 << 16;
/// Maximum number of events kept for reuse.
const MOST_SPARE: usize = 1 << 12;

/// Driver event, destroyed on drop.
#[derive(Debug)]
pub(crate) struct Stamp {
    pub(crate) context: Arc<Context>,
    pub(crate) handle: EventHandle,
}

impl Drop for Stamp {
    fn drop(&mut self) {
        if self.context.enter_to_release() {
            let _ = self.context.driver.destroy_event(self.handle);
        }
    }
}

/// Copy, fill or launch, as shown in a trace.
#[derive(Debug)]
pub(crate) struct TracedWork {
    /// Name of the piece.
    pub(crate) name: Arc<str>,
    /// Statistics that receive its time.
    pub(crate) record: Option<Arc<Record>>,
    /// Notes in the trace.
    pub(crate) notes: Vec<Note>,
}

impl TracedWork {
    /// Creates the piece of a copy or fill.
    pub(crate) fn bytes(name: &str, bytes: u64) -> TracedWork {
        TracedWork { name: name.into(), record: None, notes: vec![("bytes", bytes.into())] }
    }

    /// Creates the piece of a launch.
    pub(crate) fn launch(name: &Arc<str>, record: &Arc<Record>, launch: &Launch) -> TracedWork {
        let notes = vec![
            ("grid", trace::shape(launch.grid)),
            ("block", trace::shape(launch.block)),
            ("shared bytes", launch.shared_bytes.into()),
        ];
        TracedWork { name: name.clone(), record: Some(record.clone()), notes }
    }
}

/// Start of a piece of work.
#[derive(Debug)]
pub(crate) struct WorkStart {
    start: Stamp,
    given: Instant,
}

/// Work whose time is still to be read.
#[derive(Debug)]
pub(crate) struct UntimedWork {
    pub(crate) begun: WorkStart,
    pub(crate) end: Stamp,
    pub(crate) queue: Arc<Queue>,
    pub(crate) number: u64,
    pub(crate) piece: TracedWork,
}

/// Pieces whose times are still to be read.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    /// True if launches are timed without a trace.
    launches: bool,
    pending: Mutex<Vec<UntimedWork>>,
    count: AtomicUsize,
    spare: Mutex<Vec<Stamp>>,
}

impl Timing {
    pub(crate) fn new(launches: bool) -> Timing {
        Timing { launches, ..Timing::default() }
    }

    /// Tests if launches are timed.
    #[inline]
    pub(crate) fn times_launches(&self) -> bool {
        self.launches || trace::is_on()
    }
}

impl Timing {
    /// Begins a piece of work. The context must be current.
    #[cold]
    pub(crate) fn begin(&self, queue: &Queue) -> Result<Option<WorkStart>> {
        let given = Instant::now();
        let Some(start) = self.stamp(queue)? else { return Ok(None) };
        Ok(Some(WorkStart { start, given }))
    }

    /// Adds a piece of work whose time is still to be read. Returns true if the host must wait, because there
    /// are too many.
    pub(crate) fn add(&self, piece: UntimedWork) -> bool {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.push(piece);
        let count = pending.len();
        self.count.store(count, Ordering::Relaxed);
        count >= MOST_PENDING
    }

    /// Records an event after all work of a queue. Returns `None` if the driver provides none.
    pub(crate) fn stamp(&self, queue: &Queue) -> Result<Option<Stamp>> {
        let (context, driver) = (&queue.context, &queue.context.driver);
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let stamp = match spare {
            Some(stamp) => stamp,
            None => match context.unless_lost(driver.create_event(0))? {
                Some(handle) => Stamp { context: context.clone(), handle },
                None => return Ok(None),
            },
        };
        Ok(context.unless_lost(driver.record_event(stamp.handle, queue.handle))?.map(|()| stamp))
    }

    /// Reads the times of completed pieces. A queue was waited for, and the context must be current.
    #[inline]
    pub(crate) fn collect(&self, queue: &Queue) -> Result<()> {
        if self.count.load(Ordering::Relaxed) == 0 { Ok(()) } else { self.collect_pending(queue) }
    }

    #[cold]
    fn collect_pending(&self, queue: &Queue) -> Result<()> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let (done, left): (Vec<UntimedWork>, Vec<UntimedWork>) =
            pending.drain(..).partition(|pending| pending.queue.is_done(pending.number));
        *pending = left;
        self.count.store(pending.len(), Ordering::Relaxed);
        drop(pending);
        let anchor = if trace::is_on() && !done.is_empty() { self.anchor(queue)? } else { None };
        let (context, driver) = (&queue.context, &queue.context.driver);
        for UntimedWork { begun, end, queue, piece, .. } in done {
            let took = context.unless_lost(driver.elapsed(begun.start.handle, end.handle))?.and_then(milliseconds);
            if let (Some(took), Some(record)) = (took, &piece.record) {
                record.add(took);
            }
            if let (Some(took), Some((now, at))) = (took, &anchor) {
                let before = context.unless_lost(driver.elapsed(begun.start.handle, now.handle))?.and_then(milliseconds);
                // No work begins before it was submitted.
                let start = before.and_then(|before| at.checked_sub(before)).map_or(begun.given, |start| start.max(begun.given));
                show(&queue, &piece, (start, start + took), None);
            }
            let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() < MOST_SPARE {
                spare.extend([begun.start, end]);
            }
        }
        Ok(())
    }

    /// Records an event and returns it with its host time: halfway between its submission and its completion
    /// on the host.
    fn anchor(&self, queue: &Queue) -> Result<Option<(Stamp, Instant)>> {
        let before = Instant::now();
        let Some(stamp) = self.stamp(queue)? else { return Ok(None) };
        let heard = queue.context.unless_lost(queue.context.driver.synchronise_event(stamp.handle))?;
        let trip = before.elapsed();
        Ok(heard.map(|()| (stamp, before + trip / 2)))
    }

    /// Shows pieces in the trace whose times can no longer be read.
    pub(crate) fn show_lost(&self) {
        let pending = std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        if trace::is_on() {
            let now = Instant::now();
            for UntimedWork { begun, queue, piece, .. } in &pending {
                show(queue, piece, (begun.given, now), Some("not known: the device was lost"));
            }
        }
    }
}

/// Writes a piece of work to the trace.
fn show(queue: &Queue, piece: &TracedWork, times: (Instant, Instant), outcome: Option<&str>) {
    let mut notes = piece.notes.clone();
    notes.extend(outcome.map(|outcome| ("outcome", outcome.into())));
    let lane = format!("stream {}", queue.stream);
    trace::device_span(&queue.context.name, &lane, piece.name.to_string(), times, notes);
}

fn milliseconds(time: f32) -> Option<Duration> {
    Duration::try_from_secs_f64(f64::from(time) / 1e3).ok()
}
