//! Options for opening a GPU.

use crate::blas;
use crate::driver;
use broadloom_device::cache::CACHE_BYTES;
use broadloom_device::{CacheFolder, memory_limit, settings};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Receiver of the output of kernels.
pub type Output = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Options for opening a GPU.
#[derive(Clone)]
pub struct Options {
    /// Number of the GPU.
    pub ordinal: u32,
    /// File name of the driver's library: `BROADLOOM_CUDA_DRIVER`, or `libcuda.so.1`.
    pub driver: String,
    /// Memory limit in bytes: `BROADLOOM_MEMORY_LIMIT`, or all memory.
    pub memory_bytes: Option<u64>,
    /// Receiver of `printf` output. The driver writes it to standard output. With a receiver, the standard
    /// output of the process is redirected while the device is synchronised.
    pub output: Option<Output>,
    /// Folder of compiled modules.
    pub cache: CacheFolder,
    /// Maximum size of that folder in bytes, for all devices.
    pub cache_bytes: u64,
    /// Enables timing of launches by events of the driver, for [`crate::Cuda::statistics`].
    pub timing: bool,
    /// Optimisation level of the driver's assembler, 0 to 4: `BROADLOOM_CUDA_LEVEL`, or the driver's default.
    /// It helps to find errors of the assembler.
    pub level: Option<u8>,
    /// Names of the matrix library to try in order: `BROADLOOM_CUBLAS`, or those of cuBLAS. A driver other
    /// than `libcuda.so.1` has none by default. Without a library, kernels multiply matrices.
    pub blas: Vec<String>,
    /// Makes every launch synchronous, so that a fault is attributed to exactly one kernel:
    /// `BROADLOOM_CUDA_SYNC=1`.
    pub synchronous: bool,
    /// Folder that receives the PTX of every module as passed to the driver: `BROADLOOM_CUDA_TEXTS`.
    pub texts: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            ordinal: 0,
            driver: driver::library_name(),
            memory_bytes: memory_limit(),
            output: None,
            cache: CacheFolder::Default,
            cache_bytes: CACHE_BYTES,
            timing: false,
            level: settings::cuda_level(),
            blas: blas::library_names(),
            synchronous: settings::cuda_sync(),
            texts: std::env::var_os("BROADLOOM_CUDA_TEXTS").filter(|folder| !folder.is_empty()).map(PathBuf::from),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("ordinal", &self.ordinal)
            .field("driver", &self.driver)
            .field("memory_bytes", &self.memory_bytes)
            .finish_non_exhaustive()
    }
}
