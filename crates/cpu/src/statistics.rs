//! Statistics of kernels and their run times.

use crate::abi::Kind;
use crate::code::Accesses;
use broadloom_device::cache::Miss;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Kernel compiled for one block shape, with its statistics so far.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelStatistics {
    /// Name of the kernel in its module.
    pub kernel: String,
    /// Shape of its blocks.
    pub block: [u32; 3],
    /// Execution mode.
    pub kind: Kind,
    /// Reason why it is not vectorised, if it is not.
    pub not_vectorised: Option<String>,
    /// Translation of loads.
    pub loads: Accesses,
    /// Translation of stores.
    pub stores: Accesses,
    /// Time to prepare it: compilation, or reading it from the cache.
    pub compile_time: Duration,
    /// True if it came from the cache.
    pub from_cache: bool,
    /// Reason of the cache miss, if there was one.
    pub miss: Option<Miss>,
    /// Bytes of code in memory.
    pub code_bytes: usize,
    /// Number of finished launches.
    pub launches: u64,
    /// Total time of the launches, each from its first block to its last.
    pub run_time: Duration,
}

/// Counters of one kernel, updated by workers.
#[derive(Debug, Default)]
pub(crate) struct Record {
    launches: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Record {
    pub(crate) fn add(&self, time: Duration) {
        self.launches.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(crate) fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    pub(crate) fn time(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }
}
