//! Video instructions on several lanes.

use crate::testing::{op_with, pairs, run};
use broadloom_eval::{Inputs, Operation};
use broadloom_ptx::Selector;

fn op_of(text: &str, into: Option<Selector>, [a, b]: [Option<Selector>; 2]) -> Operation {
    op_with(text, into, [(a, false), (b, false), (None, false)])
}

fn inputs(a: u64, b: u64, c: u64) -> Inputs {
    [a & 0xffff_ffff, b & 0xffff_ffff, c & 0xffff_ffff, 0, 0, 0]
}

#[test]
fn four_bytes() {
    for (a, b) in pairs() {
        let c = a ^ (b << 7);
        let (x, y) = ((a as u32).to_le_bytes(), (b as u32).to_le_bytes());
        let bytes = |lane: fn(u8, u8) -> u8| u32::from_le_bytes(std::array::from_fn(|i| lane(x[i], y[i])));
        let run = |text: &str| run(&op_of(text, None, [None, None]), &inputs(a, b, c)) as u32;
        assert_eq!(run("vadd4.u32.u32.u32"), bytes(u8::wrapping_add));
        assert_eq!(run("vadd4.u32.u32.u32.sat"), bytes(u8::saturating_add));
        assert_eq!(run("vadd4.s32.s32.s32.sat"), bytes(|x, y| (x as i8).saturating_add(y as i8) as u8));
        assert_eq!(run("vsub4.u32.u32.u32.sat"), bytes(u8::saturating_sub));
        assert_eq!(run("vabsdiff4.u32.u32.u32"), bytes(u8::abs_diff));
        assert_eq!(run("vavrg4.u32.u32.u32"), bytes(|x, y| (u16::from(x) + u16::from(y)).div_ceil(2) as u8));
        assert_eq!(run("vmin4.s32.s32.s32"), bytes(|x, y| (x as i8).min(y as i8) as u8));
        assert_eq!(run("vmax4.u32.u32.u32"), bytes(u8::max));
        assert_eq!(run("vset4.u32.s32.gt"), bytes(|x, y| u8::from(i16::from(x) > i16::from(y as i8))));
        let sum = (0..4).map(|i| u32::from(x[i].abs_diff(y[i]))).sum::<u32>();
        assert_eq!(run("vabsdiff4.u32.u32.u32.add"), sum.wrapping_add(c as u32));
    }
}

#[test]
fn averages_round_away_from_zero() {
    let average = |a: i16, b: i16| {
        let op = op_of("vavrg2.s32.s32.s32", None, [None, None]);
        run(&op, &inputs(a as u64, b as u64, 0)) as i16
    };
    assert_eq!(average(1, 2), 2);
    assert_eq!(average(-1, -2), -2);
    assert_eq!(average(-3, 2), -1);
    assert_eq!(average(i16::MAX, i16::MAX), i16::MAX);
    assert_eq!(average(i16::MIN, i16::MIN), i16::MIN);
}

#[test]
fn lanes_are_selected_and_masked() {
    let (a, b, c) = (0x4433_2211, 0x8877_6655, 0xaabb_ccdd);
    let zero = Some(Selector::Lanes(0));
    let pick = |digits: u16, into: Option<Selector>| {
        let op = op_of("vsub4.u32.u32.u32", into, [Some(Selector::Lanes(digits)), zero]);
        run(&op, &inputs(a, b, c))
    };
    assert_eq!(pick(0x7531, None), 0x7755_3311);
    assert_eq!(pick(0x0123, Some(Selector::B2)), 0xaa11_ccdd);
    assert_eq!(pick(0x0246, Some(Selector::Mask(0b1001))), 0x00bb_cc66);
    assert_eq!(pick(0x3210, Some(Selector::Lanes(0x3210))), 0x3322_1100);
    let op = op_of("vadd2.u32.u32.u32.add", Some(Selector::H1), [Some(Selector::Lanes(0x8002)), Some(Selector::Lanes(0x8033))]);
    assert_eq!(run(&op, &inputs(a, b, c)), 0xaabb_ccdd + 0x2211 + 0x8877);
}
