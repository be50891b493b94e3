//! NVIDIA GPU as a device.

use crate::context::Context;
use crate::driver::{self, Driver};
use crate::graph::Graph;
use crate::host::HostPages;
use crate::inner::{Inner, Mark};
use crate::module::CudaModule;
use crate::options::Options;
use crate::queue::Queue;
use crate::statistics::KernelStatistics;
use crate::timing::TracedWork;
use crate::{machine, measure};
use broadloom_device::{
    Backend, Error, EventId, HostMemory, LoadedModule, Machine, MatrixProduct, MemoryUse, Result, Sequence, Step, Stream, trace,
};
use broadloom_ptx::Verified;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// NVIDIA GPU; cheap to clone.
#[derive(Clone, Debug)]
pub struct Cuda {
    pub(crate) inner: Arc<Inner>,
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
        Ok(Cuda { inner: Arc::new(Inner::new(context, machine, cooperative, options)?) })
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
        self.inner.end(&queue, begun, || TracedWork::bytes("write", bytes.len() as u64))
    }

    fn read(&self, stream: Stream, address: u64, bytes: &mut [u8]) -> Result<()> {
        let queue = self.inner.queue(stream)?;
        self.inner.pool().check("read", address, bytes.len() as u64)?;
        self.inner.context.enter()?;
        let begun = self.inner.begin(&queue, trace::is_on())?;
        self.inner.read(&queue, address, bytes)?;
        self.inner.end(&queue, begun, || TracedWork::bytes("read", bytes.len() as u64))
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
            return inner.end(&queue, begun, || TracedWork::bytes("copy", bytes));
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
            inner.end(&queue, begun, || TracedWork::bytes("copy", bytes))
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
        inner.end(&queue, begun, || TracedWork::bytes("fill", bytes))
    }

    fn load(&self, module: &Arc<Verified>) -> Result<Arc<dyn LoadedModule>> {
        Ok(Arc::new(CudaModule::new(&self.inner, module)?))
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
        Ok(Box::new(HostPages::new(&self.inner, bytes)?))
    }

    fn has_products(&self) -> bool {
        self.inner.has_products()
    }

    fn product(&self, stream: Stream, product: &MatrixProduct) -> Result<()> {
        self.inner.product(stream, product)
    }

    fn record(&self, steps: Vec<Step>) -> Result<Arc<dyn Sequence>> {
        Graph::sequence(&self.inner, steps)
    }
}
