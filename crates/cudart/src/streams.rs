//! Streams, and how the default stream and the others wait for each other.
//!
//! Work of the *legacy* default stream begins when all earlier work of blocking streams is done, and their later work waits for it (the
//! programming guide, "Default Stream"); streams made with `cudaStreamNonBlocking` go their own way. Handles 0, 1 and 2 are the default
//! stream as the caller means it, the legacy one, and that of the calling thread.

use crate::boundary::{Call, DefaultStream};
use crate::graphs::Capturing;
use crate::handles::{Handle, Handles};
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::work::Work;
use broadloom_device::{EventId, Stream as DeviceStream};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The legacy default stream, by name.
const LEGACY: Handle = 1;
/// The default stream of the calling thread, by name.
const PER_THREAD: Handle = 2;
/// A stream does not wait for the default stream.
pub(crate) const NON_BLOCKING: u32 = 1;
/// Priorities, from the least to the greatest.
pub(crate) const PRIORITIES: [i32; 2] = [0, -5];

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    /// What the program calls it.
    pub(crate) handle: Handle,
    id: DeviceStream,
    /// As the program gave them.
    pub(crate) flags: u32,
    /// From [`PRIORITIES`].
    pub(crate) priority: i32,
    /// Whether it has had work that the legacy stream has not waited for.
    dirty: AtomicBool,
    /// How much of the legacy stream's work it has waited for.
    seen: AtomicU64,
    fence: EventId,
    capturing: Mutex<Option<Capturing>>,
}

impl Stream {
    fn new(runtime: &Runtime, handle: Handle, id: DeviceStream, flags: u32, priority: i32) -> Outcome<Stream> {
        let fence = runtime.judge(runtime.device()?.backend().create_event())?;
        let (dirty, seen) = (AtomicBool::new(false), AtomicU64::new(0));
        Ok(Stream { handle, id, flags, priority, dirty, seen, fence, capturing: Mutex::new(None) })
    }

    /// The executor's stream.
    pub(crate) fn id(&self) -> DeviceStream {
        self.id
    }

    /// Where it stands in a capture.
    pub(crate) fn capturing(&self) -> MutexGuard<'_, Option<Capturing>> {
        self.capturing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody asks for what no capture can hold: one that is under way becomes invalid.
    pub(crate) fn refuse_capture(&self) -> Outcome {
        match self.capturing().as_ref() {
            None => Ok(()),
            Some(place) => {
                place.capture.invalid.store(true, Ordering::Relaxed);
                Err(Status::STREAM_CAPTURE_UNSUPPORTED)
            }
        }
    }

    /// Whether it is the one that waits for all others.
    pub(crate) fn is_legacy(&self) -> bool {
        self.id == DeviceStream::default()
    }

    fn is_blocking(&self) -> bool {
        self.flags & NON_BLOCKING == 0
    }
}

/// All streams.
#[derive(Debug)]
pub(crate) struct Streams {
    handles: Handles<Stream>,
    legacy: OnceLock<Arc<Stream>>,
    /// Where events of a whole context are recorded.
    gathering: OnceLock<Arc<Stream>>,
    /// Waits for what a whole context waits for: streams that are made later begin behind it.
    awaited: OnceLock<Arc<Stream>>,
    /// How much work the legacy stream was given.
    generation: AtomicU64,
}

thread_local! {
    static OWN: Cell<Handle> = const { Cell::new(0) };
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

    /// Handles of all streams but the legacy one.
    pub(crate) fn handles(&self) -> Vec<Handle> {
        self.handles.handles()
    }

    /// All streams but the legacy one.
    pub(crate) fn others(&self) -> Vec<Arc<Stream>> {
        self.handles.all()
    }
}

impl Call {
    /// The stream that a handle means.
    pub(crate) fn stream(&self, handle: Handle) -> Outcome<Arc<Stream>> {
        let runtime = self.runtime;
        match (handle, self.default) {
            (0, DefaultStream::Legacy) | (LEGACY, _) => runtime.legacy_stream(),
            (0, DefaultStream::PerThread) | (PER_THREAD, _) => {
                runtime.device()?;
                match runtime.streams.handles.find(OWN.get()) {
                    Some(stream) => Ok(stream),
                    None => {
                        OWN.set(runtime.create_stream(0, 0)?);
                        runtime.streams.handles.get(OWN.get())
                    }
                }
            }
            (handle, _) => {
                runtime.device()?;
                runtime.streams.handles.get(handle)
            }
        }
    }
}

impl Runtime {
    fn legacy_stream(&self) -> Outcome<Arc<Stream>> {
        self.device()?;
        if let Some(stream) = self.streams.legacy.get() {
            return Ok(stream.clone());
        }
        let stream = Arc::new(Stream::new(self, LEGACY, DeviceStream::default(), 0, 0)?);
        Ok(self.streams.legacy.get_or_init(|| stream).clone())
    }

    /// A new stream.
    pub(crate) fn create_stream(&self, flags: u32, priority: i32) -> Outcome<Handle> {
        if flags & !NON_BLOCKING != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let id = self.judge(self.device()?.backend().create_stream())?;
        let handle = self.streams.handles.reserve();
        let priority = priority.clamp(PRIORITIES[1], PRIORITIES[0]);
        let stream = Arc::new(Stream::new(self, handle, id, flags, priority)?);
        if let Some(awaited) = self.streams.awaited.get() {
            self.follow(&stream, awaited)?;
        }
        self.streams.handles.put(handle, stream);
        Ok(handle)
    }

    /// Gives a stream back; its work is still done.
    pub(crate) fn destroy_stream(&self, handle: Handle) -> Outcome {
        let opened = self.device()?;
        if handle <= PER_THREAD {
            return Err(Status::INVALID_HANDLE);
        }
        let stream = self.streams.handles.remove(handle)?;
        // Work that the legacy stream has to wait for does not end with the handle.
        if stream.is_blocking() && stream.dirty.load(Ordering::Relaxed) {
            self.judge(opened.backend().record_event(stream.fence, stream.id))?;
            self.judge(opened.backend().wait_event(DeviceStream::default(), stream.fence))?;
        }
        self.judge(opened.backend().destroy_event(stream.fence))?;
        self.judge(opened.backend().destroy_stream(stream.id))
    }

    /// Lets a stream wait for what its next work has to wait for.
    pub(crate) fn order(&self, stream: &Stream) -> Outcome {
        let backend = self.device()?.backend();
        if stream.is_legacy() {
            self.streams.generation.fetch_add(1, Ordering::Relaxed);
            for other in self.streams.others().iter().filter(|other| other.is_blocking()) {
                if other.capturing().is_some() {
                    return Err(Status::STREAM_CAPTURE_IMPLICIT);
                }
                if other.dirty.swap(false, Ordering::Relaxed) {
                    self.judge(backend.record_event(other.fence, other.id))?;
                    self.judge(backend.wait_event(stream.id, other.fence))?;
                }
            }
        } else if stream.is_blocking() {
            let generation = self.streams.generation.load(Ordering::Relaxed);
            if stream.seen.swap(generation, Ordering::Relaxed) != generation
                && let Some(legacy) = self.streams.legacy.get()
            {
                self.judge(backend.record_event(legacy.fence, legacy.id))?;
                self.judge(backend.wait_event(stream.id, legacy.fence))?;
            }
            stream.dirty.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Lets a stream wait for what another one was given.
    fn follow(&self, stream: &Stream, other: &Stream) -> Outcome {
        let backend = self.device()?.backend();
        self.judge(backend.record_event(other.fence, other.id))?;
        self.judge(backend.wait_event(stream.id, other.fence))
    }

    /// All streams that programs give work to. No capture may be under way: those that are become invalid.
    fn all_streams(&self) -> Outcome<Vec<Arc<Stream>>> {
        self.refuse_captures()?;
        let mut all = self.streams.others();
        all.push(self.legacy_stream()?);
        Ok(all)
    }

    /// Somebody asks for what no capture can hold: all that are under way become invalid.
    fn refuse_captures(&self) -> Outcome {
        let refused = self.streams.others().iter().filter(|stream| stream.refuse_capture().is_err()).count();
        if refused > 0 { Err(Status::STREAM_CAPTURE_UNSUPPORTED) } else { Ok(()) }
    }

    /// A stream that no program gives work to, made when it is first needed.
    fn own_stream<'a>(&self, place: &'a OnceLock<Arc<Stream>>) -> Outcome<&'a Arc<Stream>> {
        if let Some(stream) = place.get() {
            return Ok(stream);
        }
        let id = self.judge(self.device()?.backend().create_stream())?;
        let stream = Arc::new(Stream::new(self, 0, id, NON_BLOCKING, 0)?);
        Ok(place.get_or_init(|| stream))
    }

    /// Puts an event behind the work of all streams.
    pub(crate) fn record_for_all(&self, event: Handle) -> Outcome {
        let event = self.events.get(event)?;
        let all = self.all_streams()?;
        let gathering = self.own_stream(&self.streams.gathering)?;
        all.iter().try_for_each(|stream| self.follow(gathering, stream))?;
        Work::Record(event).perform(self, gathering, false)
    }

    /// Lets the later work of all streams wait for an event, also of those that are made later.
    pub(crate) fn wait_in_all(&self, event: Handle) -> Outcome {
        let event = self.events.get(event)?;
        let all = self.all_streams()?;
        let awaited = self.own_stream(&self.streams.awaited)?;
        all.iter().chain([awaited]).try_for_each(|stream| Work::Wait(event.clone()).perform(self, stream, false))
    }

    /// Waits for all work of a stream, and for the legacy stream also of those that it waits for.
    pub(crate) fn wait(&self, stream: &Stream) -> Outcome {
        stream.refuse_capture()?;
        if stream.is_legacy() {
            self.order(stream)?;
        }
        self.judge(self.device()?.backend().synchronise_stream(stream.id))
    }

    /// Whether all work of a stream is done.
    pub(crate) fn query_stream(&self, stream: &Stream) -> Outcome {
        stream.refuse_capture()?;
        let backend = self.device()?.backend();
        if stream.is_legacy() {
            self.order(stream)?;
        }
        // What has failed is told here as well: nothing is left to wait for.
        match self.judge(backend.query_stream(stream.id))? {
            true => self.judge(backend.synchronise_stream(stream.id)),
            false => Err(Status::NOT_READY),
        }
    }

    /// Waits for everything.
    pub(crate) fn wait_for_all(&self) -> Outcome {
        let opened = self.device()?;
        self.refuse_captures()?;
        self.judge(opened.backend().synchronise())
    }
}
