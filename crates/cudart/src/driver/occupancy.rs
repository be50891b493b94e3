//! Block sizes for maximum occupancy, and cluster limits.

use crate::boundary::{Call, exported};
use crate::pointer::{In, Out};
use crate::shared_api::launches::asked;
use crate::status::{Outcome, Status};
use crate::types::DriverLaunchConfig;

/// Finds the block size with the most resident threads per multiprocessor, the largest on a tie. Returns it
/// with the number of blocks that fill the device.
fn best(call: &Call, blocks: Out<i32>, threads: Out<i32>, function: usize, dynamic: (usize, usize), limit: i32) -> Outcome {
    blocks.wanted()?;
    threads.wanted()?;
    let kernel = call.runtime.kernel(function).map_err(|_| Status::INVALID_HANDLE)?;
    let most = kernel.resolved(call.runtime)?.max_threads;
    let limit = u32::try_from(limit).map_err(|_| Status::INVALID_VALUE)?;
    let most = if limit == 0 { most } else { most.min(limit) };
    let mut found = (0, 0, 0);
    let sizes = (1..=most / 32).map(|warps| warps * 32).chain((most % 32 != 0).then_some(most)).rev();
    for size in sizes.map(|size| size as i32) {
        let shared = match dynamic {
            (0, bytes) => bytes,
            (of_size, _) => {
                // SAFETY: the program passed a function of this type (`CUoccupancyB2DSize`). It is not 0.
                let of_size: extern "C" fn(i32) -> usize = unsafe { std::mem::transmute(of_size) };
                of_size(size)
            }
        };
        let active = call.runtime.blocks_per_multiprocessor(&kernel, size, shared)?;
        if active * size > found.0 {
            found = (active * size, active, size);
        }
    }
    let multiprocessors = call.runtime.device()?.machine().multiprocessors as i32;
    blocks.set(found.1.saturating_mul(multiprocessors))?;
    threads.set(found.2)
}

exported! { driver
    /// Returns the best block size. Dynamic shared memory may depend on the block size.
    fn cuOccupancyMaxPotentialBlockSize(call, blocks: Out<i32>, threads: Out<i32>, function: usize, of_size: usize, dynamic: usize, limit: i32)
        => best(call, blocks, threads, function, (of_size, dynamic), limit);
    /// Returns the best block size. The flags have no effect.
    fn cuOccupancyMaxPotentialBlockSizeWithFlags(call, blocks: Out<i32>, threads: Out<i32>, function: usize, of_size: usize, dynamic: usize, limit: i32, _flags: u32)
        => best(call, blocks, threads, function, (of_size, dynamic), limit);

    fn cuOccupancyMaxPotentialClusterSize(call, size: Out<i32>, function: usize, config: In<DriverLaunchConfig>) {
        size.wanted()?;
        let config = config.get()?;
        let kernel = call.runtime.kernel(function).map_err(|_| Status::INVALID_HANDLE)?;
        size.set(call.runtime.most_cluster_blocks(&kernel, config.block, config.shared as usize)?)
    }

    fn cuOccupancyMaxActiveClusters(call, count: Out<i32>, function: usize, config: In<DriverLaunchConfig>) {
        count.wanted()?;
        let config = config.get()?;
        let (_, cluster) = asked(In::at(config.attributes), config.count)?;
        let kernel = call.runtime.kernel(function).map_err(|_| Status::INVALID_HANDLE)?;
        count.set(call.runtime.active_clusters(&kernel, config.block, config.shared as usize, cluster)?)
    }
}
