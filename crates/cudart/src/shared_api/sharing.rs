//! Memory and events shared with other processes. Memory of `cuMemCreate` is an anonymous file, and a file
//! descriptor is its shareable handle.

use crate::boundary::{Call, exported};
use crate::objects::memory::AllocationKind;
use crate::objects::physical::Physical;
use crate::objects::shared_files::anonymous_file;
use crate::pointer::{In, Out};
use crate::sharing::ShareHandle;
use crate::status::{Outcome, Status};
use std::os::fd::IntoRawFd;

/// Only supported kind of handle: a file descriptor.
const FILE_DESCRIPTOR: u32 = 1;

/// Creates a handle for the whole allocation that contains an address.
fn share(call: &Call, address: u64) -> Outcome<ShareHandle> {
    call.runtime.device()?;
    let found =
        call.runtime.memory.find(address).filter(|found| found.kind == AllocationKind::Device).ok_or(Status::INVALID_VALUE)?;
    call.runtime.share_memory(&found)
}

exported! { runtime
    fn cudaIpcGetMemHandle | cuIpcGetMemHandle(call, handle: Out<ShareHandle>, address: u64)
        => handle.set_by(|| share(call, address));

    fn cudaIpcOpenMemHandle | cuIpcOpenMemHandle = cuIpcOpenMemHandle_v2(call, address: Out<u64>, handle: ShareHandle, flags: u32) {
        address.wanted()?;
        if flags > 1 {
            return Err(Status::INVALID_VALUE);
        }
        address.set(call.runtime.open_memory(handle, false)?)
    }

    fn cudaIpcCloseMemHandle | cuIpcCloseMemHandle(call, address: u64) => call.runtime.close_memory(address);
    fn cudaIpcGetEventHandle | cuIpcGetEventHandle(call, handle: Out<ShareHandle>, event: usize)
        => handle.set_by(|| call.runtime.share_event(event));
    fn cudaIpcOpenEventHandle | cuIpcOpenEventHandle(call, event: Out<usize>, handle: ShareHandle)
        => event.set_by(|| call.runtime.open_event(handle));

    /// Returns a descriptor that stands for a pool. Its allocations are exported one by one.
    fn cudaMemPoolExportToShareableHandle | cuMemPoolExportToShareableHandle(call, place: Out<i32>, pool: usize, kind: u32, flags: u32) {
        place.wanted()?;
        call.runtime.shares_addresses()?;
        let pool = call.runtime.pool(pool)?;
        if kind != FILE_DESCRIPTOR || flags != 0 || pool.properties.handles & FILE_DESCRIPTOR == 0 {
            return Err(Status::INVALID_VALUE);
        }
        place.set(anonymous_file(4096)?.into_raw_fd())
    }

    fn cudaMemPoolImportFromShareableHandle | cuMemPoolImportFromShareableHandle(call, pool: Out<usize>, descriptor: usize, kind: u32, flags: u32) {
        pool.wanted()?;
        call.runtime.shares_addresses()?;
        // SAFETY: the system refuses a number that is no descriptor.
        let there = i32::try_from(descriptor).is_ok_and(|number| unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0);
        if kind != FILE_DESCRIPTOR || flags != 0 || !there {
            return Err(Status::INVALID_VALUE);
        }
        pool.set(call.runtime.import_pool())
    }

    fn cudaMemPoolExportPointer | cuMemPoolExportPointer(call, data: Out<ShareHandle>, address: u64)
        => data.set_by(|| share(call, address));
    fn cudaMemPoolImportPointer | cuMemPoolImportPointer(call, address: Out<u64>, pool: usize, data: In<ShareHandle>)
        => address.wanted()?, call.runtime.pool(pool)?, address.set(call.runtime.open_memory(data.get()?, true)?);
}

exported! { driver
    /// Returns a file descriptor of memory. The program must close it.
    fn cuMemExportToShareableHandle(call, descriptor: Out<i32>, handle: usize, kind: u32, flags: u64) {
        call.runtime.shares_addresses()?;
        descriptor.wanted()?;
        if kind != FILE_DESCRIPTOR || flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let physical = call.runtime.physicals.get(handle).map_err(|_| Status::INVALID_VALUE)?;
        descriptor.set(physical.exported()?)
    }

    /// Imports memory by its file descriptor, which stays owned by the program.
    fn cuMemImportFromShareableHandle(call, handle: Out<usize>, descriptor: usize, kind: u32) {
        call.runtime.shares_addresses()?;
        handle.wanted()?;
        if kind != FILE_DESCRIPTOR {
            return Err(Status::INVALID_VALUE);
        }
        // The argument is the descriptor's number, not an address.
        handle.set(call.runtime.physicals.insert(Physical::imported(descriptor as i32)?))
    }
}
