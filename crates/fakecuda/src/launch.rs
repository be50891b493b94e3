//! Modules, kernels and launches.

use crate::code::{self, Code, Outcome, code_of};
use crate::device::answer;
use crate::faults::violation;
use crate::state::{Object, call, current, device, enter, giving_back, judged, object, poison, remove, state, stream};
use crate::text::{ELF, OURS, verified};
use broadloom_device::Launch;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Arc;

/// Dynamic shared memory that a kernel has by default.
const PLAIN_SHARED: u32 = 48 << 10;

/// Parses, verifies and loads the text of a module. Errors go to the log.
pub(crate) unsafe fn load(
    place: *mut usize,
    image: *const c_void,
    count: c_uint,
    options: *const c_int,
    values: *const *mut c_void,
) -> Code {
    call("cuModuleLoadDataEx", || {
        let gpu = current()?;
        if image.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the text of a module is zero-terminated, and so is an image of this driver.
        let bytes = unsafe { CStr::from_ptr(image.cast()) }.to_bytes();
        let text = match bytes.strip_prefix(ELF) {
            Some(rest) => rest.strip_prefix(OURS).ok_or(code::INVALID_IMAGE)?,
            None => bytes,
        };
        let verified = match verified(text) {
            Ok(verified) => Arc::new(verified),
            Err(wrong) => {
                // SAFETY: the caller's options.
                unsafe { log(&format!("ptxas fatal: {wrong}"), count, options, values) };
                return Err(code::INVALID_PTX);
            }
        };
        let loaded = device(gpu)?.backend().load(&verified).map_err(|error| {
            poison(gpu, code_of(&error));
            code_of(&error)
        })?;
        // SAFETY: the caller's output pointer.
        unsafe { answer(place, enter(gpu, Object::Module(loaded, verified))) }
    })
}

/// Writes to the error log buffer, if there is one.
///
/// # Safety
///
/// There are `count` options and values; log options are a buffer and its size.
unsafe fn log(text: &str, count: c_uint, options: *const c_int, values: *const *mut c_void) {
    let (mut buffer, mut bytes) = (std::ptr::null_mut::<u8>(), 0usize);
    for index in 0..count as usize {
        // SAFETY: guaranteed by the caller.
        let (option, value) = unsafe { (*options.add(index), *values.add(index)) };
        match option {
            5 => buffer = value.cast(),
            6 => bytes = value as usize,
            _ => {}
        }
    }
    if !buffer.is_null() && bytes > text.len() {
        // SAFETY: the buffer has this many bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), buffer, text.len());
            *buffer.add(text.len()) = 0;
        }
    }
}

pub(crate) fn unload(handle: usize) -> Code {
    giving_back("cuModuleUnload", || {
        let (gpu, _) = object(handle, "module")?;
        // Its kernels are removed with it.
        state().gpus[gpu].objects.retain(|_, object| !matches!(object, Object::Function { module, .. } if *module == handle));
        // The driver waits for work of its kernels.
        let device = device(gpu)?;
        judged(gpu, device.backend().synchronise())?;
        remove(handle, "module")
    })
}

pub(crate) unsafe fn function(place: *mut usize, module: usize, name: *const c_char) -> Code {
    call("cuModuleGetFunction", || {
        let (gpu, object) = object(module, "module")?;
        let Object::Module(loaded, code) = object else { return Err(code::INVALID_HANDLE) };
        // SAFETY: the caller's C string.
        let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| code::NOT_FOUND)?;
        let (kernel, _) = code.kernels().find(|(_, function)| function.name == name).ok_or(code::NOT_FOUND)?;
        // SAFETY: the caller's output pointer.
        unsafe { answer(place, enter(gpu, Object::Function { module, loaded, kernel, granted: PLAIN_SHARED })) }
    })
}

pub(crate) unsafe fn variable(address: *mut u64, bytes: *mut usize, module: usize, name: *const c_char) -> Code {
    call("cuModuleGetGlobal", || {
        let (_, object) = object(module, "module")?;
        let Object::Module(loaded, _) = object else { return Err(code::INVALID_HANDLE) };
        // SAFETY: the caller's C string.
        let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| code::NOT_FOUND)?;
        let variable = loaded.variable(name).ok_or(code::NOT_FOUND)?;
        // SAFETY: the caller's output pointers.
        unsafe {
            answer(address, variable.address)?;
            answer(bytes, variable.bytes as usize)
        }
    })
}

pub(crate) unsafe fn attribute(place: *mut c_int, attribute: c_int, handle: usize) -> Code {
    call("cuFuncGetAttribute", || {
        let (_, object) = object(handle, "function")?;
        let Object::Function { granted, .. } = object else { return Err(code::INVALID_HANDLE) };
        let value = match attribute {
            0 => 1024,
            1..=3 => 0,
            4 => 32,
            8 => granted.cast_signed(),
            _ => return Err(code::INVALID_VALUE),
        };
        // SAFETY: the caller's output pointer.
        unsafe { answer(place, value) }
    })
}

pub(crate) fn set_attribute(handle: usize, attribute: c_int, value: c_int) -> Code {
    call("cuFuncSetAttribute", || {
        let (gpu, _) = object(handle, "function")?;
        let mut state = state();
        let Some(Object::Function { granted, .. }) = state.gpus[gpu].objects.get_mut(&handle) else {
            return Err(code::INVALID_HANDLE);
        };
        match attribute {
            8 if (0..=227 << 10).contains(&value) => *granted = value.cast_unsigned(),
            14 => {}
            _ => return Err(code::INVALID_VALUE),
        }
        Ok(())
    })
}

pub(crate) unsafe fn occupancy(place: *mut c_int, handle: usize, threads: c_int) -> Code {
    call("cuOccupancyMaxActiveBlocksPerMultiprocessor", || {
        object(handle, "function")?;
        // SAFETY: the caller's output pointer.
        unsafe { answer(place, 2048 / threads.max(1)) }
    })
}

/// Returns the parameter block of a launch.
///
/// # Safety
///
/// The list is null, or a terminated list of the driver.
pub(crate) unsafe fn params(extra: *const usize) -> Outcome<Vec<u8>> {
    if extra.is_null() {
        return Ok(vec![]);
    }
    let (mut pointer, mut bytes, mut at) = (0usize, 0usize, 0);
    loop {
        // SAFETY: guaranteed by the caller: pairs up to a zero.
        match unsafe { *extra.add(at) } {
            0 => break,
            // SAFETY: as above.
            1 => pointer = unsafe { *extra.add(at + 1) },
            // SAFETY: as above; the value is the address of a size.
            2 => bytes = unsafe { *(*extra.add(at + 1) as *const usize) },
            _ => return Err(code::INVALID_VALUE),
        }
        at += 2;
    }
    // SAFETY: the list states that this many bytes are there.
    Ok(unsafe { std::slice::from_raw_parts(pointer as *const u8, bytes) }.to_vec())
}

/// Checks a launch as a driver does.
pub(crate) fn prepared(handle: usize, launch: &Launch, params: &[u8]) -> Outcome<Object> {
    let (_, object) = object(handle, "function")?;
    let Object::Function { granted, loaded: _, module, kernel } = &object else { return Err(code::INVALID_HANDLE) };
    if launch.shared_bytes > *granted {
        violation(format!("a launch with {} bytes of shared memory, of which {granted} were granted", launch.shared_bytes));
        return Err(code::INVALID_VALUE);
    }
    let (_, module) = self::object(*module, "module")?;
    if let Object::Module(_, code) = module {
        let layout = broadloom_device::param_layout(&code.functions[*kernel]);
        let bytes = layout.last().map_or(0, |last| last.offset + last.bytes);
        if bytes != params.len() as u64 {
            violation(format!("a kernel with {bytes} bytes of parameters got {}", params.len()));
            return Err(code::INVALID_VALUE);
        }
    }
    Ok(object)
}

pub(crate) unsafe fn launch(name: &'static str, handle: usize, launch: Launch, at: usize, extra: *const usize) -> Code {
    call(name, || {
        // SAFETY: the caller's list.
        let params = unsafe { params(extra) }?;
        let Object::Function { loaded, kernel, .. } = prepared(handle, &launch, &params)? else {
            return Err(code::INVALID_HANDLE);
        };
        let (gpu, stream) = stream(at)?;
        judged(gpu, loaded.launch(kernel, &Launch { stream, ..launch }, &params))
    })
}
