//! Integer arithmetic, compared with big integers.

use crate::testing::{op, pairs, run, values};
use broadloom_eval::truncate;

type Reference = fn(i128, i128) -> i128;

/// Returns the number that the low bits of a value stand for in a type.
fn int(ty: &str, value: u64) -> i128 {
    let bits: u32 = ty[1..].parse().unwrap();
    let low = i128::from(value) & ((1 << bits) - 1);
    if ty.starts_with('s') && low >> (bits - 1) == 1 { low - (1 << bits) } else { low }
}

fn cut(bits: u32, value: i128) -> u64 {
    (value & ((1_i128 << bits) - 1)) as u64
}

fn check(text: &str, ty: &str, out_bits: u32, reference: Reference) {
    let op = op(text);
    for (a, b) in pairs() {
        let expected = cut(out_bits, reference(int(ty, a), int(ty, b)));
        let found = truncate(run(&op, &[a, b, 0, 0, 0, 0]), out_bits);
        assert_eq!(found, expected, "{text} {a:#x} {b:#x}");
    }
}

#[test]
fn plain_forms_agree_with_big_integers() {
    for ty in ["u16", "u32", "u64", "s16", "s32", "s64"] {
        let bits = ty[1..].parse().unwrap();
        check(&format!("add.{ty}"), ty, bits, |a, b| a + b);
        check(&format!("sub.{ty}"), ty, bits, |a, b| a - b);
        check(&format!("min.{ty}"), ty, bits, |a, b| if a < b { a } else { b });
        check(&format!("max.{ty}"), ty, bits, |a, b| if a > b { a } else { b });
        check(&format!("mul.lo.{ty}"), ty, bits, |a, b| a.wrapping_mul(b));
        check(&format!("sad.{ty}"), ty, bits, |a, b| if a < b { b - a } else { a - b });
        check(&format!("div.{ty}"), ty, bits, |a, b| if b == 0 { -1 } else { a / b });
        check(&format!("rem.{ty}"), ty, bits, |a, b| if b == 0 { -1 } else { a % b });
    }
    for ty in ["s16", "s32", "s64"] {
        let bits = ty[1..].parse().unwrap();
        check(&format!("neg.{ty}"), ty, bits, |a, _| -a);
        check(&format!("abs.{ty}"), ty, bits, |a, _| if a < 0 { -a } else { a });
    }
}

#[test]
fn products_have_the_parts_that_are_asked_for() {
    for ty in ["u16", "u32", "s16", "s32", "s64"] {
        let bits: u32 = ty[1..].parse().unwrap();
        let high: Reference = match bits {
            16 => |a, b| (a * b) >> 16,
            32 => |a, b| (a * b) >> 32,
            _ => |a, b| (a * b) >> 64,
        };
        check(&format!("mul.hi.{ty}"), ty, bits, high);
        if bits < 64 {
            check(&format!("mul.wide.{ty}"), ty, 2 * bits, |a, b| a * b);
        }
    }
    // The square of all ones needs the 128th bit.
    assert_eq!(run(&op("mul.hi.u64"), &[u64::MAX, u64::MAX, 0, 0, 0, 0]), u64::MAX - 1);
    check("mul24.lo.u32", "u24", 32, |a, b| a * b);
    check("mul24.hi.u32", "u24", 32, |a, b| (a * b) >> 16);
    check("mul24.lo.s32", "s24", 32, |a, b| a * b);
    check("mul24.hi.s32", "s24", 32, |a, b| (a * b) >> 16);
}

#[test]
fn a_third_operand_is_added() {
    for (text, third) in [("mad.lo.s32", 32), ("mad.hi.u16", 16), ("mad.wide.s32", 64), ("mad24.hi.u32", 32), ("sad.u16", 16)] {
        let op = op(text);
        for ((a, b), c) in pairs().zip(values().into_iter().cycle()) {
            let without = run(&op, &[a, b, 0, 0, 0, 0]);
            let with = run(&op, &[a, b, c, 0, 0, 0]);
            assert_eq!(truncate(with, third), truncate(without.wrapping_add(c), third), "{text} {a:#x} {b:#x} {c:#x}");
        }
    }
    let clamp = |value: i128| value.clamp(-0x8000_0000, 0x7fff_ffff);
    for ((a, b), c) in pairs().zip(values().into_iter().cycle()) {
        let high = (int("s32", a) * int("s32", b)) >> 32;
        let found = run(&op("mad.hi.sat.s32"), &[a, b, c, 0, 0, 0]);
        assert_eq!(truncate(found, 32), cut(32, clamp(high + int("s32", c))));
        let high = (int("s24", a) * int("s24", b)) >> 16;
        let found = run(&op("mad24.hi.sat.s32"), &[a, b, c, 0, 0, 0]);
        assert_eq!(truncate(found, 32), cut(32, clamp(high + int("s32", c))));
    }
}

#[test]
fn saturation_and_relu_clamp_each_lane() {
    check("add.sat.s32", "s32", 32, |a, b| (a + b).clamp(-0x8000_0000, 0x7fff_ffff));
    check("sub.sat.s32", "s32", 32, |a, b| (a - b).clamp(-0x8000_0000, 0x7fff_ffff));
    check("add.sat.u32", "u32", 32, |a, b| (a + b).min(0xffff_ffff));
    check("max.relu.s32", "s32", 32, |a, b| a.max(b).max(0));
    check("min.relu.s32", "s32", 32, |a, b| a.min(b).max(0));
    let inputs = [0x7fff_8000, 0x0001_ffff, 0, 0, 0, 0];
    assert_eq!(run(&op("add.s16x2"), &inputs), 0x8000_7fff);
    assert_eq!(run(&op("add.sat.s16x2"), &inputs), 0x7fff_8000);
    assert_eq!(run(&op("add.sat.u16x2"), &inputs), 0x8000_ffff);
    assert_eq!(run(&op("max.u16x2"), &inputs), 0x7fff_ffff);
    assert_eq!(run(&op("max.s16x2"), &inputs), 0x7fff_ffff);
    assert_eq!(run(&op("min.s16x2"), &inputs), 0x0001_8000);
    assert_eq!(run(&op("min.relu.s16x2"), &inputs), 0x0001_0000);
    let inputs = [0x80ff_7f01, 0x0101_0102, 0, 0, 0, 0];
    assert_eq!(run(&op("sub.u8x4"), &inputs), 0x7ffe_7eff);
    assert_eq!(run(&op("sub.sat.u8x4"), &inputs), 0x7ffe_7e00);
    assert_eq!(run(&op("sub.sat.s8x4"), &inputs), 0x80fe_7eff);
    assert_eq!(run(&op("neg.s8x4"), &inputs), 0x8001_81ff);
}
