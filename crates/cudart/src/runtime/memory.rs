//! Device, host, managed and registered memory, and attributes of pointers.

use crate::boundary::exported;
use crate::location::{MemLocation, check_device};
use crate::objects::memory::AllocationKind;
use crate::pointer::Out;
use crate::status::Status;
use crate::types::{Extent, PitchedPtr, PointerAttributes};
use crate::version::runtime_version;

pub(crate) use crate::shared_api::memory::*;

/// Decodes a location: a `cudaMemLocation` in the CUDA 13 runtime, a device number before.
fn location(word: u64) -> MemLocation {
    if runtime_version() >= 13 {
        MemLocation { kind: word as u32, id: (word >> 32) as i32 }
    } else {
        MemLocation::of_device(word as i32)
    }
}

exported! { runtime
    fn cudaMalloc(call, address: Out<u64>, bytes: usize) => address.set_by(|| call.runtime.allocate(bytes, AllocationKind::Device));
    fn cudaMallocPitch(call, address: Out<u64>, pitch: Out<usize>, width: usize, height: usize)
        => allocate_pitched(call.runtime, address, pitch, width, height);

    fn cudaMalloc3D(call, place: Out<PitchedPtr>, extent: Extent) {
        place.wanted()?;
        let rows = extent.height.checked_mul(extent.depth).ok_or(Status::INVALID_VALUE)?;
        let (start, pitch) = pitched(call.runtime, extent.width, rows)?;
        place.set(PitchedPtr { ptr: start as usize, pitch, xsize: extent.width, ysize: extent.height })
    }

    /// Allocates pinned host memory, with flags.
    fn cudaHostAlloc(call, address: Out<usize>, bytes: usize, flags: u32) {
        address.wanted()?;
        if flags & !7 != 0 {
            return Err(Status::INVALID_VALUE);
        }
        address.set(call.runtime.allocate_host(bytes, flags)?)
    }

    fn cudaHostRegister(call, address: u64, bytes: usize, flags: u32) {
        if flags & !15 != 0 {
            return Err(Status::INVALID_VALUE);
        }
        call.runtime.register_host(address, bytes, flags)
    }

    fn cudaHostGetDevicePointer(call, device: Out<u64>, host: u64, flags: u32) {
        call.runtime.device()?;
        let known = call.runtime.memory.find(host).is_some_and(|found| matches!(found.kind, AllocationKind::Host(_) | AllocationKind::Registered(_)));
        if known && flags == 0 { device.set(host) } else { Err(Status::INVALID_VALUE) }
    }

    fn cudaPointerGetAttributes(call, attributes: Out<PointerAttributes>, address: u64) {
        call.runtime.device()?;
        attributes.set(match call.runtime.memory.find(address).map(|found| found.kind) {
            Some(AllocationKind::Device | AllocationKind::Graph | AllocationKind::Variable | AllocationKind::Array | AllocationKind::Mapped) => {
                PointerAttributes { kind: 2, device: 0, device_pointer: address as usize, host_pointer: 0 }
            }
            Some(AllocationKind::Managed | AllocationKind::ManagedVariable) => PointerAttributes { kind: 3, device: 0, device_pointer: address as usize, host_pointer: address as usize },
            Some(AllocationKind::Host(_) | AllocationKind::Registered(_)) => {
                PointerAttributes { kind: 1, device: 0, device_pointer: address as usize, host_pointer: address as usize }
            }
            None => PointerAttributes { kind: 0, device: -2, device_pointer: 0, host_pointer: address as usize },
        })
    }

    fn cudaMemAdvise(call, address: u64, bytes: usize, advice: u32, word: u64)
        => advise(call, address, bytes, advice, location(word));

    /// Prefetches managed memory. In the CUDA 13 runtime the flags come before the stream.
    fn cudaMemPrefetchAsync / cudaMemPrefetchAsync_ptsz(call, address: u64, bytes: usize, word: u64, third: usize, fourth: usize) {
        let stream = if runtime_version() >= 13 { fourth } else { third };
        prefetch(call, address, bytes, location(word), stream)
    }

    /// Reports that a device cannot access a peer: there is none.
    fn cudaDeviceCanAccessPeer(call, can: Out<i32>, device: i32, peer: i32) {
        call.runtime.device()?;
        check_device(device)?;
        check_device(peer)?;
        can.set(0)
    }

    /// Fails: there is no peer.
    fn cudaDeviceEnablePeerAccess(call, _peer: i32, _flags: u32) => call.runtime.device()?, Err(Status::INVALID_DEVICE);
    /// Fails: there is no peer.
    fn cudaDeviceDisablePeerAccess(call, _peer: i32) => call.runtime.device()?, Err(Status::INVALID_DEVICE);
}
