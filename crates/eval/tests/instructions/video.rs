//! Video instructions on parts of registers.

use crate::testing::{op_with, pairs, run};
use broadloom_eval::Operation;
use broadloom_ptx::Selector;

fn plain(text: &str) -> Operation {
    op_with(text, None, [(None, false); 3])
}

fn low(value: u64) -> u32 {
    value as u32
}

#[test]
fn words_are_extended_by_their_types() {
    for (a, b) in pairs() {
        let inputs = [a & 0xffff_ffff, b & 0xffff_ffff, 0, 0, 0, 0];
        let (sa, ub) = (i64::from(a as u32 as i32), (b & 0xffff_ffff) as i64);
        let clamp_s = |value: i64| value.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32;
        let clamp_u = |value: i64| value.clamp(0, 0xffff_ffff) as u32;
        assert_eq!(low(run(&plain("vadd.s32.s32.u32.sat"), &inputs)), clamp_s(sa + ub));
        assert_eq!(low(run(&plain("vadd.u32.s32.u32.sat"), &inputs)), clamp_u(sa + ub));
        assert_eq!(low(run(&plain("vsub.u32.s32.u32"), &inputs)), (sa - ub) as u32);
        assert_eq!(low(run(&plain("vabsdiff.s32.s32.u32.sat"), &inputs)), clamp_s((sa - ub).abs()));
        assert_eq!(low(run(&plain("vmin.s32.s32.u32.sat"), &inputs)), clamp_s(sa.min(ub)));
        assert_eq!(low(run(&plain("vmax.u32.s32.u32"), &inputs)), sa.max(ub) as u32);
        assert_eq!(low(run(&plain("vset.s32.u32.lt"), &inputs)), u32::from(sa < ub));
        assert_eq!(low(run(&plain("vset.s32.u32.ne"), &inputs)), u32::from(sa != ub));
    }
}

#[test]
fn parts_are_selected_and_merged() {
    let parts = [Selector::B0, Selector::B1, Selector::B2, Selector::B3, Selector::H0, Selector::H1];
    let masks = [0xff_u32, 0xff00, 0x00ff_0000, 0xff00_0000, 0xffff, 0xffff_0000];
    let (a, b, c) = (0x80fe_7f81_u32, 0x01ff_80fe_u32, 0x1234_5678_u32);
    let inputs = [u64::from(a), u64::from(b), u64::from(c), 0, 0, 0];
    for (selector, mask) in parts.into_iter().zip(masks) {
        let shift = mask.trailing_zeros();
        let field = |word: u32| i64::from((word & mask) >> shift);
        let bits = mask.count_ones();
        let signed = |word: u32| (field(word) << (64 - bits)) >> (64 - bits);
        let from = [(Some(selector), false), (Some(selector), false), (None, false)];
        let sum = signed(a) + field(b);
        assert_eq!(low(run(&op_with("vadd.s32.s32.u32", None, from), &inputs)), sum as u32);
        let merged = ((sum as u32) << shift & mask) | (c & !mask);
        assert_eq!(low(run(&op_with("vadd.s32.s32.u32", Some(selector), from), &inputs)), merged);
        let most = (1_i64 << (bits - 1)) - 1;
        let merged = ((sum.clamp(-most - 1, most) as u32) << shift & mask) | (c & !mask);
        assert_eq!(low(run(&op_with("vadd.s32.s32.u32.sat", Some(selector), from), &inputs)), merged);
    }
    let from = [(Some(Selector::B0), false), (Some(Selector::B0), false), (None, false)];
    assert_eq!(low(run(&op_with("vadd.s32.s32.s32.add", None, from), &inputs)), (-127 - 2 + 0x1234_5678_i32) as u32);
    assert_eq!(low(run(&op_with("vadd.s32.s32.s32.min", None, from), &inputs)), -129_i32 as u32);
    assert_eq!(low(run(&op_with("vadd.s32.s32.s32.max", None, from), &inputs)), c);
}

#[test]
fn shifts_clamp_or_wrap() {
    let shift = |text: &str, a: u32, by: u32| low(run(&plain(text), &[u64::from(a), u64::from(by), 0, 0, 0, 0]));
    assert_eq!(shift("vshl.u32.u32.u32.clamp", 0x8000_0001, 1), 2);
    assert_eq!(shift("vshl.u32.u32.u32.sat.clamp", 0x8000_0001, 1), 0xffff_ffff);
    assert_eq!(shift("vshl.u32.u32.u32.clamp", 1, 32), 0);
    assert_eq!(shift("vshl.u32.u32.u32.wrap", 1, 32), 1);
    assert_eq!(shift("vshr.s32.s32.u32.clamp", 0x8000_0000, 99), 0xffff_ffff);
    assert_eq!(shift("vshr.u32.u32.u32.wrap", 0x8000_0000, 63), 1);
}

#[test]
fn products_are_negated_scaled_and_saturated() {
    let halves = |negate: [bool; 3]| [(Some(Selector::H0), negate[0]), (Some(Selector::H1), negate[1]), (None, negate[2])];
    for (a, b) in pairs() {
        let c = (a ^ b) as u32;
        let inputs = [a & 0xffff_ffff, b & 0xffff_ffff, u64::from(c), 0, 0, 0];
        let (x, y) = (i64::from(a as u16 as i16), i64::from((b >> 16) as u16));
        let sc = i64::from(c as i32);
        let plain = |text: &str| low(run(&op_with(text, None, halves([false; 3])), &inputs));
        assert_eq!(plain("vmad.s32.s32.u32"), (x * y + sc) as u32);
        assert_eq!(plain("vmad.s32.s32.u32.shr7"), ((x * y + sc) >> 7) as u32);
        assert_eq!(plain("vmad.s32.s32.u32.po.shr15"), ((x * y + sc + 1) >> 15) as u32);
        let clamp = |value: i64| value.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32;
        assert_eq!(plain("vmad.s32.s32.u32.sat"), clamp(x * y + sc));
        let negated = |negate| low(run(&op_with("vmad.s32.s32.u32", None, halves(negate)), &inputs));
        assert_eq!(negated([true, false, false]), (sc - x * y) as u32);
        assert_eq!(negated([false, true, false]), (sc - x * y) as u32);
        assert_eq!(negated([true, true, false]), (sc + x * y) as u32);
        assert_eq!(negated([false, false, true]), (x * y - sc) as u32);
        let (x, y) = (i64::from(a as u16), i64::from((b >> 16) as u16));
        assert_eq!(plain("vmad.u32.u32.u32.sat"), (x * y + i64::from(c)).min(0xffff_ffff) as u32);
    }
}
