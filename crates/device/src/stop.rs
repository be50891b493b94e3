//! Stop request from outside.

use std::sync::atomic::{AtomicI32, Ordering};

/// Flag that a signal handler sets and executors poll.
#[derive(Debug, Default)]
pub struct Stop(AtomicI32);

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

    /// Returns the signal of the request, if any.
    pub fn signal(&self) -> Option<i32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
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
