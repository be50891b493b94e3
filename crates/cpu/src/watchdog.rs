//! Time limits: a thread that sleeps until the next deadline.

use crate::stream::{Job, stop};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval after which workers that did not stop are interrupted again.
const AGAIN: Duration = Duration::from_millis(5);

#[derive(Default)]
struct WatchedLaunches {
    watched: Vec<(Instant, Weak<Job>)>,
    thread: Option<JoinHandle<()>>,
    ends: bool,
}

/// Timer that stops work at its time limit. Its thread starts with the first limit.
#[derive(Default)]
pub(crate) struct Watchdog {
    state: Arc<(Mutex<WatchedLaunches>, Condvar)>,
}

fn lock(state: &Mutex<WatchedLaunches>) -> MutexGuard<'_, WatchedLaunches> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watchdog {
    /// Stops a piece of work at a time, unless it is done before. `interrupt` interrupts the workers that do it;
    /// the first one serves all work.
    pub(crate) fn watch(&self, job: &Arc<Job>, until: Instant, interrupt: impl Fn(&Arc<Job>) + Send + 'static) {
        let mut state = lock(&self.state.0);
        state.watched.push((until, Arc::downgrade(job)));
        if state.thread.is_none() {
            let place = self.state.clone();
            let thread = std::thread::Builder::new().name("broadloom-time".into()).spawn(move || keep_time(&place, &interrupt));
            state.thread = thread.ok();
        }
        self.state.1.notify_one();
    }

    /// Ends the thread.
    pub(crate) fn close(&self) {
        let thread = {
            let mut state = lock(&self.state.0);
            state.ends = true;
            state.thread.take()
        };
        self.state.1.notify_one();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

fn keep_time(place: &(Mutex<WatchedLaunches>, Condvar), interrupt: &dyn Fn(&Arc<Job>)) {
    let mut state = lock(&place.0);
    while !state.ends {
        let now = Instant::now();
        let late: Vec<Arc<Job>> =
            state.watched.iter().filter(|(until, _)| *until <= now).filter_map(|(_, job)| job.upgrade()).collect();
        state.watched.retain(|(until, job)| *until > now && job.strong_count() > 0);
        if !late.is_empty() {
            // A worker may have been between the check of the flag and the signal. It is interrupted again
            // until the work is over.
            let again = late.iter().map(|job| (now + AGAIN, Arc::downgrade(job)));
            state.watched.extend(again);
            drop(state);
            for job in late {
                let _ = job.stop.compare_exchange(0, stop::LATE, Ordering::SeqCst, Ordering::SeqCst);
                interrupt(&job);
            }
            state = lock(&place.0);
            continue;
        }
        let next = state.watched.iter().map(|(until, _)| *until).min();
        state = match next {
            None => place.1.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(next) => {
                let wait = next.saturating_duration_since(now);
                place.1.wait_timeout(state, wait).map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state)
            }
        };
    }
}
