//! Memory and copies.

use crate::code::{self, Code, Outcome};
use crate::device::answer;
use crate::faults::violation;
use crate::state::{call, current, device, giving_back, judged, state, stream};
use std::ffi::c_void;

pub(crate) unsafe fn allocate(place: *mut u64, bytes: usize) -> Code {
    call("cuMemAlloc", || {
        let gpu = current()?;
        if bytes == 0 {
            return Err(code::INVALID_VALUE);
        }
        let device = device(gpu)?;
        let address = judged(gpu, device.backend().allocate(bytes as u64))?;
        // SAFETY: the caller's output pointer.
        unsafe { answer(place, address) }?;
        state().gpus[gpu].memory.insert(address, bytes);
        Ok(())
    })
}

pub(crate) fn free(address: u64) -> Code {
    giving_back("cuMemFree", || {
        let gpu = current()?;
        if state().gpus[gpu].memory.remove(&address).is_none() {
            violation(format!("memory at {address:#x} was freed twice or never had"));
            return Err(code::INVALID_VALUE);
        }
        let device = device(gpu)?;
        // The driver waits for work before it frees.
        judged(gpu, device.backend().synchronise())?;
        judged(gpu, device.backend().free(address))
    })
}

pub(crate) fn pin(pointer: *mut c_void, bytes: usize, flags: u32) -> Code {
    call("cuMemHostRegister", || {
        let gpu = current()?;
        crate::device::has_flags(flags, 0)?;
        if pointer.is_null() || bytes == 0 || state().gpus[gpu].pinned.insert(pointer as usize, bytes).is_some() {
            violation(format!("{pointer:?} is pinned twice, or nothing"));
            return Err(code::INVALID_VALUE);
        }
        Ok(())
    })
}

pub(crate) fn unpin(pointer: *mut c_void) -> Code {
    giving_back("cuMemHostUnregister", || {
        let gpu = current()?;
        if state().gpus[gpu].pinned.remove(&(pointer as usize)).is_none() {
            violation(format!("{pointer:?} was not pinned"));
            return Err(code::INVALID_VALUE);
        }
        Ok(())
    })
}

/// Checks that the host memory of a copy is pinned. Unpinned memory would make a driver wait.
fn is_pinned(gpu: usize, pointer: usize, bytes: usize) -> Outcome {
    let inside = |(start, size): (&usize, &usize)| pointer >= *start && pointer + bytes <= start + size;
    if state().gpus[gpu].pinned.iter().any(inside) {
        return Ok(());
    }
    violation(format!("a copy of {bytes} bytes of the host at {pointer:#x}, which is not pinned"));
    Err(code::INVALID_VALUE)
}

/// Records a violation if a device range is outside of all allocations and variables.
fn checked(outcome: Outcome, what: &str) -> Outcome {
    if outcome == Err(code::INVALID_VALUE) {
        violation(format!("{what} leaves its memory"));
    }
    outcome
}

pub(crate) unsafe fn copy_in(to: u64, from: *const c_void, bytes: usize, handle: usize) -> Code {
    call("cuMemcpyHtoDAsync", || {
        let (gpu, stream) = stream(handle)?;
        is_pinned(gpu, from as usize, bytes)?;
        // SAFETY: the memory is pinned, and its owner keeps it until the copy is done.
        let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) };
        checked(judged(gpu, device(gpu)?.backend().write(stream, to, bytes)), "cuMemcpyHtoDAsync")
    })
}

pub(crate) unsafe fn copy_out(to: *mut c_void, from: u64, bytes: usize, handle: usize) -> Code {
    call("cuMemcpyDtoHAsync", || {
        let (gpu, stream) = stream(handle)?;
        is_pinned(gpu, to as usize, bytes)?;
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), bytes) };
        checked(judged(gpu, device(gpu)?.backend().read(stream, from, bytes)), "cuMemcpyDtoHAsync")
    })
}

pub(crate) fn copy(to: u64, from: u64, bytes: usize, handle: usize) -> Code {
    call("cuMemcpyDtoDAsync", || {
        let (gpu, stream) = stream(handle)?;
        if to.abs_diff(from) < bytes as u64 {
            violation("a copy within the device overlaps itself".to_owned());
        }
        checked(judged(gpu, device(gpu)?.backend().copy(stream, to, from, bytes as u64)), "cuMemcpyDtoDAsync")
    })
}

pub(crate) fn fill(address: u64, byte: u8, bytes: usize, handle: usize) -> Code {
    call("cuMemsetD8Async", || {
        let (gpu, stream) = stream(handle)?;
        checked(judged(gpu, device(gpu)?.backend().fill(stream, address, byte, bytes as u64)), "cuMemsetD8Async")
    })
}
