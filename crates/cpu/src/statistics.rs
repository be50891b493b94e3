//! What was run and what it took.

use crate::abi::Kind;
use crate::code::Accesses;
use broadloom_device::cache::Miss;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A kernel compiled for one shape of block, and what it took so far.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelStatistics {
    /// The kernel.
    pub kernel: String,
    /// The shape of its blocks.
    pub block: [u32; 3],
    /// How it runs.
    pub kind: Kind,
    /// Why it is not run as vectors, when it is not.
    pub not_vectorised: Option<String>,
    /// How loads were translated.
    pub loads: Accesses,
    /// How stores were translated.
    pub stores: Accesses,
    /// What making it ready took: compilation, or reading it from the cache.
    pub compile_time: Duration,
    /// Whether it came from the cache.
    pub from_cache: bool,
    /// Why it did not, when it did not.
    pub miss: Option<Miss>,
    /// Bytes of code in memory.
    pub code_bytes: usize,
    /// Launches that are done.
    pub launches: u64,
    /// What they took, each from its first block to its last.
    pub run_time: Duration,
}

/// Counts of one kernel, raised by workers.
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
