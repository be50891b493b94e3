//! Shared parts of the tests of pure instructions: an [`Operation`] from its text, corner values,
//! pseudo-random ones.

use crate::{Function, Inputs, Operation};
use broadloom_random::Random;

/// Returns the instruction that a text such as `add.sat.s32` names.
pub(crate) fn op(text: &str) -> Operation {
    Operation::from_text(text).unwrap_or_else(|| panic!("no such instruction: {text}"))
}

/// Returns the result of a pure instruction on some operands.
pub(crate) fn run(op: &Operation, operands: &[u64]) -> u64 {
    let mut inputs: Inputs = [0; 6];
    inputs[..operands.len()].copy_from_slice(operands);
    match op.function() {
        Some(Function::One(function)) => function(op, &inputs),
        Some(Function::Pair(_) | Function::Carry(_)) | None => panic!("not pure, with one result"),
    }
}

/// Values at the limits of all widths.
pub(crate) const CORNERS: [u64; 22] = [
    0,
    1,
    2,
    3,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x0001_0000,
    0x7fff_8001,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
    0x0001_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_fffe,
    0xffff_ffff_ffff_ffff,
];

/// Returns the corners, then pseudo-random values with few and with many bits.
pub(crate) fn values() -> Vec<u64> {
    let mut random = Random::new(3);
    CORNERS.into_iter().chain((0..24).map(|index| random.bits() >> (index * 5 % 61))).collect()
}

/// Returns all pairs of [`values`].
pub(crate) fn pairs() -> impl Iterator<Item = (u64, u64)> {
    let all = values();
    let again = all.clone();
    all.into_iter().flat_map(move |a| again.clone().into_iter().map(move |b| (a, b)))
}
