//! Dot products and carry-less products.

use crate::testing::{op, pairs, run};

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
            assert_eq!(run(&op(&format!("dp4a.{text}")), &[a, b, c, 0, 0, 0]) as u32, expected as u32);
            for (mode, first) in [("lo", 0), ("hi", 2)] {
                let mut expected = c as i64;
                for i in 0..2 {
                    expected = expected.wrapping_add(half(a_signed, a, i) * byte(b_signed, b, first + i));
                }
                assert_eq!(run(&op(&format!("dp2a.{mode}.{text}")), &[a, b, c, 0, 0, 0]) as u32, expected as u32);
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
        assert_eq!(run(&op("clmad.lo.u64"), &[a, b, 5, 0, 0, 0]), bits[0] ^ 5);
        assert_eq!(run(&op("clmad.hi.u64"), &[a, b, 5, 0, 0, 0]), bits[1] ^ 5);
    }
}
