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
