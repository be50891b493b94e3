//! Slices, rows and padding along the first axis, also for arrays whose length only the device knows. Nothing
//! here waits.

use crate::expr::amount::Amount;
use crate::expr::elementwise::Elementwise;
use crate::expr::error::{Error, Result};
use crate::expr::length::whole_parts;
use crate::expr::node::{Length, Node};
use crate::expr::op::zeros;
use crate::expr::shape::Shape;
use crate::expr::view::AxisMap;
use broadloom_scalar::{BinaryOp, Element};
use broadloom_skeleton::Boundary;
use smallvec::SmallVec;

impl Node {
    fn has_axes(&self, operation: &str) -> Result<()> {
        match self.bound().rank() {
            0 => Err(Error::Axis { operation: operation.to_owned(), axis: 0, shape: self.bound().clone() }),
            _ => Ok(()),
        }
    }

    /// Creates a view of the first axis from an offset, with a stride. If a length is given, it is the extent
    /// of the first axis.
    fn along_first(&self, operation: &str, offset: Amount, stride: i64, extent: Amount, length: Option<&Length>) -> Result<Node> {
        let shape = self.bound().with(0, extent);
        let mut maps: SmallVec<[AxisMap; 4]> = (0..shape.rank()).map(AxisMap::same).collect();
        maps[0].stride = stride;
        let mut offsets: SmallVec<[Amount; 4]> = SmallVec::from_elem(Amount::from(0), shape.rank());
        offsets[0] = offset;
        let length = length.filter(|_| !shape.is_empty());
        self.affine_in(operation, &maps, Some(&offsets), shape, None, length)
    }

    /// Returns the elements along the first axis from `start` up to but not including `end`, both clamped to
    /// the axis. Does not wait.
    pub fn first_part(&self, start: usize, end: Option<usize>) -> Result<Node> {
        self.has_axes("first_part")?;
        let extent = self.bound().amount(0);
        let low = Amount::from(start).min(&extent);
        let high = end.map_or(extent.clone(), |end| Amount::from(end).min(&extent)).max(&low);
        let extent = high.minus(&low);
        let length = self.length().map(|length| length.part(start, end, extent.clone())).transpose()?;
        self.along_first("first_part", low, 1, extent, length.as_ref())
    }

    /// Returns the elements along the first axis without the last `count`. Does not wait.
    pub fn without_last(&self, count: usize) -> Result<Node> {
        self.has_axes("without_last")?;
        let extent = self.bound().amount(0).minus(&count.into()).max(&0.into());
        // The length is the same as that of the array without its first `count` elements.
        let length = self.length().map(|length| length.part(count, None, extent.clone())).transpose()?;
        self.along_first("without_last", 0.into(), 1, extent, length.as_ref())
    }

    /// Returns the last `count` elements along the first axis, or all if there are fewer. Does not wait.
    pub fn last(&self, count: usize) -> Result<Node> {
        self.has_axes("last")?;
        if self.length().is_none() {
            let extent = Amount::from(count).min(&self.bound().amount(0));
            return self.along_first("last", self.bound().amount(0).minus(&extent), 1, extent, None);
        }
        // Only the device knows the position of the first of them.
        let part = self.first_part(0, Some(count))?;
        let skipped = Node::elementwise(Elementwise::Binary(BinaryOp::Sub), &[&self.first_extent()?, &part.first_extent()?])?;
        part.moved_into(self, &skipped, BinaryOp::Add, &Boundary::Clamp)
    }

    /// Returns every `step`-th element along the first axis, beginning with the first. Does not wait.
    pub fn every(&self, step: usize) -> Result<Node> {
        self.has_axes("every")?;
        if step == 0 {
            return Err(self.refused("every", "a step of 0"));
        }
        let length = self.length().map(|length| length.divided(step, true)).transpose()?;
        let stride = i64::try_from(step).unwrap_or(i64::MAX);
        self.along_first("every", 0.into(), stride, whole_parts(&self.bound().amount(0), step, true), length.as_ref())
    }

    /// Returns all elements in rows of a width. A last row that is not full is left out. Does not wait.
    pub fn rows_of(&self, width: usize) -> Result<Node> {
        if width == 0 {
            return Err(self.refused("rows_of", "rows of no elements"));
        }
        let line = self.flattened()?;
        let rows = whole_parts(&line.bound().amount(0), width, false);
        let count = line.length().map(|length| length.divided(width, false)).transpose()?;
        let length = match &count {
            Some(count) => count.times(&width.into())?,
            None => None,
        };
        let whole = line.along_first("rows_of", 0.into(), 1, rows.times(&width.into()), length.as_ref())?;
        whole.reshaped(Shape::from_amounts(&[rows, width.into()]), whole.length().and(count.as_ref()))
    }

    /// Pads each axis before and after. Does not wait.
    pub fn enlarged(&self, operation: &str, sides: &[(usize, usize)], outside: &Boundary) -> Result<Node> {
        if sides.len() != self.bound().rank() || sides.iter().any(|(before, behind)| *before >= 1 << 40 || *behind >= 1 << 40) {
            return Err(self.refused(operation, format!("{} axes are enlarged, or one by 2^40 or more", sides.len())));
        }
        let larger = |((before, behind), extent): (&(usize, usize), Amount)| extent.plus(&(*before + *behind).into());
        let extents: SmallVec<[Amount; 4]> = sides.iter().zip(self.bound().amounts()).map(larger).collect();
        let map = |(axis, (before, _)): (usize, &(usize, usize))| AxisMap { offset: -(*before as i64), ..AxisMap::same(axis) };
        let maps: SmallVec<[AxisMap; 4]> = sides.iter().enumerate().map(map).collect();
        if self.length().is_none() {
            return self.affine_in(operation, &maps, None, Shape::from_amounts(&extents), Some(outside), None);
        }
        let offsets: SmallVec<[Amount; 4]> = maps[1..].iter().map(|map| map.offset.into()).collect();
        let row = Shape::from_amounts(&extents[1..]);
        let rows = self.affine_rows(operation, &maps[1..], &offsets, &row, Some(outside))?;
        let (before, behind) = sides[0];
        let value = outside.constant().cloned().unwrap_or_else(|| zeros(self.ty()));
        let side = |count: usize| {
            let extents: SmallVec<[Amount; 4]> = std::iter::once(count.into()).chain(row.amounts()).collect();
            Node::fill(self.context(), Shape::from_amounts(&extents), &value)
        };
        let all = Node::concatenate(0, &[&side(before)?, &rows, &side(behind)?])?;
        if outside.constant().is_some() || (before, behind) == (0, 0) {
            return Ok(all);
        }
        let first = Node::counting(self.context(), &before.into());
        all.moved_into(&rows, &first, BinaryOp::Sub, outside)
    }

    /// Gathers the elements of another array at the positions of this one, with a number added to or
    /// subtracted from the first index.
    fn moved_into(&self, other: &Node, by: &Node, op: BinaryOp, outside: &Boundary) -> Result<Node> {
        let places = (0..self.bound().rank()).map(|axis| self.position_like(axis, Element::I64));
        let mut places = places.collect::<Result<SmallVec<[Node; 4]>>>()?;
        places[0] = Node::elementwise(Elementwise::Binary(op), &[&places[0], by])?;
        other.gather(&places.iter().collect::<SmallVec<[&Node; 4]>>(), outside)
    }
}
