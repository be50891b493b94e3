//! Simple operations: the cost of scalar code.

use broadloom_scalar::{BinaryOp, Function, Op, Type, UnaryOp};

/// A read that a cache answers.
pub const READ: u64 = 1;
/// A division, a remainder, a square root that is correctly rounded.
pub const DIVISION: u64 = 6;
/// An elementary function.
pub const MATH: u64 = 20;
/// An index that a boundary rule tests, for each axis.
pub const GUARD: u64 = 3;
/// Operations that a pattern may compute again for each of its reads of an input, instead of keeping the
/// input.
pub const CHEAP: u64 = 4;
/// Rounds of a loop whose number is not known.
const UNKNOWN_ROUNDS: u64 = 16;

/// Returns what an operation of scalar code costs, in simple operations.
pub fn operation(op: &Op) -> u64 {
    match op {
        Op::Literal(_) | Op::Parameter(_) | Op::Vector(_) | Op::Lane(..) => 0,
        Op::Math(..) => MATH,
        Op::Binary(op, ..) => binary(*op),
        Op::Unary(op, _) => unary(*op),
        _ => 1,
    }
}

/// Returns what an operation on two values costs.
pub fn binary(op: BinaryOp) -> u64 {
    if matches!(op, BinaryOp::Div | BinaryOp::Rem) { DIVISION } else { 1 }
}

/// Returns what an operation on one value costs.
pub fn unary(op: UnaryOp) -> u64 {
    if op == UnaryOp::Sqrt { DIVISION } else { 1 }
}

/// Returns the cost of one call of a function, which gives all of its results. Loops count with their rounds.
pub fn function(function: &Function) -> u64 {
    let costs = function.body().nodes().map(|(_, node)| operation(&node.op));
    match function.times(UNKNOWN_ROUNDS) {
        None => costs.sum(),
        Some(times) => costs.zip(times).fold(0u64, |sum, (cost, times)| sum.saturating_add(cost.saturating_mul(times))),
    }
}

/// Returns whether an operation only changes the sign of a float or takes its magnitude: instructions of a
/// GPU do that to their operands.
pub fn is_sign(op: UnaryOp, ty: Type) -> bool {
    matches!(op, UnaryOp::Neg | UnaryOp::Abs) && ty.element().is_float()
}

/// Returns what the signs and magnitudes in a call of a function cost, loops with their rounds.
pub fn signs(function: &Function) -> u64 {
    let times = function.times(UNKNOWN_ROUNDS);
    let signs =
        function.body().nodes().enumerate().filter(|(_, (_, node))| matches!(node.op, Op::Unary(op, _) if is_sign(op, node.ty)));
    signs.fold(0u64, |sum, (number, _)| sum.saturating_add(times.as_ref().map_or(1, |times| times[number])))
}

/// Returns how many values a function reads of its windows in a call, loops with their rounds.
pub fn window_reads(function: &Function) -> u64 {
    let times = function.times(UNKNOWN_ROUNDS);
    let is_read = |op: &Op| matches!(op, Op::Window(..));
    let reads = function.body().nodes().enumerate().filter(|(_, (_, node))| is_read(&node.op));
    reads.fold(0u64, |sum, (number, _)| sum.saturating_add(times.as_ref().map_or(1, |times| times[number])))
}
