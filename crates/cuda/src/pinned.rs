//! Pinned host memory, from and to which the GPU copies directly.
//!
//! The memory belongs to the process and is only registered with the driver, so it survives the loss of a
//! context. **No one accesses it during a copy: users wait first. It is freed only when no copy can access it
//! any more; if that cannot be determined, it is never freed.**

use crate::context::Context;
use crate::queue::Queue;
use broadloom_device::{Error, Result};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;

/// Granularity of pinning in bytes.
const PAGE: usize = 4096;

#[derive(Debug)]
pub(crate) struct PinnedMemory {
    context: Arc<Context>,
    start: NonNull<u8>,
    layout: Layout,
    pub(crate) bytes: usize,
}

// SAFETY: the memory belongs to this value alone. It is accessed through `&mut`, or after all copies are
// known to be done.
unsafe impl Send for PinnedMemory {}

impl PinnedMemory {
    /// Allocates zeroed memory and registers it with `pin`. The context must be current.
    pub(crate) fn new(
        context: &Arc<Context>,
        bytes: usize,
        pin: impl FnOnce(*mut u8, usize) -> Result<()>,
    ) -> Result<PinnedMemory> {
        let refused = Error::OutOfMemory { requested: bytes as u64, available: 0 };
        let whole = bytes.max(1).checked_next_multiple_of(PAGE).ok_or(refused.clone())?;
        let layout = Layout::from_size_align(whole, PAGE).map_err(|_| refused.clone())?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(refused)?;
        match pin(start.as_ptr(), whole) {
            Ok(()) => Ok(PinnedMemory { context: context.clone(), start, layout, bytes }),
            Err(error) => {
                // SAFETY: it was allocated with this layout and is not shared.
                unsafe { dealloc(start.as_ptr(), layout) };
                Err(error)
            }
        }
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the allocation has this many bytes, all initialised; the caller has waited for copies.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// Returns a pointer into the memory, for the driver. The range has been checked.
    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        self.start.as_ptr().wrapping_add(offset)
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        if self.context.is_stuck() {
            return;
        }
        if self.context.enter_to_release() {
            let _ = self.context.driver.unpin(self.start.as_ptr());
        }
        // SAFETY: it was allocated with this layout. The owner has waited for copies, or the context is lost
        // and with it all work.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Pending copy: its queue and its number.
pub(crate) type Use = (Arc<Queue>, u64);
