//! Callers and constants of a run.

use crate::run::Entry;
use crate::vcode::FuncId;
use broadloom_diag::Span;
use std::collections::HashMap;

/// Constants of a program as entries, by their places. If the program runs again, its constants keep their
/// copies on the device.
pub(crate) type Constants = HashMap<(FuncId, usize), Entry>;

/// A caller.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) function: FuncId,
    /// The instruction to continue with.
    pub(super) back: usize,
    /// The place outside the library that it was called from.
    pub(super) site: Span,
    /// Entries of the stack below its operands.
    pub(super) base: usize,
}
