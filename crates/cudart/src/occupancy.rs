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
}
