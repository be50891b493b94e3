//! Pointers that a program passes.
//!
//! The functions of the library take these in place of raw pointers, so that the `unsafe` of following one stands here and nowhere else.
//! **A null pointer is an error, never followed.** What else is wrong with a pointer cannot be seen from here: NVIDIA's library takes it for
//! good as well.

use crate::status::{Outcome, Status};
use std::ffi::{CStr, c_char};

/// Where an answer goes.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    /// Writes an answer that must be wanted.
    pub(crate) fn set(self, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        self.set_if_wanted(value);
        Ok(())
    }

    /// Writes an answer, when there is a place for it.
    pub(crate) fn set_if_wanted(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: the program gave the place for an answer of this type; it need not be aligned.
            unsafe { self.0.write_unaligned(value) };
        }
    }

    /// An error, when there is no place for an answer.
    pub(crate) fn wanted(self) -> Outcome {
        if self.0.is_null() { Err(Status::INVALID_VALUE) } else { Ok(()) }
    }

    /// Whether there is no place for an answer.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// What stands there now.
    pub(crate) fn get(self) -> Outcome<T> {
        In(self.0.cast_const()).get()
    }

    /// Writes several answers one behind the other.
    pub(crate) fn set_all(self, values: &[T]) -> Outcome {
        if values.is_empty() {
            return Ok(());
        }
        self.wanted()?;
        for (index, value) in values.iter().enumerate() {
            // SAFETY: the program gave a place for as many answers as it asked for.
            unsafe { self.0.add(index).write_unaligned(*value) };
        }
        Ok(())
    }

    /// Where it is.
    pub(crate) fn address(self) -> usize {
        self.0 as usize
    }

    /// A place at an address that a program gave elsewhere.
    pub(crate) fn at(address: usize) -> Out<T> {
        Out(address as *mut T)
    }
}

/// Something that is read.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// What stands there.
    pub(crate) fn get(self) -> Outcome<T> {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the program says that a value of this type stands there; it need not be aligned.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// The bytes at an address, where there are so many.
    pub(crate) fn get_if_there(self) -> Outcome<T> {
        if crate::mapped::readable(self.address()) < size_of::<T>() {
            return Err(Status::INVALID_IMAGE);
        }
        self.get()
    }

    /// Several that stand one behind the other.
    pub(crate) fn get_all(self, count: usize) -> Outcome<Vec<T>> {
        if count == 0 {
            return Ok(vec![]);
        }
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the program says that so many stand there.
        Ok((0..count).map(|index| unsafe { self.0.add(index).read_unaligned() }).collect())
    }

    /// Whether there is nothing to be read.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Where it is.
    pub(crate) fn address(self) -> usize {
        self.0 as usize
    }

    /// What stands at an address that a program gave elsewhere.
    pub(crate) fn at(address: usize) -> In<T> {
        In(address as *const T)
    }
}

/// A text that ends with a zero.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// The text at an address that a program gave elsewhere.
    pub(crate) fn at(address: usize) -> Text {
        Text(address as *const c_char)
    }

    /// The text; bytes that are no UTF-8 are replaced.
    pub(crate) fn get(self) -> Outcome<String> {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the program says that a text with a zero behind it stands there.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }
}

/// Bytes at an address, copied. Nothing is read when there are none.
pub(crate) fn bytes_at(address: usize, count: usize) -> Outcome<Vec<u8>> {
    if count == 0 {
        return Ok(vec![]);
    }
    if address == 0 {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the program says that so many bytes stand there.
    Ok(unsafe { std::slice::from_raw_parts(address as *const u8, count) }.to_vec())
}

/// Bytes at an address that the program's own data name, copied; an error when fewer are there.
pub(crate) fn bytes_there(address: usize, count: usize) -> Outcome<Vec<u8>> {
    if crate::mapped::readable(address) < count {
        return Err(Status::INVALID_IMAGE);
    }
    bytes_at(address, count)
}

/// Copies bytes between places of this process, which may overlap.
pub(crate) fn move_bytes(to: usize, from: usize, count: usize) {
    // SAFETY: both ranges are the program's or were checked to be inside of allocations; the program promises that they are there while the
    // copy is under way, as it does to NVIDIA's library.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, count) };
}

/// Sets values of 1, 2 or 4 bytes one behind the other.
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
