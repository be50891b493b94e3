//! Host memory in whole pages, between guards.
//!
//! A mapping is one run of pages that may be read and written. The pages right before and after it, or after
//! the requested slack, may not be accessed. Pages take memory when they are first written, and all of them
//! release it when the mapping is dropped. If the process has an [`crate::arena::Arena`], all mappings but
//! those of code lie in it.

use crate::arena::{self, ArenaPart};
use std::io;
use std::ptr::NonNull;

/// Bytes of a huge page, for the alignment of large mappings.
pub const HUGE_PAGE: usize = 2 << 20;
/// Bytes before and after a mapping that may not be accessed. It is several pages, so that a stride past the
/// end still hits them.
const GUARD: usize = 64 << 10;
/// `MADV_GUARD_INSTALL`: pages that fault, without a separate mapping (Linux 6.13).
const MADV_GUARD_INSTALL: libc::c_int = 102;

/// Returns the host's page size.
pub fn page_bytes() -> usize {
    // SAFETY: sysconf only reads.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).unwrap_or(4096)
}

/// Pages of memory owned by this value.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    whole: NonNull<u8>,
    whole_bytes: usize,
    /// True if it lies in the arena of the process.
    in_arena: bool,
}

// SAFETY: a mapping is memory that no other value refers to; it belongs to no thread.
unsafe impl Send for Mapping {}
// SAFETY: a shared mapping gives out nothing but addresses.
unsafe impl Sync for Mapping {}

/// Kind of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Buffers: huge pages if there is space for some.
    Data,
    /// Shared and local memory of blocks: like buffers, but in the private part of the arena.
    Private,
    /// Windows that are mostly unused: small pages.
    Sparse,
    /// Stacks: small pages. If the host can, the guard before them needs no separate mapping.
    Stack,
    /// Code: within reach of 32-bit addresses, if there is space. Readable and writable until
    /// [`Mapping::protect`].
    Code,
}

impl Mapping {
    /// Maps pages for `bytes` bytes, all zero.
    pub fn new(bytes: usize, pages: Pages) -> io::Result<Mapping> {
        Mapping::with_slack(bytes, pages, 0)
    }

    /// Maps pages for `bytes` bytes, all zero, with `slack` more accessible bytes before and after them. The
    /// guards lie beyond those.
    pub fn with_slack(bytes: usize, pages: Pages, slack: usize) -> io::Result<Mapping> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let page = page_bytes();
        let guard = GUARD.next_multiple_of(page);
        let bytes = bytes.max(1).checked_next_multiple_of(page).ok_or_else(too_large)?;
        let slack = slack.checked_next_multiple_of(page).ok_or_else(too_large)?;
        let before = guard.checked_add(slack).ok_or_else(too_large)?;
        let huge = matches!(pages, Pages::Data | Pages::Private) && bytes >= HUGE_PAGE;
        let align = if huge { HUGE_PAGE } else { page };
        let around = before.checked_mul(2).and_then(|around| around.checked_add(align - page));
        let whole_bytes = around.and_then(|around| bytes.checked_add(around)).ok_or_else(too_large)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let (protection, extra) = match pages {
            Pages::Data | Pages::Private | Pages::Sparse => (libc::PROT_NONE, 0),
            Pages::Stack => (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_STACK),
            Pages::Code => (libc::PROT_NONE, LOW_ADDRESSES),
        };
        let map = |place: usize, extra| {
            // SAFETY: at an address of the kernel's choice a new private mapping touches no existing memory. A
            // place in the arena was taken for this mapping.
            let start = unsafe { libc::mmap(place as *mut libc::c_void, whole_bytes, protection, flags | extra, -1, 0) };
            if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast::<u8>()) }
        };
        let part = match pages {
            Pages::Data => Some(ArenaPart::Data),
            Pages::Private | Pages::Sparse | Pages::Stack => Some(ArenaPart::Private),
            Pages::Code => None,
        };
        let in_arena = part.zip(arena::reserved()).and_then(|(part, arena)| {
            let place = arena.take(part, whole_bytes)?;
            let whole = map(place, extra | libc::MAP_FIXED);
            if whole.is_none() {
                // SAFETY: the range was taken above, and nothing is mapped there.
                unsafe { arena.give_back(place, whole_bytes) };
            }
            whole
        });
        let whole = in_arena.or_else(|| map(0, extra));
        let whole = whole.or_else(|| if extra == LOW_ADDRESSES { map(0, 0) } else { None });
        let whole = whole.ok_or_else(io::Error::last_os_error)?;
        let offset = (whole.as_ptr() as usize + before).next_multiple_of(align) - whole.as_ptr() as usize;
        // SAFETY: `offset` is at most `before + align - page`, and `whole_bytes` is `bytes + before` more
        // than that.
        let start = unsafe { whole.add(offset) };
        let mapping = Mapping { start, bytes, whole, whole_bytes, in_arena: in_arena.is_some() };
        match pages {
            Pages::Data | Pages::Private | Pages::Sparse | Pages::Code => {
                mapping.protect(0, bytes, libc::PROT_READ | libc::PROT_WRITE)?;
                mapping.open_slack(slack)?;
                if huge {
                    // SAFETY: the range is this mapping; advice changes no contents.
                    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
                }
                if pages == Pages::Sparse {
                    // SAFETY: as above.
                    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_NOHUGEPAGE) };
                }
            }
            Pages::Stack => {
                // SAFETY: the range is this mapping; advice changes no contents.
                unsafe { libc::madvise(whole.as_ptr().cast(), whole_bytes, libc::MADV_NOHUGEPAGE) };
                // SAFETY: the range is the part of this mapping before `start`, which nothing refers to.
                let installed = unsafe { libc::madvise(whole.as_ptr().cast(), offset, MADV_GUARD_INSTALL) } == 0;
                // SAFETY: as above.
                if !installed && unsafe { libc::mprotect(whole.as_ptr().cast(), offset, libc::PROT_NONE) } != 0 {
                    return Err(io::Error::last_os_error());
                }
            }
        }
        Ok(mapping)
    }

    /// Makes `slack` bytes before and after readable and writable. They lie between the guards.
    fn open_slack(&self, slack: usize) -> io::Result<()> {
        if slack == 0 {
            return Ok(());
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: `with_slack` mapped `slack` bytes on either side, which belong to this value alone.
        let opened = unsafe {
            let first = self.start.as_ptr().sub(slack);
            libc::mprotect(first.cast(), self.bytes + 2 * slack, protection)
        };
        if opened == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Returns the first byte.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether an address is in the guard before the first byte.
    pub fn in_guard(&self, address: usize) -> bool {
        (self.whole.as_ptr() as usize..self.start.as_ptr() as usize).contains(&address)
    }

    /// Sets the protection of a part, in whole pages.
    pub(crate) fn protect(&self, from: usize, bytes: usize, protection: libc::c_int) -> io::Result<()> {
        let inside = from.is_multiple_of(page_bytes()) && from.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        if !inside {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        // SAFETY: the range is inside this mapping, which belongs to this value alone.
        match unsafe { libc::mprotect(self.start.as_ptr().add(from).cast(), bytes, protection) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        match arena::reserved().filter(|_| self.in_arena) {
            // SAFETY: the range was taken by `new` and nothing refers to it any more.
            Some(arena) => unsafe { arena.give_back(self.whole.as_ptr() as usize, self.whole_bytes) },
            // SAFETY: the range was mapped by `new` and nothing refers to it any more.
            None => unsafe {
                libc::munmap(self.whole.as_ptr().cast(), self.whole_bytes);
            },
        }
    }
}

/// Flag that requests addresses below 2 GiB.
#[cfg(target_arch = "x86_64")]
const LOW_ADDRESSES: libc::c_int = libc::MAP_32BIT;
#[cfg(not(target_arch = "x86_64"))]
const LOW_ADDRESSES: libc::c_int = 0;
