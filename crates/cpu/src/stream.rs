//! Work in queues: streams, the workers that take from them, and waiting threads.
//!
//! Work of a stream is done in order, one piece at a time. The first pieces of all streams run concurrently.
//! A piece consists of parts (blocks of a grid, ranges of a copy), which workers take by incrementing a
//! counter, so the overhead does not depend on the size of a grid. If blocks never wait for each other, each
//! worker starts with its own lot and helps others afterwards: the data that it wrote in one launch is in its
//! cache for the next. A failed launch leaves its error with the stream. Later launches do not run until the
//! error was reported.
//!
//! **Submitting work never waits for work. Every piece has a number, increasing with time: freed memory waits
//! until no piece with a lower number is left.**

use crate::grid::Grid;
use broadloom_device::{Error, EventId, HostCall, Result, Stream};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Number of times that a waiting thread polls before it sleeps.
const SPINS: u32 = 500;
/// Number of times that a worker polls while more work waits for work that others are about to finish. Waking
/// up takes longer than most such work.
const PATIENT_SPINS: u32 = 20_000;

/// Piece of work.
#[derive(Debug)]
pub(crate) enum Work {
    /// A grid of blocks.
    Launch(Box<Grid>),
    /// A grid whose kernel is still being compiled. The stream waits for it.
    Pending(Arc<PendingLaunch>),
    /// Copies bytes within the device. The ranges have been checked; they may overlap when there is one part.
    Copy { to: u64, from: u64, bytes: u64 },
    /// Sets bytes.
    Fill { address: u64, byte: u8, bytes: u64 },
    /// Copies bytes of the host.
    Write { address: u64, bytes: Vec<u8> },
    /// Calls a function of the host.
    Call(OnceCall),
    /// Records the time.
    Mark(Arc<Mark>),
    /// Waits until another stream has reached a mark.
    Await(Arc<Mark>),
}

/// Launch whose kernel is still being compiled. It becomes a grid, or the reason why there is none.
#[derive(Debug, Default)]
pub(crate) struct PendingLaunch(OnceLock<Mutex<Option<Result<Box<Grid>>>>>);

impl PendingLaunch {
    /// Sets the outcome. [`Streams::arrive`] lets its stream continue.
    pub(crate) fn set(&self, grid: Result<Box<Grid>>) {
        let _ = self.0.set(Mutex::new(Some(grid)));
    }

    fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    fn take(&self) -> Option<Result<Box<Grid>>> {
        self.0.get()?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Function that is called once.
pub(crate) struct OnceCall(Mutex<Option<HostCall>>);

impl OnceCall {
    pub(crate) fn new(function: HostCall) -> OnceCall {
        OnceCall(Mutex::new(Some(function)))
    }

    /// Calls the function, if it was not called. A panic in it is caught: the worker and the stream continue.
    pub(crate) fn call(&self) {
        let function = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(function) = function {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(function));
        }
    }
}

impl std::fmt::Debug for OnceCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a function of the host")
    }
}

/// Point in a stream, with the time it was reached.
#[derive(Debug, Default)]
pub(crate) struct Mark(OnceLock<Instant>);

impl Mark {
    /// Records that the mark is reached now.
    pub(crate) fn set(&self) {
        let _ = self.0.set(Instant::now());
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }
}

/// Bytes of one part of a copy.
pub(crate) const COPY_PART: u64 = 4 << 20;

impl Work {
    fn parts(&self) -> u64 {
        match self {
            Work::Launch(grid) => grid.grid.iter().map(|&n| u64::from(n)).product::<u64>() / grid.cluster.blocks().max(1),
            Work::Copy { to, from, bytes } if to.abs_diff(*from) >= *bytes => bytes.div_ceil(COPY_PART),
            Work::Copy { .. } => 1,
            Work::Fill { bytes, .. } => bytes.div_ceil(COPY_PART),
            Work::Write { bytes, .. } => (bytes.len() as u64).div_ceil(COPY_PART),
            Work::Pending(_) | Work::Call(_) | Work::Mark(_) | Work::Await(_) => 1,
        }
    }

    /// Returns whether its parts may be started in any order.
    fn has_shares(&self) -> bool {
        match self {
            Work::Launch(grid) => grid.runs_in_rows(),
            Work::Copy { .. } | Work::Fill { .. } | Work::Write { .. } => false,
            Work::Pending(_) | Work::Call(_) | Work::Mark(_) | Work::Await(_) => false,
        }
    }
}

/// Reasons why a piece of work must stop.
pub(crate) mod stop {
    /// A part of it failed.
    pub(crate) const FAILED: u32 = 1;
    /// Its time limit ran out.
    pub(crate) const LATE: u32 = 2;
}

/// Time limit of a piece of work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) total: Duration,
    /// Time used before it was submitted.
    pub(crate) spent: Duration,
}

impl Limit {
    pub(crate) fn left(self) -> Duration {
        self.total.saturating_sub(self.spent)
    }
}

/// Submitted piece of work.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) number: u64,
    pub(crate) stream: u32,
    pub(crate) work: Work,
    /// Number of its parts.
    pub(crate) parts: u64,
    /// Shares of the parts: one for all workers, or one for each.
    shares: Box<[PartShare]>,
    /// Constant of [`stop`], or 0.
    pub(crate) stop: AtomicU32,
    failure: Mutex<Option<Error>>,
    pub(crate) limit: Option<Limit>,
    started: OnceLock<Instant>,
    done: Arc<AtomicBool>,
}

/// Parts of a piece of work that workers take in order.
#[derive(Debug)]
struct PartShare {
    /// First part that is not taken.
    next: AtomicU64,
    end: u64,
}

impl PartShare {
    /// Splits a piece into shares whose lengths differ by at most one part.
    fn cut(parts: u64, shares: u64) -> Box<[PartShare]> {
        let bound = |share: u64| (u128::from(parts) * u128::from(share) / u128::from(shares)) as u64;
        (0..shares).map(|share| PartShare { next: AtomicU64::new(bound(share)), end: bound(share + 1) }).collect()
    }

    fn take(&self, most: u64) -> std::ops::Range<u64> {
        if self.left() == 0 {
            return 0..0;
        }
        // Few workers increment it by small amounts, so it stays far from wrapping.
        let first = self.next.fetch_add(most, Ordering::Relaxed).min(self.end);
        first..first.saturating_add(most).min(self.end)
    }

    fn left(&self) -> u64 {
        self.end.saturating_sub(self.next.load(Ordering::Relaxed))
    }
}

impl Job {
    fn new(number: u64, stream: u32, work: Work, limit: Option<Limit>, workers: usize, done: Arc<AtomicBool>) -> Job {
        let parts = work.parts();
        let shares = if work.has_shares() { workers.max(1) as u64 } else { 1 };
        Job {
            number,
            stream,
            work,
            parts,
            shares: PartShare::cut(parts, shares),
            stop: AtomicU32::new(0),
            failure: Mutex::new(None),
            limit,
            started: OnceLock::new(),
            done,
        }
    }

    /// Takes some parts for a worker: the next ones of its share, or of another share if that is empty.
    pub(crate) fn take(&self, worker: usize, most: u64) -> std::ops::Range<u64> {
        if self.must_stop() {
            return 0..0;
        }
        let own = worker % self.shares.len().max(1);
        let (before, behind) = self.shares.split_at(own);
        let mut taken = behind.iter().chain(before).map(|share| share.take(most));
        taken.find(|range| !range.is_empty()).unwrap_or(0..0)
    }

    /// Returns the number of parts that are not taken.
    pub(crate) fn left(&self) -> u64 {
        self.shares.iter().map(PartShare::left).sum()
    }

    fn is_taken(&self) -> bool {
        self.left() == 0 || self.must_stop()
    }

    /// Returns whether it failed or its time limit ran out.
    pub(crate) fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != 0
    }

    /// Records the first error.
    pub(crate) fn fail(&self, error: Error) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        // A time limit is not overwritten.
        let _ = self.stop.compare_exchange(0, stop::FAILED, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Returns whether an error is recorded that was not reported.
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// Receiver of notices of finished work.
pub(crate) trait CompletionListener: Send + Sync {
    /// Reports a finished piece of work. `started` is the time its first part began. All work with a number
    /// below `oldest` is done.
    fn finished(&self, job: &Job, started: Option<Instant>, oldest: u64);
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Arc<Job>>,
    /// True if its first piece is running.
    running: bool,
    /// True if its first piece waits for a mark of another stream, or for its kernel to be compiled.
    blocked: bool,
    error: Option<Error>,
    /// Number of its unfinished pieces.
    left: usize,
    /// Flag that is set when the last submitted piece is done.
    last: Option<Arc<AtomicBool>>,
}

#[derive(Debug)]
struct ActiveJob {
    job: Arc<Job>,
    workers: u32,
}

#[derive(Debug, Default)]
struct StreamState {
    queues: HashMap<u32, Queue>,
    streams: u32,
    destroyed: HashSet<u32>,
    next_event: u64,
    events: HashMap<EventId, Option<Arc<Mark>>>,
    active: Vec<ActiveJob>,
    next_number: u64,
    outstanding: BTreeSet<u64>,
    sleeping: usize,
    waiting: usize,
    /// For each worker, its thread and its current piece.
    threads: Vec<Option<(libc::pthread_t, Option<Arc<Job>>)>>,
    ends: bool,
}

/// All streams of a device.
pub(crate) struct Streams {
    state: Mutex<StreamState>,
    /// Condition on which workers without work sleep.
    work: Condvar,
    /// Condition on which threads wait for work to be done.
    done: Condvar,
    /// Number of workers that poll for work without sleeping.
    looking: AtomicUsize,
    /// Counter that is incremented whenever there may be work.
    signal: AtomicU64,
}

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

impl Streams {
    pub(crate) fn new(workers: usize) -> Streams {
        let state = StreamState { streams: 1, threads: vec![None; workers], ..StreamState::default() };
        Streams {
            state: Mutex::new(state),
            work: Condvar::new(),
            done: Condvar::new(),
            looking: AtomicUsize::new(0),
            signal: AtomicU64::new(0),
        }
    }

    /// Locks the state. Nothing that can panic happens while it is held.
    fn state(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn create(&self) -> Stream {
        let mut state = self.state();
        state.streams += 1;
        Stream(state.streams - 1)
    }

    pub(crate) fn check(&self, stream: Stream) -> Result<()> {
        self.state().check(stream)
    }

    /// Removes a stream; its work is still done.
    pub(crate) fn destroy(&self, stream: Stream) -> Result<()> {
        let mut state = self.state();
        state.check(stream)?;
        if stream == Stream::default() {
            return Err(Error::UnknownStream(stream.0));
        }
        state.destroyed.insert(stream.0);
        Ok(())
    }

    pub(crate) fn create_event(&self) -> EventId {
        let mut state = self.state();
        let event = EventId(state.next_event);
        state.next_event += 1;
        state.events.insert(event, None);
        event
    }

    pub(crate) fn destroy_event(&self, event: EventId) -> Result<()> {
        self.state().events.remove(&event).map(drop).ok_or(Error::UnknownEvent(event.0))
    }

    /// Returns the mark of an event; `None` if it was never recorded.
    pub(crate) fn mark_of(&self, event: EventId) -> Result<Option<Arc<Mark>>> {
        self.state().events.get(&event).cloned().ok_or(Error::UnknownEvent(event.0))
    }

    /// Records an event after all work of a stream.
    pub(crate) fn record_event(&self, event: EventId, stream: Stream) -> Result<()> {
        self.mark_of(event)?;
        let mark = Arc::new(Mark::default());
        self.submit(stream, Work::Mark(mark.clone()), None, &|| Ok(()))?;
        if let Some(place) = self.state().events.get_mut(&event) {
            *place = Some(mark);
        }
        Ok(())
    }

    /// Makes later work of a stream wait for the current mark of an event.
    pub(crate) fn hold_up(&self, stream: Stream, event: EventId) -> Result<()> {
        match self.mark_of(event)? {
            Some(mark) if !mark.is_set() => self.submit(stream, Work::Await(mark), None, &|| Ok(())),
            Some(_) | None => self.check(stream),
        }
    }

    /// Waits until a mark is reached and returns its time.
    pub(crate) fn wait_for_mark(&self, mark: &Mark) -> Instant {
        let mut state = self.state();
        loop {
            if let Some(time) = mark.0.get() {
                return *time;
            }
            state.waiting += 1;
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }

    /// Returns whether all work of a stream is done.
    pub(crate) fn is_idle(&self, stream: Stream) -> bool {
        let state = self.state();
        state.queues.get(&stream.0).is_none_or(|queue| !queue.running && queue.waiting.is_empty())
    }

    /// Submits work to a stream. `check` checks the memory it accesses, while nothing can be freed
    /// concurrently.
    pub(crate) fn submit(&self, stream: Stream, work: Work, limit: Option<Limit>, check: &dyn Fn() -> Result<()>) -> Result<()> {
        let is_empty = work.parts() == 0;
        let mut state = self.state();
        state.check(stream)?;
        check()?;
        if is_empty {
            return Ok(());
        }
        let number = state.begin();
        let job = Arc::new(Job::new(number, stream.0, work, limit, state.threads.len(), Arc::default()));
        let queue = state.queues.entry(stream.0).or_default();
        queue.left += 1;
        queue.last = Some(job.done.clone());
        queue.waiting.push_back(job);
        if !queue.running {
            state.advance(stream.0);
            self.wake(state);
        }
        Ok(())
    }

    /// Lets a stream continue whose first piece waited for its kernel.
    pub(crate) fn arrive(&self) {
        let mut state = self.state();
        let more = state.unblock();
        // A failed launch may have been the last piece of its stream.
        if state.waiting > 0 {
            self.done.notify_all();
        }
        if more {
            self.wake(state);
        }
    }

    /// Wakes one worker, if none is polling anyway.
    fn wake(&self, state: MutexGuard<'_, StreamState>) {
        self.signal.fetch_add(1, Ordering::SeqCst);
        let sleeping = state.sleeping;
        drop(state);
        if sleeping > 0 && self.looking.load(Ordering::SeqCst) == 0 {
            self.work.notify_one();
        }
    }

    /// Returns a number for an operation of the host that accesses memory now.
    pub(crate) fn begin(&self) -> u64 {
        self.state().begin()
    }

    /// Ends an operation of [`Streams::begin`]. Returns a number below which all work is done.
    pub(crate) fn end(&self, number: u64) -> u64 {
        let mut state = self.state();
        state.outstanding.remove(&number);
        state.oldest()
    }

    /// Returns the number that is above all work submitted so far, if any is unfinished.
    pub(crate) fn horizon(&self) -> Option<u64> {
        let state = self.state();
        (!state.outstanding.is_empty()).then_some(state.next_number)
    }

    /// Runs an action while nothing can be submitted, if all unfinished work belongs to this stream.
    pub(crate) fn if_alone<T>(&self, stream: Stream, act: impl FnOnce() -> Option<T>) -> Option<T> {
        let state = self.state();
        let own = state.queues.get(&stream.0).map_or(0, |queue| queue.left);
        if own == state.outstanding.len() { act() } else { None }
    }

    /// Returns a number below which all work is done.
    pub(crate) fn oldest(&self) -> u64 {
        self.state().oldest()
    }

    /// Waits until all submitted work of a stream is done, and takes its error.
    pub(crate) fn wait(&self, stream: Stream) -> Result<()> {
        self.check(stream)?;
        self.outcome(stream.0)
    }

    /// Waits for a stream, removed or not, and takes its error.
    fn outcome(&self, stream: u32) -> Result<()> {
        let mut state = self.wait_for(stream);
        match state.queues.get_mut(&stream).and_then(|queue| queue.error.take()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Waits until all work submitted so far is done, and takes the error of the first stream that has one.
    /// The others keep theirs.
    pub(crate) fn wait_all(&self) -> Result<()> {
        for stream in self.drain() {
            self.outcome(stream)?;
        }
        Ok(())
    }

    /// Waits until all work submitted so far is done. Returns the streams that had some, in order.
    pub(crate) fn drain(&self) -> Vec<u32> {
        let mut streams: Vec<u32> = self.state().queues.keys().copied().collect();
        streams.sort_unstable();
        for stream in &streams {
            drop(self.wait_for(*stream));
        }
        streams
    }

    fn wait_for(&self, stream: u32) -> MutexGuard<'_, StreamState> {
        let state = self.state();
        let Some(last) = state.queues.get(&stream).and_then(|queue| queue.last.clone()) else { return state };
        drop(state);
        for _ in 0..SPINS {
            if last.load(Ordering::Acquire) {
                break;
            }
            std::hint::spin_loop();
        }
        let mut state = self.state();
        while !last.load(Ordering::Acquire) {
            state.waiting += 1;
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        state
    }

    /// Records the thread of a worker.
    pub(crate) fn enter(&self, worker: usize) {
        // SAFETY: a thread may always query itself.
        let thread = unsafe { libc::pthread_self() };
        self.state().threads[worker] = Some((thread, None));
    }

    /// Forgets the thread of a worker.
    pub(crate) fn exit(&self, worker: usize) {
        self.state().threads[worker] = None;
    }

    /// Tells workers to end once there is no work left.
    pub(crate) fn close(&self) {
        self.state().ends = true;
        self.signal.fetch_add(1, Ordering::SeqCst);
        self.work.notify_all();
    }

    /// Waits for work and joins it; returns `None` if there will be none. `started` is called for work that
    /// no worker has joined before.
    pub(crate) fn join(&self, worker: usize, started: &dyn Fn(&Arc<Job>, Instant)) -> Option<Arc<Job>> {
        let mut state = self.state();
        let mut looked = false;
        loop {
            if let Some(job) = state.join(worker) {
                // Others are woken one by one, by workers that found enough work for two.
                let sleeping = state.sleeping > 0 && self.wants_company(&state, &job);
                drop(state);
                let first = job.started.get().is_none();
                let now = *job.started.get_or_init(Instant::now);
                if first {
                    started(&job, now);
                }
                if sleeping && self.looking.load(Ordering::SeqCst) == 0 {
                    self.work.notify_one();
                }
                return Some(job);
            }
            if state.ends && state.active.is_empty() {
                // Workers that fell asleep during the last piece are woken by the worker that finishes it.
                self.work.notify_all();
                return None;
            }
            if !looked {
                let seen = self.signal.load(Ordering::SeqCst);
                self.looking.fetch_add(1, Ordering::SeqCst);
                let more_waits = !state.active.is_empty() && state.queues.values().any(|queue| !queue.waiting.is_empty());
                let rounds = if more_waits { PATIENT_SPINS } else { SPINS };
                drop(state);
                for _ in 0..rounds {
                    if self.signal.load(Ordering::Relaxed) != seen {
                        break;
                    }
                    std::hint::spin_loop();
                }
                self.looking.fetch_sub(1, Ordering::SeqCst);
                // After a change the state is checked, and polling starts again.
                looked = self.signal.load(Ordering::SeqCst) == seen;
                state = self.state();
                continue;
            }
            state.sleeping += 1;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.sleeping -= 1;
            looked = false;
        }
    }

    /// Returns whether there is enough work to wake another worker.
    fn wants_company(&self, state: &StreamState, joined: &Arc<Job>) -> bool {
        state.active.iter().any(|active| {
            let left = active.job.left().saturating_sub(u64::from(Arc::ptr_eq(&active.job, joined)));
            let expected = match &active.job.work {
                Work::Launch(grid) => grid.ready.block_time().map(|each| each.as_nanos() as u64),
                Work::Copy { .. } | Work::Fill { .. } | Work::Write { .. } | Work::Call(_) => None,
                Work::Pending(_) | Work::Mark(_) | Work::Await(_) => return false,
            };
            // Waking takes microseconds; shorter work is done alone.
            left > 0 && expected.is_none_or(|each| each.saturating_mul(left) > 10_000)
        })
    }

    /// Leaves a piece of which a worker has found no more parts.
    pub(crate) fn leave(&self, worker: usize, job: &Arc<Job>, finished: &dyn CompletionListener) {
        let mut state = self.state();
        if let Some(Some((_, current))) = state.threads.get_mut(worker) {
            *current = None;
        }
        let Some(index) = state.active.iter().position(|active| Arc::ptr_eq(&active.job, job)) else { return };
        state.active[index].workers -= 1;
        if state.active[index].workers > 0 || !job.is_taken() {
            return;
        }
        state.active.swap_remove(index);
        let error = job.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(queue) = state.queues.get_mut(&job.stream) {
            queue.left -= 1;
            queue.error = queue.error.take().or(error);
        }
        state.outstanding.remove(&job.number);
        let oldest = state.oldest();
        drop(state);
        // The receiver of notices is called before waiting threads wake.
        finished.finished(job, job.started.get().copied(), oldest);
        let mut state = self.state();
        job.done.store(true, Ordering::Release);
        let mut more = state.advance(job.stream);
        if matches!(job.work, Work::Mark(_)) {
            more |= state.unblock();
        }
        if state.waiting > 0 {
            self.done.notify_all();
        }
        if more {
            // This worker looks for work itself. Another one is woken only if there is enough for two.
            self.signal.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Makes all workers of a piece check its stop flag.
    pub(crate) fn interrupt(&self, job: &Arc<Job>) {
        let state = self.state();
        for (thread, current) in state.threads.iter().flatten() {
            if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, job)) {
                // SAFETY: a worker leaves this list, under the lock that is held, before its thread ends.
                unsafe { crate::faults::interrupt(*thread) };
            }
        }
    }
}

impl StreamState {
    fn check(&self, stream: Stream) -> Result<()> {
        let known = stream.0 < self.streams && !self.destroyed.contains(&stream.0);
        if known { Ok(()) } else { Err(Error::UnknownStream(stream.0)) }
    }

    /// Lets streams continue whose mark was reached or whose kernel is compiled. Returns whether any has
    /// work.
    fn unblock(&mut self) -> bool {
        let ready = |queue: &Queue| match queue.waiting.front().map(|job| &job.work) {
            Some(Work::Await(mark)) => queue.blocked && mark.is_set(),
            Some(Work::Pending(pending)) => queue.blocked && pending.is_set(),
            _ => false,
        };
        let streams: Vec<u32> = self.queues.iter().filter(|(_, queue)| ready(queue)).map(|(stream, _)| *stream).collect();
        let mut more = false;
        for stream in streams {
            more |= self.advance(stream);
        }
        more
    }

    /// Returns a number below which all work is done, and remains done: if nothing is unfinished, the number of
    /// the next piece, which may be submitted before the caller acts.
    fn oldest(&self) -> u64 {
        self.outstanding.first().copied().unwrap_or(self.next_number)
    }

    fn begin(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        self.outstanding.insert(number);
        number
    }

    /// Starts the next piece of a stream. Returns whether there is one.
    fn advance(&mut self, stream: u32) -> bool {
        let Some(queue) = self.queues.get_mut(&stream) else { return false };
        queue.running = false;
        queue.blocked = false;
        while let Some(job) = queue.waiting.pop_front() {
            let must_wait = match &job.work {
                Work::Await(mark) => !mark.is_set(),
                Work::Pending(pending) => queue.error.is_none() && !pending.is_set(),
                _ => false,
            };
            if must_wait {
                queue.waiting.push_front(job);
                (queue.running, queue.blocked) = (true, true);
                return false;
            }
            let job = match &job.work {
                Work::Await(_) => Err(job),
                // Its input is not what it should be.
                Work::Launch(_) | Work::Pending(_) if queue.error.is_some() => Err(job),
                Work::Pending(pending) => match pending.take() {
                    Some(Ok(grid)) => {
                        let (workers, done) = (self.threads.len(), job.done.clone());
                        Ok(Arc::new(Job::new(job.number, job.stream, Work::Launch(grid), job.limit, workers, done)))
                    }
                    Some(Err(error)) => {
                        queue.error = Some(error);
                        Err(job)
                    }
                    None => Err(job),
                },
                _ => Ok(job),
            };
            match job {
                Ok(job) => {
                    queue.running = true;
                    self.active.push(ActiveJob { job, workers: 0 });
                    return true;
                }
                Err(job) => {
                    queue.left -= 1;
                    self.outstanding.remove(&job.number);
                    job.done.store(true, Ordering::Release);
                }
            }
        }
        false
    }

    /// Joins the piece that needs another worker most.
    fn join(&mut self, worker: usize) -> Option<Arc<Job>> {
        let open = self.active.iter_mut().filter(|active| !active.job.is_taken());
        let active = open.min_by_key(|active| (active.workers, active.job.number))?;
        active.workers += 1;
        let job = active.job.clone();
        if let Some(Some((_, current))) = self.threads.get_mut(worker) {
            *current = Some(job.clone());
        }
        Some(job)
    }
}
