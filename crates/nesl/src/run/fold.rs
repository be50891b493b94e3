//! Reductions, scans and ranks within segments.

use super::vector::Vector;
use super::{Accelerator, DeviceSegdes, on_device};
use crate::eval::{Run, largest_float};
use crate::vcode::Op;
use broadloom_graph::{Combine, Direction, Elementwise, Node};
use broadloom_scalar::{BinaryOp, Element, Literal};

fn combine_of(op: Op) -> Option<Combine> {
    Some(match op {
        Op::AddScan | Op::AddReduce => Combine::Sum,
        Op::MultiplyScan | Op::MultiplyReduce => Combine::Product,
        Op::MaxScan | Op::MaxReduce => Combine::Max,
        Op::MinScan | Op::MinReduce => Combine::Min,
        Op::AndScan | Op::AndReduce => Combine::All,
        Op::OrScan | Op::OrReduce => Combine::Any,
        Op::XorScan | Op::XorReduce => Combine::Odd,
        _ => return None,
    })
}

/// The extremum of no floats, which is finite.
fn extremum(combine: &Combine, element: Element) -> Option<Literal> {
    match combine {
        Combine::Max => Literal::from_f64(element, -largest_float()),
        Combine::Min => Literal::from_f64(element, largest_float()),
        _ => None,
    }
}

impl Accelerator {
    /// Computes a reduction or a scan; `None` for other instructions.
    pub(super) fn fold(&mut self, op: Op, values: &Vector, segdes: &DeviceSegdes) -> Run<Option<Vector>> {
        let Some(combine) = combine_of(op) else { return Ok(None) };
        segdes.note(values);
        let is_scan =
            matches!(op, Op::AddScan | Op::MultiplyScan | Op::MaxScan | Op::MinScan | Op::AndScan | Op::OrScan | Op::XorScan);
        let nodes = self.whole(values)?;
        self.made += 2;
        Ok(Some(if is_scan { self.scan(combine, &nodes, segdes)? } else { self.reduce(combine, &nodes, segdes)? }))
    }

    fn reduce(&mut self, combine: Combine, values: &Node, segdes: &DeviceSegdes) -> Run<Vector> {
        let of_none = extremum(&combine, values.ty().element());
        let (node, lengths) = if segdes.is_single() {
            let result = on_device(values.reduce(combine, &[0]))?;
            let length = match of_none {
                Some(_) => {
                    let total = self.total(segdes)?;
                    let count = self.count_of(&total, Element::I64)?;
                    self.as_vector(&count)?
                }
                None => segdes.lengths.node.clone(),
            };
            (self.as_vector(&result)?, length)
        } else {
            let segments = self.segments(segdes)?;
            (on_device(segments.reduce(&[(values, combine)]))?.swap_remove(0), segdes.lengths.node.clone())
        };
        let node = match of_none {
            Some(of_none) => {
                let of_none = self.one(of_none)?;
                self.call("extremum", &[&lengths, &of_none, &node], |f, x| f.select(f.eq(x[0], 0), x[1], x[2]))?
            }
            None => node,
        };
        let mut vector = Vector::of(node);
        vector.extent = segdes.count().clone();
        Ok(vector)
    }

    /// Computes an exclusive scan.
    fn scan(&mut self, combine: Combine, values: &Node, segdes: &DeviceSegdes) -> Run<Vector> {
        let limit = extremum(&combine, values.ty().element());
        let is_max = matches!(combine, Combine::Max);
        let mut node = if segdes.is_single() {
            on_device(values.scan(combine, 0, false))?
        } else {
            let segments = self.segments(segdes)?;
            on_device(segments.scan(&[(values, combine)], false, Direction::Forwards))?.swap_remove(0)
        };
        if let Some(limit) = limit {
            let limit = self.one(limit)?;
            node = self.elementwise(Elementwise::Binary(if is_max { BinaryOp::Max } else { BinaryOp::Min }), &[&node, &limit])?;
        }
        Ok(Vector::of(node))
    }

    /// Ranks elements within their segments; equal ones in their order.
    pub(super) fn rank(&mut self, values: &Vector, segdes: &DeviceSegdes, descending: bool) -> Run<Vector> {
        segdes.note(values);
        let (int, whole) = (self.int(), self.whole(values)?);
        // Zeros of both signs are equal.
        let key = if whole.ty().element().is_float() { self.call("key", &[&whole], |f, x| f.add(x[0], 0))? } else { whole };
        let segments = self.segments(segdes)?;
        self.made += 4;
        Ok(Vector::of(on_device(segments.rank(&key, descending, int))?))
    }
}
