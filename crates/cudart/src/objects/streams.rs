//! Streams and their table.

use crate::handles::{Handle, Handles};
use crate::objects::work::Capturing;
use crate::status::{Outcome, Status};
use broadloom_device::{EventId, Stream as DeviceStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Handle of the legacy default stream.
pub(crate) const LEGACY: Handle = 1;
/// Handle of the per-thread default stream.
pub(crate) const PER_THREAD: Handle = 2;
/// Flag: the stream does not synchronise with the legacy default stream.
pub(crate) const NON_BLOCKING: u32 = 1;
/// Lowest and highest priority.
pub(crate) const PRIORITIES: [i32; 2] = [0, -5];

#[derive(Debug)]
pub(crate) struct Stream {
    /// Handle of the stream.
    pub(crate) handle: Handle,
    pub(crate) id: DeviceStream,
    /// Flags given by the program.
    pub(crate) flags: u32,
    /// Priority within [`PRIORITIES`].
    pub(crate) priority: i32,
    /// True if the stream has work that the legacy stream has not waited for.
    pub(crate) dirty: AtomicBool,
    /// Generation of the legacy stream's work that the stream has waited for.
    pub(crate) seen: AtomicU64,
    pub(crate) fence: EventId,
    pub(crate) capturing: Mutex<Option<Capturing>>,
}

impl Stream {
    /// Returns the executor's stream.
    pub(crate) fn id(&self) -> DeviceStream {
        self.id
    }

    /// Locks and returns the position in a capture.
    pub(crate) fn capturing(&self) -> MutexGuard<'_, Option<Capturing>> {
        self.capturing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses an operation that cannot be captured. A capture in progress becomes invalid.
    pub(crate) fn refuse_capture(&self) -> Outcome {
        match self.capturing().as_ref() {
            None => Ok(()),
            Some(place) => {
                place.capture.invalid.store(true, Ordering::Relaxed);
                Err(Status::STREAM_CAPTURE_UNSUPPORTED)
            }
        }
    }

    /// Tests if this is the legacy default stream.
    pub(crate) fn is_legacy(&self) -> bool {
        self.id == DeviceStream::default()
    }

    pub(crate) fn is_blocking(&self) -> bool {
        self.flags & NON_BLOCKING == 0
    }
}

/// Table of all streams.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) handles: Handles<Stream>,
    pub(crate) legacy: OnceLock<Arc<Stream>>,
    /// Internal stream that records events of a whole context.
    pub(crate) gathering: OnceLock<Arc<Stream>>,
    /// Internal stream that waits for events of a whole context. Streams created later start after it.
    pub(crate) awaited: OnceLock<Arc<Stream>>,
    /// Number of pieces of work submitted to the legacy stream.
    pub(crate) generation: AtomicU64,
}

impl Streams {
    pub(crate) fn new() -> Streams {
        Streams {
            handles: Handles::new(1),
            legacy: OnceLock::new(),
            gathering: OnceLock::new(),
            awaited: OnceLock::new(),
            generation: AtomicU64::new(0),
        }
    }

    /// Returns the handles of all streams but the legacy one.
    pub(crate) fn handles(&self) -> Vec<Handle> {
        self.handles.handles()
    }

    /// Returns all streams but the legacy one.
    pub(crate) fn others(&self) -> Vec<Arc<Stream>> {
        self.handles.all()
    }
}
