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

#[cfg(test)]
mod tests {
    use super::super::testing::{op, pairs};
    use super::*;

    fn byte(signed: bool, word: u64, index: usize) -> i64 {
        let byte = word.to_le_bytes()[index];
        if signed { i64::from(byte as i8) } else { i64::from(byte) }
    }

    fn half(signed: bool, word: u64, index: usize) -> i64 {
        let half = (word >> (16 * index)) as u16;
        if signed { i64::from(half as i16) } else { i64::from(half) }
    }

    #[test]
    fn dot_products_sum_lane_by_lane() {
        for (text, a_signed, b_signed) in
            [("u32.u32", false, false), ("u32.s32", false, true), ("s32.u32", true, false), ("s32.s32", true, true)]
        {
            for (a, b) in pairs() {
                let c = a ^ (b >> 3);
                let mut expected = c as i64;
                for i in 0..4 {
                    expected = expected.wrapping_add(byte(a_signed, a, i) * byte(b_signed, b, i));
                }
                assert_eq!(dp4a(&op(&format!("dp4a.{text}")), &[a, b, c, 0, 0, 0]) as u32, expected as u32);
                for (mode, first) in [("lo", 0), ("hi", 2)] {
                    let mut expected = c as i64;
                    for i in 0..2 {
                        expected = expected.wrapping_add(half(a_signed, a, i) * byte(b_signed, b, first + i));
                    }
                    assert_eq!(dp2a(&op(&format!("dp2a.{mode}.{text}")), &[a, b, c, 0, 0, 0]) as u32, expected as u32);
                }
            }
        }
    }

    #[test]
    fn carryless_products_count_pairs_of_bits() {
        for (a, b) in pairs().take(300) {
            let mut bits = [0_u64; 2];
            for position in 0..128_u32 {
                let pairs =
                    (0..64).filter(|i| (i..=&(i + 63)).contains(&&position) && a >> i & 1 == 1 && b >> (position - i) & 1 == 1);
                bits[position as usize / 64] |= (pairs.count() as u64 % 2) << (position % 64);
            }
            assert_eq!(clmad(&op("clmad.lo.u64"), &[a, b, 5, 0, 0, 0]), bits[0] ^ 5);
            assert_eq!(clmad(&op("clmad.hi.u64"), &[a, b, 5, 0, 0, 0]), bits[1] ^ 5);
        }
    }
}
