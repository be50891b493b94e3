//! Memory of the device: the pool, and when what was freed may be used again.
//!
//! Freeing asks the driver for nothing and waits for nothing. While there is one stream, a freed block may be given out at once: whatever
//! touches it next is behind everything that touched it before. With several streams it waits until all work given before is known to be done.
//! The driver gets memory back only when the device is idle, because it waits otherwise.

use crate::device::Inner;
use crate::driver::Called;
use crate::ffi::code;
use crate::pool::Pool;
use broadloom_device::{Error, Result};
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

impl Inner {
    pub(crate) fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory. When there is none, what is kept for later is given up and the driver asked once more.
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

    /// A block from new memory of the driver.
    fn grow(&self, bytes: u64) -> Result<u64> {
        let mut pool = self.pool();
        // Others may have freed something meanwhile.
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

    /// Frees a block, now or when the work is done that may touch it.
    pub(crate) fn free(&self, address: u64) -> Result<()> {
        self.pool().free(address, self.horizon())
    }

    /// The number up to which work must be done before what is freed now may be used again; `None` when it may at once.
    pub(crate) fn horizon(&self) -> Option<u64> {
        let alone = self.queue_count.load(Ordering::SeqCst) == 1;
        (!alone && self.any_queue(|queue| queue.is_busy())).then(|| self.number.load(Ordering::SeqCst))
    }

    /// Asks the driver, without waiting, which work is done, and frees what waited for it. The context is current.
    fn look(&self) -> Result<()> {
        for queue in self.all_queues() {
            queue.look()?;
        }
        self.reap();
        Ok(())
    }

    /// Frees what waited for work that is known to be done.
    pub(crate) fn reap(&self) {
        let queues = self.all_queues();
        let is_done = |number: u64| queues.iter().all(|queue| queue.is_done(number));
        self.pool().reap(is_done);
        self.unload_modules(is_done);
        self.drop_closed();
    }

    /// Gives everything that is kept for later back to the driver. Waits for all work.
    pub(crate) fn reclaim(&self) -> Result<()> {
        self.wait_all()?;
        self.give_back(0)
    }

    /// Gives free memory back until some bytes of it are left. The device is idle and the context current.
    pub(crate) fn give_back(&self, keep: u64) -> Result<()> {
        let surplus = self.pool().surplus(keep);
        let mut outcome = Ok(());
        for address in surplus {
            // What the driver says to one must not keep the others.
            let freed = self.context.checked(self.context.driver.free(address));
            outcome = outcome.and(freed);
        }
        outcome
    }

    /// Tries a call of the driver; when there is too little memory for it, gives up what is kept for later and tries once more.
    pub(crate) fn retried<T>(&self, mut call: impl FnMut() -> Called<T>) -> Result<T> {
        match call() {
            Err(failed) if failed.code == code::OUT_OF_MEMORY => {
                self.reclaim()?;
                self.context.checked(call())
            }
            outcome => self.context.checked(outcome),
        }
    }
}
