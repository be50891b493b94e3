//! Driver stream and the state of its work.
//!
//! Every piece of work of a device has an ascending number, assigned when it is submitted to the driver. A
//! queue stores the number of its last piece and of the last one known to be done. **Work known to be done is
//! done: numbers are read before the driver is queried.**

use crate::context::Context;
use crate::ffi::StreamHandle;
use crate::journal::Journal;
use broadloom_device::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Number of polls of a limited wait before it sleeps.
const SPINS: u32 = 2000;
/// Maximum sleep time.
const NAP: Duration = Duration::from_millis(1);

/// Driver stream.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) context: Arc<Context>,
    pub(crate) handle: StreamHandle,
    /// Number of the stream.
    pub(crate) stream: u32,
    last: AtomicU64,
    done: AtomicU64,
    journal: Arc<Journal>,
}

impl Queue {
    /// Creates the stream of a number. The context must be current.
    pub(crate) fn new(context: &Arc<Context>, stream: u32) -> Result<Arc<Queue>> {
        let handle = context.checked(context.driver.create_stream())?;
        let queue = Arc::new(Queue {
            context: context.clone(),
            handle,
            stream,
            last: AtomicU64::new(0),
            done: AtomicU64::new(0),
            journal: Arc::default(),
        });
        context.add_journal(&queue.journal);
        Ok(queue)
    }

    /// Returns the kernels that may be running, and the deadline of the submitted work.
    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Records a submitted piece of work by its number.
    #[inline]
    pub(crate) fn given(&self, number: u64) {
        self.last.fetch_max(number, Ordering::SeqCst);
    }

    /// Tests if some work is not known to be done.
    pub(crate) fn is_busy(&self) -> bool {
        self.last.load(Ordering::SeqCst) > self.done.load(Ordering::SeqCst)
    }

    /// Tests if all its work up to a number is known to be done.
    pub(crate) fn is_done(&self, number: u64) -> bool {
        !self.is_busy() || self.done.load(Ordering::SeqCst) >= number
    }

    /// Queries the driver, without waiting, whether all work is done.
    pub(crate) fn look(&self) -> Result<bool> {
        if !self.is_busy() {
            return Ok(true);
        }
        let seen = self.seen();
        let done = self.context.checked(self.context.driver.query_stream(self.handle))?;
        if done {
            self.finish(seen);
        }
        Ok(done)
    }

    /// Waits until all submitted work is done. The context must be current.
    pub(crate) fn wait(self: &Arc<Self>) -> Result<()> {
        let seen = self.seen();
        let deadline = self.journal.deadline();
        match deadline {
            None => self.context.checked(self.context.driver.synchronise_stream(self.handle))?,
            Some((deadline, limit)) => {
                let driver = &self.context.driver;
                until(deadline, || self.context.checked(driver.query_stream(self.handle)))?.ok_or_else(|| self.give_up(limit))?;
                // The work is done, but only a wait makes the driver flush the output of kernels.
                self.context.checked(driver.synchronise_stream(self.handle))?;
            }
        }
        self.finish(seen);
        Ok(())
    }

    /// Gives up on a kernel that did not end in time and cannot be stopped.
    pub(crate) fn give_up(self: &Arc<Self>, limit: Duration) -> Error {
        let error = self.context.give_up(&self.journal, self.handle, limit);
        if self.context.is_stuck() {
            // The driver's stream must stay, to be queried for its end.
            std::mem::forget(self.clone());
        }
        error
    }

    /// Returns the number of the last piece of work and the number of recorded launches.
    fn seen(&self) -> (u64, u64) {
        // The number is read first: work of a later number is not known to be done.
        (self.last.load(Ordering::SeqCst), self.journal.noted())
    }

    /// Marks work as done.
    fn finish(&self, seen: (u64, u64)) {
        let (last, noted) = seen;
        self.done.fetch_max(last, Ordering::SeqCst);
        self.journal.forget(noted);
    }
}

/// Polls until the answer is yes. Returns `None` at the deadline.
pub(crate) fn until(deadline: Instant, mut ask: impl FnMut() -> Result<bool>) -> Result<Option<()>> {
    let mut nap = Duration::from_micros(20);
    for round in 0u32.. {
        if ask()? {
            return Ok(Some(()));
        }
        if round < SPINS {
            std::hint::spin_loop();
            continue;
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(nap);
        nap = (nap * 2).min(NAP);
    }
    Ok(None)
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.context.enter_to_release() {
            let _ = self.context.driver.destroy_stream(self.handle);
        }
    }
}
