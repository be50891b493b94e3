//! Traits that an executor implements.

use crate::texture::{Surface, Texture};
use crate::{Error, EventId, Launch, Machine, MatrixProduct, Result, Stream};
use broadloom_ptx::{Func, Verified};
use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use zerocopy::IntoBytes;

/// Host function that is called in stream order.
pub type HostCall = Box<dyn FnOnce() + Send>;

/// Memory usage of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes in buffers and variables.
    pub used: u64,
    /// Bytes kept for later buffers.
    pub pooled: u64,
    /// Memory limit in bytes.
    pub limit: u64,
}

/// Facts about a compiled kernel. Facts that an executor does not know are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelAttributes {
    /// Number of 32-bit registers per thread, or the estimated number on a GPU.
    pub registers: Option<u32>,
    /// Static shared memory per block in bytes.
    pub shared_bytes: Option<u32>,
    /// Local memory per thread in bytes.
    pub local_bytes: Option<u32>,
    /// Maximum number of threads per block.
    pub max_threads_per_block: Option<u32>,
    /// Maximum dynamic shared memory per block in bytes.
    pub max_dynamic_shared_bytes: Option<u32>,
}

/// Global variable of a loaded module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalVariable {
    /// Device address of its first byte.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// Executor of PTX. Addresses are device addresses, as kernels see them.
///
/// Calls may come from several threads. Work runs in stream order. Only `read`, `elapsed`, `trim` and the
/// `synchronise` family may wait. If memory is short, cached memory is released and the call is repeated. If
/// it fails then, the state is unchanged.
pub trait Backend: Debug + Send + Sync {
    /// Returns the description of the device.
    fn machine(&self) -> &Machine;

    /// Allocates memory, aligned to 256 bytes. An allocation of zero bytes may only be freed.
    fn allocate(&self, bytes: u64) -> Result<u64>;

    /// Allocates memory that work of a stream writes first, before any other access. It may be memory that
    /// earlier work of the stream still uses.
    fn allocate_behind(&self, _stream: Stream, bytes: u64) -> Result<u64> {
        self.allocate(bytes)
    }

    /// Frees memory once all earlier work is done with it.
    fn free(&self, address: u64) -> Result<()>;

    /// Copies from the host. The slice may be reused when the call returns.
    fn write(&self, stream: Stream, address: u64, bytes: &[u8]) -> Result<()>;

    /// Copies to the host, after all earlier work of the stream.
    fn read(&self, stream: Stream, address: u64, bytes: &mut [u8]) -> Result<()>;

    /// Copies within the device.
    fn copy(&self, stream: Stream, to: u64, from: u64, bytes: u64) -> Result<()>;

    /// Sets every byte.
    fn fill(&self, stream: Stream, address: u64, byte: u8, bytes: u64) -> Result<()>;

    /// Prepares a module to run. Unsupported instructions are refused here or at launch, with their location.
    fn load(&self, module: &Arc<Verified>) -> Result<Arc<dyn LoadedModule>>;

    /// Creates a queue whose work runs in order.
    fn create_stream(&self) -> Result<Stream>;

    /// Destroys a stream; its pending work is still done. The default stream cannot be destroyed.
    fn destroy_stream(&self, stream: Stream) -> Result<()>;

    /// Waits for one stream.
    fn synchronise_stream(&self, stream: Stream) -> Result<()>;

    /// Tests without waiting if all work of a stream is done. An executor that cannot tell waits for the
    /// stream.
    fn query_stream(&self, stream: Stream) -> Result<bool> {
        self.synchronise_stream(stream).map(|()| true)
    }

    /// Waits for all work.
    fn synchronise(&self) -> Result<()>;

    /// Creates an event. Until it is recorded, waiting for it returns at once.
    fn create_event(&self) -> Result<EventId>;

    /// Destroys an event. Streams that wait for it keep waiting.
    fn destroy_event(&self, event: EventId) -> Result<()>;

    /// Records an event after all work submitted to a stream so far. An earlier record is replaced.
    fn record_event(&self, event: EventId, stream: Stream) -> Result<()>;

    /// Makes later work of a stream wait for the current record of an event. The host does not wait.
    fn wait_event(&self, stream: Stream, event: EventId) -> Result<()>;

    /// Tests without waiting if an event has completed. An event that was not recorded has.
    fn query_event(&self, event: EventId) -> Result<bool>;

    /// Waits until an event has completed.
    fn synchronise_event(&self, event: EventId) -> Result<()>;

    /// Returns the time between two events as measured by the device. Waits for both.
    fn elapsed(&self, start: EventId, end: EventId) -> Result<Duration>;

    /// Returns the memory usage.
    fn memory(&self) -> MemoryUse;

    /// Returns cached memory to the system. Waits for work that uses some of it.
    fn trim(&self) -> Result<()>;

    /// Allocates host memory for fast copies.
    fn allocate_host(&self, bytes: usize) -> Result<Box<dyn HostMemory>> {
        Ok(Box::new(PageableMemory::new(bytes)?))
    }

    /// Creates a texture over existing memory. Returns its handle.
    fn create_texture(&self, _texture: &Texture) -> Result<u64> {
        Err(none_here())
    }

    /// Creates a surface over existing memory. Returns its handle.
    fn create_surface(&self, _surface: &Surface) -> Result<u64> {
        Err(none_here())
    }

    /// Destroys a texture or surface. Launches submitted before can still use it.
    fn destroy_opaque(&self, _handle: u64) -> Result<()> {
        Err(none_here())
    }

    /// Tests if there is a matrix library. The answer does not change during the life of the device.
    fn has_products(&self) -> bool {
        false
    }

    /// Multiplies matrices with the library.
    fn product(&self, _stream: Stream, _product: &MatrixProduct) -> Result<()> {
        Err(Error::BadLaunch {
            kernel: "product".to_owned(),
            reason: "this device has no library that multiplies matrices".to_owned(),
        })
    }

    /// Calls a host function after the earlier work of a stream; later work starts when it has returned. An
    /// executor that cannot call from within a stream waits for the stream and calls at once. The function
    /// must not submit work to the device.
    fn call(&self, stream: Stream, function: HostCall) -> Result<()> {
        let outcome = self.synchronise_stream(stream);
        function();
        outcome
    }

    /// Prepares a fixed sequence of work for repeated execution.
    fn record(&self, steps: Vec<Step>) -> Result<Arc<dyn Sequence>> {
        Ok(Arc::new(OneByOne(steps)))
    }
}

fn none_here() -> Error {
    Error::BadTexture { reason: "this device takes none from here".into() }
}

/// Module prepared by an executor.
pub trait LoadedModule: Any + Debug + Send + Sync {
    /// Returns the address of a global or constant variable.
    fn variable(&self, name: &str) -> Option<GlobalVariable>;

    /// Binds a texture to a `.texref` variable, or unbinds it. Later launches see the change.
    fn bind_texture(&self, _name: &str, _texture: Option<&Texture>) -> Result<()> {
        Err(none_here())
    }

    /// Binds a surface to a `.surfref` variable, or unbinds it. Later launches see the change.
    fn bind_surface(&self, _name: &str, _surface: Option<&Surface>) -> Result<()> {
        Err(none_here())
    }

    /// Compiles a kernel for launches of this shape ahead of the first one. An executor that compiles at load
    /// does nothing.
    fn prepare(&self, _kernel: Func, _launch: &Launch) -> Result<()> {
        Ok(())
    }

    /// Returns facts about a compiled kernel.
    fn attributes(&self, _kernel: Func) -> Result<KernelAttributes> {
        Ok(KernelAttributes::default())
    }

    /// Returns the number of resident blocks of such a launch per multiprocessor, or `None` if it does not
    /// apply.
    fn occupancy(&self, _kernel: Func, _launch: &Launch) -> Result<Option<u32>> {
        Ok(None)
    }

    /// Launches a kernel. `params` is the parameter block, laid out by [`crate::param_layout`].
    fn launch(&self, kernel: Func, launch: &Launch, params: &[u8]) -> Result<()>;
}

/// Step of a sequence.
#[derive(Clone, Debug)]
pub enum Step {
    /// Launch on the stream of the replay.
    Launch {
        /// Module of the kernel.
        module: Arc<dyn LoadedModule>,
        /// The kernel to launch, by id in its module.
        kernel: Func,
        /// Launch configuration.
        launch: Launch,
        /// Parameter block.
        params: Vec<u8>,
    },
    /// Copy within the device.
    Copy {
        /// Destination address.
        to: u64,
        /// Source address.
        from: u64,
        /// Number of bytes.
        bytes: u64,
    },
    /// Fill with a byte.
    Fill {
        /// Device address of the first byte.
        address: u64,
        /// Value of each byte.
        byte: u8,
        /// Number of bytes.
        bytes: u64,
    },
    /// Matrix product by the device's library.
    Product(MatrixProduct),
}

/// Sequence prepared by an executor.
pub trait Sequence: Debug + Send + Sync {
    /// Performs all steps in stream order.
    fn replay(&self, backend: &dyn Backend, stream: Stream) -> Result<()>;
}

/// Steps performed with one call each.
#[derive(Debug)]
struct OneByOne(Vec<Step>);

impl Sequence for OneByOne {
    fn replay(&self, backend: &dyn Backend, stream: Stream) -> Result<()> {
        for step in &self.0 {
            match step {
                Step::Launch { module, kernel, launch, params } => {
                    module.launch(*kernel, &Launch { stream, ..launch.clone() }, params)?;
                }
                Step::Copy { to, from, bytes } => backend.copy(stream, *to, *from, *bytes)?,
                Step::Fill { address, byte, bytes } => backend.fill(stream, *address, *byte, *bytes)?,
                Step::Product(product) => backend.product(stream, product)?,
            }
        }
        Ok(())
    }
}

/// Host memory of an executor. It is aligned to 16 bytes.
pub trait HostMemory: Debug + Send {
    /// Returns the bytes after waiting for all copies.
    fn bytes(&mut self) -> Result<&mut [u8]>;

    /// Copies a range to the device in stream order.
    fn upload(&mut self, backend: &dyn Backend, stream: Stream, from: Range<usize>, to: u64) -> Result<()>;

    /// Copies from the device to a range in stream order.
    fn download(&mut self, backend: &dyn Backend, stream: Stream, from: u64, to: Range<usize>) -> Result<()>;
}

/// Pageable memory, for devices that are the host.
#[derive(Debug)]
struct PageableMemory {
    words: Vec<u128>,
    bytes: usize,
}

impl PageableMemory {
    pub(crate) fn new(bytes: usize) -> Result<PageableMemory> {
        let mut words = vec![];
        let refused = |_| Error::OutOfMemory { requested: bytes as u64, available: 0 };
        words.try_reserve_exact(bytes.div_ceil(16)).map_err(refused)?;
        words.resize(bytes.div_ceil(16), 0);
        Ok(PageableMemory { words, bytes })
    }

    fn range(&mut self, call: &'static str, range: Range<usize>) -> Result<&mut [u8]> {
        let (address, bytes) = (range.start as u64, range.len() as u64);
        let all = &mut self.words.as_mut_bytes()[..self.bytes];
        all.get_mut(range).ok_or(Error::BadAddress { call, address, bytes })
    }
}

impl HostMemory for PageableMemory {
    fn bytes(&mut self) -> Result<&mut [u8]> {
        Ok(&mut self.words.as_mut_bytes()[..self.bytes])
    }

    fn upload(&mut self, backend: &dyn Backend, stream: Stream, from: Range<usize>, to: u64) -> Result<()> {
        backend.write(stream, to, self.range("upload", from)?)
    }

    fn download(&mut self, backend: &dyn Backend, stream: Stream, from: u64, to: Range<usize>) -> Result<()> {
        backend.read(stream, from, self.range("download", to)?)
    }
}
