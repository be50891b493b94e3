//! Virtual memory management: reserving addresses, creating physical memory, and mapping it.
//!
//! On a device with the address space of this process, physical memory is an anonymous file, mapped with
//! `mmap`.

use crate::boundary::exported;
use crate::handles::Handle;
use crate::location::MemLocation;
use crate::objects::physical::{GRANULARITY, Physical, check_size};
use crate::pointer::{In, Out};
use crate::status::{Outcome, Status};
use crate::types::AllocationProperties;
use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Mapped memory by start address: size, handle and memory.
type MappedRanges = BTreeMap<usize, (usize, Handle, Arc<Physical>)>;

static MAPPED: Mutex<MappedRanges> = Mutex::new(BTreeMap::new());

fn mapped() -> MutexGuard<'static, MappedRanges> {
    MAPPED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reserved ranges: start address and size.
static RESERVED: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

fn reserved() -> MutexGuard<'static, BTreeMap<usize, usize>> {
    RESERVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tests if a range is reserved.
fn is_reserved(address: usize, bytes: usize) -> bool {
    let list = reserved();
    let found = list.range(..=address).next_back();
    found.is_some_and(|(start, size)| address - start < *size && bytes <= size - (address - start))
}

/// Reserves inaccessible addresses, at a given place or anywhere.
fn nothing_at(place: usize, bytes: usize) -> Outcome<usize> {
    let fixed = if place == 0 { 0 } else { libc::MAP_FIXED };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    // SAFETY: without a place this is new memory. With one it is a range reserved here, which nothing else
    // uses.
    let start = unsafe { libc::mmap(place as *mut libc::c_void, bytes, libc::PROT_NONE, flags, -1, 0) };
    if start == libc::MAP_FAILED { Err(Status::OUT_OF_MEMORY) } else { Ok(start as usize) }
}

exported! { driver
    fn cuMemGetAllocationGranularity(call, bytes: Out<usize>, properties: In<AllocationProperties>, option: u32) {
        call.runtime.shares_addresses()?;
        properties.get()?.check()?;
        if option > 1 {
            return Err(Status::INVALID_VALUE);
        }
        bytes.set(GRANULARITY)
    }

    fn cuMemAddressReserve(call, address: Out<usize>, bytes: usize, alignment: usize, _wish: u64, _flags: u64) {
        call.runtime.shares_addresses()?;
        address.wanted()?;
        check_size(bytes)?;
        let alignment = alignment.max(GRANULARITY);
        if !alignment.is_power_of_two() {
            return Err(Status::INVALID_VALUE);
        }
        let room = bytes.checked_add(alignment).ok_or(Status::OUT_OF_MEMORY)?;
        let start = nothing_at(0, room)?.next_multiple_of(alignment);
        reserved().insert(start, bytes);
        address.set(start)
    }

    fn cuMemAddressFree(call, address: usize, bytes: usize) {
        call.runtime.shares_addresses()?;
        let mut list = reserved();
        if list.get(&address) != Some(&bytes) {
            return Err(Status::INVALID_VALUE);
        }
        list.remove(&address);
        // SAFETY: the range was reserved here, and the program states that it is no longer used.
        unsafe { libc::munmap(address as *mut libc::c_void, bytes) };
        Ok(())
    }

    fn cuMemCreate(call, handle: Out<usize>, bytes: usize, properties: In<AllocationProperties>, flags: u64) {
        call.runtime.shares_addresses()?;
        handle.wanted()?;
        let properties = properties.get()?;
        properties.check()?;
        check_size(bytes)?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        handle.set(call.runtime.physicals.insert(Physical::new(bytes, properties)?))
    }

    /// Releases physical memory. Its mappings stay valid.
    fn cuMemRelease(call, handle: usize) {
        let physical = call.runtime.physicals.get(handle).map_err(|_| Status::INVALID_VALUE)?;
        if physical.held.fetch_sub(1, Ordering::SeqCst) == 1 {
            call.runtime.physicals.remove(handle).map(drop).map_err(|_| Status::INVALID_VALUE)?;
        }
        Ok(())
    }

    fn cuMemRetainAllocationHandle(call, handle: Out<usize>, address: usize) {
        call.runtime.shares_addresses()?;
        handle.wanted()?;
        let mapped = mapped();
        let found = mapped.range(..=address).next_back().filter(|(start, (bytes, ..))| address - **start < *bytes);
        let (_, (_, known, physical)) = found.ok_or(Status::INVALID_VALUE)?;
        match call.runtime.physicals.find(*known) {
            Some(_) => physical.held.fetch_add(1, Ordering::SeqCst),
            // The handle was released while the memory stayed mapped.
            None => {
                call.runtime.physicals.put(*known, physical.clone());
                physical.held.swap(1, Ordering::SeqCst)
            }
        };
        handle.set(*known)
    }

    fn cuMemGetAllocationPropertiesFromHandle(call, properties: Out<AllocationProperties>, handle: usize) {
        call.runtime.shares_addresses()?;
        properties.set(call.runtime.physicals.get(handle).map_err(|_| Status::INVALID_VALUE)?.properties)
    }

    fn cuMemMap(call, address: usize, bytes: usize, offset: usize, handle: usize, _flags: u64) {
        call.runtime.shares_addresses()?;
        check_size(bytes)?;
        let physical = call.runtime.physicals.get(handle).map_err(|_| Status::INVALID_VALUE)?;
        if offset != 0 || bytes > physical.bytes || !address.is_multiple_of(GRANULARITY) || !is_reserved(address, bytes) {
            return Err(Status::INVALID_VALUE);
        }
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
        // SAFETY: the range was reserved here, so only the program's own mappings lie there. The file is
        // open.
        let start = unsafe { libc::mmap(address as *mut libc::c_void, bytes, protection, flags, physical.file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(Status::OUT_OF_MEMORY);
        }
        mapped().insert(address, (bytes, handle, physical));
        call.runtime.memory.add_mapped(address as u64, bytes as u64);
        Ok(())
    }

    fn cuMemUnmap(call, address: usize, bytes: usize) {
        call.runtime.shares_addresses()?;
        call.runtime.wait_for_all()?;
        if !is_reserved(address, bytes) {
            return Err(Status::INVALID_VALUE);
        }
        let mut mapped = mapped();
        let end = address + bytes;
        let whole = |(start, (size, ..)): (&usize, &(usize, Handle, Arc<Physical>))| start + size <= address || *start >= end || *start >= address && start + size <= end;
        if !mapped.iter().all(whole) {
            return Err(Status::INVALID_VALUE);
        }
        call.runtime.memory.remove_mapped(address as u64, bytes as u64)?;
        mapped.retain(|start, _| !(address..end).contains(start));
        nothing_at(address, bytes).map(drop)
    }

    /// Accepts access rights. Mapped memory is always accessible.
    fn cuMemSetAccess(call, address: u64, bytes: usize, list: In<[u32; 3]>, count: usize)
        => list.get_all(count)?, call.runtime.memory.find(address).ok_or(Status::INVALID_VALUE)?, check_size(bytes);
    /// Returns the access rights: read and write.
    fn cuMemGetAccess(call, flags: Out<u64>, location: In<MemLocation>, address: u64)
        => location.get()?, call.runtime.memory.find(address).ok_or(Status::INVALID_VALUE)?, flags.set(3);
}
