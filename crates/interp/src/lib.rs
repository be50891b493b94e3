//! The reference executor of PTX: the judge in every differential test.
//!
//! It runs one thread at a time between barriers, exactly as the manual says, slowly, and shares no analysis with the other
//! executors. In checking mode it also finds what a kernel does wrong: stray accesses, uninitialised reads, races, misused
//! barriers, leaks.
//!
//! Invariants:
//! - a verified module never makes it panic: what it cannot run it refuses, with the place;
//! - the same launch on the same memory gives the same result and the same order of events, always;
//! - no access of a kernel leaves the memory that it may use.

mod cta;
mod decode;
mod exec;
mod grid;
mod handlers;
mod memory;
mod op;
mod program;
mod pure;
mod watch;

use broadloom_device::{Backend, Error, GlobalVariable, Launch, LoadedModule, Machine, MachineKind, Result, Stream};
use broadloom_ptx::{Func, IsaVersion, Verified};
use grid::Grid;
use memory::{Memory, Owner};
use program::Program;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use watch::Unwatched;

/// Receives what kernels print.
pub type Output = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// How the interpreter is set up.
#[derive(Clone)]
pub struct Options {
    /// Bytes of memory in all.
    pub memory_bytes: u64,
    /// Bytes that kernels may take with `malloc`.
    pub heap_bytes: u64,
    /// Bytes of registers and local memory that a thread may use.
    pub stack_bytes: u64,
    /// Where the text of `printf` goes.
    pub output: Output,
}

impl Default for Options {
    fn default() -> Self {
        Options { memory_bytes: 8 << 30, heap_bytes: 64 << 20, stack_bytes: 1 << 20, output: Arc::new(|_| {}) }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("memory_bytes", &self.memory_bytes).finish_non_exhaustive()
    }
}

/// What has been run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Launches.
    pub launches: u64,
    /// Instructions of single threads.
    pub instructions: u64,
}

#[derive(Debug)]
struct State {
    memory: Memory,
    heap_left: u64,
    streams: u32,
    statistics: Statistics,
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
}

impl Interp {
    /// An interpreter with its own memory.
    pub fn new(options: Options) -> Self {
        let machine = Machine {
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
            memory_bytes: options.memory_bytes,
            cache_bytes: None,
            bandwidth: None,
            launch_cost: None,
            isa: IsaVersion::new(9, 4),
            sm: 90,
        };
        let state = State {
            memory: Memory::new(options.memory_bytes),
            heap_left: options.heap_bytes,
            streams: 1,
            statistics: Statistics::default(),
        };
        Interp { shared: Arc::new(Shared { machine, options, state: Mutex::new(state) }) }
    }

    /// What has been run so far.
    pub fn statistics(&self) -> Statistics {
        self.shared.state().statistics
    }
}

impl Shared {
    /// The state. A panic while it was held leaves it usable: every step of a kernel leaves memory whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_stream(&self, stream: Stream) -> Result<MutexGuard<'_, State>> {
        let state = self.state();
        if stream.0 < state.streams { Ok(state) } else { Err(Error::UnknownStream(stream.0)) }
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
        state.memory.range("write", address, bytes.len() as u64)?.copy_from_slice(bytes);
        Ok(())
    }

    fn read(&self, stream: Stream, address: u64, bytes: &mut [u8]) -> Result<()> {
        let mut state = self.shared.on_stream(stream)?;
        bytes.copy_from_slice(state.memory.range("read", address, bytes.len() as u64)?);
        Ok(())
    }

    fn copy(&self, stream: Stream, to: u64, from: u64, bytes: u64) -> Result<()> {
        let mut state = self.shared.on_stream(stream)?;
        let source = state.memory.range("copy", from, bytes)?.to_vec();
        state.memory.range("copy", to, bytes)?.copy_from_slice(&source);
        Ok(())
    }

    fn fill(&self, stream: Stream, address: u64, byte: u8, bytes: u64) -> Result<()> {
        let mut state = self.shared.on_stream(stream)?;
        state.memory.range("fill", address, bytes)?.fill(byte);
        Ok(())
    }

    fn load(&self, module: &Arc<Verified>) -> Result<Arc<dyn LoadedModule>> {
        let program = Program::load(module, &mut self.shared.state().memory)?;
        Ok(Arc::new(Loaded { shared: self.shared.clone(), program }))
    }

    fn create_stream(&self) -> Result<Stream> {
        let mut state = self.shared.state();
        state.streams += 1;
        Ok(Stream(state.streams - 1))
    }

    fn synchronise_stream(&self, stream: Stream) -> Result<()> {
        self.shared.on_stream(stream).map(drop)
    }

    fn synchronise(&self) -> Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct Loaded {
    shared: Arc<Shared>,
    program: Program,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.program.unload(&mut self.shared.state().memory);
    }
}

impl LoadedModule for Loaded {
    fn variable(&self, name: &str) -> Option<GlobalVariable> {
        self.program.variable(name)
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
        };
        let output = &self.shared.options.output;
        let outcome = grid.run(&mut state.memory, &mut Unwatched, &mut |text| output(text))?;
        state.heap_left = outcome.heap_left;
        state.statistics.launches += 1;
        state.statistics.instructions += outcome.steps;
        Ok(())
    }
}
