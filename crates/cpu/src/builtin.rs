//! Functions that the device provides: `vprintf`, `malloc`, `free`, `__assertfail`.

use crate::execute::{Strand, Surroundings};
use crate::grid::Failure;
use crate::probe;
use broadloom_device::{FaultKind, KernelMemory, format_printf};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Longest string that is read from a kernel's memory.
const MAX_STRING: usize = 1 << 16;

/// Memory of a kernel. Generic addresses are host addresses.
struct HostMemory;

impl KernelMemory for HostMemory {
    type Error = Failure;

    fn bytes<const N: usize>(&mut self, address: u64) -> Result<[u8; N], Failure> {
        let mut bytes = [0; N];
        match probe::copy(address, &mut bytes, false) {
            Some(_) => Ok(bytes),
            None => Err(stray(address)),
        }
    }

    fn string(&mut self, address: u64) -> Result<Vec<u8>, Failure> {
        const PIECE: usize = 256;
        let mut text = vec![];
        while text.len() < MAX_STRING {
            let start = text.len();
            text.resize(start + PIECE, 0);
            // A piece ends at a page boundary, so the copy never reads past the string's last page.
            let at = address.wrapping_add(start as u64);
            let most = PIECE - (at as usize % PIECE);
            let count = probe::copy(at, &mut text[start..start + most], true).ok_or_else(|| stray(at))?;
            text.truncate(start + count);
            if count < most {
                break;
            }
        }
        Ok(text)
    }
}

fn stray(address: u64) -> Failure {
    let message = format!("{address:#x} is not in any memory");
    Failure { address: Some(address), ..Failure::new(FaultKind::OutOfBounds, message) }
}

/// Returns the surroundings of a strand's block.
///
/// # Safety
///
/// `strand` is alive, with its block.
unsafe fn surroundings<'a>(strand: *mut Strand) -> &'a Surroundings {
    // SAFETY: surroundings outlive the workers and their blocks.
    unsafe { &*(*(*strand).block).surroundings }
}

/// Implements `vprintf`.
///
/// # Safety
///
/// `strand` is alive, with its block.
pub(crate) unsafe fn printf(strand: *mut Strand, format: u64, arguments: u64) -> Result<u64, Failure> {
    let format = HostMemory.string(format)?;
    let (text, count) = format_printf(&mut HostMemory, &format, arguments)?;
    // SAFETY: passed on.
    let output = unsafe { &surroundings(strand).output };
    // The receiver is foreign code. Unwinding through generated code is impossible.
    match catch_unwind(AssertUnwindSafe(|| (output.0)(&text))) {
        Ok(()) => Ok(count),
        Err(_) => Err(Failure::new(FaultKind::Trap, "what receives the text of printf panicked")),
    }
}

/// Implements `malloc`.
///
/// # Safety
///
/// `strand` is alive, with its block.
pub(crate) unsafe fn malloc(strand: *mut Strand, bytes: u64) -> u64 {
    // SAFETY: passed on.
    unsafe { surroundings(strand) }.memory.heap_allocate(bytes)
}

/// Implements `free`.
///
/// # Safety
///
/// `strand` is alive, with its block.
pub(crate) unsafe fn free(strand: *mut Strand, address: u64) -> Result<u64, Failure> {
    // SAFETY: passed on.
    match unsafe { surroundings(strand) }.memory.heap_free(address) {
        Ok(()) => Ok(0),
        Err(error) => Err(Failure { address: Some(address), ..Failure::new(FaultKind::BadFree, error.to_string()) }),
    }
}

/// Reports a failed assertion. The arguments are message, file, line and function.
pub(crate) fn assert([message, file, line, function]: [u64; 4]) -> Result<u64, Failure> {
    let text = |address| HostMemory.string(address).map(|text| String::from_utf8_lossy(&text).into_owned());
    let (message, file, function) = (text(message)?, text(file)?, text(function)?);
    let text = format!("{file}:{}: {function}: assertion `{message}` failed", line as u32);
    Err(Failure::new(FaultKind::Assert, text))
}
