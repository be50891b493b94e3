//! Stream-ordered allocation, and the memory pools behind it.

use crate::boundary::{Call, exported};
use crate::location::{MemLocation, check_device};
use crate::objects::pools::{Pool, PoolMemory, PoolValue};
use crate::objects::work::Work;
use crate::pointer::{In, Out};
use crate::status::{Outcome, Status};
use crate::types::PoolProperties;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn allocate(call: &Call, address: Out<u64>, bytes: usize, pool: &Arc<Pool>, stream: usize) -> Outcome {
    address.wanted()?;
    let stream = call.stream(stream)?;
    let start = call.runtime.allocate_from(pool, bytes)?;
    // A captured allocation belongs to the graph: it is the same memory at every launch.
    if call.runtime.note_in_capture(&stream, &Work::Allocated(start))? {
        call.runtime.memory.give_to_graph(start);
    }
    address.set(start)
}

/// Tests if an attribute is an `int`. The others have 64 bits.
fn is_int(number: u32) -> bool {
    matches!(number, 1..=3 | 9..=12 | 14 | 15)
}

exported! { runtime
    fn cudaMallocAsync / cudaMallocAsync_ptsz | cuMemAllocAsync / cuMemAllocAsync_ptsz(call, address: Out<u64>, bytes: usize, stream: usize) {
        let pool = call.runtime.pool(call.runtime.pools.current(PoolMemory::Device))?;
        allocate(call, address, bytes, &pool, stream)
    }

    fn cudaMallocFromPoolAsync / cudaMallocFromPoolAsync_ptsz | cuMemAllocFromPoolAsync / cuMemAllocFromPoolAsync_ptsz
    (call, address: Out<u64>, bytes: usize, pool: usize, stream: usize) {
        allocate(call, address, bytes, &call.runtime.pool(pool)?, stream)
    }

    /// Frees memory in stream order. Memory freed by a graph is kept for its next launch.
    fn cudaFreeAsync / cudaFreeAsync_ptsz | cuMemFreeAsync / cuMemFreeAsync_ptsz(call, address: u64, stream: usize) {
        let stream = call.stream(stream)?;
        if address == 0 {
            return Err(Status::INVALID_VALUE);
        }
        if call.runtime.note_in_capture(&stream, &Work::Freed(address))? {
            return Ok(());
        }
        call.runtime.free(address)
    }

    fn cudaDeviceGetDefaultMemPool | cuDeviceGetDefaultMemPool(call, pool: Out<usize>, device: i32)
        => call.runtime.device()?, check_device(device)?, pool.set(call.runtime.pools.default_of(PoolMemory::Device));
    fn cudaDeviceGetMemPool | cuDeviceGetMemPool(call, pool: Out<usize>, device: i32)
        => call.runtime.device()?, check_device(device)?, pool.set(call.runtime.pools.current(PoolMemory::Device));
    fn cudaDeviceSetMemPool | cuDeviceSetMemPool(call, device: i32, pool: usize)
        => check_device(device)?, call.runtime.choose_pool(PoolMemory::Device, pool);

    fn cudaMemGetDefaultMemPool | cuMemGetDefaultMemPool(call, pool: Out<usize>, location: In<MemLocation>, kind: u32) {
        call.runtime.device()?;
        let memory = PoolMemory::new(location.get()?, kind)?;
        pool.set(call.runtime.pools.default_of(memory))
    }

    fn cudaMemGetMemPool | cuMemGetMemPool(call, pool: Out<usize>, location: In<MemLocation>, kind: u32) {
        call.runtime.device()?;
        let memory = PoolMemory::new(location.get()?, kind)?;
        pool.set(call.runtime.pools.current(memory))
    }

    fn cudaMemSetMemPool | cuMemSetMemPool(call, location: In<MemLocation>, kind: u32, pool: usize)
        => call.runtime.device()?, call.runtime.choose_pool(PoolMemory::new(location.get()?, kind)?, pool);
    fn cudaMemPoolCreate | cuMemPoolCreate(call, pool: Out<usize>, properties: In<PoolProperties>)
        => call.runtime.device()?, pool.wanted()?, pool.set(call.runtime.create_pool(properties.get()?)?);
    fn cudaMemPoolDestroy | cuMemPoolDestroy(call, pool: usize) => call.runtime.destroy_pool(pool);
    fn cudaMemPoolTrimTo | cuMemPoolTrimTo(call, pool: usize, _keep: usize)
        => call.runtime.pool(pool)?, call.runtime.judge(call.runtime.device()?.backend().trim());

    fn cudaMemPoolGetAttribute | cuMemPoolGetAttribute(call, pool: usize, number: u32, value: Out<u64>) {
        match call.runtime.pool_value(&*call.runtime.pool(pool)?, number)? {
            PoolValue::Int(fact) => Out::at(value.address()).set(fact),
            PoolValue::Wide(fact) => value.set(fact),
        }
    }

    fn cudaMemPoolSetAttribute | cuMemPoolSetAttribute(call, pool: usize, number: u32, value: In<u64>) {
        let fact = if is_int(number) { PoolValue::Int(In::at(value.address()).get()?) } else { PoolValue::Wide(value.get()?) };
        call.runtime.pool(pool)?.set_value(number, fact)
    }

    /// Sets the access rights to a pool's memory. A device can always access its own memory.
    fn cudaMemPoolSetAccess | cuMemPoolSetAccess(call, pool: usize, list: In<[u32; 3]>, count: usize) {
        const NOBODY: u32 = 0;
        const READ_AND_WRITE: u32 = 3;
        let pool = call.runtime.pool(pool)?;
        for [kind, device, access] in list.get_all(count)? {
            check_device(device as i32)?;
            if kind != 1 || access != READ_AND_WRITE && (access != NOBODY || pool.memory() == PoolMemory::Device) {
                return Err(Status::INVALID_VALUE);
            }
            pool.access.store(access, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the access rights to a pool's memory: read and write, unless the program changed them.
    fn cudaMemPoolGetAccess | cuMemPoolGetAccess(call, flags: Out<u32>, pool: usize, location: In<MemLocation>) {
        const READ_AND_WRITE: u32 = 3;
        let (pool, location) = (call.runtime.pool(pool)?, location.get()?);
        match location.kind {
            1 => {
                check_device(location.id)?;
                flags.set(pool.access.load(Ordering::Relaxed))
            }
            2..=4 if pool.memory() != PoolMemory::Device => flags.set(READ_AND_WRITE),
            2..=4 => flags.set(0),
            _ => Err(Status::INVALID_VALUE),
        }
    }
}
