//! Streams, and the ordering between the default stream and other streams.
//!
//! Work of the *legacy* default stream starts after all earlier work of blocking streams, and their later
//! work waits for it (programming guide, "Default Stream"). Streams created with `cudaStreamNonBlocking` are
//! independent of it. Handles 0, 1 and 2 are the caller's default stream, the legacy default stream, and the
//! per-thread default stream.

use crate::boundary::{Call, DefaultStream};
use crate::handles::Handle;
use crate::objects::streams::{LEGACY, NON_BLOCKING, PER_THREAD, PRIORITIES, Stream};
use crate::objects::work::Work;
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use broadloom_device::Stream as DeviceStream;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

thread_local! {
    static OWN: Cell<Handle> = const { Cell::new(0) };
}

impl Call {
    /// Returns the stream of a handle.
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

impl Stream {
    fn new(runtime: &Runtime, handle: Handle, id: DeviceStream, flags: u32, priority: i32) -> Outcome<Stream> {
        let fence = runtime.judge(runtime.device()?.backend().create_event())?;
        let (dirty, seen) = (AtomicBool::new(false), AtomicU64::new(0));
        Ok(Stream { handle, id, flags, priority, dirty, seen, fence, capturing: Mutex::new(None) })
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

    /// Destroys a stream. Its pending work is still done.
    pub(crate) fn destroy_stream(&self, handle: Handle) -> Outcome {
        let opened = self.device()?;
        if handle <= PER_THREAD {
            return Err(Status::INVALID_HANDLE);
        }
        let stream = self.streams.handles.remove(handle)?;
        // The legacy stream must still wait for the destroyed stream's pending work.
        if stream.is_blocking() && stream.dirty.load(Ordering::Relaxed) {
            self.judge(opened.backend().record_event(stream.fence, stream.id))?;
            self.judge(opened.backend().wait_event(DeviceStream::default(), stream.fence))?;
        }
        self.judge(opened.backend().destroy_event(stream.fence))?;
        self.judge(opened.backend().destroy_stream(stream.id))
    }

    /// Inserts the waits that the next work of a stream requires.
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

    /// Makes a stream wait for all work submitted to another one.
    fn follow(&self, stream: &Stream, other: &Stream) -> Outcome {
        let backend = self.device()?.backend();
        self.judge(backend.record_event(other.fence, other.id))?;
        self.judge(backend.wait_event(stream.id, other.fence))
    }

    /// Returns all streams of the program. Captures in progress become invalid, and the call fails.
    fn all_streams(&self) -> Outcome<Vec<Arc<Stream>>> {
        self.refuse_captures()?;
        let mut all = self.streams.others();
        all.push(self.legacy_stream()?);
        Ok(all)
    }

    /// Refuses an operation that cannot be captured. All captures in progress become invalid.
    fn refuse_captures(&self) -> Outcome {
        let refused = self.streams.others().iter().filter(|stream| stream.refuse_capture().is_err()).count();
        if refused > 0 { Err(Status::STREAM_CAPTURE_UNSUPPORTED) } else { Ok(()) }
    }

    /// Returns an internal stream and creates it on first use.
    fn own_stream<'a>(&self, place: &'a OnceLock<Arc<Stream>>) -> Outcome<&'a Arc<Stream>> {
        if let Some(stream) = place.get() {
            return Ok(stream);
        }
        let id = self.judge(self.device()?.backend().create_stream())?;
        let stream = Arc::new(Stream::new(self, 0, id, NON_BLOCKING, 0)?);
        Ok(place.get_or_init(|| stream))
    }

    /// Records an event after the work of all streams.
    pub(crate) fn record_for_all(&self, event: Handle) -> Outcome {
        let event = self.events.get(event)?;
        let all = self.all_streams()?;
        let gathering = self.own_stream(&self.streams.gathering)?;
        all.iter().try_for_each(|stream| self.follow(gathering, stream))?;
        Work::Record(event).perform(self, gathering, false)
    }

    /// Makes later work of all streams wait for an event, including streams created later.
    pub(crate) fn wait_in_all(&self, event: Handle) -> Outcome {
        let event = self.events.get(event)?;
        let all = self.all_streams()?;
        let awaited = self.own_stream(&self.streams.awaited)?;
        all.iter().chain([awaited]).try_for_each(|stream| Work::Wait(event.clone()).perform(self, stream, false))
    }

    /// Waits for all work of a stream. For the legacy stream this includes all blocking streams.
    pub(crate) fn wait(&self, stream: &Stream) -> Outcome {
        stream.refuse_capture()?;
        if stream.is_legacy() {
            self.order(stream)?;
        }
        self.judge(self.device()?.backend().synchronise_stream(stream.id))
    }

    /// Tests if all work of a stream is done.
    pub(crate) fn query_stream(&self, stream: &Stream) -> Outcome {
        stream.refuse_capture()?;
        let backend = self.device()?.backend();
        if stream.is_legacy() {
            self.order(stream)?;
        }
        // Once nothing is pending, synchronising only reports an earlier failure.
        match self.judge(backend.query_stream(stream.id))? {
            true => self.judge(backend.synchronise_stream(stream.id)),
            false => Err(Status::NOT_READY),
        }
    }

    /// Waits for all work on the device.
    pub(crate) fn wait_for_all(&self) -> Outcome {
        let opened = self.device()?;
        self.refuse_captures()?;
        self.judge(opened.backend().synchronise())
    }
}
