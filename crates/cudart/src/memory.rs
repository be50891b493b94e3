//! Table of the allocations that programs know, with their kinds.
//!
//! If the device shares the address space of this process, host memory allocated by CUDA is also device
//! memory, so that kernels and stream-ordered copies reach it. **Every device range that a program passes is
//! looked up here. A range that is not inside one allocation is an invalid value.**

use crate::check;
use crate::pools::Place;
use crate::state::{Opened, Runtime};
use crate::status::{Outcome, Status};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Alignment of the rows of pitched memory.
pub(crate) const PITCH: usize = 512;

/// Maximum number of freed allocations kept for messages.
const MOST_FREED: usize = 1024;

/// Kind of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Device memory: `cudaMalloc` and related functions.
    Device,
    /// Memory of a graph. It is the same at every launch: freeing it keeps it for the next launch.
    Graph,
    /// Pinned host memory, with its flags: `cudaMallocHost`, `cudaHostAlloc`.
    Host(u32),
    /// Managed memory: `cudaMallocManaged`.
    Managed,
    /// Host memory registered by the program, with its flags.
    Registered(u32),
    /// Variable of a module.
    Variable,
    /// Managed variable, which the host can access.
    ManagedVariable,
    /// Memory of an array.
    Array,
    /// Memory mapped to addresses that the program reserved.
    Mapped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocation {
    /// Start address.
    pub(crate) start: u64,
    /// Size in bytes.
    pub(crate) bytes: u64,
    pub(crate) kind: Kind,
    /// Unique number of the allocation.
    pub(crate) serial: u64,
    /// API function that created it.
    pub(crate) by: &'static str,
}

impl Allocation {
    /// Tests if it can be the device side of a copy.
    pub(crate) fn on_device(&self) -> bool {
        match self.kind {
            Kind::Device | Kind::Graph | Kind::Managed | Kind::Variable | Kind::ManagedVariable | Kind::Array | Kind::Mapped => {
                true
            }
            Kind::Host(_) | Kind::Registered(_) => false,
        }
    }

    /// Tests if the program may read and write it on the host.
    pub(crate) fn reached_by_host(&self) -> bool {
        match self.kind {
            Kind::Host(_) | Kind::Registered(_) | Kind::Managed | Kind::ManagedVariable => true,
            Kind::Device | Kind::Graph | Kind::Variable | Kind::Array | Kind::Mapped => false,
        }
    }

    /// Tests if the executor allocated it, so that the executor's copies and fills may access it.
    pub(crate) fn of_executor(&self, opened: &Opened) -> bool {
        match self.kind {
            Kind::Device | Kind::Graph | Kind::Variable | Kind::Array => true,
            // Shared memory belongs to the host between launches.
            Kind::Host(_) | Kind::Managed | Kind::ManagedVariable => opened.unified,
            Kind::Registered(_) | Kind::Mapped => false,
        }
    }
}

#[derive(Debug, Default)]
struct State {
    live: BTreeMap<u64, Allocation>,
    /// Latest freed allocations, each with the function that freed it.
    freed: VecDeque<(Allocation, &'static str)>,
    serial: u64,
}

/// Table of all allocations that programs know.
#[derive(Debug, Default)]
pub(crate) struct Allocations(Mutex<State>);

impl Allocations {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, start: u64, bytes: u64, kind: Kind) {
        let mut state = self.state();
        state.serial += 1;
        let serial = state.serial;
        state.live.insert(start, Allocation { start, bytes, kind, serial, by: check::running_call() });
    }

    /// Makes an allocation the memory of a graph.
    pub(crate) fn give_to_graph(&self, start: u64) {
        if let Some(found) = self.state().live.get_mut(&start) {
            found.kind = Kind::Graph;
        }
    }

    /// Adds a variable of a module.
    pub(crate) fn add_variable(&self, start: u64, bytes: u64) {
        self.add(start, bytes, Kind::Variable);
    }

    /// Adds mapped memory. Adjacent mapped ranges are merged.
    pub(crate) fn add_mapped(&self, start: u64, bytes: u64) {
        let mut state = self.state();
        let before = state.live.range(..start).next_back().map(|(_, found)| *found);
        let joined = before.filter(|before| before.kind == Kind::Mapped && before.start + before.bytes == start);
        let (start, bytes) = joined.map_or((start, bytes), |before| (before.start, before.bytes + bytes));
        state.serial += 1;
        let serial = state.serial;
        state.live.insert(start, Allocation { start, bytes, kind: Kind::Mapped, serial, by: check::running_call() });
    }

    /// Removes mapped memory.
    pub(crate) fn remove_mapped(&self, start: u64, bytes: u64) -> Outcome {
        let found = self.range(start, bytes).filter(|found| found.kind == Kind::Mapped).ok_or(Status::INVALID_VALUE)?;
        let mut state = self.state();
        state.live.remove(&found.start);
        let end = found.start + found.bytes;
        for (from, to) in [(found.start, start), (start + bytes, end)] {
            if from < to {
                state.serial += 1;
                let serial = state.serial;
                state.live.insert(from, Allocation { start: from, bytes: to - from, serial, ..found });
            }
        }
        Ok(())
    }

    /// Tests if a range, given with its last byte, overlaps an allocation.
    fn touches(&self, first: u64, last: u64) -> bool {
        let state = self.state();
        let below = state.live.range(..=last).next_back();
        below.is_some_and(|(_, found)| found.start >= first || first - found.start < found.bytes)
    }

    /// Returns all allocations.
    pub(crate) fn all(&self) -> Vec<Allocation> {
        self.state().live.values().copied().collect()
    }

    /// Finds the allocation that contains an address.
    pub(crate) fn find(&self, address: u64) -> Option<Allocation> {
        let state = self.state();
        let (_, found) = state.live.range(..=address).next_back()?;
        (address - found.start < found.bytes.max(1)).then_some(*found)
    }

    /// Finds the allocation that contains a range.
    pub(crate) fn range(&self, address: u64, bytes: u64) -> Option<Allocation> {
        self.find(address).filter(|found| bytes <= found.bytes - (address - found.start))
    }

    /// Returns the range of memory that the program registered or mapped, which kernels may access although it
    /// does not come from the executor.
    pub(crate) fn shared_by_program(&self, address: u64) -> Option<Range<u64>> {
        let found = self.find(address).filter(|found| matches!(found.kind, Kind::Registered(_) | Kind::Mapped))?;
        Some(found.start..found.start + found.bytes)
    }

    /// Checks that a range lies inside device-accessible memory. An empty range is always valid.
    pub(crate) fn device_range(&self, address: u64, bytes: u64) -> Outcome {
        if bytes == 0 || self.range(address, bytes).is_some() {
            return Ok(());
        }
        check::because(|| self.describe_range(address, bytes));
        Err(Status::INVALID_VALUE)
    }

    /// Returns the nearest allocation that starts at or below an address.
    pub(crate) fn below(&self, address: u64) -> Option<Allocation> {
        self.state().live.range(..=address).next_back().map(|(_, found)| *found)
    }

    /// Returns the latest freed allocation that contained an address, and the function that freed it.
    pub(crate) fn freed(&self, address: u64) -> Option<(Allocation, &'static str)> {
        let holds = |found: &Allocation| address.checked_sub(found.start).is_some_and(|offset| offset < found.bytes.max(1));
        self.state().freed.iter().rev().find(|(found, _)| holds(found)).copied()
    }

    fn take(&self, address: u64, fits: impl Fn(Kind) -> bool) -> Outcome<Allocation> {
        let mut state = self.state();
        if !state.live.get(&address).is_some_and(|found| fits(found.kind)) {
            drop(state);
            check::because(|| self.describe_free(address));
            return Err(Status::INVALID_VALUE);
        }
        let taken = state.live.remove(&address).ok_or(Status::INVALID_VALUE)?;
        if state.freed.len() == MOST_FREED {
            state.freed.pop_front();
        }
        state.freed.push_back((taken, check::running_call()));
        Ok(taken)
    }
}

impl Runtime {
    /// Allocates device memory. Returns address 0 for 0 bytes.
    pub(crate) fn allocate(&self, bytes: usize, kind: Kind) -> Outcome<u64> {
        let opened = self.device()?;
        if bytes == 0 {
            return Ok(0);
        }
        let bytes = bytes as u64;
        let address = match &opened.mirror {
            Some(mirror) if kind == Kind::Managed => mirror.allocate(bytes)?,
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
        if self.memory.find(address).is_some_and(|found| found.start == address && found.kind == Kind::Graph) {
            return Ok(());
        }
        if self.is_of_foreign_pool(address) {
            return self.close_memory(address);
        }
        if self.pools.forget(address) == Some(Place::Host) {
            return self.free_host(address);
        }
        let fits = |kind| matches!(kind, Kind::Device | Kind::Managed | Kind::Array);
        let taken = self.memory.take(address, fits)?;
        self.advice.forget(address, taken.bytes);
        if opened.unified {
            self.end_sharing(&taken);
        }
        match &opened.mirror {
            Some(mirror) if taken.kind == Kind::Managed => mirror.free(address),
            Some(_) | None => self.judge(opened.backend().free(address)),
        }
    }

    /// Frees the value of a condition, which is memory of a graph.
    pub(crate) fn free_condition(&self, address: u64) -> Outcome {
        self.memory.take(address, |kind| kind == Kind::Graph)?;
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
        self.memory.add(address, bytes as u64, Kind::Host(flags));
        Ok(address as usize)
    }

    /// Frees pinned host memory.
    pub(crate) fn free_host(&self, address: u64) -> Outcome {
        let opened = self.device()?;
        if address == 0 {
            return Ok(());
        }
        self.memory.take(address, |kind| matches!(kind, Kind::Host(_)))?;
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
        self.memory.add(address, bytes as u64, Kind::Registered(flags));
        Ok(())
    }

    /// Unregisters host memory of the program.
    pub(crate) fn unregister_host(&self, address: u64) -> Outcome {
        let opened = self.device()?;
        let taken = self.memory.take(address, |kind| matches!(kind, Kind::Registered(_)));
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
            self.memory.add(address, bytes, Kind::ManagedVariable);
        }
    }

    /// Removes a variable whose module was unloaded.
    pub(crate) fn forget_variable(&self, address: u64) {
        let _ = self.memory.take(address, |kind| matches!(kind, Kind::Variable | Kind::ManagedVariable));
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

/// Array for textures and surfaces: pitched rows and slices in linear memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Array {
    /// Bits of each channel and the kind of the channels, as given by the program.
    pub(crate) channels: [i32; 5],
    /// Width, height and depth in elements; 0 for a missing axis.
    pub(crate) extent: [usize; 3],
    /// Flags given by the program.
    pub(crate) flags: u32,
    /// Start address.
    pub(crate) address: u64,
    /// Row pitch in bytes.
    pub(crate) pitch: usize,
}

impl Array {
    /// Returns the size of an element in bytes.
    pub(crate) fn element_bytes(&self) -> usize {
        self.channels[..4].iter().map(|bits| (*bits).max(0) as usize).sum::<usize>() / 8
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
        array.address = self.allocate(bytes, Kind::Array)?;
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
