//! Dot products of packed integers and carryless products (manual: "Integer Arithmetic Instructions").

use super::sign_extend;
use crate::{Inputs, Operation};
use broadloom_ptx::{Modifier, Type};

/// Returns lane `index` of a word, extended by the sign of its type.
fn lane(ty: Type, bits: u32, word: u64, index: u32) -> i64 {
    let lane = word >> (index * bits) & ((1 << bits) - 1);
    if ty.is_signed() { sign_extend(lane, bits) } else { lane as i64 }
}

pub(crate) fn dp4a(op: &Operation, inputs: &Inputs) -> u64 {
    let products = (0..4).map(|i| lane(op.ty, 8, inputs[0], i) * lane(op.source_ty, 8, inputs[1], i));
    (products.sum::<i64>() as u64).wrapping_add(inputs[2])
}

/// Computes `dp2a`: two halfwords with the low or the high two bytes.
pub(crate) fn dp2a(op: &Operation, inputs: &Inputs) -> u64 {
    let first = if op.has(Modifier::Hi) { 2 } else { 0 };
    let products = (0..2).map(|i| lane(op.ty, 16, inputs[0], i) * lane(op.source_ty, 8, inputs[1], first + i));
    (products.sum::<i64>() as u64).wrapping_add(inputs[2])
}

/// Computes `clmad`: the product of two polynomials over bits. Partial products are combined by exclusive or,
/// so there is no carry.
pub(crate) fn clmad(op: &Operation, inputs: &Inputs) -> u64 {
    let mut product = 0_u128;
    for bit in (0..64).filter(|bit| inputs[1] >> bit & 1 == 1) {
        product ^= u128::from(inputs[0]) << bit;
    }
    let part = if op.has(Modifier::Hi) { (product >> 64) as u64 } else { product as u64 };
    part ^ inputs[2]
}
