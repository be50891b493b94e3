//! A stream of the driver, and what is known of its work.
//!
//! Every piece of work of a device has a number, rising with time, which it gets when the driver has it. A queue knows the number of its last
//! piece and of the last that is known to be done. **What is known to be done is done: numbers are read before the driver is asked.** It also
//! remembers which kernels may be under way, so that a fault has a name.

use crate::context::Context;
use crate::ffi::StreamHandle;
use broadloom_device::Result;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Launches that are remembered.
const REMEMBERED: usize = 256;
/// Rounds that a limited wait looks before it sleeps.
const SPINS: u32 = 2000;
/// How long it sleeps at most.
const NAP: Duration = Duration::from_millis(1);

/// A stream of the driver.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) context: Arc<Context>,
    pub(crate) handle: StreamHandle,
    /// The number of the stream.
    pub(crate) stream: u32,
    last: AtomicU64,
    done: AtomicU64,
    journal: Mutex<Journal>,
}

#[derive(Debug, Default)]
struct Journal {
    /// Kernels in the order launched.
    kernels: VecDeque<Arc<str>>,
    /// The number of the first of them.
    first: u64,
    /// When the work given so far should be done, and the limit of what was given last.
    deadline: Option<(Instant, Duration)>,
}

impl Queue {
    /// The stream of a number. The context is current.
    pub(crate) fn new(context: &Arc<Context>, stream: u32) -> Result<Arc<Queue>> {
        let handle = context.checked(context.driver.create_stream())?;
        let queue = Arc::new(Queue {
            context: context.clone(),
            handle,
            stream,
            last: AtomicU64::new(0),
            done: AtomicU64::new(0),
            journal: Mutex::default(),
        });
        context.add_queue(&queue);
        Ok(queue)
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a kernel that the driver has been given.
    pub(crate) fn note(&self, kernel: &Arc<str>, limit: Option<Duration>) {
        let mut journal = self.journal();
        if journal.kernels.len() == REMEMBERED {
            journal.kernels.pop_front();
            journal.first += 1;
        }
        journal.kernels.push_back(kernel.clone());
        if let Some(limit) = limit {
            let now = Instant::now();
            let start = journal.deadline.map_or(now, |(deadline, _)| deadline.max(now));
            // A limit beyond all time is none.
            journal.deadline = start.checked_add(limit).map(|deadline| (deadline, limit)).or(journal.deadline);
        }
    }

    /// Kernels that may be under way.
    pub(crate) fn suspects(&self) -> Vec<Arc<str>> {
        self.journal().kernels.iter().cloned().collect()
    }

    /// The driver has a piece of work with this number.
    #[inline]
    pub(crate) fn given(&self, number: u64) {
        self.last.fetch_max(number, Ordering::SeqCst);
    }

    /// Whether work is not known to be done.
    pub(crate) fn is_busy(&self) -> bool {
        self.last.load(Ordering::SeqCst) > self.done.load(Ordering::SeqCst)
    }

    /// Whether all its work up to a number is known to be done.
    pub(crate) fn is_done(&self, number: u64) -> bool {
        !self.is_busy() || self.done.load(Ordering::SeqCst) >= number
    }

    /// Asks the driver, without waiting, whether all work is done.
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

    /// Waits until all work given so far is done. The context is current.
    pub(crate) fn wait(self: &Arc<Self>) -> Result<()> {
        let seen = self.seen();
        let deadline = self.journal().deadline;
        match deadline {
            None => self.context.checked(self.context.driver.synchronise_stream(self.handle))?,
            Some((deadline, limit)) => {
                let driver = &self.context.driver;
                until(deadline, || self.context.checked(driver.query_stream(self.handle)))?
                    .ok_or_else(|| self.context.give_up(self, limit))?;
                // It is done; only a wait makes the driver show what kernels printed.
                self.context.checked(driver.synchronise_stream(self.handle))?;
            }
        }
        self.finish(seen);
        Ok(())
    }

    /// When the work given so far should be done, and the limit that says so.
    pub(crate) fn deadline(&self) -> Option<(Instant, Duration)> {
        self.journal().deadline
    }

    /// What there is: the number of the last piece, and how many launches were noted.
    fn seen(&self) -> (u64, u64) {
        let last = self.last.load(Ordering::SeqCst);
        let journal = self.journal();
        (last, journal.first + journal.kernels.len() as u64)
    }

    /// What was seen is done.
    fn finish(&self, (last, noted): (u64, u64)) {
        self.done.fetch_max(last, Ordering::SeqCst);
        let mut journal = self.journal();
        while journal.first < noted && !journal.kernels.is_empty() {
            journal.kernels.pop_front();
            journal.first += 1;
        }
        if journal.kernels.is_empty() {
            journal.deadline = None;
        }
    }
}

/// Asks again and again until the answer is yes; `None` when it was not at the deadline.
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
