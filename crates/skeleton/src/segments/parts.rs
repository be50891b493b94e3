//! Segmented reductions on a CPU, in a few parts for each core: see [`super`].

use super::{SegmentsEmitter, Sequence, SequencePart, beside};
use crate::cost::{self, Costs};
use crate::kit::{Accumulator, Draft, Temporaries, Writer, broadcast, each_lane, reduce_warp};
use crate::program::Argument;
use crate::{Count, Result};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Type, Unroll, Value};

/// The open values at the ends of parts, which a second kernel combines.
pub(super) struct OpenValues {
    /// Values of a part up to its first end, and after its last one.
    pub(super) head: Temporaries,
    pub(super) tail: Temporaries,
    /// Number of ends before a part.
    starts: usize,
}

impl OpenValues {
    /// Stores the number of ends before a part, and before the next one.
    pub(super) fn mark(&self, k: &Writer, sequence: &Sequence, piece: &SequencePart) {
        let starts = k.memory(Argument::Temporary(self.starts), sequence.index.element());
        k.store(starts, piece.number, piece.first);
        k.store(starts, k.add(piece.number, 1), piece.last);
    }
}

impl SegmentsEmitter {
    /// Returns the values at a place of a segment.
    fn values(&self, k: &Writer, place: Value, segment: Value) -> Vec<Value> {
        if !self.numbered {
            return self.inlet.at(k, &[place]);
        }
        self.inlet.at_given(k, &[place], &[k.convert(segment, Type::I32)])
    }

    /// Returns true if warps read rows of elements. They do not for a source that takes the number of its
    /// segment: its reads of segment data form rows if each lane has one segment.
    fn in_rows(&self, machine: &Machine) -> bool {
        let (inputs, values) = (self.inlet.inputs().len() as u64, self.operator.types().len() as u64);
        let operations = cost::function(self.operator.function());
        let pays = self.operator.is_commutative() || Costs::of(machine).scans_segments(inputs, values, operations);
        pays && !self.numbered
    }

    pub(super) fn parts(&self, draft: &mut Draft, machine: &Machine) -> Result<()> {
        let (parts, run) = self.sequence.parts(machine);
        let mut list = || Temporaries::new(draft, &self.operator.types(), &parts);
        let (head, tail) = (list(), list());
        let starts = draft.temporary((parts.clone() + 1u32) * self.sequence.index.bytes(), false);
        let left = OpenValues { head, tail, starts };
        let block = [32, 1, 1];
        let k = Writer::new("segments", block);
        match self.in_rows(machine) {
            true => self.part_in_rows(&k, &left, &run),
            false => self.part(&k, &left, &run),
        }
        draft.launch(k, [parts.clone(), 1u32.into(), 1u32.into()], block)?;
        let k = Writer::new("segments_between", block);
        self.between(&k, &left, &parts);
        draft.launch(k, [parts.min(1u32), 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }

    /// Emits the walk of a warp through a part, 32 segments at a time. The first segment may start in another
    /// part, and the last one may end in another.
    fn part(&self, k: &Writer, left: &OpenValues, run: &Count) {
        let (sequence, operator) = (&self.sequence, &self.operator);
        let lane = k.thread(Axis::X);
        let piece = sequence.piece(k, run);
        let [_, segments, _] = sequence.sizes(k);
        k.if_then(k.eq(lane, 0), || left.mark(k, sequence, &piece));
        // Range of the elements of a segment in this part.
        let bounds = |segment: Value| {
            let from = k.select(k.eq(segment, piece.first), piece.from, sequence.offset(k, k.min(segment, segments)));
            let end = sequence.offset(k, k.min(k.add(segment, 1), segments));
            let to = k.select(k.eq(segment, piece.last), piece.to, end);
            // Elements after the last segment belong to none.
            vec![from, k.select(k.lt(segment, segments), k.max(from, to), from)]
        };
        // Lanes that are done wait for the longest of the short segments, so the limit is near the mean.
        let mean = k.div(k.sub(piece.to, piece.from), k.add(k.sub(piece.last, piece.first), 1));
        let limit = k.min(k.add(k.mul(mean, 2), cost::SHORT_SEGMENT / 4), cost::SHORT_SEGMENT);
        let none = k.constant(sequence.index, 0);
        k.for_step(piece.first, k.add(piece.last, 1), 32, Unroll::Never, |group| {
            let segment = k.add(group, sequence.wide(k, lane));
            // Most segments start and end in this part, and need no more checks.
            let is_inner = k.and(k.gt(group, piece.first), k.le(k.add(group, 32), piece.last));
            let outer = || {
                let mut bounds = bounds(segment);
                bounds[1] = k.select(k.le(segment, piece.last), bounds[1], bounds[0]);
                bounds
            };
            let inner = || vec![sequence.offset(k, segment), sequence.offset(k, k.add(segment, 1))];
            let range = k.choose_list(is_inner, inner, outer);
            let from = range[0];
            let length = k.sub(k.max(from, range[1]), from);
            let is_short = k.le(length, limit);
            let short = k.select(is_short, length, none);
            // Each lane walks through its segment. All lanes walk through a long segment together.
            let one_by_one = || {
                let sum = Accumulator::new(k, operator);
                sum.set(k, &operator.nothing(k));
                let round = k.variable_with(none);
                k.set(round, none);
                k.while_loop(
                    || k.ne(k.ballot(k.lt(k.get(round), short), None), 0),
                    || {
                        let place = k.get(round);
                        k.if_then(k.lt(place, short), || sum.add(k, &self.values(k, k.add(from, place), segment)));
                        k.set(round, k.add(place, 1));
                    },
                );
                each_lane(k, k.ballot(k.not(is_short), None), |owner| {
                    let segment = k.add(group, sequence.wide(k, owner));
                    let bounds = bounds(segment);
                    let found = self.stretch(k, segment, bounds[0], bounds[1]);
                    let is_owner = k.eq(lane, owner);
                    let all = found.iter().zip(sum.get(k)).map(|(found, own)| k.select_value(is_owner, *found, own));
                    sum.set(k, &all.collect::<Vec<Value>>());
                });
                sum.get(k)
            };
            let found = one_by_one();
            let whole = || self.outlet.put(k, &[segment], beside(k, group), &found);
            let checked = || {
                let is_last = k.eq(segment, piece.last);
                k.if_then(k.and(k.gt(segment, piece.first), k.lt(segment, piece.last)), whole);
                k.if_then(is_last, || left.tail.store(k, piece.number, &found));
                let is_first = k.and(k.eq(segment, piece.first), k.not(is_last));
                k.if_then(is_first, || left.head.store(k, piece.number, &found));
            };
            k.if_else(is_inner, whole, checked);
        });
    }

    /// Combines the elements of a segment from one place to another. All lanes have the result.
    pub(super) fn stretch(&self, k: &Writer, segment: Value, from: Value, to: Value) -> Vec<Value> {
        let operator = &self.operator;
        let sum = Accumulator::new(k, operator);
        sum.set(k, &operator.nothing(k));
        let lane = self.sequence.wide(k, k.thread(Axis::X));
        let values = |place: Value| self.values(k, place, segment);
        let add = |own: &[Value]| match operator.is_commutative() {
            true => sum.add(k, own),
            false => sum.add(k, &broadcast(k, &reduce_warp(k, operator, own, 32), 0)),
        };
        let rest = k.sub(to, k.and(k.sub(to, from), 31));
        k.for_step(from, rest, 32, Unroll::Never, |first| add(&values(k.add(first, lane))));
        k.if_then(k.lt(rest, to), || {
            let place = k.add(rest, lane);
            add(&k.choose_list(k.lt(place, to), || values(place), || operator.nothing(k)));
        });
        if operator.is_commutative() { broadcast(k, &reduce_warp(k, operator, &sum.get(k), 32), 0) } else { sum.get(k) }
    }

    /// Combines the values of segments that span several parts, and passes the results on.
    fn between(&self, k: &Writer, left: &OpenValues, parts: &Count) {
        let starts = k.memory(Argument::Temporary(left.starts), self.sequence.index.element());
        k.if_then(k.eq(k.thread(Axis::X), 0), || {
            let sum = Accumulator::new(k, &self.operator);
            k.for_step(
                k.convert(k.literal(0u32), self.sequence.index),
                k.count(parts.clone(), self.sequence.index),
                1,
                Unroll::Never,
                |part| {
                    let (first, last) = (k.load(starts, part), k.load(starts, k.add(part, 1)));
                    k.if_then(k.lt(first, last), || {
                        sum.add(k, &left.head.load(k, part));
                        self.outlet.put(k, &[first], first, &sum.get(k));
                        sum.set(k, &self.operator.nothing(k));
                    });
                    sum.add(k, &left.tail.load(k, part));
                },
            );
        });
    }
}
