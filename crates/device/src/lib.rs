//! Devices as seen by front ends.
//!
//! A [`Device`] is a handle to an executor of PTX: the interpreter, the CPU, or a GPU. It allocates
//! [`Buffer`]s, loads verified modules, and launches [`Kernel`]s in stream order. Executors implement
//! [`Backend`]; nothing else in the workspace knows which one runs.
//!
//! Invariants:
//! - Launches and copies *may* return before the work is done. [`Buffer::read`] and [`Device::synchronise`]
//!   wait, and report a failed launch at the latest.
//! - Work of one [`Stream`] runs in submission order.
//! - Freeing a buffer never waits and never fails visibly.
//! - A failing call leaves every object usable, except for a lost device, which reports its loss from then
//!   on.
//! - The arguments of a launch are checked against the kernel's signature before anything runs.

pub mod activity;
mod backend;
mod buffer;
pub mod cache;
pub mod demangle;
mod error;
mod event;
mod host;
mod kernel;
mod launch;
mod machine;
mod measure;
pub mod place;
mod printf;
pub mod private;
mod product;
mod sequence;
pub mod settings;
mod stop;
mod stream;
pub mod texture;
pub mod trace;

pub use backend::{Backend, GlobalVariable, HostCall, HostMemory, KernelAttributes, LoadedModule, MemoryUse, Sequence, Step};
pub use buffer::{Buffer, Element, RawBuffer};
pub use cache::CacheFolder;
pub use error::{Error, Fault, FaultKind, Result};
pub use event::{Event, OwnedStream};
pub use host::HostBuffer;
pub use kernel::{Argument, CheckedLaunch, Kernel, Module, ParamInfo, param_layout};
pub use launch::Launch;
pub use machine::{Machine, MachineKind};
pub use printf::{KernelMemory, format_printf};
pub use product::{Matrix, MatrixProduct, ProductElement};
pub use sequence::{Recorder, Recording};
pub use settings::{memory_limit, parse_bytes};
pub use stop::{Stop, StopReason, signal_name};
pub use stream::{EventId, Stream};

use broadloom_ptx::Verified;
use std::sync::Arc;

/// Handle of a device; cheap to clone.
#[derive(Clone, Debug)]
pub struct Device(Arc<dyn Backend>);

impl Device {
    /// Wraps an executor.
    pub fn new(backend: impl Backend + 'static) -> Self {
        Device(Arc::new(backend))
    }

    /// Returns the executor.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.0
    }

    /// Returns the description of the device.
    pub fn machine(&self) -> &Machine {
        self.0.machine()
    }

    /// Allocates memory for `count` elements, uninitialised.
    pub fn allocate<T: Element>(&self, count: usize) -> Result<Buffer<T>> {
        let mut span = trace::span("allocate");
        span.note("bytes", count.saturating_mul(T::BYTES));
        Buffer::allocate(self, count, None)
    }

    /// Allocates a buffer that work of this stream writes first, before any other access. It may reuse freed
    /// memory that earlier work of the stream still uses. A loop thus runs in the same memory, however far
    /// the host is ahead of the device.
    pub fn allocate_behind<T: Element>(&self, stream: Stream, count: usize) -> Result<Buffer<T>> {
        let mut span = trace::span("allocate");
        span.note("bytes", count.saturating_mul(T::BYTES));
        Buffer::allocate(self, count, Some(stream))
    }

    /// Allocates a buffer with the contents of a slice.
    pub fn upload<T: Element>(&self, values: &[T]) -> Result<Buffer<T>> {
        let buffer = self.allocate(values.len())?;
        buffer.write(values)?;
        Ok(buffer)
    }

    /// Allocates a buffer of zeros.
    pub fn zeros<T: Element>(&self, count: usize) -> Result<Buffer<T>> {
        let buffer = self.allocate(count)?;
        buffer.fill_bytes(0)?;
        Ok(buffer)
    }

    /// Allocates zeroed host memory for fast copies.
    pub fn host_buffer<T: Element>(&self, count: usize) -> Result<HostBuffer<T>> {
        HostBuffer::allocate(self, count)
    }

    /// Creates a stream.
    pub fn stream(&self) -> Result<OwnedStream> {
        OwnedStream::new(self)
    }

    /// Creates an event.
    pub fn event(&self) -> Result<Event> {
        Event::new(self)
    }

    /// Starts recording a fixed sequence of work for replay.
    pub fn recorder(&self) -> Recorder {
        Recorder::new(self)
    }

    /// Returns the memory usage.
    pub fn memory(&self) -> MemoryUse {
        self.0.memory()
    }

    /// Returns cached memory to the system.
    pub fn trim(&self) -> Result<()> {
        let _span = trace::span("trim");
        self.0.trim()
    }

    /// Loads a module.
    pub fn load(&self, module: &Arc<Verified>) -> Result<Module> {
        let _span = trace::span("load module");
        Module::load(self, module)
    }

    /// Waits for all work submitted so far. Any error of the work is returned here at the latest.
    pub fn synchronise(&self) -> Result<()> {
        let _span = trace::span("wait");
        self.0.synchronise()
    }
}
