//! Device memory: allocations at addresses that are never reused.
//!
//! The address space, the same for every module (so that modules with 32-bit addresses fit below 4 GiB):
//!
//! | from | to | what |
//! | --- | --- | --- |
//! | `0x0010_0000` | `0xF000_0000` | global and constant memory, first part |
//! | `PARAM_BASE` | | the kernel's parameters |
//! | `LOCAL_BASE` | | the running thread's local memory |
//! | `SHARED_BASE` | | the running block's shared memory, then that of each block of its cluster, `CLUSTER_STRIDE` apart |
//! | `0x1_0000_0000` | `FUNCTION_BASE` | global and constant memory, the rest |
//! | `FUNCTION_BASE` | | functions, 16 bytes apart |
//!
//! There is a gap between two allocations, and a freed one keeps its addresses, so a stray access hits
//! nothing or freed memory, never a neighbour. *Adopted* host memory has the host's addresses, which may be
//! reused.

use crate::cta::Cta;
use broadloom_device::{Error, Result};

pub(crate) const PARAM_BASE: u64 = 0xF700_0000;
pub(crate) const LOCAL_BASE: u64 = 0xF800_0000;
pub const SHARED_BASE: u64 = 0xFF00_0000;
/// Distance between the shared memories of the blocks of a cluster, in the shared window and in shared
/// addresses: first that of the running block, then those of all blocks by rank.
pub(crate) const CLUSTER_STRIDE: u64 = 1 << 18;
const WINDOWS_END: u64 = 0x1_0000_0000;
/// Default first address of memory.
pub const FIRST: u64 = 0x0010_0000;
const LOW_END: u64 = 0xF000_0000;
pub const FUNCTION_BASE: u64 = 0x7fff_0000_0000;
const FUNCTION_BYTES: u64 = 1 << 24;
const ALIGN: u64 = 256;
pub const GAP: u64 = 4096;

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
    /// The state of grid-wide barriers.
    Workspace,
    /// Host memory, at the host's address.
    Host,
}

/// Contiguous range of addresses.
#[derive(Debug)]
pub struct Allocation {
    pub(crate) start: u64,
    pub(crate) size: u64,
    /// Contents; empty once freed.
    pub(crate) bytes: Vec<u8>,
    pub(crate) live: bool,
    pub(crate) owner: Owner,
    /// Number that is never reused, as a key for facts about allocations.
    pub(crate) serial: u64,
}

impl Allocation {
    /// Describes it for a message.
    pub(crate) fn describe(&self) -> String {
        let what = match &self.owner {
            Owner::Buffer => "a buffer".to_owned(),
            Owner::Global(name) => format!("the global variable `{name}`"),
            Owner::Const(name) => format!("the constant variable `{name}`"),
            Owner::Heap => "memory from malloc".to_owned(),
            Owner::Workspace => "the workspace of grid-wide barriers".to_owned(),
            Owner::Host => "memory of the host".to_owned(),
        };
        let dead = if self.live { "" } else { ", freed before" };
        format!("{what} of {} bytes at {:#x}{dead}", self.size, self.start)
    }
}

/// Reason why memory cannot be freed at an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFree {
    /// Memory that was freed before.
    #[error("{0:#x} was freed before")]
    Freed(u64),
    /// Address inside an allocation, which is described.
    #[error("{0:#x} is inside of {1}")]
    Inside(u64, String),
    /// Memory that was never allocated.
    #[error("{0:#x} was never allocated")]
    Unknown(u64),
}

/// Reason why an access is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// Outside all allocations; a sentence on the nearest one, and its start and size.
    OutOfBounds(String, Option<(u64, u64)>),
    /// Inside a freed one.
    Freed(String, (u64, u64)),
}

/// Allocates `size` zeros, if there is memory.
fn zeros(size: u64) -> Option<Vec<u8>> {
    let count = usize::try_from(size).ok()?;
    let mut bytes = vec![];
    bytes.try_reserve_exact(count).ok()?;
    bytes.resize(count, 0);
    Some(bytes)
}

/// All memory except shared, local and parameters.
#[derive(Debug)]
pub struct Memory {
    /// Allocations, sorted by start.
    allocations: Vec<Allocation>,
    /// Start and size of adopted host memory.
    adopted: Vec<(u64, u64)>,
    next: u64,
    used: u64,
    limit: u64,
    serial: u64,
    recent: usize,
    /// An ended block, whose threads are reused by the next launch.
    pub(crate) spare: Option<Cta>,
}

impl Memory {
    pub fn new(limit: u64, first: u64) -> Self {
        let next = first.clamp(FIRST, FUNCTION_BASE).next_multiple_of(ALIGN);
        Memory { allocations: vec![], adopted: vec![], next, used: 0, limit, serial: 0, recent: 0, spare: None }
    }

    pub fn used(&self) -> u64 {
        self.used
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub fn allocate(&mut self, size: u64, owner: Owner) -> Result<u64> {
        let out_of_memory = Error::OutOfMemory { requested: size, available: self.limit - self.used };
        if size > self.limit - self.used {
            return Err(out_of_memory);
        }
        let bytes = zeros(size).ok_or_else(|| out_of_memory.clone())?;
        let taken = size.max(1).next_multiple_of(ALIGN) + GAP;
        let mut start = self.next;
        loop {
            if start < LOW_END && start + taken > LOW_END {
                start = WINDOWS_END + GAP;
            }
            if start + taken > FUNCTION_BASE {
                return Err(out_of_memory);
            }
            // Adopted memory has a fixed address.
            match self.adopted.iter().find(|(at, bytes)| start < *at + *bytes + GAP && *at < start + taken) {
                Some((at, bytes)) => start = (at + bytes + GAP).next_multiple_of(ALIGN),
                None => break,
            }
        }
        self.next = start + taken;
        self.used += size;
        self.place(Allocation { start, size, bytes, live: true, owner, serial: 0 });
        Ok(start)
    }

    /// Adopts host memory at its own address, as zeros. It must not overlap existing memory.
    pub fn adopt(&mut self, address: u64, size: u64) -> Result<()> {
        let wrong = Error::BadAddress { call: "adopt", address, bytes: size };
        let end = address.checked_add(size).ok_or_else(|| wrong.clone())?;
        let touches = |start: u64, bytes: u64| start < end && address < start + bytes;
        let windows = touches(LOW_END, WINDOWS_END - LOW_END) || touches(FUNCTION_BASE, FUNCTION_BYTES);
        let taken = self.allocations.iter().any(|other| other.live && touches(other.start, other.size));
        if size == 0 || address < FIRST || windows || taken {
            return Err(wrong);
        }
        let out_of_memory = Error::OutOfMemory { requested: size, available: self.limit - self.used };
        let bytes = if size <= self.limit - self.used { zeros(size) } else { None }.ok_or(out_of_memory)?;
        self.allocations.retain(|other| other.live || !touches(other.start, other.size));
        self.adopted.push((address, size));
        self.used += size;
        self.place(Allocation { start: address, size, bytes, live: true, owner: Owner::Host, serial: 0 });
        Ok(())
    }

    /// Inserts an allocation.
    fn place(&mut self, mut allocation: Allocation) {
        self.serial += 1;
        allocation.serial = self.serial;
        let at = self.allocations.partition_point(|other| other.start < allocation.start);
        self.allocations.insert(at, allocation);
        self.recent = at;
    }

    /// Frees an allocation by its first address.
    pub fn free(&mut self, address: u64) -> std::result::Result<(), InvalidFree> {
        let index = self.index_at_or_below(address);
        match index.map(|index| &mut self.allocations[index]) {
            Some(found) if found.start == address && found.live => {
                found.live = false;
                found.bytes = vec![];
                self.used -= found.size;
                self.adopted.retain(|(at, _)| *at != address);
                self.trim();
                Ok(())
            }
            Some(found) if found.start == address => Err(InvalidFree::Freed(address)),
            Some(found) if address < found.start + found.size => Err(InvalidFree::Inside(address, found.describe())),
            _ => Err(InvalidFree::Unknown(address)),
        }
    }

    /// Removes the oldest freed allocations if there are very many, so that memory stays bounded.
    fn trim(&mut self) {
        const MOST_DEAD: usize = 100_000;
        if self.allocations.len() > 2 * MOST_DEAD {
            let dead = self.allocations.iter().filter(|a| !a.live).count();
            let mut drop = dead.saturating_sub(MOST_DEAD);
            self.allocations.retain(|a| {
                let keep = a.live || drop == 0;
                drop -= usize::from(!keep);
                keep
            });
            self.recent = 0;
        }
    }

    fn index_at_or_below(&self, address: u64) -> Option<usize> {
        self.allocations.partition_point(|a| a.start <= address).checked_sub(1)
    }

    /// Returns the live allocation that contains a range.
    pub fn find(&mut self, address: u64, size: u64) -> std::result::Result<&mut Allocation, AccessError> {
        let holds = |a: &Allocation| address >= a.start && address - a.start < a.size && a.size - (address - a.start) >= size;
        if self.allocations.get(self.recent).is_some_and(|a| a.live && holds(a)) {
            return Ok(&mut self.allocations[self.recent]);
        }
        let Some(index) = self.index_at_or_below(address) else { return Err(self.stray(address, size)) };
        let found = &self.allocations[index];
        if !holds(found) {
            return Err(self.stray(address, size));
        }
        if !found.live {
            return Err(AccessError::Freed(format!("{address:#x} is in {}", found.describe()), (found.start, found.size)));
        }
        self.recent = index;
        Ok(&mut self.allocations[index])
    }

    fn stray(&self, address: u64, size: u64) -> AccessError {
        if address < FIRST {
            return AccessError::OutOfBounds(format!("{address:#x} is near the null pointer"), None);
        }
        let below = self.index_at_or_below(address).map(|index| &self.allocations[index]);
        let above = self.allocations.get(self.allocations.partition_point(|a| a.start <= address));
        let near_below =
            below.filter(|a| address < a.start + a.size.next_multiple_of(ALIGN) + GAP / 2 || a.start + a.size > address);
        if let Some(found) = near_below {
            let end = found.start + found.size;
            let past = match address.checked_sub(end) {
                Some(0) => "right behind the end of".to_owned(),
                Some(gap) => format!("{gap} bytes behind the end of"),
                None => "partly behind the end of".to_owned(),
            };
            let why = format!("{size} bytes at {address:#x} are {past} {}", found.describe());
            return AccessError::OutOfBounds(why, Some((found.start, found.size)));
        }
        if let Some(found) = above.filter(|a| a.start - address <= GAP) {
            let why = format!("{address:#x} is {} bytes before {}", found.start - address, found.describe());
            return AccessError::OutOfBounds(why, Some((found.start, found.size)));
        }
        AccessError::OutOfBounds(format!("{address:#x} is not in any memory"), None)
    }

    /// Returns the serial number of the allocation that contains an address, and the offset in it.
    pub fn serial_of(&mut self, address: u64) -> Option<(u64, u64)> {
        self.find(address, 1).ok().map(|found| (found.serial, address - found.start))
    }

    /// Returns the bytes of a range, for copies of the host.
    pub fn range(&mut self, call: &'static str, address: u64, size: u64) -> Result<&mut [u8]> {
        if size == 0 {
            return Ok(&mut []);
        }
        let found = self.find(address, size).map_err(|_| Error::BadAddress { call, address, bytes: size })?;
        let start = (address - found.start) as usize;
        Ok(&mut found.bytes[start..start + size as usize])
    }
}
