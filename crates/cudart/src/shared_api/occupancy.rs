//! Occupancy.

use crate::boundary::exported;
use crate::pointer::Out;

exported! { runtime
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor | cuOccupancyMaxActiveBlocksPerMultiprocessor(call, blocks: Out<i32>, function: usize, threads: i32, dynamic: usize)
        => blocks.set_by(|| call.runtime.blocks_per_multiprocessor(&*call.runtime.kernel(function)?, threads, dynamic));
    /// Returns the number of resident blocks per multiprocessor. The flags have no effect.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags | cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(call, blocks: Out<i32>, function: usize, threads: i32, dynamic: usize, _flags: u32)
        => blocks.set_by(|| call.runtime.blocks_per_multiprocessor(&*call.runtime.kernel(function)?, threads, dynamic));
    fn cudaOccupancyAvailableDynamicSMemPerBlock | cuOccupancyAvailableDynamicSMemPerBlock(call, bytes: Out<usize>, function: usize, blocks: i32, threads: i32)
        => bytes.set_by(|| call.runtime.dynamic_shared_per_block(&*call.runtime.kernel(function)?, blocks, threads));
}
