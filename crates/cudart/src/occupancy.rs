//! Occupancy: resident blocks per multiprocessor, computed from the limits that the device reports.

use crate::device::Limits;
use crate::objects::kernels::Kernel;
use crate::state::Runtime;
use crate::status::{Outcome, Status};

/// Reported number of registers per thread if it is unknown.
pub(crate) const REGISTERS: u32 = 32;

impl Runtime {
    /// Returns the number of resident blocks of a kernel per multiprocessor.
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

    /// Returns the dynamic shared memory available to each block when `blocks` blocks are resident.
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

    /// Returns the maximum cluster size of a launch: the kernel's required size, or the general maximum. The
    /// blocks of a cluster run in turn on one multiprocessor, so a cluster fits whenever one block fits.
    pub(crate) fn most_cluster_blocks(&self, kernel: &Kernel, block: [u32; 3], dynamic: usize) -> Outcome<i32> {
        let resolved = kernel.resolved(self)?;
        self.fits(kernel, block, dynamic)?;
        Ok(match kernel.required(resolved) {
            Some(size) => size.iter().product::<u32>() as i32,
            None => kernel.most_cluster_blocks() as i32,
        })
    }

    /// Returns the number of clusters that run at the same time: one per multiprocessor, since one thread
    /// runs all blocks of a cluster.
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

    /// Checks that a single block of a launch fits.
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
