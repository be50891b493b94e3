//! Memory that host and kernels share, on a device whose memory is not the host's.
//!
//! Managed memory, host memory that CUDA hands out and what a program registers have one address for both sides. The interpreter keeps its
//! own bytes behind that address; the host has pages there. What the host changed is carried over before a launch, what kernels changed behind
//! it: a launch of the interpreter is over when the call returns. **A byte that a launch did not change is not written to the host's side**,
//! so that other threads of the program may go on beside it. All of it counts as written: who wrote the host's side cannot be seen.

use crate::pointer::{bytes_at, move_bytes};
use crate::state::status_of;
use crate::status::{Outcome, Status};
use broadloom_device::{Backend, Stream};
use broadloom_interp::Interp;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where the interpreter's memory begins: no process has anything there on its own.
pub(crate) const FIRST_ADDRESS: u64 = 0x1000_0000_0000;

/// Bytes that are compared at once.
const CHUNK: usize = 4096;

#[derive(Debug)]
struct Range {
    bytes: usize,
    /// The host's pages, when they are ours: where they begin and how many bytes they are.
    pages: Option<(usize, usize)>,
    /// What both sides had when they were last the same; nothing before that.
    last: Vec<u8>,
}

/// The ranges that both sides share.
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

    /// New memory for both sides.
    pub(crate) fn allocate(&self, bytes: u64) -> Outcome<u64> {
        let address = self.interp.allocate(bytes).map_err(|error| status_of(&error))?;
        self.show(address, bytes).inspect_err(|_| {
            // It was given out above and nobody has it.
            let _ = self.interp.free(address);
        })?;
        Ok(address)
    }

    /// Gives the host pages at memory of the interpreter, with what is in it. Two allocations are a page apart.
    pub(crate) fn show(&self, address: u64, bytes: u64) -> Outcome {
        // SAFETY: asks the system for a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(CHUNK);
        let bytes = usize::try_from(bytes).map_err(|_| Status::OUT_OF_MEMORY)?;
        let start = address as usize / page * page;
        let length = (address as usize + bytes).next_multiple_of(page) - start;
        let (access, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE,
        );
        // SAFETY: new pages at addresses where there is nothing, which the system checks.
        let place = unsafe { libc::mmap(start as *mut libc::c_void, length, access, flags, -1, 0) };
        if place as usize != start {
            if place != libc::MAP_FAILED {
                // SAFETY: pages that were made above, elsewhere than asked for.
                unsafe { libc::munmap(place, length) };
            }
            return Err(Status::OUT_OF_MEMORY);
        }
        let mut last = vec![0; bytes];
        self.interp.read(Stream::default(), address, &mut last).map_err(|error| status_of(&error))?;
        move_bytes(address as usize, last.as_ptr() as usize, bytes);
        self.ranges().insert(address, Range { bytes, pages: Some((start, length)), last: vec![] });
        Ok(())
    }

    /// Memory of the program, which kernels are to reach.
    pub(crate) fn adopt(&self, address: u64, bytes: u64) -> Outcome {
        let count = usize::try_from(bytes).map_err(|_| Status::OUT_OF_MEMORY)?;
        self.interp.adopt(address, bytes).map_err(|error| status_of(&error))?;
        self.ranges().insert(address, Range { bytes: count, pages: None, last: vec![] });
        Ok(())
    }

    /// Gives memory of both sides back.
    pub(crate) fn free(&self, address: u64) -> Outcome {
        self.forget(address);
        self.interp.free(address).map_err(|error| status_of(&error))
    }

    /// Takes the host's pages away; the interpreter's memory is somebody else's to free.
    pub(crate) fn forget(&self, address: u64) {
        if let Some(Range { pages: Some((start, length)), .. }) = self.ranges().remove(&address) {
            // SAFETY: the pages were made by `show`, and the program gave them back.
            unsafe { libc::munmap(start as *mut libc::c_void, length) };
        }
    }

    /// Lets something run that sees and changes the interpreter's side.
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

    /// What the host changed goes to the interpreter.
    fn carry_over(&self, address: u64, range: &mut Range) -> Outcome {
        let write = |at: usize, bytes: &[u8]| {
            self.interp.write(Stream::default(), address + at as u64, bytes).map_err(|error| status_of(&error))
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

    /// What kernels changed goes to the host.
    fn carry_back(&self, address: u64, range: &mut Range) -> Outcome {
        let mut now = vec![0; range.bytes];
        self.interp.read(Stream::default(), address, &mut now).map_err(|error| status_of(&error))?;
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
                // Another thread of the program.
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
