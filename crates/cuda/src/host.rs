//! Memory of the host that is pinned, so that the GPU copies from and to it by itself; and staging through it for memory that is not.
//!
//! The memory is the process's own and only registered with the driver, so that it stays when a context is lost. **Nobody touches it while
//! a copy is under way: whoever wants to waits first. It is freed only when no copy can touch it any more; where that cannot be known, never.**

use crate::context::Context;
use crate::device::{Cuda, Inner};
use crate::queue::Queue;
use crate::timing::Piece;
use broadloom_device::{Backend, Error, HostMemory, Result, Stream, trace};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};

/// Pages are pinned whole.
const PAGE: usize = 4096;
/// Bytes of the first piece of staging memory, and of all others.
const FIRST_CHUNK: usize = 256 << 10;
const CHUNK: usize = 4 << 20;
/// Most staging memory.
const MOST_STAGED: usize = 32 << 20;

/// Pinned memory.
#[derive(Debug)]
pub(crate) struct Pinned {
    context: Arc<Context>,
    start: NonNull<u8>,
    layout: Layout,
    bytes: usize,
}

// SAFETY: the memory belongs to this value alone; it is reached through `&mut`, or after all copies are known to be done.
unsafe impl Send for Pinned {}

impl Pinned {
    /// Zeros. The context is current.
    fn new(inner: &Inner, bytes: usize) -> Result<Pinned> {
        let refused = Error::OutOfMemory { requested: bytes as u64, available: 0 };
        let whole = bytes.max(1).checked_next_multiple_of(PAGE).ok_or(refused.clone())?;
        let layout = Layout::from_size_align(whole, PAGE).map_err(|_| refused.clone())?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(refused)?;
        // SAFETY: the memory is freed in `drop` alone, which unpins it before, or here when it was not pinned.
        let pinned = inner.retried(|| unsafe { inner.context.driver.pin(start.as_ptr(), whole) });
        match pinned {
            Ok(()) => Ok(Pinned { context: inner.context.clone(), start, layout, bytes }),
            Err(error) => {
                // SAFETY: it was allocated with this layout, and nobody knows of it.
                unsafe { dealloc(start.as_ptr(), layout) };
                Err(error)
            }
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the allocation has so many bytes, all initialised; whoever calls has waited for copies.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// A place in it, for the driver. The range has been checked.
    fn at(&self, offset: usize) -> *mut u8 {
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
        // SAFETY: it was allocated with this layout; whoever owned it has waited for copies, or the context is lost and with it all work.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// A copy that may be under way: the queue it was given to, and its number.
type Use = (Arc<Queue>, u64);

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
        // When it fails, the context is lost, and with it all copies, or it is stuck, and the memory stays.
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
        // SAFETY: the range is pinned, and the use that is noted keeps everybody away.
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

/// A piece of staging memory.
#[derive(Debug)]
struct Chunk {
    memory: Pinned,
    /// Bytes that copies under way use.
    used: usize,
    last: Option<Use>,
}

impl Chunk {
    fn is_idle(&self) -> bool {
        self.last.as_ref().is_none_or(|(queue, number)| queue.is_done(*number))
    }
}

/// Pinned memory through which other memory of the host goes.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    chunks: Vec<Chunk>,
    bytes: usize,
}

impl Staging {
    /// A chunk with room for copies of a queue: where it is in the list, and how many bytes there are. Waits when all are in use.
    fn room(&mut self, inner: &Inner, queue: &Arc<Queue>, wanted: usize) -> Result<usize> {
        let open = |chunk: &Chunk| {
            let same = chunk.last.as_ref().is_some_and(|(other, _)| Arc::ptr_eq(other, queue));
            same && chunk.memory.bytes - chunk.used >= wanted.min(chunk.memory.bytes / 8).max(1)
        };
        if let Some(index) = self.chunks.iter().position(open) {
            return Ok(index);
        }
        for round in 0..2 {
            // The largest that is idle.
            let idle = self.chunks.iter().enumerate().filter(|(_, chunk)| chunk.is_idle());
            if let Some((index, _)) = idle.max_by_key(|(_, chunk)| chunk.memory.bytes) {
                self.chunks[index].used = 0;
                self.chunks[index].last = None;
                return Ok(index);
            }
            if self.bytes < MOST_STAGED {
                let bytes = if self.chunks.is_empty() && wanted <= FIRST_CHUNK { FIRST_CHUNK } else { CHUNK };
                self.chunks.push(Chunk { memory: Pinned::new(inner, bytes)?, used: 0, last: None });
                self.bytes += bytes;
                return Ok(self.chunks.len() - 1);
            }
            if round == 0 {
                for chunk in &self.chunks {
                    if let Some((queue, _)) = &chunk.last {
                        queue.look()?;
                    }
                }
            }
        }
        // The one that was used first is done first.
        let oldest = self.chunks.iter().enumerate().filter_map(|(index, chunk)| Some((chunk.last.as_ref()?.1, index))).min();
        let (_, index) = oldest.ok_or(Error::OutOfMemory { requested: wanted as u64, available: 0 })?;
        if let Some((queue, _)) = self.chunks[index].last.clone() {
            inner.wait(&queue)?;
        }
        self.chunks[index].used = 0;
        self.chunks[index].last = None;
        Ok(index)
    }
}

impl Inner {
    /// Copies bytes of the host to the device; they may be changed when the call returns. The context is current.
    pub(crate) fn write(&self, queue: &Arc<Queue>, mut to: u64, mut bytes: &[u8]) -> Result<()> {
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        while !bytes.is_empty() {
            let index = staging.room(self, queue, bytes.len())?;
            let chunk = &mut staging.chunks[index];
            let (start, count) = (chunk.used, bytes.len().min(chunk.memory.bytes - chunk.used));
            let (part, rest) = bytes.split_at(count);
            // SAFETY: behind `used` no copy is under way, and so many bytes are left in the chunk.
            unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), chunk.memory.at(start), count) };
            // SAFETY: the chunk is pinned; its bytes are left alone until the work with the number below is done.
            let copied = unsafe { self.context.driver.copy_in(to, chunk.memory.at(start), count, queue.handle) };
            self.context.checked(copied)?;
            chunk.used = (start + count).next_multiple_of(64).min(chunk.memory.bytes);
            chunk.last = Some((queue.clone(), self.given(queue)));
            (bytes, to) = (rest, to + count as u64);
        }
        Ok(())
    }

    /// Copies from the device, behind all earlier work of a queue, and waits. The context is current.
    pub(crate) fn read(&self, queue: &Arc<Queue>, mut from: u64, bytes: &mut [u8]) -> Result<()> {
        if bytes.is_empty() {
            return self.wait(queue);
        }
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = bytes;
        while !rest.is_empty() {
            // As much as there is room for is under way at a time.
            let mut under_way: Vec<(usize, usize, &mut [u8])> = vec![];
            while !rest.is_empty() && under_way.len() * CHUNK < MOST_STAGED {
                let index = staging.room(self, queue, rest.len())?;
                let chunk = &mut staging.chunks[index];
                if under_way.iter().any(|(other, ..)| *other == index) && chunk.used == 0 {
                    // It was waited for: what it held is there, and has to be taken first.
                    break;
                }
                let (start, count) = (chunk.used, rest.len().min(chunk.memory.bytes - chunk.used));
                // SAFETY: behind `used` no copy is under way; the bytes are left alone until the queue was waited for.
                let copied = unsafe { self.context.driver.copy_out(chunk.memory.at(start), from, count, queue.handle) };
                self.context.checked(copied)?;
                chunk.used = (start + count).next_multiple_of(64).min(chunk.memory.bytes);
                chunk.last = Some((queue.clone(), self.given(queue)));
                let (part, behind) = std::mem::take(&mut rest).split_at_mut(count);
                under_way.push((index, start, part));
                (rest, from) = (behind, from + count as u64);
            }
            self.wait(queue)?;
            for (index, start, part) in under_way {
                // SAFETY: the copy into it is done, and nobody else uses staging memory while it is locked.
                unsafe {
                    std::ptr::copy_nonoverlapping(staging.chunks[index].memory.at(start), part.as_mut_ptr(), part.len());
                }
            }
        }
        Ok(())
    }
}

impl Cuda {
    pub(crate) fn host_pages(&self, bytes: usize) -> Result<Box<dyn HostMemory>> {
        Ok(Box::new(HostPages::new(&self.inner, bytes)?))
    }
}
