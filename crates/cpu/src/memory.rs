//! Memory of the device: host memory with a limit, released when no work can access it any more.
//!
//! Large buffers are separate mappings between guards; small ones come from slabs of one size each. All are
//! aligned to 256 bytes. Around a mapping there may be slack that kernels can access and that belongs to no
//! buffer ([`crate::Options::slack_bytes`]). Freed mappings wait in a pool for the next buffer of their size.
//! The pool is emptied before an allocation fails. **A registry knows every live allocation: a range that is
//! not inside one is an error. A freed allocation leaves the registry at once. Its memory is released only
//! when all work submitted before is done ([`Memory::free`], [`Memory::reap`]). Only work that follows in the
//! same stream may reuse it earlier ([`Memory::take_over`]).**

use crate::map::{Mapping, Pages, page_bytes};
use broadloom_device::{Error, MemoryUse, Result};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Alignment of every allocation.
const ALIGN: u64 = 256;
/// Number of sizes of small allocations: 256 bytes shifted by the class.
const CLASSES: usize = 9;
/// Maximum bytes of a small allocation.
const MAX_SMALL: u64 = ALIGN << (CLASSES - 1);
/// Bytes of a slab.
const SLAB: u64 = 1 << 20;
/// Number of freed allocations that are remembered for messages.
const REMEMBERED: usize = 64;

/// Maximum number of allocations waiting for work that are searched for one to take over.
const LOOKED_AT: usize = 64;

/// Returns the class of a small allocation.
fn class_of(bytes: u64) -> usize {
    bytes.max(1).div_ceil(ALIGN).next_power_of_two().trailing_zeros() as usize
}

/// Returns the sizes of mappings that are large enough and not much larger.
fn fitting(size: usize) -> RangeInclusive<usize> {
    size..=size.saturating_add(size / 8)
}

/// Purpose of an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A buffer of the host.
    Buffer,
    /// A global variable.
    Global(String),
    /// A constant variable.
    Const(String),
    /// Memory that a kernel allocated with `malloc`.
    Heap,
    /// State of grid-wide barriers.
    Workspace,
}

/// Memory that an allocation is in.
#[derive(Debug)]
enum AllocationPlace {
    /// Element of a slab, by class.
    Slab(usize),
    /// Separate mapping.
    Own(Mapping),
}

#[derive(Debug)]
struct Allocation {
    bytes: u64,
    owner: Owner,
    place: AllocationPlace,
}

impl Allocation {
    /// Returns the bytes that it takes of the limit.
    fn taken(&self) -> u64 {
        match &self.place {
            AllocationPlace::Slab(class) => ALIGN << class,
            AllocationPlace::Own(mapping) => mapping.bytes() as u64,
        }
    }
}

fn describe(start: u64, bytes: u64, owner: &Owner, dead: bool) -> String {
    let what = match owner {
        Owner::Buffer => "a buffer".to_owned(),
        Owner::Global(name) => format!("the global variable `{name}`"),
        Owner::Const(name) => format!("the constant variable `{name}`"),
        Owner::Heap => "memory from malloc".to_owned(),
        Owner::Workspace => "the workspace of grid-wide barriers".to_owned(),
    };
    let dead = if dead { ", freed before" } else { "" };
    format!("{what} of {bytes} bytes at {start:#x}{dead}")
}

/// Allocation that waits for work to end.
#[derive(Debug)]
struct DyingAllocation {
    /// Number below which work may still access it.
    before: u64,
    start: u64,
    allocation: Allocation,
}

#[derive(Debug, Default)]
struct AllocationState {
    live: BTreeMap<u64, Allocation>,
    dying: VecDeque<DyingAllocation>,
    /// Last freed allocations: start, bytes and owner.
    remembered: VecDeque<(u64, u64, Owner)>,
    slabs: Vec<Mapping>,
    free_small: [Vec<u64>; CLASSES],
    /// Free mappings by size.
    pool: BTreeMap<usize, Vec<Mapping>>,
    pooled: u64,
    used: u64,
    /// Accessible bytes on either side of a mapping.
    slack: usize,
    heap_left: u64,
}

/// Surroundings of an address, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressSurroundings {
    /// Inside or after a freed allocation.
    Freed(String),
    /// Outside all allocations, and near one or the null pointer; a sentence.
    Outside(String),
    /// Near no allocation.
    Nowhere,
}

/// Invalid `free` of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFree {
    /// Address inside an allocation, which is described.
    #[error("{0:#x} is inside of {1}")]
    Inside(u64, String),
    /// Memory that `malloc` did not return.
    #[error("{0:#x} did not come from malloc")]
    NotOfHeap(u64),
    /// Memory that was freed before.
    #[error("{0:#x} was freed before")]
    Freed(u64),
    /// Memory that was never allocated.
    #[error("{0:#x} was never allocated")]
    Unknown(u64),
}

/// All memory except shared and local.
#[derive(Debug)]
pub struct Memory {
    limit: u64,
    state: Mutex<AllocationState>,
}

impl Memory {
    /// Creates memory in which kernels may access `slack` bytes before and after a mapping.
    pub fn new(limit: u64, heap_bytes: u64, slack: usize) -> Memory {
        Memory { limit, state: Mutex::new(AllocationState { heap_left: heap_bytes, slack, ..AllocationState::default() }) }
    }

    /// Locks the state. A panic while it was held leaves it usable: each change is complete before anything
    /// can fail.
    fn state(&self) -> MutexGuard<'_, AllocationState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates `bytes` bytes with unspecified contents.
    pub fn allocate(&self, bytes: u64, owner: Owner) -> Result<u64> {
        self.state().allocate(bytes, owner, self.limit)
    }

    /// Runs an action that allocates. If there is no memory, it is run again: after `wait`, if freed memory waits
    /// for work; else at once, because work may have ended and released memory since the first try.
    pub fn retried<T>(&self, allocate: impl Fn() -> Result<T>, wait: impl FnOnce()) -> Result<T> {
        match allocate() {
            Err(Error::OutOfMemory { .. }) => {
                if self.has_dying() {
                    wait();
                }
                allocate()
            }
            outcome => outcome,
        }
    }

    /// Takes over an allocation of `bytes` bytes that was freed and still waits for work. The last freed one
    /// is taken, which is still in caches.
    pub(crate) fn take_over(&self, bytes: u64) -> Option<u64> {
        self.state().take_over(bytes)
    }

    /// Allocates zeroed memory.
    pub(crate) fn allocate_zeroed(&self, bytes: u64, owner: Owner) -> Result<u64> {
        let address = self.allocate(bytes, owner)?;
        // SAFETY: the allocation is new, has `bytes` bytes, and nobody else knows its address.
        unsafe { std::ptr::write_bytes(address as *mut u8, 0, bytes as usize) };
        Ok(address)
    }

    /// Removes an allocation from the registry. Its memory is kept until [`Memory::release_after`] says which work
    /// must be done first.
    pub fn free(&self, address: u64) -> Result<FreedAllocation> {
        let mut state = self.state();
        match state.live.get(&address) {
            Some(found) if found.owner != Owner::Heap => {}
            _ => return Err(Error::BadAddress { call: "free", address, bytes: 0 }),
        }
        match state.live.remove(&address) {
            Some(allocation) => {
                state.remember(address, &allocation);
                Ok(FreedAllocation { start: address, allocation })
            }
            None => Err(Error::BadAddress { call: "free", address, bytes: 0 }),
        }
    }

    /// Releases the memory of a freed allocation once all work below a number is done; at once if there is
    /// none.
    pub fn release_after(&self, freed: FreedAllocation, before: Option<u64>) {
        let mut state = self.state();
        match before {
            None => state.release(freed.start, freed.allocation, self.limit),
            Some(before) => state.dying.push_back(DyingAllocation { before, start: freed.start, allocation: freed.allocation }),
        }
    }

    /// Releases the memory that waited for finished work. All work with a number below `oldest` is done.
    pub fn reap(&self, oldest: u64) {
        let mut state = self.state();
        while let Some(first) = state.dying.front() {
            if oldest < first.before {
                break;
            }
            if let Some(dying) = state.dying.pop_front() {
                state.release(dying.start, dying.allocation, self.limit);
            }
        }
    }

    /// Returns whether memory waits for work to end.
    pub fn has_dying(&self) -> bool {
        !self.state().dying.is_empty()
    }

    /// Returns the bytes in use and in the pool.
    pub fn usage(&self) -> MemoryUse {
        let state = self.state();
        MemoryUse { used: state.used, pooled: state.pooled, limit: self.limit }
    }

    /// Releases all memory of the pool to the host.
    pub(crate) fn empty_pool(&self) {
        self.state().shrink_pool(0);
    }

    /// Checks that a range is inside a live allocation and returns its first byte.
    pub fn range(&self, call: &'static str, address: u64, bytes: u64) -> Result<*mut u8> {
        if bytes == 0 {
            return Ok(std::ptr::NonNull::dangling().as_ptr());
        }
        let state = self.state();
        let found = state.live.range(..=address).next_back();
        match found {
            Some((start, allocation)) if address - start < allocation.bytes && allocation.bytes - (address - start) >= bytes => {
                Ok(address as *mut u8)
            }
            _ => Err(Error::BadAddress { call, address, bytes }),
        }
    }

    /// Returns the start of the buffer that contains an address.
    pub(crate) fn start_of(&self, address: u64) -> Option<u64> {
        let state = self.state();
        let (start, allocation) = state.live.range(..=address).next_back()?;
        (address - start < allocation.bytes).then_some(*start)
    }

    /// Returns the allocation that contains an address, and whether a kernel allocated it.
    pub(crate) fn containing(&self, address: u64) -> Option<(Range<u64>, bool)> {
        let state = self.state();
        let (start, allocation) = state.live.range(..=address).next_back()?;
        (address - start < allocation.bytes).then(|| (*start..*start + allocation.bytes, allocation.owner == Owner::Heap))
    }

    /// Returns whether a range lies in the mappings of allocations or in the slack around them.
    pub(crate) fn is_accessible(&self, address: u64, bytes: u64) -> bool {
        let state = self.state();
        let slack = state.slack as u64;
        let holds = |mapping: &Mapping| {
            let (start, end) = (mapping.start() as u64 - slack, mapping.start() as u64 + mapping.bytes() as u64 + slack);
            address >= start && address.checked_add(bytes).is_some_and(|last| last <= end)
        };
        let own = |allocation: &Allocation| match &allocation.place {
            AllocationPlace::Own(mapping) => holds(mapping),
            AllocationPlace::Slab(_) => false,
        };
        let below = state.live.range(..=address).next_back().is_some_and(|(_, allocation)| own(allocation));
        below
            || state.live.range(address..).next().is_some_and(|(_, allocation)| own(allocation))
            || state.slabs.iter().any(holds)
    }

    /// Implements `malloc` of a kernel; zero if there is no memory.
    pub fn heap_allocate(&self, bytes: u64) -> u64 {
        let mut state = self.state();
        if bytes == 0 || bytes > state.heap_left {
            return 0;
        }
        let Ok(address) = state.allocate(bytes, Owner::Heap, self.limit) else { return 0 };
        state.heap_left -= bytes;
        address
    }

    /// Implements `free` of a kernel.
    pub fn heap_free(&self, address: u64) -> std::result::Result<(), InvalidFree> {
        if address == 0 {
            return Ok(());
        }
        let mut state = self.state();
        match state.live.range(..=address).next_back() {
            Some((start, found)) if *start == address && found.owner == Owner::Heap => {}
            Some((start, found)) if address - start < found.bytes.max(1) => {
                return Err(match found.owner {
                    Owner::Heap => InvalidFree::Inside(address, describe(*start, found.bytes, &found.owner, false)),
                    Owner::Buffer | Owner::Global(_) | Owner::Const(_) | Owner::Workspace => InvalidFree::NotOfHeap(address),
                });
            }
            _ if state.remembered.iter().any(|(start, ..)| *start == address) => {
                return Err(InvalidFree::Freed(address));
            }
            _ => return Err(InvalidFree::Unknown(address)),
        }
        if let Some(allocation) = state.live.remove(&address) {
            state.heap_left += allocation.bytes;
            state.remember(address, &allocation);
            state.release(address, allocation, self.limit);
        }
        Ok(())
    }

    /// Describes the surroundings of an address that faulted.
    pub fn near(&self, address: u64) -> AddressSurroundings {
        const FAR: u64 = 1 << 20;
        let state = self.state();
        if address < 1 << 16 {
            return AddressSurroundings::Outside(format!("{address:#x} is near the null pointer"));
        }
        let dead = state.remembered.iter().rev().find(|(start, bytes, _)| (*start..start + bytes).contains(&address));
        if let Some((start, bytes, owner)) = dead {
            return AddressSurroundings::Freed(format!("{address:#x} is in {}", describe(*start, *bytes, owner, true)));
        }
        if let Some((start, found)) = state.live.range(..=address).next_back()
            && let Some(gap) = address.checked_sub(start + found.bytes)
            && gap < FAR
        {
            let past = if gap == 0 { "right behind".to_owned() } else { format!("{gap} bytes behind") };
            return AddressSurroundings::Outside(format!(
                "{address:#x} is {past} the end of {}",
                describe(*start, found.bytes, &found.owner, false)
            ));
        }
        if let Some((start, found)) = state.live.range(address..).next().filter(|(start, _)| **start - address < FAR) {
            let what = describe(*start, found.bytes, &found.owner, false);
            return AddressSurroundings::Outside(format!("{address:#x} is {} bytes before {what}", start - address));
        }
        AddressSurroundings::Nowhere
    }
}

/// Allocation that has left the registry.
#[derive(Debug)]
pub struct FreedAllocation {
    start: u64,
    allocation: Allocation,
}

impl FreedAllocation {
    /// Returns its size.
    pub(crate) fn bytes(&self) -> u64 {
        self.allocation.bytes
    }
}

impl AllocationState {
    fn allocate(&mut self, bytes: u64, owner: Owner, limit: u64) -> Result<u64> {
        let available = limit.saturating_sub(self.used);
        let refused = Error::OutOfMemory { requested: bytes, available };
        if bytes <= MAX_SMALL {
            let class = class_of(bytes);
            let taken = ALIGN << class;
            if taken > available {
                return Err(refused);
            }
            if self.free_small[class].is_empty() {
                let slab = Mapping::with_slack(SLAB as usize, Pages::Data, self.slack).map_err(|_| refused.clone())?;
                let start = slab.start() as u64;
                // Taken from the end: the lowest is allocated first.
                self.free_small[class].extend((0..SLAB / taken).rev().map(|index| start + index * taken));
                self.slabs.push(slab);
            }
            let Some(address) = self.free_small[class].pop() else { return Err(refused) };
            self.used += taken;
            self.live.insert(address, Allocation { bytes, owner, place: AllocationPlace::Slab(class) });
            return Ok(address);
        }
        let size =
            usize::try_from(bytes).ok().and_then(|size| size.checked_next_multiple_of(page_bytes())).ok_or(refused.clone())?;
        if size as u64 > available {
            return Err(refused);
        }
        let mapping = match self.take_pooled(size) {
            Some(mapping) => mapping,
            None => {
                self.shrink_pool(available - size as u64);
                let mapping = Mapping::with_slack(size, Pages::Data, self.slack);
                // The host may have no space for more mappings while the pool holds some.
                let again = |_| {
                    self.shrink_pool(0);
                    Mapping::with_slack(size, Pages::Data, self.slack)
                };
                mapping.or_else(again).map_err(|_| refused)?
            }
        };
        self.used += mapping.bytes() as u64;
        let address = mapping.start() as u64;
        self.live.insert(address, Allocation { bytes, owner, place: AllocationPlace::Own(mapping) });
        Ok(address)
    }

    fn take_over(&mut self, bytes: u64) -> Option<u64> {
        let size = usize::try_from(bytes).ok()?.checked_next_multiple_of(page_bytes())?;
        let fits = |dying: &DyingAllocation| match &dying.allocation.place {
            AllocationPlace::Slab(class) => bytes <= MAX_SMALL && *class == class_of(bytes),
            AllocationPlace::Own(mapping) => bytes > MAX_SMALL && fitting(size).contains(&mapping.bytes()),
        };
        let (index, _) = self.dying.iter().enumerate().rev().take(LOOKED_AT).find(|(_, dying)| fits(dying))?;
        let DyingAllocation { start, mut allocation, .. } = self.dying.remove(index)?;
        (allocation.bytes, allocation.owner) = (bytes, Owner::Buffer);
        self.live.insert(start, allocation);
        Some(start)
    }

    /// Takes a pooled mapping that is large enough and not much larger.
    fn take_pooled(&mut self, size: usize) -> Option<Mapping> {
        let found = self.pool.range(fitting(size)).next().map(|(size, _)| *size)?;
        let list = self.pool.get_mut(&found)?;
        let mapping = list.pop()?;
        if list.is_empty() {
            self.pool.remove(&found);
        }
        self.pooled -= mapping.bytes() as u64;
        Some(mapping)
    }

    /// Releases pooled mappings, the largest first, until `to` bytes are left.
    fn shrink_pool(&mut self, to: u64) {
        while self.pooled > to {
            let Some(mut last) = self.pool.last_entry() else { break };
            if let Some(mapping) = last.get_mut().pop() {
                self.pooled -= mapping.bytes() as u64;
            }
            if last.get().is_empty() {
                last.remove();
            }
        }
    }

    fn remember(&mut self, start: u64, allocation: &Allocation) {
        self.remembered.push_back((start, allocation.bytes, allocation.owner.clone()));
        if self.remembered.len() > REMEMBERED {
            self.remembered.pop_front();
        }
    }

    fn release(&mut self, start: u64, allocation: Allocation, limit: u64) {
        self.used -= allocation.taken();
        match allocation.place {
            AllocationPlace::Slab(class) => self.free_small[class].push(start),
            AllocationPlace::Own(mapping) => {
                self.pooled += mapping.bytes() as u64;
                self.pool.entry(mapping.bytes()).or_default().push(mapping);
                self.shrink_pool((limit / 4).min(limit.saturating_sub(self.used)));
            }
        }
    }
}

/// Memory beyond the device's own that kernels may access: returns the whole range that contains an address.
#[derive(Clone)]
pub struct Foreign(Arc<dyn Fn(u64) -> Option<Range<u64>> + Send + Sync>);

impl Foreign {
    /// Creates it from a function, which is called while kernels run and must not wait for them.
    pub fn new(find: impl Fn(u64) -> Option<Range<u64>> + Send + Sync + 'static) -> Foreign {
        Foreign(Arc::new(find))
    }

    /// Returns the range that contains an address, if there is one.
    pub(crate) fn containing(&self, address: u64) -> Option<Range<u64>> {
        (self.0)(address)
    }
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Foreign")
    }
}
