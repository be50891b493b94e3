//! Carry chains, compared with wide integers.

use crate::testing::{op, pairs, run_carry, values};
use broadloom_eval::truncate;

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
                    let (word, out) = run_carry(if index == 0 { &first } else { &next }, &inputs, flag);
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
        let mad_lo = |x: u64, y: u64, z: u64| run_carry(&op("mad.lo.cc.u32"), &[x, y, z, 0, 0, 0], true);
        let madc_hi = |x: u64, y: u64, z: u64, carry| run_carry(&op("madc.hi.cc.u32"), &[x, y, z, 0, 0, 0], carry);
        let low = |value: u64| truncate(value, 32);
        let (r0, _) = mad_lo(a0, b0, 0);
        let (r1, _) = madc_hi(a0, b0, 0, false);
        let (r1, carry) = mad_lo(a1, b0, low(r1));
        let (r2, _) = madc_hi(a1, b0, 0, carry);
        let (r1, carry) = mad_lo(a0, b1, low(r1));
        let (r2, carry) = madc_hi(a0, b1, low(r2), carry);
        let (r3, _) = run_carry(&op("addc.u32"), &[0, 0, 0, 0, 0, 0], carry);
        let (r2, carry) = mad_lo(a1, b1, low(r2));
        let (r3, carry) = madc_hi(a1, b1, low(r3), carry);
        let found = [r0, r1, r2, r3].iter().rev().fold(0_u128, |sum, &word| sum << 32 | u128::from(low(word)));
        assert_eq!(found, u128::from(a) * u128::from(b), "{a:#x} {b:#x}");
        assert!(!carry);
    }
}

#[test]
fn sums_and_differences_share_one_flag() {
    let no_borrow = run_carry(&op("sub.cc.u32"), &[5, 5, 0, 0, 0, 0], false);
    assert_eq!(no_borrow, (1 << 32, true));
    assert_eq!(run_carry(&op("addc.u32"), &[0, 0, 0, 0, 0, 0], no_borrow.1).0, 1);
    let borrow = run_carry(&op("sub.cc.u32"), &[4, 5, 0, 0, 0, 0], true);
    assert_eq!(run_carry(&op("addc.u32"), &[0, 0, 0, 0, 0, 0], borrow.1).0, 0);
    let carry = run_carry(&op("add.cc.u64"), &[u64::MAX, 1, 0, 0, 0, 0], false);
    assert_eq!(run_carry(&op("subc.u64"), &[9, 3, 0, 0, 0, 0], carry.1).0, 6);
    assert_eq!(run_carry(&op("subc.u64"), &[9, 3, 0, 0, 0, 0], false).0, 5);
}

#[test]
fn high_halves_of_signed_products_are_signed() {
    let minus_one = u64::from(u32::MAX);
    assert!(run_carry(&op("mad.hi.cc.s32"), &[minus_one, 1, 1, 0, 0, 0], false).1);
    assert_eq!(run_carry(&op("mad.hi.cc.u32"), &[minus_one, 1, 1, 0, 0, 0], false), (1, false));
    assert_eq!(run_carry(&op("madc.hi.s64"), &[u64::MAX, 1, 0, 0, 0, 0], true), (0, true));
}
