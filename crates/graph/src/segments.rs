//! Nodes that combine and sort within segments of a line.
//!
//! Segments follow each other. Where each begins and ends is said by *offsets*, one more than there are segments: segment `k` has the places from
//! `offsets[k]` up to but not including `offsets[k + 1]`, and none where both are equal. Offsets never decrease; for others results are anything, but
//! nothing outside is touched. The work of all these is spread over elements, not over segments, so that it does not matter how long they are.

use crate::build::same_context;
use crate::error::{Error, Result};
use crate::node::Node;
use crate::op::{Combine, Elementwise, Op};
use crate::shape::Shape;
use crate::view::{AxisMap, Boundary};
use broadloom_scalar::{Builder, Lanes, Literal, Type};
use broadloom_skeleton::SortKey;
use smallvec::smallvec;

impl Node {
    /// Elements along an axis combined with themselves and all before them, from the last place on at which another array of the same shape is true.
    pub fn segmented_scan(&self, starts: &Node, combine: Combine, axis: usize) -> Result<Node> {
        let operation = || format!("segmented {} scan", combine.name());
        let context = same_context(&operation(), &[starts, self])?;
        let axes = self.checked_axes(&operation(), &[axis])?;
        if starts.ty() != Type::BOOL {
            return Err(Error::Types { operation: operation(), left: Type::BOOL, right: starts.ty() });
        }
        if !combine.takes(self.ty()) {
            return Err(Error::Type { operation: operation(), ty: self.ty() });
        }
        if starts.shape() != self.shape() {
            return Err(Error::Shapes { operation: operation(), left: starts.shape().clone(), right: self.shape().clone() });
        }
        let inputs = smallvec![starts.clone(), self.clone()];
        Ok(Node::pending(context, self.ty(), self.shape().clone(), Op::SegmentedScan(combine, axes[0]), inputs))
    }

    /// Offsets: a line of integers, one at least.
    fn checked_offsets(&self, operation: &str) -> Result<()> {
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

    /// Whether a segment starts, or the last one ends, at each of so many places. This array has the offsets.
    pub fn segment_starts(&self, length: usize) -> Result<Node> {
        self.checked_offsets("segment_starts")?;
        let none = Node::fill(self.context(), Shape::from(length), &[Literal::from(false)])?;
        let one = Node::fill(self.context(), Shape::from([]), &[Literal::from(true)])?;
        none.scatter(&[self], &one, Some(Combine::Any))
    }

    /// How many offsets are not behind each of so many places, a `u32`: the number of its segment, counted from 1. This array has the offsets.
    pub fn segment_numbers(&self, length: usize) -> Result<Node> {
        self.checked_offsets("segment_numbers")?;
        self.histogram(length)?.scan(Combine::Sum, 0, true)
    }

    /// The elements of each segment of a line combined; of none, the combination's identity. `starts` are those of the offsets.
    pub fn segmented_reduce(&self, offsets: &Node, starts: &Node, combine: Combine) -> Result<Node> {
        let operation = || format!("segmented {}", combine.name());
        self.line(&operation())?;
        offsets.checked_offsets(&operation())?;
        let context = same_context(&operation(), &[self, offsets, starts])?;
        if !combine.takes(self.ty()) {
            return Err(Error::Type { operation: operation(), ty: self.ty() });
        }
        let (length, segments) = (self.shape().count(), Shape::from(offsets.shape().count() - 1));
        let identity = vec![combine.identity(self.ty().element()); self.ty().lanes()];
        if length == 0 || segments.is_empty() {
            return Node::fill(context, segments, &identity);
        }
        let sums = self.segmented_scan(starts, combine, 0).map_err(|error| match error {
            Error::Shapes { left, right, .. } => Error::Shapes { operation: operation(), left, right },
            other => other,
        })?;
        let bound = |offset: i64| {
            let map = AxisMap { offset, ..AxisMap::same(0) };
            offsets.affine("segments", &[map], segments.clone(), None)
        };
        // The last place of a segment, or -1.
        let f = Builder::function("last");
        let (from, to) = (f.parameter("from", offsets.ty()), f.parameter("to", offsets.ty()));
        let length_in = f.parameter("length", Type::I64);
        let (from, to) = (f.convert(from, Type::I64), f.min(f.convert(to, Type::I64), length_in));
        let function = f.finish_function(&[f.select(f.gt(to, from), f.sub(to, 1i64), -1i64)])?;
        let inputs = [bound(0)?, bound(1)?, self.number(length)?];
        let last = Node::elementwise(Elementwise::Call(function, 0), &inputs.iter().collect::<Vec<&Node>>())?;
        sums.gather(&[&last], &Boundary::Constant(Lanes::from_vec(identity)))
    }

    /// Lines of one length, in the order of keys within each segment, equal ones keeping their order. Keys come first in the result. NaN is behind all
    /// numbers.
    pub fn segmented_sort(offsets: &Node, keys: &[(&Node, SortKey)], values: &[&Node]) -> Result<Vec<Node>> {
        offsets.checked_offsets("segmented sort")?;
        let Some((first, _)) = keys.first() else {
            let reason = "there are no keys".to_owned();
            return Err(Error::Range { operation: "segmented sort".into(), shape: offsets.shape().clone(), reason });
        };
        same_context("segmented sort", &[offsets, first])?;
        first.line("segmented sort")?;
        let numbers = offsets.segment_numbers(first.shape().count())?;
        // Eight bits are a round.
        let bits = (usize::BITS - offsets.shape().count().leading_zeros()).next_multiple_of(8).min(32);
        let mut all = vec![(&numbers, SortKey { descending: false, bits: Some(bits) })];
        all.extend(keys);
        let mut sorted = Node::sort(&all, values)?;
        sorted.remove(0);
        Ok(sorted)
    }
}
