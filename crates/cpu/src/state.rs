//! State that the handles of a device, its loaded modules and its launches share.

use crate::cache::Cache;
use crate::memory::{Memory, Owner};
use crate::options::Options;
use crate::statistics::{KernelStatistics, Record};
use crate::stream::Streams;
use crate::worker::WorkerShared;
use broadloom_device::texture::Opaques;
use broadloom_device::{Machine, Result};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// State that the handles of a device share.
pub(crate) struct DeviceState {
    pub(crate) machine: Machine,
    pub(crate) options: Options,
    pub(crate) memory: Arc<Memory>,
    pub(crate) shared: Arc<WorkerShared>,
    pub(crate) cache: Cache,
    pub(crate) launches: AtomicU32,
    /// Number of times the passes ran over a kernel.
    pub(crate) drafts: AtomicU32,
    /// Number of proofs that were tried for launches.
    pub(crate) proofs: AtomicU32,
    pub(crate) opaques: Opaques,
    pub(crate) statistics: Mutex<Vec<(KernelStatistics, Arc<Record>)>>,
    pub(crate) workers: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for DeviceState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cpu").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Drop for DeviceState {
    fn drop(&mut self) {
        // A launch that went ahead has its code, or it would keep this alive.
        self.shared.streams.arrive();
        self.shared.streams.close();
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
        self.shared.watchdog.close();
    }
}

impl DeviceState {
    pub(crate) fn streams(&self) -> &Streams {
        &self.shared.streams
    }

    pub(crate) fn statistics(&self) -> MutexGuard<'_, Vec<(KernelStatistics, Arc<Record>)>> {
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note_kernel(&self, facts: KernelStatistics) -> Arc<Record> {
        let record = Arc::new(Record::default());
        self.statistics().push((facts, record.clone()));
        record
    }

    /// Allocates memory.
    pub(crate) fn allocate(&self, bytes: u64, owner: Owner) -> Result<u64> {
        self.retried(|| self.memory.allocate(bytes, owner.clone()))
    }

    /// Runs an action that allocates memory. If there is none, waits for the work that may still use freed
    /// memory, and runs it again.
    pub(crate) fn retried<T>(&self, allocate: impl Fn() -> Result<T>) -> Result<T> {
        self.memory.retried(allocate, || self.wait_for_dying())
    }

    /// Waits for all work submitted so far, and releases the memory that waited for it.
    pub(crate) fn wait_for_dying(&self) {
        if let Some(number) = self.streams().horizon() {
            self.streams().drain();
            // Copies by other host threads also have numbers. They are not in a stream.
            while self.streams().oldest() < number {
                std::thread::yield_now();
            }
        }
        self.reap();
    }

    /// Releases the memory that waited for work that is done by now. Finished work does so too, but it may end while memory is
    /// being freed, and a wait for an event ends with nothing.
    pub(crate) fn reap(&self) {
        if self.memory.has_dying() {
            self.memory.reap(self.streams().oldest());
        }
    }

    /// Checks that a range lies inside one allocation.
    pub(crate) fn inside(&self, address: u64, bytes: u64) -> Result<()> {
        self.memory.range("texture", address, bytes).map(drop)
    }

    /// Runs an action on a range of memory, which stays allocated meanwhile.
    pub(crate) fn with_range<T>(
        &self,
        call: &'static str,
        address: u64,
        bytes: u64,
        act: impl FnOnce(*mut u8) -> Result<T>,
    ) -> Result<T> {
        let number = self.streams().begin();
        let outcome = self.memory.range(call, address, bytes).and_then(act);
        let oldest = self.streams().end(number);
        if self.memory.has_dying() {
            self.memory.reap(oldest);
        }
        outcome
    }
}
