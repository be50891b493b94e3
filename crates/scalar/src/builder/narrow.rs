//! Narrowing of 64-bit index arithmetic whose values fit into 32 bits.
//!
//! If an operand was extended from 32 bits, and ranges show that all operands and the result fit, the
//! operation moves inside of the extension. In this way a chain of index arithmetic shrinks from its leaves
//! on. One extension remains at its end, where an address takes it for free.

use super::{Builder, Value};
use crate::op::{BinaryOp, CompareOp, Op};
use crate::types::{Element, Literal, Type};

fn within(element: Element, range: (i128, i128)) -> bool {
    element.range().is_some_and(|(least, most)| least <= range.0 && range.1 <= most)
}

/// Returns the value that a 64-bit value was extended from, in this type. Returns `None` if it was not
/// extended or does not fit.
fn origin(b: &Builder, value: Value, to: Element) -> Option<Value> {
    if !within(to, b.range(value)) {
        return None;
    }
    match b.op(value)? {
        Op::Literal(literal) => Some(b.literal(Literal::from_i128(to, literal.as_i128()?))),
        Op::Convert(inner) => {
            let inner = b.wrap(inner);
            let from = b.type_of(inner).element();
            (from.is_integer() && from.bits() <= 32).then(|| b.convert(inner, to))
        }
        Op::Assume(inner, low, high) => {
            let inner = origin(b, b.wrap(inner), to)?;
            Some(b.assume(inner, low, high))
        }
        _ => None,
    }
}

/// Returns two values in a 32-bit type. At least one of them was extended from 32 bits. The other one is
/// truncated if its range fits.
fn pair(b: &Builder, x: Value, y: Value, to: Element) -> Option<(Value, Value)> {
    let was_extended = |value: Value| matches!(b.op(value), Some(Op::Convert(_) | Op::Assume(..)));
    match (origin(b, x, to), origin(b, y, to)) {
        (Some(x), Some(y)) => Some((x, y)),
        (Some(narrow), None) if was_extended(x) && within(to, b.range(y)) => Some((narrow, b.convert(y, to))),
        (None, Some(narrow)) if was_extended(y) && within(to, b.range(x)) => Some((b.convert(x, to), narrow)),
        _ => None,
    }
}

/// Returns the operation in 32 bits, extended.
pub(super) fn binary(b: &Builder, op: BinaryOp, x: Value, y: Value, element: Element) -> Option<Value> {
    if element.bits() != 64 {
        return None;
    }
    let exact = |a: (i128, i128), c: (i128, i128)| -> Option<(i128, i128)> {
        let all = |op: fn(i128, i128) -> Option<i128>| -> Option<(i128, i128)> {
            let corners = [op(a.0, c.0)?, op(a.0, c.1)?, op(a.1, c.0)?, op(a.1, c.1)?];
            Some((*corners.iter().min()?, *corners.iter().max()?))
        };
        match op {
            BinaryOp::Add => all(i128::checked_add),
            BinaryOp::Sub => all(i128::checked_sub),
            BinaryOp::Mul => all(i128::checked_mul),
            // Not further from zero than an operand, except for the least value divided by -1, which the
            // ranges below exclude.
            BinaryOp::Div | BinaryOp::Rem if a.0 >= 0 && c.0 >= 0 => Some((0, a.1)),
            BinaryOp::Min | BinaryOp::Max => Some((a.0.min(c.0), a.1.max(c.1))),
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor if a.0 >= 0 && c.0 >= 0 => Some((0, 0)),
            BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::MulHigh
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::AddSaturating
            | BinaryOp::SubSaturating
            | BinaryOp::CopySign
            | BinaryOp::DivApprox => None,
        }
    };
    if op == BinaryOp::Shr {
        // The amount already has 32 bits, and the shifted value only shrinks.
        return [Element::I32, Element::U32].into_iter().find_map(|to| {
            let x = origin(b, x, to)?;
            Some(b.convert(b.shr(x, y), element))
        });
    }
    let result = exact(b.range(x), b.range(y))?;
    [Element::I32, Element::U32].into_iter().filter(|to| within(*to, result)).find_map(|to| {
        let (x, y) = pair(b, x, y, to)?;
        Some(b.convert(b.binary(op, x, y), element))
    })
}

/// Returns the comparison in 32 bits.
pub(super) fn compare(b: &Builder, op: CompareOp, x: Value, y: Value, element: Element) -> Option<Value> {
    if element.bits() != 64 {
        return None;
    }
    let (x, y) = [Element::I32, Element::U32].into_iter().find_map(|to| pair(b, x, y, to))?;
    Some(b.compare(op, x, y))
}

/// Returns the bounds of a loop in 32 bits, if all values of its counter fit, including the one after the
/// last.
pub(crate) fn narrow_bounds(b: &Builder, start: Value, end: Value, step: Value) -> Option<[Value; 3]> {
    let element = b.type_of(start).element();
    if element.bits() != 64 {
        return None;
    }
    let (start_range, end_range, step_range) = (b.range(start), b.range(end), b.range(step));
    if step_range.0 <= 0 {
        return None;
    }
    [Element::I32, Element::U32].into_iter().find_map(|to| {
        let after = end_range.1.checked_add(step_range.1)?;
        let fits = within(to, start_range) && within(to, end_range) && within(to, step_range) && within(to, (0, after.max(0)));
        fits.then(|| [start, end, step].map(|value| origin(b, value, to).unwrap_or_else(|| b.convert(value, Type::of(to)))))
    })
}
