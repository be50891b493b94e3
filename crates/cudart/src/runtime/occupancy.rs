//! Occupancy.

use crate::boundary::exported;
use crate::pointer::{In, Out};
use crate::runtime::launches::asked;
use crate::types::LaunchConfig;

exported! { runtime
    /// Blocks that a multiprocessor runs at a time.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor | cuOccupancyMaxActiveBlocksPerMultiprocessor(call, blocks: Out<i32>, function: usize, threads: i32, dynamic: usize) {
        blocks.wanted()?;
        blocks.set(call.runtime.blocks_per_multiprocessor(&*call.runtime.kernel(function)?, threads, dynamic)?)
    }

    /// The same, with flags that make no difference here.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags | cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(call, blocks: Out<i32>, function: usize, threads: i32, dynamic: usize, _flags: u32) {
        blocks.wanted()?;
        blocks.set(call.runtime.blocks_per_multiprocessor(&*call.runtime.kernel(function)?, threads, dynamic)?)
    }

    /// Dynamic shared memory of a block when so many run.
    fn cudaOccupancyAvailableDynamicSMemPerBlock | cuOccupancyAvailableDynamicSMemPerBlock(call, bytes: Out<usize>, function: usize, blocks: i32, threads: i32) {
        bytes.wanted()?;
        bytes.set(call.runtime.dynamic_shared_per_block(&*call.runtime.kernel(function)?, blocks, threads)?)
    }

    /// Most blocks that a cluster of a launch may have.
    fn cudaOccupancyMaxPotentialClusterSize(call, size: Out<i32>, function: usize, config: In<LaunchConfig>) {
        size.wanted()?;
        let config = config.get()?;
        size.set(call.runtime.most_cluster_blocks(&*call.runtime.kernel(function)?, config.block.list(), config.shared)?)
    }

    /// Clusters of a launch that are on the device at a time.
    fn cudaOccupancyMaxActiveClusters(call, count: Out<i32>, function: usize, config: In<LaunchConfig>) {
        count.wanted()?;
        let config = config.get()?;
        let (_, cluster) = asked(In::at(config.attributes), config.count)?;
        count.set(call.runtime.active_clusters(&*call.runtime.kernel(function)?, config.block.list(), config.shared, cluster)?)
    }
}
