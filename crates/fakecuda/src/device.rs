//! Driver, GPUs and contexts.

use crate::code::{self, Code};
use crate::state::{GPUS, call, current, device, giving_back, set_current, state};
use std::ffi::{c_char, c_int, c_uint};

/// Result codes with name and text.
const TEXTS: &[(Code, &[u8], &[u8])] = &[
    (1, b"CUDA_ERROR_INVALID_VALUE\0", b"invalid argument\0"),
    (2, b"CUDA_ERROR_OUT_OF_MEMORY\0", b"out of memory\0"),
    (3, b"CUDA_ERROR_NOT_INITIALIZED\0", b"initialization error\0"),
    (101, b"CUDA_ERROR_INVALID_DEVICE\0", b"invalid device ordinal\0"),
    (200, b"CUDA_ERROR_INVALID_IMAGE\0", b"device kernel image is invalid\0"),
    (201, b"CUDA_ERROR_INVALID_CONTEXT\0", b"invalid device context\0"),
    (218, b"CUDA_ERROR_INVALID_PTX\0", b"a PTX JIT compilation failed\0"),
    (400, b"CUDA_ERROR_INVALID_HANDLE\0", b"invalid resource handle\0"),
    (500, b"CUDA_ERROR_NOT_FOUND\0", b"named symbol not found\0"),
    (700, b"CUDA_ERROR_ILLEGAL_ADDRESS\0", b"an illegal memory access was encountered\0"),
    (710, b"CUDA_ERROR_ASSERT\0", b"device-side assert triggered\0"),
    (719, b"CUDA_ERROR_LAUNCH_FAILED\0", b"unspecified launch failure\0"),
    (999, b"CUDA_ERROR_UNKNOWN\0", b"unknown error\0"),
];

/// Writes an output value.
///
/// # Safety
///
/// `place` is null or writable by the caller.
pub(crate) unsafe fn answer<T>(place: *mut T, value: T) -> Result<(), Code> {
    if place.is_null() {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: as the caller promises.
    unsafe { place.write(value) };
    Ok(())
}

fn ready() -> Result<(), Code> {
    if state().initialised { Ok(()) } else { Err(code::NOT_INITIALIZED) }
}

fn gpu(device: c_int) -> Result<usize, Code> {
    ready()?;
    usize::try_from(device).ok().filter(|index| *index < GPUS).ok_or(code::INVALID_DEVICE)
}

pub(crate) fn init() -> Code {
    call("cuInit", || {
        state().initialised = true;
        Ok(())
    })
}

pub(crate) unsafe fn driver_version(version: *mut c_int) -> Code {
    // SAFETY: the caller's output pointer.
    call("cuDriverGetVersion", || unsafe { answer(version, 13_000) })
}

pub(crate) unsafe fn error_text(asked: Code, place: *mut *const c_char, name: bool) -> Code {
    let found = TEXTS.iter().find(|(code, ..)| *code == asked);
    let Some((_, title, sentence)) = found else { return code::INVALID_VALUE };
    let text = if name { title } else { sentence };
    // SAFETY: the caller's output pointer; the texts are static and zero-terminated.
    unsafe { answer(place, text.as_ptr().cast()) }.err().unwrap_or(0)
}

pub(crate) unsafe fn device_count(count: *mut c_int) -> Code {
    call("cuDeviceGetCount", || {
        ready()?;
        // SAFETY: the caller's output pointer.
        unsafe { answer(count, GPUS as c_int) }
    })
}

pub(crate) unsafe fn get_device(place: *mut c_int, ordinal: c_int) -> Code {
    call("cuDeviceGet", || {
        gpu(ordinal)?;
        // SAFETY: the caller's output pointer.
        unsafe { answer(place, ordinal) }
    })
}

pub(crate) unsafe fn device_name(place: *mut c_char, bytes: c_int, device: c_int) -> Code {
    call("cuDeviceGetName", || {
        let name = format!("Fake GPU {}\0", gpu(device)?);
        if place.is_null() || usize::try_from(bytes).unwrap_or(0) < name.len() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's buffer has this many bytes.
        unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), place.cast(), name.len()) };
        Ok(())
    })
}

pub(crate) unsafe fn device_attribute(place: *mut c_int, attribute: c_int, device: c_int) -> Code {
    call("cuDeviceGetAttribute", || {
        gpu(device)?;
        let value = match attribute {
            1..=3 => 1024,
            4 => 64,
            5 => i32::MAX,
            6 | 7 => 65_535,
            10 => 32,
            13 => 1_000_000,
            16 => 4,
            36 => 1_000_000,
            37 => 512,
            38 => 1 << 20,
            39 => 2048,
            75 => 9,
            76 => 0,
            82 => 65_536,
            95 => 1,
            97 => 227 << 10,
            _ => return Err(code::INVALID_VALUE),
        };
        // SAFETY: the caller's output pointer.
        unsafe { answer(place, value) }
    })
}

pub(crate) unsafe fn device_memory(place: *mut usize, device: c_int) -> Code {
    call("cuDeviceTotalMem", || {
        gpu(device)?;
        // SAFETY: the caller's output pointer.
        unsafe { answer(place, 1 << 30) }
    })
}

/// Returns the handle of a GPU's context.
fn context(index: usize) -> usize {
    0xc0_0000 + 16 * index
}

pub(crate) unsafe fn retain(place: *mut usize, device_number: c_int) -> Code {
    call("cuDevicePrimaryCtxRetain", || {
        let index = gpu(device_number)?;
        device(index)?;
        // SAFETY: the caller's output pointer.
        unsafe { answer(place, context(index)) }?;
        state().gpus[index].retains += 1;
        Ok(())
    })
}

pub(crate) fn release(device: c_int) -> Code {
    giving_back("cuDevicePrimaryCtxRelease", || {
        let index = gpu(device)?;
        let mut state = state();
        let gpu = &mut state.gpus[index];
        if gpu.retains == 0 {
            drop(state);
            crate::faults::violation("a context was released that nobody had".to_owned());
            return Err(code::INVALID_CONTEXT);
        }
        gpu.retains -= 1;
        if gpu.retains == 0 {
            gpu.end_released();
        }
        Ok(())
    })
}

pub(crate) fn reset(device: c_int) -> Code {
    call("cuDevicePrimaryCtxReset", || {
        let index = gpu(device)?;
        state().gpus[index].end();
        Ok(())
    })
}

pub(crate) fn make_current(handle: usize) -> Code {
    call("cuCtxSetCurrent", || {
        ready()?;
        let index = (0..GPUS).find(|index| context(*index) == handle);
        set_current(index);
        if handle == 0 || index.is_some() { Ok(()) } else { Err(code::INVALID_CONTEXT) }
    })
}

pub(crate) fn set_limit(limit: c_int, _value: usize) -> Code {
    call("cuCtxSetLimit", || {
        current()?;
        if (0..=2).contains(&limit) { Ok(()) } else { Err(code::INVALID_VALUE) }
    })
}

pub(crate) fn has_flags(flags: c_uint, known: c_uint) -> Result<(), Code> {
    if flags & !known == 0 { Ok(()) } else { Err(code::INVALID_VALUE) }
}
