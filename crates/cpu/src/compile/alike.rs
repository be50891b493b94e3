//! Threads that nothing tells apart.
//!
//! A kernel that never asks for `%tid.y` or `%tid.z` may be launched with blocks that have several rows of threads: all rows then do the same, load for
//! load and store for store. A GPU runs them side by side, and each finds in memory what all of them found; one after the other they would not, where
//! they add to what they read (`x[i] += …`). So one row runs for all. What counts how many threads come by, atomics and the like, keeps every row.

use broadloom_ptx::{Class, Effects, Function, InstData, Opcode, Operand, Special};

/// The threads of a block that have to run, whose warps are rows of it or parts of one.
pub(crate) fn told_apart(function: &Function, block: [u32; 3]) -> [u32; 3] {
    let [width, ..] = block;
    let is_alike = width.is_multiple_of(32) && function.instructions().all(|(_, inst)| is_the_same_in_all_rows(inst));
    if is_alike { [width, 1, 1] } else { block }
}

/// Whether an instruction does for one thread what it does for several that come with the same values.
fn is_the_same_in_all_rows(inst: &InstData) -> bool {
    let is_plain = match inst.opcode() {
        Some(Opcode::Ld | Opcode::Ldu | Opcode::St | Opcode::Bra | Opcode::Ret | Opcode::Exit) => true,
        Some(_) => inst.effects() == Effects::default() && inst.class() != Some(Class::Cluster),
        None => false,
    };
    is_plain && !inst.any_operand(|operand| !is_the_same(operand))
}

/// Whether an operand is none of the special registers that tell rows, or numbers of rows, apart.
fn is_the_same(operand: &Operand) -> bool {
    use Special::{CtaidX, CtaidY, CtaidZ, Laneid, NctaidX, NctaidY, NctaidZ, TidX};
    match operand {
        Operand::Special(TidX | CtaidX | CtaidY | CtaidZ | NctaidX | NctaidY | NctaidZ | Laneid) => true,
        Operand::Special(_) | Operand::Call(_) | Operand::Pair(_) => false,
        _ => true,
    }
}
