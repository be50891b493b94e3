//! Devices as front ends see them.
//!
//! A [`Device`] is a handle to whatever executes PTX: the interpreter, the CPU, a GPU. It hands out [`Buffer`]s, loads
//! verified modules, and launches [`Kernel`]s in stream order. Executors implement [`Backend`]; nothing else in the workspace
//! knows which one runs.
//!
//! Invariants:
//! - a launch and a copy *may* return before the work is done; [`Buffer::read`] and [`Device::synchronise`] are what waits,
//!   and a failed launch is reported there at the latest;
//! - work of one [`Stream`] runs in the order in which it was given;
//! - freeing a buffer never waits and never fails visibly;
//! - a call that fails leaves every object as usable as before, but for a device that is lost: it says so from then on;
//! - the arguments of a launch are checked against the kernel's signature before anything runs.

mod backend;
mod buffer;
pub mod cache;
pub mod demangle;
mod error;
mod event;
mod host;
mod kernel;
mod machine;
mod measure;
pub mod place;
mod printf;
pub mod private;
mod product;
mod sequence;
pub mod settings;
mod stop;
pub mod texture;
pub mod trace;

pub use backend::{Backend, EventId, GlobalVariable, HostCall, KernelAttributes, LoadedModule, MemoryUse, Stream};
pub use buffer::{Buffer, Element, RawBuffer};
pub use cache::CacheFolder;
pub use error::{Error, Fault, FaultKind, Result};
pub use event::{Event, OwnedStream};
pub use host::{HostBuffer, HostMemory};
pub use kernel::{Argument, CheckedLaunch, Kernel, Launch, Module, ParamInfo, param_layout};
pub use machine::{Machine, MachineKind};
pub use printf::{KernelMemory, format_printf};
pub use product::{Matrix, MatrixProduct, ProductElement};
pub use sequence::{Recorder, Recording, Sequence, Step};
pub use settings::{memory_limit, parse_bytes};
pub use stop::{Stop, signal_name};

use broadloom_ptx::Verified;
use std::sync::Arc;

/// A handle to a device; cheap to clone.
#[derive(Clone, Debug)]
pub struct Device(Arc<dyn Backend>);

impl Device {
    /// Wraps an executor.
    pub fn new(backend: impl Backend + 'static) -> Self {
        Device(Arc::new(backend))
    }

    /// Wraps an executor that someone else keeps a hold on.
    pub fn from_arc(backend: Arc<dyn Backend>) -> Self {
        Device(backend)
    }

    /// The executor behind it.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.0
    }

    /// Returns the description of the device.
    pub fn machine(&self) -> &Machine {
        self.0.machine()
    }

    /// Memory for `count` elements, contents unspecified.
    pub fn allocate<T: Element>(&self, count: usize) -> Result<Buffer<T>> {
        let mut span = trace::span("allocate");
        span.note("bytes", count.saturating_mul(T::BYTES));
        Buffer::allocate(self, count, None)
    }

    /// A buffer that work of this stream is the first to write, before anybody else touches it. It may lie where something was freed that earlier work of the stream is still busy with, so
    /// that a loop goes round in the same memory, however far ahead of the device the host is.
    pub fn allocate_behind<T: Element>(&self, stream: Stream, count: usize) -> Result<Buffer<T>> {
        let mut span = trace::span("allocate");
        span.note("bytes", count.saturating_mul(T::BYTES));
        Buffer::allocate(self, count, Some(stream))
    }

    /// A buffer with the contents of a slice.
    pub fn upload<T: Element>(&self, values: &[T]) -> Result<Buffer<T>> {
        let buffer = self.allocate(values.len())?;
        buffer.write(values)?;
        Ok(buffer)
    }

    /// A buffer of zeros.
    pub fn zeros<T: Element>(&self, count: usize) -> Result<Buffer<T>> {
        let buffer = self.allocate(count)?;
        buffer.fill_bytes(0)?;
        Ok(buffer)
    }

    /// Values in memory of the host from which the device copies fastest, all zero.
    pub fn host_buffer<T: Element>(&self, count: usize) -> Result<HostBuffer<T>> {
        HostBuffer::allocate(self, count)
    }

    /// A stream of one's own.
    pub fn stream(&self) -> Result<OwnedStream> {
        OwnedStream::new(self)
    }

    /// An event that has not been recorded.
    pub fn event(&self) -> Result<Event> {
        Event::new(self)
    }

    /// Collects a fixed sequence of work, to be replayed.
    pub fn recorder(&self) -> Recorder {
        Recorder::new(self)
    }

    /// Returns the use of the memory.
    pub fn memory(&self) -> MemoryUse {
        self.0.memory()
    }

    /// Gives memory that is kept for later back to the system.
    pub fn trim(&self) -> Result<()> {
        let _span = trace::span("trim");
        self.0.trim()
    }

    /// Makes a module ready to run.
    pub fn load(&self, module: &Arc<Verified>) -> Result<Module> {
        let _span = trace::span("load module");
        Module::load(self, module)
    }

    /// Waits for all work given so far; an error of any of it comes back here at the latest.
    pub fn synchronise(&self) -> Result<()> {
        let _span = trace::span("wait");
        self.0.synchronise()
    }
}
