//! Pinned host memory, from and to which the GPU copies directly.
//!
//! The memory belongs to the process and is only registered with the driver, so it survives the loss of a
//! context. **No one accesses it during a copy: users wait first. It is freed only when no copy can access it
//! any more; if that cannot be determined, it is never freed.**

use crate::context::Context;
use crate::device::{Cuda, Inner};
use crate::queue::Queue;
use crate::timing::Piece;
use broadloom_device::{Backend, Error, HostMemory, Result, Stream, trace};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// Granularity of pinning in bytes.
const PAGE: usize = 4096;

/// Pinned memory.
#[derive(Debug)]
pub(crate) struct Pinned {
    context: Arc<Context>,
    start: NonNull<u8>,
    layout: Layout,
    pub(crate) bytes: usize,
}

// SAFETY: the memory belongs to this value alone. It is accessed through `&mut`, or after all copies are
// known to be done.
unsafe impl Send for Pinned {}

impl Pinned {
    /// Allocates zeroed memory. The context must be current.
    pub(crate) fn new(inner: &Inner, bytes: usize) -> Result<Pinned> {
        let refused = Error::OutOfMemory { requested: bytes as u64, available: 0 };
        let whole = bytes.max(1).checked_next_multiple_of(PAGE).ok_or(refused.clone())?;
        let layout = Layout::from_size_align(whole, PAGE).map_err(|_| refused.clone())?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(refused)?;
        // SAFETY: the memory is freed only in `drop`, which unpins it first, or here if it was not pinned.
        let pinned = inner.retried(|| unsafe { inner.context.driver.pin(start.as_ptr(), whole) });
        match pinned {
            Ok(()) => Ok(Pinned { context: inner.context.clone(), start, layout, bytes }),
            Err(error) => {
                // SAFETY: it was allocated with this layout and is not shared.
                unsafe { dealloc(start.as_ptr(), layout) };
                Err(error)
            }
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the allocation has this many bytes, all initialised; the caller has waited for copies.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// Returns a pointer into the memory, for the driver. The range has been checked.
    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        self.start.as_ptr().wrapping_add(offset)
    }
}

impl Drop for Pinned {
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

/// Pinned memory of a user.
#[derive(Debug)]
pub(crate) struct HostPages {
    inner: Arc<Inner>,
    memory: Pinned,
    uses: Vec<Use>,
}

impl HostPages {
    pub(crate) fn new(inner: &Arc<Inner>, bytes: usize) -> Result<HostPages> {
        inner.context.enter()?;
        Ok(HostPages { inner: inner.clone(), memory: Pinned::new(inner, bytes)?, uses: vec![] })
    }

    fn wait(&mut self) -> Result<()> {
        self.inner.context.alive()?;
        while let Some((queue, number)) = self.uses.last() {
            if !queue.is_done(*number) {
                self.inner.context.enter()?;
                self.inner.wait(queue)?;
            }
            self.uses.pop();
        }
        Ok(())
    }

    fn check(&self, call: &'static str, range: &Range<usize>) -> Result<()> {
        let inside = range.start <= range.end && range.end <= self.memory.bytes;
        let bad = Error::BadAddress { call, address: range.start as u64, bytes: range.len() as u64 };
        if inside { Ok(()) } else { Err(bad) }
    }

    fn used(&mut self, queue: Arc<Queue>, number: u64) {
        self.uses.retain(|(queue, number)| !queue.is_done(*number));
        self.uses.push((queue, number));
    }
}

impl Drop for HostPages {
    fn drop(&mut self) {
        // On failure the context is lost, and with it all copies, or it is stuck, and the memory stays
        // allocated.
        let _ = self.wait();
    }
}

impl HostMemory for HostPages {
    fn bytes(&mut self) -> Result<&mut [u8]> {
        self.wait()?;
        Ok(self.memory.bytes())
    }

    fn upload(&mut self, _backend: &dyn Backend, stream: Stream, from: Range<usize>, to: u64) -> Result<()> {
        self.check("upload", &from)?;
        let inner = self.inner.clone();
        let queue = inner.queue(stream)?;
        inner.pool().check("upload", to, from.len() as u64)?;
        inner.context.enter()?;
        if from.is_empty() {
            return Ok(());
        }
        let begun = inner.begin(&queue, trace::is_on())?;
        // SAFETY: the range is pinned, and the recorded use prevents other accesses.
        let copied = unsafe { inner.context.driver.copy_in(to, self.memory.at(from.start), from.len(), queue.handle) };
        inner.context.checked(copied)?;
        let number = inner.given(&queue);
        self.used(queue.clone(), number);
        inner.end(&queue, begun, || Piece::bytes("upload", from.len() as u64))
    }

    fn download(&mut self, _backend: &dyn Backend, stream: Stream, from: u64, to: Range<usize>) -> Result<()> {
        self.check("download", &to)?;
        let inner = self.inner.clone();
        let queue = inner.queue(stream)?;
        inner.pool().check("download", from, to.len() as u64)?;
        inner.context.enter()?;
        if to.is_empty() {
            return Ok(());
        }
        let begun = inner.begin(&queue, trace::is_on())?;
        // SAFETY: as for uploads.
        let copied = unsafe { inner.context.driver.copy_out(self.memory.at(to.start), from, to.len(), queue.handle) };
        inner.context.checked(copied)?;
        let number = inner.given(&queue);
        self.used(queue.clone(), number);
        inner.end(&queue, begun, || Piece::bytes("download", to.len() as u64))
    }
}

impl Cuda {
    pub(crate) fn host_pages(&self, bytes: usize) -> Result<Box<dyn HostMemory>> {
        Ok(Box::new(HostPages::new(&self.inner, bytes)?))
    }
}
