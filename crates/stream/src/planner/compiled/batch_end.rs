//! Ends of a batch.

use crate::language::codes;
use crate::language::eval::Stop;
use broadloom_diag::Diagnostic;

/// The reason why a batch ends early.
pub(super) enum BatchEnd {
    /// The evaluator must run the batch again to report the error. A node on the host may already have
    /// reported it.
    Repeat(Option<Box<Diagnostic>>),
    /// The output is no longer read.
    Closed,
    /// The device failed.
    Device(String),
    /// The run was stopped from outside.
    Stopped(Box<Diagnostic>),
}

impl From<Stop> for BatchEnd {
    fn from(stop: Stop) -> BatchEnd {
        match stop {
            Stop::OutputClosed => BatchEnd::Closed,
            Stop::Error(error) if error.code == codes::STOPPED => BatchEnd::Stopped(error),
            Stop::Error(error) => BatchEnd::Repeat(Some(error)),
            Stop::EndOfInput | Stop::Idle => BatchEnd::Repeat(None),
        }
    }
}
