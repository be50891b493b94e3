//! Descriptions of pointers in messages about refused calls.

use crate::memory::{Allocation, Allocations, Kind};

/// Largest distance past the end of an allocation at which the message relates a pointer to it.
const NEAR: u64 = 4096;

/// Describes an allocation.
fn what(found: &Allocation) -> String {
    let Allocation { start, bytes, kind, by, .. } = found;
    match kind {
        Kind::Variable | Kind::ManagedVariable => format!("a variable of {bytes} bytes at {start:#x}"),
        Kind::Registered(_) => format!("{bytes} bytes at {start:#x}, registered by {by}"),
        Kind::Device | Kind::Graph | Kind::Host(_) | Kind::Managed | Kind::Array | Kind::Mapped => {
            format!("{bytes} bytes at {start:#x}, allocated by {by}")
        }
    }
}

impl Allocations {
    /// Describes an address.
    pub(crate) fn describe(&self, address: u64) -> String {
        if address == 0 {
            return "a null pointer".to_owned();
        }
        if let Some(found) = self.find(address) {
            return match address - found.start {
                0 => format!("{address:#x} is the start of {}", what(&found)),
                offset => format!("{address:#x} is {offset} bytes inside of {}", what(&found)),
            };
        }
        if let Some((found, by)) = self.freed(address) {
            return format!("{address:#x} is in {}, freed by {by}", what(&found));
        }
        if let Some(found) = self.below(address).filter(|found| address - (found.start + found.bytes) < NEAR) {
            let gap = address - (found.start + found.bytes);
            let behind = if gap == 0 { "right behind".to_owned() } else { format!("{gap} bytes behind") };
            return format!("{address:#x} is {behind} {}", what(&found));
        }
        format!("{address:#x} is in no memory that CUDA has allocated or registered")
    }

    /// Explains why a range is not inside one allocation.
    pub(crate) fn describe_range(&self, address: u64, bytes: u64) -> String {
        match self.find(address) {
            Some(found) => {
                let left = found.bytes - (address - found.start);
                let more = bytes.saturating_sub(left);
                format!("{bytes} bytes from {address:#x} on end {more} bytes behind {}", what(&found))
            }
            None => self.describe(address),
        }
    }

    /// Explains why a pointer cannot be freed.
    pub(crate) fn describe_free(&self, address: u64) -> String {
        if let (None, Some((found, by))) = (self.find(address), self.freed(address))
            && found.start == address
        {
            return format!("{address:#x} was freed before, by {by}: {}", what(&found));
        }
        self.describe(address)
    }
}
