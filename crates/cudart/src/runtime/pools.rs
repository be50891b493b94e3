//! Memory in stream order. The device keeps one pool, whatever pools programs make; memory that is freed is used again when all work given
//! before is done.

use crate::boundary::{Call, exported};
use crate::device::check_device;
use crate::memory::Kind;
use crate::pointer::{In, Out};
use crate::status::{Outcome, Status};
use crate::types::MemLocation;
use crate::work::Work;
use std::sync::atomic::{AtomicU64, Ordering};

/// The pool that there is.
const DEFAULT_POOL: usize = 0x0b10_0a00_0000_0010;
/// Pools that programs made, numbered from here.
static MADE: AtomicU64 = AtomicU64::new(DEFAULT_POOL as u64);
/// How much memory programs want to be kept.
static THRESHOLD: AtomicU64 = AtomicU64::new(0);

pub(crate) fn check_pool(pool: usize) -> Outcome {
    let made = DEFAULT_POOL..=MADE.load(Ordering::Relaxed) as usize;
    if made.contains(&pool) { Ok(()) } else { Err(Status::INVALID_VALUE) }
}

pub(crate) fn create_pool() -> usize {
    MADE.fetch_add(16, Ordering::Relaxed) as usize + 16
}

pub(crate) fn default_pool() -> usize {
    DEFAULT_POOL
}

pub(crate) fn allocate(call: &Call, address: Out<u64>, bytes: usize, stream: usize) -> Outcome {
    address.wanted()?;
    let stream = call.stream(stream)?;
    let start = call.runtime.allocate(bytes, Kind::Device)?;
    // A captured allocation is the graph's: the same memory at every launch.
    if call.runtime.note_in_capture(&stream, &Work::Allocated(start))? {
        call.runtime.memory.give_to_graph(start);
    }
    address.set(start)
}

/// Gives memory back in stream order; what a graph frees stays for its next launch.
pub(crate) fn free(call: &Call, address: u64, stream: usize) -> Outcome {
    let stream = call.stream(stream)?;
    if address == 0 {
        return Err(Status::INVALID_VALUE);
    }
    if call.runtime.note_in_capture(&stream, &Work::Freed(address))? {
        return Ok(());
    }
    call.runtime.free(address)
}

pub(crate) fn attribute(call: &Call, attribute: u32, value: Out<u64>) -> Outcome {
    let memory = call.runtime.device()?.backend().memory();
    value.set(match attribute {
        // May reuse: by events, opportunistically, by dependencies. An `int` each.
        1..=3 => return Out::<u32>::at(value.address()).set(1),
        4 => THRESHOLD.load(Ordering::Relaxed),
        5 | 6 => memory.used + memory.pooled,
        7 | 8 => memory.used,
        _ => return Err(Status::INVALID_VALUE),
    })
}

pub(crate) fn set_attribute(attribute: u32, value: In<u64>) -> Outcome {
    match attribute {
        1..=3 => In::<u32>::at(value.address()).get().map(drop),
        4 => {
            THRESHOLD.store(value.get()?, Ordering::Relaxed);
            Ok(())
        }
        6 | 8 => Ok(()),
        _ => Err(Status::INVALID_VALUE),
    }
}

exported! { runtime
    /// Memory in stream order.
    fn cudaMallocAsync / cudaMallocAsync_ptsz(call, address: Out<u64>, bytes: usize, stream: usize) {
        allocate(call, address, bytes, stream)
    }

    /// The same, from a pool.
    fn cudaMallocFromPoolAsync / cudaMallocFromPoolAsync_ptsz(call, address: Out<u64>, bytes: usize, pool: usize, stream: usize) {
        check_pool(pool)?;
        allocate(call, address, bytes, stream)
    }

    /// Gives memory back in stream order.
    fn cudaFreeAsync / cudaFreeAsync_ptsz(call, address: u64, stream: usize) {
        free(call, address, stream)
    }

    /// The pool that a device has from the start.
    fn cudaDeviceGetDefaultMemPool(call, pool: Out<usize>, device: i32) {
        call.runtime.device()?;
        check_device(device)?;
        pool.set(DEFAULT_POOL)
    }

    /// The pool that a device uses.
    fn cudaDeviceGetMemPool(call, pool: Out<usize>, device: i32) {
        call.runtime.device()?;
        check_device(device)?;
        pool.set(DEFAULT_POOL)
    }

    /// Chooses the pool that a device uses; they are all one.
    fn cudaDeviceSetMemPool(_call, device: i32, pool: usize) {
        check_device(device)?;
        check_pool(pool)
    }

    /// Another name for the pool.
    fn cudaMemPoolCreate(call, pool: Out<usize>, properties: In<u64>) {
        call.runtime.device()?;
        properties.get()?;
        pool.wanted()?;
        pool.set(create_pool())
    }

    /// Gives a pool back.
    fn cudaMemPoolDestroy(_call, pool: usize) {
        if pool == DEFAULT_POOL { Err(Status::INVALID_VALUE) } else { check_pool(pool) }
    }

    /// Gives memory that is kept for later back to the system.
    fn cudaMemPoolTrimTo(call, pool: usize, _keep: usize) {
        check_pool(pool)?;
        call.runtime.judge(call.runtime.device()?.backend().trim())
    }

    /// A number of a pool.
    fn cudaMemPoolGetAttribute(call, pool: usize, number: u32, value: Out<u64>) {
        check_pool(pool)?;
        attribute(call, number, value)
    }

    /// Sets a number of a pool.
    fn cudaMemPoolSetAttribute(_call, pool: usize, number: u32, value: In<u64>) {
        check_pool(pool)?;
        set_attribute(number, value)
    }

    /// Who may use memory of a pool: everybody.
    fn cudaMemPoolSetAccess(_call, pool: usize, list: In<[u32; 3]>, count: usize) {
        check_pool(pool)?;
        list.get_all(count).map(drop)
    }

    /// The same: reading and writing.
    fn cudaMemPoolGetAccess(_call, flags: Out<u32>, pool: usize, location: In<MemLocation>) {
        check_pool(pool)?;
        location.get()?;
        flags.set(3)
    }
}
