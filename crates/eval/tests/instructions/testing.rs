//! Shared parts of the tests of pure instructions: an [`Operation`] from its text, corner values,
//! pseudo-random ones.

use broadloom_eval::{Function, Inputs, Operation};
use broadloom_ptx::{InstData, Operand, Reg, Selector};
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

/// Returns both results of a pure instruction that has two.
pub(crate) fn run_pair(op: &Operation, inputs: &Inputs) -> [u64; 2] {
    match op.function() {
        Some(Function::Pair(function)) => function(op, inputs),
        Some(Function::One(_) | Function::Carry(_)) | None => panic!("not pure, with two results"),
    }
}

/// Returns the result and the flag of an instruction of a carry chain.
pub(crate) fn run_carry(op: &Operation, inputs: &Inputs, carry: bool) -> (u64, bool) {
    match op.function() {
        Some(Function::Carry(function)) => function(op, inputs, carry),
        Some(Function::One(_) | Function::Pair(_)) | None => panic!("not of a carry chain"),
    }
}

/// Returns a video instruction that reads and writes parts of registers: selectors, and minus signs before
/// what is read.
pub(crate) fn op_with(text: &str, into: Option<Selector>, from: [(Option<Selector>, bool); 3]) -> Operation {
    let part = |number: u32, selector: Option<Selector>, negated: bool| match (selector, negated) {
        (None, false) => Operand::Reg(Reg::from_u32(number)),
        _ => Operand::Part { reg: Reg::from_u32(number), negated, selector },
    };
    let [a, b, c] = from;
    let operands = [part(0, into, false), part(1, a.0, a.1), part(2, b.0, b.1), part(3, c.0, c.1)];
    let inst = InstData::of(text, operands.iter().cloned()).or_else(|| InstData::of(text, operands[..3].iter().cloned()));
    Operation::of(&inst.unwrap_or_else(|| panic!("no such instruction: {text}"))).unwrap()
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
