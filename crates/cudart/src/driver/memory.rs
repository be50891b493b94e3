//! Memory.

use crate::boundary::exported;
use crate::contexts::PRIMARY;
use crate::location::MemLocation;
use crate::objects::advice::Advice;
use crate::objects::memory::AllocationKind;
use crate::pointer::{In, Out};
use crate::status::Status;

pub(crate) use crate::shared_api::memory::*;

exported! { driver
    fn cuMemAlloc_v2(call, address: Out<u64>, bytes: usize) {
        address.wanted()?;
        if bytes == 0 {
            return Err(Status::INVALID_VALUE);
        }
        address.set(call.runtime.allocate(bytes, AllocationKind::Device)?)
    }

    fn cuMemAllocPitch_v2(call, address: Out<u64>, pitch: Out<usize>, width: usize, height: usize, _element: u32)
        => allocate_pitched(call.runtime, address, pitch, width, height);
    /// Allocates pinned host memory, with flags.
    fn cuMemHostAlloc(call, address: Out<usize>, bytes: usize, flags: u32)
        => address.set_by(|| call.runtime.allocate_host(bytes, flags));
    fn cuMemHostRegister = cuMemHostRegister_v2(call, address: u64, bytes: usize, flags: u32)
        => call.runtime.register_host(address, bytes, flags);

    fn cuMemHostGetDevicePointer_v2(call, device: Out<u64>, host: u64, _flags: u32) {
        call.runtime.device()?;
        let known = call.runtime.memory.find(host).is_some_and(|found| matches!(found.kind, AllocationKind::Host(_) | AllocationKind::Registered(_)));
        if known { device.set(host) } else { Err(Status::INVALID_VALUE) }
    }

    fn cuMemGetAddressRange_v2(call, start: Out<u64>, bytes: Out<usize>, address: u64) {
        let found = call.runtime.memory.find(address).ok_or(Status::NOT_FOUND)?;
        start.set_if_wanted(found.start);
        bytes.set_if_wanted(found.bytes as usize);
        Ok(())
    }

    fn cuPointerGetAttribute(call, data: Out<u64>, attribute: u32, address: u64) {
        call.runtime.device()?;
        let found = call.runtime.memory.find(address).ok_or(Status::INVALID_VALUE)?;
        let managed = matches!(found.kind, AllocationKind::Managed | AllocationKind::ManagedVariable);
        let host = matches!(found.kind, AllocationKind::Host(_) | AllocationKind::Registered(_));
        let word = |value: u32| Out::<u32>::at(data.address()).set(value);
        match attribute {
            // Context, memory type, device pointer, host pointer.
            1 => data.set(PRIMARY as u64),
            2 => word(if host { 1 } else { 2 }),
            3 => data.set(address),
            4 if host || managed => data.set(address),
            // Synchronous copies, buffer ID, managed flag, device.
            6 => word(0),
            7 => data.set(found.serial),
            8 => word(u32::from(managed)),
            9 => word(0),
            11 => data.set(found.start),
            12 => data.set(found.bytes),
            13 => word(1),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    /// Returns several attributes of a pointer. Unknown ones are 0.
    fn cuPointerGetAttributes(call, count: u32, attributes: In<u32>, places: In<usize>, address: u64) {
        let _ = call;
        for (attribute, place) in attributes.get_all(count as usize)?.into_iter().zip(places.get_all(count as usize)?) {
            if cuPointerGetAttribute(Out::at(place), attribute, address) != 0 {
                Out::<u32>::at(place).set(0)?;
            }
        }
        Ok(())
    }

    /// Accepts the attribute for synchronous copies, which copies satisfy anyway.
    fn cuPointerSetAttribute(call, value: In<u32>, _attribute: u32, address: u64)
        => value.get()?, call.runtime.memory.find(address).map(drop).ok_or(Status::INVALID_VALUE);
    fn cuMemAdvise(call, address: u64, bytes: usize, advice: u32, device: i32)
        => call.runtime.advise(address, bytes as u64, Advice::new(advice, MemLocation::of_device(device))?);
    fn cuMemPrefetchAsync / cuMemPrefetchAsync_ptsz(call, address: u64, bytes: usize, device: i32, stream: usize)
        => prefetch(call, address, bytes, MemLocation::of_device(device), stream);
}
