//! Memory and events shared between processes of one machine.
//!
//! The shared object is an anonymous file. A handle holds process ID and file descriptor, through which
//! another process opens the file. Shared memory is moved into such a file in place, so its address stays the
//! same. **Nothing may write to it during the move**: the device is synchronised before, and programs obtain
//! handles before they start work. Sharing requires a device with the address space of this process.

use crate::handles::Handle;
use crate::objects::memory::Allocation;
use crate::objects::shared_files::{SharedEvent, anonymous_file, map, page};
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `cudaIpcMemHandle_t`, `cudaIpcEventHandle_t` and `cudaMemPoolPtrExportData`: magic number, process and
/// descriptor, offset in the file, size in bytes, serial number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShareHandle(pub(crate) [u64; 8]);

const MEMORY: u64 = u64::from_le_bytes(*b"bl-ipc-m");
const EVENT: u64 = u64::from_le_bytes(*b"bl-ipc-e");

fn handle(mark: u64, file: &OwnedFd, offset: usize, bytes: u64, serial: u64) -> ShareHandle {
    let place = u64::from(std::process::id()) << 32 | u64::from(file.as_raw_fd() as u32);
    ShareHandle([mark, place, offset as u64, bytes, serial, 0, 0, 0])
}

impl ShareHandle {
    /// Opens the file of another process's handle.
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

/// Pages backed by a file.
#[derive(Debug)]
struct Region {
    file: OwnedFd,
    bytes: usize,
}

/// Imported memory of another process.
#[derive(Debug)]
struct Import {
    handle: ShareHandle,
    start: usize,
    bytes: usize,
    count: u32,
    /// True for memory of a pool, which is freed like memory of this process.
    of_pool: bool,
}

#[derive(Debug, Default)]
struct SharedRegions {
    regions: BTreeMap<usize, Region>,
    /// Imports by the program's address.
    imports: BTreeMap<u64, Import>,
}

fn state() -> MutexGuard<'static, SharedRegions> {
    static STATE: Mutex<SharedRegions> = Mutex::new(SharedRegions { regions: BTreeMap::new(), imports: BTreeMap::new() });
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Runtime {
    /// Checks that the device has the address space of this process.
    pub(crate) fn shares_addresses(&self) -> Outcome {
        if self.device()?.unified { Ok(()) } else { Err(Status::NOT_SUPPORTED) }
    }

    /// Creates a handle for an allocation.
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
                let file = anonymous_file(end - first)?;
                let copy = map(&file, None, end - first)?;
                crate::pointer::move_bytes(copy, first, end - first);
                // SAFETY: these pages were mapped above, only for the copy.
                unsafe { libc::munmap(copy as *mut libc::c_void, end - first) };
                map(&file, Some(first), end - first)?;
                // Older regions in this range belonged to freed memory.
                state.regions.retain(|start, _| !(first..end).contains(start));
                (first, &state.regions.entry(first).or_insert(Region { file, bytes: end - first }).file)
            }
        };
        Ok(handle(MEMORY, file, found.start as usize - start, found.bytes, found.serial))
    }

    /// Ends the sharing of freed memory. Its pages become private again if they held nothing else.
    pub(crate) fn end_sharing(&self, found: &Allocation) {
        let page = page() as u64;
        if !found.start.is_multiple_of(page) || found.bytes < page {
            return;
        }
        let mut state = state();
        if let Some(region) = state.regions.remove(&(found.start as usize)) {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: the pages belonged to this allocation alone, and the program freed it. On failure they
            // stay in the file, which is harmless.
            unsafe { libc::mmap(found.start as *mut libc::c_void, region.bytes, access, flags, -1, 0) };
        }
    }

    /// Opens memory of another process by its handle. Opening it again returns the same address and
    /// increments a count.
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

    /// Tests if an address is memory of another process's pool.
    pub(crate) fn is_of_foreign_pool(&self, address: u64) -> bool {
        state().imports.get(&address).is_some_and(|import| import.of_pool)
    }

    /// Closes memory of another process.
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
        // SAFETY: `open_memory` mapped the pages, and the program closed them.
        unsafe { libc::munmap(import.start as *mut libc::c_void, import.bytes) };
        Ok(())
    }

    /// Creates a handle for an event.
    pub(crate) fn share_event(&self, event: Handle) -> Outcome<ShareHandle> {
        self.shares_addresses()?;
        let event = self.events.get(event)?;
        let shared = event.shared.as_ref().ok_or(Status::INVALID_HANDLE)?;
        Ok(handle(EVENT, &shared.file, 0, 16, 0))
    }

    /// Opens an event of another process.
    pub(crate) fn open_event(&self, handle: ShareHandle) -> Outcome<Handle> {
        self.shares_addresses()?;
        let file = OwnedFd::from(handle.open(EVENT)?);
        self.import_event(SharedEvent::new(file)?)
    }
}
