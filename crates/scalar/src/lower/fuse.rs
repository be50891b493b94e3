//! Fusion: nodes that one instruction computes together.
//!
//! A product that is added becomes `mad`. A product of a value that was extended from 32 bits becomes
//! `mul.wide` or `mad.wide`. A minimum or maximum becomes `min.NaN` or `max.NaN` if a selection replaces it
//! by NaN for a NaN operand. Nodes without remaining uses are not computed. One walk from the last node to
//! the first decides this, so uses come before the nodes that they use.

use crate::body::Body;
use crate::id::Id;
use crate::op::{BinaryOp, CompareOp, Op};
use crate::schedule::Schedule;
use crate::types::{Element, Literal};

/// The instruction that computes a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FusedInstruction {
    /// `x * y + z` in the type of the node.
    Mad(Id, Id, Id),
    /// The upper half of `x * y`, plus `z`.
    MadHigh(Id, Id, Id),
    /// A 32-bit value times a literal in 64 bits.
    MulWide(Id, i64),
    /// A 32-bit value times a literal plus a 64-bit value.
    MadWide(Id, i64, Id),
    /// The minimum of two floats, or NaN if one of them is NaN.
    MinNan(Id, Id),
    /// The maximum of two floats, or NaN if one of them is NaN.
    MaxNan(Id, Id),
}

/// The fused instruction of each node, and a flag that is true if the node is computed at all.
pub(super) struct Fusion {
    pub(super) fused: Vec<Option<FusedInstruction>>,
    pub(super) needed: Vec<bool>,
}

/// Returns the factors of a product of a value extended from 32 bits and a literal of 32 bits.
fn wide(body: &Body, id: Id) -> Option<(Id, i64)> {
    let Op::Binary(BinaryOp::Mul, x, y) = body.node(id).op else { return None };
    if body.type_of(id).element().bits() != 64 {
        return None;
    }
    let Op::Convert(inner) = body.node(x).op else { return None };
    let from = body.type_of(inner).element();
    let factor = body.literal(y).and_then(Literal::as_i128)?;
    let fits = match from {
        Element::I8 | Element::I16 | Element::I32 => i32::try_from(factor).is_ok(),
        Element::U8 | Element::U16 | Element::U32 => u32::try_from(factor).is_ok(),
        Element::Bool | Element::I64 | Element::U64 | Element::F16 | Element::F32 | Element::F64 => false,
    };
    fits.then_some((inner, factor as i64))
}

/// Returns the value that a comparison with itself tests for NaN.
fn tested(body: &Body, id: Id) -> Option<Id> {
    match body.node(id).op {
        Op::Compare(CompareOp::Ne, x, y) if x == y => Some(x),
        _ => None,
    }
}

/// Returns the fused form of a selection between NaN and the minimum or maximum of two floats, if it
/// propagates NaN.
fn propagating(body: &Body, id: Id) -> Option<FusedInstruction> {
    let Op::Select(condition, nan, chosen) = body.node(id).op else { return None };
    let is_nan = body.literal(nan).is_some_and(|literal| literal.as_f64().is_some_and(f64::is_nan));
    if body.type_of(id) != Element::F32.into() || !is_nan {
        return None;
    }
    let Op::Binary(BinaryOp::Or, left, right) = body.node(condition).op else { return None };
    let both = (tested(body, left)?, tested(body, right)?);
    match body.node(chosen).op {
        Op::Binary(op @ (BinaryOp::Min | BinaryOp::Max), x, y) if both == (x, y) || both == (y, x) => {
            Some(if op == BinaryOp::Min { FusedInstruction::MinNan(x, y) } else { FusedInstruction::MaxNan(x, y) })
        }
        _ => None,
    }
}

impl Fusion {
    pub(super) fn of(body: &Body, schedule: &Schedule) -> Fusion {
        let mut uses = schedule.uses.clone();
        let count = body.nodes.len();
        let mut fusion = Fusion { fused: vec![None; count], needed: vec![true; count] };
        let block = |id: Id| schedule.place_of[id.index()].map(|place| place.0);
        for (id, node) in body.nodes().rev() {
            if !node.op.is_pure() {
                continue;
            }
            if uses[id.index()] == 0 {
                fusion.needed[id.index()] = false;
                if schedule.place_of[id.index()].is_some() {
                    node.op.each_operand(|operand| uses[operand.index()] = uses[operand.index()].saturating_sub(1));
                }
                continue;
            }
            if let Some(fused @ (FusedInstruction::MinNan(x, y) | FusedInstruction::MaxNan(x, y))) = propagating(body, id) {
                node.op.each_operand(|operand| uses[operand.index()] = uses[operand.index()].saturating_sub(1));
                uses[x.index()] += 1;
                uses[y.index()] += 1;
                fusion.fused[id.index()] = Some(fused);
                continue;
            }
            let element = node.ty.element();
            if !element.is_integer() || element.bits() < 32 {
                continue;
            }
            let fused = match node.op {
                Op::Binary(BinaryOp::Add, x, y) => [(x, y), (y, x)].into_iter().find_map(|(product, other)| {
                    if block(product) != block(id) {
                        return None;
                    }
                    if let Some((inner, factor)) = wide(body, product) {
                        return Some((FusedInstruction::MadWide(inner, factor, other), product));
                    }
                    match body.node(product).op {
                        Op::Binary(BinaryOp::Mul, a, b) if uses[product.index()] == 1 && product != other => {
                            Some((FusedInstruction::Mad(a, b, other), product))
                        }
                        Op::Binary(BinaryOp::MulHigh, a, b) if uses[product.index()] == 1 && product != other => {
                            Some((FusedInstruction::MadHigh(a, b, other), product))
                        }
                        _ => None,
                    }
                }),
                Op::Binary(BinaryOp::Mul, x, _) => {
                    wide(body, id).map(|(inner, factor)| (FusedInstruction::MulWide(inner, factor), x))
                }
                _ => None,
            };
            if let Some((fused, skipped)) = fused {
                uses[skipped.index()] -= 1;
                match fused {
                    FusedInstruction::Mad(a, b, _) | FusedInstruction::MadHigh(a, b, _) => {
                        uses[a.index()] += 1;
                        uses[b.index()] += 1;
                    }
                    FusedInstruction::MulWide(inner, _) | FusedInstruction::MadWide(inner, _, _) => uses[inner.index()] += 1,
                    FusedInstruction::MinNan(..) | FusedInstruction::MaxNan(..) => {}
                }
                fusion.fused[id.index()] = Some(fused);
            }
        }
        fusion
    }
}
