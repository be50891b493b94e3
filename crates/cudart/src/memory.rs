//! Memory that programs know of: what is where, and of which kind.
//!
//! Where the device shares this process's addresses, host memory that CUDA hands out is memory of the device as well, so that kernels and
//! copies in stream order reach it. **A range that a program calls the device's is looked up here; what is not inside of one allocation is an
//! invalid value.**

use crate::check;
use crate::pools::Place;
use crate::state::{Opened, Runtime};
use crate::status::{Outcome, Status};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Rows of pitched memory start at multiples of this.
pub(crate) const PITCH: usize = 512;

/// Freed allocations that are remembered, for messages.
const MOST_FREED: usize = 1024;

/// What an allocation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `cudaMalloc` and its like.
    Device,
    /// Memory of a graph, the same at every launch: giving it back leaves it to the next one.
    Graph,
    /// `cudaMallocHost`, `cudaHostAlloc`, with its flags.
    Host(u32),
    /// `cudaMallocManaged`.
    Managed,
    /// Memory of the program that it registered, with its flags.
    Registered(u32),
    /// A variable of a module.
    Variable,
    /// A managed one, which the host reaches.
    ManagedVariable,
    /// The memory of an array.
    Array,
    /// Memory behind addresses that the program reserved.
    Mapped,
}

/// An allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocation {
    /// Where it starts.
    pub(crate) start: u64,
    /// How large it is.
    pub(crate) bytes: u64,
    /// What it is.
    pub(crate) kind: Kind,
    /// A number that no other allocation has.
    pub(crate) serial: u64,
    /// The call of the program that made it.
    pub(crate) by: &'static str,
}

impl Allocation {
    /// Whether the device's side of a copy may be here.
    pub(crate) fn on_device(&self) -> bool {
        match self.kind {
            Kind::Device | Kind::Graph | Kind::Managed | Kind::Variable | Kind::ManagedVariable | Kind::Array | Kind::Mapped => {
                true
            }
            Kind::Host(_) | Kind::Registered(_) => false,
        }
    }

    /// Whether a program may read and write it on the host.
    pub(crate) fn reached_by_host(&self) -> bool {
        match self.kind {
            Kind::Host(_) | Kind::Registered(_) | Kind::Managed | Kind::ManagedVariable => true,
            Kind::Device | Kind::Graph | Kind::Variable | Kind::Array | Kind::Mapped => false,
        }
    }

    /// Whether the executor gave it out, so that its copies and fills may touch it.
    pub(crate) fn of_executor(&self, opened: &Opened) -> bool {
        match self.kind {
            Kind::Device | Kind::Graph | Kind::Variable | Kind::Array => true,
            // What both sides share is the host's between launches.
            Kind::Host(_) | Kind::Managed | Kind::ManagedVariable => opened.unified,
            Kind::Registered(_) | Kind::Mapped => false,
        }
    }
}

#[derive(Debug, Default)]
struct State {
    live: BTreeMap<u64, Allocation>,
    /// The latest that were freed, each with the call that did it.
    freed: VecDeque<(Allocation, &'static str)>,
    serial: u64,
}

/// All memory that programs know of.
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

    /// Memory becomes that of a graph.
    pub(crate) fn give_to_graph(&self, start: u64) {
        if let Some(found) = self.state().live.get_mut(&start) {
            found.kind = Kind::Graph;
        }
    }

    /// A variable of a module.
    pub(crate) fn add_variable(&self, start: u64, bytes: u64) {
        self.add(start, bytes, Kind::Variable);
    }

    /// Memory was put behind addresses. What lies next to other such memory is one with it.
    pub(crate) fn add_mapped(&self, start: u64, bytes: u64) {
        let mut state = self.state();
        let before = state.live.range(..start).next_back().map(|(_, found)| *found);
        let joined = before.filter(|before| before.kind == Kind::Mapped && before.start + before.bytes == start);
        let (start, bytes) = joined.map_or((start, bytes), |before| (before.start, before.bytes + bytes));
        state.serial += 1;
        let serial = state.serial;
        state.live.insert(start, Allocation { start, bytes, kind: Kind::Mapped, serial, by: check::running_call() });
    }

    /// Memory was taken away from addresses.
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

    /// Whether a range, up to its last byte, has any byte in common with memory that is known.
    fn touches(&self, first: u64, last: u64) -> bool {
        let state = self.state();
        let below = state.live.range(..=last).next_back();
        below.is_some_and(|(_, found)| found.start >= first || first - found.start < found.bytes)
    }

    /// All that is known.
    pub(crate) fn all(&self) -> Vec<Allocation> {
        self.state().live.values().copied().collect()
    }

    /// What an address is in.
    pub(crate) fn find(&self, address: u64) -> Option<Allocation> {
        let state = self.state();
        let (_, found) = state.live.range(..=address).next_back()?;
        (address - found.start < found.bytes.max(1)).then_some(*found)
    }

    /// The allocation that a range is inside of.
    pub(crate) fn range(&self, address: u64, bytes: u64) -> Option<Allocation> {
        self.find(address).filter(|found| bytes <= found.bytes - (address - found.start))
    }

    /// Checks that a range is inside of memory that the device may be told to touch; nothing is, when there are no bytes.
    pub(crate) fn device_range(&self, address: u64, bytes: u64) -> Outcome {
        if bytes == 0 || self.range(address, bytes).is_some() {
            return Ok(());
        }
        check::because(|| self.describe_range(address, bytes));
        Err(Status::INVALID_VALUE)
    }

    /// The allocation that begins below an address, the nearest one.
    pub(crate) fn below(&self, address: u64) -> Option<Allocation> {
        self.state().live.range(..=address).next_back().map(|(_, found)| *found)
    }

    /// The latest freed allocation that an address was in, and the call that freed it.
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
    /// Memory of the device; address 0 for no bytes.
    pub(crate) fn allocate(&self, bytes: usize, kind: Kind) -> Outcome<u64> {
        let opened = self.device()?;
        if bytes == 0 {
            return Ok(0);
        }
        let bytes = bytes as u64;
        let address = match &opened.mirror {
            Some(mirror) if kind == Kind::Managed => mirror.allocate(bytes)?,
            // A kernel that failed is not this call's to tell.
            Some(_) | None => opened.backend().allocate(bytes).map_err(|error| crate::state::status_of(&error))?,
        };
        self.memory.add(address, bytes, kind);
        Ok(address)
    }

    /// Gives memory of the device back; nothing, for address 0.
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

    /// Gives the value of a condition back, which is memory of a graph.
    pub(crate) fn free_condition(&self, address: u64) -> Outcome {
        self.memory.take(address, |kind| kind == Kind::Graph)?;
        self.judge(self.device()?.backend().free(address))
    }

    /// Host memory that the device copies from and to in stream order.
    pub(crate) fn allocate_host(&self, bytes: usize, flags: u32) -> Outcome<usize> {
        let opened = self.device()?;
        if bytes == 0 {
            return Ok(0);
        }
        let address = match &opened.mirror {
            Some(mirror) => mirror.allocate(bytes as u64)?,
            None => opened.backend().allocate(bytes as u64).map_err(|error| crate::state::status_of(&error))?,
        };
        self.memory.add(address, bytes as u64, Kind::Host(flags));
        Ok(address as usize)
    }

    /// Gives host memory back.
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

    /// Makes memory of the program known.
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

    /// Forgets memory of the program.
    pub(crate) fn unregister_host(&self, address: u64) -> Outcome {
        let opened = self.device()?;
        let taken = self.memory.take(address, |kind| matches!(kind, Kind::Registered(_)));
        taken.map_err(|_| Status::HOST_MEMORY_NOT_REGISTERED)?;
        match &opened.mirror {
            Some(mirror) => mirror.free(address),
            None => Ok(()),
        }
    }

    /// Lets the host see a managed variable where kernels have it.
    pub(crate) fn show_variable(&self, address: u64, bytes: u64) {
        let mirror = self.opened().and_then(|opened| opened.mirror.as_ref());
        if mirror.is_none_or(|mirror| mirror.show(address, bytes).is_ok()) {
            self.memory.add(address, bytes, Kind::ManagedVariable);
        }
    }

    /// A variable is gone with its module.
    pub(crate) fn forget_variable(&self, address: u64) {
        let _ = self.memory.take(address, |kind| matches!(kind, Kind::Variable | Kind::ManagedVariable));
        if let Some(mirror) = self.opened().and_then(|opened| opened.mirror.as_ref()) {
            mirror.forget(address);
        }
    }

    /// Free and total bytes of the device.
    pub(crate) fn memory_left(&self) -> Outcome<(usize, usize)> {
        let memory = self.device()?.backend().memory();
        Ok((memory.limit.saturating_sub(memory.used) as usize, memory.limit as usize))
    }
}

/// Elements that textures and surfaces look at: rows of one pitch, slices of rows, in linear memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Array {
    /// Bits of the channels and their kind, as the program gave them.
    pub(crate) channels: [i32; 5],
    /// Width, height and depth in elements; 0 where there is no such axis.
    pub(crate) extent: [usize; 3],
    /// As the program gave them.
    pub(crate) flags: u32,
    /// Its memory.
    pub(crate) address: u64,
    /// Bytes of a row.
    pub(crate) pitch: usize,
}

impl Array {
    /// Bytes of an element.
    pub(crate) fn element_bytes(&self) -> usize {
        self.channels[..4].iter().map(|bits| (*bits).max(0) as usize).sum::<usize>() / 8
    }
}

impl Runtime {
    /// Memory for an array.
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

    /// Gives an array back; nothing, for handle 0.
    pub(crate) fn destroy_array(&self, handle: usize) -> Outcome {
        if handle == 0 {
            return self.device().map(drop);
        }
        let array = self.arrays.remove(handle)?;
        self.free(array.address)
    }
}
