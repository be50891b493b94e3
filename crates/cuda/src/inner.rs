//! State shared by the handles of a device: streams, events, memory, modules, and waiting for work.

use crate::blas::Blas;
use crate::capture;
use crate::chunks::Staging;
use crate::context::Context;
use crate::ffi::{EventHandle, ModuleHandle};
use crate::images::{self, Images};
use crate::options::Options;
use crate::pool::Pool;
use crate::queue::{Queue, until};
use crate::statistics::{KernelStatistics, Record};
use crate::timing::{Timing, TracedWork, UntimedWork, WorkStart};
use broadloom_device::{Error, EventId, Machine, Result, Stream};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// Event, with a flag for having been recorded.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) context: Arc<Context>,
    pub(crate) handle: EventHandle,
    pub(crate) recorded: AtomicBool,
}

impl Drop for Mark {
    fn drop(&mut self) {
        if self.context.enter_to_release() {
            let _ = self.context.driver.destroy_event(self.handle);
        }
    }
}

/// State shared by the handles of a device.
pub(crate) struct Inner {
    pub(crate) context: Arc<Context>,
    pub(crate) options: Options,
    pub(crate) machine: Machine,
    pub(crate) blas: Blas,
    /// True if cooperative launches are supported.
    pub(crate) cooperative: bool,
    /// Default stream, and all others by number.
    pub(crate) first: Arc<Queue>,
    pub(crate) queues: RwLock<HashMap<u32, Arc<Queue>>>,
    /// Queues that were destroyed while they had work.
    pub(crate) closed: Mutex<Vec<Arc<Queue>>>,
    /// Number of all queues, including destroyed ones with pending work.
    pub(crate) queue_count: AtomicUsize,
    pub(crate) next_stream: AtomicU32,
    /// Number of the last piece of work.
    pub(crate) number: AtomicU64,
    pub(crate) events: RwLock<HashMap<EventId, Arc<Mark>>>,
    pub(crate) next_event: AtomicU64,
    pub(crate) pool: Mutex<Pool>,
    /// Unused modules, with the number of the work that must be done before they are unloaded.
    pub(crate) dying_modules: Mutex<Vec<(u64, ModuleHandle)>>,
    pub(crate) staging: Mutex<Staging>,
    /// Compiled modules, and their target.
    pub(crate) images: Images,
    pub(crate) target: OnceLock<String>,
    pub(crate) timing: Timing,
    pub(crate) statistics: Mutex<Vec<(KernelStatistics, Arc<Record>)>>,
    /// True once a module was loaded that calls `printf`.
    pub(crate) prints: AtomicBool,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cuda").field("machine", &self.machine.id).field("options", &self.options).finish_non_exhaustive()
    }
}

impl Inner {
    /// Creates the state of a GPU with one stream. The context must be current.
    pub(crate) fn new(context: Arc<Context>, machine: Machine, cooperative: bool, options: Options) -> Result<Inner> {
        let first = Queue::new(&context, 0)?;
        Ok(Inner {
            context,
            blas: Blas::default(),
            cooperative,
            first,
            queues: RwLock::default(),
            closed: Mutex::default(),
            queue_count: AtomicUsize::new(1),
            next_stream: AtomicU32::new(1),
            number: AtomicU64::new(0),
            events: RwLock::default(),
            next_event: AtomicU64::new(0),
            pool: Mutex::new(Pool::new(machine.memory_bytes)),
            dying_modules: Mutex::default(),
            staging: Mutex::default(),
            images: images::open(&options.cache, options.cache_bytes),
            target: OnceLock::new(),
            timing: Timing::new(options.timing),
            statistics: Mutex::default(),
            prints: AtomicBool::new(false),
            machine,
            options,
        })
    }

    /// Adds a kernel that is about to be launched to the statistics.
    pub(crate) fn note_kernel(&self, facts: KernelStatistics) -> Arc<Record> {
        let record = Arc::new(Record::default());
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner).push((facts, record.clone()));
        record
    }

    /// Returns the queue of a stream.
    #[inline]
    pub(crate) fn queue(&self, stream: Stream) -> Result<Arc<Queue>> {
        if stream.0 == 0 {
            return Ok(self.first.clone());
        }
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        queues.get(&stream.0).cloned().ok_or(Error::UnknownStream(stream.0))
    }

    /// Returns all queues that may have work.
    pub(crate) fn all_queues(&self) -> Vec<Arc<Queue>> {
        let mut all = vec![self.first.clone()];
        all.extend(self.queues.read().unwrap_or_else(PoisonError::into_inner).values().cloned());
        all.extend(self.closed.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        all
    }

    /// Tests if any queue satisfies a predicate.
    pub(crate) fn any_queue(&self, is: impl Fn(&Queue) -> bool) -> bool {
        self.all_queues().iter().any(|queue| is(queue))
    }

    /// Counts a piece of work submitted to a queue. Returns its number.
    #[inline]
    pub(crate) fn given(&self, queue: &Queue) -> u64 {
        let number = self.number.fetch_add(1, Ordering::SeqCst) + 1;
        queue.given(number);
        number
    }

    /// Begins a piece of work, if it is timed. The context must be current.
    #[inline]
    pub(crate) fn begin(&self, queue: &Queue, timed: bool) -> Result<Option<WorkStart>> {
        if timed { self.timing.begin(queue) } else { Ok(None) }
    }

    /// Ends a piece of work that was submitted to the driver.
    #[inline]
    pub(crate) fn end(&self, queue: &Arc<Queue>, begun: Option<WorkStart>, piece: impl FnOnce() -> TracedWork) -> Result<()> {
        match begun {
            None => Ok(()),
            Some(begun) => self.end_timed(queue, begun, piece()),
        }
    }

    #[cold]
    fn end_timed(&self, queue: &Arc<Queue>, begun: WorkStart, piece: TracedWork) -> Result<()> {
        let Some(end) = self.timing.stamp(queue)? else { return Ok(()) };
        let number = self.given(queue);
        let is_full = self.timing.add(UntimedWork { begun, end, queue: queue.clone(), number, piece });
        if is_full { self.wait(queue) } else { Ok(()) }
    }

    /// Waits for a queue. The context must be current.
    pub(crate) fn wait(&self, queue: &Arc<Queue>) -> Result<()> {
        match &self.options.output {
            Some(output) if self.prints.load(Ordering::Relaxed) => capture::during(output, || queue.wait())?,
            Some(_) | None => queue.wait()?,
        }
        self.timing.collect(queue)?;
        if self.queue_count.load(Ordering::SeqCst) > 1 {
            self.reap();
        } else {
            self.unload_modules(|number| queue.is_done(number));
        }
        Ok(())
    }

    /// Waits for all queues. The context must be current.
    pub(crate) fn wait_all(&self) -> Result<()> {
        for queue in self.all_queues() {
            self.wait(&queue)?;
        }
        self.reap();
        Ok(())
    }

    /// Releases destroyed queues whose work is done.
    pub(crate) fn drop_closed(&self) {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        let before = closed.len();
        closed.retain(|queue| queue.is_busy());
        self.queue_count.fetch_sub(before - closed.len(), Ordering::SeqCst);
    }

    /// Unloads modules whose work is done.
    pub(crate) fn unload_modules(&self, is_done: impl Fn(u64) -> bool) {
        let mut dying = self.dying_modules.lock().unwrap_or_else(PoisonError::into_inner);
        dying.retain(|(number, module)| {
            let done = is_done(*number);
            if done && !self.context.is_lost() {
                // An error cannot be reported to anyone here.
                let _ = self.context.driver.unload_module(*module);
            }
            !done
        });
    }

    pub(crate) fn mark(&self, event: EventId) -> Result<Arc<Mark>> {
        let events = self.events.read().unwrap_or_else(PoisonError::into_inner);
        events.get(&event).cloned().ok_or(Error::UnknownEvent(event.0))
    }

    /// Returns an event that was recorded.
    pub(crate) fn recorded(&self, event: EventId) -> Result<Arc<Mark>> {
        let mark = self.mark(event)?;
        if mark.recorded.load(Ordering::SeqCst) { Ok(mark) } else { Err(Error::UnknownEvent(event.0)) }
    }

    /// Waits for an event. The context must be current.
    pub(crate) fn wait_for(&self, event: EventHandle) -> Result<()> {
        let limited = self.all_queues().into_iter().filter_map(|queue| Some((queue.journal().deadline()?, queue)));
        let driver = &self.context.driver;
        match limited.max_by_key(|((deadline, _), _)| *deadline) {
            None => self.context.checked(driver.synchronise_event(event)),
            Some(((deadline, limit), queue)) => {
                until(deadline, || self.context.checked(driver.query_event(event)))?.ok_or_else(|| queue.give_up(limit))
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Pending work may use the resources released below. A failing wait is repeated once.
        let _ = (0..2).any(|_| self.context.enter_to_release() && self.wait_all().is_ok());
        self.timing.show_lost();
        if self.context.is_stuck() {
            // Pending copies may still use the staging memory.
            std::mem::forget(std::mem::take(&mut *self.staging.lock().unwrap_or_else(PoisonError::into_inner)));
            return;
        }
        let all = self.pool().everything();
        if self.context.enter_to_release() {
            self.blas.release();
            self.unload_modules(|_| true);
            for address in all {
                let _ = self.context.driver.free(address);
            }
        }
    }
}
