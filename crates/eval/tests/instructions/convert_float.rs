//! Conversions, tested against the host's, against the crate `half`, and against their definition.

use crate::testing::{op, run};
use broadloom_random::Random;
use half::{bf16, f16};

/// Returns `f32` corner values, and pseudo-random ones.
fn singles() -> Vec<f32> {
    let mut list =
        vec![0.0, 0.5, 1.0, 1.5, 2.5, 3.5, 0.49999997, 127.5, 128.0, 255.0, 255.5, 256.0, 32767.5, 65504.0, 65519.996, 65520.0];
    list.extend([
        65535.5,
        8388607.5,
        8388609.0,
        2147483520.0,
        2147483648.0,
        4294967040.0,
        4294967296.0,
        9.223372e18,
        1.8446744e19,
    ]);
    list.extend([
        f32::MIN_POSITIVE,
        f32::from_bits(1),
        f32::from_bits(0x007f_ffff),
        f32::MAX,
        f32::INFINITY,
        5.9604645e-8,
        6.1e-5,
        2.98e-8,
    ]);
    let mut random = Random::new(77);
    for index in 0..3000 {
        let state = random.bits() as u32;
        let near = state >> 9 | (120 + index % 20) << 23;
        list.push(f32::from_bits(if index % 2 == 0 { near } else { state & 0x7f7f_ffff }));
    }
    let negative: Vec<f32> = list.iter().map(|value| -value).collect();
    list.extend(negative);
    list
}

fn bits(value: f32) -> u64 {
    u64::from(value.to_bits())
}

#[test]
fn floats_to_integers_as_the_host_does() {
    type Host = fn(f64) -> f64;
    let roundings: [(&str, Host); 4] =
        [("rni", f64::round_ties_even), ("rzi", f64::trunc), ("rmi", f64::floor), ("rpi", f64::ceil)];
    const TYPES: [&str; 8] = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"];
    for (word, host) in roundings {
        let singly = TYPES.map(|ty| op(&format!("cvt.{word}.{ty}.f32")));
        let doubly = TYPES.map(|ty| op(&format!("cvt.{word}.{ty}.f64")));
        let [integral_f32, integral_f64] = ["f32.f32", "f64.f64"].map(|types| op(&format!("cvt.{word}.{types}")));
        for value in singles() {
            let wide = f64::from(value);
            let rounded = host(wide);
            let results = [
                u64::from(rounded as u8),
                i64::from(rounded as i8) as u64,
                u64::from(rounded as u16),
                i64::from(rounded as i16) as u64,
                u64::from(rounded as u32),
                i64::from(rounded as i32) as u64,
                rounded as u64,
                rounded as i64 as u64,
            ];
            for (index, expected) in results.into_iter().enumerate() {
                assert_eq!(run(&singly[index], &[bits(value)]), expected, "{word} {} {value}", TYPES[index]);
                assert_eq!(run(&doubly[index], &[wide.to_bits()]), expected, "{word} {} {value}", TYPES[index]);
            }
            assert_eq!(run(&integral_f32, &[bits(value)]), bits(rounded as f32), "{word} f32 {value}");
            assert_eq!(run(&integral_f64, &[wide.to_bits()]), rounded.to_bits(), "{word} f64 {value}");
        }
    }
}

#[test]
fn nan_as_an_integer() {
    for (text, expected) in
        [("cvt.rni.s32.f32", 0), ("cvt.rzi.u8.f32", 0), ("cvt.rni.s64.f32", 1 << 63), ("cvt.rni.u64.f32", 1 << 63)]
    {
        assert_eq!(run(&op(text), &[0x7fc0_0000]), expected, "{text}");
    }
    for (text, expected) in [
        ("cvt.rni.s8.f64", 0xffff_ffff_ffff_ff80),
        ("cvt.rni.u8.f64", 0x80),
        ("cvt.rni.u32.f64", 0x8000_0000),
        ("cvt.rni.s64.f64", 1 << 63),
    ] {
        assert_eq!(run(&op(text), &[0x7ff8_0000_0000_0000]), expected, "{text}");
    }
    assert_eq!(run(&op("cvt.rni.s16.f16"), &[0x7e00]), 0);
    assert_eq!(run(&op("cvt.rni.s64.bf16"), &[0x7fc0]), 1 << 63);
}

#[test]
fn integers_to_floats_as_the_host_does() {
    let mut list = vec![0u64, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x0100_0001, 0x0100_0003, 0x7fff_ffff, 0x8000_0000];
    list.extend([
        0xffff_ffff,
        1 << 53 | 1,
        1 << 54 | 3,
        1 << 63,
        u64::MAX,
        u64::MAX - 1023,
        i64::MAX as u64,
        0x7fff_ff40,
        0x7fff_ffc0,
    ]);
    let mut random = Random::new(5);
    for index in 0..2000 {
        list.push(random.bits() >> (index % 60));
    }
    for value in list {
        let results = [
            ("u8", u64::from((value as u8 as f32).to_bits()), (value as u8 as f64).to_bits()),
            ("s8", u64::from((value as i8 as f32).to_bits()), (value as i8 as f64).to_bits()),
            ("u16", u64::from((value as u16 as f32).to_bits()), (value as u16 as f64).to_bits()),
            ("s16", u64::from((value as i16 as f32).to_bits()), (value as i16 as f64).to_bits()),
            ("u32", u64::from((value as u32 as f32).to_bits()), (value as u32 as f64).to_bits()),
            ("s32", u64::from((value as i32 as f32).to_bits()), (value as i32 as f64).to_bits()),
            ("u64", u64::from((value as f32).to_bits()), (value as f64).to_bits()),
            ("s64", u64::from((value as i64 as f32).to_bits()), (value as i64 as f64).to_bits()),
        ];
        for (ty, single, double) in results {
            // Bits above the width of the type, as in a wider register, do not count.
            assert_eq!(run(&op(&format!("cvt.rn.f32.{ty}")), &[value]), single, "{ty} {value:x}");
            assert_eq!(run(&op(&format!("cvt.rn.f64.{ty}")), &[value]), double, "{ty} {value:x}");
        }
        // Rounding toward zero, down and up brackets the value.
        let [low, high] =
            ["rm", "rp"].map(|rounding| f32::from_bits(run(&op(&format!("cvt.{rounding}.f32.u64")), &[value]) as u32));
        assert!(f64::from(low) <= value as f64 && value as f64 <= f64::from(high));
        assert!(low == high || low.next_up() == high);
        assert_eq!(run(&op("cvt.rz.f32.u64"), &[value]), u64::from(low.to_bits()));
    }
    assert_eq!(run(&op("cvt.rn.f16.u32"), &[65520]), 0x7c00, "too large for f16");
    assert_eq!(run(&op("cvt.rz.f16.u32"), &[65520]), 0x7bff);
    assert_eq!(run(&op("cvt.rn.sat.f32.s32"), &[7]), 0x3f80_0000);
}

#[test]
fn halves_as_the_crate_has_them() {
    let [to_f16, to_bf16] = ["f16", "bf16"].map(|ty| op(&format!("cvt.rn.{ty}.f32")));
    let [f32_f16, f64_f16, f32_bf16, f64_bf16] =
        ["f32.f16", "f64.f16", "f32.bf16", "f64.bf16"].map(|types| op(&format!("cvt.{types}")));
    for value in singles() {
        let expected = u64::from(f16::from_f32(value).to_bits());
        assert_eq!(run(&to_f16, &[bits(value)]), expected, "{value:e}");
        let expected = u64::from(bf16::from_f32(value).to_bits());
        assert_eq!(run(&to_bf16, &[bits(value)]), expected, "{value:e}");
    }
    for half in 0..=u16::MAX {
        let (x, y) = (f16::from_bits(half), bf16::from_bits(half));
        if !x.is_nan() {
            assert_eq!(run(&f32_f16, &[u64::from(half)]), bits(x.to_f32()));
            assert_eq!(run(&f64_f16, &[u64::from(half)]), x.to_f64().to_bits());
        }
        if !y.is_nan() {
            assert_eq!(run(&f32_bf16, &[u64::from(half)]), bits(y.to_f32()));
            assert_eq!(run(&f64_bf16, &[u64::from(half)]), y.to_f64().to_bits());
        }
    }
}

#[test]
fn f64_to_f32_as_the_host_does() {
    let (narrow, widen) = (op("cvt.rn.f32.f64"), op("cvt.f64.f32"));
    for value in singles() {
        for wide in [f64::from(value), f64::from(value) * (1.0 + 2f64.powi(-25)), f64::from(value) * 1e-30] {
            assert_eq!(run(&narrow, &[wide.to_bits()]), bits(wide as f32), "{wide:e}");
        }
        assert_eq!(run(&widen, &[bits(value)]), f64::from(value).to_bits());
    }
}

#[test]
fn nans_between_formats() {
    for (text, from, to) in [
        ("cvt.f64.f32", 0xff80_0001, 0xfff8_0000_2000_0000),
        ("cvt.ftz.f64.f32", 0xff80_0001, 0x7fff_ffff_e000_0000),
        ("cvt.rn.f32.f64", 0xfff0_0000_2000_0000, 0xffc0_0001),
        ("cvt.rn.f16.f64", 0x7ff4_0000_0000_0000, 0x7f00),
        ("cvt.f32.f16", 0xfd23, 0x7fff_ffff),
        ("cvt.f32.bf16", 0xff81, 0xff81_0000),
        ("cvt.rn.bf16.f32", 0xffc1_2345, 0x7fff),
        ("cvt.f32.f32", 0xff80_0001, 0xff80_0001),
        ("cvt.ftz.f32.f32", 0xff80_0001, 0x7fff_ffff),
        ("cvt.f16.f16", 0xfd23, 0x7fff),
        ("cvt.f64.f64", 0x7ff0_0000_0000_0001, 0x7ff0_0000_0000_0001),
        ("cvt.rzi.f64.f64", 0x7ff0_0000_0000_0001, 0x7ff8_0000_0000_0001),
        ("cvt.sat.f32.f32", 0x7fc0_0000, 0),
        ("cvt.rn.relu.f16.f32", 0xffc0_0000, 0x7fff),
        ("cvt.rn.satfinite.bf16.f32", 0xffc0_0000, 0x7fff),
        ("cvt.rn.tf32.f32", 0xffc0_0000, 0x7fff_e000),
    ] {
        assert_eq!(run(&op(text), &[from]), to, "{text}");
    }
}

#[test]
fn flushing_is_for_f32_alone() {
    assert_eq!(run(&op("cvt.rn.ftz.f16.f32"), &[0x3380_0000]), 0x0001, "a subnormal f16 stays");
    assert_eq!(run(&op("cvt.rn.ftz.bf16.f32"), &[0x0040_0000]), 0, "a subnormal f32 does not");
    assert_eq!(run(&op("cvt.ftz.f32.bf16"), &[0x8040]), 0x8000_0000);
    assert_eq!(run(&op("cvt.rn.ftz.f32.f64"), &[0xb690_0000_0000_0000]), 0x8000_0000);
    assert_eq!(run(&op("cvt.rpi.ftz.s32.f32"), &[1]), 0);
    assert_eq!(run(&op("cvt.rpi.s32.f32"), &[1]), 1);
}

#[test]
fn tf32() {
    assert_eq!(run(&op("cvt.rna.tf32.f32"), &[0x3f80_1000]), 0x3f80_2000, "a tie goes away from zero");
    assert_eq!(run(&op("cvt.rn.tf32.f32"), &[0x3f80_1000]), 0x3f80_0000);
    assert_eq!(run(&op("cvt.rz.tf32.f32"), &[0x3f80_1fff]), 0x3f80_0000);
    assert_eq!(run(&op("cvt.rna.satfinite.tf32.f32"), &[0xff7f_ffff]), 0xff7f_e000);
    assert_eq!(run(&op("cvt.rn.relu.tf32.f32"), &[0xbf80_0000]), 0);
    assert_eq!(run(&op("cvt.rn.pzo.tf32.f32"), &[0x8000_0001]), 0);
}
