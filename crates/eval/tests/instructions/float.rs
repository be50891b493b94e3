//! Floating-point instructions: the host's results against exact ones, the rules for NaN, `.ftz`, `.sat`,
//! `.relu`, and forms of packed and mixed types.

use crate::testing::{op, run};
use broadloom_eval::Operation;
use broadloom_eval::float::half;
use broadloom_eval::soft::{Flush, Format, Number, Overflow, Rounding};
use broadloom_ptx::{InstData, Operand, Reg};
use broadloom_random::Random;

/// Returns corner values of a format, and pseudo-random ones with exponents near one and anywhere.
fn values(format: Format, count: u64) -> Vec<u64> {
    let (one, least, infinity) = (format.one(), format.least_normal(), format.infinity());
    let mut list = vec![0, 1, least - 1, least, least + 1, one - 1, one, one + 1, infinity - 1, infinity, infinity + 1];
    list.extend([infinity + least / 2, format.magnitude_mask(), one + 3, one - least, one + least / 2]);
    let mut random = Random::new(1);
    for index in 0..count {
        let bits = random.bits() & format.magnitude_mask();
        list.push(if index % 2 == 0 { bits } else { one - 3 * least + bits % (6 * least) });
    }
    let negative: Vec<u64> = list.iter().map(|bits| bits | format.sign_bit()).collect();
    list.extend(negative);
    list
}

fn exact(format: Format, ftz: bool, number: impl Fn(&dyn Fn(u64) -> Number) -> Number) -> u64 {
    let flush = if ftz { Flush::Zero } else { Flush::Keep };
    let operand = |bits: u64| if ftz { format.flushed(bits) } else { bits };
    number(&|bits| Number::of(format, operand(bits))).to_bits(format, Rounding::Nearest, Overflow::Ieee, flush)
}

/// Returns the nearest number of a format.
fn nearest(format: Format, number: Number) -> u64 {
    number.to_bits(format, Rounding::Nearest, Overflow::Ieee, Flush::Keep)
}

/// Returns whether two values are equal, or both NaN; another test checks which NaN.
fn agree(format: Format, a: u64, b: u64) -> bool {
    a == b || format.is_nan(a) && format.is_nan(b)
}

#[test]
fn the_host_and_exact_arithmetic_agree() {
    const NEAREST: Rounding = Rounding::Nearest;
    for (ty, ftz) in [("f32", false), ("ftz.f32", true), ("f64", false)] {
        let format = if ty == "f64" { Format::F64 } else { Format::F32 };
        let [add, sub, mul, div, rcp, sqrt, fma] =
            ["add.rn", "sub.rn", "mul.rn", "div.rn", "rcp.rn", "sqrt.rn", "fma.rn"].map(|name| op(&format!("{name}.{ty}")));
        let list = values(format, 40);
        for (index, &a) in list.iter().enumerate() {
            for &b in &list {
                let c = list[(index * 31 + (b % 97) as usize) % list.len()];
                let results = [
                    (run(&add, &[a, b]), exact(format, ftz, |of| of(a).add(of(b), NEAREST))),
                    (run(&sub, &[a, b]), exact(format, ftz, |of| of(a).add(of(b).negated(), NEAREST))),
                    (run(&mul, &[a, b]), exact(format, ftz, |of| of(a).mul(of(b)))),
                    (run(&div, &[a, b]), exact(format, ftz, |of| of(a).div(of(b)))),
                    (run(&rcp, &[a]), exact(format, ftz, |of| of(format.one()).div(of(a)))),
                    (run(&sqrt, &[a]), exact(format, ftz, |of| of(a).sqrt())),
                    (run(&fma, &[a, b, c]), exact(format, ftz, |of| of(a).fma(of(b), of(c), NEAREST))),
                ];
                for (which, (host, soft)) in results.into_iter().enumerate() {
                    assert!(agree(format, host, soft), "{ty} {which}: {a:x} {b:x} {c:x}: {host:x}, exactly {soft:x}");
                }
            }
        }
    }
}

#[test]
fn halves_by_way_of_f64_and_exact_arithmetic_agree() {
    const NEAREST: Rounding = Rounding::Nearest;
    for (ty, format) in [("f16", Format::F16), ("bf16", Format::BF16)] {
        for bits in 0..=0xffff {
            let wide = half::to_f64(format, bits);
            let exactly = f64::from_bits(nearest(Format::F64, Number::of(format, bits)));
            assert!(wide == exactly && wide.is_sign_negative() == exactly.is_sign_negative() || wide.is_nan(), "{ty} {bits:x}");
            // The half itself, the midpoint to the next, and the adjacent doubles.
            let middle = (wide + half::to_f64(format, bits + 1)) / 2.0;
            for value in [wide, middle, middle.next_up(), middle.next_down()] {
                let exactly = nearest(format, Number::of(Format::F64, value.to_bits()));
                assert_eq!(half::from_f64(format, value), exactly, "{ty} {value:e}");
            }
        }
        let [add, sub, mul, fma] = ["add", "sub", "mul", "fma.rn"].map(|name| op(&format!("{name}.{ty}")));
        let list = values(format, 60);
        for (index, &a) in list.iter().enumerate() {
            for &b in &list {
                let c = list[(index * 31 + (b % 97) as usize) % list.len()];
                let results = [
                    (run(&add, &[a, b]), exact(format, false, |of| of(a).add(of(b), NEAREST))),
                    (run(&sub, &[a, b]), exact(format, false, |of| of(a).add(of(b).negated(), NEAREST))),
                    (run(&mul, &[a, b]), exact(format, false, |of| of(a).mul(of(b)))),
                    (run(&fma, &[a, b, c]), exact(format, false, |of| of(a).fma(of(b), of(c), NEAREST))),
                ];
                for (which, (host, soft)) in results.into_iter().enumerate() {
                    assert_eq!(host, soft, "{ty} {which}: {a:x} {b:x} {c:x}");
                }
            }
        }
    }
}

#[test]
fn sums_to_odd_round_again_as_if_once() {
    // 1 + 2^-11 + 2^-60 is above the midpoint of two f16, though not in f64.
    let sum = half::sum_to_odd(1.0 + 2f64.powi(-11), 2f64.powi(-60));
    assert_eq!(half::from_f64(Format::F16, sum), 0x3c01);
    assert_eq!(half::from_f64(Format::F16, half::sum_to_odd(1.0 + 2f64.powi(-11), -2f64.powi(-60))), 0x3c00);
    assert_eq!(half::sum_to_odd(1.0, 2.0), 3.0);
    assert_eq!(half::sum_to_odd(f64::INFINITY, 1.0), f64::INFINITY);
}

#[test]
fn nans_of_f64_are_handed_on_and_others_are_canonical() {
    let (a, b, c) = (0x7ff0_0000_0000_0001, 0xfff8_0000_0000_0002, 0x7ff4_0000_0000_0003);
    let (quiet_a, quiet_b, quiet_c) = (0x7ff8_0000_0000_0001, b, 0x7ffc_0000_0000_0003);
    let one = Format::F64.one();
    let cases: [(&str, &[u64], u64); 16] = [
        ("add.f64", &[a, one], quiet_a),
        ("add.f64", &[one, b], quiet_b),
        ("add.rz.f64", &[a, b], quiet_b),
        ("sub.f64", &[one, b], quiet_b),
        ("mul.f64", &[c, a], quiet_a),
        ("div.rn.f64", &[a, b], quiet_a),
        ("fma.rn.f64", &[a, b, c], quiet_b),
        ("fma.rn.f64", &[a, one, c], quiet_c),
        ("fma.rz.f64", &[a, one, one], quiet_a),
        ("sqrt.rn.f64", &[a], quiet_a),
        ("min.f64", &[a, c], quiet_c),
        ("min.f64", &[a, one], one),
        ("abs.f64", &[b], quiet_b),
        ("neg.f64", &[a], quiet_a),
        ("sqrt.rn.f64", &[one | 1 << 63], 0xfff8_0000_0000_0000),
        ("add.f64", &[0x7ff0_0000_0000_0000, 0xfff0_0000_0000_0000], 0xfff8_0000_0000_0000),
    ];
    for (text, operands, expected) in cases {
        assert_eq!(run(&op(text), operands), expected, "{text} {operands:x?}");
    }
    let nan = 0xffc1_2345;
    for text in
        ["add.f32", "mul.rp.ftz.f32", "div.full.f32", "max.NaN.f32", "abs.f32", "neg.ftz.f32", "sqrt.rn.f32", "lg2.approx.f32"]
    {
        assert_eq!(run(&op(text), &[nan, 0x3f80_0000]), 0x7fff_ffff, "{text}");
    }
    for text in ["add.f16", "mul.bf16", "fma.rn.relu.f16", "neg.bf16", "abs.f16", "ex2.approx.f16", "tanh.approx.bf16"] {
        assert_eq!(run(&op(text), &[0xffff, 0x3c00, 0]), 0x7fff, "{text}");
    }
    assert_eq!(run(&op("copysign.f32"), &[0x8000_0000, 0x7fc1_2345]), 0xffc1_2345, "bits are bits");
}

#[test]
fn results_are_brought_into_range() {
    let bits = |value: f32| u64::from(value.to_bits());
    for (a, b, expected) in [
        (0.25, 0.5, 0.75),
        (0.75, 0.5, 1.0),
        (-1.0, 0.5, 0.0),
        (-0.0, -0.0, 0.0),
        (f32::INFINITY, 1.0, 1.0),
        (f32::NAN, 1.0, 0.0),
    ] {
        for text in ["add.sat.f32", "add.rz.sat.f32", "add.ftz.sat.f32"] {
            assert_eq!(run(&op(text), &[bits(a), bits(b)]), bits(expected), "{text} {a} {b}");
        }
    }
    let fma = op("fma.rn.relu.f16x2");
    assert_eq!(run(&fma, &[0x3c00_bc00, 0x4000_4000, 0x0000_0000]), 0x4000_0000);
    assert_eq!(run(&op("fma.rn.relu.bf16"), &[0x8000, 0x3f80, 0x8000]), 0, "no negative zero");
}

#[test]
fn what_lies_out_of_bounds_makes_zero() {
    let fma = op("fma.rn.oob.f16");
    for (operands, expected) in [
        ([0x7ff7, 0x3c00, 0x3c00], 0),
        ([0x3c00, 0xfff7, 0x3c00], 0),
        ([0x3c00, 0x3c00, 0x7ff7], 0x7fff),
        ([0x7ff6, 0x3c00, 0x3c00], 0x7fff),
        ([0x3c00, 0x3c00, 0x3c00], 0x4000),
    ] {
        assert_eq!(run(&fma, &operands), expected, "{operands:x?}");
    }
    let packed = run(&op("fma.rn.oob.relu.bf16x2"), &[0x7ff7_3f80, 0x3f80_3f80, 0x3f80_3f80]);
    assert_eq!(packed, 0x0000_4000, "each lane on its own");
}

#[test]
fn the_smaller_and_the_larger() {
    for (ty, format) in [("f32", Format::F32), ("f64", Format::F64), ("f16", Format::F16), ("bf16", Format::BF16)] {
        let (min, max) = (op(&format!("min.{ty}")), op(&format!("max.{ty}")));
        let worth = |bits: u64| f64::from_bits(nearest(Format::F64, Number::of(format, bits)));
        let list = values(format, 8);
        for &a in &list {
            for &b in &list {
                let (low, high) = (run(&min, &[a, b]), run(&max, &[a, b]));
                match (format.is_nan(a), format.is_nan(b)) {
                    (true, true) => assert!(format.is_nan(low) && format.is_nan(high)),
                    (true, false) => assert_eq!((low, high), (b, b)),
                    (false, true) => assert_eq!((low, high), (a, a)),
                    (false, false) => {
                        assert!([(a, b), (b, a)].contains(&(low, high)), "{ty} {a:x} {b:x}");
                        assert!(worth(low) <= worth(high), "{ty} {a:x} {b:x}");
                        let zeros = format.is_zero(a) && format.is_zero(b) && a != b;
                        assert!(!zeros || format.is_negative(low), "-0 is below +0");
                    }
                }
            }
        }
    }
    assert_eq!(run(&op("min.xorsign.abs.f32"), &[0xbf80_0000, 0x4000_0000]), 0xbf80_0000);
    assert_eq!(run(&op("max.xorsign.abs.f32"), &[0xbf80_0000, 0xffc0_0000]), 0x3f80_0000, "a NaN's sign counts");
    assert_eq!(run(&op("max.NaN.xorsign.abs.f32"), &[0xbf80_0000, 0xffc0_0000]), 0x7fff_ffff);
}

#[test]
fn three_operands() {
    let three = |text: &str| {
        let reg = |number: u32| Operand::Reg(Reg::from_u32(number));
        Operation::of(&InstData::of(text, [reg(0), reg(1), reg(2), reg(3)]).unwrap()).unwrap()
    };
    let operands = [0x4000_0000, 0xc080_0000, 0x3f80_0000];
    assert_eq!(run(&three("min.f32"), &operands), 0xc080_0000);
    assert_eq!(run(&three("max.f32"), &operands), 0x4000_0000);
    assert_eq!(run(&three("max.abs.f32"), &operands), 0x4080_0000);
    assert_eq!(run(&three("min.f32"), &[0x7fc0_0000, 0x7fc0_0000, 0x3f80_0000]), 0x3f80_0000);
    assert_eq!(run(&three("min.NaN.f32"), &[0x3f80_0000, 0x3f80_0000, 0x7fc0_0000]), 0x7fff_ffff);
}

#[test]
fn pairs_of_f32() {
    let pair = |low: f32, high: f32| u64::from(low.to_bits()) | u64::from(high.to_bits()) << 32;
    let (a, b, c) = (pair(1.0, 2.0), pair(3.0, -4.0), pair(0.5, 0.25));
    assert_eq!(run(&op("add.f32x2"), &[a, b]), pair(4.0, -2.0));
    assert_eq!(run(&op("sub.rz.f32x2"), &[a, b]), pair(-2.0, 6.0));
    assert_eq!(run(&op("mul.rp.ftz.f32x2"), &[a, b]), pair(3.0, -8.0));
    assert_eq!(run(&op("fma.rn.f32x2"), &[a, b, c]), pair(3.5, -7.75));
    let tiny = pair(f32::from_bits(1), 1.0);
    assert_eq!(run(&op("add.ftz.f32x2"), &[tiny, tiny]), pair(0.0, 2.0), "each lane is flushed");
}

#[test]
fn operands_of_other_types() {
    let single = |value: f32| u64::from(value.to_bits());
    // 1.5 in f16 and in bf16.
    assert_eq!(run(&op("add.f32.f16"), &[0x3e00, single(1.0)]), single(2.5));
    assert_eq!(run(&op("sub.rz.f32.bf16"), &[0x3fc0, single(1.0)]), single(0.5));
    assert_eq!(run(&op("add.sat.f32.f16"), &[0x3e00, single(1.0)]), single(1.0));
    assert_eq!(run(&op("fma.rn.f32.f16"), &[0x3e00, 0x3e00, single(0.25)]), single(2.5));
    // f16 × f16 is exact in f32: 65504² does not overflow.
    assert_eq!(run(&op("fma.rn.f32.f16"), &[0x7bff, 0x7bff, 0]), single(65504.0 * 65504.0));
    let pair = |low: f32, high: f32| single(low) | single(high) << 32;
    assert_eq!(run(&op("add.f32x2.f16x2.f32x2"), &[0x3c00_3e00, pair(1.0, 2.0)]), pair(2.5, 3.0));
    assert_eq!(run(&op("fma.rn.f32x2.bf16x2.f32x2.f32x2"), &[0x3f80_3fc0, pair(2.0, 3.0), pair(0.5, 0.0)]), pair(3.5, 3.0));
    assert_eq!(run(&op("mul.rz.bf16x2.f32x2.f32x2"), &[pair(1.5, 1.0), pair(1.5, 3.0)]), 0x4040_4010);
    assert_eq!(run(&op("mul.f16x2.f16x2.bf16x2"), &[0x3e00_3c00, 0x3fc0_4000]), 0x4080_4000);
}

#[test]
fn lanes_of_eight_bits() {
    // e4m3: 0x38 is 1, 0x40 is 2, 0x7e is 448; e2m1: 2 is 1, 7 is 6; ue8m0: 0x80 is 2.
    assert_eq!(run(&op("add.rn.satfinite.e4m3x4.e4m3x4"), &[0x7e_38_38_00, 0x7e_38_b8_00]), 0x7e_40_00_00);
    assert_eq!(run(&op("add.rn.e4m3x4.e2m1x4"), &[0x2_2_7_0, 0x38_38_38_38]), 0x40_40_4e_38);
    assert_eq!(run(&op("mul.rn.e4m3x4.e2m1p4x4.ue8m0x4"), &[0x02_02_02_02, 0x80_7f_7e_ff]), 0x40_38_30_7f);
    assert_eq!(run(&op("fma.rn.satfinite.e4m3x4.e4m3x4.e4m3x4"), &[0x38_40_40_7e, 0x38_40_38_7e, 0x38_38_00_00]), 0x40_4a_40_7e);
    assert_eq!(run(&op("sub.rn.e5m2x4.e5m2x4"), &[0x3c_3c_7b_00, 0x3c_bc_fb_00]), 0x00_40_7c_00);
}

#[test]
fn properties() {
    let cases =
        [(0u64, "1010 10"), (0x8000_0001, "101001"), (0x7f80_0000, "011000"), (0xffc0_0000, "000100"), (0x3f80_0000, "101010")];
    let names = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"];
    for (bits, expected) in cases {
        let expected: Vec<u64> = expected.chars().filter(|c| *c != ' ').map(|c| u64::from(c == '1')).collect();
        for (name, expected) in names.iter().zip(expected) {
            assert_eq!(run(&op(&format!("testp.{name}.f32")), &[bits]), expected, "{name} {bits:x}");
        }
    }
}
