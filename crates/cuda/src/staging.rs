//! Copies between the GPU and pageable host memory, through pinned staging memory.
//!
//! Small copies are packed into a chunk of pinned memory, from which the GPU reads them. A large copy is
//! split into pieces of one chunk each. Host threads copy some pieces while the GPU copies others, so the
//! slower side determines the speed. All driver calls are made by the calling thread. **A chunk has one user
//! at a time: the thread that fills or empties it, or numbered work of a queue until that is known to be
//! done.**

use crate::chunks::{Chunk, Staging};
use crate::ffi::EVENT_NO_TIMING;
use crate::inner::Inner;
use crate::queue::Queue;
use crate::timing::Stamp;
use broadloom_device::{Error, Result};
use std::collections::{HashSet, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Size in bytes of the first chunk, and of all others.
const FIRST_CHUNK: usize = 256 << 10;
const CHUNK: usize = 4 << 20;
/// Maximum staging memory in bytes.
const MOST_STAGED: usize = 64 << 20;
/// Minimum size in bytes of a large copy.
const LARGE: usize = 2 * CHUNK;
/// Maximum number of copying threads.
const MOST_HELPERS: usize = 12;

impl Staging {
    /// Adds a chunk.
    fn grow(&mut self, inner: &Inner, bytes: usize) -> Result<usize> {
        self.chunks.push(Chunk { memory: inner.pinned(bytes)?, used: 0, last: None, event: None });
        self.bytes += bytes;
        Ok(self.chunks.len() - 1)
    }

    /// Returns the index of a chunk with space for copies of a queue. Waits if all are in use.
    fn room(&mut self, inner: &Inner, queue: &Arc<Queue>, wanted: usize) -> Result<usize> {
        let open = |chunk: &Chunk| {
            let same = chunk.last.as_ref().is_some_and(|(other, _)| Arc::ptr_eq(other, queue));
            same && chunk.memory.bytes - chunk.used >= wanted.min(chunk.memory.bytes / 8).max(1)
        };
        if let Some(index) = self.chunks.iter().position(open) {
            return Ok(index);
        }
        for round in 0..2 {
            // The largest idle chunk.
            let idle = self.chunks.iter().enumerate().filter(|(_, chunk)| chunk.is_idle());
            if let Some((index, _)) = idle.max_by_key(|(_, chunk)| chunk.memory.bytes) {
                self.chunks[index].used = 0;
                self.chunks[index].last = None;
                return Ok(index);
            }
            if self.bytes < MOST_STAGED {
                let first = self.chunks.is_empty() && wanted <= FIRST_CHUNK;
                return self.grow(inner, if first { FIRST_CHUNK } else { CHUNK });
            }
            if round == 0 {
                for chunk in &self.chunks {
                    if let Some((queue, _)) = &chunk.last {
                        queue.look()?;
                    }
                }
            }
        }
        // The chunk used first is done first.
        let oldest = self.chunks.iter().enumerate().filter_map(|(index, chunk)| Some((chunk.last.as_ref()?.1, index))).min();
        let (_, index) = oldest.ok_or(Error::OutOfMemory { requested: wanted as u64, available: 0 })?;
        if let Some((queue, _)) = self.chunks[index].last.clone() {
            inner.wait(&queue)?;
        }
        self.chunks[index].used = 0;
        self.chunks[index].last = None;
        Ok(index)
    }

    /// Returns a whole unused chunk, or `None` if there is none and the limit is reached.
    fn idle(&mut self, inner: &Inner, held: &HashSet<usize>) -> Result<Option<usize>> {
        let whole = |(index, chunk): (usize, &Chunk)| {
            (chunk.memory.bytes == CHUNK && chunk.is_idle() && !held.contains(&index)).then_some(index)
        };
        match self.chunks.iter().enumerate().find_map(whole) {
            Some(index) => {
                self.chunks[index].used = 0;
                self.chunks[index].last = None;
                Ok(Some(index))
            }
            None if self.bytes < MOST_STAGED => self.grow(inner, CHUNK).map(Some),
            None => Ok(None),
        }
    }

    /// Records the event of a chunk after the work of a queue that uses it.
    fn given(&mut self, inner: &Inner, queue: &Arc<Queue>, index: usize) -> Result<()> {
        let (context, driver, chunk) = (&inner.context, &inner.context.driver, &mut self.chunks[index]);
        // The chunk is in use from here on, even if the event cannot be recorded.
        chunk.used = chunk.memory.bytes;
        chunk.last = Some((queue.clone(), inner.given(queue)));
        let event = match &chunk.event {
            Some(event) => event,
            None => {
                let handle = inner.retried(|| driver.create_event(EVENT_NO_TIMING))?;
                chunk.event.insert(Stamp { context: context.clone(), handle })
            }
        };
        context.checked(driver.record_event(event.handle, queue.handle))?;
        inner.given(queue);
        Ok(())
    }

    /// Tests if the last work on a chunk is done.
    fn is_done(&mut self, inner: &Inner, index: usize) -> Result<bool> {
        let event = self.chunks[index].event.as_ref().map(|event| event.handle);
        let done = event.map_or(Ok(false), |event| inner.context.checked(inner.context.driver.query_event(event)))?;
        if done {
            self.chunks[index].last = None;
        }
        Ok(done)
    }

    /// Waits for the last work on a chunk.
    fn wait(&mut self, inner: &Inner, index: usize) -> Result<()> {
        if let Some(event) = &self.chunks[index].event {
            inner.wait_for(event.handle)?;
        }
        self.chunks[index].last = None;
        Ok(())
    }
}

/// Copy to be done by a thread, for a chunk.
struct ChunkCopy {
    chunk: usize,
    piece: usize,
    from: *const u8,
    to: *mut u8,
    bytes: usize,
}

// SAFETY: one side is a chunk held for this copy, the other a piece of the caller's memory that only this
// copy uses.
unsafe impl Send for ChunkCopy {}

/// Copying threads, alive during one large copy.
struct Helpers {
    work: Sender<ChunkCopy>,
    done: Receiver<(usize, usize)>,
}

impl Helpers {
    /// Runs `act` with copying threads, all of which have ended when it returns.
    fn with<T>(pieces: usize, act: impl FnOnce(&Helpers) -> Result<T>) -> Result<T> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let count = (cores * 3 / 4).clamp(1, MOST_HELPERS).min(pieces);
        let (work, taken) = channel::<ChunkCopy>();
        let (finished, done) = channel();
        let taken = Mutex::new(taken);
        std::thread::scope(|scope| {
            let help = || {
                let (taken, finished) = (&taken, finished.clone());
                move || loop {
                    let next = taken.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(ChunkCopy { chunk, piece, from, to, bytes }) = next else { break };
                    // SAFETY: the sender holds both sides until it receives the completion, or all threads
                    // have ended.
                    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
                    if finished.send((chunk, piece)).is_err() {
                        break;
                    }
                }
            };
            let started = (0..count).filter(|_| std::thread::Builder::new().spawn_scoped(scope, help()).is_ok()).count();
            let helpers = Helpers { work, done };
            if started == 0 {
                return Err(Error::OutOfMemory { requested: 0, available: 0 });
            }
            // Dropping the helpers closes the channel, which ends the threads.
            act(&helpers)
        })
    }

    fn copy(&self, copying: ChunkCopy) -> Result<()> {
        self.work.send(copying).map_err(|_| gone())
    }

    fn finished(&self) -> Result<(usize, usize)> {
        self.done.recv().map_err(|_| gone())
    }
}

/// Returns the error for threads that ended early, which means lack of resources.
fn gone() -> Error {
    Error::OutOfMemory { requested: 0, available: 0 }
}

impl Inner {
    /// Copies host bytes to the device. The bytes may be changed when the call returns. The context must be
    /// current.
    pub(crate) fn write(&self, queue: &Arc<Queue>, to: u64, bytes: &[u8]) -> Result<()> {
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.len() >= LARGE {
            return Helpers::with(bytes.len().div_ceil(CHUNK), |helpers| {
                self.write_large(&mut staging, helpers, queue, to, bytes)
            });
        }
        let (mut to, mut bytes) = (to, bytes);
        while !bytes.is_empty() {
            let index = staging.room(self, queue, bytes.len())?;
            let chunk = &mut staging.chunks[index];
            let (start, count) = (chunk.used, bytes.len().min(chunk.memory.bytes - chunk.used));
            let (part, rest) = bytes.split_at(count);
            // SAFETY: no copy uses the bytes after `used`, and the chunk has this many bytes left.
            unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), chunk.memory.at(start), count) };
            // SAFETY: the chunk is pinned, and its bytes stay unchanged until the work with the number below
            // is done.
            let copied = unsafe { self.context.driver.copy_in(to, chunk.memory.at(start), count, queue.handle) };
            self.context.checked(copied)?;
            chunk.used = (start + count).next_multiple_of(64).min(chunk.memory.bytes);
            chunk.last = Some((queue.clone(), self.given(queue)));
            (bytes, to) = (rest, to + count as u64);
        }
        Ok(())
    }

    fn write_large(&self, staging: &mut Staging, helpers: &Helpers, queue: &Arc<Queue>, to: u64, bytes: &[u8]) -> Result<()> {
        let pieces: Vec<&[u8]> = bytes.chunks(CHUNK).collect();
        let (mut next, mut given) = (0, 0);
        // Chunks that threads fill, and chunks that the GPU reads, oldest first.
        let (mut held, mut under_way) = (HashSet::new(), VecDeque::new());
        while given < pieces.len() {
            while let Some(&index) = under_way.front()
                && staging.is_done(self, index)?
            {
                under_way.pop_front();
            }
            while next < pieces.len()
                && let Some(chunk) = staging.idle(self, &held)?
            {
                let (from, count) = (pieces[next].as_ptr(), pieces[next].len());
                held.insert(chunk);
                helpers.copy(ChunkCopy { chunk, piece: next, from, to: staging.chunks[chunk].memory.at(0), bytes: count })?;
                next += 1;
            }
            if held.is_empty() {
                // All chunks are used by the GPU or by others.
                match under_way.pop_front() {
                    Some(index) => staging.wait(self, index)?,
                    None => self.wait_all()?,
                }
                continue;
            }
            let (index, piece) = helpers.finished()?;
            let address = to + (piece * CHUNK) as u64;
            // SAFETY: the chunk is pinned and holds the piece. It stays unchanged until its event has
            // completed.
            let copied = unsafe {
                self.context.driver.copy_in(address, staging.chunks[index].memory.at(0), pieces[piece].len(), queue.handle)
            };
            self.context.checked(copied)?;
            staging.given(self, queue, index)?;
            held.remove(&index);
            under_way.push_back(index);
            given += 1;
        }
        Ok(())
    }

    /// Copies from the device after all earlier work of a queue, and waits. The context must be current.
    pub(crate) fn read(&self, queue: &Arc<Queue>, mut from: u64, bytes: &mut [u8]) -> Result<()> {
        if bytes.is_empty() {
            return self.wait(queue);
        }
        if bytes.len() >= LARGE {
            // Earlier work is waited for as usual, with its time limits and output.
            self.wait(queue)?;
            let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
            return Helpers::with(bytes.len().div_ceil(CHUNK), |helpers| {
                self.read_large(&mut staging, helpers, queue, from, bytes)
            });
        }
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = bytes;
        while !rest.is_empty() {
            // Copies are pending up to the size of the staging memory.
            let mut under_way: Vec<(usize, usize, &mut [u8])> = vec![];
            while !rest.is_empty() && under_way.len() * CHUNK < MOST_STAGED {
                let index = staging.room(self, queue, rest.len())?;
                let chunk = &mut staging.chunks[index];
                if under_way.iter().any(|(other, ..)| *other == index) && chunk.used == 0 {
                    // The chunk was waited for. Its contents must be copied out first.
                    break;
                }
                let (start, count) = (chunk.used, rest.len().min(chunk.memory.bytes - chunk.used));
                // SAFETY: no copy uses the bytes after `used`. They are not accessed until the queue was
                // waited for.
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
                // SAFETY: the copy into it is done, and no one else uses staging memory while it is locked.
                unsafe {
                    std::ptr::copy_nonoverlapping(staging.chunks[index].memory.at(start), part.as_mut_ptr(), part.len());
                }
            }
        }
        Ok(())
    }

    fn read_large(
        &self,
        staging: &mut Staging,
        helpers: &Helpers,
        queue: &Arc<Queue>,
        from: u64,
        bytes: &mut [u8],
    ) -> Result<()> {
        let places: Vec<(*mut u8, usize)> = bytes.chunks_mut(CHUNK).map(|piece| (piece.as_mut_ptr(), piece.len())).collect();
        let (mut next, mut taken) = (0, 0);
        // Chunks held by this copy, and those among them that the GPU fills, oldest first.
        let (mut held, mut under_way) = (HashSet::new(), VecDeque::new());
        while taken < places.len() {
            while next < places.len()
                && let Some(chunk) = staging.idle(self, &held)?
            {
                let (address, count) = (from + (next * CHUNK) as u64, places[next].1);
                let place = staging.chunks[chunk].memory.at(0);
                // SAFETY: the chunk is unused and is not accessed until its event has completed.
                let copied = unsafe { self.context.driver.copy_out(place, address, count, queue.handle) };
                self.context.checked(copied)?;
                staging.given(self, queue, chunk)?;
                held.insert(chunk);
                under_way.push_back((chunk, next));
                next += 1;
            }
            match under_way.pop_front() {
                Some((chunk, piece)) => {
                    staging.wait(self, chunk)?;
                    let (to, count) = places[piece];
                    helpers.copy(ChunkCopy { chunk, piece, from: staging.chunks[chunk].memory.at(0), to, bytes: count })?;
                }
                None if held.is_empty() => {
                    // All chunks are used by others.
                    self.wait_all()?;
                    continue;
                }
                None => {}
            }
            // Chunks that threads have emptied go back to the GPU. If there is nothing else to do, this waits
            // for a thread.
            while let Ok((chunk, _)) = helpers.done.try_recv() {
                held.remove(&chunk);
                taken += 1;
            }
            if under_way.is_empty() && taken < places.len() && !held.is_empty() {
                let (chunk, _) = helpers.finished()?;
                held.remove(&chunk);
                taken += 1;
            }
        }
        // All copies are done; this updates the queue's state.
        self.wait(queue)
    }
}
