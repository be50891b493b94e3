//! Pinned memory of a user.

use crate::inner::Inner;
use crate::pinned::{PinnedMemory, Use};
use crate::queue::Queue;
use crate::timing::TracedWork;
use broadloom_device::{Backend, Error, HostMemory, Result, Stream, trace};
use std::ops::Range;
use std::sync::Arc;

/// Pinned memory of a user.
#[derive(Debug)]
pub(crate) struct HostPages {
    inner: Arc<Inner>,
    memory: PinnedMemory,
    uses: Vec<Use>,
}

impl HostPages {
    pub(crate) fn new(inner: &Arc<Inner>, bytes: usize) -> Result<HostPages> {
        inner.context.enter()?;
        Ok(HostPages { inner: inner.clone(), memory: inner.pinned(bytes)?, uses: vec![] })
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
        inner.end(&queue, begun, || TracedWork::bytes("upload", from.len() as u64))
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
        inner.end(&queue, begun, || TracedWork::bytes("download", to.len() as u64))
    }
}
