//! Permitted treatment of an instruction, beyond its row in the table.
//!
//! The table calls an instruction pure if it only computes its results. Three cases need more care: the carry
//! flag, which is not an operand; special registers that change; and loads, whose result may be unused.
//! `mapa` faults if the cluster has no block of the rank, so it runs only in the lanes that need it.

use broadloom_ptx::{InstData, Opcode, Operand};

/// Returns whether an instruction can run where its results are not needed: it only computes them, for any
/// operand values.
pub fn is_speculable(data: &InstData) -> bool {
    data.effects().is_pure() && !data.uses_carry() && data.opcode() != Some(Opcode::Mapa)
}

/// Returns whether equal operands always give equal results, so that the instruction may be moved, repeated
/// or shared.
pub fn is_pure(data: &InstData) -> bool {
    is_speculable(data) && !data.any_operand(varies)
}

/// Returns whether an instruction can be removed if its results are not read.
pub fn is_removable(data: &InstData) -> bool {
    is_speculable(data) || is_plain_load(data)
}

/// Returns whether an instruction is a load without memory ordering, which is not used to wait for other
/// threads.
pub fn is_plain_load(data: &InstData) -> bool {
    data.is_load() && !data.is_ordered()
}

/// Returns whether an instruction is a store without memory ordering, which other threads do not wait for.
pub fn is_plain_store(data: &InstData) -> bool {
    data.is_store() && !data.is_ordered()
}

/// Returns whether an operand is a special register that may change.
fn varies(operand: &Operand) -> bool {
    matches!(operand, Operand::Special(special) if special.row().varies)
}
