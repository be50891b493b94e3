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

#[cfg(test)]
mod tests {
    use super::super::testing::{op, pairs, values};
    use super::*;

    /// Splits a number into words, low word first.
    fn words(number: u128, bits: u32) -> Vec<u64> {
        (0..128 / bits).map(|index| truncate((number >> (index * bits)) as u64, bits)).collect()
    }

    fn wide(low: u64, high: u64) -> u128 {
        u128::from(high) << 64 | u128::from(low)
    }

    #[test]
    fn chains_add_and_subtract_numbers_of_128_bits() {
        for ty in ["u32", "s32", "u64", "s64"] {
            let bits: u32 = ty[1..].parse().unwrap();
            for ((a, b), c) in pairs().zip(values().into_iter().cycle()) {
                let (x, y) = (wide(a, c), wide(b, a ^ c));
                for (first, next, expected) in
                    [("add.cc", "addc.cc", x.overflowing_add(y)), ("sub.cc", "subc.cc", x.overflowing_sub(y))]
                {
                    let (first, next) = (op(&format!("{first}.{ty}")), op(&format!("{next}.{ty}")));
                    // The previous flag must not matter.
                    let mut flag = c & 1 == 1;
                    let mut result = 0_u128;
                    for (index, (a, b)) in words(x, bits).into_iter().zip(words(y, bits)).enumerate() {
                        let inputs = [a, b, 0, 0, 0, 0];
                        let is_sum = first.opcode.name() == "add.cc";
                        let (word, out) = match (index, is_sum) {
                            (0, true) => add_cc(&first, &inputs, flag),
                            (0, false) => sub_cc(&first, &inputs, flag),
                            (_, true) => addc(&next, &inputs, flag),
                            (_, false) => subc(&next, &inputs, flag),
                        };
                        result |= u128::from(truncate(word, bits)) << (index as u32 * bits);
                        flag = out;
                    }
                    // After a difference the flag means that there was no borrow.
                    let overflow = flag == (first.opcode.name() == "add.cc");
                    assert_eq!((result, overflow), expected, "{ty} {x:#x} {y:#x}");
                }
            }
        }
    }

    #[test]
    fn products_of_two_words_fill_four() {
        for (a, b) in pairs() {
            let ([a0, a1], [b0, b1]) = ([a & 0xffff_ffff, a >> 32], [b & 0xffff_ffff, b >> 32]);
            let mad_lo = |x: u64, y: u64, z: u64| mad_cc(&op("mad.lo.cc.u32"), &[x, y, z, 0, 0, 0], true);
            let madc_hi = |x: u64, y: u64, z: u64, carry| madc(&op("madc.hi.cc.u32"), &[x, y, z, 0, 0, 0], carry);
            let low = |value: u64| truncate(value, 32);
            let (r0, _) = mad_lo(a0, b0, 0);
            let (r1, _) = madc_hi(a0, b0, 0, false);
            let (r1, carry) = mad_lo(a1, b0, low(r1));
            let (r2, _) = madc_hi(a1, b0, 0, carry);
            let (r1, carry) = mad_lo(a0, b1, low(r1));
            let (r2, carry) = madc_hi(a0, b1, low(r2), carry);
            let (r3, _) = addc(&op("addc.u32"), &[0, 0, 0, 0, 0, 0], carry);
            let (r2, carry) = mad_lo(a1, b1, low(r2));
            let (r3, carry) = madc_hi(a1, b1, low(r3), carry);
            let found = [r0, r1, r2, r3].iter().rev().fold(0_u128, |sum, &word| sum << 32 | u128::from(low(word)));
            assert_eq!(found, u128::from(a) * u128::from(b), "{a:#x} {b:#x}");
            assert!(!carry);
        }
    }

    #[test]
    fn sums_and_differences_share_one_flag() {
        let no_borrow = sub_cc(&op("sub.cc.u32"), &[5, 5, 0, 0, 0, 0], false);
        assert_eq!(no_borrow, (1 << 32, true));
        assert_eq!(addc(&op("addc.u32"), &[0, 0, 0, 0, 0, 0], no_borrow.1).0, 1);
        let borrow = sub_cc(&op("sub.cc.u32"), &[4, 5, 0, 0, 0, 0], true);
        assert_eq!(addc(&op("addc.u32"), &[0, 0, 0, 0, 0, 0], borrow.1).0, 0);
        let carry = add_cc(&op("add.cc.u64"), &[u64::MAX, 1, 0, 0, 0, 0], false);
        assert_eq!(subc(&op("subc.u64"), &[9, 3, 0, 0, 0, 0], carry.1).0, 6);
        assert_eq!(subc(&op("subc.u64"), &[9, 3, 0, 0, 0, 0], false).0, 5);
    }

    #[test]
    fn high_halves_of_signed_products_are_signed() {
        let minus_one = u64::from(u32::MAX);
        assert!(mad_cc(&op("mad.hi.cc.s32"), &[minus_one, 1, 1, 0, 0, 0], false).1);
        assert_eq!(mad_cc(&op("mad.hi.cc.u32"), &[minus_one, 1, 1, 0, 0, 0], false), (1, false));
        assert_eq!(madc(&op("madc.hi.s64"), &[u64::MAX, 1, 0, 0, 0, 0], true), (0, true));
    }
}
