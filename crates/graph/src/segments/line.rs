//! Segments of a line: where they start and end, and sorting within them. Operations within segments are in
//! [`operations`](crate::operations).
//!
//! Segments follow each other. Where each begins and ends is said by *offsets*, one more than there are segments: segment `k` has the places from
//! `offsets[k]` up to but not including `offsets[k + 1]`, and none where both are equal. The first segment starts where the line does, and the last one ends
//! where it ends, whatever the first and the last offset say. Offsets never decrease; for others results are anything, but nothing outside is touched. The work of all these is spread over elements, not over segments, so that it does not matter how long they are; only segments that are known to be short are sorted one by one.

use super::{Segments, Total};
use crate::amount::Amount;
use crate::check::same_context;
use crate::error::Result;
use crate::known::known;
use crate::node::{Expression, Node, State};
use crate::op::{Elementwise, Op};
use broadloom_scalar::{BinaryOp, Builder, Element, Function, Literal, Type, Value};
use broadloom_skeleton::SortKey;

/// Totals below this are counted in 32 bits.
pub(super) const NARROW: usize = i32::MAX as usize;

/// An integer as a `u32` of at most [`NARROW`]; negative ones become 0.
fn narrowed(f: &Builder, value: Value, ty: Type) -> Value {
    match (ty.element().is_signed(), ty.bytes()) {
        (_, 8) => f.convert(f.min(f.max(f.convert(value, Type::I64), 0i64), NARROW as i64), Type::U32),
        (true, _) => f.convert(f.max(f.convert(value, Type::I32), 0i32), Type::U32),
        (false, _) => f.min(f.convert(value, Type::U32), NARROW as u32),
    }
}

/// A length as a number that is not negative; of 32 bits and at most [`NARROW`] if `narrow`.
pub(super) fn held_length(ty: Type, narrow: bool) -> Result<Function> {
    known(if narrow { "narrow length" } else { "wide length" }, ty, || {
        let f = Builder::function("length");
        let length = f.parameter("length", ty);
        let held = if narrow { narrowed(&f, length, ty) } else { f.max(f.convert(length, Type::I64), 0i64) };
        Ok(f.finish_function(&[held])?)
    })
}

/// An offset held to a line: by its place, the last place and the length of the line. It has 32 bits if `narrow`, as all places and lengths must: vectors
/// hold twice as many.
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

/// Returns whether a function has the parameters and the code of another. A text gives functions of one name others.
fn has_code(function: &Function, other: &Function) -> bool {
    let code = |function: &Function| function.to_string().split_once('(').map(|(_, code)| code.to_owned());
    code(function) == code(other)
}

impl Node {
    /// Offsets: a line of integers, one at least.
    pub(super) fn checked_offsets(&self, operation: &str) -> Result<()> {
        self.check_line(operation)?;
        self.check_integers(operation)?;
        if self.bound().is_empty() {
            return Err(self.refused(operation, "there is one more offset than there are segments"));
        }
        Ok(())
    }

    /// Offsets of the segments of a line of so many elements, `i64`: these, held to the line, the first 0 and the last its length.
    pub fn segment_offsets(&self, length: impl Into<Amount>) -> Result<Node> {
        self.checked_offsets("segments")?;
        let offsets = self.hosted()?;
        let last = super::number(self.context(), &offsets.bound().size().minus(&1.into()))?;
        let length = super::number(self.context(), &length.into())?;
        let places = offsets.position_like(0, Element::I64)?;
        Node::elementwise(Elementwise::Call(held_offset(self.ty(), false)?, 0), &[&places, &offsets, &last, &length])
    }

    /// These offsets held to a line of so many elements, where they are not already.
    pub(crate) fn held_to(&self, length: &Amount) -> Result<Node> {
        if self.holds_segments(length) { Ok(self.clone()) } else { self.segment_offsets(length.clone()) }
    }

    /// Returns whether these are offsets that are held to a line of so many elements: those that [`Node::segment_offsets`] gives, those that
    /// segments made of lengths or of flags, or a text that says the same.
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
        // Segments of flags have the number of flags that are true, and at most this many.
        let is_last = from.is_number(last) || from.is_minimum(&|limit| limit.is_number(last));
        let is_held = |narrow: bool| held_offset(offsets.ty(), narrow).is_ok_and(|held| has_code(function, &held));
        places.counts() && is_last && end.is_number(length.get()) && is_held(self.ty() == Type::I32)
    }

    /// Returns whether the elements are positions along the first axis.
    fn counts(&self) -> bool {
        matches!(&*self.lock(), State::Pending(Expression { op: Op::Position(0), .. }))
    }

    /// Returns whether the elements are one number that was given.
    fn is_number(&self, number: i64) -> bool {
        match &*self.lock() {
            State::Pending(Expression { op: Op::Fill(value), .. }) => {
                value.symbol().is_none() && value.lanes().as_slice() == [Literal::from(number)]
            }
            State::Pending(_) | State::Ready(_) | State::Symbolic(_) => false,
        }
    }

    /// Returns whether the elements are one number for all, the lesser of two of which the second is as asked for.
    fn is_minimum(&self, limit: &dyn Fn(&Node) -> bool) -> bool {
        match &*self.lock() {
            State::Pending(Expression { op: Op::Elementwise(Elementwise::Binary(BinaryOp::Min)), inputs }) => limit(&inputs[1]),
            State::Pending(Expression { op: Op::View(_), inputs }) => {
                inputs[0].bound().rank() == 0 && inputs[0].is_minimum(limit)
            }
            State::Pending(_) | State::Ready(_) | State::Symbolic(_) => false,
        }
    }

    /// Lines of one length, in the order of keys within each segment, equal ones keeping their order. Keys come first in the result. NaN is behind all
    /// numbers.
    ///
    /// Where it is known that no segment is longer than `longest` and that is not too long, each segment is sorted where it lies; of longer ones, if there are any, only the
    /// start is sorted then, and the rest is anything. Otherwise all is sorted at once, by the number of the segment first.
    pub fn segmented_sort(
        offsets: &Node,
        longest: Option<Amount>,
        keys: &[(&Node, SortKey)],
        values: &[&Node],
    ) -> Result<Vec<Node>> {
        offsets.checked_offsets("segmented sort")?;
        let Some((first, _)) = keys.first() else {
            return Err(offsets.refused("segmented sort", "there are no keys"));
        };
        same_context("segmented sort", &[offsets, first])?;
        first.check_line("segmented sort")?;
        let segments = Segments::from_offsets(offsets, Total::of(first))?;
        match longest {
            Some(longest) => segments.no_longer_than(longest).sort(keys, values),
            None => segments.sort(keys, values),
        }
    }
}
