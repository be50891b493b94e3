//! Medium segments on a CPU: each has rows of its own, which lanes add up, and 32 of them become results
//! together.
//!
//! The rows of 32 segments form a matrix, and the sums along the lanes are the results. A step takes two rows
//! whose numbers differ in one bit. Lanes without that bit keep the first row, lanes with it the second. Each
//! lane combines the value that it keeps with the value of the same row from the opposite lane. After five
//! steps each lane has the result of one segment. This takes one combination per segment. A separate
//! reduction of each segment would take five.

use super::{SegmentsEmitter, SequencePart, beside};
use crate::kit::{Accumulator, Shared, Writer, choose};
use broadloom_scalar::{Axis, Shuffle, Unroll, Value};

/// Number of segments at a time, one per lane.
const SEGMENTS: u32 = 32;
/// Number of rows that remain after the first two steps and are combined in registers.
const ROWS: u32 = 8;

impl SegmentsEmitter {
    /// Reduces the segments of a part that end in it, by a commutative operator. The first element of the
    /// part must start a segment.
    pub(super) fn transposed(&self, k: &Writer, piece: &SequencePart) {
        let (sequence, lane) = (&self.sequence, k.thread(Axis::X));
        let rows = Shared::new(k, &self.operator.types(), SEGMENTS * 32);
        let place = |row: Value| beside(k, k.mul(row, 32));
        k.for_step(piece.first, piece.last, SEGMENTS, Unroll::Never, |group| {
            k.for_step(k.literal(0u32), k.literal(SEGMENTS), 1, Unroll::Never, |row| {
                // If there are fewer segments, the others are empty.
                let segment = k.min(k.add(group, sequence.wide(k, row)), piece.last);
                let from = sequence.offset(k, segment);
                let to = sequence.offset(k, k.min(k.add(segment, 1), piece.last));
                rows.set(k, place(row), &self.lanes_of(k, from, to));
            });
            // Distant rows are combined first. Rows of the two halves of a warp need no exchange between
            // lanes.
            k.for_step(k.literal(0u32), k.literal(ROWS), 1, Unroll::Never, |row| {
                let four = [0, 1, 2, 3].map(|number| rows.get(k, place(k.add(row, number * ROWS))));
                let [first, second] = [0, 1].map(|number| self.both(k, &four[number], &four[number + 2], 16));
                rows.set(k, place(row), &self.both(k, &first, &second, 8));
            });
            let mut left: Vec<Vec<Value>> = (0..ROWS).map(|row| rows.get(k, place(k.literal(row)))).collect();
            while left.len() > 1 {
                let distance = left.len() / 2;
                left = (0..distance).map(|row| self.both(k, &left[row], &left[row + distance], distance as u32)).collect();
            }
            let segment = k.add(group, sequence.wide(k, lane));
            let put = || self.outlet.put(k, &[segment], beside(k, group), &left[0]);
            let is_whole = k.le(k.add(group, SEGMENTS), piece.last);
            k.if_else(is_whole, put, || k.if_then(k.lt(segment, piece.last), put));
        });
    }

    /// Combines the elements of a segment to one value per lane.
    fn lanes_of(&self, k: &Writer, from: Value, to: Value) -> Vec<Value> {
        let operator = &self.operator;
        let lane = self.sequence.wide(k, k.thread(Axis::X));
        let row = |first: Value, left: Value| {
            let values = || self.inlet.at(k, &[k.add(first, lane)]);
            k.choose_list(k.lt(lane, left), values, || operator.nothing(k))
        };
        let length = k.sub(k.max(to, from), from);
        let first = row(from, length);
        let more = || {
            let sum = Accumulator::new(k, operator);
            sum.set(k, &first);
            k.for_step(k.add(from, 32), to, 32, Unroll::Never, |place| sum.add(k, &row(place, k.sub(to, place))));
            sum.get(k)
        };
        k.choose_list(k.gt(length, 32), more, || first.clone())
    }

    /// Combines two rows over lanes at a distance. Lanes without its bit have results of the first row,
    /// others of the second.
    fn both(&self, k: &Writer, first: &[Value], second: &[Value], distance: u32) -> Vec<Value> {
        let is_second = k.ne(k.and(k.thread(Axis::X), distance), 0);
        let (kept, given) = (choose(k, is_second, second, first), choose(k, is_second, first, second));
        let across: Vec<Value> = given.iter().map(|value| k.shuffle(Shuffle::Xor, *value, distance)).collect();
        self.operator.combine(k, &kept, &across)
    }
}
