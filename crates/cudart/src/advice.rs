//! Advice on managed memory, recorded and returned.

use crate::objects::advice::Advice;
use crate::objects::memory::AllocationKind;
use crate::state::Runtime;
use crate::status::{Outcome, Status};

impl Runtime {
    /// Checks that a range is managed memory.
    pub(crate) fn managed_range(&self, address: u64, bytes: u64) -> Outcome {
        self.device()?;
        if address == 0 || bytes == 0 || address.checked_add(bytes).is_none() {
            return Err(Status::INVALID_VALUE);
        }
        let fits = match self.memory.find(address) {
            Some(found) if matches!(found.kind, AllocationKind::Managed | AllocationKind::ManagedVariable) => {
                self.memory.range(address, bytes).is_some()
            }
            Some(_) | None => false,
        };
        if fits { Ok(()) } else { Err(Status::INVALID_VALUE) }
    }

    /// Records advice on a range after checking the range.
    pub(crate) fn advise(&self, address: u64, bytes: u64, advice: Advice) -> Outcome {
        self.managed_range(address, bytes)?;
        self.advice.note(address, bytes, advice);
        Ok(())
    }

    /// Returns one attribute of a range (`cudaMemRangeAttribute`) as `count` values of type `int`.
    pub(crate) fn range_attribute(&self, attribute: u32, address: u64, bytes: u64, count: usize) -> Outcome<Vec<i32>> {
        self.managed_range(address, bytes)?;
        self.advice.of(address, bytes).attribute(attribute, count)
    }
}
