//! Memory pools: their allocations, the location of their memory, and the current pools of device and host.
//!
//! Freed memory returns to the executor, which reuses it once all earlier work is done. Pools differ in their
//! counters and in their kind of memory, not in where free memory is kept.

use crate::handles::{Handle, Handles};
use crate::location::{MemLocation, check_device};
use crate::status::{Outcome, Status};
use crate::types::PoolProperties;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Kind of a pool's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PoolMemory {
    /// Device memory.
    Device,
    /// Host memory that the device can access.
    Host,
    /// Managed memory.
    Managed,
}

impl PoolMemory {
    /// Returns the kind for a location and a type of allocation (`cudaMemAllocationType`).
    pub(crate) fn new(location: MemLocation, kind: u32) -> Outcome<PoolMemory> {
        const PINNED: u32 = 1;
        const MANAGED: u32 = 2;
        match (kind, location.kind) {
            (PINNED, 1) => check_device(location.id).map(|()| PoolMemory::Device),
            (PINNED, 2) => Ok(PoolMemory::Host),
            (PINNED, 3) if location.id >= 0 => Ok(PoolMemory::Host),
            (MANAGED, 0 | 2) => Ok(PoolMemory::Managed),
            (MANAGED, 1) => check_device(location.id).map(|()| PoolMemory::Managed),
            (MANAGED, 3) if location.id >= 0 => Ok(PoolMemory::Managed),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    /// Returns the properties of the default pool.
    pub(crate) fn properties(self) -> PoolProperties {
        match self {
            PoolMemory::Device => PoolProperties::new(1, MemLocation { kind: 1, id: 0 }),
            PoolMemory::Host => PoolProperties::new(1, MemLocation { kind: 2, id: 0 }),
            PoolMemory::Managed => PoolProperties::new(2, MemLocation { kind: 0, id: 0 }),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Pool {
    /// Properties given by the program.
    pub(crate) properties: PoolProperties,
    pub(crate) memory: PoolMemory,
    /// True for a pool of another process. Only memory exported by that process can be obtained from it.
    pub(crate) imported: bool,
    /// Permissions to reuse memory: by events, opportunistically, by internal dependencies.
    pub(crate) reuse: [AtomicU32; 3],
    /// Release threshold in bytes.
    pub(crate) threshold: AtomicU64,
    pub(crate) used: AtomicU64,
    pub(crate) most_used: AtomicU64,
    /// Access flags granted in addition to the default ones.
    pub(crate) access: AtomicU32,
}

impl Pool {
    pub(crate) fn new(properties: PoolProperties, memory: PoolMemory, imported: bool) -> Pool {
        let reuse = [1, 1, 1].map(AtomicU32::new);
        let (threshold, used, most_used) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Pool { properties, memory, imported, reuse, threshold, used, most_used, access: AtomicU32::new(3) }
    }

    /// Returns the kind of the pool's memory.
    pub(crate) fn memory(&self) -> PoolMemory {
        self.memory
    }

    pub(crate) fn take(&self, bytes: u64) -> Outcome {
        let most = self.properties.most as u64;
        let more = |used: u64| used.checked_add(bytes).filter(|used| most == 0 || *used <= most);
        let before = self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).map_err(|_| Status::OUT_OF_MEMORY)?;
        self.most_used.fetch_max(before + bytes, Ordering::SeqCst);
        Ok(())
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// Returns an attribute. `kept` is the size in bytes of the free memory that the device keeps.
    pub(crate) fn value(&self, number: u32, kept: u64) -> Outcome<PoolValue> {
        let used = self.used.load(Ordering::SeqCst);
        let reserved = |used: u64| if self.memory == PoolMemory::Device { used + kept } else { used };
        Ok(match number {
            1..=3 => PoolValue::Int(self.reuse[number as usize - 1].load(Ordering::Relaxed) as i32),
            4 => PoolValue::Wide(self.threshold.load(Ordering::Relaxed)),
            5 => PoolValue::Wide(reserved(used)),
            6 => PoolValue::Wide(reserved(self.most_used.load(Ordering::SeqCst))),
            7 => PoolValue::Wide(used),
            8 => PoolValue::Wide(self.most_used.load(Ordering::SeqCst)),
            9 => PoolValue::Int(self.properties.kind as i32),
            10 => PoolValue::Int(if self.imported { 0 } else { self.properties.handles as i32 }),
            11 => PoolValue::Int(self.properties.location.id),
            12 => PoolValue::Int(self.properties.location.kind as i32),
            13 => PoolValue::Wide(self.properties.most as u64),
            14 => PoolValue::Int(0),
            15 => PoolValue::Int(-1),
            _ => return Err(Status::INVALID_VALUE),
        })
    }

    /// Sets an attribute: a reuse permission, the release threshold, or a reset of a high-water mark.
    pub(crate) fn set_value(&self, number: u32, value: PoolValue) -> Outcome {
        match (number, value) {
            (1..=3, PoolValue::Int(value)) => self.reuse[number as usize - 1].store(u32::from(value != 0), Ordering::Relaxed),
            (4, PoolValue::Wide(value)) => self.threshold.store(value, Ordering::Relaxed),
            (6 | 8, PoolValue::Wide(0)) => self.most_used.store(self.used.load(Ordering::SeqCst), Ordering::SeqCst),
            _ => return Err(Status::INVALID_VALUE),
        }
        Ok(())
    }
}

/// Value of a pool attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolValue {
    /// Value of type `int`.
    Int(i32),
    /// 64-bit value.
    Wide(u64),
}

/// Table of all pools.
#[derive(Debug)]
pub(crate) struct Pools {
    pub(crate) handles: Handles<Pool>,
    /// Default pools.
    pub(crate) defaults: Mutex<HashMap<PoolMemory, Handle>>,
    /// Current pools that replace the default ones.
    pub(crate) chosen: Mutex<HashMap<PoolMemory, Handle>>,
    /// Allocations from pools.
    pub(crate) taken: Mutex<HashMap<u64, (Arc<Pool>, u64)>>,
}

impl Pools {
    pub(crate) fn new() -> Pools {
        Pools { handles: Handles::new(15), defaults: Mutex::default(), chosen: Mutex::default(), taken: Mutex::default() }
    }

    pub(crate) fn chosen(&self) -> MutexGuard<'_, HashMap<PoolMemory, Handle>> {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn defaults(&self) -> MutexGuard<'_, HashMap<PoolMemory, Handle>> {
        self.defaults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn taken(&self) -> MutexGuard<'_, HashMap<u64, (Arc<Pool>, u64)>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the default pool of a kind of memory.
    pub(crate) fn default_of(&self, memory: PoolMemory) -> Handle {
        *self.defaults().entry(memory).or_insert_with(|| self.handles.insert(Pool::new(memory.properties(), memory, false)))
    }

    /// Returns the current pool of a kind of memory.
    pub(crate) fn current(&self, memory: PoolMemory) -> Handle {
        let chosen = self.chosen().get(&memory).copied();
        chosen.filter(|pool| self.handles.find(*pool).is_some()).unwrap_or_else(|| self.default_of(memory))
    }

    /// Returns memory to its pool, if it came from one. Returns the kind of that memory.
    pub(crate) fn forget(&self, address: u64) -> Option<PoolMemory> {
        let (pool, bytes) = self.taken().remove(&address)?;
        pool.give_back(bytes);
        Some(pool.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_gives_no_more_than_it_has() {
        let mut properties = PoolMemory::Device.properties();
        properties.most = 100;
        let pool = Pool::new(properties, PoolMemory::Device, false);
        assert_eq!((pool.take(60), pool.take(60), pool.take(40)), (Ok(()), Err(Status::OUT_OF_MEMORY), Ok(())));
        pool.give_back(60);
        assert_eq!((pool.used.load(Ordering::SeqCst), pool.most_used.load(Ordering::SeqCst)), (40, 100));
        assert_eq!(pool.set_value(8, PoolValue::Wide(7)), Err(Status::INVALID_VALUE));
        assert_eq!(pool.set_value(8, PoolValue::Wide(0)), Ok(()));
        assert_eq!(pool.most_used.load(Ordering::SeqCst), 40);
    }

    #[test]
    fn places_are_the_headers() {
        let place = |kind, id, allocation| PoolMemory::new(MemLocation { kind, id }, allocation);
        assert_eq!(
            (place(1, 0, 1), place(2, 5, 1), place(0, 0, 2)),
            (Ok(PoolMemory::Device), Ok(PoolMemory::Host), Ok(PoolMemory::Managed))
        );
        assert_eq!((place(1, 1, 1), place(0, 0, 1)), (Err(Status::INVALID_DEVICE), Err(Status::INVALID_VALUE)));
        assert_eq!((place(6, 0, 2), place(1, 0, 0)), (Err(Status::INVALID_VALUE), Err(Status::INVALID_VALUE)));
    }
}
