//! The linker. Its image is the text after a magic number, and loading a module accepts either.

use crate::code::{self, Code};
use crate::device::answer;
use crate::faults::violation;
use crate::state::{Object, call, current, enter, giving_back, object, remove, state};
use crate::text::{ELF, OURS, verified};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

pub(crate) unsafe fn create(place: *mut usize) -> Code {
    call("cuLinkCreate", || {
        let gpu = current()?;
        // SAFETY: the caller's output pointer.
        unsafe { answer(place, enter(gpu, Object::Link(None))) }
    })
}

pub(crate) unsafe fn add(handle: usize, kind: c_int, data: *const c_void, bytes: usize) -> Code {
    call("cuLinkAddData", || {
        let (gpu, object) = object(handle, "linker")?;
        let Object::Link(None) = object else { return Err(code::INVALID_HANDLE) };
        if kind != 1 || data.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller states that this many bytes are there.
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) };
        let Some(text) = bytes.strip_suffix(b"\0") else {
            violation("a text without a zero behind it".to_owned());
            return Err(code::INVALID_VALUE);
        };
        verified(text).map_err(|_| code::INVALID_PTX)?;
        let image: Arc<[u8]> = [ELF, OURS, bytes].concat().into();
        state().gpus[gpu].objects.insert(handle, Object::Link(Some(image)));
        Ok(())
    })
}

pub(crate) unsafe fn complete(handle: usize, place: *mut *mut c_void, bytes: *mut usize) -> Code {
    call("cuLinkComplete", || {
        let (_, object) = object(handle, "linker")?;
        let Object::Link(Some(image)) = object else { return Err(code::INVALID_IMAGE) };
        // SAFETY: the caller's output pointers.
        unsafe {
            answer(place, image.as_ptr().cast_mut().cast())?;
            answer(bytes, image.len())
        }
    })
}

pub(crate) fn destroy(handle: usize) -> Code {
    giving_back("cuLinkDestroy", || remove(handle, "linker"))
}
