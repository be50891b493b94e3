//! Memory and arrays: allocation, registration and release.

use crate::objects::memory::AllocationKind;
use crate::objects::pools::PoolMemory;
use crate::objects::textures::Array;
use crate::state::Runtime;
use crate::status::{Outcome, Status};

impl Runtime {
    /// Allocates device memory. Returns address 0 for 0 bytes.
    pub(crate) fn allocate(&self, bytes: usize, kind: AllocationKind) -> Outcome<u64> {
        let opened = self.device()?;
        if bytes == 0 {
            return Ok(0);
        }
        let bytes = bytes as u64;
        let address = match &opened.mirror {
            Some(mirror) if kind == AllocationKind::Managed => mirror.allocate(bytes)?,
            // An earlier kernel failure is not reported by this call.
            Some(_) | None => opened.backend().allocate(bytes).map_err(|error| Status::of_error(&error))?,
        };
        self.memory.add(address, bytes, kind);
        Ok(address)
    }

    /// Frees device memory. Address 0 is ignored.
    pub(crate) fn free(&self, address: u64) -> Outcome {
        let opened = self.device()?;
        if address == 0 {
            return Ok(());
        }
        if self.memory.find(address).is_some_and(|found| found.start == address && found.kind == AllocationKind::Graph) {
            return Ok(());
        }
        if self.is_of_foreign_pool(address) {
            return self.close_memory(address);
        }
        if self.pools.forget(address) == Some(PoolMemory::Host) {
            return self.free_host(address);
        }
        let fits = |kind| matches!(kind, AllocationKind::Device | AllocationKind::Managed | AllocationKind::Array);
        let taken = self.memory.take(address, fits)?;
        self.advice.forget(address, taken.bytes);
        if opened.unified {
            self.end_sharing(&taken);
        }
        match &opened.mirror {
            Some(mirror) if taken.kind == AllocationKind::Managed => mirror.free(address),
            Some(_) | None => self.judge(opened.backend().free(address)),
        }
    }

    /// Frees the value of a condition, which is memory of a graph.
    pub(crate) fn free_condition(&self, address: u64) -> Outcome {
        self.memory.take(address, |kind| kind == AllocationKind::Graph)?;
        self.judge(self.device()?.backend().free(address))
    }

    /// Allocates pinned host memory for stream-ordered copies.
    pub(crate) fn allocate_host(&self, bytes: usize, flags: u32) -> Outcome<usize> {
        let opened = self.device()?;
        if bytes == 0 {
            return Ok(0);
        }
        let address = match &opened.mirror {
            Some(mirror) => mirror.allocate(bytes as u64)?,
            None => opened.backend().allocate(bytes as u64).map_err(|error| Status::of_error(&error))?,
        };
        self.memory.add(address, bytes as u64, AllocationKind::Host(flags));
        Ok(address as usize)
    }

    /// Frees pinned host memory.
    pub(crate) fn free_host(&self, address: u64) -> Outcome {
        let opened = self.device()?;
        if address == 0 {
            return Ok(());
        }
        self.memory.take(address, |kind| matches!(kind, AllocationKind::Host(_)))?;
        match &opened.mirror {
            Some(mirror) => mirror.free(address),
            None => self.judge(opened.backend().free(address)),
        }
    }

    /// Registers host memory of the program.
    pub(crate) fn register_host(&self, address: u64, bytes: usize, flags: u32) -> Outcome {
        let opened = self.device()?;
        if address == 0 || bytes == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let last = address.checked_add(bytes as u64 - 1).ok_or(Status::INVALID_VALUE)?;
        if self.memory.touches(address, last) {
            return Err(Status::HOST_MEMORY_ALREADY_REGISTERED);
        }
        if let Some(mirror) = &opened.mirror {
            mirror.adopt(address, bytes as u64)?;
        }
        self.memory.add(address, bytes as u64, AllocationKind::Registered(flags));
        Ok(())
    }

    /// Unregisters host memory of the program.
    pub(crate) fn unregister_host(&self, address: u64) -> Outcome {
        let opened = self.device()?;
        let taken = self.memory.take(address, |kind| matches!(kind, AllocationKind::Registered(_)));
        taken.map_err(|_| Status::HOST_MEMORY_NOT_REGISTERED)?;
        match &opened.mirror {
            Some(mirror) => mirror.free(address),
            None => Ok(()),
        }
    }

    /// Makes a managed variable accessible to the host at its device address.
    pub(crate) fn show_variable(&self, address: u64, bytes: u64) {
        let mirror = self.opened().and_then(|opened| opened.mirror.as_ref());
        if mirror.is_none_or(|mirror| mirror.show(address, bytes).is_ok()) {
            self.memory.add(address, bytes, AllocationKind::ManagedVariable);
        }
    }

    /// Removes a variable whose module was unloaded.
    pub(crate) fn forget_variable(&self, address: u64) {
        let _ = self.memory.take(address, |kind| matches!(kind, AllocationKind::Variable | AllocationKind::ManagedVariable));
        if let Some(mirror) = self.opened().and_then(|opened| opened.mirror.as_ref()) {
            mirror.forget(address);
        }
    }

    /// Returns the free and total bytes of device memory.
    pub(crate) fn memory_left(&self) -> Outcome<(usize, usize)> {
        let memory = self.device()?.backend().memory();
        Ok((memory.limit.saturating_sub(memory.used) as usize, memory.limit as usize))
    }
}

impl Runtime {
    /// Allocates an array.
    pub(crate) fn create_array(&self, channels: [i32; 5], extent: [usize; 3], flags: u32) -> Outcome<usize> {
        let mut array = Array { channels, extent, flags, address: 0, pitch: 0 };
        if array.element_bytes() == 0 || extent[0] == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let row = extent[0].checked_mul(array.element_bytes()).ok_or(Status::INVALID_VALUE)?;
        array.pitch = row.checked_next_multiple_of(32).ok_or(Status::INVALID_VALUE)?;
        let rows = extent[1].max(1).checked_mul(extent[2].max(1)).ok_or(Status::INVALID_VALUE)?;
        let bytes = array.pitch.checked_mul(rows).ok_or(Status::INVALID_VALUE)?;
        array.address = self.allocate(bytes, AllocationKind::Array)?;
        Ok(self.arrays.insert(array))
    }

    /// Frees an array. Handle 0 is ignored.
    pub(crate) fn destroy_array(&self, handle: usize) -> Outcome {
        if handle == 0 {
            return self.device().map(drop);
        }
        let array = self.arrays.remove(handle)?;
        self.free(array.address)
    }
}
