//! Runs: adjacent equal elements of a line. Only the device knows how many there are; nothing waits.

use crate::error::{Error, Result};
use crate::length::Length;
use crate::node::Node;
use crate::op::{Combine, Elementwise};
use crate::view::Boundary;
use broadloom_scalar::{BinaryOp, CompareOp, Element, Literal};
use broadloom_skeleton::SortKey;
use smallvec::smallvec;

impl Node {
    /// Returns whether a run starts at each element of a line of plain values: it is the first, or differs from the one before it. NaN differs from itself.
    pub fn run_starts(&self) -> Result<Node> {
        self.check_line("run_starts")?;
        if !self.ty().is_scalar() {
            return Err(Error::Type { operation: "run_starts".into(), ty: self.ty() });
        }
        if self.bound().is_empty() {
            return self.fill_like(&[Literal::from(false)]);
        }
        let before = self.moved("run_starts", &[1], &Boundary::Clamp)?;
        let differs = match self.ty().element() {
            Element::Bool => Elementwise::Binary(BinaryOp::Xor),
            _ => Elementwise::Compare(CompareOp::Ne),
        };
        let differs = Node::elementwise(differs, &[self, &before])?;
        let first = Elementwise::Compare(CompareOp::Eq);
        let first = Node::elementwise(first, &[&self.position_like(0, Element::I64)?, &self.number(0)?])?;
        Node::elementwise(Elementwise::Binary(BinaryOp::Or), &[&differs, &first])
    }

    /// The value of each run of a line, and how many elements it has, an `i64`.
    pub fn runs(&self) -> Result<(Node, Node)> {
        let starts = self.run_starts()?;
        let first = self.position_like(0, Element::I64)?.pack(&starts)?;
        let values = self.gather(&[&first], &Boundary::Clamp)?;
        // A run ends where the next one starts, the last one with the line.
        let next = first.moved("runs", &[-1], &Boundary::Constant(smallvec![Literal::from(-1i64)]))?;
        let is_last = Node::elementwise(Elementwise::Compare(CompareOp::Lt), &[&next, &self.number(0)?])?;
        let end = Node::elementwise(Elementwise::Select, &[&is_last, &self.first_extent()?, &next])?;
        Ok((values, Node::elementwise(Elementwise::Binary(BinaryOp::Sub), &[&end, &first])?))
    }

    /// The different values of a line, from the least to the greatest.
    pub fn unique(&self) -> Result<Node> {
        let mut sorted = Node::sort(&[(self, SortKey { descending: false, bits: None })], &[])?;
        let sorted = sorted.swap_remove(0);
        sorted.pack(&sorted.run_starts()?)
    }

    /// Each element of a line as many times as a line of integers says; negative numbers count as 0. In all there are as many as these numbers
    /// sum up to, and `bound` at most: what is beyond is left out.
    pub fn repeat_each(&self, times: &Node, bound: usize) -> Result<Node> {
        self.check_line("repeat_each")?;
        times.check_line("repeat_each")?;
        times.check_integers("repeat_each")?;
        if !self.is_shaped_like(times) {
            let (left, right) = (self.shape().clone(), times.shape().clone());
            return Err(Error::Shapes { operation: "repeat_each".into(), left, right });
        }
        let times = Node::elementwise(Elementwise::Convert(Element::I64), &[times])?;
        let times = Node::elementwise(Elementwise::Binary(BinaryOp::Max), &[&times, &self.number(0)?])?;
        let length = Length::new(&times.reduce(Combine::Sum, &[0])?, bound)?;
        // The number of elements whose last copy is before a place.
        let ends = times.scan(Combine::Sum, 0, true)?;
        let from = ends.histogram(bound)?.scan(Combine::Sum, 0, true)?.shortened(&length)?;
        self.gather(&[&from], &Boundary::Clamp)
    }
}
