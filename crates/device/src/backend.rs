//! What an executor implements.

use crate::{Launch, Machine, Result};
use broadloom_ptx::{Func, Verified};
use std::fmt::Debug;
use std::sync::Arc;

/// A queue of work. Work of one stream runs in order; streams run beside each other where the device can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stream(pub u32);

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
/// Calls may come from several threads. All of them are in stream order; none but `read` and `synchronise` needs to wait.
pub trait Backend: Debug + Send + Sync {
    /// What the device can do.
    fn machine(&self) -> &Machine;

    /// Memory, aligned to 256 bytes. Zero bytes give an address that may be freed and nothing else.
    fn allocate(&self, bytes: u64) -> Result<u64>;

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

    /// Waits for one stream.
    fn synchronise_stream(&self, stream: Stream) -> Result<()>;

    /// Waits for everything.
    fn synchronise(&self) -> Result<()>;
}

/// A module that an executor made ready.
pub trait LoadedModule: Debug + Send + Sync {
    /// The address of a global or constant variable.
    fn variable(&self, name: &str) -> Option<GlobalVariable>;

    /// Makes a kernel ready for launches of this shape, so that the first of them finds it compiled. An executor that has nothing
    /// left to do after loading does nothing.
    fn prepare(&self, _kernel: Func, _launch: &Launch) -> Result<()> {
        Ok(())
    }

    /// Runs a kernel. `params` is the parameter block, laid out by [`crate::param_layout`].
    fn launch(&self, kernel: Func, launch: &Launch, params: &[u8]) -> Result<()>;
}
