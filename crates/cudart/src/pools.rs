//! Memory pools: creation, choice and allocation.

use crate::handles::Handle;
use crate::objects::memory::AllocationKind;
use crate::objects::pools::{Pool, PoolMemory, PoolValue};
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::types::PoolProperties;
use std::sync::Arc;

impl Runtime {
    /// Returns a pool by its handle.
    pub(crate) fn pool(&self, handle: Handle) -> Outcome<Arc<Pool>> {
        self.pools.handles.find(handle).ok_or(Status::INVALID_VALUE)
    }

    pub(crate) fn create_pool(&self, properties: PoolProperties) -> Outcome<Handle> {
        let memory = PoolMemory::new(properties.location, properties.kind)?;
        // Pools can only be shared through file descriptors.
        if properties.handles & !1 != 0 || properties.handles != 0 && (memory != PoolMemory::Device || !self.device()?.unified) {
            return Err(Status::NOT_SUPPORTED);
        }
        Ok(self.pools.handles.insert(Pool::new(properties, memory, false)))
    }

    /// Creates the local pool for a pool of another process.
    pub(crate) fn import_pool(&self) -> Handle {
        self.pools.handles.insert(Pool::new(PoolMemory::Device.properties(), PoolMemory::Device, true))
    }

    /// Destroys a pool, which may not be a default pool. Its allocations stay valid.
    pub(crate) fn destroy_pool(&self, handle: Handle) -> Outcome {
        if self.pools.defaults().values().any(|pool| *pool == handle) {
            return Err(Status::INVALID_VALUE);
        }
        self.pools.handles.remove(handle).map(drop).map_err(|_| Status::INVALID_VALUE)
    }

    /// Sets the current pool of a kind of memory. The pool must be of that kind.
    pub(crate) fn choose_pool(&self, memory: PoolMemory, handle: Handle) -> Outcome {
        let pool = self.pool(handle)?;
        if pool.memory != memory || pool.imported {
            return Err(Status::INVALID_VALUE);
        }
        self.pools.chosen().insert(memory, handle);
        Ok(())
    }

    /// Allocates memory from a pool.
    pub(crate) fn allocate_from(&self, pool: &Arc<Pool>, bytes: usize) -> Outcome<u64> {
        if pool.imported {
            return Err(Status::INVALID_VALUE);
        }
        self.device()?;
        pool.take(bytes as u64)?;
        let allocated = match pool.memory {
            PoolMemory::Device => self.allocate(bytes, AllocationKind::Device),
            PoolMemory::Managed => self.allocate(bytes, AllocationKind::Managed),
            PoolMemory::Host => self.allocate_host(bytes, 0).map(|address| address as u64),
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
    pub(crate) fn pool_value(&self, pool: &Pool, number: u32) -> Outcome<PoolValue> {
        pool.value(number, self.device()?.backend().memory().pooled)
    }
}
