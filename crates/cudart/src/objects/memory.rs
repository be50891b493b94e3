//! Table of the allocations that programs know, with their kinds.
//!
//! If the device shares the address space of this process, host memory allocated by CUDA is also device
//! memory, so that kernels and stream-ordered copies reach it. **Every device range that a program passes is
//! looked up here. A range that is not inside one allocation is an invalid value.**

use crate::check;
use crate::status::{Outcome, Status};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of freed allocations kept for messages.
const MOST_FREED: usize = 1024;

/// Alignment of the rows of pitched memory.
pub(crate) const PITCH: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocationKind {
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
    pub(crate) kind: AllocationKind,
    /// Unique number of the allocation.
    pub(crate) serial: u64,
    /// API function that created it.
    pub(crate) by: &'static str,
}

impl Allocation {
    /// Tests if it can be the device side of a copy.
    pub(crate) fn on_device(&self) -> bool {
        match self.kind {
            AllocationKind::Device
            | AllocationKind::Graph
            | AllocationKind::Managed
            | AllocationKind::Variable
            | AllocationKind::ManagedVariable
            | AllocationKind::Array
            | AllocationKind::Mapped => true,
            AllocationKind::Host(_) | AllocationKind::Registered(_) => false,
        }
    }

    /// Tests if the program may read and write it on the host.
    pub(crate) fn reached_by_host(&self) -> bool {
        match self.kind {
            AllocationKind::Host(_)
            | AllocationKind::Registered(_)
            | AllocationKind::Managed
            | AllocationKind::ManagedVariable => true,
            AllocationKind::Device
            | AllocationKind::Graph
            | AllocationKind::Variable
            | AllocationKind::Array
            | AllocationKind::Mapped => false,
        }
    }

    /// Tests if the executor allocated it, so that the executor's copies and fills may access it.
    pub(crate) fn of_executor(&self, unified: bool) -> bool {
        match self.kind {
            AllocationKind::Device | AllocationKind::Graph | AllocationKind::Variable | AllocationKind::Array => true,
            // Shared memory belongs to the host between launches.
            AllocationKind::Host(_) | AllocationKind::Managed | AllocationKind::ManagedVariable => unified,
            AllocationKind::Registered(_) | AllocationKind::Mapped => false,
        }
    }
}

#[derive(Debug, Default)]
struct AllocationState {
    live: BTreeMap<u64, Allocation>,
    /// Latest freed allocations, each with the function that freed it.
    freed: VecDeque<(Allocation, &'static str)>,
    serial: u64,
}

/// Table of all allocations that programs know.
#[derive(Debug, Default)]
pub(crate) struct Allocations(Mutex<AllocationState>);

impl Allocations {
    fn state(&self) -> MutexGuard<'_, AllocationState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, start: u64, bytes: u64, kind: AllocationKind) {
        let mut state = self.state();
        state.serial += 1;
        let serial = state.serial;
        state.live.insert(start, Allocation { start, bytes, kind, serial, by: check::running_call() });
    }

    /// Makes an allocation the memory of a graph.
    pub(crate) fn give_to_graph(&self, start: u64) {
        if let Some(found) = self.state().live.get_mut(&start) {
            found.kind = AllocationKind::Graph;
        }
    }

    /// Adds a variable of a module.
    pub(crate) fn add_variable(&self, start: u64, bytes: u64) {
        self.add(start, bytes, AllocationKind::Variable);
    }

    /// Adds mapped memory. Adjacent mapped ranges are merged.
    pub(crate) fn add_mapped(&self, start: u64, bytes: u64) {
        let mut state = self.state();
        let before = state.live.range(..start).next_back().map(|(_, found)| *found);
        let joined = before.filter(|before| before.kind == AllocationKind::Mapped && before.start + before.bytes == start);
        let (start, bytes) = joined.map_or((start, bytes), |before| (before.start, before.bytes + bytes));
        state.serial += 1;
        let serial = state.serial;
        state.live.insert(start, Allocation { start, bytes, kind: AllocationKind::Mapped, serial, by: check::running_call() });
    }

    /// Removes mapped memory.
    pub(crate) fn remove_mapped(&self, start: u64, bytes: u64) -> Outcome {
        let found = self.range(start, bytes).filter(|found| found.kind == AllocationKind::Mapped).ok_or(Status::INVALID_VALUE)?;
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
    pub(crate) fn touches(&self, first: u64, last: u64) -> bool {
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

    /// Returns the range of memory that the program registered or mapped, which kernels may access although
    /// it does not come from the executor.
    pub(crate) fn shared_by_program(&self, address: u64) -> Option<Range<u64>> {
        let found =
            self.find(address).filter(|found| matches!(found.kind, AllocationKind::Registered(_) | AllocationKind::Mapped))?;
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

    pub(crate) fn take(&self, address: u64, fits: impl Fn(AllocationKind) -> bool) -> Outcome<Allocation> {
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

/// Largest distance past the end of an allocation at which the message relates a pointer to it.
const NEAR: u64 = 4096;

fn describe_allocation(found: &Allocation) -> String {
    let Allocation { start, bytes, kind, by, .. } = found;
    match kind {
        AllocationKind::Variable | AllocationKind::ManagedVariable => format!("a variable of {bytes} bytes at {start:#x}"),
        AllocationKind::Registered(_) => format!("{bytes} bytes at {start:#x}, registered by {by}"),
        AllocationKind::Device
        | AllocationKind::Graph
        | AllocationKind::Host(_)
        | AllocationKind::Managed
        | AllocationKind::Array
        | AllocationKind::Mapped => {
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
                0 => format!("{address:#x} is the start of {}", describe_allocation(&found)),
                offset => format!("{address:#x} is {offset} bytes inside of {}", describe_allocation(&found)),
            };
        }
        if let Some((found, by)) = self.freed(address) {
            return format!("{address:#x} is in {}, freed by {by}", describe_allocation(&found));
        }
        if let Some(found) = self.below(address).filter(|found| address - (found.start + found.bytes) < NEAR) {
            let gap = address - (found.start + found.bytes);
            let behind = if gap == 0 { "right behind".to_owned() } else { format!("{gap} bytes behind") };
            return format!("{address:#x} is {behind} {}", describe_allocation(&found));
        }
        format!("{address:#x} is in no memory that CUDA has allocated or registered")
    }

    /// Explains why a range is not inside one allocation.
    pub(crate) fn describe_range(&self, address: u64, bytes: u64) -> String {
        match self.find(address) {
            Some(found) => {
                let left = found.bytes - (address - found.start);
                let more = bytes.saturating_sub(left);
                format!("{bytes} bytes from {address:#x} on end {more} bytes behind {}", describe_allocation(&found))
            }
            None => self.describe(address),
        }
    }

    /// Explains why a pointer cannot be freed.
    pub(crate) fn describe_free(&self, address: u64) -> String {
        if let (None, Some((found, by))) = (self.find(address), self.freed(address))
            && found.start == address
        {
            return format!("{address:#x} was freed before, by {by}: {}", describe_allocation(&found));
        }
        self.describe(address)
    }
}
