//! Accesses at which a lane may wait for others.

use crate::purity::is_plain_load;
use broadloom_ptx::{Effects, InstData, Opcode};

/// Returns whether an instruction polls a phase of an mbarrier.
pub(super) fn asks(data: &InstData) -> bool {
    data.effects().has(Effects::POLL)
}

/// Returns whether the result of an instruction depends on concurrent actions of other threads.
pub(super) fn waits(data: &InstData) -> bool {
    match data.opcode() {
        Some(Opcode::Ld) => !is_plain_load(data),
        Some(Opcode::Atom) => true,
        _ => asks(data),
    }
}
