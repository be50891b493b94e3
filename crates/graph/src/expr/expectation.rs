//! Condition on a length that only the device knows.

use crate::expr::error::{Error, Result};
use broadloom_device::Buffer;
use std::fmt;

/// Condition on a length. It holds the memory of the number and not the node, which would keep its context
/// alive.
pub(crate) struct Expectation {
    /// The number, a `u32`, and its bound.
    pub(crate) count: Buffer<u8>,
    pub(crate) bound: usize,
    /// Function that returns the error for a length that differs from the expected one.
    pub(crate) wrong: Box<dyn Fn(usize) -> Option<Error> + Send + Sync>,
}

impl fmt::Debug for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expectation").field("bound", &self.bound).finish_non_exhaustive()
    }
}

impl Expectation {
    /// Compares the length with the one found by the device; waits for it.
    pub(crate) fn confirm(&self) -> Result<()> {
        let found = self.count.read()?.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
        (self.wrong)(found.min(self.bound)).map_or(Ok(()), Err)
    }
}
