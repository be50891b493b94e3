//! Loader for relocatable object files: from the bytes that LLVM emits to callable code.
//!
//! Sections are laid out in three runs of pages (code, constants, data) and relocations are applied. The
//! pages are then made executable, read-only or writable; none is ever both writable and executable. Names
//! that the object does not define are looked up in a fixed table. **Every offset and length of the file is
//! checked: for any bytes, the outcome is code or an error.** (The loader does not check the behaviour of the
//! code: objects come from the compiler, or from cache entries tagged with this user's secret.)
//!
//! Follows the ELF specification and its supplements for x86-64 and AArch64.

pub mod elf;
mod error;
mod plan;
mod relocate;

use crate::abi::Warp;
use crate::map::{Mapping, Pages, page_bytes};
use elf::Elf;

pub use elf::ObjectMachine;
pub use error::ObjectError;
pub use plan::{ObjectLayout, STUB_BYTES};

/// Function of generated code.
pub type Entry = unsafe extern "C" fn(*mut Warp);

/// Code in memory.
#[derive(Debug)]
pub struct Object {
    mapping: Mapping,
    entry: usize,
}

impl Object {
    /// Loads an object for this machine.
    pub fn load(bytes: &[u8]) -> Result<Object, ObjectError> {
        let elf = Elf::parse(bytes)?;
        if Some(elf.machine) != ObjectMachine::HOST {
            return Err(ObjectError::OtherMachine(elf.machine_number));
        }
        let plan = ObjectLayout::new(&elf, page_bytes() as u64)?;
        let failed = |error: std::io::Error| ObjectError::NoMemory(error.to_string());
        let mapping = Mapping::new(plan.bytes as usize, Pages::Code).map_err(failed)?;
        let image = plan.image(&elf, mapping.start() as u64, &crate::externs::address)?;
        // SAFETY: the image has `plan.bytes` bytes, the mapping at least as many, and both are separate
        // memory.
        unsafe { std::ptr::copy_nonoverlapping(image.as_ptr(), mapping.start(), image.len()) };
        let entry = plan.entry(&elf)?;
        for (range, protection) in [
            (&plan.code, libc::PROT_READ | libc::PROT_EXEC),
            (&plan.constants, libc::PROT_READ),
            (&plan.data, libc::PROT_READ | libc::PROT_WRITE),
        ] {
            if !range.is_empty() {
                mapping.protect(range.start as usize, (range.end - range.start) as usize, protection).map_err(failed)?;
            }
        }
        flush_instructions(mapping.start(), plan.code.end as usize);
        Ok(Object { entry: mapping.start() as usize + entry as usize, mapping })
    }

    /// Returns the function `kernel`.
    pub fn entry(&self) -> Entry {
        // SAFETY: `entry` is the address of a function symbol in the executable part of the mapping, which
        // lives as long as `self`. The compiler guarantees that it is a function of this type
        // (`Code::object`).
        unsafe { std::mem::transmute::<usize, Entry>(self.entry) }
    }

    /// Returns the bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        self.mapping.bytes()
    }
}

/// Makes instructions that were written as data visible to the core's instruction fetch. x86-64 needs
/// nothing.
fn flush_instructions(start: *mut u8, bytes: usize) {
    #[cfg(target_arch = "aarch64")]
    {
        const LINE: usize = 64;
        let mut at = start as usize & !(LINE - 1);
        let end = start as usize + bytes;
        while at < end {
            // SAFETY: cache maintenance by address of memory that is mapped and readable.
            unsafe { std::arch::asm!("dc cvau, {0}", "dsb ish", "ic ivau, {0}", in(reg) at) };
            at += LINE;
        }
        // SAFETY: barriers only order.
        unsafe { std::arch::asm!("dsb ish", "isb") };
    }
    #[cfg(not(target_arch = "aarch64"))]
    let _ = (start, bytes);
}
