//! Approximate instructions, tested against their bounds (manual: "Floating-Point Instructions") over dense
//! samples. The reference values are computed from series, not from the functions under test.

use crate::testing::{op, run};
use half::{bf16, f16};

/// Computes e^x for |x| ≤ 1 by its series.
fn exp_series(x: f64) -> f64 {
    (1..30).rev().fold(1.0, |sum, n| 1.0 + x * sum / f64::from(n))
}

/// Computes 2^x as a power of two times a series.
fn true_ex2(x: f64) -> f64 {
    let whole = x.round();
    let (a, b) = ((whole / 2.0).floor(), whole - (whole / 2.0).floor());
    exp_series((x - whole) * std::f64::consts::LN_2) * 2f64.powi(a as i32) * 2f64.powi(b as i32)
}

/// Computes the logarithm to base 2: the exponent, and twice the series of the inverse hyperbolic tangent.
fn true_lg2(x: f64) -> f64 {
    let (mut x, mut exponent) = (x, 0.0);
    while x > std::f64::consts::SQRT_2 {
        (x, exponent) = (x / 2.0, exponent + 1.0);
    }
    while x < std::f64::consts::FRAC_1_SQRT_2 {
        (x, exponent) = (x * 2.0, exponent - 1.0);
    }
    let t = (x - 1.0) / (x + 1.0);
    let series: f64 = (0..40).rev().map(|n| t.powi(2 * n + 1) / f64::from(2 * n + 1)).sum();
    exponent + 2.0 * series / std::f64::consts::LN_2
}

/// Computes the sine, after reduction to [-π, π].
fn true_sin(x: f64) -> f64 {
    let turns = (x / std::f64::consts::TAU).round();
    // 2π in two parts, so that little precision is lost for a few hundred turns.
    let x = (x - turns * std::f64::consts::TAU) - turns * 2.4492935982947064e-16;
    let square = x * x;
    let series = (1..25).rev().fold(1.0, |sum, n| 1.0 - square * sum / f64::from(2 * n * (2 * n + 1)));
    x * series
}

fn true_tanh(x: f64) -> f64 {
    if x.abs() < 1e-4 {
        return x - x * x * x / 3.0;
    }
    let e = true_ex2(-2.0 * x.abs() * std::f64::consts::LOG2_E);
    ((1.0 - e) / (1.0 + e)).copysign(x)
}

/// Returns an instruction on `f32` as a function.
fn unary(text: &str) -> impl Fn(f32) -> f64 {
    let op = op(text);
    move |x| f64::from(f32::from_bits(run(&op, &[u64::from(x.to_bits())]) as u32))
}

/// Returns an instruction on bits as a function.
fn bitwise(text: &str) -> impl Fn(u64) -> u64 {
    let op = op(text);
    move |bits| run(&op, &[bits])
}

/// Returns samples from one value to another.
fn between(low: f32, high: f32, count: u32) -> impl Iterator<Item = f32> {
    (0..=count).map(move |n| low + (high - low) * n as f32 / count as f32)
}

/// Returns samples over all exponents.
fn all_magnitudes() -> impl Iterator<Item = f32> {
    (1..0x7f80_0000u32).step_by(104_729).map(f32::from_bits)
}

#[test]
fn powers_of_two() {
    let ulp = |x: f64| 2f64.powi((x.log2().floor() as i32).max(-126) - 23);
    let (ex2, ex2_f16, ex2_bf16) = (unary("ex2.approx.f32"), bitwise("ex2.approx.f16"), bitwise("ex2.approx.ftz.bf16"));
    for x in between(-151.0, 127.99, 20_000).chain(between(-1.0, 1.0, 20_000)) {
        let expected = true_ex2(f64::from(x));
        assert!((ex2(x) - expected).abs() <= 2.0 * ulp(expected), "2^{x}");
    }
    for bits in 0..=u16::MAX {
        let x = f16::from_bits(bits);
        if x.is_finite() {
            let found = f16::from_bits(ex2_f16(u64::from(bits)) as u16).to_f64();
            let expected = true_ex2(x.to_f64());
            // If the result is subnormal or overflows, a bound on the relative error does not apply.
            if (2f64.powi(-14)..65504.0).contains(&expected) {
                assert!((found - expected).abs() <= expected * 2f64.powf(-9.9), "2^{x}");
            }
        }
        let x = bf16::from_bits(bits);
        if x.is_finite() && x.to_f64() > -126.0 && x.to_f64() < 127.9 {
            let found = bf16::from_bits(ex2_bf16(u64::from(bits)) as u16).to_f64();
            let expected = true_ex2(x.to_f64());
            assert!((found - expected).abs() <= expected * 2f64.powi(-7), "2^{x}");
        }
    }
}

#[test]
fn logarithms() {
    let bound = 2f64.powi(-22);
    let lg2 = unary("lg2.approx.f32");
    for x in between(0.500_001, 1.999_999, 40_000) {
        assert!((lg2(x) - true_lg2(f64::from(x))).abs() <= bound, "lg2 {x}");
    }
    for x in all_magnitudes().filter(|x| !(0.5..2.0).contains(x)) {
        let expected = true_lg2(f64::from(x));
        assert!((lg2(x) - expected).abs() <= bound * expected.abs(), "lg2 {x}");
    }
}

#[test]
fn sines_and_cosines() {
    let (sin, cos) = (unary("sin.approx.f32"), unary("cos.approx.f32"));
    for (range, count, bound) in [(2.0 * std::f32::consts::PI, 30_000, -20.5), (100.0 * std::f32::consts::PI, 60_000, -14.7)] {
        for x in between(-range, range, count) {
            let wide = f64::from(x);
            assert!((sin(x) - true_sin(wide)).abs() <= 2f64.powf(bound), "sin {x}");
            let expected = true_sin(wide + std::f64::consts::FRAC_PI_2);
            assert!((cos(x) - expected).abs() <= 2f64.powf(bound), "cos {x}");
        }
    }
}

#[test]
fn hyperbolic_tangents() {
    let (tanh, tanh_f16, tanh_bf16) = (unary("tanh.approx.f32"), bitwise("tanh.approx.f16"), bitwise("tanh.approx.bf16"));
    for x in between(-12.0, 12.0, 30_000).chain(all_magnitudes()) {
        let expected = true_tanh(f64::from(x));
        assert!((tanh(x) - expected).abs() <= 2f64.powi(-11) * expected.abs(), "tanh {x}");
    }
    for bits in 0..=u16::MAX {
        let x = f16::from_bits(bits);
        if x.is_finite() {
            let found = f16::from_bits(tanh_f16(u64::from(bits)) as u16).to_f64();
            assert!((found - true_tanh(x.to_f64())).abs() <= 2f64.powf(-10.987), "tanh {x}");
        }
        let x = bf16::from_bits(bits);
        if x.is_finite() {
            let found = bf16::from_bits(tanh_bf16(u64::from(bits)) as u16).to_f64();
            assert!((found - true_tanh(x.to_f64())).abs() <= 2f64.powi(-8), "tanh {x}");
        }
    }
}

#[test]
fn roots_and_reciprocals() {
    let (sqrt, rsqrt, rcp) = (unary("sqrt.approx.f32"), unary("rsqrt.approx.f32"), unary("rcp.approx.f32"));
    for x in all_magnitudes() {
        let wide = f64::from(x);
        let close = |found: f64, of: f64, bound: f64| (found / of - 1.0).abs() <= bound;
        // Checked by their definition: the square of a root, the product with a reciprocal. A small error
        // doubles in a square.
        let root = sqrt(x);
        assert!(close(root * root, wide, 2.0 * 2f64.powi(-23)), "root of {x}");
        let inverse = rsqrt(x);
        assert!(close(inverse * inverse * wide, 1.0, 2.0 * 2f64.powf(-22.9)), "inverse root of {x}");
        let reciprocal = rcp(x);
        if (2f64.powi(-126)..=2f64.powi(126)).contains(&wide) {
            assert!(close(reciprocal * wide, 1.0, 2f64.powi(-23)), "1 / {x}");
        }
    }
}

#[test]
fn quotients() {
    let quotient = |text: &str, a: u32, b: u32| run(&op(text), &[u64::from(a), u64::from(b)]) as u32;
    // Divisors above 2^126.
    assert_eq!(quotient("div.approx.f32", 0x3f80_0000, 0x7e80_0000), 0x0080_0000);
    assert_eq!(quotient("div.approx.f32", 0x3f80_0000, 0xfe80_0001), 0x8000_0000);
    assert_eq!(quotient("div.approx.f32", 0x7f80_0000, 0x7f00_0000), 0x7fff_ffff);
    assert_eq!(quotient("div.full.f32", 0x3f80_0000, 0x7f00_0000), 0x0040_0000);
    assert_eq!(quotient("div.approx.ftz.f32", 0x0000_0001, 0x0000_0001), 0x7fff_ffff, "0 / 0");
    for a in all_magnitudes().step_by(97) {
        for b in all_magnitudes().step_by(101).filter(|b| (2f32.powi(-126)..=2f32.powi(126)).contains(b)) {
            let expected = f64::from(a) / f64::from(b);
            if (2f64.powi(-126)..2f64.powi(127)).contains(&expected) {
                for text in ["div.approx.f32", "div.full.f32"] {
                    let found = f64::from(f32::from_bits(quotient(text, a.to_bits(), b.to_bits())));
                    assert!((found / expected - 1.0).abs() <= 2.0 * 2f64.powi(-23), "{a} / {b}");
                }
            }
        }
    }
}

#[test]
fn only_the_upper_word_of_f64() {
    let (rcp, rsqrt) = (bitwise("rcp.approx.ftz.f64"), bitwise("rsqrt.approx.ftz.f64"));
    assert_eq!(rcp(0x7ff0_0000_0000_0001), 0, "the lower word does not make a NaN");
    assert_eq!(rcp(0x7ff8_0000_0000_0000), 0x7fff_ffff_0000_0000);
    assert_eq!(rcp(0x800f_ffff_ffff_ffff), 0xfff0_0000_0000_0000);
    assert_eq!(rcp(0x7fe0_0000_0000_0000), 0, "a subnormal result is flushed");
    assert_eq!(rsqrt(0x800f_ffff_ffff_ffff), 0xfff0_0000_0000_0000);
    assert_eq!(rsqrt(0xbff0_0000_0000_0000), 0x7fff_ffff_0000_0000);
    for n in 1..5000 {
        let x = f64::from(n) * 0.37;
        for (found, expected) in [(rcp(x.to_bits()), 1.0 / x), (rsqrt(x.to_bits()), 1.0 / x.sqrt())] {
            assert_eq!(found & 0xffff_ffff, 0);
            assert!((f64::from_bits(found) / expected - 1.0).abs() <= 2f64.powi(-19), "{x}");
        }
    }
    assert_eq!(run(&op("rsqrt.approx.f64"), &[0x4010_0000_0000_0000]), 0x3fe0_0000_0000_0000);
    assert_eq!(run(&op("rsqrt.approx.f64"), &[0x7ff0_0000_0000_0001]), 0x7ff8_0000_0000_0001);
}

#[test]
fn corners_are_those_of_the_tables() {
    let (zero, infinity, nan, one) = (0x0000_0000, 0x7f80_0000, 0x7fff_ffff, 0x3f80_0000);
    let minus = |bits: u64| bits | 0x8000_0000;
    let table = [
        ("rcp.approx.f32", [infinity, minus(infinity), zero, minus(zero)]),
        ("sqrt.approx.f32", [zero, minus(zero), infinity, nan]),
        ("rsqrt.approx.f32", [infinity, minus(infinity), zero, nan]),
        ("sin.approx.f32", [zero, minus(zero), nan, nan]),
        ("cos.approx.f32", [one, one, nan, nan]),
        ("lg2.approx.f32", [minus(infinity), minus(infinity), infinity, nan]),
        ("ex2.approx.f32", [one, one, infinity, zero]),
        ("tanh.approx.f32", [zero, minus(zero), one, minus(one)]),
    ];
    for (text, expected) in table {
        let found = [zero, minus(zero), infinity, minus(infinity)].map(|bits| run(&op(text), &[bits]));
        assert_eq!(found, expected, "{text}");
        assert_eq!(run(&op(text), &[0xffc0_0001]), nan, "{text}");
    }
}
