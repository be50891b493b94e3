//! Statistics of loaded and launched kernels.

use broadloom_device::cache::Miss;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Statistics of one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelStatistics {
    /// Name of the kernel.
    pub kernel: String,
    /// Number of 32-bit registers per thread.
    pub registers: u32,
    /// Static shared memory per block in bytes.
    pub shared_bytes: u32,
    /// Local memory per thread in bytes.
    pub local_bytes: u32,
    /// Load time of its module: compilation, or reading from the cache.
    pub load_time: Duration,
    /// Reason for a cache miss, if it was one.
    pub miss: Option<Miss>,
    /// Number of launches.
    pub launches: u64,
    /// Number of launches with a known time: all completed ones, if launches are timed.
    pub timed: u64,
    /// Total time of those launches by the GPU's clock.
    pub run_time: Duration,
}

/// Counters of one kernel.
#[derive(Debug, Default)]
pub(crate) struct Record {
    launches: AtomicU64,
    timed: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Record {
    /// Counts a launch.
    #[inline]
    pub(crate) fn launched(&self) {
        self.launches.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds the time of a launch.
    pub(crate) fn add(&self, time: Duration) {
        self.timed.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the statistics of a kernel with the counters filled in.
    pub(crate) fn fill(&self, facts: &KernelStatistics) -> KernelStatistics {
        KernelStatistics {
            launches: self.launches.load(Ordering::Relaxed),
            timed: self.timed.load(Ordering::Relaxed),
            run_time: Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)),
            ..facts.clone()
        }
    }
}
