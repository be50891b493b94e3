//! NVIDIA GPU as a device.

use crate::blas::{self, Blas};
use crate::capture;
use crate::context::Context;
use crate::driver::{self, Driver};
use crate::ffi::{EventHandle, ModuleHandle};
use crate::graph::Graph;
use crate::image::{self, Images};
use crate::machine;
use crate::measure;
use crate::module::Loaded;
use crate::pool::Pool;
use crate::queue::{Queue, until};
use crate::staging::Staging;
use crate::statistics::{KernelStatistics, Record};
use crate::timing::{Piece, Timing};
use broadloom_device::cache::CACHE_BYTES;
use broadloom_device::{
    Backend, CacheFolder, Error, EventId, HostMemory, LoadedModule, Machine, MatrixProduct, MemoryUse, Result, Sequence, Step,
    Stream, memory_limit, settings, trace,
};
use broadloom_ptx::Verified;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

/// Receiver of the output of kernels.
pub type Output = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Options for opening a GPU.
#[derive(Clone)]
pub struct Options {
    /// Number of the GPU.
    pub ordinal: u32,
    /// File name of the driver's library: `BROADLOOM_CUDA_DRIVER`, or `libcuda.so.1`.
    pub driver: String,
    /// Memory limit in bytes: `BROADLOOM_MEMORY_LIMIT`, or all memory.
    pub memory_bytes: Option<u64>,
    /// Receiver of `printf` output. The driver writes it to standard output. With a receiver, the standard
    /// output of the process is redirected while the device is synchronised.
    pub output: Option<Output>,
    /// Folder of compiled modules.
    pub cache: CacheFolder,
    /// Maximum size of that folder in bytes, for all devices.
    pub cache_bytes: u64,
    /// Enables timing of launches by events of the driver, for [`Cuda::statistics`].
    pub timing: bool,
    /// Optimisation level of the driver's assembler, 0 to 4: `BROADLOOM_CUDA_LEVEL`, or the driver's default.
    /// It helps to find errors of the assembler.
    pub level: Option<u8>,
    /// Names of the matrix library to try in order: `BROADLOOM_CUBLAS`, or those of cuBLAS. A driver other
    /// than `libcuda.so.1` has none by default. Without a library, kernels multiply matrices.
    pub blas: Vec<String>,
    /// Makes every launch synchronous, so that a fault is attributed to exactly one kernel:
    /// `BROADLOOM_CUDA_SYNC=1`.
    pub synchronous: bool,
    /// Folder that receives the PTX of every module as passed to the driver: `BROADLOOM_CUDA_TEXTS`.
    pub texts: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            ordinal: 0,
            driver: driver::library_name(),
            memory_bytes: memory_limit(),
            output: None,
            cache: CacheFolder::Default,
            cache_bytes: CACHE_BYTES,
            timing: false,
            level: settings::cuda_level(),
            blas: blas::library_names(),
            synchronous: settings::cuda_sync(),
            texts: std::env::var_os("BROADLOOM_CUDA_TEXTS").filter(|folder| !folder.is_empty()).map(PathBuf::from),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("ordinal", &self.ordinal)
            .field("driver", &self.driver)
            .field("memory_bytes", &self.memory_bytes)
            .finish_non_exhaustive()
    }
}

/// NVIDIA GPU; cheap to clone.
#[derive(Clone, Debug)]
pub struct Cuda {
    pub(crate) inner: Arc<Inner>,
}

/// Event, with a flag for having been recorded.
#[derive(Debug)]
struct Mark {
    context: Arc<Context>,
    handle: EventHandle,
    recorded: AtomicBool,
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
    first: Arc<Queue>,
    queues: RwLock<HashMap<u32, Arc<Queue>>>,
    /// Queues that were destroyed while they had work.
    closed: Mutex<Vec<Arc<Queue>>>,
    /// Number of all queues, including destroyed ones with pending work.
    pub(crate) queue_count: AtomicUsize,
    next_stream: AtomicU32,
    /// Number of the last piece of work.
    pub(crate) number: AtomicU64,
    events: RwLock<HashMap<EventId, Arc<Mark>>>,
    next_event: AtomicU64,
    pub(crate) pool: Mutex<Pool>,
    /// Unused modules, with the number of the work that must be done before they are unloaded.
    pub(crate) dying_modules: Mutex<Vec<(u64, ModuleHandle)>>,
    pub(crate) staging: Mutex<Staging>,
    /// Compiled modules, and their target.
    pub(crate) images: Images,
    pub(crate) target: OnceLock<String>,
    pub(crate) timing: Timing,
    statistics: Mutex<Vec<(KernelStatistics, Arc<Record>)>>,
    /// True once a module was loaded that calls `printf`.
    pub(crate) prints: AtomicBool,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cuda").field("machine", &self.machine.id).field("options", &self.options).finish_non_exhaustive()
    }
}

/// Returns the GPUs that the driver sees, without opening them, or an error if there are none.
pub fn machines() -> Result<Vec<Machine>> {
    let driver = Driver::open(&driver::library_name())?;
    let told = |failed| Error::NotHere { device: "cuda".to_owned(), reason: driver.describe(failed) };
    let count = driver.device_count().map_err(told)?;
    if count == 0 {
        let reason = format!("the driver `{}` sees no GPU", driver.library);
        return Err(Error::NotHere { device: "cuda".to_owned(), reason });
    }
    (0..count).map(|ordinal| machine::describe(&driver, ordinal).map_err(told)).collect()
}

impl Cuda {
    /// Opens a GPU.
    pub fn new(options: Options) -> Result<Cuda> {
        let driver = Driver::open(&options.driver)?;
        let context = Context::open(&driver, options.ordinal)?;
        context.enter()?;
        let mut machine = context.checked(machine::describe(&driver, options.ordinal))?;
        let cooperative = context.checked(machine::is_cooperative(&driver, context.device))?;
        let limit = options.memory_bytes.map_or(machine.memory_bytes, |limit| limit.min(machine.memory_bytes));
        machine.memory_bytes = limit;
        let first = Queue::new(&context, 0)?;
        let inner = Inner {
            context,
            machine,
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
            pool: Mutex::new(Pool::new(limit)),
            dying_modules: Mutex::default(),
            staging: Mutex::default(),
            images: image::images(&options.cache, options.cache_bytes),
            target: OnceLock::new(),
            timing: Timing::new(options.timing),
            statistics: Mutex::default(),
            prints: AtomicBool::new(false),
            options,
        };
        Ok(Cuda { inner: Arc::new(inner) })
    }
}

impl Cuda {
    /// Measures the host's seconds per empty launch with the driver's call alone, over some launches. Returns
    /// `None` if it cannot be measured. The overhead of [`broadloom_device::Kernel::launch`] is the
    /// difference to it.
    pub fn bare_launch_time(&self, launches: u32) -> Option<f64> {
        measure::bare_launch_time(&self.inner, launches)
    }
}

impl Cuda {
    /// Returns statistics of all launches, in order of first launch. Times are included for launches that
    /// were waited for, if [`Options::timing`] is set or a trace is active.
    pub fn statistics(&self) -> Vec<KernelStatistics> {
        let list = self.inner.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        list.iter().map(|(facts, record)| record.fill(facts)).collect()
    }
}

impl Inner {
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

    /// Waits for a queue. The context must be current.
    pub(crate) fn wait(&self, queue: &Arc<Queue>) -> Result<()> {
        match &self.options.output {
            Some(output) if self.prints.load(Ordering::Relaxed) => capture::during(output, || queue.wait())?,
            Some(_) | None => queue.wait()?,
        }
        self.collect(queue)?;
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

    fn mark(&self, event: EventId) -> Result<Arc<Mark>> {
        let events = self.events.read().unwrap_or_else(PoisonError::into_inner);
        events.get(&event).cloned().ok_or(Error::UnknownEvent(event.0))
    }

    /// Returns an event that was recorded.
    fn recorded(&self, event: EventId) -> Result<Arc<Mark>> {
        let mark = self.mark(event)?;
        if mark.recorded.load(Ordering::SeqCst) { Ok(mark) } else { Err(Error::UnknownEvent(event.0)) }
    }

    /// Waits for an event. The context must be current.
    pub(crate) fn wait_for(&self, event: EventHandle) -> Result<()> {
        let limited = self.all_queues().into_iter().filter_map(|queue| Some((queue.deadline()?, queue)));
        let driver = &self.context.driver;
        match limited.max_by_key(|((deadline, _), _)| *deadline) {
            None => self.context.checked(driver.synchronise_event(event)),
            Some(((deadline, limit), queue)) => until(deadline, || self.context.checked(driver.query_event(event)))?
                .ok_or_else(|| self.context.give_up(&queue, limit)),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Pending work may use the resources released below. A failing wait is repeated once.
        let _ = (0..2).any(|_| self.context.enter_to_release() && self.wait_all().is_ok());
        self.show_lost();
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

impl Backend for Cuda {
    fn machine(&self) -> &Machine {
        &self.inner.machine
    }

    fn allocate(&self, bytes: u64) -> Result<u64> {
        self.inner.allocate(bytes)
    }

    fn free(&self, address: u64) -> Result<()> {
        self.inner.free(address)
    }

    fn write(&self, stream: Stream, address: u64, bytes: &[u8]) -> Result<()> {
        let queue = self.inner.queue(stream)?;
        self.inner.pool().check("write", address, bytes.len() as u64)?;
        self.inner.context.enter()?;
        let begun = self.inner.begin(&queue, trace::is_on())?;
        self.inner.write(&queue, address, bytes)?;
        self.inner.end(&queue, begun, || Piece::bytes("write", bytes.len() as u64))
    }

    fn read(&self, stream: Stream, address: u64, bytes: &mut [u8]) -> Result<()> {
        let queue = self.inner.queue(stream)?;
        self.inner.pool().check("read", address, bytes.len() as u64)?;
        self.inner.context.enter()?;
        let begun = self.inner.begin(&queue, trace::is_on())?;
        self.inner.read(&queue, address, bytes)?;
        self.inner.end(&queue, begun, || Piece::bytes("read", bytes.len() as u64))
    }

    fn copy(&self, stream: Stream, to: u64, from: u64, bytes: u64) -> Result<()> {
        let (inner, queue) = (&self.inner, self.inner.queue(stream)?);
        {
            let pool = inner.pool();
            pool.check("copy", from, bytes)?;
            pool.check("copy", to, bytes)?;
        }
        inner.context.enter()?;
        if bytes == 0 {
            return Ok(());
        }
        let begun = inner.begin(&queue, trace::is_on())?;
        if to.abs_diff(from) >= bytes {
            inner.context.checked(inner.context.driver.copy(to, from, bytes, queue.handle))?;
            inner.given(&queue);
            return inner.end(&queue, begun, || Piece::bytes("copy", bytes));
        }
        // The driver does not define overlapping copies, so an intermediate buffer is used.
        let between = inner.allocate(bytes)?;
        let driver = &inner.context.driver;
        let there = inner.context.checked(driver.copy(between, from, bytes, queue.handle));
        let back = there.and_then(|()| {
            inner.given(&queue);
            inner.context.checked(driver.copy(to, between, bytes, queue.handle))
        });
        let back = back.and_then(|()| {
            inner.given(&queue);
            inner.end(&queue, begun, || Piece::bytes("copy", bytes))
        });
        inner.free(between).and(back)
    }

    fn fill(&self, stream: Stream, address: u64, byte: u8, bytes: u64) -> Result<()> {
        let (inner, queue) = (&self.inner, self.inner.queue(stream)?);
        inner.pool().check("fill", address, bytes)?;
        inner.context.enter()?;
        if bytes == 0 {
            return Ok(());
        }
        let begun = inner.begin(&queue, trace::is_on())?;
        inner.context.checked(inner.context.driver.fill(address, byte, bytes, queue.handle))?;
        inner.given(&queue);
        inner.end(&queue, begun, || Piece::bytes("fill", bytes))
    }

    fn load(&self, module: &Arc<Verified>) -> Result<Arc<dyn LoadedModule>> {
        Ok(Arc::new(Loaded::new(&self.inner, module)?))
    }

    fn create_stream(&self) -> Result<Stream> {
        let inner = &self.inner;
        inner.context.enter()?;
        let stream = Stream(inner.next_stream.fetch_add(1, Ordering::Relaxed));
        let queue = Queue::new(&inner.context, stream.0)?;
        // Blocks freed while there was one stream may be given to this one, so it must wait for the first
        // stream.
        if inner.first.is_busy() {
            let driver = &inner.context.driver;
            let event = inner.context.checked(driver.create_event(crate::ffi::EVENT_NO_TIMING))?;
            let recorded = driver.record_event(event, inner.first.handle);
            let outcome = inner.context.checked(recorded.and_then(|()| driver.hold_up(queue.handle, event)));
            let destroyed = inner.context.checked(driver.destroy_event(event));
            outcome.and(destroyed)?;
        }
        inner.queue_count.fetch_add(1, Ordering::SeqCst);
        inner.queues.write().unwrap_or_else(PoisonError::into_inner).insert(stream.0, queue);
        Ok(stream)
    }

    fn destroy_stream(&self, stream: Stream) -> Result<()> {
        let inner = &self.inner;
        let queue = inner.queues.write().unwrap_or_else(PoisonError::into_inner).remove(&stream.0);
        let queue = queue.ok_or(Error::UnknownStream(stream.0))?;
        inner.closed.lock().unwrap_or_else(PoisonError::into_inner).push(queue.clone());
        if inner.context.enter().is_ok() {
            // The result only decides when the stream is released.
            let _ = queue.look();
            inner.blas.retire(&queue);
        }
        drop(queue);
        inner.drop_closed();
        Ok(())
    }

    fn synchronise_stream(&self, stream: Stream) -> Result<()> {
        let queue = self.inner.queue(stream)?;
        self.inner.context.enter()?;
        self.inner.wait(&queue)
    }

    fn synchronise(&self) -> Result<()> {
        self.inner.context.enter()?;
        self.inner.wait_all()?;
        let keep = self.inner.pool().limit() / 4;
        self.inner.give_back(keep)
    }

    fn create_event(&self) -> Result<EventId> {
        let inner = &self.inner;
        inner.context.enter()?;
        let handle = inner.retried(|| inner.context.driver.create_event(0))?;
        let event = EventId(inner.next_event.fetch_add(1, Ordering::Relaxed));
        let mark = Arc::new(Mark { context: inner.context.clone(), handle, recorded: AtomicBool::new(false) });
        inner.events.write().unwrap_or_else(PoisonError::into_inner).insert(event, mark);
        Ok(event)
    }

    fn destroy_event(&self, event: EventId) -> Result<()> {
        let mark = self.inner.events.write().unwrap_or_else(PoisonError::into_inner).remove(&event);
        mark.map(drop).ok_or(Error::UnknownEvent(event.0))
    }

    fn record_event(&self, event: EventId, stream: Stream) -> Result<()> {
        let (inner, queue, mark) = (&self.inner, self.inner.queue(stream)?, self.inner.mark(event)?);
        inner.context.enter()?;
        inner.context.checked(inner.context.driver.record_event(mark.handle, queue.handle))?;
        inner.given(&queue);
        mark.recorded.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn wait_event(&self, stream: Stream, event: EventId) -> Result<()> {
        let (inner, queue, mark) = (&self.inner, self.inner.queue(stream)?, self.inner.mark(event)?);
        inner.context.enter()?;
        if mark.recorded.load(Ordering::SeqCst) {
            inner.context.checked(inner.context.driver.hold_up(queue.handle, mark.handle))?;
            inner.given(&queue);
        }
        Ok(())
    }

    fn query_event(&self, event: EventId) -> Result<bool> {
        let mark = self.inner.mark(event)?;
        self.inner.context.enter()?;
        if !mark.recorded.load(Ordering::SeqCst) {
            return Ok(true);
        }
        self.inner.context.checked(self.inner.context.driver.query_event(mark.handle))
    }

    fn synchronise_event(&self, event: EventId) -> Result<()> {
        let mark = self.inner.mark(event)?;
        self.inner.context.enter()?;
        if mark.recorded.load(Ordering::SeqCst) { self.inner.wait_for(mark.handle) } else { Ok(()) }
    }

    fn elapsed(&self, start: EventId, end: EventId) -> Result<Duration> {
        let inner = &self.inner;
        let (start, end) = (inner.recorded(start)?, inner.recorded(end)?);
        inner.context.enter()?;
        inner.wait_for(start.handle)?;
        inner.wait_for(end.handle)?;
        let milliseconds = inner.context.checked(inner.context.driver.elapsed(start.handle, end.handle))?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }

    fn memory(&self) -> MemoryUse {
        self.inner.pool().usage()
    }

    fn trim(&self) -> Result<()> {
        self.inner.context.enter()?;
        self.inner.reclaim()
    }

    fn allocate_host(&self, bytes: usize) -> Result<Box<dyn HostMemory>> {
        self.host_pages(bytes)
    }

    fn has_products(&self) -> bool {
        self.inner.blas.is_here(&self.inner)
    }

    fn product(&self, stream: Stream, product: &MatrixProduct) -> Result<()> {
        self.inner.product(stream, product)
    }

    fn record(&self, steps: Vec<Step>) -> Result<Arc<dyn Sequence>> {
        Graph::sequence(&self.inner, steps)
    }
}
