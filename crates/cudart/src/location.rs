//! Numbers of devices, of which there is one, and locations of memory.

use crate::status::{Outcome, Status};

/// Number of the only device.
pub(crate) const DEVICE: i32 = 0;

/// Checks a device number.
pub(crate) fn check_device(device: i32) -> Outcome {
    if device == DEVICE { Ok(()) } else { Err(Status::INVALID_DEVICE) }
}

/// `cudaMemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemLocation {
    pub(crate) kind: u32,
    pub(crate) id: i32,
}

/// Device number of the host.
pub(crate) const HOST: i32 = -1;

impl MemLocation {
    /// Checks that the location exists: the device, the host, or one of the host's NUMA nodes.
    pub(crate) fn checked(self) -> Outcome<MemLocation> {
        match self.kind {
            1 => check_device(self.id)?,
            2 | 4 => return Ok(MemLocation { id: 0, ..self }),
            3 if self.id >= 0 => {}
            _ => return Err(Status::INVALID_VALUE),
        }
        Ok(self)
    }

    /// Converts a device number to a location.
    pub(crate) fn of_device(device: i32) -> MemLocation {
        if device == HOST { MemLocation { kind: 2, id: 0 } } else { MemLocation { kind: 1, id: device } }
    }
}
