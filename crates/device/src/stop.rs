//! Stop request from outside.

use std::fmt;
use std::sync::atomic::{AtomicI32, Ordering};

/// Value of the flag for a time limit; signals have positive numbers.
const TIME_LIMIT: i32 = -1;

/// Flag that a signal handler or a timer sets and executors poll.
#[derive(Debug, Default)]
pub struct Stop(AtomicI32);

/// Why running work is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// A signal, by its number.
    Signal(i32),
    /// The time limit of the command.
    TimeLimit,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StopReason::Signal(signal) => f.write_str(&signal_name(*signal)),
            StopReason::TimeLimit => f.write_str("the time limit"),
        }
    }
}

impl Stop {
    /// Creates a flag without a request.
    pub const fn new() -> Stop {
        Stop(AtomicI32::new(0))
    }

    /// Requests a stop because of a signal. Returns true for the first request. Safe to call from a signal
    /// handler.
    pub fn request(&self, signal: i32) -> bool {
        self.0.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Requests a stop because the time limit has passed. Returns true for the first request.
    pub fn request_by_time_limit(&self) -> bool {
        self.request(TIME_LIMIT)
    }

    /// Withdraws the request, for work that begins after the stopped work.
    pub fn clear(&self) {
        self.0.store(0, Ordering::SeqCst);
    }

    /// Tests if a stop is requested.
    #[inline]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Returns the reason of the request, if any.
    pub fn reason(&self) -> Option<StopReason> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            TIME_LIMIT => Some(StopReason::TimeLimit),
            signal => Some(StopReason::Signal(signal)),
        }
    }

    /// Returns the signal of the request; `None` if there is no request, or one by the time limit.
    pub fn signal(&self) -> Option<i32> {
        match self.reason()? {
            StopReason::Signal(signal) => Some(signal),
            StopReason::TimeLimit => None,
        }
    }
}

/// Returns the name of a signal: `SIGINT`.
pub fn signal_name(signal: i32) -> String {
    match signal {
        1 => "SIGHUP".to_owned(),
        2 => "SIGINT".to_owned(),
        9 => "SIGKILL".to_owned(),
        15 => "SIGTERM".to_owned(),
        number => format!("signal {number}"),
    }
}
