//! Asynchronous copies of a thread: `cp.async` (manual: "cp.async").

use broadloom_ptx::{Imm, InstData, Opcode, Operand};

/// A copy from global to shared memory, as an instruction describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Bytes that are written: 4, 8 or 16; both addresses are multiples of it.
    pub bytes: u32,
    /// The operand with the bytes that are read; what is left is filled with zeros.
    pub size: Option<usize>,
    /// The operand that says whether nothing is read.
    pub ignore: Option<usize>,
}

impl Copy {
    /// The copy of an instruction; `None` when it is another one.
    pub fn of(inst: &InstData) -> Option<Copy> {
        if inst.opcode()? != Opcode::CpAsync {
            return None;
        }
        let bytes = match inst.operands.get(2)? {
            Operand::Imm(Imm::Int(bytes)) => u32::try_from(*bytes).ok()?,
            Operand::Imm(Imm::Uint(bytes)) => u32::try_from(*bytes).ok()?,
            _ => return None,
        };
        let named = |name: &str| {
            let place = inst.form()?.operands.iter().position(|spec| spec.name == name)?;
            inst.operands.get(place).filter(|operand| !matches!(operand, Operand::Absent)).map(|_| place)
        };
        matches!(bytes, 4 | 8 | 16).then(|| Copy { bytes, size: named("s"), ignore: named("q") })
    }
}
