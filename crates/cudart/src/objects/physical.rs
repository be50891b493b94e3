//! Physical memory without addresses: an anonymous file, which programs map with `mmap` or pass to other
//! processes.

use crate::location::MemLocation;
use crate::objects::shared_files::anonymous_file;
use crate::status::{Outcome, Status};
use crate::types::AllocationProperties;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::AtomicU32;

/// Granularity of sizes and addresses in bytes.
pub(crate) const GRANULARITY: usize = 2 << 20;

/// Physical memory that can be mapped.
#[derive(Debug)]
pub(crate) struct Physical {
    pub(crate) file: OwnedFd,
    pub(crate) bytes: usize,
    pub(crate) properties: AllocationProperties,
    /// Number of releases left.
    pub(crate) held: AtomicU32,
}

impl Physical {
    /// Creates physical memory of a checked size.
    pub(crate) fn new(bytes: usize, properties: AllocationProperties) -> Outcome<Physical> {
        Ok(Physical { file: anonymous_file(bytes)?, bytes, properties, held: AtomicU32::new(1) })
    }

    /// Duplicates the file descriptor for export.
    pub(crate) fn exported(&self) -> Outcome<i32> {
        self.file.try_clone().map(IntoRawFd::into_raw_fd).map_err(|_| Status::OPERATING_SYSTEM)
    }

    /// Imports memory by its file descriptor.
    pub(crate) fn imported(descriptor: i32) -> Outcome<Physical> {
        if descriptor < 0 {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the system refuses a number that is no descriptor.
        let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
        if copy < 0 {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the descriptor was just created and has no other owner.
        let file = unsafe { OwnedFd::from_raw_fd(copy) };
        let bytes = std::fs::File::from(file.try_clone().map_err(|_| Status::OPERATING_SYSTEM)?).metadata();
        let bytes = bytes.ok().and_then(|facts| usize::try_from(facts.len()).ok()).ok_or(Status::INVALID_VALUE)?;
        check_size(bytes)?;
        // Imported memory has the location and the handle kind of all shared memory.
        let properties = AllocationProperties::new(MemLocation { kind: 1, id: 0 }, 1);
        Ok(Physical { file, bytes, properties, held: AtomicU32::new(1) })
    }
}

/// Checks that a size is a multiple of the granularity.
pub(crate) fn check_size(bytes: usize) -> Outcome {
    if bytes > 0 && bytes.is_multiple_of(GRANULARITY) { Ok(()) } else { Err(Status::INVALID_VALUE) }
}
