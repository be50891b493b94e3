//! The CPU as a device.

use crate::arena;
use crate::cache::Cache;
use crate::cluster::ClusterShape;
use crate::compile::Checks;
use crate::execute::{OutputSink, Surroundings};
use crate::grid::{Grid, Ready};
use crate::handle::Handle;
use crate::lanes;
use crate::memory::{Memory, Owner};
use crate::module::CpuModule;
use crate::options::{self, Options};
use crate::services::SERVICES;
use crate::state::DeviceState;
use crate::statistics::KernelStatistics;
use crate::stream::{CompletionListener, Job, Limit, OnceCall, Streams, Work};
use crate::watchdog::Watchdog;
use crate::worker::{WorkerShared, work};
use broadloom_device::texture::{OpaqueTable, Opaques, Surface, Texture};
use broadloom_device::{Backend, Error, EventId, HostCall, Launch, LoadedModule, Machine, MemoryUse, Result, Stream, trace};
use broadloom_ptx::Verified;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Handle of the CPU device; cheap to clone.
#[derive(Clone, Debug)]
pub struct Cpu {
    pub(crate) inner: Arc<DeviceState>,
}

/// Counter of finished work, which releases the memory that waited for it.
struct Accounts(Arc<Memory>);

impl CompletionListener for Accounts {
    fn finished(&self, job: &Job, started: Option<Instant>, oldest: u64) {
        if let Work::Launch(grid) = &job.work {
            grid.record.add(started.map_or(Duration::ZERO, |started| started.elapsed()));
        }
        if let Some(started) = started.filter(|_| trace::is_on()) {
            lanes::finished(job, started);
        }
        self.0.reap(oldest);
    }
}

impl Cpu {
    /// Creates a device with its own memory and threads.
    pub fn new(mut options: Options) -> Result<Cpu> {
        options.compile.stack_bytes = options.stack_bytes;
        options
            .compile
            .machine
            .runs_here()
            .map_err(|error| Error::NotHere { device: "cpu".into(), reason: error.to_string() })?;
        if options.compile.checks == Checks::Confined {
            // Without one, every address is looked up.
            arena::reserve();
        }
        let threads = options.threads.max(1);
        let memory = Arc::new(Memory::new(options.memory_bytes, options.heap_bytes, options.slack_bytes));
        let shared = Arc::new(WorkerShared {
            streams: Streams::new(threads),
            surroundings: Surroundings {
                memory: memory.clone(),
                foreign: options.foreign.clone(),
                checks: options.compile.checks,
                output: OutputSink(options.output.clone()),
                services: SERVICES,
            },
            watchdog: Watchdog::default(),
            finished: Box::new(Accounts(memory.clone())),
            workers: threads,
            ahead: AtomicUsize::new(0),
        });
        let mut workers = vec![];
        for index in 0..threads {
            let worker_shared = shared.clone();
            let thread = std::thread::Builder::new().name(format!("broadloom-{index}"));
            match thread.spawn(move || work(&worker_shared, index)) {
                Ok(handle) => workers.push(handle),
                // Fewer threads can do the same work; without any there is no device.
                Err(_) if index > 0 => break,
                Err(_) => return Err(Error::OutOfMemory { requested: 0, available: 0 }),
            }
        }
        Ok(Cpu {
            inner: Arc::new(DeviceState {
                machine: options::machine(&options),
                cache: Cache::new(&options.cache, options.cache_bytes),
                options,
                memory,
                shared,
                launches: AtomicU32::new(0),
                drafts: AtomicU32::new(0),
                proofs: AtomicU32::new(0),
                opaques: Opaques::default(),
                statistics: Mutex::new(vec![]),
                workers,
            }),
        })
    }

    /// Returns statistics of all kernels compiled and run so far, in the order of compilation.
    pub fn statistics(&self) -> Vec<KernelStatistics> {
        let list = self.inner.statistics();
        list.iter()
            .map(|(facts, record)| KernelStatistics { launches: record.launches(), run_time: record.time(), ..facts.clone() })
            .collect()
    }

    /// Returns how often the passes ran over a kernel. Code from the cache needs none.
    pub fn drafts(&self) -> u32 {
        self.inner.drafts.load(Ordering::Relaxed)
    }

    /// Returns how many proofs were tried for launches. Launches of similar sizes share one.
    pub fn proofs(&self) -> u32 {
        self.inner.proofs.load(Ordering::Relaxed)
    }

    /// Launches code that was not compiled from PTX, as tests write it.
    ///
    /// # Safety
    /// The code is a kernel as [`crate::abi`] describes it.
    #[doc(hidden)]
    pub unsafe fn launch_code(&self, ready: &Arc<Ready>, launch: &Launch, params: &[u64]) -> Result<()> {
        let mut words: Vec<u128> =
            params.chunks(2).map(|pair| u128::from(pair[0]) | u128::from(pair.get(1).copied().unwrap_or(0)) << 64).collect();
        words.push(0);
        let grid = Grid {
            opaques: OpaqueTable::default(),
            params: words,
            variables: Arc::new([]),
            record: Arc::default(),
            grid: launch.grid,
            block: launch.block,
            threads: launch.threads_per_block() as u32,
            cluster: ClusterShape::default(),
            shared_bytes: ready.code.shared_bytes,
            dynamic_shared_bytes: 0,
            dynamic_shared_offset: 0,
            cooperative: launch.cooperative,
            workspace: None,
            number: 1,
            stack_bytes: 1 << 20,
            ready: ready.clone(),
        };
        let limit = launch.time_limit.map(|total| Limit { total, spent: Duration::ZERO });
        self.inner.shared.streams.submit(launch.stream, Work::Launch(Box::new(grid)), limit, &|| Ok(()))
    }
}

impl Backend for Cpu {
    fn machine(&self) -> &Machine {
        &self.inner.machine
    }

    fn allocate(&self, bytes: u64) -> Result<u64> {
        self.inner.allocate(bytes, Owner::Buffer)
    }

    fn allocate_behind(&self, stream: Stream, bytes: u64) -> Result<u64> {
        let inner = &self.inner;
        match inner.streams().if_alone(stream, || inner.memory.take_over(bytes)) {
            Some(address) => Ok(address),
            None => self.allocate(bytes),
        }
    }

    fn free(&self, address: u64) -> Result<()> {
        let freed = self.inner.memory.free(address)?;
        // Following launches find nothing behind handles to this memory.
        self.inner.opaques.freed(address, freed.bytes());
        self.inner.memory.release_after(freed, self.inner.streams().horizon());
        self.inner.reap();
        Ok(())
    }

    fn write(&self, stream: Stream, address: u64, bytes: &[u8]) -> Result<()> {
        let inner = &self.inner;
        inner.streams().check(stream)?;
        let count = bytes.len() as u64;
        if inner.streams().is_idle(stream) {
            return inner.with_range("write", address, count, |to| {
                let _span = lanes::TracedCopy::new(stream, "write", bytes.len());
                // SAFETY: the range is inside a live allocation, which stays. Kernels of other streams may
                // race, as they may with each other.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
                Ok(())
            });
        }
        let work = Work::Write { address, bytes: bytes.to_vec() };
        inner.streams().submit(stream, work, None, &|| inner.memory.range("write", address, count).map(drop))
    }

    fn read(&self, stream: Stream, address: u64, bytes: &mut [u8]) -> Result<()> {
        let inner = &self.inner;
        inner.streams().check(stream)?;
        inner.with_range("read", address, bytes.len() as u64, |from| {
            inner.streams().wait(stream)?;
            let _span = lanes::TracedCopy::new(stream, "read", bytes.len());
            // SAFETY: as in `write`.
            unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
            Ok(())
        })
    }

    fn copy(&self, stream: Stream, to: u64, from: u64, bytes: u64) -> Result<()> {
        let inner = &self.inner;
        inner.streams().submit(stream, Work::Copy { to, from, bytes }, None, &|| {
            inner.memory.range("copy", from, bytes)?;
            inner.memory.range("copy", to, bytes).map(drop)
        })
    }

    fn fill(&self, stream: Stream, address: u64, byte: u8, bytes: u64) -> Result<()> {
        let inner = &self.inner;
        let work = Work::Fill { address, byte, bytes };
        inner.streams().submit(stream, work, None, &|| inner.memory.range("fill", address, bytes).map(drop))
    }

    fn load(&self, module: &Arc<Verified>) -> Result<Arc<dyn LoadedModule>> {
        Ok(Arc::new(Handle::new(CpuModule::new(&self.inner, module)?)))
    }

    fn create_texture(&self, texture: &Texture) -> Result<u64> {
        self.inner.opaques.add_texture(texture, |address, bytes| self.inner.inside(address, bytes))
    }

    fn create_surface(&self, surface: &Surface) -> Result<u64> {
        self.inner.opaques.add_surface(surface, |address, bytes| self.inner.inside(address, bytes))
    }

    fn destroy_opaque(&self, handle: u64) -> Result<()> {
        self.inner.opaques.remove(handle)
    }

    fn call(&self, stream: Stream, function: HostCall) -> Result<()> {
        self.inner.streams().submit(stream, Work::Call(OnceCall::new(function)), None, &|| Ok(()))
    }

    fn create_stream(&self) -> Result<Stream> {
        Ok(self.inner.streams().create())
    }

    fn destroy_stream(&self, stream: Stream) -> Result<()> {
        self.inner.streams().destroy(stream)
    }

    fn synchronise_stream(&self, stream: Stream) -> Result<()> {
        self.inner.streams().wait(stream)
    }

    fn query_stream(&self, stream: Stream) -> Result<bool> {
        self.inner.streams().check(stream)?;
        Ok(self.inner.streams().is_idle(stream))
    }

    fn synchronise(&self) -> Result<()> {
        self.inner.streams().wait_all()
    }

    fn create_event(&self) -> Result<EventId> {
        Ok(self.inner.streams().create_event())
    }

    fn destroy_event(&self, event: EventId) -> Result<()> {
        self.inner.streams().destroy_event(event)
    }

    fn record_event(&self, event: EventId, stream: Stream) -> Result<()> {
        self.inner.streams().record_event(event, stream)
    }

    fn wait_event(&self, stream: Stream, event: EventId) -> Result<()> {
        self.inner.streams().hold_up(stream, event)
    }

    fn query_event(&self, event: EventId) -> Result<bool> {
        Ok(self.inner.streams().mark_of(event)?.is_none_or(|mark| mark.is_set()))
    }

    fn synchronise_event(&self, event: EventId) -> Result<()> {
        let mark = self.inner.streams().mark_of(event)?;
        if let Some(mark) = mark {
            self.inner.streams().wait_for_mark(&mark);
        }
        Ok(())
    }

    fn elapsed(&self, start: EventId, end: EventId) -> Result<Duration> {
        let streams = self.inner.streams();
        let time = |event: EventId| {
            let mark = streams.mark_of(event)?.ok_or(Error::UnknownEvent(event.0))?;
            Ok::<_, Error>(streams.wait_for_mark(&mark))
        };
        let (start, end) = (time(start)?, time(end)?);
        Ok(end.saturating_duration_since(start))
    }

    fn memory(&self) -> MemoryUse {
        self.inner.reap();
        self.inner.memory.usage()
    }

    fn trim(&self) -> Result<()> {
        if self.inner.memory.has_dying() {
            self.inner.wait_for_dying();
        }
        self.inner.memory.empty_pool();
        Ok(())
    }
}
