//! Limits of elaboration, scheduling and execution.

use crate::language::codes;
use broadloom_device as device;
use broadloom_diag::{Diagnostic, Span};

/// Limits of elaboration and execution.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Loop rounds, calls and firings.
    pub steps: u64,
    /// Steps while the graph is built, part of `steps`.
    pub construction: u64,
    /// Steps of one firing, part of `steps`.
    pub firing: u64,
    /// Scalars that fields, locals and tapes hold at one time.
    pub cells: u64,
    /// Nested calls, and nested streams.
    pub depth: u32,
    /// Filters, splitters and joiners.
    pub nodes: u32,
    /// Firings of a steady state. With dynamic rates: consecutive firings that give no item to a waiting
    /// filter.
    pub schedule: u64,
    /// Flag that ends the construction or the run when a timer or a signal sets it.
    pub stop: Option<&'static device::Stop>,
}

impl Limits {
    /// Fails if the run was stopped from outside, at the place that it has reached.
    pub(crate) fn check_stop(&self, span: Span) -> Result<(), Box<Diagnostic>> {
        let Some(reason) = self.stop.and_then(device::Stop::reason) else { return Ok(()) };
        Err(Diagnostic::error(codes::STOPPED, format!("the run was stopped by {reason}")).at(span, "").into())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            steps: u64::MAX,
            construction: 1 << 26,
            firing: 1 << 28,
            cells: 1 << 25,
            depth: 2000,
            nodes: 1 << 18,
            schedule: 1 << 24,
            stop: None,
        }
    }
}
