//! Comparison and selection (manual: "Comparison and Selection Instructions", "Half Precision Comparison
//! Instructions").
//!
//! Two values have one of four relations: less, equal, greater, or unordered (one of them is NaN). A
//! comparison operator is the set of relations under which it holds: `le` holds for less and equal, `leu`
//! also for unordered, `num` for all except unordered.

use super::{sign_extend, truncate};
use crate::{Inputs, ModifierSet, Operation, Pair};
use broadloom_ptx::{Modifier, Type, TypeKind};
use half::{bf16, f16};
use std::cmp::Ordering;

const LESS: u8 = 1;
const EQUAL: u8 = 2;
const GREATER: u8 = 4;
const UNORDERED: u8 = 8;

/// Operators and the relations under which they hold.
const OPERATORS: [(Modifier, u8); 18] = [
    (Modifier::Eq, EQUAL),
    (Modifier::Ne, LESS | GREATER),
    (Modifier::Lt, LESS),
    (Modifier::Le, LESS | EQUAL),
    (Modifier::Gt, GREATER),
    (Modifier::Ge, GREATER | EQUAL),
    (Modifier::Lo, LESS),
    (Modifier::Ls, LESS | EQUAL),
    (Modifier::Hi, GREATER),
    (Modifier::Hs, GREATER | EQUAL),
    (Modifier::Equ, EQUAL | UNORDERED),
    (Modifier::Neu, LESS | GREATER | UNORDERED),
    (Modifier::Ltu, LESS | UNORDERED),
    (Modifier::Leu, LESS | EQUAL | UNORDERED),
    (Modifier::Gtu, GREATER | UNORDERED),
    (Modifier::Geu, GREATER | EQUAL | UNORDERED),
    (Modifier::Num, LESS | EQUAL | GREATER),
    (Modifier::Nan, UNORDERED),
];

/// Returns the relations under which the operator among the modifiers holds.
pub(super) fn operator(modifiers: &ModifierSet) -> u8 {
    OPERATORS.iter().find(|(modifier, _)| modifiers.has(*modifier)).map_or(0, |(_, relations)| *relations)
}

/// Returns the relation of two ordered values.
pub(super) fn relation<T: Ord>(a: T, b: T) -> u8 {
    match a.cmp(&b) {
        Ordering::Less => LESS,
        Ordering::Equal => EQUAL,
        Ordering::Greater => GREATER,
    }
}

/// Returns the relation of two floating-point values.
fn float_relation(a: f64, b: f64) -> u8 {
    match a.partial_cmp(&b) {
        Some(Ordering::Less) => LESS,
        Some(Ordering::Equal) => EQUAL,
        Some(Ordering::Greater) => GREATER,
        None => UNORDERED,
    }
}

/// Converts a floating-point value of any width, with subnormals flushed for `.ftz`. Widening is exact.
fn float(ty: Type, ftz: bool, bits: u64) -> f64 {
    let (value, smallest_normal) = if matches!(ty, Type::F16 | Type::F16x2) {
        (f16::from_bits(bits as u16).to_f64(), f16::MIN_POSITIVE.to_f64())
    } else if matches!(ty, Type::Bf16 | Type::Bf16x2) {
        (bf16::from_bits(bits as u16).to_f64(), bf16::MIN_POSITIVE.to_f64())
    } else if matches!(ty, Type::F32) {
        (f64::from(f32::from_bits(bits as u32)), f64::from(f32::MIN_POSITIVE))
    } else {
        (f64::from_bits(bits), f64::MIN_POSITIVE)
    };
    if ftz && value.abs() < smallest_normal { 0.0 } else { value }
}

/// Returns the relation of the two operands, or of their lanes at bit `shift`.
fn relate(op: &Operation, inputs: &Inputs, shift: u32) -> u8 {
    let ty = op.source_ty;
    let (a, b) = (inputs[0] >> shift, inputs[1] >> shift);
    match ty.kind() {
        TypeKind::Signed => relation(sign_extend(a, ty.bits()), sign_extend(b, ty.bits())),
        TypeKind::Bits | TypeKind::Unsigned => relation(truncate(a, ty.bits()), truncate(b, ty.bits())),
        TypeKind::Packed if !is_float_pair(ty) => {
            let bits = lane_bits(ty);
            if ty.is_signed() {
                relation(sign_extend(a, bits), sign_extend(b, bits))
            } else {
                relation(truncate(a, bits), truncate(b, bits))
            }
        }
        TypeKind::Float | TypeKind::Packed | TypeKind::Predicate | TypeKind::Alternate | TypeKind::Opaque => {
            let ftz = op.has(Modifier::Ftz);
            float_relation(float(ty, ftz, a), float(ty, ftz, b))
        }
    }
}

fn is_float_pair(ty: Type) -> bool {
    matches!(ty, Type::F16x2 | Type::Bf16x2)
}

fn lane_bits(ty: Type) -> u32 {
    if matches!(ty, Type::U8x4 | Type::S8x4) { 8 } else { 16 }
}

/// Combines a comparison with the third operand by the BoolOp, if there is one.
fn combine(op: &Operation, result: bool, third: u64) -> bool {
    let third = third & 1 == 1;
    if op.has(Modifier::And) {
        result & third
    } else if op.has(Modifier::Or) {
        result | third
    } else if op.has(Modifier::Xor) {
        result ^ third
    } else {
        result
    }
}

/// Returns the implementation of `setp`, specialised for the operator among the modifiers.
pub(crate) fn setp(modifiers: &ModifierSet) -> Pair {
    const FOR: [Pair; 16] = [
        setp_if::<0>,
        setp_if::<1>,
        setp_if::<2>,
        setp_if::<3>,
        setp_if::<4>,
        setp_if::<5>,
        setp_if::<6>,
        setp_if::<7>,
        setp_if::<8>,
        setp_if::<9>,
        setp_if::<10>,
        setp_if::<11>,
        setp_if::<12>,
        setp_if::<13>,
        setp_if::<14>,
        setp_if::<15>,
    ];
    FOR[usize::from(operator(modifiers))]
}

/// Returns whether the operands have one of the relations, and whether they do not, each combined with the
/// third operand. For pairs of floats, returns the result of each lane.
fn setp_if<const RELATIONS: u8>(op: &Operation, inputs: &Inputs) -> [u64; 2] {
    let first = relate(op, inputs, 0) & RELATIONS != 0;
    let second = if is_float_pair(op.source_ty) { relate(op, inputs, 16) & RELATIONS != 0 } else { !first };
    [first, second].map(|result| u64::from(combine(op, result, inputs[2])))
}

/// Returns the value for true in a type: 1.0, or all ones.
fn truth(ty: Type) -> u64 {
    if matches!(ty, Type::F32) {
        u64::from(1_f32.to_bits())
    } else if matches!(ty, Type::F16 | Type::F16x2) {
        u64::from(f16::ONE.to_bits())
    } else if matches!(ty, Type::Bf16 | Type::Bf16x2) {
        u64::from(bf16::ONE.to_bits())
    } else {
        truncate(u64::MAX, ty.bits())
    }
}

pub(crate) fn set(op: &Operation, inputs: &Inputs) -> u64 {
    let relations = operator(&op.modifiers);
    let holds = |shift| combine(op, relate(op, inputs, shift) & relations != 0, inputs[2]);
    if op.source_ty.kind() != TypeKind::Packed {
        return if holds(0) { truth(op.ty) } else { 0 };
    }
    let bits = lane_bits(op.source_ty);
    let lane = truncate(truth(op.ty), bits);
    (0..32).step_by(bits as usize).map(|shift| if holds(shift) { lane << shift } else { 0 }).sum()
}

pub(crate) fn selp(_op: &Operation, inputs: &Inputs) -> u64 {
    if inputs[2] & 1 == 1 { inputs[0] } else { inputs[1] }
}

/// Computes `slct`. Minus zero, and with `.ftz` every negative subnormal, counts as zero; NaN is not at least
/// zero.
pub(crate) fn slct(op: &Operation, inputs: &Inputs) -> u64 {
    let first = if op.source_ty.is_float() {
        float(op.source_ty, op.has(Modifier::Ftz), inputs[2]) >= 0.0
    } else {
        sign_extend(inputs[2], 32) >= 0
    };
    if first { inputs[0] } else { inputs[1] }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{op, pairs};
    use super::*;

    fn run(op: &Operation, inputs: &Inputs) -> [u64; 2] {
        setp(&op.modifiers)(op, inputs)
    }

    fn compare(text: &str, a: u64, b: u64) -> bool {
        run(&op(text), &[a, b, 0, 0, 0, 0])[0] == 1
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
                let pair = run(&op(&format!("setp.{name}.f16x2")), &[h(x) << 16, h(y) << 16, 0, 0, 0, 0]);
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
                let found = run(&op(&format!("setp.eq.{name}.s32")), &[equal, 1, third, 0, 0, 0]);
                let at = |first: u64| table[(first * 2 + third) as usize];
                assert_eq!(found, [at(equal), at(1 - equal)], "{name} {equal} {third}");
                let found = set(&op(&format!("set.eq.{name}.u32.s32")), &[equal, 1, third, 0, 0, 0]);
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
            assert_eq!(set(&op(text), &[7, 7, 0, 0, 0, 0]), expected, "{text}");
            assert_eq!(set(&op(text), &[7, 8, 0, 0, 0, 0]), 0, "{text}");
        }
        let halves = [0x3c00_4000, 0x3c00_3c00, 0, 0, 0, 0];
        assert_eq!(set(&op("set.gt.f16x2.f16x2"), &halves), 0x0000_3c00);
        assert_eq!(set(&op("set.eq.u32.f16x2"), &halves), 0xffff_0000);
        assert_eq!(set(&op("set.ge.bf16x2.bf16x2"), &halves), 0x3f80_3f80);
        let bytes = [0x7f80_0001, 0x807f_0002, 0, 0, 0, 0];
        assert_eq!(set(&op("set.lt.s8x4"), &bytes), 0x00ff_00ff);
        assert_eq!(set(&op("set.lo.u8x4"), &bytes), 0xff00_00ff);
    }

    #[test]
    fn selection_looks_at_its_third_operand() {
        assert_eq!(selp(&op("selp.b32"), &[3, 4, 1, 0, 0, 0]), 3);
        assert_eq!(selp(&op("selp.b32"), &[3, 4, 0, 0, 0, 0]), 4);
        let slct = |text: &str, third: u32| slct(&op(text), &[3, 4, u64::from(third), 0, 0, 0]);
        assert_eq!([0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff].map(|third| slct("slct.u64.s32", third)), [3, 3, 3, 4, 4]);
        let floats = [0, 0x8000_0000, 0x3f80_0000, 0xbf80_0000, 0x7fc0_0000, 0xffc0_0000, 0x8000_0001, 0xff80_0000];
        assert_eq!(floats.map(|third| slct("slct.b32.f32", third)), [3, 3, 3, 4, 4, 4, 4, 4]);
        assert_eq!(floats.map(|third| slct("slct.ftz.b32.f32", third)), [3, 3, 3, 4, 4, 4, 3, 4]);
    }
}
