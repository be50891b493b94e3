//! Sums, differences and products of a carry chain (manual: "Extended-Precision Integer Arithmetic
//! Instructions").
//!
//! The flag is always a carry: a difference is the sum of one number, the complement of the other and the
//! flag, which `sub.cc` takes as set. A set flag after `sub.cc` therefore means that there was no borrow. The
//! manual speaks of a borrow instead, which is equivalent in chains that only subtract. In mixed chains, such
//! as the 128-bit divisions of NVIDIA's compiler, machines behave as implemented here. The engine decides
//! whether the flag is written; these functions always return its value.

use super::arith::product;
use super::truncate;
use crate::{Inputs, Operation};
use broadloom_ptx::Modifier;

/// Returns the sum in the width of the type, and whether it overflowed.
fn sum(op: &Operation, a: u64, b: u64, carry: bool) -> (u64, bool) {
    let bits = op.ty.bits();
    let all = u128::from(truncate(a, bits)) + u128::from(truncate(b, bits)) + u128::from(carry);
    (all as u64, all >> bits != 0)
}

/// Returns the difference, one less if the flag is not set, and whether there was no borrow.
fn difference(op: &Operation, a: u64, b: u64, carry: bool) -> (u64, bool) {
    sum(op, a, !b, carry)
}

/// Computes `add.cc`, which starts a chain: there is no carry in.
pub(crate) fn add_cc(op: &Operation, inputs: &Inputs, _carry: bool) -> (u64, bool) {
    sum(op, inputs[0], inputs[1], false)
}

pub(crate) fn addc(op: &Operation, inputs: &Inputs, carry: bool) -> (u64, bool) {
    sum(op, inputs[0], inputs[1], carry)
}

/// Computes `sub.cc`, which starts a chain: there is no borrow in.
pub(crate) fn sub_cc(op: &Operation, inputs: &Inputs, _carry: bool) -> (u64, bool) {
    difference(op, inputs[0], inputs[1], true)
}

pub(crate) fn subc(op: &Operation, inputs: &Inputs, carry: bool) -> (u64, bool) {
    difference(op, inputs[0], inputs[1], carry)
}

/// Returns the half of the product that `.lo` or `.hi` selects.
fn half(op: &Operation, inputs: &Inputs) -> u64 {
    let bits = op.ty.bits();
    let all = product(op.ty.is_signed(), bits, inputs[0], inputs[1]);
    if op.has(Modifier::Hi) { (all >> bits) as u64 } else { all as u64 }
}

/// Computes `mad.cc`, which starts a chain: there is no carry in. The carry out is that of the addition.
pub(crate) fn mad_cc(op: &Operation, inputs: &Inputs, _carry: bool) -> (u64, bool) {
    sum(op, half(op, inputs), inputs[2], false)
}

pub(crate) fn madc(op: &Operation, inputs: &Inputs, carry: bool) -> (u64, bool) {
    sum(op, half(op, inputs), inputs[2], carry)
}
