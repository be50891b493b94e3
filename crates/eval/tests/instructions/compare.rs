//! Comparisons and selections.

use crate::testing::{op, pairs, run, run_pair};
use half::{bf16, f16};

fn compare(text: &str, a: u64, b: u64) -> bool {
    run_pair(&op(text), &[a, b, 0, 0, 0, 0])[0] == 1
}

#[test]
fn integers_compare_by_their_sign() {
    for (a, b) in pairs() {
        let (s, t) = (a as u16 as i16, b as u16 as i16);
        assert_eq!(compare("setp.lt.s16", a, b), s < t);
        assert_eq!(compare("setp.ge.s16", a, b), s >= t);
        assert_eq!(compare("setp.lo.u16", a, b), (a as u16) < b as u16);
        let (s, t) = (a as u32 as i32, b as u32 as i32);
        assert_eq!(compare("setp.gt.s32", a, b), s > t);
        assert_eq!(compare("setp.le.s32", a, b), s <= t);
        assert_eq!(compare("setp.hs.u32", a, b), a as u32 >= b as u32);
        assert_eq!(compare("setp.ls.u32", a, b), a as u32 <= b as u32);
        assert_eq!(compare("setp.eq.b32", a, b), a as u32 == b as u32);
        assert_eq!(compare("setp.lt.s64", a, b), (a as i64) < b as i64);
        assert_eq!(compare("setp.hi.u64", a, b), a > b);
        assert_eq!(compare("setp.ne.b64", a, b), a != b);
    }
}

#[test]
fn floats_compare_ordered_and_unordered() {
    let numbers = [0.0, -0.0, 1.0, -1.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    for (x, y) in numbers.into_iter().flat_map(|x| numbers.map(|y| (x, y))) {
        let nan = x.is_nan() || y.is_nan();
        let expected = [
            ("eq", x == y),
            ("ne", x != y && !nan),
            ("lt", x < y),
            ("le", x <= y),
            ("gt", x > y),
            ("ge", x >= y),
            ("equ", x == y || nan),
            ("neu", x != y),
            ("ltu", x < y || nan),
            ("leu", x <= y || nan),
            ("gtu", x > y || nan),
            ("geu", x >= y || nan),
            ("num", !nan),
            ("nan", nan),
        ];
        for (name, holds) in expected {
            let f = |x: f64| u64::from((x as f32).to_bits());
            let h = |x: f64| u64::from(f16::from_f64(x).to_bits());
            let g = |x: f64| u64::from(bf16::from_f64(x).to_bits());
            assert_eq!(compare(&format!("setp.{name}.f64"), x.to_bits(), y.to_bits()), holds, "{x} {name} {y}");
            assert_eq!(compare(&format!("setp.{name}.f32"), f(x), f(y)), holds, "{x} {name} {y}");
            assert_eq!(compare(&format!("setp.{name}.f16"), h(x), h(y)), holds, "{x} {name} {y}");
            assert_eq!(compare(&format!("setp.{name}.bf16"), g(x), g(y)), holds, "{x} {name} {y}");
            let pair = run_pair(&op(&format!("setp.{name}.f16x2")), &[h(x) << 16, h(y) << 16, 0, 0, 0, 0]);
            assert_eq!(pair, [u64::from(compare(&format!("setp.{name}.f16"), 0, 0)), u64::from(holds)]);
        }
    }
}

#[test]
fn ftz_makes_subnormals_zero() {
    assert!(!compare("setp.eq.f32", 1, 0));
    assert!(compare("setp.eq.ftz.f32", 1, 0x8000_0002));
    assert!(!compare("setp.eq.ftz.f32", 0x0080_0000, 0));
    assert!(compare("setp.gt.f16", 1, 0));
    assert!(!compare("setp.gt.ftz.f16", 0x03ff, 0));
    assert!(compare("setp.gt.ftz.f16", 0x0400, 0));
}

#[test]
fn results_combine_with_a_predicate() {
    for (name, table) in [("and", [0, 0, 0, 1]), ("or", [0, 1, 1, 1]), ("xor", [0, 1, 1, 0])] {
        for (equal, third) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let found = run_pair(&op(&format!("setp.eq.{name}.s32")), &[equal, 1, third, 0, 0, 0]);
            let at = |first: u64| table[(first * 2 + third) as usize];
            assert_eq!(found, [at(equal), at(1 - equal)], "{name} {equal} {third}");
            let found = run(&op(&format!("set.eq.{name}.u32.s32")), &[equal, 1, third, 0, 0, 0]);
            assert_eq!(found, at(equal) * 0xffff_ffff);
        }
    }
}

#[test]
fn set_writes_what_is_true_in_its_type() {
    let cases = [
        ("set.eq.u32.u16", 0xffff_ffff),
        ("set.eq.s32.u64", 0xffff_ffff),
        ("set.eq.f32.s32", 0x3f80_0000),
        ("set.eq.f16.s32", 0x3c00),
        ("set.eq.bf16.f16", 0x3f80),
        ("set.eq.u16.f16", 0xffff),
        ("set.eq.s32.bf16", 0xffff_ffff),
    ];
    for (text, expected) in cases {
        assert_eq!(run(&op(text), &[7, 7, 0, 0, 0, 0]), expected, "{text}");
        assert_eq!(run(&op(text), &[7, 8, 0, 0, 0, 0]), 0, "{text}");
    }
    let halves = [0x3c00_4000, 0x3c00_3c00, 0, 0, 0, 0];
    assert_eq!(run(&op("set.gt.f16x2.f16x2"), &halves), 0x0000_3c00);
    assert_eq!(run(&op("set.eq.u32.f16x2"), &halves), 0xffff_0000);
    assert_eq!(run(&op("set.ge.bf16x2.bf16x2"), &halves), 0x3f80_3f80);
    let bytes = [0x7f80_0001, 0x807f_0002, 0, 0, 0, 0];
    assert_eq!(run(&op("set.lt.s8x4"), &bytes), 0x00ff_00ff);
    assert_eq!(run(&op("set.lo.u8x4"), &bytes), 0xff00_00ff);
}

#[test]
fn selection_looks_at_its_third_operand() {
    assert_eq!(run(&op("selp.b32"), &[3, 4, 1, 0, 0, 0]), 3);
    assert_eq!(run(&op("selp.b32"), &[3, 4, 0, 0, 0, 0]), 4);
    let slct = |text: &str, third: u32| run(&op(text), &[3, 4, u64::from(third), 0, 0, 0]);
    assert_eq!([0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff].map(|third| slct("slct.u64.s32", third)), [3, 3, 3, 4, 4]);
    let floats = [0, 0x8000_0000, 0x3f80_0000, 0xbf80_0000, 0x7fc0_0000, 0xffc0_0000, 0x8000_0001, 0xff80_0000];
    assert_eq!(floats.map(|third| slct("slct.b32.f32", third)), [3, 3, 3, 4, 4, 4, 4, 4]);
    assert_eq!(floats.map(|third| slct("slct.ftz.b32.f32", third)), [3, 3, 3, 4, 4, 4, 3, 4]);
}
