//! Every operation, tested against its definition: a result is right if no other number of the format
//! satisfies its rounding. The comparison uses integers of arbitrary length, which share nothing with the
//! code under test.

use broadloom_eval::soft::{Exact, Flush, Format, Number, Overflow, Rounding, integral, round, to_integer};
use broadloom_random::Random;
use std::cmp::Ordering;

/// ± magnitude · 2^exponent, the magnitude in words of 32 bits, the lowest first.
#[derive(Clone, Debug)]
struct Dyadic {
    negative: bool,
    words: Vec<u32>,
    exponent: i32,
}

impl Dyadic {
    fn new(negative: bool, magnitude: u64, exponent: i32) -> Self {
        Dyadic { negative, words: vec![magnitude as u32, (magnitude >> 32) as u32], exponent }
    }

    fn shifted(&self, exponent: i32) -> Vec<u32> {
        let shift = (self.exponent - exponent) as usize;
        let mut words = vec![0; shift / 32];
        let mut carry = 0u64;
        for word in self.words.iter().chain(&[0]) {
            let wide = u64::from(*word) << (shift % 32) | carry;
            words.push(wide as u32);
            carry = wide >> 32;
        }
        words
    }

    fn aligned(&self, other: &Dyadic) -> (Vec<u32>, Vec<u32>, i32) {
        let exponent = self.exponent.min(other.exponent);
        let (mut a, mut b) = (self.shifted(exponent), other.shifted(exponent));
        let length = a.len().max(b.len()) + 1;
        a.resize(length, 0);
        b.resize(length, 0);
        (a, b, exponent)
    }

    fn cmp_magnitude(&self, other: &Dyadic) -> Ordering {
        let (a, b, _) = self.aligned(other);
        a.iter().rev().cmp(b.iter().rev())
    }

    fn mul(&self, other: &Dyadic) -> Dyadic {
        let mut words = vec![0u32; self.words.len() + other.words.len() + 1];
        for (i, a) in self.words.iter().enumerate() {
            let mut carry = 0u64;
            for (j, b) in other.words.iter().chain(&[0]).enumerate() {
                let sum = u64::from(words[i + j]) + u64::from(*a) * u64::from(*b) + carry;
                words[i + j] = sum as u32;
                carry = sum >> 32;
            }
        }
        Dyadic { negative: self.negative != other.negative, words, exponent: self.exponent + other.exponent }
    }

    fn add(&self, other: &Dyadic) -> Dyadic {
        let (mut a, mut b, exponent) = self.aligned(other);
        let mut negative = self.negative;
        let subtract = self.negative != other.negative;
        if subtract && a.iter().rev().cmp(b.iter().rev()) == Ordering::Less {
            std::mem::swap(&mut a, &mut b);
            negative = other.negative;
        }
        let mut carry = i64::from(subtract);
        for (a, b) in a.iter_mut().zip(&b) {
            let b = if subtract { !*b } else { *b };
            let sum = u64::from(*a) + u64::from(b) + carry as u64;
            *a = sum as u32;
            carry = (sum >> 32) as i64;
        }
        Dyadic { negative, words: a, exponent }
    }

    fn is_zero(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }
}

/// Returns the value of an encoding without its sign; infinity stands for the next power of two.
fn value(format: Format, magnitude: u64) -> Dyadic {
    let fraction = magnitude & ((1 << format.fraction_bits()) - 1);
    let exponent = (magnitude >> format.fraction_bits()) as i32;
    let scale = -((1 << (format.exponent_bits() - 1)) - 1) - format.fraction_bits() as i32;
    match exponent {
        0 => Dyadic::new(false, fraction, 1 + scale),
        _ => Dyadic::new(false, fraction | 1 << format.fraction_bits(), exponent + scale),
    }
}

fn middle(format: Format, magnitude: u64) -> Dyadic {
    let mut sum = value(format, magnitude).add(&value(format, magnitude + 1));
    sum.exponent -= 1;
    sum
}

/// Returns whether `result` is the rounded value, given only its sign and its comparison with other values.
fn is_rounded(format: Format, rounding: Rounding, result: u64, negative: bool, against: impl Fn(&Dyadic) -> Ordering) -> bool {
    let magnitude = result & format.magnitude_mask();
    if format.is_negative(result) != negative || magnitude > format.infinity() {
        return false;
    }
    let toward_zero = || {
        against(&value(format, magnitude)) != Ordering::Less
            && (magnitude == format.largest() || against(&value(format, magnitude + 1)) == Ordering::Less)
            && magnitude != format.infinity()
    };
    let away = || {
        (magnitude == format.infinity() || against(&value(format, magnitude)) != Ordering::Greater)
            && (magnitude == 0 || against(&value(format, magnitude - 1)) == Ordering::Greater)
    };
    let even = magnitude & 1 == 0;
    match rounding {
        Rounding::Zero => toward_zero(),
        Rounding::Down => {
            if negative {
                away()
            } else {
                toward_zero()
            }
        }
        Rounding::Up => {
            if negative {
                toward_zero()
            } else {
                away()
            }
        }
        Rounding::Nearest | Rounding::NearestAway => {
            let ties_away = rounding == Rounding::NearestAway;
            let above = magnitude == format.infinity()
                || match against(&middle(format, magnitude)) {
                    Ordering::Less => true,
                    Ordering::Equal => !ties_away && even,
                    Ordering::Greater => false,
                };
            let below = magnitude == 0
                || match against(&middle(format, magnitude - 1)) {
                    Ordering::Less => false,
                    Ordering::Equal => ties_away || even,
                    Ordering::Greater => true,
                };
            above && below
        }
        Rounding::Random { .. } => false,
    }
}

const ROUNDINGS: [Rounding; 5] = [Rounding::Nearest, Rounding::NearestAway, Rounding::Zero, Rounding::Down, Rounding::Up];

/// Returns finite numbers of a format: corners, and pseudo-random ones, half of them near one.
fn numbers(format: Format, count: usize) -> Vec<u64> {
    let (one, least, largest) = (format.one(), format.least_normal(), format.largest());
    let mut list = vec![0, 1, 2, least / 2, least - 1, least, least + 1, one - 1, one, one + 1, one + least / 2, one + least];
    list.extend([2 * least - 1, largest - 1, largest, one + 3 * least - 1]);
    let mut random = Random::new(2);
    for index in 0..count {
        let bits = random.bits() & format.magnitude_mask();
        let near = one - 4 * least + bits % (8 * least);
        list.push(if index % 2 == 0 { near } else { bits.min(largest) });
    }
    let negative: Vec<u64> = list.iter().map(|bits| bits | format.sign_bit()).collect();
    list.extend(negative);
    list
}

fn signed_value(format: Format, bits: u64) -> Dyadic {
    Dyadic { negative: format.is_negative(bits), ..value(format, bits & format.magnitude_mask()) }
}

fn bits(number: Number, format: Format, rounding: Rounding) -> u64 {
    number.to_bits(format, rounding, Overflow::Ieee, Flush::Keep)
}

fn check_sum(format: Format, rounding: Rounding, exact: &Dyadic, result: u64, what: &str) {
    if exact.is_zero() {
        assert_eq!(result & format.magnitude_mask(), 0, "{what}");
        return;
    }
    assert!(is_rounded(format, rounding, result, exact.negative, |other| exact.cmp_magnitude(other)), "{what} = {result:x}");
}

#[test]
fn sums_products_and_fused_are_rounded_right() {
    for format in [Format::F16, Format::BF16, Format::F32, Format::F64] {
        let list = numbers(format, 12);
        for rounding in ROUNDINGS {
            for (index, &a) in list.iter().enumerate() {
                for &b in &list {
                    let (x, y) = (Number::of(format, a), Number::of(format, b));
                    let (p, q) = (signed_value(format, a), signed_value(format, b));
                    let what = |name: &str| format!("{name} {a:x} {b:x} {format:?} {rounding:?}");
                    check_sum(format, rounding, &p.add(&q), bits(x.add(y, rounding), format, rounding), &what("add"));
                    let product = p.mul(&q);
                    let result = bits(x.mul(y), format, rounding);
                    assert_eq!(format.is_negative(result), p.negative != q.negative, "{}", what("mul"));
                    check_sum(format, rounding, &product, result, &what("mul"));
                    let c = list[(index * 7 + b as usize) % list.len()];
                    let sum = product.add(&signed_value(format, c));
                    let result = bits(x.fma(y, Number::of(format, c), rounding), format, rounding);
                    check_sum(format, rounding, &sum, result, &format!("{} + {c:x}", what("fma")));
                }
            }
        }
    }
}

#[test]
fn quotients_and_roots_are_rounded_right() {
    for format in [Format::F16, Format::BF16, Format::F32, Format::F64] {
        let list = numbers(format, 12);
        for rounding in ROUNDINGS {
            for &a in &list {
                let p = signed_value(format, a);
                for &b in list.iter().filter(|b| **b & format.magnitude_mask() != 0) {
                    let q = signed_value(format, b);
                    let result = bits(Number::of(format, a).div(Number::of(format, b)), format, rounding);
                    let right = is_rounded(format, rounding, result, p.negative != q.negative, |r| p.cmp_magnitude(&r.mul(&q)));
                    assert!(right, "{a:x} / {b:x} = {result:x}, {format:?} {rounding:?}");
                }
                if !p.negative {
                    let result = bits(Number::of(format, a).sqrt(), format, rounding);
                    let right = is_rounded(format, rounding, result, false, |r| p.cmp_magnitude(&r.mul(r)));
                    assert!(right, "root of {a:x} = {result:x}, {format:?} {rounding:?}");
                }
            }
        }
    }
}

#[test]
fn conversions_between_formats_are_rounded_right() {
    let formats = [Format::F16, Format::BF16, Format::F32, Format::F64, Format::TF32, Format::E5M2];
    for from in formats {
        for to in formats {
            for rounding in ROUNDINGS {
                for bits_in in numbers(from, 200) {
                    let exact = signed_value(from, bits_in);
                    let result = bits(Number::of(from, bits_in), to, rounding);
                    check_sum(to, rounding, &exact, result, &format!("{bits_in:x} {from:?} to {to:?} {rounding:?}"));
                }
            }
        }
    }
}

#[test]
fn integers_are_rounded_right() {
    let half = |numerator: i128| Exact::integer(numerator).scaled(-1);
    let cases =
        [(5, [2, 3, 2, 2, 3]), (3, [2, 2, 1, 1, 2]), (1, [0, 1, 0, 0, 1]), (-1, [0, -1, 0, -1, 0]), (-5, [-2, -3, -2, -3, -2])];
    for (numerator, expected) in cases {
        for (rounding, expected) in ROUNDINGS.into_iter().zip(expected) {
            assert_eq!(to_integer(half(numerator), rounding, -100, 100), expected, "{numerator}/2 {rounding:?}");
        }
    }
    for rounding in ROUNDINGS {
        assert_eq!(to_integer(Exact::new(true, 1000, 1), rounding, -128, 127), -128);
        assert_eq!(to_integer(Exact::new(false, 63, 1), rounding, 0, (1 << 64) - 1), 1 << 63);
        assert_eq!(to_integer(Exact::new(false, 64, 1), rounding, 0, (1 << 64) - 1), (1 << 64) - 1);
    }
    assert_eq!(to_integer(Exact::new(false, -1074, 1), Rounding::Up, 0, 9), 1);
    assert!(integral(Exact::new(true, -5, 1), Rounding::Zero).negative, "a zero keeps its sign");
}

#[test]
fn zeros_have_the_sign_of_the_standard() {
    let zero = |negative| Number::Finite(Exact::new(negative, 0, 0));
    let one = |negative| Number::Finite(Exact::new(negative, 0, 1));
    for rounding in ROUNDINGS {
        let down = rounding == Rounding::Down;
        assert_eq!(zero(true).add(zero(true), rounding), zero(true));
        assert_eq!(zero(false).add(zero(false), rounding), zero(false));
        assert_eq!(zero(false).add(zero(true), rounding), zero(down));
        assert_eq!(one(true).add(one(false), rounding), zero(down));
    }
    assert_eq!(zero(true).sqrt(), zero(true));
    assert_eq!(zero(true).mul(one(true)), zero(false));
}

#[test]
fn flushing_looks_at_the_value_rounded_without_a_least_exponent() {
    let flushed = |exact, rounding| round(exact, Format::F32, rounding, Overflow::Ieee, Flush::Zero);
    // (1 - 2^-24) · 2^-126 is representable below the smallest normal number with unbounded exponents; (1 -
    // 2^-26) · 2^-126 is not.
    let below = Exact::new(false, -150, (1 << 24) - 1);
    let nearly = Exact::new(false, -152, (1 << 26) - 1);
    assert_eq!(flushed(below, Rounding::Nearest), 0);
    assert_eq!(flushed(below, Rounding::Up), 0);
    assert_eq!(flushed(nearly, Rounding::Nearest), 0x0080_0000);
    assert_eq!(flushed(nearly, Rounding::Up), 0x0080_0000);
    assert_eq!(flushed(nearly, Rounding::Zero), 0);
    assert_eq!(flushed(nearly.negated(), Rounding::Zero), 0x8000_0000);
    assert_eq!(round(below, Format::F32, Rounding::Nearest, Overflow::Ieee, Flush::Keep), 0x0080_0000);
}

#[test]
fn random_bits_decide_by_their_carry() {
    // 1 + 3/8192 of the last place of f16.
    let value = Exact::new(false, -23, (1 << 23) + 3);
    let rounded = |bits| round(value, Format::F16, Rounding::Random { bits, count: 13 }, Overflow::Ieee, Flush::Keep);
    assert_eq!(rounded(0), 0x3c00);
    assert_eq!(rounded(8188), 0x3c00);
    assert_eq!(rounded(8189), 0x3c01);
    assert_eq!(rounded(8191), 0x3c01);
}

#[test]
fn formats_without_infinity() {
    let huge = Number::Finite(Exact::new(true, 100, 1));
    assert_eq!(huge.to_bits(Format::E4M3, Rounding::Nearest, Overflow::Largest, Flush::Keep), 0xfe);
    assert_eq!(huge.to_bits(Format::E4M3, Rounding::Nearest, Overflow::Ieee, Flush::Keep), 0x7f);
    assert_eq!(huge.to_bits(Format::E2M1, Rounding::Nearest, Overflow::Largest, Flush::Keep), 0xf);
    assert_eq!(Number::Nan.to_bits(Format::E2M3, Rounding::Nearest, Overflow::Largest, Flush::Keep), 0x1f);
    assert_eq!(Number::of(Format::E4M3, 0x7e), Number::Finite(Exact::new(false, 5, 14)), "448 is the largest");
    assert_eq!(Number::of(Format::UE5M3, 0xfe), Number::Finite(Exact::new(false, 13, 14)), "114688 is the largest");
}
