//! Memory shared by host and kernels on a device with a separate address space (the interpreter).
//!
//! Managed memory, pinned host memory and registered memory have one address on both sides. The interpreter
//! keeps its own copy of the bytes, and the host has pages at the same address. The host's changes are copied
//! to the interpreter before a launch, the kernels' changes back after it. A launch on the interpreter is
//! over when the call returns. **A byte that a launch did not change is not written to the host's side**, so
//! other threads of the program may write there meanwhile. For the initialisation check all of it counts as
//! written, since writes of the host cannot be observed.

use crate::pointer::{bytes_at, move_bytes};
use crate::status::{Outcome, Status};
use broadloom_device::{Backend, Stream};
use broadloom_interp::Interp;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// First address of the interpreter's memory. No process maps anything there by itself.
pub(crate) const FIRST_ADDRESS: u64 = 0x1000_0000_0000;

/// Number of bytes compared at once.
const CHUNK: usize = 4096;

#[derive(Debug)]
struct Range {
    bytes: usize,
    /// Start and size of the host's pages, if this module mapped them.
    pages: Option<(usize, usize)>,
    /// Bytes at the last synchronisation of both sides; empty before the first one.
    last: Vec<u8>,
}

/// Shared ranges.
#[derive(Debug)]
pub(crate) struct Mirror {
    interp: Interp,
    ranges: Mutex<BTreeMap<u64, Range>>,
}

impl Mirror {
    pub(crate) fn new(interp: Interp) -> Mirror {
        Mirror { interp, ranges: Mutex::default() }
    }

    fn ranges(&self) -> MutexGuard<'_, BTreeMap<u64, Range>> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates memory on both sides.
    pub(crate) fn allocate(&self, bytes: u64) -> Outcome<u64> {
        let address = self.interp.allocate(bytes).map_err(|error| Status::of_error(&error))?;
        self.show(address, bytes).inspect_err(|_| {
            // The address is fresh and not yet known to anyone, so freeing it cannot fail.
            let _ = self.interp.free(address);
        })?;
        Ok(address)
    }

    /// Maps host pages at the address of the interpreter's memory and copies its contents. Allocations are at
    /// least one page apart.
    pub(crate) fn show(&self, address: u64, bytes: u64) -> Outcome {
        // SAFETY: `sysconf` only returns a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(CHUNK);
        let bytes = usize::try_from(bytes).map_err(|_| Status::OUT_OF_MEMORY)?;
        let start = address as usize / page * page;
        let length = (address as usize + bytes).next_multiple_of(page) - start;
        let (access, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE,
        );
        // SAFETY: maps new pages. The system checks that the addresses are free.
        let place = unsafe { libc::mmap(start as *mut libc::c_void, length, access, flags, -1, 0) };
        if place as usize != start {
            if place != libc::MAP_FAILED {
                // SAFETY: these pages were mapped above, at a different address than requested.
                unsafe { libc::munmap(place, length) };
            }
            return Err(Status::OUT_OF_MEMORY);
        }
        let mut last = vec![0; bytes];
        self.interp.read(Stream::default(), address, &mut last).map_err(|error| Status::of_error(&error))?;
        move_bytes(address as usize, last.as_ptr() as usize, bytes);
        self.ranges().insert(address, Range { bytes, pages: Some((start, length)), last: vec![] });
        Ok(())
    }

    /// Registers host memory of the program, so that kernels reach it.
    pub(crate) fn adopt(&self, address: u64, bytes: u64) -> Outcome {
        let count = usize::try_from(bytes).map_err(|_| Status::OUT_OF_MEMORY)?;
        self.interp.adopt(address, bytes).map_err(|error| Status::of_error(&error))?;
        self.ranges().insert(address, Range { bytes: count, pages: None, last: vec![] });
        Ok(())
    }

    /// Frees memory on both sides.
    pub(crate) fn free(&self, address: u64) -> Outcome {
        self.forget(address);
        self.interp.free(address).map_err(|error| Status::of_error(&error))
    }

    /// Unmaps the host's pages. The caller frees the interpreter's memory.
    pub(crate) fn forget(&self, address: u64) {
        if let Some(Range { pages: Some((start, length)), .. }) = self.ranges().remove(&address) {
            // SAFETY: `show` mapped these pages, and the program freed them.
            unsafe { libc::munmap(start as *mut libc::c_void, length) };
        }
    }

    /// Synchronises both sides around a function that uses the interpreter's side.
    pub(crate) fn around<T>(&self, run: impl FnOnce() -> T) -> Outcome<T> {
        let mut ranges = self.ranges();
        for (address, range) in ranges.iter_mut() {
            self.carry_over(*address, range)?;
        }
        let outcome = run();
        for (address, range) in ranges.iter_mut() {
            self.carry_back(*address, range)?;
        }
        Ok(outcome)
    }

    /// Copies the host's changes to the interpreter.
    fn carry_over(&self, address: u64, range: &mut Range) -> Outcome {
        let write = |at: usize, bytes: &[u8]| {
            self.interp.write(Stream::default(), address + at as u64, bytes).map_err(|error| Status::of_error(&error))
        };
        let host = bytes_at(address as usize, range.bytes)?;
        if range.last.is_empty() {
            write(0, &host)?;
        } else {
            for at in (0..range.bytes).step_by(CHUNK) {
                let end = (at + CHUNK).min(range.bytes);
                if host[at..end] != range.last[at..end] {
                    write(at, &host[at..end])?;
                }
            }
        }
        range.last = host;
        Ok(())
    }

    /// Copies the kernels' changes to the host.
    fn carry_back(&self, address: u64, range: &mut Range) -> Outcome {
        let mut now = vec![0; range.bytes];
        self.interp.read(Stream::default(), address, &mut now).map_err(|error| Status::of_error(&error))?;
        for at in (0..range.bytes).step_by(CHUNK) {
            let end = (at + CHUNK).min(range.bytes);
            if now[at..end] == range.last[at..end] {
                continue;
            }
            for index in (at..end).filter(|index| now[*index] != range.last[*index]) {
                move_bytes(address as usize + index, now[index..].as_ptr() as usize, 1);
            }
        }
        range.last = now;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_see_what_the_other_wrote() {
        let interp =
            Interp::new(broadloom_interp::Options { first_address: FIRST_ADDRESS, ..broadloom_interp::Options::default() });
        let mirror = Mirror::new(interp.clone());
        let address = mirror.allocate(10_000).unwrap();
        let host = |at: usize| bytes_at(address as usize + at, 1).unwrap()[0];
        move_bytes(address as usize + 9000, [7u8].as_ptr() as usize, 1);
        mirror
            .around(|| {
                let mut seen = [0; 1];
                interp.read(Stream::default(), address + 9000, &mut seen).unwrap();
                assert_eq!(seen, [7]);
                interp.write(Stream::default(), address + 5, &[3]).unwrap();
                // Simulates a write of another thread of the program.
                move_bytes(address as usize + 6, [9u8].as_ptr() as usize, 1);
            })
            .unwrap();
        assert_eq!((host(5), host(6), host(9000)), (3, 9, 7));
        let own = [1u8; 64];
        mirror.adopt(own.as_ptr() as u64, 64).unwrap();
        mirror.around(|| interp.fill(Stream::default(), own.as_ptr() as u64 + 60, 2, 4).unwrap()).unwrap();
        assert_eq!(bytes_at(own.as_ptr() as usize, 64).unwrap()[59..], [1, 2, 2, 2, 2]);
        mirror.free(own.as_ptr() as u64).unwrap();
        mirror.free(address).unwrap();
        assert!(mirror.ranges().is_empty() && mirror.free(address).is_err());
    }
}
