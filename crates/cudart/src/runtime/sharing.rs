//! Memory and events that other processes may have.

use crate::boundary::{Call, exported};
use crate::memory::Kind;
use crate::pointer::{In, Out};
use crate::runtime::pools::{check_pool, create_pool};
use crate::sharing::{ShareHandle, nameless};
use crate::status::{Outcome, Status};
use std::os::fd::IntoRawFd;

/// The one kind of handle that pools have: a descriptor of a file.
const FILE_DESCRIPTOR: u32 = 1;

/// A handle for memory: of the whole allocation that an address is in.
pub(crate) fn share(call: &Call, address: u64) -> Outcome<ShareHandle> {
    call.runtime.device()?;
    let found = call.runtime.memory.find(address).filter(|found| found.kind == Kind::Device).ok_or(Status::INVALID_VALUE)?;
    call.runtime.share_memory(&found)
}

/// A descriptor that stands for a pool. What is in the pool is shared one by one.
pub(crate) fn share_pool(call: &Call, place: Out<i32>, pool: usize, kind: u32, flags: u64) -> Outcome {
    place.wanted()?;
    check_pool(pool)?;
    if kind != FILE_DESCRIPTOR || flags != 0 {
        return Err(Status::INVALID_VALUE);
    }
    if !call.runtime.device()?.unified {
        return Err(Status::NOT_SUPPORTED);
    }
    place.set(nameless(4096)?.into_raw_fd())
}

/// A pool of another process.
pub(crate) fn open_pool(call: &Call, pool: Out<usize>, descriptor: usize, kind: u32, flags: u64) -> Outcome {
    pool.wanted()?;
    // SAFETY: a number that is no descriptor is refused by the system.
    let there = i32::try_from(descriptor).is_ok_and(|number| unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0);
    if kind != FILE_DESCRIPTOR || flags != 0 || !there {
        return Err(Status::INVALID_VALUE);
    }
    if !call.runtime.device()?.unified {
        return Err(Status::NOT_SUPPORTED);
    }
    pool.set(create_pool())
}

/// Memory of a pool of another process.
pub(crate) fn open_pointer(call: &Call, address: Out<u64>, pool: usize, data: In<ShareHandle>) -> Outcome {
    address.wanted()?;
    check_pool(pool)?;
    address.set(call.runtime.open_memory(data.get()?, true)?)
}

exported! { runtime
    /// A handle for memory.
    fn cudaIpcGetMemHandle(call, handle: Out<ShareHandle>, address: u64) {
        handle.wanted()?;
        handle.set(share(call, address)?)
    }

    /// Memory of another process.
    fn cudaIpcOpenMemHandle(call, address: Out<u64>, handle: ShareHandle, flags: u32) {
        address.wanted()?;
        if flags > 1 {
            return Err(Status::INVALID_VALUE);
        }
        address.set(call.runtime.open_memory(handle, false)?)
    }

    /// Gives it back.
    fn cudaIpcCloseMemHandle(call, address: u64) {
        call.runtime.close_memory(address)
    }

    /// A handle for an event.
    fn cudaIpcGetEventHandle(call, handle: Out<ShareHandle>, event: usize) {
        handle.wanted()?;
        handle.set(call.runtime.share_event(event)?)
    }

    /// An event of another process.
    fn cudaIpcOpenEventHandle(call, event: Out<usize>, handle: ShareHandle) {
        event.wanted()?;
        event.set(call.runtime.open_event(handle)?)
    }

    /// A descriptor of a pool.
    fn cudaMemPoolExportToShareableHandle(call, place: Out<i32>, pool: usize, kind: u32, flags: u32) {
        share_pool(call, place, pool, kind, u64::from(flags))
    }

    /// A pool of a descriptor.
    fn cudaMemPoolImportFromShareableHandle(call, pool: Out<usize>, descriptor: usize, kind: u32, flags: u32) {
        open_pool(call, pool, descriptor, kind, u64::from(flags))
    }

    /// What another process needs to have memory of a pool.
    fn cudaMemPoolExportPointer(call, data: Out<ShareHandle>, address: u64) {
        data.wanted()?;
        data.set(share(call, address)?)
    }

    /// Memory of a pool of another process.
    fn cudaMemPoolImportPointer(call, address: Out<u64>, pool: usize, data: In<ShareHandle>) {
        open_pointer(call, address, pool, data)
    }
}
