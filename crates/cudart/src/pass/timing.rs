//! Kernel times on a GPU: an event before and one after each launch, in the launch's stream.
//!
//! Times are collected when the program waits for the GPU, and at exit. Event times are relative to each
//! other. A *clock*, an event with a known host time, converts them to host time and is renewed every second.
//! **Nothing is recorded in a stream that is being captured, and no capture is disturbed.**

use super::library;
use crate::functions::index_of;
use broadloom_device::trace::{Note, device_span};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Number of pending launches at which times are collected.
const MOST_PENDING: usize = 4096;
/// Maximum age of a clock.
const CLOCK_AGE: Duration = Duration::from_secs(1);
/// Capture mode that permits all calls of this thread.
const RELAXED: u32 = 2;

/// Functions of NVIDIA's runtime, or the equivalent ones of the driver.
struct Calls {
    /// Creates an event.
    create: extern "C" fn(*mut usize, u32) -> u32,
    record: extern "C" fn(usize, usize) -> u32,
    query: extern "C" fn(usize) -> u32,
    synchronise: extern "C" fn(usize) -> u32,
    elapsed: extern "C" fn(*mut f32, usize, usize) -> u32,
    is_capturing: extern "C" fn(usize, *mut u32) -> u32,
    exchange_mode: extern "C" fn(*mut u32) -> u32,
    create_stream: extern "C" fn(*mut usize, u32) -> u32,
    /// Returns the current device or context.
    current: extern "C" fn(*mut usize) -> u32,
}

fn calls(part: &'static str) -> Option<&'static Calls> {
    static RUNTIME: OnceLock<Option<Calls>> = OnceLock::new();
    static DRIVER: OnceLock<Option<Calls>> = OnceLock::new();
    let find = |names: [&str; 9]| {
        let library = library::of(part)?;
        let mut addresses = [0; 9];
        for (address, name) in addresses.iter_mut().zip(names) {
            *address = library.find(index_of(name)?)? as usize;
        }
        let [create, record, query, synchronise, elapsed, is_capturing, exchange_mode, create_stream, current] = addresses;
        // SAFETY: these functions have these types in NVIDIA's headers.
        Some(unsafe {
            Calls {
                create: std::mem::transmute::<usize, extern "C" fn(*mut usize, u32) -> u32>(create),
                record: std::mem::transmute::<usize, extern "C" fn(usize, usize) -> u32>(record),
                query: std::mem::transmute::<usize, extern "C" fn(usize) -> u32>(query),
                synchronise: std::mem::transmute::<usize, extern "C" fn(usize) -> u32>(synchronise),
                elapsed: std::mem::transmute::<usize, extern "C" fn(*mut f32, usize, usize) -> u32>(elapsed),
                is_capturing: std::mem::transmute::<usize, extern "C" fn(usize, *mut u32) -> u32>(is_capturing),
                exchange_mode: std::mem::transmute::<usize, extern "C" fn(*mut u32) -> u32>(exchange_mode),
                create_stream: std::mem::transmute::<usize, extern "C" fn(*mut usize, u32) -> u32>(create_stream),
                current: std::mem::transmute::<usize, extern "C" fn(*mut usize) -> u32>(current),
            }
        })
    };
    let found = if part == "runtime" {
        RUNTIME.get_or_init(|| {
            find([
                "cudaEventCreateWithFlags",
                "cudaEventRecord",
                "cudaEventQuery",
                "cudaEventSynchronize",
                "cudaEventElapsedTime",
                "cudaStreamIsCapturing",
                "cudaThreadExchangeStreamCaptureMode",
                "cudaStreamCreateWithFlags",
                "cudaGetDevice",
            ])
        })
    } else {
        DRIVER.get_or_init(|| {
            find([
                "cuEventCreate",
                "cuEventRecord",
                "cuEventQuery",
                "cuEventSynchronize",
                "cuEventElapsedTime",
                "cuStreamIsCapturing",
                "cuThreadExchangeStreamCaptureMode",
                "cuStreamCreate",
                "cuCtxGetCurrent",
            ])
        })
    };
    found.as_ref()
}

impl Calls {
    /// Runs `work` in a mode that does not invalidate captures elsewhere.
    fn relaxed<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut mode = RELAXED;
        (self.exchange_mode)(&mut mode);
        let done = work();
        (self.exchange_mode)(&mut mode);
        done
    }

    fn event(&self) -> Option<usize> {
        let mut event = 0;
        ((self.create)(&mut event, 0) == 0).then_some(event)
    }

    /// Returns the seconds between two events.
    fn seconds(&self, from: usize, to: usize) -> Option<f64> {
        let mut milliseconds = 0.0;
        ((self.elapsed)(&mut milliseconds, from, to) == 0).then(|| f64::from(milliseconds) / 1e3)
    }
}

/// Owner of events: the runtime or the driver, with the device or the context.
type Owner = (&'static str, usize);

/// Launch being timed.
#[derive(Debug)]
pub(super) struct TimedLaunch {
    owner: Owner,
    stream: usize,
    name: String,
    notes: Vec<Note>,
    start: usize,
    end: usize,
}

/// Event with its host time, in its own stream.
#[derive(Debug)]
struct Clock {
    stream: usize,
    event: usize,
    at: Option<Instant>,
}

#[derive(Debug, Default)]
struct TimingState {
    pending: Vec<TimedLaunch>,
    free: HashMap<Owner, Vec<usize>>,
    clocks: HashMap<Owner, Clock>,
    /// Streams in order of first use.
    streams: HashMap<Owner, Vec<usize>>,
}

fn state() -> MutexGuard<'static, TimingState> {
    static STATE: OnceLock<Mutex<TimingState>> = OnceLock::new();
    STATE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts timing a launch.
pub(super) fn begin(part: &'static str, stream: usize, name: String, notes: Vec<Note>) -> Option<TimedLaunch> {
    let calls = calls(part)?;
    calls.relaxed(|| {
        let (mut capturing, mut current) = (0, 0);
        if (calls.is_capturing)(stream, &mut capturing) != 0 || capturing != 0 || (calls.current)(&mut current) != 0 {
            return None;
        }
        let owner = (part, current);
        let mut state = state();
        if let Entry::Vacant(place) = state.clocks.entry(owner) {
            let (mut own, event) = (0, calls.event()?);
            // A non-blocking stream.
            if (calls.create_stream)(&mut own, 1) != 0 {
                return None;
            }
            place.insert(Clock { stream: own, event, at: None });
        }
        let free = state.free.entry(owner).or_default();
        let mut event = || free.pop().or_else(|| calls.event());
        let (start, end) = (event()?, event()?);
        ((calls.record)(start, stream) == 0).then_some(TimedLaunch { owner, stream, name, notes, start, end })
    })
}

/// Ends the timing of a launch, which was submitted or refused.
pub(super) fn end(timed: TimedLaunch, good: bool) {
    let Some(calls) = calls(timed.owner.0) else { return };
    let good = good && calls.relaxed(|| (calls.record)(timed.end, timed.stream) == 0);
    let mut state = state();
    if good {
        state.pending.push(timed);
    } else {
        state.free.entry(timed.owner).or_default().extend([timed.start, timed.end]);
    }
    if state.pending.len() >= MOST_PENDING {
        state.collect(false);
    }
}

/// Collects the times of completed launches.
pub(super) fn collect() {
    state().collect(false);
}

/// Waits for all launches and collects their times.
pub(super) fn finish() {
    state().collect(true);
}

/// Collects all times before the events become invalid.
pub(super) fn reset() {
    let mut state = state();
    state.collect(true);
    state.pending.clear();
    state.free.clear();
    state.clocks.clear();
}

impl TimingState {
    fn collect(&mut self, wait: bool) {
        for timed in std::mem::take(&mut self.pending) {
            let Some(calls) = calls(timed.owner.0) else { continue };
            let over = calls.relaxed(|| if wait { (calls.synchronise)(timed.end) == 0 } else { (calls.query)(timed.end) == 0 });
            if over {
                calls.relaxed(|| self.note(calls, timed));
            } else if !wait {
                self.pending.push(timed);
            }
        }
    }

    /// Writes a completed launch to the trace.
    fn note(&mut self, calls: &Calls, timed: TimedLaunch) {
        let TimedLaunch { owner, stream, name, notes, start, end } = timed;
        let Some(clock) = self.clocks.get_mut(&owner) else { return };
        if clock.at.is_none_or(|at| at.elapsed() > CLOCK_AGE) {
            let set = (calls.record)(clock.event, clock.stream) == 0 && (calls.synchronise)(clock.event) == 0;
            clock.at = set.then(Instant::now);
        }
        let times = clock.at.and_then(|at| {
            let (from, length) = (calls.seconds(clock.event, start)?, calls.seconds(start, end)?.max(0.0));
            let offset = Duration::try_from_secs_f64(from.abs()).ok()?;
            let begun = if from < 0.0 { at.checked_sub(offset)? } else { at + offset };
            Some((begun, begun + Duration::try_from_secs_f64(length).ok()?))
        });
        self.free.entry(owner).or_default().extend([start, end]);
        let streams = self.streams.entry(owner).or_insert_with(|| vec![0]);
        // The legacy stream has two handles.
        let stream = if stream == 1 { 0 } else { stream };
        let number = streams.iter().position(|known| *known == stream).unwrap_or_else(|| {
            streams.push(stream);
            streams.len() - 1
        });
        if let Some(times) = times {
            let device =
                if owner == ("runtime", 0) || owner.0 == "driver" { "cuda".to_owned() } else { format!("cuda:{}", owner.1) };
            device_span(&device, &format!("stream {number}"), name, times, notes);
        }
    }
}
