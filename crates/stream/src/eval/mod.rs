//! The evaluator: the reference semantics of programs.
//!
//! [`run()`] executes a [`crate::graph::Graph`] on the host, one item at a time. Compiled code is compared
//! with it.
//!
//! Invariants:
//! - nothing here prints or opens a file: the [`Host`] does;
//! - steps, memory and the depth of calls are bounded by [`Limits`]. Reaching a limit is an error with a
//!   place.

mod arithmetic;
mod checkpoint;
mod code;
mod files;
mod firing;
mod host;
mod messages;
mod place;
mod run;
mod scalar;
mod show;

pub(crate) use arithmetic::{binary, complex as complex_math, convert, math};
pub(crate) use checkpoint::Snapshot;
pub(crate) use code::{Code, PATHS, Stop, Weights, World};
pub use host::{Host, Memory, System};
pub(crate) use messages::{correspondents, has_upstream_messages};
pub(crate) use run::{Machine, random};
pub use run::{Outcome, Settings, run};
pub use show::show_value;

use crate::codes;
use broadloom_device as device;
use broadloom_diag::Span;

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
    /// Returns the error of a run that was stopped, at the place that it has reached.
    pub(crate) fn stopped(&self, span: Span) -> Option<Stop> {
        let reason = self.stop?.reason()?;
        Some(Stop::error(codes::STOPPED, format!("the run was stopped by {reason}"), span))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            steps: u64::MAX,
            construction: 1 << 26,
            firing: 1 << 28,
            cells: 1 << 27,
            depth: 2000,
            nodes: 1 << 18,
            schedule: 1 << 24,
            stop: None,
        }
    }
}

/// The used part of the limits.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    pub(crate) limits: Limits,
    pub(crate) steps: u64,
    /// Value of `steps` at which the current firing is stopped.
    pub(crate) firing_end: u64,
    pub(crate) cells: u64,
    pub(crate) depth: u32,
    /// An address near the start of the stack, and the bytes of stack that may be used.
    stack: (usize, usize),
}

/// Stack size in bytes that [`with_stack`] provides.
const STACK: usize = 1 << 30;

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        let here = 0u8;
        Budget { limits, steps: 0, firing_end: u64::MAX, cells: 0, depth: 0, stack: (&raw const here as usize, STACK / 8 * 7) }
    }

    /// Measures the stack from here, after a move to another thread.
    pub(crate) fn start_stack(&mut self) {
        let here = 0u8;
        self.stack = (&raw const here as usize, STACK / 8 * 7);
    }

    /// Returns whether calls may nest deeper.
    pub(crate) fn has_stack(&self) -> bool {
        let here = 0u8;
        self.stack.0.abs_diff(&raw const here as usize) < self.stack.1
    }
}

/// Runs a function on a thread with a large stack, because programs may recurse.
pub(crate) fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("stream".into()).stack_size(STACK).spawn_scoped(scope, work)?;
        thread.join().map_err(|_| std::io::Error::other("the evaluator stopped by an internal error"))
    })
}
