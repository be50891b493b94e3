//! Asynchronous copies of a thread: `cp.async` (manual: "cp.async").

use broadloom_ptx::{Imm, InstData, Opcode, Operand};

/// Copy from global to shared memory, as an instruction describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Number of bytes written: 4, 8 or 16. Both addresses are multiples of it.
    pub bytes: u32,
    /// Operand with the number of bytes read; the rest is filled with zeros.
    pub size: Option<usize>,
    /// Operand that tells whether nothing is read.
    pub ignore: Option<usize>,
}

impl Copy {
    /// Returns the copy of an instruction; `None` for other instructions.
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
