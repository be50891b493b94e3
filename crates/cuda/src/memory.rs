//! Device memory: the pool, and the reuse of freed blocks.
//!
//! Freeing makes no driver call and does not wait. With a single stream, a freed block is reused at once,
//! because all later accesses are ordered after the earlier ones. With several streams it is reused when all
//! earlier work is known to be done. Memory is returned to the driver only when the device is idle, because
//! that call would wait otherwise.

use crate::driver::CallResult;
use crate::ffi::code;
use crate::inner::Inner;
use crate::pinned::PinnedMemory;
use crate::pool::Pool;
use broadloom_device::{Error, Result};
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

impl Inner {
    pub(crate) fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates memory. If there is none, cached memory is released and the driver is asked again.
    pub(crate) fn allocate(&self, bytes: u64) -> Result<u64> {
        self.context.alive()?;
        if let Some(address) = self.pool().take(bytes) {
            return Ok(address);
        }
        self.context.enter()?;
        if self.pool().has_dying() {
            self.look()?;
            if let Some(address) = self.pool().take(bytes) {
                return Ok(address);
            }
        }
        match self.grow(bytes) {
            Err(Error::OutOfMemory { .. }) => {
                self.reclaim()?;
                self.grow(bytes)
            }
            outcome => outcome,
        }
    }

    /// Allocates a block from new memory of the driver.
    fn grow(&self, bytes: u64) -> Result<u64> {
        let mut pool = self.pool();
        // Another thread may have freed a block meanwhile.
        if let Some(address) = pool.take(bytes) {
            return Ok(address);
        }
        let wanted = pool.wanted(bytes)?;
        match self.context.driver.allocate(wanted.bytes) {
            Ok(address) => {
                pool.add(address, wanted);
                let refused = pool.refusal(bytes);
                pool.take(bytes).ok_or(refused)
            }
            Err(failed) if failed.code == code::OUT_OF_MEMORY => Err(pool.refusal(bytes)),
            Err(failed) => Err(self.context.error(failed)),
        }
    }

    /// Frees a block, now or when the work that may access it is done.
    pub(crate) fn free(&self, address: u64) -> Result<()> {
        self.pool().free(address, self.horizon())
    }

    /// Returns the number of the work that must be done before memory freed now can be reused, or `None` if
    /// it can be reused at once.
    pub(crate) fn horizon(&self) -> Option<u64> {
        let alone = self.queue_count.load(Ordering::SeqCst) == 1;
        (!alone && self.any_queue(|queue| queue.is_busy())).then(|| self.number.load(Ordering::SeqCst))
    }

    /// Queries the driver, without waiting, for completed work, and frees the blocks that waited for it. The
    /// context must be current.
    fn look(&self) -> Result<()> {
        for queue in self.all_queues() {
            queue.look()?;
        }
        self.reap();
        Ok(())
    }

    /// Frees the blocks that waited for completed work.
    pub(crate) fn reap(&self) {
        let queues = self.all_queues();
        let is_done = |number: u64| queues.iter().all(|queue| queue.is_done(number));
        self.pool().reap(is_done);
        self.unload_modules(is_done);
        self.drop_closed();
    }

    /// Returns all cached memory to the driver. Waits for all work.
    pub(crate) fn reclaim(&self) -> Result<()> {
        self.wait_all()?;
        self.give_back(0)
    }

    /// Returns free memory to the driver until `keep` bytes of it are left. The device must be idle and the
    /// context current.
    pub(crate) fn give_back(&self, keep: u64) -> Result<()> {
        let surplus = self.pool().surplus(keep);
        let mut outcome = Ok(());
        for address in surplus {
            // A failure for one block must not prevent the others.
            let freed = self.context.checked(self.context.driver.free(address));
            outcome = outcome.and(freed);
        }
        outcome
    }

    /// Makes a driver call. If memory is short, cached memory is released and the call is repeated.
    pub(crate) fn retried<T>(&self, mut call: impl FnMut() -> CallResult<T>) -> Result<T> {
        match call() {
            Err(failed) if failed.code == code::OUT_OF_MEMORY => {
                self.reclaim()?;
                self.context.checked(call())
            }
            outcome => self.context.checked(outcome),
        }
    }

    /// Allocates pinned host memory. The context must be current.
    pub(crate) fn pinned(&self, bytes: usize) -> Result<PinnedMemory> {
        // SAFETY: `PinnedMemory` frees the memory only after unpinning it, or here if it was not pinned.
        PinnedMemory::new(&self.context, bytes, |start, bytes| self.retried(|| unsafe { self.context.driver.pin(start, bytes) }))
    }
}
