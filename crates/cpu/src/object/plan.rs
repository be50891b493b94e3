//! Memory layout of an object.

use super::elf::{Elf, MAX_BYTES, Section};
use super::error::ObjectError;
use std::ops::Range;

/// Name of the function that is called.
const ENTRY: &str = "kernel";
/// Bytes of a jump to a far function.
pub const STUB_BYTES: u64 = 16;

/// Memory layout of an object, as offsets from its first byte.
#[derive(Debug)]
pub struct ObjectLayout {
    /// Offset of each section, if it is loaded.
    pub(crate) sections: Vec<Option<u64>>,
    /// Offset of the jumps to far functions.
    pub stubs: u64,
    /// Offset of the global offset table.
    pub(crate) table: u64,
    pub(super) code: Range<u64>,
    pub(super) constants: Range<u64>,
    pub(super) data: Range<u64>,
    pub(crate) bytes: u64,
}

impl ObjectLayout {
    pub fn new(elf: &Elf<'_>, page: u64) -> Result<ObjectLayout, ObjectError> {
        let mut sections = vec![None; elf.sections.len()];
        let mut end = 0u64;
        let place = |end: &mut u64, sections: &mut Vec<Option<u64>>, wanted: &dyn Fn(&Section) -> bool| {
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
        Ok(ObjectLayout { sections, stubs, table, code, constants, data, bytes: end })
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
