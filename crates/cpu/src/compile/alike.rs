//! Threads that compute the same.
//!
//! A kernel that never reads `%tid.y` or `%tid.z` may be launched with blocks of several rows of threads. All
//! rows then do the same loads and stores. A GPU runs them side by side, and all rows read the same values
//! from memory. Run one after the other they would not, if they add to the values they read (`x[i] += …`).
//! One row therefore runs for all. Instructions that depend on the number of threads, such as atomics, keep
//! every row.

use broadloom_ptx::{Class, Effects, Function, InstData, Opcode, Operand, Special};

/// Returns the threads of a block that have to run. Its warps are rows of the block or parts of one row.
pub(crate) fn told_apart(function: &Function, block: [u32; 3]) -> [u32; 3] {
    let [width, ..] = block;
    let is_alike = width.is_multiple_of(32) && function.instructions().all(|(_, inst)| is_the_same_in_all_rows(inst));
    if is_alike { [width, 1, 1] } else { block }
}

/// Returns whether an instruction has the same effect for one thread as for several threads with equal
/// values.
fn is_the_same_in_all_rows(inst: &InstData) -> bool {
    let is_plain = match inst.opcode() {
        Some(Opcode::Ld | Opcode::Ldu | Opcode::St | Opcode::Bra | Opcode::Ret | Opcode::Exit) => true,
        Some(_) => inst.effects() == Effects::default() && inst.class() != Some(Class::Cluster),
        None => false,
    };
    is_plain && !inst.any_operand(|operand| !is_the_same(operand))
}

/// Returns whether an operand has the same value in every row of warps. Some special registers have not.
fn is_the_same(operand: &Operand) -> bool {
    use Special::{CtaidX, CtaidY, CtaidZ, Laneid, NctaidX, NctaidY, NctaidZ, TidX};
    match operand {
        Operand::Special(TidX | CtaidX | CtaidY | CtaidZ | NctaidX | NctaidY | NctaidZ | Laneid) => true,
        Operand::Special(_) | Operand::Call(_) | Operand::Pair(_) => false,
        _ => true,
    }
}
