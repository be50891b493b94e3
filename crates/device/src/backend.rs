//! The traits that an executor implements.

use crate::host::PageableMemory;
use crate::sequence::OneByOne;
use crate::texture::{Surface, Texture};
use crate::{Error, HostMemory, Launch, Machine, MatrixProduct, Result, Sequence, Step};
use broadloom_ptx::{Func, Verified};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// A queue of work. Work of one stream runs in order; streams run beside each other where the device can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stream(pub u32);

/// A point in a stream that others can wait for, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(pub u64);

/// A function of the host that is called in stream order.
pub type HostCall = Box<dyn FnOnce() + Send>;

/// The use of a device's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes that buffers and variables hold.
    pub used: u64,
    /// Bytes that are kept for the next buffers.
    pub pooled: u64,
    /// Bytes that there may be in all.
    pub limit: u64,
}

/// Facts about the compilation of a kernel. Facts that an executor does not know are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelAttributes {
    /// Registers of 32 bits that a thread uses, or would use on a GPU.
    pub registers: Option<u32>,
    /// Shared memory of a block that is not dynamic, in bytes.
    pub shared_bytes: Option<u32>,
    /// Local memory of a thread in bytes.
    pub local_bytes: Option<u32>,
    /// Most threads that a block of it can have.
    pub max_threads_per_block: Option<u32>,
    /// Most dynamic shared memory of a block in bytes.
    pub max_dynamic_shared_bytes: Option<u32>,
}

/// A global variable of a loaded module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalVariable {
    /// Where it is.
    pub address: u64,
    /// How large it is.
    pub bytes: u64,
}

/// An executor of PTX. Addresses are the device's own, as kernels see them.
///
/// Calls may come from several threads. Work is in stream order, and none but `read`, `elapsed`, `trim` and the `synchronise` family
/// needs to wait. When there is too little memory, what is kept for later is given up and the call tried once more; when it fails then,
/// everything is as it was before the call.
pub trait Backend: Debug + Send + Sync {
    /// Returns the description of the device.
    fn machine(&self) -> &Machine;

    /// Memory, aligned to 256 bytes. Zero bytes give an address that may be freed and nothing else.
    fn allocate(&self, bytes: u64) -> Result<u64>;

    /// The same for what work of a stream is the first to write, and nobody else touches before: that may be memory which earlier work of the stream is still busy with.
    fn allocate_behind(&self, _stream: Stream, bytes: u64) -> Result<u64> {
        self.allocate(bytes)
    }

    /// Gives memory back once all work given so far is done with it.
    fn free(&self, address: u64) -> Result<()>;

    /// Copies from the host. The slice may be reused when the call returns.
    fn write(&self, stream: Stream, address: u64, bytes: &[u8]) -> Result<()>;

    /// Copies to the host, after all earlier work of the stream.
    fn read(&self, stream: Stream, address: u64, bytes: &mut [u8]) -> Result<()>;

    /// Copies within the device.
    fn copy(&self, stream: Stream, to: u64, from: u64, bytes: u64) -> Result<()>;

    /// Sets every byte.
    fn fill(&self, stream: Stream, address: u64, byte: u8, bytes: u64) -> Result<()>;

    /// Makes a module ready to run. Instructions that the executor does not have are refused here or at launch, with their
    /// place.
    fn load(&self, module: &Arc<Verified>) -> Result<Arc<dyn LoadedModule>>;

    /// A stream of its own.
    fn create_stream(&self) -> Result<Stream>;

    /// Gives a stream back; work that it was given is still done. The default stream stays.
    fn destroy_stream(&self, stream: Stream) -> Result<()>;

    /// Waits for one stream.
    fn synchronise_stream(&self, stream: Stream) -> Result<()>;

    /// Whether a stream has nothing left to do, without waiting. An executor that cannot tell waits for the stream.
    fn query_stream(&self, stream: Stream) -> Result<bool> {
        self.synchronise_stream(stream).map(|()| true)
    }

    /// Waits for everything.
    fn synchronise(&self) -> Result<()>;

    /// An event that has not been recorded: nobody waits for it.
    fn create_event(&self) -> Result<EventId>;

    /// Gives an event back. Streams that wait for it go on waiting.
    fn destroy_event(&self, event: EventId) -> Result<()>;

    /// Puts an event behind all work that a stream was given so far. What it stood for before is forgotten.
    fn record_event(&self, event: EventId, stream: Stream) -> Result<()>;

    /// Makes later work of a stream wait for what an event stands for now. The host does not wait.
    fn wait_event(&self, stream: Stream, event: EventId) -> Result<()>;

    /// Whether an event has happened, without waiting; one that was not recorded has.
    fn query_event(&self, event: EventId) -> Result<bool>;

    /// Waits until an event has happened.
    fn synchronise_event(&self, event: EventId) -> Result<()>;

    /// The time from one event to another as the device measured it. Waits until both have happened.
    fn elapsed(&self, start: EventId, end: EventId) -> Result<Duration>;

    /// Returns the use of the memory.
    fn memory(&self) -> MemoryUse;

    /// Gives memory that is kept for later back to the system. Waits for work that holds some.
    fn trim(&self) -> Result<()>;

    /// Memory of the host from which the device copies fastest.
    fn allocate_host(&self, bytes: usize) -> Result<Box<dyn HostMemory>> {
        Ok(Box::new(PageableMemory::new(bytes)?))
    }

    /// A handle for a texture over memory that is there.
    fn create_texture(&self, _texture: &Texture) -> Result<u64> {
        Err(none_here())
    }

    /// A handle for a surface over memory that is there.
    fn create_surface(&self, _surface: &Surface) -> Result<u64> {
        Err(none_here())
    }

    /// Gives the handle of a texture or surface back. Launches given before go on with it.
    fn destroy_opaque(&self, _handle: u64) -> Result<()> {
        Err(none_here())
    }

    /// Whether there is a library that multiplies matrices. It is the same for as long as the device lives.
    fn has_products(&self) -> bool {
        false
    }

    /// Multiplies matrices by the library.
    fn product(&self, _stream: Stream, _product: &MatrixProduct) -> Result<()> {
        Err(Error::BadLaunch {
            kernel: "product".to_owned(),
            reason: "this device has no library that multiplies matrices".to_owned(),
        })
    }

    /// Calls a function of the host behind the earlier work of a stream; later work of the stream begins when it has returned. An
    /// executor that cannot call from within a stream waits for the stream and calls at once. The function gives the device no work.
    fn call(&self, stream: Stream, function: HostCall) -> Result<()> {
        let outcome = self.synchronise_stream(stream);
        function();
        outcome
    }

    /// Makes a fixed sequence of work ready to be done again and again.
    fn record(&self, steps: Vec<Step>) -> Result<Arc<dyn Sequence>> {
        Ok(Arc::new(OneByOne(steps)))
    }
}

fn none_here() -> Error {
    Error::BadTexture { reason: "this device takes none from here".into() }
}

/// A module that an executor made ready.
pub trait LoadedModule: Any + Debug + Send + Sync {
    /// The address of a global or constant variable.
    fn variable(&self, name: &str) -> Option<GlobalVariable>;

    /// Binds a texture to a `.texref` variable, or nothing any more. Later launches see it.
    fn bind_texture(&self, _name: &str, _texture: Option<&Texture>) -> Result<()> {
        Err(none_here())
    }

    /// Binds a surface to a `.surfref` variable, or nothing any more. Later launches see it.
    fn bind_surface(&self, _name: &str, _surface: Option<&Surface>) -> Result<()> {
        Err(none_here())
    }

    /// Makes a kernel ready for launches of this shape, so that the first of them finds it compiled. An executor that has nothing
    /// left to do after loading does nothing.
    fn prepare(&self, _kernel: Func, _launch: &Launch) -> Result<()> {
        Ok(())
    }

    /// Returns facts about the compilation of a kernel.
    fn attributes(&self, _kernel: Func) -> Result<KernelAttributes> {
        Ok(KernelAttributes::default())
    }

    /// How many blocks of such a launch a multiprocessor runs at a time; `None` where that is no question.
    fn occupancy(&self, _kernel: Func, _launch: &Launch) -> Result<Option<u32>> {
        Ok(None)
    }

    /// Runs a kernel. `params` is the parameter block, laid out by [`crate::param_layout`].
    fn launch(&self, kernel: Func, launch: &Launch, params: &[u8]) -> Result<()>;
}
