//! A request from outside to stop what runs.

use std::sync::atomic::{AtomicI32, Ordering};

/// A flag that a signal handler sets and executors look at.
#[derive(Debug, Default)]
pub struct Stop(AtomicI32);

impl Stop {
    /// Nobody has asked yet.
    pub const fn new() -> Stop {
        Stop(AtomicI32::new(0))
    }

    /// Asks to stop, because of a signal. Returns whether this was the first request. Safe to call from a
    /// signal handler.
    pub fn request(&self, signal: i32) -> bool {
        self.0.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Returns the signal that asked, if one has.
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
