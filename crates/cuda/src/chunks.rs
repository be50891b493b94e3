//! Chunks of pinned memory for staging pageable memory.

use crate::pinned::{PinnedMemory, Use};
use crate::timing::Stamp;

/// Chunk of staging memory.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) memory: PinnedMemory,
    /// Bytes used by pending copies.
    pub(crate) used: usize,
    pub(crate) last: Option<Use>,
    /// Event after a piece of a large copy.
    pub(crate) event: Option<Stamp>,
}

impl Chunk {
    /// Tests if all copies that use it are done.
    pub(crate) fn is_idle(&self) -> bool {
        self.last.as_ref().is_none_or(|(queue, number)| queue.is_done(*number))
    }
}

/// Pinned memory for staging pageable memory.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) bytes: usize,
}
