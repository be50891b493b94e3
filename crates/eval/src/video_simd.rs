//! SIMD video instructions (manual: "SIMD Video Instructions").
//!
//! Each lane, a halfword or a byte, takes its two sources from any lane of the pair of words `b` above `a`.
//! The lanes under the mask of the destination replace those of the third operand, or are summed onto it.

use super::arith::saturate;
use super::compare::{operator, relation};
use super::{number, truncate};
use crate::{Inputs, Operation};
use broadloom_ptx::{Modifier, Selector, Type};

/// Returns the lane of the pair of words that a lane of a source comes from; `first` is the first lane of the
/// source's own word.
fn picks(selector: Option<Selector>, first: u32, lane: u32) -> u32 {
    match selector {
        Some(Selector::Lanes(digits)) => u32::from(digits & 0x7fff) >> (4 * lane) & 0xf,
        Some(Selector::B0 | Selector::B1 | Selector::B2 | Selector::B3 | Selector::H0 | Selector::H1 | Selector::Mask(_))
        | None => first + lane,
    }
}

/// Returns whether a lane is written.
fn is_written(selector: Option<Selector>, lane: u32) -> bool {
    match selector {
        Some(Selector::B0 | Selector::H0) => lane == 0,
        Some(Selector::B1 | Selector::H1) => lane == 1,
        Some(Selector::B2) => lane == 2,
        Some(Selector::B3) => lane == 3,
        Some(Selector::Mask(mask)) => mask >> lane & 1 == 1,
        Some(Selector::Lanes(_)) | None => true,
    }
}

/// Runs an instruction of `LANES` lanes whose sources have the types `a` and `b` and whose lanes have the
/// sign of `result`.
fn each_lane<const LANES: u32>(
    op: &Operation,
    inputs: &Inputs,
    [a, b]: [Type; 2],
    signed: bool,
    apply: impl Fn(i128, i128) -> i128,
) -> u64 {
    let bits = 32 / LANES;
    let pair = truncate(inputs[1], 32) << 32 | truncate(inputs[0], 32);
    let source = |index: usize, ty: Type, lane: u32| {
        let lane = picks(op.from[index].selector, index as u32 * LANES, lane);
        number(ty.is_signed(), bits, pair >> (lane * bits))
    };
    let mut sum = inputs[2];
    let mut merged = truncate(inputs[2], 32);
    for lane in (0..LANES).filter(|lane| is_written(op.into.selector, *lane)) {
        let mut result = apply(source(0, a, lane), source(1, b, lane));
        if op.has(Modifier::Sat) {
            result = saturate(signed, bits, result);
        }
        let field = truncate(u64::MAX, bits) << (lane * bits);
        merged = (merged & !field) | ((result as u64) << (lane * bits) & field);
        sum = sum.wrapping_add(result as u64);
    }
    if op.has(Modifier::Add) { sum } else { merged }
}

/// Computes `vop.dtype.atype.btype`.
fn arithmetic<const LANES: u32>(op: &Operation, inputs: &Inputs, apply: impl Fn(i128, i128) -> i128) -> u64 {
    each_lane::<LANES>(op, inputs, [op.source_ty, op.third_ty], op.ty.is_signed(), apply)
}

pub(crate) fn vadd<const LANES: u32>(op: &Operation, inputs: &Inputs) -> u64 {
    arithmetic::<LANES>(op, inputs, |a, b| a + b)
}

pub(crate) fn vsub<const LANES: u32>(op: &Operation, inputs: &Inputs) -> u64 {
    arithmetic::<LANES>(op, inputs, |a, b| a - b)
}

/// Computes `vavrg`. Halves are rounded away from zero.
pub(crate) fn vavrg<const LANES: u32>(op: &Operation, inputs: &Inputs) -> u64 {
    arithmetic::<LANES>(op, inputs, |a, b| (a + b + i128::from(a + b >= 0)) >> 1)
}

pub(crate) fn vabsdiff<const LANES: u32>(op: &Operation, inputs: &Inputs) -> u64 {
    arithmetic::<LANES>(op, inputs, |a, b| (a - b).abs())
}

pub(crate) fn vmin<const LANES: u32>(op: &Operation, inputs: &Inputs) -> u64 {
    arithmetic::<LANES>(op, inputs, Ord::min)
}

pub(crate) fn vmax<const LANES: u32>(op: &Operation, inputs: &Inputs) -> u64 {
    arithmetic::<LANES>(op, inputs, Ord::max)
}

/// Computes `vset.atype.btype.cmp`: a lane is 1 if the comparison holds.
pub(crate) fn vset<const LANES: u32>(op: &Operation, inputs: &Inputs) -> u64 {
    let relations = operator(&op.modifiers);
    each_lane::<LANES>(op, inputs, [op.ty, op.source_ty], false, |a, b| i128::from(relation(a, b) & relations != 0))
}
