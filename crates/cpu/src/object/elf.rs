//! The parts of an ELF object file that a loader needs.

use super::error::ObjectError;

const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;
const ET_REL: u16 = 1;
const SHT_PROGBITS: u32 = 1;
const SHT_SYMTAB: u32 = 2;
const SHT_RELA: u32 = 4;
const SHT_NOBITS: u32 = 8;
const SHF_WRITE: u64 = 1;
const SHF_ALLOC: u64 = 2;
const SHF_EXECINSTR: u64 = 4;
const SHF_TLS: u64 = 0x400;
const STT_FUNC: u8 = 2;
const STT_SECTION: u8 = 3;
const SHN_UNDEF: u16 = 0;
const SHN_LORESERVE: u16 = 0xff00;

/// Maximum bytes of one object in memory.
pub(super) const MAX_BYTES: u64 = 256 << 20;
/// Maximum sections and symbols of one object.
const MAX_ENTRIES: usize = 1 << 20;

/// Architectures of objects that can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectMachine {
    X86_64,
    Aarch64,
}

impl ObjectMachine {
    /// Machine this was built for.
    pub(super) const HOST: Option<ObjectMachine> = if cfg!(target_arch = "x86_64") {
        Some(ObjectMachine::X86_64)
    } else if cfg!(target_arch = "aarch64") {
        Some(ObjectMachine::Aarch64)
    } else {
        None
    };
}

#[derive(Clone, Debug)]
pub(crate) struct Section {
    kind: u32,
    flags: u64,
    offset: u64,
    pub(crate) bytes: u64,
    link: u32,
    info: u32,
    pub(crate) align: u64,
    unwinds: bool,
}

impl Section {
    /// Returns whether the section is needed at run time. Unwind tables are not: nothing unwinds through
    /// generated code.
    pub(crate) fn is_loaded(&self) -> bool {
        self.flags & SHF_ALLOC != 0 && matches!(self.kind, SHT_PROGBITS | SHT_NOBITS) && !self.unwinds
    }

    pub(crate) fn is_code(&self) -> bool {
        self.flags & SHF_EXECINSTR != 0
    }

    pub(crate) fn is_written(&self) -> bool {
        self.flags & SHF_WRITE != 0 || self.kind == SHT_NOBITS
    }
}

#[derive(Clone, Debug)]
pub struct Symbol<'a> {
    pub name: &'a str,
    kind: u8,
    /// Section that contains it; `None` if the object does not define it.
    pub(crate) section: Option<usize>,
    pub(crate) value: u64,
}

impl Symbol<'_> {
    pub(crate) fn is_function(&self) -> bool {
        self.kind == STT_FUNC
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Relocation {
    /// Section that is changed.
    pub(crate) section: usize,
    pub(crate) offset: u64,
    pub(crate) kind: u32,
    pub(crate) symbol: usize,
    pub(crate) addend: i64,
}

/// An object file.
#[derive(Debug)]
pub struct Elf<'a> {
    bytes: &'a [u8],
    pub machine: ObjectMachine,
    pub(crate) machine_number: u16,
    pub(crate) sections: Vec<Section>,
    pub symbols: Vec<Symbol<'a>>,
    pub(crate) relocations: Vec<Relocation>,
}

fn part(bytes: &[u8], offset: u64, count: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    bytes.get(start..start.checked_add(usize::try_from(count).ok()?)?)
}

fn number<const N: usize>(bytes: &[u8], offset: u64) -> Option<[u8; N]> {
    part(bytes, offset, N as u64)?.try_into().ok()
}

fn u16_at(bytes: &[u8], offset: u64) -> Option<u16> {
    number(bytes, offset).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], offset: u64) -> Option<u32> {
    number(bytes, offset).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], offset: u64) -> Option<u64> {
    number(bytes, offset).map(u64::from_le_bytes)
}

/// Returns the text at an offset of a string table.
fn text(table: &[u8], offset: u32) -> Option<&str> {
    let rest = table.get(offset as usize..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}

impl<'a> Elf<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Elf<'a>, ObjectError> {
        let bad = |what| move || ObjectError::Malformed(what);
        // 64 bits, little-endian, the current version.
        if part(bytes, 0, 7) != Some(b"\x7fELF\x02\x01\x01") {
            return Err(ObjectError::Malformed("its first bytes"));
        }
        if u16_at(bytes, 16) != Some(ET_REL) {
            return Err(ObjectError::Malformed("its type"));
        }
        let machine_number = u16_at(bytes, 18).ok_or_else(bad("its header"))?;
        let machine = match machine_number {
            EM_X86_64 => ObjectMachine::X86_64,
            EM_AARCH64 => ObjectMachine::Aarch64,
            other => return Err(ObjectError::OtherMachine(other)),
        };
        let mut elf = Elf { bytes, machine, machine_number, sections: vec![], symbols: vec![], relocations: vec![] };
        elf.read_sections().ok_or_else(bad("its sections"))?;
        for section in &elf.sections {
            if section.is_loaded() && section.flags & SHF_TLS != 0 {
                return Err(ObjectError::Malformed("variables of threads"));
            }
            elf.contents(section)?;
        }
        elf.read_symbols().ok_or_else(bad("its symbols"))?;
        elf.read_relocations().ok_or_else(bad("its relocations"))?;
        Ok(elf)
    }

    fn read_sections(&mut self) -> Option<()> {
        let bytes = self.bytes;
        let table = u64_at(bytes, 40)?;
        if u16_at(bytes, 58)? != 64 {
            return None;
        }
        let mut count = usize::from(u16_at(bytes, 60)?);
        let mut names = u32::from(u16_at(bytes, 62)?);
        // Numbers too large for the header stand in the first section.
        if count == 0 {
            count = usize::try_from(u64_at(bytes, table.checked_add(32)?)?).ok()?;
        }
        if names == 0xffff {
            names = u32_at(bytes, table.checked_add(40)?)?;
        }
        if count > MAX_ENTRIES {
            return None;
        }
        part(bytes, table, count as u64 * 64)?;
        let mut name_offsets = Vec::with_capacity(count);
        for index in 0..count {
            let at = table + index as u64 * 64;
            name_offsets.push(u32_at(bytes, at)?);
            self.sections.push(Section {
                kind: u32_at(bytes, at + 4)?,
                flags: u64_at(bytes, at + 8)?,
                offset: u64_at(bytes, at + 24)?,
                bytes: u64_at(bytes, at + 32)?,
                link: u32_at(bytes, at + 40)?,
                info: u32_at(bytes, at + 44)?,
                align: u64_at(bytes, at + 48)?,
                unwinds: false,
            });
        }
        let names = self.sections.get(names as usize)?;
        let names = part(bytes, names.offset, names.bytes)?;
        for (section, offset) in self.sections.iter_mut().zip(name_offsets) {
            section.unwinds = text(names, offset)?.starts_with(".eh_frame");
        }
        Some(())
    }

    fn read_symbols(&mut self) -> Option<()> {
        let bytes = self.bytes;
        let Some(table) = self.sections.iter().find(|section| section.kind == SHT_SYMTAB) else { return Some(()) };
        let names = self.sections.get(table.link as usize)?;
        let names = part(bytes, names.offset, names.bytes)?;
        let entries = part(bytes, table.offset, table.bytes)?;
        if !table.bytes.is_multiple_of(24) || entries.len() / 24 > MAX_ENTRIES {
            return None;
        }
        for entry in entries.chunks_exact(24) {
            let kind = entry[4] & 0xf;
            let section = match u16_at(entry, 6)? {
                SHN_UNDEF => None,
                // Absolute and common symbols, and numbers beyond 16 bits: LLVM emits none for kernels.
                SHN_LORESERVE.. => {
                    // A file's name is an absolute symbol that nothing refers to.
                    None
                }
                number => Some(usize::from(number)),
            };
            let value = u64_at(entry, 8)?;
            if let Some(number) = section
                && self.sections.get(number).is_none_or(|section| value > section.bytes)
            {
                return None;
            }
            let name = if kind == STT_SECTION { "" } else { text(names, u32_at(entry, 0)?)? };
            self.symbols.push(Symbol { name, kind, section, value });
        }
        Some(())
    }

    fn read_relocations(&mut self) -> Option<()> {
        let bytes = self.bytes;
        // Tables do not overlap, so together they have no more entries than fit into the file.
        let most = bytes.len() / 24;
        for table in self.sections.iter().filter(|section| section.kind == SHT_RELA) {
            let section = table.info as usize;
            if !self.sections.get(section)?.is_loaded() {
                continue;
            }
            if !table.bytes.is_multiple_of(24) {
                return None;
            }
            for entry in part(bytes, table.offset, table.bytes)?.chunks_exact(24) {
                let info = u64_at(entry, 8)?;
                let symbol = (info >> 32) as usize;
                if symbol >= self.symbols.len() {
                    return None;
                }
                if self.relocations.len() >= most {
                    return None;
                }
                let addend = u64_at(entry, 16)? as i64;
                self.relocations.push(Relocation { section, offset: u64_at(entry, 0)?, kind: info as u32, symbol, addend });
            }
        }
        Some(())
    }

    /// Returns the bytes of a section; none if it is all zeros.
    pub(crate) fn contents(&self, section: &Section) -> Result<&'a [u8], ObjectError> {
        let outside = ObjectError::Malformed("a section outside of it");
        if section.kind == SHT_NOBITS {
            return if section.bytes <= MAX_BYTES { Ok(&[]) } else { Err(outside) };
        }
        part(self.bytes, section.offset, section.bytes).ok_or(outside)
    }
}
