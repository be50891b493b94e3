//! Runs: adjacent equal elements of a one-dimensional array. Only the device knows their number; nothing
//! waits.

use crate::expr::elementwise::Elementwise;
use crate::expr::error::{Error, Result};
use crate::expr::node::{Length, Node};
use broadloom_scalar::{BinaryOp, CompareOp, Element, Literal};
use broadloom_skeleton::{Boundary, Combine, SortKey};
use smallvec::smallvec;

impl Node {
    /// Returns a flag for each element of a one-dimensional array of scalars: true if a run starts there,
    /// that is, at the first element and at each one that differs from the element before it. NaN differs
    /// from itself.
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

    /// Returns the value and the number of elements, an `i64`, of each run of a one-dimensional array.
    pub fn runs(&self) -> Result<(Node, Node)> {
        let starts = self.run_starts()?;
        let first = self.position_like(0, Element::I64)?.pack(&starts)?;
        let values = self.gather(&[&first], &Boundary::Clamp)?;
        // A run ends where the next one starts. The last run ends with the array.
        let next = first.moved("runs", &[-1], &Boundary::Constant(smallvec![Literal::from(-1i64)]))?;
        let is_last = Node::elementwise(Elementwise::Compare(CompareOp::Lt), &[&next, &self.number(0)?])?;
        let end = Node::elementwise(Elementwise::Select, &[&is_last, &self.first_extent()?, &next])?;
        Ok((values, Node::elementwise(Elementwise::Binary(BinaryOp::Sub), &[&end, &first])?))
    }

    /// Returns the distinct values of a one-dimensional array in ascending order.
    pub fn unique(&self) -> Result<Node> {
        let mut sorted = Node::sort(&[(self, SortKey { descending: false, bits: None })], &[])?;
        let sorted = sorted.swap_remove(0);
        sorted.pack(&sorted.run_starts()?)
    }

    /// Repeats each element as often as an array of integers says; negative numbers count as 0. The result
    /// has as many elements as the sum of these numbers, and `bound` at most; further elements are left out.
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
        // Number of elements whose last copy is before a position.
        let ends = times.scan(Combine::Sum, 0, true)?;
        let from = ends.histogram(bound)?.scan(Combine::Sum, 0, true)?.shortened(&length)?;
        self.gather(&[&from], &Boundary::Clamp)
    }
}
