//! Occupancy.

use crate::boundary::exported;
use crate::pointer::Out;

exported! { runtime
    /// Blocks that a multiprocessor runs at a time.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(call, blocks: Out<i32>, function: usize, threads: i32, dynamic: usize) {
        blocks.wanted()?;
        blocks.set(call.runtime.blocks_per_multiprocessor(&*call.runtime.kernel(function)?, threads, dynamic)?)
    }

    /// The same, with flags that make no difference here.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(call, blocks: Out<i32>, function: usize, threads: i32, dynamic: usize, _flags: u32) {
        blocks.wanted()?;
        blocks.set(call.runtime.blocks_per_multiprocessor(&*call.runtime.kernel(function)?, threads, dynamic)?)
    }

    /// Dynamic shared memory of a block when so many run.
    fn cudaOccupancyAvailableDynamicSMemPerBlock(call, bytes: Out<usize>, function: usize, blocks: i32, threads: i32) {
        bytes.wanted()?;
        bytes.set(call.runtime.dynamic_shared_per_block(&*call.runtime.kernel(function)?, blocks, threads)?)
    }
}
