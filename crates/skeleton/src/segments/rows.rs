//! Short segments on a CPU in rows of elements: a warp reads 32 neighbours at a time, independent of the
//! bounds of segments.
//!
//! A row holds the elements of several segments. Lanes combine them with a scan that restarts at the start of
//! each segment. Each segment takes its result from the lane of its last element. If the operator has an
//! exact inverse, the scan runs through the whole row, and a segment is the difference of two of its values.
//! Elements that are still open at the end of a row are carried to the next one. An operator with an inverse
//! takes two rows at a time for tiny segments.

use super::parts::OpenValues;
use super::walk::{PAIR, Row, WarpPosition};
use super::{SegmentsEmitter, SequencePart, beside};
use crate::Count;
use crate::cost;
use crate::kit::{Accumulator, Writer, broadcast, choose, scan_from_heads, scan_warp};
use broadloom_scalar::{Axis, BinaryOp, Level, Shuffle, Unroll, Value};

impl SegmentsEmitter {
    /// Walks through a part of a warp. The first segment may have started in another part and is reduced
    /// separately. The last one may end in another part.
    pub(super) fn part_in_rows(&self, k: &Writer, left: &OpenValues, run: &Count) {
        let (sequence, operator) = (&self.sequence, &self.operator);
        let lane = k.thread(Axis::X);
        let piece = sequence.piece(k, run);
        let [_, segments, _] = sequence.sizes(k);
        // Elements after the last segment belong to none.
        let to = k.min(piece.to, k.max(sequence.offset(k, segments), piece.from));
        let has_end = k.lt(piece.first, piece.last);
        let end = k.min(sequence.offset(k, k.min(k.add(piece.first, 1), segments)), to);
        let end = k.select(has_end, k.max(end, piece.from), to);
        let found = self.stretch(k, piece.first, piece.from, end);
        k.if_then(k.eq(lane, 0), || {
            left.mark(k, sequence, &piece);
            left.head.store(k, piece.number, &found);
        });
        let first = k.min(k.add(piece.first, 1), piece.last);
        let rest = SequencePart { first, from: end, to, ..piece };
        let carry = Accumulator::new(k, operator);
        let nothing = operator.nothing(k);
        carry.set(k, &choose(k, has_end, &nothing, &found));
        let in_rows = || self.walk(k, &rest, &carry);
        if operator.is_commutative() && operator.inverse().is_none() {
            let (count, elements) = (k.sub(rest.last, rest.first), k.sub(rest.to, rest.from));
            let side_by_side = || {
                self.transposed(k, &rest);
                let start = k.max(k.min(sequence.offset(k, rest.last), rest.to), rest.from);
                carry.set(k, &self.stretch(k, rest.last, start, rest.to));
            };
            let is_sparse = k.le(elements, k.mul(count, cost::SPARSE_SEGMENT));
            k.if_else(k.or(is_sparse, k.not(has_end)), in_rows, side_by_side);
        } else {
            in_rows();
        }
        k.if_then(k.eq(lane, 0), || left.tail.store(k, rest.number, &carry.get(k)));
    }

    /// Walks through a part in rows. `carry` has the values of the open segment, before and after the walk.
    fn walk(&self, k: &Writer, piece: &SequencePart, carry: &Accumulator<'_>) {
        let (sequence, operator) = (&self.sequence, &self.operator);
        let (lane, nothing) = (k.thread(Axis::X), operator.nothing(k));
        let walk = WarpPosition::new(k, sequence, piece);
        let long = |whole: Value| {
            let place = k.get(walk.place);
            carry.add(k, &self.stretch(k, k.get(walk.open), place, k.add(place, whole)));
        };
        let pairs = |inverse: BinaryOp| {
            walk.pairs(k, |after, ended| {
                let (open, place) = (k.get(walk.open), k.get(walk.place));
                self.inlet.prefetch_row(k, k.add(place, cost::ELEMENTS_AHEAD), PAIR, Level::First);
                let own = [0u32, 32].map(|row| self.inlet.at(k, &[k.add(k.add(place, row), sequence.wide(k, lane))]));
                let (results, next) = self.pair_differences(k, inverse, after, &own, &carry.get(k), ended);
                let segment = k.add(open, sequence.wide(k, lane));
                k.if_then(k.lt(after, PAIR), || self.outlet.put(k, &[segment], beside(k, open), &results));
                carry.set(k, &next);
            });
        };
        let pairs = operator.inverse().map(|inverse| move || pairs(inverse));
        let pairs = pairs.as_ref().map(|pairs| pairs as &dyn Fn());
        walk.walk(k, pairs, long, |row| {
            let (open, place) = (k.get(walk.open), k.get(walk.place));
            let values = || self.inlet.at(k, &[k.add(place, sequence.wide(k, lane))]);
            let own = match row.is_whole {
                true => {
                    self.inlet.prefetch_row(k, k.add(place, cost::ELEMENTS_AHEAD), 32, Level::First);
                    values()
                }
                false => k.choose_list(k.lt(lane, row.count), values, || nothing.clone()),
            };
            let is_ended = k.lt(row.after, 32);
            let ended = k.popcount(k.ballot(is_ended, None));
            let (results, next) = match operator.inverse() {
                Some(inverse) => self.differences(k, inverse, &row, &own, &carry.get(k), ended),
                None => self.scanned(k, &row, &own, &carry.get(k)),
            };
            let segment = k.add(open, sequence.wide(k, lane));
            k.if_then(is_ended, || self.outlet.put(k, &[segment], beside(k, open), &results));
            // After the last of 32 ends, more may follow: the next row starts there.
            carry.set(k, &choose(k, k.eq(ended, 32), &nothing, &next));
            walk.go_on(k, &row, ended);
        });
        // Ends after the last element.
        let (open, values) = (k.get(walk.open), carry.get(k));
        k.for_step(open, piece.last, 32, Unroll::Never, |group| {
            let segment = k.add(group, sequence.wide(k, lane));
            let results = choose(k, k.eq(segment, open), &values, &nothing);
            k.if_then(k.lt(segment, piece.last), || self.outlet.put(k, &[segment], beside(k, group), &results));
        });
        carry.set(k, &choose(k, k.lt(open, piece.last), &nothing, &values));
    }

    /// Returns the results of the segments that end in a row, one per lane, and the values that the row
    /// leaves open.
    fn scanned(&self, k: &Writer, row: &Row, own: &[Value], carry: &[Value]) -> (Vec<Value>, Vec<Value>) {
        let (operator, lane) = (&self.operator, k.thread(Axis::X));
        let nothing = operator.nothing(k);
        // Combining with the identity makes all values results of the operator. Plain copies could be NaNs
        // that keep their bits, which an executor would have to handle in every step.
        let own = operator.combine(k, &nothing, own);
        let (values, has_head) = scan_from_heads(k, operator, &own, row.heads(k), lane);
        let values = operator.combine(k, &choose(k, has_head, &nothing, carry), &values);
        let is_first = k.eq(lane, 0);
        let start = k.select(is_first, 0u32, k.shuffle(Shuffle::Up, row.after, 1u32));
        let at_end = at(k, &values, k.sub(row.after, 1));
        let empty = choose(k, is_first, carry, &nothing);
        (choose(k, k.gt(row.after, start), &at_end, &empty), broadcast(k, &values, 31))
    }

    /// Returns the results of `scanned` as differences of a scan of the whole row. `ended` segments end in
    /// the row.
    fn differences(
        &self,
        k: &Writer,
        inverse: BinaryOp,
        row: &Row,
        own: &[Value],
        carry: &[Value],
        ended: Value,
    ) -> (Vec<Value>, Vec<Value>) {
        let (operator, lane) = (&self.operator, k.thread(Axis::X));
        let nothing = operator.nothing(k);
        let without = |values: &[Value], before: &[Value]| without(k, inverse, values, before);
        let prefixes = scan_warp(k, operator, own, lane);
        let at_end = choose(k, k.eq(row.after, 0), &nothing, &at(k, &prefixes, k.sub(row.after, 1)));
        // The open segment started before the row. The scan value there is the inverse of the carried value.
        let begin = without(&nothing, carry);
        let before: Vec<Value> = at_end.iter().map(|value| k.shuffle(Shuffle::Up, *value, 1u32)).collect();
        let before = choose(k, k.eq(lane, 0), &begin, &before);
        let last = choose(k, k.eq(ended, 0), &begin, &at(k, &at_end, k.sub(ended, 1)));
        (without(&at_end, &before), without(&broadcast(k, &prefixes, 31), &last))
    }

    /// Returns the results of `scanned` for two rows, as differences. `ended` segments end in them: at least
    /// one, and fewer than there are lanes.
    fn pair_differences(
        &self,
        k: &Writer,
        inverse: BinaryOp,
        after: Value,
        own: &[Vec<Value>; 2],
        carry: &[Value],
        ended: Value,
    ) -> (Vec<Value>, Vec<Value>) {
        let (operator, lane) = (&self.operator, k.thread(Axis::X));
        let nothing = operator.nothing(k);
        let without = |values: &[Value], before: &[Value]| without(k, inverse, values, before);
        let [first, second] = own.each_ref().map(|own| scan_warp(k, operator, own, lane));
        let second = operator.combine(k, &broadcast(k, &first, 31), &second);
        let end = k.sub(after, 1);
        let at_end = choose(k, k.lt(end, 32), &at(k, &first, end), &at(k, &second, end));
        let at_end = choose(k, k.eq(after, 0), &nothing, &at_end);
        let before: Vec<Value> = at_end.iter().map(|value| k.shuffle(Shuffle::Up, *value, 1u32)).collect();
        let before = choose(k, k.eq(lane, 0), &without(&nothing, carry), &before);
        let last = at(k, &at_end, k.sub(ended, 1));
        (without(&at_end, &before), without(&broadcast(k, &second, 31), &last))
    }
}

/// Removes the values `before` from combined values.
fn without(k: &Writer, inverse: BinaryOp, values: &[Value], before: &[Value]) -> Vec<Value> {
    values.iter().zip(before).map(|(value, before)| k.binary(inverse, *value, *before)).collect()
}

/// Returns the values of another lane.
fn at(k: &Writer, values: &[Value], lane: Value) -> Vec<Value> {
    values.iter().map(|value| k.shuffle(Shuffle::Index, *value, lane)).collect()
}
