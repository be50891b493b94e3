//! Pointers that a program passes, and texts that are returned to it.
//!
//! Exported functions take these types in place of raw pointers, so that all `unsafe` dereferencing is in
//! this module. **A null pointer is an error and is never dereferenced.** Other invalid pointers cannot be
//! detected here. NVIDIA's library trusts them as well.

use crate::status::{Outcome, Status};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char};
use std::sync::{Mutex, PoisonError};

/// Pointer to an output value.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    /// Writes the value. A null pointer is an error.
    pub(crate) fn set(self, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        self.set_if_wanted(value);
        Ok(())
    }

    /// Calls a function and writes its value. A null pointer is an error, and the function is not called.
    pub(crate) fn set_by(self, value: impl FnOnce() -> Outcome<T>) -> Outcome {
        self.wanted()?;
        self.set(value()?)
    }

    /// Writes the value unless the pointer is null.
    pub(crate) fn set_if_wanted(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: the program passed a pointer to an output of this type. It need not be aligned.
            unsafe { self.0.write_unaligned(value) };
        }
    }

    /// Returns an error if the pointer is null.
    pub(crate) fn wanted(self) -> Outcome {
        if self.0.is_null() { Err(Status::INVALID_VALUE) } else { Ok(()) }
    }

    /// Tests if the pointer is null.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Reads the current value.
    pub(crate) fn get(self) -> Outcome<T> {
        In(self.0.cast_const()).get()
    }

    /// Writes consecutive values.
    pub(crate) fn set_all(self, values: &[T]) -> Outcome {
        if values.is_empty() {
            return Ok(());
        }
        self.wanted()?;
        for (index, value) in values.iter().enumerate() {
            // SAFETY: the program passed a pointer to as many outputs as it requested.
            unsafe { self.0.add(index).write_unaligned(*value) };
        }
        Ok(())
    }

    pub(crate) fn address(self) -> usize {
        self.0 as usize
    }

    /// Creates an output pointer from an address.
    pub(crate) fn at(address: usize) -> Out<T> {
        Out(address as *mut T)
    }
}

/// Pointer to an input value.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// Reads the value.
    pub(crate) fn get(self) -> Outcome<T> {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the program states that the pointer is to a value of this type. It need not be aligned.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// Reads the value after checking that its bytes are mapped.
    pub(crate) fn get_if_there(self) -> Outcome<T> {
        if crate::mapped::readable(self.address()) < size_of::<T>() {
            return Err(Status::INVALID_IMAGE);
        }
        self.get()
    }

    /// Reads consecutive values.
    pub(crate) fn get_all(self, count: usize) -> Outcome<Vec<T>> {
        if count == 0 {
            return Ok(vec![]);
        }
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the program states that the pointer is to this many values.
        Ok((0..count).map(|index| unsafe { self.0.add(index).read_unaligned() }).collect())
    }

    /// Tests if the pointer is null.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn address(self) -> usize {
        self.0 as usize
    }

    /// Creates an input pointer from an address.
    pub(crate) fn at(address: usize) -> In<T> {
        In(address as *const T)
    }
}

/// Pointer to a zero-terminated text.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// Creates a text pointer from an address.
    pub(crate) fn at(address: usize) -> Text {
        Text(address as *const c_char)
    }

    /// Reads the text. Bytes that are not UTF-8 are replaced.
    pub(crate) fn get(self) -> Outcome<String> {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the program states that the pointer is to a zero-terminated text.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }
}

/// Returns a pointer to a zero-terminated copy of a text that stays valid.
pub(crate) fn kept_text(text: &'static str) -> *const c_char {
    static KEPT: Mutex<Option<HashMap<&'static str, CString>>> = Mutex::new(None);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let texts = kept.get_or_insert_with(HashMap::new);
    // The texts contain no zero, and the contents of a `CString` do not move with it.
    texts.entry(text).or_insert_with(|| CString::new(text).unwrap_or_default()).as_ptr()
}

/// Copies bytes from an address. Nothing is read if `count` is 0.
pub(crate) fn bytes_at(address: usize, count: usize) -> Outcome<Vec<u8>> {
    if count == 0 {
        return Ok(vec![]);
    }
    if address == 0 {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the program states that this many bytes are at the address.
    Ok(unsafe { std::slice::from_raw_parts(address as *const u8, count) }.to_vec())
}

/// Copies bytes from an address found in the program's data. Returns an error if fewer bytes are mapped.
pub(crate) fn bytes_there(address: usize, count: usize) -> Outcome<Vec<u8>> {
    if crate::mapped::readable(address) < count {
        return Err(Status::INVALID_IMAGE);
    }
    bytes_at(address, count)
}

/// Copies bytes within this process. The ranges may overlap.
pub(crate) fn move_bytes(to: usize, from: usize, count: usize) {
    // SAFETY: both ranges belong to the program or were checked to be inside allocations. The program
    // promises that they stay valid during the copy, as it does to NVIDIA's library.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, count) };
}

/// Fills memory with consecutive values of 1, 2 or 4 bytes.
pub(crate) fn fill_values(to: usize, value: u32, size: usize, count: usize) {
    match size {
        1 => {
            // SAFETY: as in `move_bytes`.
            unsafe { std::ptr::write_bytes(to as *mut u8, value as u8, count) };
        }
        2 => {
            for index in 0..count {
                // SAFETY: as in `move_bytes`.
                unsafe { (to as *mut u16).add(index).write_unaligned(value as u16) };
            }
        }
        _ => {
            for index in 0..count {
                // SAFETY: as in `move_bytes`.
                unsafe { (to as *mut u32).add(index).write_unaligned(value) };
            }
        }
    }
}
