//! Offsets, which define the segments of a line. A line is a one-dimensional array. Operations within
//! segments are in [`operations`](crate::expr::operations).
//!
//! Segments follow each other. *Offsets*, one more than there are segments, define them: segment `k` has the
//! indices from `offsets[k]` up to but not including `offsets[k + 1]`, and is empty if both are equal. The
//! first segment always starts at the start of the line, and the last one ends at its end, whatever the first
//! and the last offset are. Offsets never decrease; for others the results are arbitrary, but no access is
//! outside the line. The work is spread over elements, not over segments, so the lengths of segments do not
//! matter. Only segments that are known to be short are sorted one by one.

use super::elements::{integers, number};
use super::measure::{NARROW, SegmentCount};
use crate::expr::amount::Amount;
use crate::expr::elementwise::Elementwise;
use crate::expr::error::Result;
use crate::expr::known::known;
use crate::expr::node::{Expression, Node, State};
use crate::expr::op::{Op, zeros};
use crate::expr::shape::Shape;
use crate::expr::view::AxisMap;
use broadloom_scalar::{BinaryOp, Builder, Element, Function, Literal, Type, Value};
use broadloom_skeleton::{Boundary, Combine};

/// Converts an integer to a `u32` of at most [`NARROW`]; negative ones become 0.
fn narrowed(f: &Builder, value: Value, ty: Type) -> Value {
    match (ty.element().is_signed(), ty.bytes()) {
        (_, 8) => f.convert(f.min(f.max(f.convert(value, Type::I64), 0i64), NARROW as i64), Type::U32),
        (true, _) => f.convert(f.max(f.convert(value, Type::I32), 0i32), Type::U32),
        (false, _) => f.min(f.convert(value, Type::U32), NARROW as u32),
    }
}

/// Returns the function that clamps a length to 0 and above; to 32 bits and at most [`NARROW`] if `narrow`.
pub(super) fn held_length(ty: Type, narrow: bool) -> Result<Function> {
    known(if narrow { "narrow length" } else { "wide length" }, ty, || {
        let f = Builder::function("length");
        let length = f.parameter("length", ty);
        let held = if narrow { narrowed(&f, length, ty) } else { f.max(f.convert(length, Type::I64), 0i64) };
        Ok(f.finish_function(&[held])?)
    })
}

/// Returns the function that clamps an offset to a line. Its arguments are the index of the offset, the
/// offset, the last index and the length of the line. With `narrow` it uses 32 bits, which all
/// indices and lengths must fit; vectors hold twice as many 32-bit values.
pub(super) fn held_offset(ty: Type, narrow: bool) -> Result<Function> {
    known(if narrow { "narrow offset" } else { "offset" }, ty, || {
        let f = Builder::function("offset");
        let (place, offset) = (f.parameter("place", Type::I64), f.parameter("offset", ty));
        let (last, length) = (f.parameter("last", Type::I64), f.parameter("length", Type::I64));
        if narrow {
            let [place, last, length] = [place, last, length].map(|value| f.convert(value, Type::U32));
            let held = f.select(f.ge(place, last), length, f.min(narrowed(&f, offset, ty), length));
            return Ok(f.finish_function(&[f.convert(f.select(f.eq(place, 0u32), 0u32, held), Type::I32)])?);
        }
        let held = f.max(f.min(f.convert(offset, Type::I64), length), 0i64);
        let held = f.select(f.ge(place, last), length, held);
        Ok(f.finish_function(&[f.select(f.eq(place, 0i64), 0i64, held)])?)
    })
}

/// Pads a line to a shape with zeros after its length.
pub(super) fn padded(line: &Node, shape: Shape) -> Result<Node> {
    let zero = Boundary::Constant(zeros(line.ty()));
    match line.length() {
        None => line.affine("segments", &[AxisMap::same(0)], shape, Some(&zero)),
        Some(_) => line.gather(&[&Node::position(line.context(), shape, 0, Element::I64)?], &zero),
    }
}

/// Returns the saturating sum of two numbers, with [`NARROW`] as the maximum.
pub(super) fn narrow_sum() -> Result<Combine> {
    let function = known("ends", Type::U32, || {
        let f = Builder::function("ends");
        let (a, b) = (f.parameter("a", Type::U32), f.parameter("b", Type::U32));
        Ok(f.finish_function(&[f.min(f.add(a, b), NARROW as u32)])?)
    })?;
    Ok(Combine::commutative(function, &[Literal::zero(Element::U32)])?)
}

/// Clamps offsets to the line: the first becomes 0, those from the index `from` on become the number of
/// elements. They have 32 bits if `narrow`.
pub(super) fn bounds(offsets: &Node, from: &Node, total: &SegmentCount, narrow: bool) -> Result<Node> {
    let places = Node::position(offsets.context(), offsets.bound().clone(), 0, Element::I64)?;
    let function = held_offset(offsets.ty(), narrow)?;
    Node::elementwise(Elementwise::Call(function, 0), &[&places, offsets, from, &total.count])
}

/// Returns whether two functions have equal parameters and code. A text renames functions that share a name.
fn has_code(function: &Function, other: &Function) -> bool {
    let code = |function: &Function| function.to_string().split_once('(').map(|(_, code)| code.to_owned());
    code(function) == code(other)
}

impl Node {
    /// Checks offsets: a line of integers with at least one element.
    pub(super) fn checked_offsets(&self, operation: &str) -> Result<()> {
        integers(operation, self)?;
        if self.bound().is_empty() {
            return Err(self.refused(operation, "there is one more offset than there are segments"));
        }
        Ok(())
    }

    /// Returns these offsets clamped to a line of `length` elements, as `i64`: the first becomes 0, the last
    /// the length.
    pub fn segment_offsets(&self, length: impl Into<Amount>) -> Result<Node> {
        self.checked_offsets("segments")?;
        let offsets = self.hosted()?;
        let last = number(self.context(), &offsets.bound().size().minus(&1.into()))?;
        let length = number(self.context(), &length.into())?;
        let places = offsets.position_like(0, Element::I64)?;
        Node::elementwise(Elementwise::Call(held_offset(self.ty(), false)?, 0), &[&places, &offsets, &last, &length])
    }

    /// Returns these offsets clamped to a line of `length` elements; unchanged if they are already.
    pub(crate) fn held_to(&self, length: &Amount) -> Result<Node> {
        if self.holds_segments(length) { Ok(self.clone()) } else { self.segment_offsets(length.clone()) }
    }

    /// Returns whether these offsets are already clamped to a line of `length` elements: the result of
    /// [`Node::segment_offsets`], offsets made from lengths or flags, or an equivalent text.
    pub(super) fn holds_segments(&self, length: &Amount) -> bool {
        let is_line = |node: &Node| node.bound().rank() == 1 && node.length().is_none() && node.bound().size().is_known();
        if !is_line(self) || !length.is_known() {
            return false;
        }
        let last = self.bound().size().get() - 1;
        let state = self.lock();
        let State::Pending(Expression { op: Op::Elementwise(Elementwise::Call(function, 0)), inputs }) = &*state else {
            return false;
        };
        let [places, offsets, from, end] = &inputs[..] else { return false };
        // The number of segments made from flags is the number of true flags, clamped to this limit.
        let is_last = from.is_number(last) || from.is_minimum(&|limit| limit.is_number(last));
        let is_held = |narrow: bool| held_offset(offsets.ty(), narrow).is_ok_and(|held| has_code(function, &held));
        places.counts() && is_last && end.is_number(length.get()) && is_held(self.ty() == Type::I32)
    }

    /// Returns whether the elements are positions along the first axis.
    fn counts(&self) -> bool {
        matches!(&*self.lock(), State::Pending(Expression { op: Op::Position(0), .. }))
    }

    /// Returns whether the node is a fill with this number.
    fn is_number(&self, number: i64) -> bool {
        match &*self.lock() {
            State::Pending(Expression { op: Op::Fill(value), .. }) => {
                value.symbol().is_none() && value.lanes().as_slice() == [Literal::from(number)]
            }
            State::Pending(_) | State::Ready(_) | State::Symbolic(_) => false,
        }
    }

    /// Returns whether the node is the minimum of two scalars, the second of which satisfies `limit`; it may
    /// be broadcast.
    fn is_minimum(&self, limit: &dyn Fn(&Node) -> bool) -> bool {
        match &*self.lock() {
            State::Pending(Expression { op: Op::Elementwise(Elementwise::Binary(BinaryOp::Min)), inputs }) => limit(&inputs[1]),
            State::Pending(Expression { op: Op::View(_), inputs }) => {
                inputs[0].bound().rank() == 0 && inputs[0].is_minimum(limit)
            }
            State::Pending(_) | State::Ready(_) | State::Symbolic(_) => false,
        }
    }
}
