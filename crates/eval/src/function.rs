//! Types of the functions that instructions are.

use crate::{Inputs, Operation, truncate};

/// Pure instruction with one result.
pub type One = fn(&Operation, &Inputs) -> u64;

/// Pure instruction with two results (`d|p`); an unused second result is discarded.
pub type Pair = fn(&Operation, &Inputs) -> [u64; 2];

/// Instruction of a carry chain: the carry flag goes in, and comes out.
pub type Carry = fn(&Operation, &Inputs, bool) -> (u64, bool);

/// Function of an instruction. The [`Operation`] is passed to it, for types and modifiers.
#[derive(Clone, Copy, Debug)]
pub enum Function {
    /// One result.
    One(One),
    /// Two results.
    Pair(Pair),
    /// One result and the carry flag, which is kept if [`Operation::writes_carry`] is true.
    Carry(Carry),
}

/// Results of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// One result.
    One(u64),
    /// Two results.
    Pair([u64; 2]),
    /// One result and the carry flag after the instruction.
    Carry(u64, bool),
}

impl Outcome {
    /// Returns the low bits of the first result.
    pub fn low(self, bits: u32) -> u64 {
        match self {
            Outcome::One(value) | Outcome::Pair([value, _]) | Outcome::Carry(value, _) => truncate(value, bits),
        }
    }
}
