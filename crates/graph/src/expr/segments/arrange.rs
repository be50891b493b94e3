//! Concatenation, interleaving and merging of segments.

use super::descriptor::Segments;
use super::elements::{binary, call, choose};
use super::form_cache::FormCache;
use super::pick::at_places;
use crate::expr::error::Result;
use crate::expr::node::Node;
use broadloom_scalar::{BinaryOp, Builder, Element, Type};

impl Segments {
    /// Concatenates the segments with equal numbers of two descriptors. Joins each pair of lines in the same
    /// way.
    pub fn concatenate(&self, other: &Segments, pairs: &[(&Node, &Node)]) -> Result<(Segments, Vec<Node>)> {
        let f = Builder::function("appended");
        let place = f.parameter("place", Type::I64);
        let (first, second) = (f.parameter("first", Type::I64), f.parameter("second", Type::I64));
        let (length, _) = (f.parameter("length", Type::I64), f.parameter("others", Type::I64));
        let is_first = f.lt(place, length);
        let from_first = f.select(is_first, f.add(first, place), -1i64);
        let from_second = f.select(is_first, -1i64, f.add(second, f.sub(place, length)));
        let function = f.finish_function(&[is_first, from_first, from_second])?;
        self.joined("concatenate", other, pairs, &function)
    }

    /// Interleaves the elements of segments with equal numbers of two descriptors, beginning with the first.
    /// After the shorter segment the rest of the longer one follows. Joins each pair of lines in the same
    /// way.
    pub fn interleave(&self, other: &Segments, pairs: &[(&Node, &Node)]) -> Result<(Segments, Vec<Node>)> {
        let f = Builder::function("interleaved");
        let place = f.parameter("place", Type::I64);
        let (first, second) = (f.parameter("first", Type::I64), f.parameter("second", Type::I64));
        let (length, others) = (f.parameter("length", Type::I64), f.parameter("others", Type::I64));
        let both = f.min(length, others);
        let in_turn = f.lt(place, f.mul(both, 2i64));
        let is_even = f.eq(f.and(place, 1i64), 0i64);
        let is_first = f.or(f.and(in_turn, is_even), f.and(f.not(in_turn), f.gt(length, others)));
        let index = f.select(in_turn, f.shr(place, 1), f.sub(place, both));
        let from_first = f.select(is_first, f.add(first, index), -1i64);
        let from_second = f.select(is_first, -1i64, f.add(second, index));
        let function = f.finish_function(&[is_first, from_first, from_second])?;
        self.joined("interleave", other, pairs, &function)
    }

    /// Joins the segments of two descriptors in the order that a function defines. From the index in a new
    /// segment, and the starts and lengths of both old segments, it computes whether the element comes from
    /// the first, and its index in either line.
    fn joined(
        &self,
        operation: &str,
        other: &Segments,
        pairs: &[(&Node, &Node)],
        function: &broadloom_scalar::Function,
    ) -> Result<(Segments, Vec<Node>)> {
        self.check_alike(operation, other)?;
        for (first, second) in pairs {
            self.check_elements(operation, first)?;
            other.check_elements(operation, second)?;
            second.check_type(operation, first.ty())?;
        }
        let (own, others) = (self.lengths()?, other.lengths()?);
        let lengths = binary(BinaryOp::Add, &own, &others)?;
        let total = self.data.total.plus(&other.data.total)?;
        let joined = Segments::with_lengths(&lengths, self.data.count.clone(), total, None)?;
        joined.data.forms.set_lengths(&lengths);
        if joined.data.count.is_none() || joined.data.total.is_none() {
            return Ok((joined, pairs.iter().map(|(first, _)| (*first).clone()).collect()));
        }
        let starts = [&self.padded_starts()?, &other.padded_starts()?].map(|starts| joined.spread_offsets(starts));
        let [first_start, second_start] = starts;
        let inputs = [&joined.places()?, &first_start?, &second_start?, &joined.spread(&own)?, &joined.spread(&others)?];
        let [is_first, from_first, from_second] = call(function, &inputs)?;
        let mut values = vec![];
        for (first, second) in pairs {
            let [first] = &at_places(&[first], &from_first)?[..] else { continue };
            let [second] = &at_places(&[second], &from_second)?[..] else { continue };
            values.push(choose(&is_first, first, second)?);
        }
        Ok((joined, values))
    }

    /// Merges segments: this descriptor has a segment for each element of `outer`. Each result segment has
    /// the elements of all segments within one segment of `outer`.
    pub fn merged(&self, outer: &Segments) -> Result<Segments> {
        outer.checked("merge", &outer.data.total, &self.data.count.places(Element::I64)?)?;
        let bounds = self.data.bounds.gather(&[&outer.data.bounds], &broadloom_skeleton::Boundary::Clamp)?;
        let forms = FormCache::default();
        Ok(Segments::made(outer.data.count.clone(), self.data.total.clone(), bounds, forms, None))
    }
}
