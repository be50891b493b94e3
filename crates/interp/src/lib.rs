//! Reference executor of PTX: the judge in every differential test.
//!
//! It runs one thread at a time between barriers, exactly as the manual says, slowly, and shares no analysis
//! with the other executors. In checking mode it also finds faults of a kernel: stray accesses, uninitialised
//! reads, races, misused barriers, leaks.
//!
//! Invariants:
//! - a verified module never makes it panic: instructions that it cannot run are rejected, with their span;
//! - the same launch on the same memory always gives the same result and the same order of events;
//! - no access of a kernel leaves the memory that it may use.
//!
//! Hidden modules are public for the tests of this crate alone.

pub mod check;
mod cluster;
mod cta;
mod decode;
mod exec;
mod grid;
#[doc(hidden)]
pub mod handlers;
mod marks;
#[doc(hidden)]
pub mod memory;
mod names;
mod op;
mod program;
mod variables;
mod watch;

use broadloom_device::activity::{self, Activity};
use broadloom_device::texture::{self, Opaques, Surface, Texture};
use broadloom_device::{
    Backend, Error, EventId, FaultKind, GlobalVariable, Launch, LoadedModule, Machine, MachineKind, MemoryUse, Result, Stop,
    Stream, trace,
};
use broadloom_diag::Diagnostics;
use broadloom_ptx::{Func, IsaVersion, Verified};
use check::{Checker, DeviceBytes, Finding, Findings, Rank};
use grid::Grid;
use memory::{Memory, Owner};
use program::Program;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use watch::NoWatch;

/// Receiver of the output of kernels.
pub type Output = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Options of the interpreter.
#[derive(Clone)]
pub struct Options {
    /// Total bytes of memory: `BROADLOOM_MEMORY_LIMIT`, or 8 GiB.
    pub memory_bytes: u64,
    /// First address of memory. The host must have nothing there if host memory is adopted beside it.
    pub first_address: u64,
    /// Maximum bytes that kernels may allocate with `malloc`.
    pub heap_bytes: u64,
    /// Maximum bytes of registers and local memory of a thread.
    pub stack_bytes: u64,
    /// Checking mode: faults become findings, and a launch continues after them if it can.
    pub check: bool,
    /// Checking mode: a barrier that threads of the block have left out by ending is a finding. Hardware
    /// before Volta waited for them.
    pub strict_barriers: bool,
    /// Receiver of the output of `printf`.
    pub output: Output,
    /// Flag that ends a launch once it is set.
    pub stop: Option<&'static Stop>,
    /// Machine description for planners, if it is not the interpreter's own: plans for another machine can
    /// then be made and run here.
    pub machine: Option<Machine>,
}

impl Default for Options {
    fn default() -> Self {
        let memory_bytes = broadloom_device::memory_limit().unwrap_or(8 << 30);
        let first_address = memory::FIRST;
        Options {
            memory_bytes,
            first_address,
            heap_bytes: 64 << 20,
            stack_bytes: 1 << 20,
            check: false,
            strict_barriers: false,
            output: Arc::new(|_| {}),
            stop: None,
            machine: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("memory_bytes", &self.memory_bytes).finish_non_exhaustive()
    }
}

/// Counters of executed work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Number of launches.
    pub launches: u64,
    /// Number of instructions of single threads.
    pub instructions: u64,
}

#[derive(Debug)]
struct State {
    memory: Memory,
    heap_left: u64,
    streams: u32,
    destroyed: HashSet<u32>,
    next_event: u64,
    /// Times at which events were recorded. Work is done when the call returns.
    events: HashMap<EventId, Option<Instant>>,
    statistics: Statistics,
    findings: Findings,
    defined: DeviceBytes,
}

/// The interpreter as a device.
#[derive(Clone, Debug)]
pub struct Interp {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    machine: Machine,
    options: Options,
    state: Mutex<State>,
    opaques: Opaques,
}

impl Interp {
    /// Creates an interpreter with its own memory.
    pub fn new(options: Options) -> Self {
        let own = Machine {
            kind: MachineKind::Interp,
            id: "interp".into(),
            name: "PTX reference interpreter".into(),
            warp_size: 32,
            multiprocessors: 1,
            max_threads_per_block: 1024,
            max_block: [1024, 1024, 64],
            max_grid: [i32::MAX as u32, 65535, 65535],
            max_shared_bytes: 227 << 10,
            registers: None,
            resident_threads: None,
            vector_registers: None,
            memory_bytes: options.memory_bytes,
            cache_bytes: None,
            core_cache_bytes: None,
            peak_operations: None,
            peak_bandwidth: None,
            bandwidth: None,
            launch_cost: None,
            isa: IsaVersion::new(9, 4),
            sm: 90,
        };
        let machine = options.machine.clone().unwrap_or(own);
        let state = State {
            memory: Memory::new(options.memory_bytes, options.first_address),
            heap_left: options.heap_bytes,
            streams: 1,
            destroyed: HashSet::new(),
            next_event: 0,
            events: HashMap::new(),
            statistics: Statistics::default(),
            findings: Findings::default(),
            defined: DeviceBytes::default(),
        };
        Interp { shared: Arc::new(Shared { machine, options, state: Mutex::new(state), opaques: Opaques::default() }) }
    }

    /// Returns the findings so far, causes first (for the order see [`check`]), and the current leaks.
    pub fn findings(&self) -> Vec<Finding> {
        let state = self.shared.state();
        let mut all = state.findings.list.clone();
        let mut leaks: Vec<_> = state.findings.heap.iter().collect();
        leaks.sort_by_key(|(serial, _)| **serial);
        for (_, leak) in leaks {
            let place = |finding: &Finding| finding.location.as_ref().map(|location| (location.function.clone(), location.span));
            match all
                .iter_mut()
                .find(|other| other.kind == leak.kind && other.kernel == leak.kernel && place(other) == place(leak))
            {
                Some(same) => same.count += 1,
                None => all.push(leak.clone()),
            }
        }
        all
    }

    /// Returns the findings after the first `count`, in the same order, without leaks.
    pub fn findings_behind(&self, count: usize) -> Vec<Finding> {
        self.shared.state().findings.list.get(count..).unwrap_or_default().to_vec()
    }

    /// Makes host addresses usable by kernels: allocates device memory at the same address, initially zero.
    /// The caller copies the contents; `free` releases it.
    pub fn adopt(&self, address: u64, bytes: u64) -> Result<()> {
        self.shared.state().memory.adopt(address, bytes)
    }

    /// Returns the instructions of a module that the interpreter does not run, each with its span, reachable
    /// from a kernel or not.
    pub fn refused(&self, module: &Arc<Verified>) -> Result<Diagnostics> {
        let memory = &mut self.shared.state().memory;
        let program = Program::load(module, memory, &self.shared.opaques)?;
        program.unload(memory, &self.shared.opaques);
        Ok(program.refused(module.functions.keys()))
    }

    /// Returns the counters of executed work.
    pub fn statistics(&self) -> Statistics {
        self.shared.state().statistics
    }
}

impl Shared {
    /// Locks the state. A panic while it was held leaves it usable: every step of a kernel leaves memory
    /// consistent.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that memory has been written from outside kernels.
    fn define(&self, state: &mut State, address: u64, bytes: u64) {
        if self.options.check
            && let Some((serial, offset)) = state.memory.serial_of(address)
        {
            state.defined.of(serial).set(offset, bytes, true);
        }
    }

    fn on_stream(&self, stream: Stream) -> Result<MutexGuard<'_, State>> {
        let state = self.state();
        let known = stream.0 < state.streams && !state.destroyed.contains(&stream.0);
        if known { Ok(state) } else { Err(Error::UnknownStream(stream.0)) }
    }

    /// Checks that a range lies inside one allocation.
    fn inside(&self, address: u64, bytes: u64) -> Result<()> {
        self.state().memory.range("texture", address, bytes).map(drop)
    }

    /// Returns the time at which an event was recorded.
    fn time_of(&self, event: EventId) -> Result<Instant> {
        self.state().events.get(&event).copied().flatten().ok_or(Error::UnknownEvent(event.0))
    }
}

impl Backend for Interp {
    fn machine(&self) -> &Machine {
        &self.shared.machine
    }

    fn allocate(&self, bytes: u64) -> Result<u64> {
        self.shared.state().memory.allocate(bytes, Owner::Buffer)
    }

    fn free(&self, address: u64) -> Result<()> {
        self.shared.state().memory.free(address).map_err(|_| Error::BadAddress { call: "free", address, bytes: 0 })
    }

    fn write(&self, stream: Stream, address: u64, bytes: &[u8]) -> Result<()> {
        let mut state = self.shared.on_stream(stream)?;
        let _span = TracedSpan::new(stream, "write", bytes.len() as u64);
        state.memory.range("write", address, bytes.len() as u64)?.copy_from_slice(bytes);
        self.shared.define(&mut state, address, bytes.len() as u64);
        Ok(())
    }

    fn read(&self, stream: Stream, address: u64, bytes: &mut [u8]) -> Result<()> {
        let mut state = self.shared.on_stream(stream)?;
        let _span = TracedSpan::new(stream, "read", bytes.len() as u64);
        bytes.copy_from_slice(state.memory.range("read", address, bytes.len() as u64)?);
        Ok(())
    }

    fn copy(&self, stream: Stream, to: u64, from: u64, bytes: u64) -> Result<()> {
        let mut state = self.shared.on_stream(stream)?;
        let _span = TracedSpan::new(stream, "copy", bytes);
        let source = state.memory.range("copy", from, bytes)?.to_vec();
        state.memory.range("copy", to, bytes)?.copy_from_slice(&source);
        let state = &mut *state;
        if self.shared.options.check
            && let Some(from) = state.memory.serial_of(from)
            && let Some(to) = state.memory.serial_of(to)
        {
            state.defined.copy(to, from, bytes);
        }
        Ok(())
    }

    fn fill(&self, stream: Stream, address: u64, byte: u8, bytes: u64) -> Result<()> {
        let mut state = self.shared.on_stream(stream)?;
        let _span = TracedSpan::new(stream, "fill", bytes);
        state.memory.range("fill", address, bytes)?.fill(byte);
        self.shared.define(&mut state, address, bytes);
        Ok(())
    }

    fn load(&self, module: &Arc<Verified>) -> Result<Arc<dyn LoadedModule>> {
        let mut state = self.shared.state();
        let program = Program::load(module, &mut state.memory, &self.shared.opaques)?;
        // Variables of a module are initially zero, whatever else is known of them.
        for variable in program.variables() {
            self.shared.define(&mut state, variable.address, variable.bytes);
        }
        drop(state);
        Ok(Arc::new(InterpModule { shared: self.shared.clone(), program }))
    }

    fn create_texture(&self, texture: &Texture) -> Result<u64> {
        self.shared.opaques.add_texture(texture, |address, bytes| self.shared.inside(address, bytes))
    }

    fn create_surface(&self, surface: &Surface) -> Result<u64> {
        self.shared.opaques.add_surface(surface, |address, bytes| self.shared.inside(address, bytes))
    }

    fn destroy_opaque(&self, handle: u64) -> Result<()> {
        self.shared.opaques.remove(handle)
    }

    fn create_stream(&self) -> Result<Stream> {
        let mut state = self.shared.state();
        state.streams += 1;
        Ok(Stream(state.streams - 1))
    }

    fn destroy_stream(&self, stream: Stream) -> Result<()> {
        let mut state = self.shared.on_stream(stream)?;
        if stream == Stream::default() {
            return Err(Error::UnknownStream(stream.0));
        }
        state.destroyed.insert(stream.0);
        Ok(())
    }

    fn synchronise_stream(&self, stream: Stream) -> Result<()> {
        self.shared.on_stream(stream).map(drop)
    }

    fn synchronise(&self) -> Result<()> {
        Ok(())
    }

    fn create_event(&self) -> Result<EventId> {
        let mut state = self.shared.state();
        let event = EventId(state.next_event);
        state.next_event += 1;
        state.events.insert(event, None);
        Ok(event)
    }

    fn destroy_event(&self, event: EventId) -> Result<()> {
        self.shared.state().events.remove(&event).map(drop).ok_or(Error::UnknownEvent(event.0))
    }

    fn record_event(&self, event: EventId, stream: Stream) -> Result<()> {
        let mut state = self.shared.on_stream(stream)?;
        let place = state.events.get_mut(&event).ok_or(Error::UnknownEvent(event.0))?;
        *place = Some(Instant::now());
        Ok(())
    }

    fn wait_event(&self, stream: Stream, event: EventId) -> Result<()> {
        let state = self.shared.on_stream(stream)?;
        if state.events.contains_key(&event) { Ok(()) } else { Err(Error::UnknownEvent(event.0)) }
    }

    fn query_event(&self, event: EventId) -> Result<bool> {
        self.wait_event(Stream::default(), event).map(|()| true)
    }

    fn synchronise_event(&self, event: EventId) -> Result<()> {
        self.wait_event(Stream::default(), event)
    }

    fn elapsed(&self, start: EventId, end: EventId) -> Result<Duration> {
        Ok(self.shared.time_of(end)?.saturating_duration_since(self.shared.time_of(start)?))
    }

    fn memory(&self) -> MemoryUse {
        let state = self.shared.state();
        MemoryUse { used: state.memory.used(), pooled: 0, limit: state.memory.limit() }
    }

    fn trim(&self) -> Result<()> {
        Ok(())
    }
}

/// Module with its variables in the memory of the device.
#[derive(Debug)]
struct InterpModule {
    shared: Arc<Shared>,
    program: Program,
}

impl Drop for InterpModule {
    fn drop(&mut self) {
        self.program.unload(&mut self.shared.state().memory, &self.shared.opaques);
    }
}

impl LoadedModule for InterpModule {
    fn variable(&self, name: &str) -> Option<GlobalVariable> {
        self.program.variable(name)
    }

    fn bind_texture(&self, name: &str, texture: Option<&Texture>) -> Result<()> {
        let inside = |address, bytes| self.shared.inside(address, bytes);
        let opaque = texture.map(|texture| texture::checked_texture(texture, inside)).transpose()?;
        self.program.references.bind(&self.shared.opaques, name, opaque)
    }

    fn bind_surface(&self, name: &str, surface: Option<&Surface>) -> Result<()> {
        let inside = |address, bytes| self.shared.inside(address, bytes);
        let opaque = surface.map(|surface| texture::checked_surface(surface, inside)).transpose()?;
        self.program.references.bind(&self.shared.opaques, name, opaque)
    }

    fn launch(&self, kernel: Func, launch: &Launch, params: &[u8]) -> Result<()> {
        let mut state = self.shared.on_stream(launch.stream)?;
        let state = &mut *state;
        let grid = Grid {
            program: &self.program,
            machine: &self.shared.machine,
            launch,
            kernel,
            params,
            stack_limit: self.shared.options.stack_bytes,
            heap_left: state.heap_left,
            stop: self.shared.options.stop,
            opaques: self.shared.opaques.table(),
        };
        let _span = TracedSpan::launch(launch, || self.program.module.functions[kernel].name.clone());
        let output = &self.shared.options.output;
        let mut sink = |text: &[u8]| output(text);
        let outcome = if self.shared.options.check {
            let first = state.findings.list.len();
            let strict = self.shared.options.strict_barriers;
            let (findings, defined) = (&mut state.findings, &mut state.defined);
            let mut checker = Checker::new(&self.program, kernel, launch.grid, launch.block, findings, defined, strict);
            let outcome = grid.run(&mut state.memory, &mut checker, &mut sink);
            checker.conclude();
            // An interruption is not the kernel's fault.
            if let Err(Error::Fault(fault)) = &outcome
                && fault.kind != FaultKind::Interrupted
            {
                state.findings.add(Finding::from_fault(fault), Rank::Other, None);
            }
            state.findings.order_from(first);
            outcome?
        } else {
            grid.run(&mut state.memory, &mut NoWatch, &mut sink)?
        };
        state.heap_left = outcome.heap_left;
        state.statistics.launches += 1;
        state.statistics.instructions += outcome.steps;
        Ok(())
    }
}

/// Span of a piece of work of a stream in a trace, from creation until it is dropped.
struct TracedSpan {
    piece: Option<TracedWork>,
    _activity: Activity,
}

/// Copy, fill or launch, as shown in a trace.
struct TracedWork {
    stream: Stream,
    name: String,
    started: Instant,
    notes: Vec<trace::Note>,
}

impl TracedSpan {
    fn new(stream: Stream, name: &str, bytes: u64) -> TracedSpan {
        let piece =
            || TracedWork { stream, name: name.to_owned(), started: Instant::now(), notes: vec![("bytes", bytes.into())] };
        TracedSpan { piece: trace::is_on().then(piece), _activity: activity::begin(|| name.to_owned()) }
    }

    fn launch(launch: &Launch, name: impl Fn() -> String) -> TracedSpan {
        let noted = activity::begin(|| format!("run kernel `{}`", name()));
        let piece = || {
            let notes = vec![("grid", trace::shape(launch.grid)), ("block", trace::shape(launch.block))];
            TracedWork { stream: launch.stream, name: name(), started: Instant::now(), notes }
        };
        TracedSpan { piece: trace::is_on().then(piece), _activity: noted }
    }
}

impl Drop for TracedSpan {
    fn drop(&mut self) {
        if let Some(TracedWork { stream, name, started, notes }) = self.piece.take() {
            trace::device_span("interp", &format!("stream {}", stream.0), name, (started, Instant::now()), notes);
        }
    }
}
