//! The interpreter with the description of a GPU: planners treat it as a GPU, and it finds faults.

use broadloom_device::{Backend, Device, EventId, LoadedModule, Machine, MachineKind, MemoryUse, Result, Stream};
use broadloom_interp::{Interp, Options};
use broadloom_ptx::Verified;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Interpreter with another machine description.
#[derive(Debug)]
struct AsGpu {
    interp: Interp,
    machine: Machine,
    counts: Arc<Counts>,
}

/// Counts of device calls.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Calls that wait for work: reads and synchronisation.
    pub(crate) waits: AtomicU64,
    /// Fills of memory.
    pub(crate) fills: AtomicU64,
    /// Loaded modules.
    pub(crate) loads: AtomicU64,
    /// Waits of one stream for an event of another.
    pub(crate) joins: AtomicU64,
}

impl AsGpu {
    fn wait(&self) {
        self.counts.waits.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns a device that is described as a GPU, with its counts.
pub(crate) fn counting_gpu() -> (Device, Arc<Counts>) {
    let interp = Interp::new(Options::default());
    let machine = Machine { kind: MachineKind::Cuda, multiprocessors: 4, ..interp.machine().clone() };
    let counts = Arc::new(Counts::default());
    (Device::new(AsGpu { interp, machine, counts: counts.clone() }), counts)
}

/// Returns a device that is described as a GPU.
#[allow(dead_code, reason = "not every test program has one")]
pub(crate) fn interp_as_gpu() -> Device {
    counting_gpu().0
}

impl Backend for AsGpu {
    fn machine(&self) -> &Machine {
        &self.machine
    }
    fn allocate(&self, bytes: u64) -> Result<u64> {
        self.interp.allocate(bytes)
    }
    fn free(&self, address: u64) -> Result<()> {
        self.interp.free(address)
    }
    fn write(&self, stream: Stream, address: u64, bytes: &[u8]) -> Result<()> {
        self.interp.write(stream, address, bytes)
    }
    fn read(&self, stream: Stream, address: u64, bytes: &mut [u8]) -> Result<()> {
        self.wait();
        self.interp.read(stream, address, bytes)
    }
    fn copy(&self, stream: Stream, to: u64, from: u64, bytes: u64) -> Result<()> {
        self.interp.copy(stream, to, from, bytes)
    }
    fn fill(&self, stream: Stream, address: u64, byte: u8, bytes: u64) -> Result<()> {
        self.counts.fills.fetch_add(1, Ordering::Relaxed);
        self.interp.fill(stream, address, byte, bytes)
    }
    fn load(&self, module: &Arc<Verified>) -> Result<Arc<dyn LoadedModule>> {
        self.counts.loads.fetch_add(1, Ordering::Relaxed);
        self.interp.load(module)
    }
    fn create_stream(&self) -> Result<Stream> {
        self.interp.create_stream()
    }
    fn destroy_stream(&self, stream: Stream) -> Result<()> {
        self.interp.destroy_stream(stream)
    }
    fn synchronise_stream(&self, stream: Stream) -> Result<()> {
        self.wait();
        self.interp.synchronise_stream(stream)
    }
    fn synchronise(&self) -> Result<()> {
        self.wait();
        self.interp.synchronise()
    }
    fn create_event(&self) -> Result<EventId> {
        self.interp.create_event()
    }
    fn destroy_event(&self, event: EventId) -> Result<()> {
        self.interp.destroy_event(event)
    }
    fn record_event(&self, event: EventId, stream: Stream) -> Result<()> {
        self.interp.record_event(event, stream)
    }
    fn wait_event(&self, stream: Stream, event: EventId) -> Result<()> {
        self.counts.joins.fetch_add(1, Ordering::Relaxed);
        self.interp.wait_event(stream, event)
    }
    fn query_event(&self, event: EventId) -> Result<bool> {
        self.interp.query_event(event)
    }
    fn synchronise_event(&self, event: EventId) -> Result<()> {
        self.wait();
        self.interp.synchronise_event(event)
    }
    fn elapsed(&self, start: EventId, end: EventId) -> Result<Duration> {
        self.interp.elapsed(start, end)
    }
    fn memory(&self) -> MemoryUse {
        self.interp.memory()
    }
    fn trim(&self) -> Result<()> {
        self.interp.trim()
    }
}
