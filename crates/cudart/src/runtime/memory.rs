//! Device, host, managed and registered memory, and attributes of pointers.

use crate::advice::{Advice, checked, of_device};
use crate::boundary::{Call, exported};
use crate::device::check_device;
use crate::memory::{Kind, PITCH};
use crate::pointer::{In, Out};
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::types::{Extent, MemLocation, PitchedPtr, PointerAttributes};
use crate::work::Work;

/// Returns the version of the runtime that the program was linked with. Functions of the same name differ
/// between versions.
pub(crate) fn runtime_version() -> u32 {
    static VERSION: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *VERSION.get_or_init(|| loaded_runtimes().into_iter().max().unwrap_or(13))
}

/// Returns the versions of all runtime libraries in this process, from the loader's list. Opening a library
/// by name, even a loaded one, would run its initialisers again in a process that is about to exit.
fn loaded_runtimes() -> Vec<u32> {
    unsafe extern "C" fn look(library: *mut libc::dl_phdr_info, _: usize, versions: *mut libc::c_void) -> i32 {
        // SAFETY: the loader passes an entry of its list, whose name is zero-terminated if present, and the
        // list given below.
        let (name, versions) = unsafe { ((*library).dlpi_name, &mut *versions.cast::<Vec<u32>>()) };
        if !name.is_null() {
            // SAFETY: as above.
            let path = unsafe { std::ffi::CStr::from_ptr(name) }.to_bytes();
            let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
            let known = [(11, "libcudart.so.11"), (12, "libcudart.so.12"), (13, "libcudart.so.13")];
            versions.extend(known.iter().filter(|(_, start)| file.starts_with(start.as_bytes())).map(|(version, _)| version));
        }
        0
    }
    let mut versions = Vec::new();
    // SAFETY: the function takes the loader's entry and a list of versions, which lives until the call
    // returns.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut versions).cast()) };
    versions
}

fn pitched(runtime: &Runtime, width: usize, rows: usize) -> Outcome<(u64, usize)> {
    let pitch = width.checked_next_multiple_of(PITCH).ok_or(Status::INVALID_VALUE)?;
    let bytes = pitch.checked_mul(rows).ok_or(Status::OUT_OF_MEMORY)?;
    Ok((runtime.allocate(bytes, Kind::Device)?, pitch))
}

/// Allocates pitched memory, for the runtime and the driver.
pub(crate) fn allocate_pitched(runtime: &Runtime, address: Out<u64>, pitch: Out<usize>, width: usize, height: usize) -> Outcome {
    address.wanted()?;
    pitch.wanted()?;
    let (start, bytes) = pitched(runtime, width, height)?;
    address.set(start)?;
    pitch.set(bytes)
}

/// Decodes a location: a `cudaMemLocation` in the CUDA 13 runtime, a device number before.
fn location(word: u64) -> MemLocation {
    if runtime_version() >= 13 { MemLocation { kind: word as u32, id: (word >> 32) as i32 } } else { of_device(word as i32) }
}

fn advise(call: &Call, address: u64, bytes: usize, advice: u32, location: MemLocation) -> Outcome {
    call.runtime.advise(address, bytes as u64, Advice::new(advice, location)?)
}

/// Records a prefetch. Managed memory is accessible everywhere, so nothing is moved.
pub(crate) fn prefetch(call: &Call, address: u64, bytes: usize, location: MemLocation, stream: usize) -> Outcome {
    let stream = call.stream(stream)?;
    call.runtime.advise(address, bytes as u64, Advice::Fetched(checked(location)?))?;
    call.runtime.submit(&stream, Work::Empty)
}

fn range_attribute(call: &Call, data: Out<i32>, bytes: usize, attribute: u32, address: u64, count: usize) -> Outcome {
    data.wanted()?;
    if bytes == 0 || !bytes.is_multiple_of(4) {
        return Err(Status::INVALID_VALUE);
    }
    data.set_all(&call.runtime.range_attribute(attribute, address, count as u64, bytes / 4)?)
}

exported! { runtime
    /// Allocates device memory.
    fn cudaMalloc(call, address: Out<u64>, bytes: usize) {
        address.wanted()?;
        address.set(call.runtime.allocate(bytes, Kind::Device)?)
    }

    /// Frees device memory.
    fn cudaFree | cuMemFree_v2(call, address: u64) {
        call.runtime.free(address)
    }

    /// Allocates pitched memory.
    fn cudaMallocPitch(call, address: Out<u64>, pitch: Out<usize>, width: usize, height: usize) {
        allocate_pitched(call.runtime, address, pitch, width, height)
    }

    /// Allocates pitched slices.
    fn cudaMalloc3D(call, place: Out<PitchedPtr>, extent: Extent) {
        place.wanted()?;
        let rows = extent.height.checked_mul(extent.depth).ok_or(Status::INVALID_VALUE)?;
        let (start, pitch) = pitched(call.runtime, extent.width, rows)?;
        place.set(PitchedPtr { ptr: start as usize, pitch, xsize: extent.width, ysize: extent.height })
    }

    /// Allocates managed memory, which has one address for host and device.
    fn cudaMallocManaged | cuMemAllocManaged(call, address: Out<u64>, bytes: usize, flags: u32) {
        address.wanted()?;
        if bytes == 0 || !(flags == 1 || flags == 2) {
            return Err(Status::INVALID_VALUE);
        }
        address.set(call.runtime.allocate(bytes, Kind::Managed)?)
    }

    /// Allocates pinned host memory.
    fn cudaMallocHost | cuMemAllocHost_v2(call, address: Out<usize>, bytes: usize) {
        address.wanted()?;
        address.set(call.runtime.allocate_host(bytes, 0)?)
    }

    /// Allocates pinned host memory, with flags.
    fn cudaHostAlloc(call, address: Out<usize>, bytes: usize, flags: u32) {
        address.wanted()?;
        if flags & !7 != 0 {
            return Err(Status::INVALID_VALUE);
        }
        address.set(call.runtime.allocate_host(bytes, flags)?)
    }

    /// Frees pinned host memory.
    fn cudaFreeHost | cuMemFreeHost(call, address: u64) {
        call.runtime.free_host(address)
    }

    /// Registers host memory of the program.
    fn cudaHostRegister(call, address: u64, bytes: usize, flags: u32) {
        if flags & !15 != 0 {
            return Err(Status::INVALID_VALUE);
        }
        call.runtime.register_host(address, bytes, flags)
    }

    /// Unregisters host memory of the program.
    fn cudaHostUnregister | cuMemHostUnregister(call, address: u64) {
        call.runtime.unregister_host(address)
    }

    /// Returns the device address of host memory.
    fn cudaHostGetDevicePointer(call, device: Out<u64>, host: u64, flags: u32) {
        call.runtime.device()?;
        let known = call.runtime.memory.find(host).is_some_and(|found| matches!(found.kind, Kind::Host(_) | Kind::Registered(_)));
        if known && flags == 0 { device.set(host) } else { Err(Status::INVALID_VALUE) }
    }

    /// Returns the flags of host memory.
    fn cudaHostGetFlags(call, flags: Out<u32>, host: u64) {
        call.runtime.device()?;
        match call.runtime.memory.find(host).map(|found| found.kind) {
            Some(Kind::Host(given) | Kind::Registered(given)) => flags.set(given),
            Some(Kind::Device | Kind::Graph | Kind::Managed | Kind::Variable | Kind::ManagedVariable | Kind::Array | Kind::Mapped) | None => Err(Status::INVALID_VALUE),
        }
    }

    /// Returns the free and total bytes of device memory.
    fn cudaMemGetInfo | cuMemGetInfo_v2(call, free: Out<usize>, total: Out<usize>) {
        let (left, all) = call.runtime.memory_left()?;
        free.set(left)?;
        total.set(all)
    }

    /// Returns the attributes of a pointer.
    fn cudaPointerGetAttributes(call, attributes: Out<PointerAttributes>, address: u64) {
        call.runtime.device()?;
        attributes.set(match call.runtime.memory.find(address).map(|found| found.kind) {
            Some(Kind::Device | Kind::Graph | Kind::Variable | Kind::Array | Kind::Mapped) => {
                PointerAttributes { kind: 2, device: 0, device_pointer: address as usize, host_pointer: 0 }
            }
            Some(Kind::Managed | Kind::ManagedVariable) => PointerAttributes { kind: 3, device: 0, device_pointer: address as usize, host_pointer: address as usize },
            Some(Kind::Host(_) | Kind::Registered(_)) => {
                PointerAttributes { kind: 1, device: 0, device_pointer: address as usize, host_pointer: address as usize }
            }
            None => PointerAttributes { kind: 0, device: -2, device_pointer: 0, host_pointer: address as usize },
        })
    }

    /// Records advice on managed memory.
    fn cudaMemAdvise(call, address: u64, bytes: usize, advice: u32, word: u64) {
        advise(call, address, bytes, advice, location(word))
    }

    /// Records advice on managed memory, with a location.
    fn cudaMemAdvise_v2 | cuMemAdvise_v2(call, address: u64, bytes: usize, advice: u32, location: MemLocation) {
        advise(call, address, bytes, advice, location)
    }

    /// Prefetches managed memory. In the CUDA 13 runtime the flags come before the stream.
    fn cudaMemPrefetchAsync / cudaMemPrefetchAsync_ptsz(call, address: u64, bytes: usize, word: u64, third: usize, fourth: usize) {
        let stream = if runtime_version() >= 13 { fourth } else { third };
        prefetch(call, address, bytes, location(word), stream)
    }

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

    /// Returns an attribute of a range of managed memory.
    fn cudaMemRangeGetAttribute | cuMemRangeGetAttribute(call, data: Out<i32>, bytes: usize, attribute: u32, address: u64, count: usize) {
        range_attribute(call, data, bytes, attribute, address, count)
    }

    /// Reports that a device cannot access a peer: there is none.
    fn cudaDeviceCanAccessPeer(call, can: Out<i32>, device: i32, peer: i32) {
        call.runtime.device()?;
        check_device(device)?;
        check_device(peer)?;
        can.set(0)
    }

    /// Fails: there is no peer.
    fn cudaDeviceEnablePeerAccess(call, _peer: i32, _flags: u32) {
        call.runtime.device()?;
        Err(Status::INVALID_DEVICE)
    }

    /// Fails: there is no peer.
    fn cudaDeviceDisablePeerAccess(call, _peer: i32) {
        call.runtime.device()?;
        Err(Status::INVALID_DEVICE)
    }

    /// Returns several attributes of a range.
    fn cudaMemRangeGetAttributes | cuMemRangeGetAttributes(call, places: In<usize>, sizes: In<usize>, attributes: In<u32>, count: usize, address: u64, bytes: usize) {
        let all = places.get_all(count)?.into_iter().zip(sizes.get_all(count)?).zip(attributes.get_all(count)?);
        all.into_iter().try_for_each(|((place, size), attribute)| range_attribute(call, Out::at(place), size, attribute, address, bytes))
    }
}
