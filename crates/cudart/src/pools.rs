//! Memory pools: their allocations, the location of their memory, and the current pools of device and host.
//!
//! Freed memory returns to the executor, which reuses it once all earlier work is done. Pools differ in their
//! counters and in their kind of memory, not in where free memory is kept.

use crate::handles::{Handle, Handles};
use crate::location::{MemLocation, check_device};
use crate::memory::Kind;
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::types::PoolProperties;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Kind of a pool's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// Device memory.
    Device,
    /// Host memory that the device can access.
    Host,
    /// Managed memory.
    Managed,
}

impl Place {
    /// Returns the kind for a location and a type of allocation (`cudaMemAllocationType`).
    pub(crate) fn new(location: MemLocation, kind: u32) -> Outcome<Place> {
        const PINNED: u32 = 1;
        const MANAGED: u32 = 2;
        match (kind, location.kind) {
            (PINNED, 1) => check_device(location.id).map(|()| Place::Device),
            (PINNED, 2) => Ok(Place::Host),
            (PINNED, 3) if location.id >= 0 => Ok(Place::Host),
            (MANAGED, 0 | 2) => Ok(Place::Managed),
            (MANAGED, 1) => check_device(location.id).map(|()| Place::Managed),
            (MANAGED, 3) if location.id >= 0 => Ok(Place::Managed),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    /// Returns the properties of the default pool.
    fn properties(self) -> PoolProperties {
        match self {
            Place::Device => PoolProperties::new(1, MemLocation { kind: 1, id: 0 }),
            Place::Host => PoolProperties::new(1, MemLocation { kind: 2, id: 0 }),
            Place::Managed => PoolProperties::new(2, MemLocation { kind: 0, id: 0 }),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Pool {
    /// Properties given by the program.
    pub(crate) properties: PoolProperties,
    place: Place,
    /// True for a pool of another process. Only memory exported by that process can be obtained from it.
    imported: bool,
    /// Permissions to reuse memory: by events, opportunistically, by internal dependencies.
    reuse: [AtomicU32; 3],
    /// Release threshold in bytes.
    threshold: AtomicU64,
    used: AtomicU64,
    most_used: AtomicU64,
    /// Access flags granted in addition to the default ones.
    pub(crate) access: AtomicU32,
}

impl Pool {
    fn new(properties: PoolProperties, place: Place, imported: bool) -> Pool {
        let reuse = [1, 1, 1].map(AtomicU32::new);
        let (threshold, used, most_used) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Pool { properties, place, imported, reuse, threshold, used, most_used, access: AtomicU32::new(3) }
    }

    /// Returns the kind of the pool's memory.
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    fn take(&self, bytes: u64) -> Outcome {
        let most = self.properties.most as u64;
        let more = |used: u64| used.checked_add(bytes).filter(|used| most == 0 || *used <= most);
        let before = self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).map_err(|_| Status::OUT_OF_MEMORY)?;
        self.most_used.fetch_max(before + bytes, Ordering::SeqCst);
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::SeqCst);
    }
}

/// Value of a pool attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    /// Value of type `int`.
    Int(i32),
    /// 64-bit value.
    Wide(u64),
}

/// Table of all pools.
#[derive(Debug)]
pub(crate) struct Pools {
    handles: Handles<Pool>,
    /// Default pools.
    defaults: Mutex<HashMap<Place, Handle>>,
    /// Current pools that replace the default ones.
    chosen: Mutex<HashMap<Place, Handle>>,
    /// Allocations from pools.
    taken: Mutex<HashMap<u64, (Arc<Pool>, u64)>>,
}

impl Pools {
    pub(crate) fn new() -> Pools {
        Pools { handles: Handles::new(15), defaults: Mutex::default(), chosen: Mutex::default(), taken: Mutex::default() }
    }

    fn chosen(&self) -> MutexGuard<'_, HashMap<Place, Handle>> {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn defaults(&self) -> MutexGuard<'_, HashMap<Place, Handle>> {
        self.defaults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<u64, (Arc<Pool>, u64)>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the default pool of a kind of memory.
    pub(crate) fn default_of(&self, place: Place) -> Handle {
        *self.defaults().entry(place).or_insert_with(|| self.handles.insert(Pool::new(place.properties(), place, false)))
    }

    /// Returns the current pool of a kind of memory.
    pub(crate) fn current(&self, place: Place) -> Handle {
        let chosen = self.chosen().get(&place).copied();
        chosen.filter(|pool| self.handles.find(*pool).is_some()).unwrap_or_else(|| self.default_of(place))
    }

    /// Returns memory to its pool, if it came from one. Returns the kind of that memory.
    pub(crate) fn forget(&self, address: u64) -> Option<Place> {
        let (pool, bytes) = self.taken().remove(&address)?;
        pool.give_back(bytes);
        Some(pool.place)
    }
}

impl Runtime {
    /// Returns a pool by its handle.
    pub(crate) fn pool(&self, handle: Handle) -> Outcome<Arc<Pool>> {
        self.pools.handles.find(handle).ok_or(Status::INVALID_VALUE)
    }

    /// Creates a pool.
    pub(crate) fn create_pool(&self, properties: PoolProperties) -> Outcome<Handle> {
        let place = Place::new(properties.location, properties.kind)?;
        // Pools can only be shared through file descriptors.
        if properties.handles & !1 != 0 || properties.handles != 0 && (place != Place::Device || !self.device()?.unified) {
            return Err(Status::NOT_SUPPORTED);
        }
        Ok(self.pools.handles.insert(Pool::new(properties, place, false)))
    }

    /// Creates the local pool for a pool of another process.
    pub(crate) fn import_pool(&self) -> Handle {
        self.pools.handles.insert(Pool::new(Place::Device.properties(), Place::Device, true))
    }

    /// Destroys a pool, which may not be a default pool. Its allocations stay valid.
    pub(crate) fn destroy_pool(&self, handle: Handle) -> Outcome {
        if self.pools.defaults().values().any(|pool| *pool == handle) {
            return Err(Status::INVALID_VALUE);
        }
        self.pools.handles.remove(handle).map(drop).map_err(|_| Status::INVALID_VALUE)
    }

    /// Sets the current pool of a kind of memory. The pool must be of that kind.
    pub(crate) fn choose_pool(&self, place: Place, handle: Handle) -> Outcome {
        let pool = self.pool(handle)?;
        if pool.place != place || pool.imported {
            return Err(Status::INVALID_VALUE);
        }
        self.pools.chosen().insert(place, handle);
        Ok(())
    }

    /// Allocates memory from a pool.
    pub(crate) fn allocate_from(&self, pool: &Arc<Pool>, bytes: usize) -> Outcome<u64> {
        if pool.imported {
            return Err(Status::INVALID_VALUE);
        }
        self.device()?;
        pool.take(bytes as u64)?;
        let allocated = match pool.place {
            Place::Device => self.allocate(bytes, Kind::Device),
            Place::Managed => self.allocate(bytes, Kind::Managed),
            Place::Host => self.allocate_host(bytes, 0).map(|address| address as u64),
        };
        match allocated {
            Ok(address) if address != 0 => {
                self.pools.taken().insert(address, (pool.clone(), bytes as u64));
            }
            Ok(_) | Err(_) => pool.give_back(bytes as u64),
        }
        allocated
    }

    /// Returns an attribute of a pool.
    pub(crate) fn pool_fact(&self, pool: &Pool, number: u32) -> Outcome<Fact> {
        let kept = self.device()?.backend().memory().pooled;
        let used = pool.used.load(Ordering::SeqCst);
        let reserved = |used: u64| if pool.place == Place::Device { used + kept } else { used };
        Ok(match number {
            1..=3 => Fact::Int(pool.reuse[number as usize - 1].load(Ordering::Relaxed) as i32),
            4 => Fact::Wide(pool.threshold.load(Ordering::Relaxed)),
            5 => Fact::Wide(reserved(used)),
            6 => Fact::Wide(reserved(pool.most_used.load(Ordering::SeqCst))),
            7 => Fact::Wide(used),
            8 => Fact::Wide(pool.most_used.load(Ordering::SeqCst)),
            9 => Fact::Int(pool.properties.kind as i32),
            10 => Fact::Int(if pool.imported { 0 } else { pool.properties.handles as i32 }),
            11 => Fact::Int(pool.properties.location.id),
            12 => Fact::Int(pool.properties.location.kind as i32),
            13 => Fact::Wide(pool.properties.most as u64),
            14 => Fact::Int(0),
            15 => Fact::Int(-1),
            _ => return Err(Status::INVALID_VALUE),
        })
    }
}

impl Pool {
    /// Sets an attribute: a reuse permission, the release threshold, or a reset of a high-water mark.
    pub(crate) fn set_fact(&self, number: u32, value: Fact) -> Outcome {
        match (number, value) {
            (1..=3, Fact::Int(value)) => self.reuse[number as usize - 1].store(u32::from(value != 0), Ordering::Relaxed),
            (4, Fact::Wide(value)) => self.threshold.store(value, Ordering::Relaxed),
            (6 | 8, Fact::Wide(0)) => self.most_used.store(self.used.load(Ordering::SeqCst), Ordering::SeqCst),
            _ => return Err(Status::INVALID_VALUE),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_gives_no_more_than_it_has() {
        let mut properties = Place::Device.properties();
        properties.most = 100;
        let pool = Pool::new(properties, Place::Device, false);
        assert_eq!((pool.take(60), pool.take(60), pool.take(40)), (Ok(()), Err(Status::OUT_OF_MEMORY), Ok(())));
        pool.give_back(60);
        assert_eq!((pool.used.load(Ordering::SeqCst), pool.most_used.load(Ordering::SeqCst)), (40, 100));
        assert_eq!(pool.set_fact(8, Fact::Wide(7)), Err(Status::INVALID_VALUE));
        assert_eq!(pool.set_fact(8, Fact::Wide(0)), Ok(()));
        assert_eq!(pool.most_used.load(Ordering::SeqCst), 40);
    }

    #[test]
    fn places_are_the_headers() {
        let place = |kind, id, allocation| Place::new(MemLocation { kind, id }, allocation);
        assert_eq!((place(1, 0, 1), place(2, 5, 1), place(0, 0, 2)), (Ok(Place::Device), Ok(Place::Host), Ok(Place::Managed)));
        assert_eq!((place(1, 1, 1), place(0, 0, 1)), (Err(Status::INVALID_DEVICE), Err(Status::INVALID_VALUE)));
        assert_eq!((place(6, 0, 2), place(1, 0, 0)), (Err(Status::INVALID_VALUE), Err(Status::INVALID_VALUE)));
    }
}
