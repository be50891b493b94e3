//! Occupancy.

use crate::boundary::exported;
use crate::pointer::{In, Out};
use crate::runtime::launches::asked;
use crate::types::LaunchConfig;

exported! { runtime
    /// Returns the number of resident blocks per multiprocessor.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor | cuOccupancyMaxActiveBlocksPerMultiprocessor(call, blocks: Out<i32>, function: usize, threads: i32, dynamic: usize) {
        blocks.wanted()?;
        blocks.set(call.runtime.blocks_per_multiprocessor(&*call.runtime.kernel(function)?, threads, dynamic)?)
    }

    /// Returns the number of resident blocks per multiprocessor. The flags have no effect.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags | cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(call, blocks: Out<i32>, function: usize, threads: i32, dynamic: usize, _flags: u32) {
        blocks.wanted()?;
        blocks.set(call.runtime.blocks_per_multiprocessor(&*call.runtime.kernel(function)?, threads, dynamic)?)
    }

    /// Returns the dynamic shared memory available to each resident block.
    fn cudaOccupancyAvailableDynamicSMemPerBlock | cuOccupancyAvailableDynamicSMemPerBlock(call, bytes: Out<usize>, function: usize, blocks: i32, threads: i32) {
        bytes.wanted()?;
        bytes.set(call.runtime.dynamic_shared_per_block(&*call.runtime.kernel(function)?, blocks, threads)?)
    }

    /// Returns the maximum cluster size of a launch in blocks.
    fn cudaOccupancyMaxPotentialClusterSize(call, size: Out<i32>, function: usize, config: In<LaunchConfig>) {
        size.wanted()?;
        let config = config.get()?;
        size.set(call.runtime.most_cluster_blocks(&*call.runtime.kernel(function)?, config.block.list(), config.shared)?)
    }

    /// Returns the number of clusters of a launch that run at the same time.
    fn cudaOccupancyMaxActiveClusters(call, count: Out<i32>, function: usize, config: In<LaunchConfig>) {
        count.wanted()?;
        let config = config.get()?;
        let (_, cluster) = asked(In::at(config.attributes), config.count)?;
        count.set(call.runtime.active_clusters(&*call.runtime.kernel(function)?, config.block.list(), config.shared, cluster)?)
    }
}
