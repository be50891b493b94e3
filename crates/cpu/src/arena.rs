//! Address space that only the device uses, so that an address alone tells whether a kernel may access it.
//!
//! Kernels of foreign programs compute addresses as they like, and an address of the host's memory must be an
//! error. One reservation of address space therefore holds all memory of the device, and generated code
//! compares addresses with its bounds. **Nothing else is ever mapped inside of it, and what is not in use
//! faults.** It has two parts, with guards around them:
//!
//! | part | contents |
//! | --- | --- |
//! | private | shared and local memory of blocks, and stacks |
//! | data | buffers and variables |
//!
//! An address that lies in a part, plus or minus less than a guard, stays in the reservation. Addresses in
//! shared memory have 32 bits, so no shared access leaves it.
//!
//! A process has at most one arena. A host that refuses the reservation has none: memory is mapped anywhere,
//! and each address is looked up.

use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Sizes to try, the largest first. Address space costs nothing, but some hosts limit it.
const SIZES: [usize; 3] = [8 << 40, 1 << 40, 256 << 30];

/// Region of the reserved addresses, by purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArenaPart {
    Private,
    Data,
}

/// Reserved address space.
#[derive(Debug)]
pub struct Arena {
    start: usize,
    bytes: usize,
    free: [Mutex<Free>; 2],
}

static ARENA: OnceLock<Option<Arena>> = OnceLock::new();

/// Reserves the arena of this process, once. Returns `None` if the host refuses.
pub(crate) fn reserve() -> Option<&'static Arena> {
    ARENA.get_or_init(|| SIZES.into_iter().find_map(Arena::new)).as_ref()
}

/// Returns the arena of this process, if one was reserved.
pub(crate) fn reserved() -> Option<&'static Arena> {
    ARENA.get()?.as_ref()
}

impl Arena {
    /// Reserves `bytes` bytes of address space.
    pub fn new(bytes: usize) -> Option<Arena> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new private mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the range is this mapping; advice changes no contents. A core dump leaves it out.
        unsafe { libc::madvise(start, bytes, libc::MADV_DONTDUMP) };
        let arena = Arena { start: start as usize, bytes, free: Default::default() };
        for part in [ArenaPart::Private, ArenaPart::Data] {
            arena.free(part).put(arena.range(part));
        }
        Some(arena)
    }

    fn free(&self, part: ArenaPart) -> std::sync::MutexGuard<'_, Free> {
        self.free[part as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the addresses of a part.
    pub fn range(&self, part: ArenaPart) -> Range<usize> {
        let at = |sixteenth: usize| self.start + self.bytes / 16 * sixteenth;
        match part {
            ArenaPart::Private => at(1)..at(4),
            ArenaPart::Data => at(5)..at(15),
        }
    }

    /// Returns the addresses of both parts and of what is between them.
    pub(crate) fn both(&self) -> Range<usize> {
        self.range(ArenaPart::Private).start..self.range(ArenaPart::Data).end
    }

    /// Takes `bytes` bytes, in whole pages. Returns `None` if there is no such range left.
    pub fn take(&self, part: ArenaPart, bytes: usize) -> Option<usize> {
        self.free(part).take(bytes)
    }

    /// Releases the memory of a range and gives it back.
    ///
    /// # Safety
    ///
    /// The range was taken, and nothing refers to its memory.
    pub unsafe fn give_back(&self, start: usize, bytes: usize) {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: the range belongs to the caller, as it promises. The new mapping has no memory.
        let start = unsafe { libc::mmap(start as *mut libc::c_void, bytes, libc::PROT_NONE, flags, -1, 0) };
        // Without a mapping left, the host keeps the memory, and the range is not used again.
        if start != libc::MAP_FAILED {
            let start = start as usize;
            let part = if self.range(ArenaPart::Private).contains(&start) { ArenaPart::Private } else { ArenaPart::Data };
            self.free(part).put(start..start + bytes);
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the arena of a process is never dropped; that of a test has nothing mapped inside.
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.bytes) };
    }
}

/// Free ranges: end by start. No two of them are adjacent.
#[derive(Debug, Default)]
struct Free(BTreeMap<usize, usize>);

impl Free {
    /// Takes the start of the first range that is large enough.
    fn take(&mut self, bytes: usize) -> Option<usize> {
        let (start, end) = self.0.iter().find(|(start, end)| **end - **start >= bytes).map(|(start, end)| (*start, *end))?;
        self.0.remove(&start);
        if end - start > bytes {
            self.0.insert(start + bytes, end);
        }
        Some(start)
    }

    fn put(&mut self, Range { mut start, mut end }: Range<usize>) {
        if let Some((before, before_end)) = self.0.range(..start).next_back()
            && *before_end == start
        {
            start = *before;
        }
        if let Some(behind_end) = self.0.remove(&end) {
            end = behind_end;
        }
        self.0.insert(start, end);
    }
}
