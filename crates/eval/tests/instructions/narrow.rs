//! Narrow formats, tested against their definition: a table of all their values.

use crate::testing::{op, run};

/// Returns all non-negative values of a format with some exponent and fraction bits.
fn table(exponent_bits: u32, fraction_bits: u32, count: u32) -> Vec<f64> {
    let bias = (1 << (exponent_bits - 1)) - 1;
    (0..count)
        .map(|code| {
            let (exponent, fraction) = (code >> fraction_bits, f64::from(code & ((1 << fraction_bits) - 1)));
            let unit = f64::from(1 << fraction_bits);
            match exponent {
                0 => fraction / unit * 2f64.powi(1 - bias),
                _ => (1.0 + fraction / unit) * 2f64.powi(exponent as i32 - bias),
            }
        })
        .collect()
}

/// Name, non-negative values, sign bit, stride in bits, code of NaN.
type Described = (&'static str, Vec<f64>, u64, u32, u64);

fn formats() -> [Described; 5] {
    [
        // All ones is NaN, and so is everything above the largest number of e5m2 except infinity.
        ("e4m3x2", table(4, 3, 127), 0x80, 8, 0x7f),
        ("e5m2x2", table(5, 2, 124), 0x80, 8, 0x7f),
        // Without NaN: it becomes the largest number.
        ("e3m2x2", table(3, 2, 32), 0x20, 8, 0x1f),
        ("e2m3x2", table(2, 3, 32), 0x20, 8, 0x1f),
        ("e2m1x2", table(2, 1, 8), 0x8, 4, 0x7),
    ]
}

/// Returns the code of the nearest value; of two equally near ones, the even one.
fn nearest(values: &[f64], magnitude: f64) -> u64 {
    let distance = |code: &usize| (values[*code] - magnitude).abs();
    let best = (0..values.len()).min_by(|a, b| distance(a).total_cmp(&distance(b)).then((a % 2).cmp(&(b % 2))));
    best.unwrap_or_default() as u64
}

#[test]
fn to_narrow_formats() {
    for (name, values, sign, stride, nan) in formats() {
        let narrow = op(&format!("cvt.rn.satfinite.{name}.f32"));
        let relu = op(&format!("cvt.rn.satfinite.relu.{name}.f32"));
        // Every value, every midpoint, and points next to them.
        let mut samples = values.clone();
        samples.extend(values.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0));
        let beside: Vec<f64> = samples.iter().flat_map(|x| [x * (1.0 - 1e-5), x * (1.0 + 1e-5)]).collect();
        samples.extend(beside);
        samples.extend([1e9, f64::INFINITY, 1e-30]);
        for magnitude in samples {
            let x = magnitude as f32;
            let code = nearest(&values, f64::from(x).min(1e10));
            let (a, b) = (u64::from(x.to_bits()), u64::from((-x).to_bits()));
            assert_eq!(run(&narrow, &[a, b]), code << stride | code | sign, "{name} {x}: the first goes up");
            assert_eq!(run(&relu, &[b, a]), code, "{name} {x}");
        }
        assert_eq!(run(&narrow, &[0xffc0_0000, 0]), nan << stride, "{name}");
        // Same from pairs of halves.
        let [from_f16, from_bf16] = ["f16x2", "bf16x2"].map(|source| op(&format!("cvt.rn.satfinite.{name}.{source}")));
        assert_eq!(run(&from_f16, &[0x3c00_bc00]), run(&narrow, &[0x3f80_0000, 0xbf80_0000]), "{name}");
        assert_eq!(run(&from_bf16, &[0x3f80_bf80]), run(&narrow, &[0x3f80_0000, 0xbf80_0000]), "{name}");
    }
}

#[test]
fn from_narrow_formats() {
    for (name, values, sign, stride, nan) in formats() {
        let [f16, bf16] = ["f16x2", "bf16x2"].map(|to| op(&format!("cvt.rn.{to}.{name}")));
        for (code, value) in values.iter().enumerate() {
            let code = code as u64;
            let packed = code << stride | code | sign;
            let half = u64::from(half::f16::from_f64(*value).to_bits());
            assert_eq!(run(&f16, &[packed]), half << 16 | half | 0x8000, "{name} {code:x}");
            let half = u64::from(half::bf16::from_f64(*value).to_bits());
            assert_eq!(run(&bf16, &[packed]), half << 16 | half | 0x8000, "{name} {code:x}");
        }
        if name.starts_with("e4") || name.starts_with("e5") {
            assert_eq!(run(&f16, &[nan]), 0x7fff, "{name}");
        }
    }
    assert_eq!(run(&op("cvt.rn.f16x2.e5m2x2"), &[0xfc7c]), 0xfc00_7c00, "infinities stay");
    assert_eq!(run(&op("cvt.rn.relu.f16x2.e5m2x2"), &[0xfc7c]), 0x0000_7c00);
    assert_eq!(run(&op("cvt.rn.satfinite.bf16x2.e5m2x2"), &[0xfc7c]), 0xff7f_7f7f);
}

#[test]
fn scale_factors_multiply_on_the_way_back_and_divide_on_the_way_in() {
    // 1 and -1, by 4 and by 1/2.
    assert_eq!(run(&op("cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2"), &[0x38b8, 0x817e]), 0x4080_bf00);
    assert_eq!(run(&op("cvt.rn.scaled::n2::ue8m0.bf16x2.e2m1x2"), &[0x2a, 0xff7f]), 0x7fff_bf80, "a factor that is NaN");
    let down = op("cvt.rn.satfinite.scaled::n1::ue8m0.e4m3x2.f32");
    assert_eq!(run(&down, &[0x4080_0000, 0x3f80_0000, 0x81]), 0x3828, "4 and 1 by 4");
    let fixed = op("cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32");
    assert_eq!(run(&fixed, &[0x4000_0000, 0x3f80_0000, 0x807f]), 0x4040, "2 by 2, 1 by 1");
}

#[test]
fn powers_of_two() {
    let convert =
        |rounding: &str, value: f32| run(&op(&format!("cvt.{rounding}.ue8m0x2.f32")), &[0, u64::from(value.to_bits())]) & 0xff;
    for exponent in -126..127 {
        let power = 2f32.powi(exponent);
        let code = (exponent + 127) as u64;
        assert_eq!([convert("rz", power), convert("rp", power)], [code, code]);
        assert_eq!([convert("rz", power * 1.5), convert("rp", -power * 1.5)], [code, code + 1], "the sign does not count");
    }
    let tiny = f32::from_bits(1);
    assert_eq!([convert("rz", 0.0), convert("rp", 0.0), convert("rz", tiny), convert("rp", tiny)], [0; 4]);
    assert_eq!([convert("rz", f32::from_bits(0x0040_0001)), convert("rp", f32::from_bits(0x0040_0001))], [0, 1]);
    assert_eq!([convert("rz", f32::MAX), convert("rp", f32::MAX)], [0xfe, 0xff]);
    assert_eq!([convert("rp.satfinite", f32::MAX), convert("rz.satfinite", f32::INFINITY)], [0xfe, 0xfe]);
    assert_eq!([convert("rz", f32::NAN), convert("rz.satfinite", f32::NAN)], [0xff, 0xff]);
    let back = op("cvt.rn.bf16x2.ue8m0x2");
    assert_eq!(run(&back, &[0x7f00]), 0x3f80_0040, "1, and 2^-127, which is subnormal");
    assert_eq!(run(&back, &[0xffff]), 0x7fff_7fff);
    assert_eq!(run(&op("cvt.rp.ue8m0x2.bf16x2"), &[0x3fc0_3f80]), 0x807f);
}

#[test]
fn fixed_point() {
    let convert = |text: &str, value: f32| run(&op(text), &[0, u64::from(value.to_bits())]) & 0xff;
    for units in -128..128 {
        let value = units as f32 / 64.0;
        let code = units as u64 & 0xff;
        assert_eq!(convert("cvt.rn.satfinite.s2f6x2.f32", value), code);
        let bf16 = u64::from(half::bf16::from_f32(value).to_bits());
        assert_eq!(run(&op("cvt.rn.bf16x2.s2f6x2"), &[code]), bf16);
        assert_eq!(convert("cvt.rn.satfinite.relu.s2f6x2.f32", value), code * u64::from(units > 0));
    }
    for (value, code) in [(2.0, 0x7f), (-2.1, 0x80), (f32::NAN, 0x7f), (f32::NEG_INFINITY, 0x80), (0.0078125, 0), (0.0234375, 2)]
    {
        assert_eq!(convert("cvt.rn.satfinite.s2f6x2.f32", value), code, "{value}");
    }
}

#[test]
fn pairs_of_halves() {
    assert_eq!(run(&op("cvt.rn.f16x2.f32"), &[0x3f80_0000, 0xc000_0000]), 0x3c00_c000, "the first goes up");
    assert_eq!(run(&op("cvt.rz.relu.bf16x2.f32"), &[0x3f80_ffff, 0xc000_0000]), 0x3f80_0000);
    assert_eq!(run(&op("cvt.rn.satfinite.f16x2.f32"), &[0x7f80_0000, 0xff80_0000]), 0x7bff_fbff);
    assert_eq!(run(&op("cvt.rn.pzo.f16x2.f32"), &[0x8000_0000, 0xa000_0000]), 0);
}

#[test]
fn random_rounding() {
    // One and a quarter of the last place of bf16, and of f16.
    let bf16 = op("cvt.rs.bf16x2.f32");
    assert_eq!(run(&bf16, &[0x3f80_4000, 0x3f80_4000, 0xbfff_c000]), 0x3f80_3f81, "a carry only from the lower half");
    let f16 = op("cvt.rs.f16x2.f32");
    assert_eq!(run(&f16, &[0x3f80_0800, 0x3f80_0800, 0xf7ff_1800]), 0x3c00_3c01, "thirteen bits of each half");
    // 1 + 1/32 is a quarter of the way from 1 to the next e4m3: the first two share the upper bits, the last
    // two the lower.
    let e4m3 = op("cvt.rs.satfinite.e4m3x4.f32");
    let x = 0x3f84_0000;
    assert_eq!(run(&e4m3, &[x, x, x, x, 0xc000_bfff]), 0x3939_3838);
    // 1.125 is a quarter of the way from 1 to the next e2m1, 1.5.
    let e2m1 = op("cvt.rs.satfinite.e2m1x4.f32");
    let x = 0x3f90_0000;
    assert_eq!(run(&e2m1, &[x, x, x, x, 0xc0bf_00ff]), 0x3322, "upper bytes for the first two");
}

#[test]
fn formats_without_a_sign() {
    let to = op("cvt.rn.satfinite.ue5m3x2.f32");
    assert_eq!(run(&to, &[0x3f80_0000, 0x7f80_0000]), 0x78fe);
    let back = op("cvt.rn.bf16x2.ue5m3x2");
    assert_eq!(run(&back, &[0x78fe]), 0x3f80_47e0, "1 and 114688");
    assert_eq!(run(&op("cvt.rn.f16x2.ue5m3x2"), &[0xfffe]), 0x7fff_7c00, "too large for f16");
}
