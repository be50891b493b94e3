//! Configuration of a launch.

use crate::Stream;
use broadloom_ptx::Function;
use std::time::Duration;

/// Launch configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Size of the grid in blocks.
    pub grid: [u32; 3],
    /// Size of a block in threads.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared_bytes: u32,
    /// True if all blocks must be resident at the same time, for grid-wide barriers.
    pub cooperative: bool,
    /// Size of a cluster in blocks, for kernels that do not declare one themselves.
    pub cluster: Option<[u32; 3]>,
    /// Stream of the launch.
    pub stream: Stream,
    /// Maximum time of the launch; `None` uses the device's limit.
    pub time_limit: Option<Duration>,
}

impl Launch {
    /// Creates a one-dimensional launch.
    pub fn linear(blocks: u32, threads: u32) -> Self {
        Launch::new([blocks, 1, 1], [threads, 1, 1])
    }

    /// Creates a three-dimensional launch.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Launch { grid, block, shared_bytes: 0, cooperative: false, cluster: None, stream: Stream::default(), time_limit: None }
    }

    /// Sets the dynamic shared memory.
    #[must_use]
    pub fn shared(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// Makes the launch cooperative.
    #[must_use]
    pub fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// Sets the cluster size.
    #[must_use]
    pub fn cluster(mut self, size: [u32; 3]) -> Self {
        self.cluster = Some(size);
        self
    }

    /// Sets the stream.
    #[must_use]
    pub fn on(mut self, stream: Stream) -> Self {
        self.stream = stream;
        self
    }

    /// Sets a time limit.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Returns the number of threads per block.
    pub fn threads_per_block(&self) -> u64 {
        self.block.iter().map(|&n| u64::from(n)).product()
    }

    /// Returns the cluster size: the one declared by the kernel, or else the one of the launch.
    pub fn cluster_of(&self, kernel: &Function) -> Option<[u32; 3]> {
        let own = kernel.directive("reqnctapercluster");
        own.map(|numbers| std::array::from_fn(|axis| numbers.get(axis).copied().unwrap_or(1))).or(self.cluster)
    }

    /// Returns the number of blocks, saturating at 64 bits.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().fold(1u64, |product, &n| product.saturating_mul(u64::from(n)))
    }
}
