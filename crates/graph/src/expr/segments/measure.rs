//! Numbers of segments and of elements.

use super::elements::{binary, number};
use crate::expr::amount::Amount;
use crate::expr::elementwise::Elementwise;
use crate::expr::error::{Error, Result};
use crate::expr::node::{Context, Length, Node};
use crate::expr::shape::Shape;
use broadloom_scalar::{BinaryOp, Element, Literal};

/// Totals below this use 32-bit counts.
pub(super) const NARROW: usize = i32::MAX as usize;

/// Number of elements of all segments.
#[derive(Clone, Debug)]
pub enum Total {
    /// Number known to the host.
    Host(usize),
    /// Number known to the host that may depend on the extents of a function's inputs.
    Amount(Amount),
    /// Number that only the device knows.
    Device(Length),
    /// Sum of the lengths, computed by the device, with this upper bound.
    Within(usize),
    /// Sum of the lengths. The host waits for it once, when the descriptor is made.
    Unknown,
}

impl Total {
    /// Returns the number of elements of a line. Does not wait.
    pub fn of(line: &Node) -> Total {
        match line.length() {
            Some(length) => Total::Device(length.clone()),
            None => Total::Amount(line.bound().size()),
        }
    }
}

/// Number of segments or elements.
#[derive(Clone, Debug)]
pub(super) struct SegmentCount {
    /// Upper bound; the number itself if there is no length.
    pub(super) bound: Amount,
    pub(super) length: Option<Length>,
    /// The number as an `i64` without axes.
    pub(super) count: Node,
}

impl SegmentCount {
    pub(super) fn host(context: &Context, bound: impl Into<Amount>) -> Result<SegmentCount> {
        let bound = bound.into();
        let count = number(context, &bound)?;
        Ok(SegmentCount { bound, length: None, count })
    }

    pub(super) fn device(length: &Length) -> Result<SegmentCount> {
        let count = Node::elementwise(Elementwise::Convert(Element::I64), &[length.count()])?;
        Ok(SegmentCount { bound: length.amount().clone(), length: Some(length.clone()), count })
    }

    /// Returns the number of elements of a line.
    pub(super) fn of(line: &Node) -> Result<SegmentCount> {
        match line.length() {
            Some(length) => SegmentCount::device(length),
            None => SegmentCount::host(line.context(), line.bound().size()),
        }
    }

    /// Returns a total on the host or on the device. `sum` makes the sum of the lengths if it is needed.
    pub(super) fn of_total(context: &Context, total: Total, sum: impl FnOnce() -> Result<Node>) -> Result<SegmentCount> {
        match total {
            Total::Host(total) => SegmentCount::host(context, total),
            Total::Amount(total) => SegmentCount::host(context, total),
            Total::Device(length) => SegmentCount::device(&length),
            Total::Within(bound) => SegmentCount::device(&Length::new(&sum()?, bound)?),
            Total::Unknown => SegmentCount::host(context, read_number(&sum()?)?),
        }
    }

    /// Returns the shape of a line with room for the bound.
    pub(super) fn shape(&self) -> Shape {
        Shape::from_amounts(std::slice::from_ref(&self.bound))
    }

    /// Returns the shape of a line with room for one more than the bound.
    pub(super) fn one_more(&self) -> Shape {
        Shape::from_amounts(&[self.bound.plus(&1.into())])
    }

    /// Returns whether the bound is zero.
    pub(super) fn is_none(&self) -> bool {
        self.bound.equals(&0.into())
    }

    /// Returns whether 32-bit indices suffice for the bound.
    pub(super) fn is_narrow(&self) -> bool {
        !Amount::from(NARROW).is_less(&self.bound)
    }

    /// Returns the bound as a number. During tracing, the trace becomes valid for this bound only.
    pub(super) fn fixed(&self) -> usize {
        usize::try_from(self.bound.get()).unwrap_or(0)
    }

    /// Reads the number to the host; waits for a length.
    pub(super) fn read(&self) -> Result<usize> {
        self.length.as_ref().map_or_else(|| Ok(self.fixed()), Length::read)
    }

    /// Returns whether both numbers are equal. Waits if that is not known.
    pub(super) fn equals(&self, other: &SegmentCount) -> Result<bool> {
        match (&self.length, &other.length) {
            (None, None) => Ok(self.bound.equals(&other.bound)),
            (Some(own), Some(theirs)) if own.is_same(theirs) => Ok(true),
            _ => Ok(self.read()? == other.read()?),
        }
    }

    /// Replaces a length by its number if the host has learned it.
    pub(super) fn learned(&self, context: &Context) -> Result<SegmentCount> {
        match self.length.as_ref().and_then(Length::known_amount) {
            Some(known) => SegmentCount::host(context, known),
            None => Ok(self.clone()),
        }
    }

    /// Returns the first elements of a line, up to the number.
    pub(super) fn first_of(&self, line: &Node) -> Result<Node> {
        line.first_elements(self.length.as_ref(), self.bound.clone())
    }

    /// Shortens a line with room for the bound to the number.
    pub(super) fn cut(&self, line: Node) -> Result<Node> {
        match &self.length {
            // A pattern without other users takes the length itself, so its result needs no copy.
            Some(length) if line.is_own_pattern() => Ok(line.with_length(Some(length.clone()))),
            Some(length) => line.shortened(length),
            None => Ok(line),
        }
    }

    /// Returns the indices of a line with this number of elements.
    pub(super) fn places(&self, element: Element) -> Result<Node> {
        Ok(Node::position(self.count.context(), self.shape(), 0, element)?.with_length(self.length.clone()))
    }

    /// Returns a line of this number of elements, all with one value.
    pub(super) fn filled(&self, value: &[Literal]) -> Result<Node> {
        Ok(Node::fill(self.count.context(), self.shape(), value)?.with_length(self.length.clone()))
    }

    /// Returns the sum of two numbers.
    pub(super) fn plus(&self, other: &SegmentCount) -> Result<SegmentCount> {
        let bound = self.bound.plus(&other.bound);
        if self.length.is_none() && other.length.is_none() {
            return SegmentCount::host(self.count.context(), bound);
        }
        SegmentCount::device(&Length::new(&binary(BinaryOp::Add, &self.count, &other.count)?, bound)?)
    }
}

/// Reads a number that the device has computed; waits for it.
fn read_number(number: &Node) -> Result<usize> {
    let number = number.read()?.lanes.first().and_then(|number| number.as_i128()).unwrap_or(0);
    usize::try_from(number).map_err(|_| Error::Range {
        operation: "segments".into(),
        shape: Shape::from([]),
        reason: format!("{number} elements"),
    })
}
