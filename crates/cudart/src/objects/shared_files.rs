//! Anonymous files, which processes share, and events in them.

use crate::status::{Outcome, Status};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns the size of a page in bytes.
pub(crate) fn page() -> usize {
    // SAFETY: `sysconf` only returns a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Creates an anonymous file of a given size.
pub(crate) fn anonymous_file(bytes: usize) -> Outcome<OwnedFd> {
    // SAFETY: the name is zero-terminated.
    let file = unsafe { libc::memfd_create(c"broadloom".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(Status::OUT_OF_MEMORY);
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    let size = libc::off_t::try_from(bytes).map_err(|_| Status::OUT_OF_MEMORY)?;
    // SAFETY: the file is open.
    if unsafe { libc::ftruncate(file.as_raw_fd(), size) } == 0 { Ok(file) } else { Err(Status::OUT_OF_MEMORY) }
}

/// Maps a file at a given address, or anywhere.
pub(crate) fn map(file: &impl AsRawFd, place: Option<usize>, bytes: usize) -> Outcome<usize> {
    let fixed = if place.is_some() { libc::MAP_FIXED } else { 0 };
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | fixed);
    // SAFETY: without an address these are new pages. With one they are pages of memory that the program
    // holds, and the file has the same contents.
    let start = unsafe { libc::mmap(place.unwrap_or(0) as *mut libc::c_void, bytes, access, flags, file.as_raw_fd(), 0) };
    if start == libc::MAP_FAILED { Err(Status::OUT_OF_MEMORY) } else { Ok(start as usize) }
}

/// Event visible to several processes: the number of records, and the number of the last completed one.
#[derive(Debug)]
pub(crate) struct SharedEvent {
    pub(crate) file: OwnedFd,
    pub(crate) place: usize,
}

impl SharedEvent {
    /// Creates a shared event.
    pub(crate) fn create() -> Outcome<SharedEvent> {
        SharedEvent::new(anonymous_file(page())?)
    }

    /// Opens a shared event in a file.
    pub(crate) fn new(file: OwnedFd) -> Outcome<SharedEvent> {
        let place = map(&file, None, page())?;
        Ok(SharedEvent { file, place })
    }

    fn word(&self, index: usize) -> &'static AtomicU64 {
        // SAFETY: the page is never unmapped, since work of streams may access it at any time.
        unsafe { AtomicU64::from_ptr((self.place as *mut u64).add(index)) }
    }

    /// Counts a record. Returns the function that the stream calls when it reaches the event.
    pub(crate) fn record(&self) -> impl FnOnce() + Send + 'static {
        let (recorded, over) = (self.word(0), self.word(1));
        let number = recorded.fetch_add(1, Ordering::SeqCst) + 1;
        move || {
            over.fetch_max(number, Ordering::SeqCst);
        }
    }

    /// Returns a predicate that tests if all records made so far have completed.
    pub(crate) fn is_over(&self) -> impl Fn() -> bool + Send + 'static {
        let (recorded, over) = (self.word(0), self.word(1));
        let wanted = recorded.load(Ordering::SeqCst);
        move || over.load(Ordering::SeqCst) >= wanted
    }
}
