//! Memory that other processes may have: what `cuMemCreate` made is a file without a name, and a descriptor of it is what is passed on.

use crate::boundary::exported;
use crate::driver::mapping::{Physical, shares_addresses};
use crate::pointer::{In, Out};
use crate::runtime::sharing::{open_pointer, open_pool, share, share_pool};
use crate::sharing::ShareHandle;
use crate::status::Status;

/// The one kind of handle that there is: a descriptor of a file.
const FILE_DESCRIPTOR: u32 = 1;

exported! { driver
    /// A descriptor of memory, which is the program's to close.
    fn cuMemExportToShareableHandle(call, descriptor: Out<i32>, handle: usize, kind: u32, flags: u64) {
        shares_addresses(call)?;
        descriptor.wanted()?;
        if kind != FILE_DESCRIPTOR || flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let physical = call.runtime.physicals.get(handle).map_err(|_| Status::INVALID_VALUE)?;
        descriptor.set(physical.exported()?)
    }

    /// Memory of a descriptor, which stays the program's.
    fn cuMemImportFromShareableHandle(call, handle: Out<usize>, descriptor: usize, kind: u32) {
        shares_addresses(call)?;
        handle.wanted()?;
        if kind != FILE_DESCRIPTOR {
            return Err(Status::INVALID_VALUE);
        }
        // The number stands in place of an address.
        handle.set(call.runtime.physicals.insert(Physical::imported(descriptor as i32)?))
    }

    /// A handle for memory.
    fn cuIpcGetMemHandle(call, handle: Out<ShareHandle>, address: u64) {
        handle.wanted()?;
        handle.set(share(call, address)?)
    }

    /// Memory of another process.
    fn cuIpcOpenMemHandle(call, address: Out<u64>, handle: ShareHandle, _flags: u32) {
        address.wanted()?;
        address.set(call.runtime.open_memory(handle, false)?)
    }

    /// The same.
    fn cuIpcOpenMemHandle_v2(call, address: Out<u64>, handle: ShareHandle, _flags: u32) {
        address.wanted()?;
        address.set(call.runtime.open_memory(handle, false)?)
    }

    /// Gives it back.
    fn cuIpcCloseMemHandle(call, address: u64) {
        call.runtime.close_memory(address)
    }

    /// A handle for an event.
    fn cuIpcGetEventHandle(call, handle: Out<ShareHandle>, event: usize) {
        handle.wanted()?;
        handle.set(call.runtime.share_event(event)?)
    }

    /// An event of another process.
    fn cuIpcOpenEventHandle(call, event: Out<usize>, handle: ShareHandle) {
        event.wanted()?;
        event.set(call.runtime.open_event(handle)?)
    }

    /// A descriptor of a pool.
    fn cuMemPoolExportToShareableHandle(call, place: Out<i32>, pool: usize, kind: u32, flags: u64) {
        share_pool(call, place, pool, kind, flags)
    }

    /// A pool of a descriptor.
    fn cuMemPoolImportFromShareableHandle(call, pool: Out<usize>, descriptor: usize, kind: u32, flags: u64) {
        open_pool(call, pool, descriptor, kind, flags)
    }

    /// What another process needs to have memory of a pool.
    fn cuMemPoolExportPointer(call, data: Out<ShareHandle>, address: u64) {
        data.wanted()?;
        data.set(share(call, address)?)
    }

    /// Memory of a pool of another process.
    fn cuMemPoolImportPointer(call, address: Out<u64>, pool: usize, data: In<ShareHandle>) {
        open_pointer(call, address, pool, data)
    }
}
