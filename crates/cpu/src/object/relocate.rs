//! Relocation of an image: patches the places that hold or reach addresses.

use super::elf::{Elf, ObjectMachine, Relocation};
use super::error::ObjectError;
use super::plan::{ObjectLayout, STUB_BYTES};

impl ObjectLayout {
    /// Returns the bytes in memory for a first byte at `base`.
    pub fn image(&self, elf: &Elf<'_>, base: u64, resolve: &dyn Fn(&str) -> Option<usize>) -> Result<Vec<u8>, ObjectError> {
        let mut image = vec![0; self.bytes as usize];
        for (section, offset) in elf.sections.iter().zip(&self.sections) {
            if let Some(offset) = offset {
                let contents = elf.contents(section)?;
                image[*offset as usize..][..contents.len()].copy_from_slice(contents);
            }
        }
        relocate(elf, self, &mut image, base, resolve)?;
        Ok(image)
    }
}

/// Applies all relocations. `base` is the address of the image's first byte.
fn relocate(
    elf: &Elf<'_>,
    plan: &ObjectLayout,
    image: &mut [u8],
    base: u64,
    resolve: &dyn Fn(&str) -> Option<usize>,
) -> Result<(), ObjectError> {
    for relocation in &elf.relocations {
        let Some(Some(start)) = plan.sections.get(relocation.section).copied() else { continue };
        let section = &elf.sections[relocation.section];
        let width = width(elf.machine, relocation.kind)?;
        let inside = relocation.offset.checked_add(width).is_some_and(|end| end <= section.bytes);
        if !inside {
            return Err(ObjectError::Malformed("a relocation outside of its section"));
        }
        let symbol = &elf.symbols[relocation.symbol];
        let (target, local) = match symbol.section {
            Some(number) => {
                let offset = plan.sections[number].ok_or(ObjectError::Malformed("a relocation to what is not loaded"))?;
                (base.wrapping_add(offset).wrapping_add(symbol.value), true)
            }
            None => match resolve(symbol.name) {
                Some(address) => (address as u64, false),
                None => return Err(ObjectError::Undefined(symbol.name.to_owned())),
            },
        };
        let mut place = RelocationSite { image, base, at: start + relocation.offset, plan, relocation, target, local };
        match elf.machine {
            ObjectMachine::X86_64 => place.x86_64()?,
            ObjectMachine::Aarch64 => place.aarch64()?,
        }
    }
    Ok(())
}

/// Returns the number of bytes that a relocation changes.
fn width(machine: ObjectMachine, kind: u32) -> Result<u64, ObjectError> {
    Ok(match (machine, kind) {
        (ObjectMachine::X86_64, x86::NONE) | (ObjectMachine::Aarch64, arm::NONE) => 0,
        (ObjectMachine::X86_64, x86::ABS64 | x86::PC64) | (ObjectMachine::Aarch64, arm::ABS64 | arm::PREL64) => 8,
        (ObjectMachine::X86_64, _) | (ObjectMachine::Aarch64, _) => 4,
    })
}

mod x86 {
    pub(super) const NONE: u32 = 0;
    pub(super) const ABS64: u32 = 1;
    pub(super) const PC32: u32 = 2;
    pub(super) const PLT32: u32 = 4;
    pub(super) const GOTPCREL: u32 = 9;
    pub(super) const ABS32: u32 = 10;
    pub(super) const ABS32S: u32 = 11;
    pub(super) const PC64: u32 = 24;
    pub(super) const GOTPCRELX: u32 = 41;
    pub(super) const REX_GOTPCRELX: u32 = 42;
}

mod arm {
    pub(super) const NONE: u32 = 0;
    pub(super) const ABS64: u32 = 257;
    pub(super) const ABS32: u32 = 258;
    pub(super) const PREL64: u32 = 260;
    pub(super) const PREL32: u32 = 261;
    pub(super) const MOVW_UABS_G0: u32 = 263;
    pub(super) const MOVW_UABS_G0_NC: u32 = 264;
    pub(super) const MOVW_UABS_G1: u32 = 265;
    pub(super) const MOVW_UABS_G1_NC: u32 = 266;
    pub(super) const MOVW_UABS_G2: u32 = 267;
    pub(super) const MOVW_UABS_G2_NC: u32 = 268;
    pub(super) const MOVW_UABS_G3: u32 = 269;
    pub(super) const ADR_PREL_LO21: u32 = 274;
    pub(super) const ADR_PREL_PG_HI21: u32 = 275;
    pub(super) const ADR_PREL_PG_HI21_NC: u32 = 276;
    pub(super) const ADD_ABS_LO12_NC: u32 = 277;
    pub(super) const LDST8_ABS_LO12_NC: u32 = 278;
    pub(super) const TSTBR14: u32 = 279;
    pub(super) const CONDBR19: u32 = 280;
    pub(super) const JUMP26: u32 = 282;
    pub(super) const CALL26: u32 = 283;
    pub(super) const LDST16_ABS_LO12_NC: u32 = 284;
    pub(super) const LDST32_ABS_LO12_NC: u32 = 285;
    pub(super) const LDST64_ABS_LO12_NC: u32 = 286;
    pub(super) const LDST128_ABS_LO12_NC: u32 = 299;
    pub(super) const ADR_GOT_PAGE: u32 = 311;
    pub(super) const LD64_GOT_LO12_NC: u32 = 312;
    pub(super) const PLT32: u32 = 314;
}

/// Relocation about to be applied, and the bytes of the image that it changes.
struct RelocationSite<'a> {
    image: &'a mut [u8],
    base: u64,
    /// Offset in the image.
    at: u64,
    plan: &'a ObjectLayout,
    relocation: &'a Relocation,
    /// Address of the symbol.
    target: u64,
    /// True if the symbol is in the image.
    local: bool,
}

impl RelocationSite<'_> {
    fn out_of_range(&self) -> ObjectError {
        ObjectError::OutOfRange(self.relocation.kind)
    }

    /// Returns the address of the place itself.
    fn here(&self) -> u64 {
        self.base.wrapping_add(self.at)
    }

    fn put(&mut self, bytes: &[u8]) {
        self.image[self.at as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Returns the address of a word that holds the symbol's address.
    fn table_entry(&mut self) -> u64 {
        let at = self.plan.table + 8 * self.relocation.symbol as u64;
        self.image[at as usize..][..8].copy_from_slice(&self.target.to_le_bytes());
        self.base.wrapping_add(at)
    }

    /// Returns the address of code that jumps to the symbol at any distance.
    fn stub(&mut self, machine: ObjectMachine) -> u64 {
        let at = self.plan.stubs + STUB_BYTES * self.relocation.symbol as u64;
        let mut code = [0; STUB_BYTES as usize];
        match machine {
            // jmp *(%rip); the address
            ObjectMachine::X86_64 => {
                code[..6].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
                code[6..14].copy_from_slice(&self.target.to_le_bytes());
            }
            // ldr x16, 8; br x16; the address
            ObjectMachine::Aarch64 => {
                code[..4].copy_from_slice(&0x5800_0050u32.to_le_bytes());
                code[4..8].copy_from_slice(&0xd61f_0200u32.to_le_bytes());
                code[8..].copy_from_slice(&self.target.to_le_bytes());
            }
        }
        self.image[at as usize..][..code.len()].copy_from_slice(&code);
        self.base.wrapping_add(at)
    }

    fn x86_64(&mut self) -> Result<(), ObjectError> {
        let addend = self.relocation.addend;
        let here = self.here();
        let absolute = self.target.wrapping_add_signed(addend);
        let relative = |target: u64| target.wrapping_add_signed(addend).wrapping_sub(here) as i64;
        match self.relocation.kind {
            x86::NONE => {}
            x86::ABS64 => self.put(&absolute.to_le_bytes()),
            x86::PC64 => self.put(&relative(self.target).to_le_bytes()),
            x86::ABS32 => {
                let value = u32::try_from(absolute).map_err(|_| self.out_of_range())?;
                self.put(&value.to_le_bytes());
            }
            x86::ABS32S => {
                let value = i32::try_from(absolute as i64).map_err(|_| self.out_of_range())?;
                self.put(&value.to_le_bytes());
            }
            x86::PC32 | x86::PLT32 => {
                let mut value = i32::try_from(relative(self.target));
                if value.is_err() && !self.local {
                    value = i32::try_from(relative(self.stub(ObjectMachine::X86_64)));
                }
                let value = value.map_err(|_| self.out_of_range())?;
                self.put(&value.to_le_bytes());
            }
            x86::GOTPCREL | x86::GOTPCRELX | x86::REX_GOTPCRELX => {
                let entry = self.table_entry();
                let value = i32::try_from(relative(entry)).map_err(|_| self.out_of_range())?;
                self.put(&value.to_le_bytes());
            }
            other => return Err(ObjectError::UnknownRelocation(other)),
        }
        Ok(())
    }

    /// Changes bits of the instruction.
    fn patch(&mut self, mask: u32, bits: u32) {
        let at = self.at as usize;
        let mut word = [0; 4];
        word.copy_from_slice(&self.image[at..at + 4]);
        let word = u32::from_le_bytes(word) & !mask | bits & mask;
        self.put(&word.to_le_bytes());
    }

    /// Patches a branch distance in words into a field of `bits` bits.
    fn branch(&mut self, target: u64, bits: u32, shift: u32) -> Result<(), ObjectError> {
        let distance = target.wrapping_sub(self.here()) as i64;
        let limit = 1i64 << (bits + 1);
        if distance % 4 != 0 || distance < -limit || distance >= limit {
            return Err(self.out_of_range());
        }
        let mask = ((1u32 << bits) - 1) << shift;
        self.patch(mask, ((distance >> 2) as u32) << shift);
        Ok(())
    }

    /// Patches the 21 bits of `adr` and `adrp`.
    fn adr(&mut self, value: i64) -> Result<(), ObjectError> {
        if !(-(1 << 20)..1 << 20).contains(&value) {
            return Err(self.out_of_range());
        }
        let value = value as u32;
        self.patch(0x60ff_ffe0, (value & 3) << 29 | (value >> 2 & 0x7_ffff) << 5);
        Ok(())
    }

    /// Patches the low 12 bits of an address, for an access of `1 << scale` bytes.
    fn low12(&mut self, address: u64, scale: u32) -> Result<(), ObjectError> {
        let low = (address & 0xfff) as u32;
        if low & ((1 << scale) - 1) != 0 {
            return Err(self.out_of_range());
        }
        self.patch(0x003f_fc00, (low >> scale) << 10);
        Ok(())
    }

    fn aarch64(&mut self) -> Result<(), ObjectError> {
        let addend = self.relocation.addend;
        let here = self.here();
        let absolute = self.target.wrapping_add_signed(addend);
        let pages = |address: u64| (address >> 12) as i64 - (here >> 12) as i64;
        match self.relocation.kind {
            arm::NONE => {}
            arm::ABS64 => self.put(&absolute.to_le_bytes()),
            arm::PREL64 => self.put(&absolute.wrapping_sub(here).to_le_bytes()),
            arm::ABS32 => {
                let value = u32::try_from(absolute).map_err(|_| self.out_of_range())?;
                self.put(&value.to_le_bytes());
            }
            arm::PREL32 | arm::PLT32 => {
                let value = i32::try_from(absolute.wrapping_sub(here) as i64).map_err(|_| self.out_of_range())?;
                self.put(&value.to_le_bytes());
            }
            kind @ (arm::MOVW_UABS_G0
            | arm::MOVW_UABS_G0_NC
            | arm::MOVW_UABS_G1
            | arm::MOVW_UABS_G1_NC
            | arm::MOVW_UABS_G2
            | arm::MOVW_UABS_G2_NC
            | arm::MOVW_UABS_G3) => {
                let group = (kind - arm::MOVW_UABS_G0) / 2;
                let checked = matches!(kind, arm::MOVW_UABS_G0 | arm::MOVW_UABS_G1 | arm::MOVW_UABS_G2);
                if checked && absolute >> (16 * (group + 1)) != 0 {
                    return Err(self.out_of_range());
                }
                self.patch(0x001f_ffe0, ((absolute >> (16 * group)) as u32 & 0xffff) << 5);
            }
            arm::ADR_PREL_LO21 => self.adr(absolute.wrapping_sub(here) as i64)?,
            arm::ADR_PREL_PG_HI21 | arm::ADR_PREL_PG_HI21_NC => self.adr(pages(absolute))?,
            arm::ADD_ABS_LO12_NC | arm::LDST8_ABS_LO12_NC => self.low12(absolute, 0)?,
            arm::LDST16_ABS_LO12_NC => self.low12(absolute, 1)?,
            arm::LDST32_ABS_LO12_NC => self.low12(absolute, 2)?,
            arm::LDST64_ABS_LO12_NC => self.low12(absolute, 3)?,
            arm::LDST128_ABS_LO12_NC => self.low12(absolute, 4)?,
            arm::ADR_GOT_PAGE => {
                let entry = self.table_entry();
                self.adr(pages(entry))?;
            }
            arm::LD64_GOT_LO12_NC => {
                let entry = self.table_entry();
                self.low12(entry, 3)?;
            }
            arm::TSTBR14 => self.branch(absolute, 14, 5)?,
            arm::CONDBR19 => self.branch(absolute, 19, 5)?,
            arm::JUMP26 | arm::CALL26 => {
                if self.branch(absolute, 26, 0).is_err() {
                    if self.local {
                        return Err(self.out_of_range());
                    }
                    let stub = self.stub(ObjectMachine::Aarch64);
                    self.branch(stub, 26, 0)?;
                }
            }
            other => return Err(ObjectError::UnknownRelocation(other)),
        }
        Ok(())
    }
}
