//! Conditions on operands as flags of the device.

use super::Entry;
use super::extent::{Extent, line};
use super::vector::Vector;
use super::{Accelerator, DeviceSegdes, on_device};
use crate::eval::Run;
use crate::vcode::{Check, Inst};
use broadloom_graph::{Combine, Node, Shape};
use broadloom_scalar::{self as scalar, Element};
use std::rc::Rc;

impl Accelerator {
    /// Adds a condition. Returns false if the host must check the operands.
    pub(crate) fn check(&mut self, check: Check, operands: &[Entry]) -> Run<bool> {
        let inst = Inst::Check(check);
        match (check, operands) {
            (Check::Require, [conditions, ..]) => self.no_violation(check, operands, std::slice::from_ref(conditions))?,
            (Check::Length, [lengths]) if self.vector(lengths).is_ok_and(|lengths| self.is_counted(&lengths)) => {}
            (
                Check::Index
                | Check::Each
                | Check::Put
                | Check::Unpack
                | Check::Count
                | Check::Length
                | Check::Range
                | Check::Part
                | Check::Code,
                inputs,
            ) => self.no_violation(check, operands, inputs)?,
            (Check::Indices, [indices, segdes, lengths]) => {
                let (indices, segdes, lengths) = (self.vector(indices)?, self.segdes(segdes)?, self.vector(lengths)?);
                let (indices, segdes) = self.cut(&inst, operands, &indices, &segdes)?;
                let (lengths, segdes) = self.each(&inst, operands, &lengths, &segdes)?;
                let lengths = self.spread(&lengths, &segdes)?;
                self.inside(inst, operands, &indices, &lengths)?;
            }
            (Check::Total, [lengths, segdes]) => {
                let (lengths, segdes) = (self.vector(lengths)?, self.segdes(segdes)?);
                if !self.is_counted(&lengths) {
                    self.counted(inst, operands, &lengths, &segdes)?;
                }
            }
            (Check::Partition, [pieces, segdes, lengths]) => {
                let (pieces, segdes, lengths) = (self.vector(pieces)?, self.segdes(segdes)?, self.vector(lengths)?);
                let (pieces, segdes) = self.cut(&inst, operands, &pieces, &segdes)?;
                let (lengths, segdes) = self.each(&inst, operands, &lengths, &segdes)?;
                let sums = self.sums(&pieces, &segdes, Element::I64)?;
                let wrong = self.call("sum", &[&sums, &lengths.node], |f, x| f.ne(x[0], f.convert(x[1], scalar::Type::I64)))?;
                self.require_none(inst.clone(), operands, &wrong, segdes.count())?;
                let wrong = self.call("below", &[&pieces.node], |f, x| f.lt(x[0], 0))?;
                self.require_none(inst, operands, &wrong, &pieces.extent)?;
            }
            (Check::Permutation, [indices, segdes, lengths]) => {
                let (indices, segdes, lengths) = (self.vector(indices)?, self.segdes(segdes)?, self.vector(lengths)?);
                let (indices, segdes) = self.cut(&inst, operands, &indices, &segdes)?;
                let (lengths, segdes) = self.each(&inst, operands, &lengths, &segdes)?;
                self.permutation(inst, operands, &indices, &segdes, &lengths)?;
            }
            (Check::Fail | Check::Undefined, [starts, ..]) => {
                let starts = self.vector(starts)?;
                match &starts.extent {
                    Extent::Host(count) if count.equals(&0.into()) => {}
                    Extent::Host(_) => return Ok(false),
                    Extent::Device(length) => {
                        let some = self.call("some", &[length.count()], |f, x| f.gt(x[0], 0))?;
                        let some = self.as_vector(&some)?;
                        self.require(inst, operands, some)?;
                    }
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Adds the condition that a check holds at each index of some of its operands.
    fn no_violation(&mut self, check: Check, operands: &[Entry], inputs: &[Entry]) -> Run<()> {
        let vectors = inputs.iter().map(|input| self.vector(input)).collect::<Run<Vec<Vector>>>()?;
        self.no_violation_in(check, Inst::Check(check), operands, vectors)
    }

    fn no_violation_in(&mut self, check: Check, inst: Inst, operands: &[Entry], mut inputs: Vec<Vector>) -> Run<()> {
        let Some((name, test)) = check.violation() else { return Ok(()) };
        let extent = match &inputs[..] {
            [one] => one.extent.clone(),
            _ => self.aligned(&inst, operands, &mut inputs)?,
        };
        let nodes: Vec<&Node> = inputs.iter().map(|input| &input.node).collect();
        let wrong = self.call(name, &nodes, test)?;
        self.require_none(inst, operands, &wrong, &extent)
    }

    /// Returns the sums of the segments of ints, as numbers of a wider type.
    fn sums(&mut self, ints: &Vector, segdes: &DeviceSegdes, element: Element) -> Run<Node> {
        let whole = self.whole(ints)?;
        let wide = self.convert(&whole, element)?;
        if segdes.is_single() {
            let sum = on_device(wide.reduce(Combine::Sum, &[0]))?;
            return self.as_vector(&sum);
        }
        let segments = self.segments(segdes)?;
        Ok(on_device(segments.reduce(&[(&wide, Combine::Sum)]))?.swap_remove(0))
    }

    /// Adds the condition that the sum of the lengths of each segment fits an int.
    fn counted(&mut self, inst: Inst, operands: &[Entry], lengths: &Vector, segdes: &Rc<DeviceSegdes>) -> Run<()> {
        let (lengths, segdes) = self.cut(&inst, operands, lengths, segdes)?;
        let wrong = if self.has_wide_ints() {
            let sums = self.sums(&lengths, &segdes, Element::F64)?;
            self.call("uncounted", &[&sums], |f, x| f.ge(x[0], 9_223_372_036_854_775_808.0f64))?
        } else {
            let sums = self.sums(&lengths, &segdes, Element::I64)?;
            self.call("uncounted", &[&sums], |f, x| f.gt(x[0], i64::from(i32::MAX)))?
        };
        self.require_none(inst, operands, &wrong, segdes.count())
    }

    fn inside(&mut self, inst: Inst, operands: &[Entry], indices: &Vector, lengths: &Vector) -> Run<()> {
        self.no_violation_in(Check::Index, inst, operands, vec![indices.clone(), lengths.clone()])
    }

    /// Adds the condition that indices are permutations: their number is given by the lengths, all are
    /// inside, and each occurs once.
    fn permutation(
        &mut self,
        inst: Inst,
        operands: &[Entry],
        indices: &Vector,
        segdes: &DeviceSegdes,
        lengths: &Vector,
    ) -> Run<()> {
        if !segdes.lengths.node.is_same(&lengths.node) {
            let wrong = self.call("differ", &[&segdes.lengths.node, &lengths.node], |f, x| f.ne(x[0], x[1]))?;
            self.require_none(inst.clone(), operands, &wrong, segdes.count())?;
        }
        if indices.facts.ranked.as_ref().is_some_and(|ranked| segdes.has_ranks(ranked)) {
            return Ok(());
        }
        let spread = self.spread(&segdes.lengths, segdes)?;
        self.inside(inst.clone(), operands, indices, &spread)?;
        if indices.extent.is_host(0) {
            return Ok(());
        }
        let mut places = self.convert(&indices.node, Element::I64)?;
        if !segdes.is_single() {
            let starts = self.spread_starts(segdes, segdes)?;
            // The check above finds an index outside its segment; it must not be counted in another segment.
            places = self.call("place", &[&places, &starts], |f, x| f.add(x[0], x[1]))?;
        }
        let places = self.whole(&Vector { extent: indices.extent.clone(), ..Vector::of(places) })?;
        let context = self.context()?;
        let none = on_device(Node::fill(&context, line(indices.extent.bound()), &[0i32.into()]))?;
        let one = on_device(Node::fill(&context, Shape::from([]), &[1i32.into()]))?;
        let times = on_device(none.scatter(&[&places], &one, Some(Combine::Sum)))?;
        let twice = self.call("twice", &[&times], |f, x| f.gt(x[0], 1))?;
        self.require_none(inst, operands, &twice, &Extent::Host(indices.extent.bound().clone()))
    }
}
