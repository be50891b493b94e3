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
mod relocate;

use crate::abi::Warp;
use crate::map::{Mapping, Pages, page_bytes};
use elf::Elf;
use std::ops::Range;

/// Function of generated code.
pub type Entry = unsafe extern "C" fn(*mut Warp);

/// Name of the function that is called.
const ENTRY: &str = "kernel";
/// Maximum bytes of one object in memory.
const MAX_BYTES: u64 = 256 << 20;
/// Maximum sections and symbols of one object.
const MAX_ENTRIES: usize = 1 << 20;

/// Reason why an object was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectError {
    /// Not an object file, or a broken one, with the reason.
    Malformed(&'static str),
    /// An object for another machine.
    OtherMachine(u16),
    /// A name that nothing defines.
    Undefined(String),
    /// A relocation that this loader does not know.
    UnknownRelocation(u32),
    /// A relocation whose value does not fit.
    OutOfRange(u32),
    /// The host gave no memory.
    NoMemory(String),
}

impl std::fmt::Display for ObjectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ObjectError::Malformed(what) => write!(f, "not a whole object file: {what}"),
            ObjectError::OtherMachine(machine) => write!(f, "an object file for another machine ({machine})"),
            ObjectError::Undefined(name) => write!(f, "`{name}` is used and nothing defines it"),
            ObjectError::UnknownRelocation(kind) => write!(f, "relocation of the unknown kind {kind}"),
            ObjectError::OutOfRange(kind) => write!(f, "relocation of the kind {kind} does not reach its target"),
            ObjectError::NoMemory(why) => write!(f, "no memory for code: {why}"),
        }
    }
}

/// Machine of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    X86_64,
    Aarch64,
}

impl Machine {
    /// Machine this was built for.
    const HOST: Option<Machine> = if cfg!(target_arch = "x86_64") {
        Some(Machine::X86_64)
    } else if cfg!(target_arch = "aarch64") {
        Some(Machine::Aarch64)
    } else {
        None
    };
}

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
        if Some(elf.machine) != Machine::HOST {
            return Err(ObjectError::OtherMachine(elf.machine_number));
        }
        let plan = Plan::new(&elf, page_bytes() as u64)?;
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

/// Memory layout of an object, as offsets from its first byte.
#[derive(Debug)]
pub struct Plan {
    /// Offset of each section, if it is loaded.
    pub(crate) sections: Vec<Option<u64>>,
    /// Offset of the jumps to far functions.
    pub stubs: u64,
    /// Offset of the global offset table.
    pub(crate) table: u64,
    code: Range<u64>,
    constants: Range<u64>,
    data: Range<u64>,
    pub(crate) bytes: u64,
}

/// Bytes of a jump to a far function.
pub const STUB_BYTES: u64 = 16;

impl Plan {
    pub fn new(elf: &Elf<'_>, page: u64) -> Result<Plan, ObjectError> {
        let mut sections = vec![None; elf.sections.len()];
        let mut end = 0u64;
        let place = |end: &mut u64, sections: &mut Vec<Option<u64>>, wanted: &dyn Fn(&elf::Section) -> bool| {
            for (number, section) in elf.sections.iter().enumerate().filter(|(_, section)| section.is_loaded() && wanted(section))
            {
                let align = section.align.max(1);
                if !align.is_power_of_two() || align > page {
                    return Err(ObjectError::Malformed("the alignment of a section"));
                }
                let start = end.next_multiple_of(align);
                sections[number] = Some(start);
                *end =
                    start.checked_add(section.bytes).filter(|end| *end <= MAX_BYTES).ok_or(ObjectError::Malformed("its size"))?;
            }
            Ok(())
        };
        let slots = elf.symbols.len() as u64;
        place(&mut end, &mut sections, &|section| section.is_code())?;
        let stubs = end.next_multiple_of(STUB_BYTES);
        end = (stubs + slots * STUB_BYTES).next_multiple_of(page);
        let code = 0..end;
        let table = end;
        end += slots * 8;
        place(&mut end, &mut sections, &|section| !section.is_code() && !section.is_written())?;
        end = end.next_multiple_of(page);
        let constants = code.end..end;
        place(&mut end, &mut sections, &|section| !section.is_code() && section.is_written())?;
        end = end.next_multiple_of(page);
        let data = constants.end..end;
        if end > MAX_BYTES {
            return Err(ObjectError::Malformed("its size"));
        }
        Ok(Plan { sections, stubs, table, code, constants, data, bytes: end })
    }

    /// Returns the bytes in memory for a first byte at `base`.
    pub fn image(&self, elf: &Elf<'_>, base: u64, resolve: &dyn Fn(&str) -> Option<usize>) -> Result<Vec<u8>, ObjectError> {
        let mut image = vec![0; self.bytes as usize];
        for (section, offset) in elf.sections.iter().zip(&self.sections) {
            if let Some(offset) = offset {
                let contents = elf.contents(section)?;
                image[*offset as usize..][..contents.len()].copy_from_slice(contents);
            }
        }
        relocate::relocate(elf, self, &mut image, base, resolve)?;
        Ok(image)
    }

    /// Returns the offset of the function that is called.
    pub fn entry(&self, elf: &Elf<'_>) -> Result<u64, ObjectError> {
        let missing = || ObjectError::Undefined(ENTRY.to_owned());
        let symbol = elf.symbols.iter().find(|symbol| symbol.name == ENTRY && symbol.is_function()).ok_or_else(missing)?;
        let number = symbol.section.ok_or_else(missing)?;
        let (Some(section), Some(Some(offset))) = (elf.sections.get(number), self.sections.get(number)) else {
            return Err(missing());
        };
        if !section.is_code() || symbol.value >= section.bytes {
            return Err(ObjectError::Malformed("the place of its function"));
        }
        Ok(offset + symbol.value)
    }
}
