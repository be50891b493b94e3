//! Reductions, scans and ranks within segments.

use super::vector::{Extent, Vector};
use super::{Accelerator, DeviceSegdes, on_device};
use crate::eval::{Run, largest_float};
use crate::vcode::Op;
use broadloom_graph::{Boundary, Combine, Elementwise, Node, Shape, SortKey};
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
        let is_scan = matches!(
            op,
            Op::AddScan | Op::MultiplyScan | Op::MaxScan | Op::MinScan | Op::AndScan | Op::OrScan | Op::XorScan
        );
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
            let offsets = self.offsets(segdes)?;
            (on_device(values.segmented_reduce(&offsets, combine))?, segdes.lengths.node.clone())
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
        let identity = combine.identity(values.ty());
        let is_max = matches!(combine, Combine::Max);
        let mut node = if segdes.is_single() {
            on_device(values.scan(combine, 0, false))?
        } else {
            let heads = self.heads(segdes)?;
            let inclusive = on_device(values.segmented_scan(&heads, combine, 0))?;
            let before = on_device(inclusive.moved("scan", &[1], &Boundary::Constant(identity.clone())))?;
            let identity = self.one(identity[0])?;
            self.elementwise(Elementwise::Select, &[&heads, &identity, &before])?
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
        let count = self.known(&values.extent)?;
        let extent = Extent::Host(count);
        let int = self.int();
        let context = self.context()?;
        if count == 0 {
            return Ok(Vector::of(on_device(Node::fill(&context, Shape::from(0), &[Literal::zero(int)]))?));
        }
        let whole = self.whole(values)?;
        let whole = on_device(whole.hosted())?;
        // Zeros of both signs are equal.
        let key = if whole.ty().element().is_float() { self.call("key", &[&whole], |f, x| f.add(x[0], 0))? } else { whole };
        let positions = self.positions(&extent, int)?;
        let keys = [(&key, SortKey { descending, bits: None })];
        let sorted = if segdes.is_single() {
            on_device(Node::sort(&keys, &[&positions]))?
        } else {
            let offsets = self.offsets(segdes)?;
            on_device(Node::segmented_sort(&offsets, None, &keys, &[&positions]))?
        };
        let ranks = if segdes.is_single() {
            positions
        } else {
            let starts = self.spread_starts(segdes, segdes)?;
            self.call("rank", &[&positions, &starts], |f, x| f.sub(x[0], f.convert(x[1], int)))?
        };
        let zeros = on_device(Node::fill(&context, Shape::from(count), &[Literal::zero(int)]))?;
        self.made += 4;
        Ok(Vector::of(on_device(zeros.scatter(&[&sorted[1]], &ranks, None))?))
    }
}
