//! Memory.

use crate::boundary::{exported, forwarded};
use crate::device::check_device;
use crate::memory::Kind;
use crate::pointer::{In, Out};
use crate::runtime::memory::allocate_pitched;
use crate::runtime::pools;
use crate::status::Status;
use crate::types::MemLocation;
use crate::work::Work;

exported! { driver
    /// Memory of the device.
    fn cuMemAlloc_v2(call, address: Out<u64>, bytes: usize) {
        address.wanted()?;
        if bytes == 0 {
            return Err(Status::INVALID_VALUE);
        }
        address.set(call.runtime.allocate(bytes, Kind::Device)?)
    }

    /// Gives it back.
    fn cuMemFree_v2(call, address: u64) {
        call.runtime.free(address)
    }

    /// Rows of memory.
    fn cuMemAllocPitch_v2(call, address: Out<u64>, pitch: Out<usize>, width: usize, height: usize, _element: u32) {
        allocate_pitched(call.runtime, address, pitch, width, height)
    }

    /// Memory that host and device reach at one address.
    fn cuMemAllocManaged(call, address: Out<u64>, bytes: usize, flags: u32) {
        address.wanted()?;
        if bytes == 0 || !(flags == 1 || flags == 2) {
            return Err(Status::INVALID_VALUE);
        }
        address.set(call.runtime.allocate(bytes, Kind::Managed)?)
    }

    /// Host memory that is copied in stream order.
    fn cuMemAllocHost_v2(call, address: Out<usize>, bytes: usize) {
        address.wanted()?;
        address.set(call.runtime.allocate_host(bytes, 0)?)
    }

    /// The same, with flags.
    fn cuMemHostAlloc(call, address: Out<usize>, bytes: usize, flags: u32) {
        address.wanted()?;
        address.set(call.runtime.allocate_host(bytes, flags)?)
    }

    /// Gives host memory back.
    fn cuMemFreeHost(call, address: u64) {
        call.runtime.free_host(address)
    }

    /// Makes memory of the program known.
    fn cuMemHostRegister_v2(call, address: u64, bytes: usize, flags: u32) {
        call.runtime.register_host(address, bytes, flags)
    }

    /// Forgets it.
    fn cuMemHostUnregister(call, address: u64) {
        call.runtime.unregister_host(address)
    }

    /// Where kernels see host memory.
    fn cuMemHostGetDevicePointer_v2(call, device: Out<u64>, host: u64, _flags: u32) {
        call.runtime.device()?;
        let known = call.runtime.memory.find(host).is_some_and(|found| matches!(found.kind, Kind::Host(_) | Kind::Registered(_)));
        if known { device.set(host) } else { Err(Status::INVALID_VALUE) }
    }

    /// The flags of host memory.
    fn cuMemHostGetFlags(call, flags: Out<u32>, host: u64) {
        match call.runtime.memory.find(host).map(|found| found.kind) {
            Some(Kind::Host(given) | Kind::Registered(given)) => flags.set(given),
            Some(Kind::Device | Kind::Graph | Kind::Managed | Kind::Variable | Kind::ManagedVariable | Kind::Array | Kind::Mapped) | None => Err(Status::INVALID_VALUE),
        }
    }

    /// Free and total bytes.
    fn cuMemGetInfo_v2(call, free: Out<usize>, total: Out<usize>) {
        let (left, all) = call.runtime.memory_left()?;
        free.set(left)?;
        total.set(all)
    }

    /// The allocation that an address is in.
    fn cuMemGetAddressRange_v2(call, start: Out<u64>, bytes: Out<usize>, address: u64) {
        let found = call.runtime.memory.find(address).ok_or(Status::NOT_FOUND)?;
        start.set_if_wanted(found.start);
        bytes.set_if_wanted(found.bytes as usize);
        Ok(())
    }

    /// Something about a pointer.
    fn cuPointerGetAttribute(call, data: Out<u64>, attribute: u32, address: u64) {
        call.runtime.device()?;
        let found = call.runtime.memory.find(address).ok_or(Status::INVALID_VALUE)?;
        let managed = matches!(found.kind, Kind::Managed | Kind::ManagedVariable);
        let host = matches!(found.kind, Kind::Host(_) | Kind::Registered(_));
        let word = |value: u32| Out::<u32>::at(data.address()).set(value);
        match attribute {
            // The context, the kind of memory, the address on either side.
            1 => data.set(0x0b10_0b00_0000_0010),
            2 => word(if host { 1 } else { 2 }),
            3 => data.set(address),
            4 if host || managed => data.set(address),
            // Whether copies wait, a number of the allocation, whether it is managed, the device.
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

    /// Several facts about a pointer; what is not known is 0.
    fn cuPointerGetAttributes(call, count: u32, attributes: In<u32>, places: In<usize>, address: u64) {
        let _ = call;
        for (attribute, place) in attributes.get_all(count as usize)?.into_iter().zip(places.get_all(count as usize)?) {
            if cuPointerGetAttribute(Out::at(place), attribute, address) != 0 {
                Out::<u32>::at(place).set(0)?;
            }
        }
        Ok(())
    }

    /// Something a program wants of an allocation: that copies wait, which they do.
    fn cuPointerSetAttribute(call, value: In<u32>, _attribute: u32, address: u64) {
        value.get()?;
        call.runtime.memory.find(address).map(drop).ok_or(Status::INVALID_VALUE)
    }

    /// Advice on managed memory.
    fn cuMemAdvise(call, address: u64, bytes: usize, _advice: u32, _device: i32) {
        call.runtime.memory.device_range(address, bytes as u64)
    }

    /// The same, with a location.
    fn cuMemAdvise_v2(call, address: u64, bytes: usize, _advice: u32, _location: MemLocation) {
        call.runtime.memory.device_range(address, bytes as u64)
    }

    /// Moves managed memory, which lies where everybody reaches it.
    fn cuMemPrefetchAsync / cuMemPrefetchAsync_ptsz(call, address: u64, bytes: usize, _device: i32, stream: usize) {
        call.runtime.memory.device_range(address, bytes as u64)?;
        call.runtime.submit(&*call.stream(stream)?, Work::Empty)
    }

    /// The same, with a location.
    fn cuMemPrefetchAsync_v2 / cuMemPrefetchAsync_v2_ptsz(call, address: u64, bytes: usize, _location: MemLocation, _flags: u32, stream: usize) {
        call.runtime.memory.device_range(address, bytes as u64)?;
        call.runtime.submit(&*call.stream(stream)?, Work::Empty)
    }

    /// Says which stream uses managed memory, which all may.
    fn cuStreamAttachMemAsync / cuStreamAttachMemAsync_ptsz(call, stream: usize, address: u64, _bytes: usize, _flags: u32) {
        let stream = call.stream(stream)?;
        call.runtime.memory.find(address).ok_or(Status::INVALID_VALUE)?;
        call.runtime.submit(&stream, Work::Empty)
    }

    /// Memory in stream order.
    fn cuMemAllocAsync / cuMemAllocAsync_ptsz(call, address: Out<u64>, bytes: usize, stream: usize) {
        pools::allocate(call, address, bytes, stream)
    }

    /// The same, from a pool.
    fn cuMemAllocFromPoolAsync / cuMemAllocFromPoolAsync_ptsz(call, address: Out<u64>, bytes: usize, pool: usize, stream: usize) {
        pools::check_pool(pool)?;
        pools::allocate(call, address, bytes, stream)
    }

    /// Gives memory back in stream order.
    fn cuMemFreeAsync / cuMemFreeAsync_ptsz(call, address: u64, stream: usize) {
        pools::free(call, address, stream)
    }

    /// The pool that a device has from the start.
    fn cuDeviceGetDefaultMemPool(_call, pool: Out<usize>, device: i32) {
        check_device(device)?;
        pool.set(pools::default_pool())
    }

    /// The pool that a device uses.
    fn cuDeviceGetMemPool(_call, pool: Out<usize>, device: i32) {
        check_device(device)?;
        pool.set(pools::default_pool())
    }

    /// Chooses the pool that a device uses; they are all one.
    fn cuDeviceSetMemPool(_call, device: i32, pool: usize) {
        check_device(device)?;
        pools::check_pool(pool)
    }

    /// Another name for the pool.
    fn cuMemPoolCreate(call, pool: Out<usize>, properties: In<u64>) {
        call.runtime.device()?;
        properties.get()?;
        pool.wanted()?;
        pool.set(pools::create_pool())
    }

    /// Gives a pool back.
    fn cuMemPoolDestroy(_call, pool: usize) {
        if pool == pools::default_pool() { Err(Status::INVALID_VALUE) } else { pools::check_pool(pool) }
    }

    /// Gives memory that is kept for later back to the system.
    fn cuMemPoolTrimTo(call, pool: usize, _keep: usize) {
        pools::check_pool(pool)?;
        call.runtime.judge(call.runtime.device()?.backend().trim())
    }

    /// A number of a pool.
    fn cuMemPoolGetAttribute(call, pool: usize, number: u32, value: Out<u64>) {
        pools::check_pool(pool)?;
        pools::attribute(call, number, value)
    }

    /// Sets a number of a pool.
    fn cuMemPoolSetAttribute(_call, pool: usize, number: u32, value: In<u64>) {
        pools::check_pool(pool)?;
        pools::set_attribute(number, value)
    }

    /// Who may use memory of a pool: everybody.
    fn cuMemPoolSetAccess(_call, pool: usize, list: In<[u32; 3]>, count: usize) {
        pools::check_pool(pool)?;
        list.get_all(count).map(drop)
    }

    /// The same: reading and writing.
    fn cuMemPoolGetAccess(_call, flags: Out<u32>, pool: usize, location: In<MemLocation>) {
        pools::check_pool(pool)?;
        location.get()?;
        flags.set(3)
    }

    /// Something about a range of managed memory.
    fn cuMemRangeGetAttribute(_call, data: Out<i32>, bytes: usize, attribute: u32, address: u64, count: usize) {
        forwarded(|| crate::runtime::memory::cudaMemRangeGetAttribute(data, bytes, attribute, address, count))
    }

    /// Several facts about a range, one place for each.
    fn cuMemRangeGetAttributes(_call, places: In<usize>, sizes: In<usize>, attributes: In<u32>, count: usize, address: u64, bytes: usize) {
        forwarded(|| crate::runtime::memory::cudaMemRangeGetAttributes(places, sizes, attributes, count, address, bytes))
    }
}
