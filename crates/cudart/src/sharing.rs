//! Memory and events that processes of one machine share.
//!
//! What is shared is a file without a name, which another process opens through the number of this process and of the descriptor: that is what a
//! handle says. Memory that is shared is moved into such a file where it lies, so its address stays. **Nothing may write to it meanwhile**:
//! the device has come to an end before, and a program gets handles before it works. All of it needs a device that shares this process's addresses.

use crate::handles::Handle;
use crate::memory::Allocation;
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `cudaIpcMemHandle_t`, `cudaIpcEventHandle_t` and `cudaMemPoolPtrExportData`: a mark, process and descriptor, where in the file, how many bytes, a number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShareHandle(pub(crate) [u64; 8]);

const MEMORY: u64 = u64::from_le_bytes(*b"bl-ipc-m");
const EVENT: u64 = u64::from_le_bytes(*b"bl-ipc-e");

fn page() -> usize {
    // SAFETY: asks the system for a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// A file without a name of some bytes.
pub(crate) fn nameless(bytes: usize) -> Outcome<OwnedFd> {
    // SAFETY: the name ends with a zero.
    let file = unsafe { libc::memfd_create(c"broadloom".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(Status::OUT_OF_MEMORY);
    }
    // SAFETY: the file was opened just now and belongs to nobody else.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    let size = libc::off_t::try_from(bytes).map_err(|_| Status::OUT_OF_MEMORY)?;
    // SAFETY: the file is open.
    if unsafe { libc::ftruncate(file.as_raw_fd(), size) } == 0 { Ok(file) } else { Err(Status::OUT_OF_MEMORY) }
}

/// Puts a file at addresses, or anywhere.
fn map(file: &impl AsRawFd, place: Option<usize>, bytes: usize) -> Outcome<usize> {
    let fixed = if place.is_some() { libc::MAP_FIXED } else { 0 };
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | fixed);
    // SAFETY: without a place these are new pages; with one they are pages of memory that the program holds, whose bytes the file has.
    let start = unsafe { libc::mmap(place.unwrap_or(0) as *mut libc::c_void, bytes, access, flags, file.as_raw_fd(), 0) };
    if start == libc::MAP_FAILED { Err(Status::OUT_OF_MEMORY) } else { Ok(start as usize) }
}

fn handle(mark: u64, file: &OwnedFd, offset: usize, bytes: u64, serial: u64) -> ShareHandle {
    let place = u64::from(std::process::id()) << 32 | u64::from(file.as_raw_fd() as u32);
    ShareHandle([mark, place, offset as u64, bytes, serial, 0, 0, 0])
}

impl ShareHandle {
    /// The file of a handle, which is another process's.
    fn open(&self, mark: u64) -> Outcome<File> {
        let [found, place, ..] = self.0;
        if found != mark {
            return Err(Status::INVALID_HANDLE);
        }
        let (process, descriptor) = (place >> 32, place as u32);
        if process == u64::from(std::process::id()) {
            return Err(Status::INVALID_CONTEXT);
        }
        let path = format!("/proc/{process}/fd/{descriptor}");
        File::options().read(true).write(true).open(path).map_err(|_| Status::INVALID_HANDLE)
    }
}

/// Pages that lie in a file.
#[derive(Debug)]
struct Region {
    file: OwnedFd,
    bytes: usize,
}

/// Memory of another process.
#[derive(Debug)]
struct Import {
    handle: ShareHandle,
    start: usize,
    bytes: usize,
    count: u32,
    /// Whether it is of a pool, whose memory is given back as memory of this process is.
    of_pool: bool,
}

#[derive(Debug, Default)]
struct State {
    regions: BTreeMap<usize, Region>,
    /// By the address that the program has.
    imports: BTreeMap<u64, Import>,
}

fn state() -> MutexGuard<'static, State> {
    static STATE: Mutex<State> = Mutex::new(State { regions: BTreeMap::new(), imports: BTreeMap::new() });
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Runtime {
    fn shares_addresses(&self) -> Outcome {
        if self.device()?.unified { Ok(()) } else { Err(Status::NOT_SUPPORTED) }
    }

    /// A handle for an allocation.
    pub(crate) fn share_memory(&self, found: &Allocation) -> Outcome<ShareHandle> {
        self.shares_addresses()?;
        self.wait_for_all()?;
        let page = page();
        let first = found.start as usize / page * page;
        let end = (found.start as usize + found.bytes as usize).next_multiple_of(page);
        let mut state = state();
        let inside = state.regions.range(..=first).next_back().filter(|(start, region)| end <= **start + region.bytes);
        let (start, file) = match inside {
            Some((start, region)) => (*start, &region.file),
            None => {
                let file = nameless(end - first)?;
                let copy = map(&file, None, end - first)?;
                crate::pointer::move_bytes(copy, first, end - first);
                // SAFETY: pages that were made above, for the copy only.
                unsafe { libc::munmap(copy as *mut libc::c_void, end - first) };
                map(&file, Some(first), end - first)?;
                // What was there belonged to memory that was given back.
                state.regions.retain(|start, _| !(first..end).contains(start));
                (first, &state.regions.entry(first).or_insert(Region { file, bytes: end - first }).file)
            }
        };
        Ok(handle(MEMORY, file, found.start as usize - start, found.bytes, found.serial))
    }

    /// Memory that was shared goes back to the device: its pages are its own again, where they held nothing else.
    pub(crate) fn end_sharing(&self, found: &Allocation) {
        let page = page() as u64;
        if !found.start.is_multiple_of(page) || found.bytes < page {
            return;
        }
        let mut state = state();
        if let Some(region) = state.regions.remove(&(found.start as usize)) {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: the pages were the allocation's alone, and the program has given it back. If it fails they stay in the file, which does no harm.
            unsafe { libc::mmap(found.start as *mut libc::c_void, region.bytes, access, flags, -1, 0) };
        }
    }

    /// Memory of another process, by its handle. Who opens it twice has it twice at one address.
    pub(crate) fn open_memory(&self, handle: ShareHandle, of_pool: bool) -> Outcome<u64> {
        self.shares_addresses()?;
        let mut state = state();
        if let Some((address, import)) = state.imports.iter_mut().find(|(_, import)| import.handle == handle) {
            import.count += 1;
            return Ok(*address);
        }
        let file = handle.open(MEMORY)?;
        let [_, _, offset, bytes, ..] = handle.0;
        let size = file.metadata().map_err(|_| Status::MAP_FAILED)?.len();
        if offset.checked_add(bytes).is_none_or(|end| end > size) || bytes == 0 {
            return Err(Status::INVALID_HANDLE);
        }
        let size = usize::try_from(size).map_err(|_| Status::MAP_FAILED)?;
        let start = map(&file, None, size).map_err(|_| Status::MAP_FAILED)?;
        let address = start as u64 + offset;
        self.memory.add_mapped(address, bytes);
        state.imports.insert(address, Import { handle, start, bytes: size, count: 1, of_pool });
        Ok(address)
    }

    /// Whether an address is memory of another process's pool.
    pub(crate) fn is_of_foreign_pool(&self, address: u64) -> bool {
        state().imports.get(&address).is_some_and(|import| import.of_pool)
    }

    /// Gives memory of another process back.
    pub(crate) fn close_memory(&self, address: u64) -> Outcome {
        self.wait_for_all()?;
        let mut state = state();
        let import = state.imports.get_mut(&address).ok_or(Status::INVALID_VALUE)?;
        import.count -= 1;
        if import.count > 0 {
            return Ok(());
        }
        let Some(import) = state.imports.remove(&address) else { return Ok(()) };
        self.memory.remove_mapped(address, import.handle.0[3])?;
        // SAFETY: the pages were made by `open_memory`, and the program has given them back.
        unsafe { libc::munmap(import.start as *mut libc::c_void, import.bytes) };
        Ok(())
    }

    /// A handle for an event.
    pub(crate) fn share_event(&self, event: Handle) -> Outcome<ShareHandle> {
        self.shares_addresses()?;
        let event = self.events.get(event)?;
        let shared = event.shared.as_ref().ok_or(Status::INVALID_HANDLE)?;
        Ok(handle(EVENT, &shared.file, 0, 16, 0))
    }

    /// An event of another process.
    pub(crate) fn open_event(&self, handle: ShareHandle) -> Outcome<Handle> {
        self.shares_addresses()?;
        let file = OwnedFd::from(handle.open(EVENT)?);
        self.import_event(SharedEvent::new(file)?)
    }
}

/// An event that several processes see: how often it was recorded, and which of these records is over.
#[derive(Debug)]
pub(crate) struct SharedEvent {
    file: OwnedFd,
    place: usize,
}

impl SharedEvent {
    /// A new one.
    pub(crate) fn create() -> Outcome<SharedEvent> {
        SharedEvent::new(nameless(page())?)
    }

    fn new(file: OwnedFd) -> Outcome<SharedEvent> {
        let place = map(&file, None, page())?;
        Ok(SharedEvent { file, place })
    }

    fn word(&self, index: usize) -> &'static AtomicU64 {
        // SAFETY: the page is never taken away, since work of streams may look at it at any time.
        unsafe { AtomicU64::from_ptr((self.place as *mut u64).add(index)) }
    }

    /// It is recorded; what the stream has to do when it comes there.
    pub(crate) fn record(&self) -> impl FnOnce() + Send + 'static {
        let (recorded, over) = (self.word(0), self.word(1));
        let number = recorded.fetch_add(1, Ordering::SeqCst) + 1;
        move || {
            over.fetch_max(number, Ordering::SeqCst);
        }
    }

    /// Whether what is recorded until now is over, each time that it is asked.
    pub(crate) fn is_over(&self) -> impl Fn() -> bool + Send + 'static {
        let (recorded, over) = (self.word(0), self.word(1));
        let wanted = recorded.load(Ordering::SeqCst);
        move || over.load(Ordering::SeqCst) >= wanted
    }
}
