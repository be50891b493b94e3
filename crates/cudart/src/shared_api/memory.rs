//! Device, host, managed and registered memory, and attributes of pointers.

use crate::boundary::{Call, exported};
use crate::location::MemLocation;
use crate::objects::advice::Advice;
use crate::objects::memory::{AllocationKind, PITCH};
use crate::objects::work::Work;
use crate::pointer::{In, Out};
use crate::state::Runtime;
use crate::status::{Outcome, Status};

pub(crate) fn pitched(runtime: &Runtime, width: usize, rows: usize) -> Outcome<(u64, usize)> {
    let pitch = width.checked_next_multiple_of(PITCH).ok_or(Status::INVALID_VALUE)?;
    let bytes = pitch.checked_mul(rows).ok_or(Status::OUT_OF_MEMORY)?;
    Ok((runtime.allocate(bytes, AllocationKind::Device)?, pitch))
}

/// Allocates pitched memory, for the runtime and the driver.
pub(crate) fn allocate_pitched(runtime: &Runtime, address: Out<u64>, pitch: Out<usize>, width: usize, height: usize) -> Outcome {
    address.wanted()?;
    pitch.wanted()?;
    let (start, bytes) = pitched(runtime, width, height)?;
    address.set(start)?;
    pitch.set(bytes)
}

pub(crate) fn advise(call: &Call, address: u64, bytes: usize, advice: u32, location: MemLocation) -> Outcome {
    call.runtime.advise(address, bytes as u64, Advice::new(advice, location)?)
}

/// Records a prefetch. Managed memory is accessible everywhere, so nothing is moved.
pub(crate) fn prefetch(call: &Call, address: u64, bytes: usize, location: MemLocation, stream: usize) -> Outcome {
    let stream = call.stream(stream)?;
    call.runtime.advise(address, bytes as u64, Advice::Fetched(location.checked()?))?;
    call.runtime.submit(&stream, Work::Empty)
}

pub(crate) fn range_attribute(call: &Call, data: Out<i32>, bytes: usize, attribute: u32, address: u64, count: usize) -> Outcome {
    data.wanted()?;
    if bytes == 0 || !bytes.is_multiple_of(4) {
        return Err(Status::INVALID_VALUE);
    }
    data.set_all(&call.runtime.range_attribute(attribute, address, count as u64, bytes / 4)?)
}

exported! { runtime
    fn cudaFree | cuMemFree_v2(call, address: u64) => call.runtime.free(address);

    /// Allocates managed memory, which has one address for host and device.
    fn cudaMallocManaged | cuMemAllocManaged(call, address: Out<u64>, bytes: usize, flags: u32) {
        address.wanted()?;
        if bytes == 0 || !(flags == 1 || flags == 2) {
            return Err(Status::INVALID_VALUE);
        }
        address.set(call.runtime.allocate(bytes, AllocationKind::Managed)?)
    }

    fn cudaMallocHost | cuMemAllocHost_v2(call, address: Out<usize>, bytes: usize)
        => address.set_by(|| call.runtime.allocate_host(bytes, 0));
    fn cudaFreeHost | cuMemFreeHost(call, address: u64) => call.runtime.free_host(address);
    fn cudaHostUnregister | cuMemHostUnregister(call, address: u64) => call.runtime.unregister_host(address);

    fn cudaMemGetInfo | cuMemGetInfo_v2(call, free: Out<usize>, total: Out<usize>) {
        let (left, all) = call.runtime.memory_left()?;
        free.set(left)?;
        total.set(all)
    }

    /// Records advice on managed memory, with a location.
    fn cudaMemAdvise_v2 | cuMemAdvise_v2(call, address: u64, bytes: usize, advice: u32, location: MemLocation)
        => advise(call, address, bytes, advice, location);

    /// Prefetches managed memory, with a location.
    fn cudaMemPrefetchAsync_v2 / cudaMemPrefetchAsync_v2_ptsz | cuMemPrefetchAsync_v2 / cuMemPrefetchAsync_v2_ptsz
    (call, address: u64, bytes: usize, location: MemLocation, flags: u32, stream: usize) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        prefetch(call, address, bytes, location, stream)
    }

    /// Accepts the stream that uses managed memory. All streams may use it.
    fn cudaStreamAttachMemAsync / cudaStreamAttachMemAsync_ptsz | cuStreamAttachMemAsync / cuStreamAttachMemAsync_ptsz(call, stream: usize, address: u64, _bytes: usize, _flags: u32) {
        let stream = call.stream(stream)?;
        call.runtime.memory.find(address).ok_or(Status::INVALID_VALUE)?;
        call.runtime.submit(&stream, Work::Empty)
    }

    fn cudaMemRangeGetAttribute | cuMemRangeGetAttribute(call, data: Out<i32>, bytes: usize, attribute: u32, address: u64, count: usize)
        => range_attribute(call, data, bytes, attribute, address, count);

    fn cudaMemRangeGetAttributes | cuMemRangeGetAttributes(call, places: In<usize>, sizes: In<usize>, attributes: In<u32>, count: usize, address: u64, bytes: usize) {
        let all = places.get_all(count)?.into_iter().zip(sizes.get_all(count)?).zip(attributes.get_all(count)?);
        all.into_iter().try_for_each(|((place, size), attribute)| range_attribute(call, Out::at(place), size, attribute, address, bytes))
    }

    fn cudaHostGetFlags | cuMemHostGetFlags(call, flags: Out<u32>, host: u64) {
        call.runtime.device()?;
        match call.runtime.memory.find(host).map(|found| found.kind) {
            Some(AllocationKind::Host(given) | AllocationKind::Registered(given)) => flags.set(given),
            Some(AllocationKind::Device | AllocationKind::Graph | AllocationKind::Managed | AllocationKind::Variable | AllocationKind::ManagedVariable | AllocationKind::Array | AllocationKind::Mapped) | None => Err(Status::INVALID_VALUE),
        }
    }
}
