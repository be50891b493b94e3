//! The use of steps, memory and stack by a run.

use crate::language::limits::Limits;

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
