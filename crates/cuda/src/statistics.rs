//! What was loaded and run, and what it took.

use broadloom_device::cache::Miss;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A kernel that was launched, and what it took so far.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelStatistics {
    /// The kernel.
    pub kernel: String,
    /// Registers of 32 bits that a thread uses.
    pub registers: u32,
    /// Shared memory of a block that is not dynamic, in bytes.
    pub shared_bytes: u32,
    /// Local memory of a thread in bytes.
    pub local_bytes: u32,
    /// What loading its module took: compilation, or reading it from the cache.
    pub load_time: Duration,
    /// Why the module did not come from the cache, when it did not.
    pub miss: Option<Miss>,
    /// Launches that were given.
    pub launches: u64,
    /// Those of them whose time is known: all that are done, when launches are timed.
    pub timed: u64,
    /// What those took together, by the GPU's clock.
    pub run_time: Duration,
}

/// Counts of one kernel.
#[derive(Debug, Default)]
pub(crate) struct Record {
    launches: AtomicU64,
    timed: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Record {
    /// It was launched once more.
    #[inline]
    pub(crate) fn launched(&self) {
        self.launches.fetch_add(1, Ordering::Relaxed);
    }

    /// What a launch took.
    pub(crate) fn add(&self, time: Duration) {
        self.timed.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The statistics of a kernel with what was counted.
    pub(crate) fn fill(&self, facts: &KernelStatistics) -> KernelStatistics {
        KernelStatistics {
            launches: self.launches.load(Ordering::Relaxed),
            timed: self.timed.load(Ordering::Relaxed),
            run_time: Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)),
            ..facts.clone()
        }
    }
}
