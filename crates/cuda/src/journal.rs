//! Kernels that may be running on a stream, so that a fault can name them, and the deadline of its work.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of recorded launches.
const REMEMBERED: usize = 256;

/// Record of the launches of one stream.
#[derive(Debug, Default)]
pub(crate) struct Journal(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    /// Kernels in launch order.
    kernels: VecDeque<Arc<str>>,
    /// Number of the first kernel in the list.
    first: u64,
    /// Deadline of the submitted work, and the limit of the latest launch.
    deadline: Option<(Instant, Duration)>,
}

impl Journal {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a kernel that was submitted to the driver.
    pub(crate) fn note(&self, kernel: &Arc<str>, limit: Option<Duration>) {
        let mut entries = self.entries();
        if entries.kernels.len() == REMEMBERED {
            entries.kernels.pop_front();
            entries.first += 1;
        }
        entries.kernels.push_back(kernel.clone());
        if let Some(limit) = limit {
            let now = Instant::now();
            let start = entries.deadline.map_or(now, |(deadline, _)| deadline.max(now));
            // A limit beyond the range of time is no limit.
            entries.deadline = start.checked_add(limit).map(|deadline| (deadline, limit)).or(entries.deadline);
        }
    }

    /// Returns the kernels that may be running.
    pub(crate) fn suspects(&self) -> Vec<Arc<str>> {
        self.entries().kernels.iter().cloned().collect()
    }

    /// Returns the deadline of the submitted work and its limit.
    pub(crate) fn deadline(&self) -> Option<(Instant, Duration)> {
        self.entries().deadline
    }

    /// Returns the number of launches recorded so far.
    pub(crate) fn noted(&self) -> u64 {
        let entries = self.entries();
        entries.first + entries.kernels.len() as u64
    }

    /// Removes the launches up to a number, which have ended.
    pub(crate) fn forget(&self, noted: u64) {
        let mut entries = self.entries();
        while entries.first < noted && !entries.kernels.is_empty() {
            entries.kernels.pop_front();
            entries.first += 1;
        }
        if entries.kernels.is_empty() {
            entries.deadline = None;
        }
    }
}
