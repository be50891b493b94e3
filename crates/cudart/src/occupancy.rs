//! How many blocks a multiprocessor runs at a time, by the limits that the device claims.

use crate::device::Limits;
use crate::kernels::Kernel;
use crate::state::Runtime;
use crate::status::{Outcome, Status};

/// Registers of a thread that are claimed where nobody counts them: a common number.
pub(crate) const REGISTERS: u32 = 32;

impl Runtime {
    /// Blocks of a kernel that a multiprocessor runs at a time.
    pub(crate) fn blocks_per_multiprocessor(&self, kernel: &Kernel, threads: i32, dynamic: usize) -> Outcome<i32> {
        let threads = u32::try_from(threads).ok().filter(|threads| *threads > 0).ok_or(Status::INVALID_VALUE)?;
        let resolved = kernel.resolved(self)?;
        let limits = Limits::of(self)?;
        if threads > resolved.max_threads {
            return Ok(0);
        }
        let by_threads = limits.threads_per_multiprocessor / threads.next_multiple_of(32);
        let shared = u64::from(resolved.static_shared) + dynamic as u64;
        let by_shared = (u64::from(limits.shared_per_multiprocessor)).checked_div(shared).unwrap_or(u64::MAX);
        Ok(by_threads.min(limits.blocks_per_multiprocessor).min(u32::try_from(by_shared).unwrap_or(u32::MAX)) as i32)
    }

    /// Dynamic shared memory that a block may have when so many run on a multiprocessor.
    pub(crate) fn dynamic_shared_per_block(&self, kernel: &Kernel, blocks: i32, threads: i32) -> Outcome<usize> {
        let resolved = kernel.resolved(self)?;
        let limits = Limits::of(self)?;
        let blocks = u32::try_from(blocks).ok().filter(|blocks| *blocks > 0).ok_or(Status::INVALID_VALUE)?;
        if self.blocks_per_multiprocessor(kernel, threads, 0)? < blocks as i32 {
            return Err(Status::INVALID_VALUE);
        }
        let share = (limits.shared_per_multiprocessor / blocks).saturating_sub(resolved.static_shared);
        Ok(share.min(kernel.max_dynamic(resolved)) as usize)
    }

    /// Most blocks of a cluster of a launch: those that the kernel must have, or all that a cluster may. The blocks of a cluster run on one
    /// multiprocessor, by turns, so what fits there once fits as often as there are blocks.
    pub(crate) fn most_cluster_blocks(&self, kernel: &Kernel, block: [u32; 3], dynamic: usize) -> Outcome<i32> {
        let resolved = kernel.resolved(self)?;
        self.fits(kernel, block, dynamic)?;
        Ok(match kernel.required(resolved) {
            Some(size) => size.iter().product::<u32>() as i32,
            None => kernel.most_cluster_blocks() as i32,
        })
    }

    /// Clusters of a launch that are on the device at a time: one for each multiprocessor, since one thread runs all blocks of one.
    pub(crate) fn active_clusters(
        &self,
        kernel: &Kernel,
        block: [u32; 3],
        dynamic: usize,
        cluster: Option<[u32; 3]>,
    ) -> Outcome<i32> {
        let resolved = kernel.resolved(self)?;
        kernel.cluster(resolved, cluster)?.ok_or(Status::INVALID_CLUSTER_SIZE)?;
        self.fits(kernel, block, dynamic)?;
        Ok(self.device()?.machine().multiprocessors as i32)
    }

    /// Checks that a block of a launch can be at all.
    fn fits(&self, kernel: &Kernel, block: [u32; 3], dynamic: usize) -> Outcome {
        let threads =
            block.iter().try_fold(1u32, |product, threads| product.checked_mul(*threads)).ok_or(Status::INVALID_VALUE)?;
        let threads = i32::try_from(threads).map_err(|_| Status::INVALID_VALUE)?;
        let room = kernel.max_dynamic(kernel.resolved(self)?) as usize;
        if dynamic > room || self.blocks_per_multiprocessor(kernel, threads, dynamic)? == 0 {
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }
}
