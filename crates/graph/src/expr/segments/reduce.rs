//! Reduction of each segment to one value.

use super::descriptor::Segments;
use super::elements::{binary, convert};
use crate::expr::elementwise::Elementwise;
use crate::expr::error::Result;
use crate::expr::node::Node;
use crate::expr::op::{Extreme, zeros};
use broadloom_scalar::{BinaryOp, Builder, Element, Literal, Type};
use broadloom_skeleton::Combine;

impl Segments {
    /// Reduces the elements of each segment in their order, each line with its own operator. An empty segment
    /// gives the operator's identity. All lines are read in one pass.
    ///
    /// Lines returned by [`Segments::pack`], and elementwise work on them, are not packed for this: the
    /// unpacked lines are reduced instead.
    pub fn reduce(&self, values: &[(&Node, Combine)]) -> Result<Vec<Node>> {
        let reduce = |(line, combine): &(&Node, Combine)| {
            let operation = format!("segmented {}", combine.name());
            self.check_elements(&operation, line)?;
            line.check_combined(&operation, combine)?;
            let found = match self.unpacked(line, combine)? {
                Some((origin, line)) => line.reduce_segments(&origin.data.bounds, combine.clone())?,
                None => line.reduce_segments(&self.data.bounds, combine.clone())?,
            };
            self.data.count.cut(found)
        };
        values.iter().map(reduce).collect()
    }

    /// Returns the index within each segment of its minimum or maximum, the first of equal ones, as an
    /// integer; -1 for an empty segment. NaN is selected only if there are no numbers.
    pub fn extreme(&self, line: &Node, which: Extreme, element: Element) -> Result<Node> {
        self.check_elements(which.name(), line)?;
        line.check_numbers(which.name())?;
        line.check_taken(which.name(), element.is_integer() && element.is_signed())?;
        if self.data.total.is_none() || self.data.count.is_none() {
            return self.data.count.filled(&[Literal::from_i128(element, -1)]);
        }
        let label = if self.data.total.is_narrow() { Element::I32 } else { Element::I64 };
        let found = line.extreme_in_segments(which, label, &self.data.bounds)?;
        let f = Builder::function("extreme");
        let (found_in, start) = (f.parameter("found", label), f.parameter("start", Type::I64));
        let (found_in, end) = (f.convert(found_in, Type::I64), f.parameter("end", Type::I64));
        let function = f.finish_function(&[f.select(f.lt(start, end), f.sub(found_in, start), -1i64)])?;
        let [starts, ends] = [self.padded_starts()?, self.padded_ends()?].map(|offsets| convert(&offsets, Element::I64));
        let inputs = [&found, &starts?, &ends?];
        let found = Node::elementwise(Elementwise::Call(function, 0), &inputs)?;
        self.data.count.cut(convert(&found, element)?)
    }

    /// Broadcasts a value of each segment to its elements: a line with one value per segment becomes one with
    /// one value per element.
    pub fn distribute(&self, values: &Node) -> Result<Node> {
        self.check_segments("distribute", values)?;
        if self.data.count.is_none() {
            return self.data.total.filled(&zeros(values.ty()));
        }
        self.spread(values)
    }

    /// Computes `start + stride · i` at element `i` of each segment. Both are of one numeric type, and have
    /// no axes or one value for each segment.
    pub fn index(&self, start: &Node, stride: &Node) -> Result<Node> {
        stride.check_type("index", start.ty())?;
        start.check_numbers("index")?;
        let element = start.ty().element();
        let each = |node: &Node| if node.bound().rank() == 0 { Ok(node.clone()) } else { self.distribute(node) };
        let steps = binary(BinaryOp::Mul, &convert(&self.places()?, element)?, &each(stride)?)?;
        binary(BinaryOp::Add, &each(start)?, &steps)
    }
}
