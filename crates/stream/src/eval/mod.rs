//! The evaluator: what programs mean.
//!
//! [`run()`] executes a [`crate::graph::Graph`] on the host, one item at a time. Compiled code is compared
//! with it.
//!
//! Invariants:
//! - nothing here prints or opens a file: the [`Host`] does;
//! - steps, memory and the depth of calls are bounded by [`Limits`]; reaching a limit is an error with a
//!   place.

mod arithmetic;
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
pub(crate) use code::{Code, PATHS, Stop, Weights, World};
pub use host::{Host, Memory, System};
pub(crate) use messages::{correspondents, has_upstream_messages};
pub(crate) use run::{Machine, random};
pub use run::{Outcome, Settings, run};
pub use show::show_value;

/// Bounds of elaboration and execution.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Rounds of loops, calls and firings.
    pub steps: u64,
    /// Of these, steps while the graph is built.
    pub construction: u64,
    /// Of these, steps of one firing.
    pub firing: u64,
    /// Scalars that fields, locals and tapes hold at one time.
    pub cells: u64,
    /// Nested calls, and nested streams.
    pub depth: u32,
    /// Filters, splitters and joiners.
    pub nodes: u32,
    /// Firings of a steady state; with dynamic rates, firings in a row that give no item to a filter that waits for one.
    pub schedule: u64,
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
        }
    }
}

/// The part of the limits that is used up.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    pub(crate) limits: Limits,
    pub(crate) steps: u64,
    /// Value of `steps` at which the current firing is stopped.
    pub(crate) firing_end: u64,
    pub(crate) cells: u64,
    pub(crate) depth: u32,
    /// Address near the start of the stack, and bytes of it that may be used.
    stack: (usize, usize),
}

/// Bytes of stack that [`with_stack`] provides.
const STACK: usize = 1 << 30;

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        let here = 0u8;
        Budget { limits, steps: 0, firing_end: u64::MAX, cells: 0, depth: 0, stack: (&raw const here as usize, STACK / 8 * 7) }
    }

    /// Measures the stack from here, on another thread than before.
    pub(crate) fn start_stack(&mut self) {
        let here = 0u8;
        self.stack = (&raw const here as usize, STACK / 8 * 7);
    }

    /// Whether calls may nest deeper.
    pub(crate) fn has_stack(&self) -> bool {
        let here = 0u8;
        self.stack.0.abs_diff(&raw const here as usize) < self.stack.1
    }
}

/// Runs a function on a thread with a large stack, since programs may recurse.
pub(crate) fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("stream".into()).stack_size(STACK).spawn_scoped(scope, work)?;
        thread.join().map_err(|_| std::io::Error::other("the evaluator stopped by an internal error"))
    })
}
