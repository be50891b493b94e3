//! Segments of a line: where they start and end, and sorting within them. Operations within segments are in
//! [`operations`](crate::operations).
//!
//! Segments follow each other. Where each begins and ends is said by *offsets*, one more than there are segments: segment `k` has the places from
//! `offsets[k]` up to but not including `offsets[k + 1]`, and none where both are equal. The first segment starts where the line does, and the last one ends
//! where it ends, whatever the first and the last offset say. Offsets never decrease; for others results are anything, but nothing outside is touched. The work of all these is spread over elements, not over segments, so that it does not matter how long they are; only segments that are known to be short are sorted one by one.

use crate::build::same_context;
use crate::error::{Error, Result};
use crate::node::{Expression, Node, State};
use crate::op::{Combine, Elementwise, Op};
use crate::shape::Shape;
use broadloom_scalar::{Builder, Element, Function, Literal, Type};
use broadloom_skeleton::{SegmentedSort, SortKey};

/// An offset held to a line: by its place, the last place and the length of the line.
pub(super) fn held_offset(ty: Type) -> Result<Function> {
    let f = Builder::function("offset");
    let (place, offset) = (f.parameter("place", Type::I64), f.parameter("offset", ty));
    let (last, length) = (f.parameter("last", Type::I64), f.parameter("length", Type::I64));
    let held = f.max(f.min(f.convert(offset, Type::I64), length), 0i64);
    let held = f.select(f.ge(place, last), length, held);
    Ok(f.finish_function(&[f.select(f.eq(place, 0i64), 0i64, held)])?)
}

impl Node {
    /// Offsets: a line of integers, one at least.
    pub(super) fn checked_offsets(&self, operation: &str) -> Result<()> {
        self.line(operation)?;
        if !self.ty().is_scalar() || !self.ty().element().is_integer() {
            return Err(Error::Type { operation: operation.to_owned(), ty: self.ty() });
        }
        if self.shape().is_empty() {
            let reason = "there is one more offset than there are segments".to_owned();
            return Err(Error::Range { operation: operation.to_owned(), shape: self.shape().clone(), reason });
        }
        Ok(())
    }

    /// Offsets of the segments of a line of so many elements, `i64`: these, held to the line, the first 0 and the last its length.
    pub fn segment_offsets(&self, length: usize) -> Result<Node> {
        self.checked_offsets("segments")?;
        let function = held_offset(self.ty())?;
        let places = Node::position(self.context(), self.shape().clone(), 0, Element::I64)?;
        let inputs = [&places, self, &self.number(self.shape().count() - 1)?, &self.number(length)?];
        Node::elementwise(Elementwise::Call(function, 0), &inputs)
    }

    /// Returns whether these are offsets that [`Node::segment_offsets`] gave for a line of so many elements, or a text that says the same.
    pub(crate) fn holds_segments(&self, length: usize) -> bool {
        let state = self.state();
        let State::Pending(Expression { op: Op::Elementwise(Elementwise::Call(function, 0)), inputs }) = &state else {
            return false;
        };
        let [places, offsets, last, end] = &inputs[..] else { return false };
        let is_number = |node: &Node, number: usize| match &*node.lock() {
            State::Pending(Expression { op: Op::Fill(value), .. }) => {
                value.symbol().is_none() && value.lanes().as_slice() == [Literal::from(number as i64)]
            }
            State::Pending(_) | State::Ready(_) | State::Symbolic(_) => false,
        };
        let counts = |node: &Node| matches!(&*node.lock(), State::Pending(Expression { op: Op::Position(0), .. }));
        self.shape().rank() == 1
            && counts(places)
            && is_number(last, self.shape().count().wrapping_sub(1))
            && is_number(end, length)
            && held_offset(offsets.ty()).is_ok_and(|held| held.to_string() == function.to_string())
    }

    /// Whether a segment starts at each of so many places. This array has the offsets.
    pub fn segment_starts(&self, length: usize) -> Result<Node> {
        let offsets = self.segment_offsets(length)?;
        let none = Node::fill(self.context(), Shape::from(length), &[Literal::from(false)])?;
        let one = Node::fill(self.context(), Shape::from([]), &[Literal::from(true)])?;
        none.scatter(&[&offsets], &one, Some(Combine::Any))
    }

    /// The number of the segment of each of so many places, a `u32`, counted from 1 and with those that have no elements. This array has the offsets.
    pub fn segment_numbers(&self, length: usize) -> Result<Node> {
        self.segment_offsets(length)?.histogram(length)?.scan(Combine::Sum, 0, true)
    }

    /// Lines of one length, in the order of keys within each segment, equal ones keeping their order. Keys come first in the result. NaN is behind all
    /// numbers.
    ///
    /// Where it is known that no segment is longer than `longest` and that is not too long, each segment is sorted where it lies; of longer ones, if there are any, only the
    /// start is sorted then, and the rest is anything. Otherwise all is sorted at once, by the number of the segment first.
    pub fn segmented_sort(
        offsets: &Node,
        longest: Option<usize>,
        keys: &[(&Node, SortKey)],
        values: &[&Node],
    ) -> Result<Vec<Node>> {
        offsets.checked_offsets("segmented sort")?;
        let Some((first, _)) = keys.first() else {
            let reason = "there are no keys".to_owned();
            return Err(Error::Range { operation: "segmented sort".into(), shape: offsets.shape().clone(), reason });
        };
        same_context("segmented sort", &[offsets, first])?;
        first.line("segmented sort")?;
        let length = first.shape().count();
        let types: Vec<Type> = keys.iter().map(|(node, _)| node.ty()).collect();
        let machine = first.context().device().machine();
        let longest = longest.and_then(|longest| SegmentedSort::longest(machine, &types, !values.is_empty(), longest as u64));
        if let Some(longest) = longest.filter(|_| offsets.shape().count() > 1) {
            let offsets = if offsets.holds_segments(length) { offsets.clone() } else { offsets.segment_offsets(length)? };
            return Node::sorted(keys, values, Some((longest, &offsets)));
        }
        let numbers = offsets.segment_numbers(length)?;
        // Eight bits are a round.
        let bits = (usize::BITS - offsets.shape().count().leading_zeros()).next_multiple_of(8).min(32);
        let mut all = vec![(&numbers, SortKey { descending: false, bits: Some(bits) })];
        all.extend(keys);
        let mut sorted = Node::sort(&all, values)?;
        sorted.remove(0);
        Ok(sorted)
    }
}
