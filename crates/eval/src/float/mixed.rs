//! `add`, `sub`, `mul`, `fma` whose operands have other types than the result (manual: "Mixed Precision
//! Floating-Point Instructions"): operands are used exactly, and the result is rounded once.

use super::{Lanes, Mode, lanes};
use crate::soft::{Number, Rounding};
use crate::{Inputs, Operation};
use broadloom_ptx::Type;

/// Returns the value of a lane of a register of some type.
fn number(mode: Mode, ty: Type, register: u64, lane: u32) -> Number {
    match Lanes::of(ty) {
        Some(lanes) => Number::of(lanes.format, mode.operand(lanes.format, lanes.get(register, lane))),
        None => Number::of_ue8m0((register >> (lane * 8)) as u8),
    }
}

fn each<const N: usize>(
    op: &Operation,
    inputs: &Inputs,
    types: [Type; N],
    compute: impl Fn([Number; N], Rounding) -> Number,
) -> u64 {
    let (lanes, mode) = (lanes(op), Mode::of(op));
    lanes.make(|lane| {
        let operands = std::array::from_fn(|index| number(mode, types[index], inputs[index], lane));
        mode.result(lanes.format, compute(operands, mode.rounding))
    })
}

pub(super) fn add(op: &Operation, inputs: &Inputs) -> u64 {
    each(op, inputs, [op.source_ty, op.third_ty], |[a, c], rounding| a.add(c, rounding))
}

pub(super) fn sub(op: &Operation, inputs: &Inputs) -> u64 {
    each(op, inputs, [op.source_ty, op.third_ty], |[a, c], rounding| a.add(c.negated(), rounding))
}

pub(super) fn mul(op: &Operation, inputs: &Inputs) -> u64 {
    each(op, inputs, [op.source_ty, op.third_ty], |[a, c], _| a.mul(c))
}

pub(super) fn fma(op: &Operation, inputs: &Inputs) -> u64 {
    // `fma.f32.f16` names the type of both factors once.
    let second = if op.ty == Type::F32 { op.source_ty } else { op.third_ty };
    each(op, inputs, [op.source_ty, second, op.ty], |[a, b, c], rounding| a.fma(b, c, rounding))
}
