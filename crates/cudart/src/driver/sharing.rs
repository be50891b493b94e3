//! Memory that other processes may have: what `cuMemCreate` made is a file without a name, and a descriptor of it is what is passed on.

use crate::boundary::exported;
use crate::driver::mapping::{Physical, shares_addresses};
use crate::pointer::Out;
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
}
