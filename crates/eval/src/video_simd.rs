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

#[cfg(test)]
mod tests {
    use super::super::testing::{op, pairs};
    use super::*;
    use crate::operation::Part;

    fn op_with(text: &str, into: Option<Selector>, from: [Option<Selector>; 2]) -> Operation {
        let mut op = op(text);
        op.into.selector = into;
        op.from = [from[0], from[1], None].map(|selector| Part { selector, negated: false });
        op
    }

    fn inputs(a: u64, b: u64, c: u64) -> Inputs {
        [a & 0xffff_ffff, b & 0xffff_ffff, c & 0xffff_ffff, 0, 0, 0]
    }

    #[test]
    fn four_bytes() {
        for (a, b) in pairs() {
            let c = a ^ (b << 7);
            let (x, y) = ((a as u32).to_le_bytes(), (b as u32).to_le_bytes());
            let bytes = |lane: fn(u8, u8) -> u8| u32::from_le_bytes(std::array::from_fn(|i| lane(x[i], y[i])));
            let run = |function: fn(&Operation, &Inputs) -> u64, text: &str| {
                function(&op_with(text, None, [None, None]), &inputs(a, b, c)) as u32
            };
            assert_eq!(run(vadd::<4>, "vadd4.u32.u32.u32"), bytes(u8::wrapping_add));
            assert_eq!(run(vadd::<4>, "vadd4.u32.u32.u32.sat"), bytes(u8::saturating_add));
            assert_eq!(run(vadd::<4>, "vadd4.s32.s32.s32.sat"), bytes(|x, y| (x as i8).saturating_add(y as i8) as u8));
            assert_eq!(run(vsub::<4>, "vsub4.u32.u32.u32.sat"), bytes(u8::saturating_sub));
            assert_eq!(run(vabsdiff::<4>, "vabsdiff4.u32.u32.u32"), bytes(u8::abs_diff));
            assert_eq!(run(vavrg::<4>, "vavrg4.u32.u32.u32"), bytes(|x, y| (u16::from(x) + u16::from(y)).div_ceil(2) as u8));
            assert_eq!(run(vmin::<4>, "vmin4.s32.s32.s32"), bytes(|x, y| (x as i8).min(y as i8) as u8));
            assert_eq!(run(vmax::<4>, "vmax4.u32.u32.u32"), bytes(u8::max));
            assert_eq!(run(vset::<4>, "vset4.u32.s32.gt"), bytes(|x, y| u8::from(i16::from(x) > i16::from(y as i8))));
            let sum = (0..4).map(|i| u32::from(x[i].abs_diff(y[i]))).sum::<u32>();
            assert_eq!(run(vabsdiff::<4>, "vabsdiff4.u32.u32.u32.add"), sum.wrapping_add(c as u32));
        }
    }

    #[test]
    fn averages_round_away_from_zero() {
        let run = |a: i16, b: i16| {
            let op = op_with("vavrg2.s32.s32.s32", None, [None, None]);
            vavrg::<2>(&op, &inputs(a as u64, b as u64, 0)) as i16
        };
        assert_eq!(run(1, 2), 2);
        assert_eq!(run(-1, -2), -2);
        assert_eq!(run(-3, 2), -1);
        assert_eq!(run(i16::MAX, i16::MAX), i16::MAX);
        assert_eq!(run(i16::MIN, i16::MIN), i16::MIN);
    }

    #[test]
    fn lanes_are_selected_and_masked() {
        let (a, b, c) = (0x4433_2211, 0x8877_6655, 0xaabb_ccdd);
        let zero = Some(Selector::Lanes(0));
        let pick = |digits: u16, into: Option<Selector>| {
            let op = op_with("vsub4.u32.u32.u32", into, [Some(Selector::Lanes(digits)), zero]);
            vsub::<4>(&op, &inputs(a, b, c))
        };
        assert_eq!(pick(0x7531, None), 0x7755_3311);
        assert_eq!(pick(0x0123, Some(Selector::B2)), 0xaa11_ccdd);
        assert_eq!(pick(0x0246, Some(Selector::Mask(0b1001))), 0x00bb_cc66);
        assert_eq!(pick(0x3210, Some(Selector::Lanes(0x3210))), 0x3322_1100);
        let op =
            op_with("vadd2.u32.u32.u32.add", Some(Selector::H1), [Some(Selector::Lanes(0x8002)), Some(Selector::Lanes(0x8033))]);
        assert_eq!(vadd::<2>(&op, &inputs(a, b, c)), 0xaabb_ccdd + 0x2211 + 0x8877);
    }
}
