//! The number of the segment of each element.
//!
//! On a CPU the parts are those of a [reduction](super): a warp walks along its elements and the ends of segments, 32 at a time. On a GPU a block searches for
//! the segments of its first and last element, and each thread for its own among those between.

use super::walk::Walk;
use super::{Sequence, beside};
use crate::cost::{self, Costs};
use crate::kit::{Draft, Outlet, Writer};
use crate::program::Program;
use crate::{Count, Domain, Error, Result, Sink, Source};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Shuffle, Type, Unroll, Value};

/// Gives a [`Sink`] at every position of a line two values: the number of its segment, an `i32`, and whether the segment begins there.
///
/// The offsets are a source of one integer with a position more than there are segments, of which there is one at least: segment `s` is from `offset(s)` to
/// `offset(s + 1)`. They never decrease, the first is 0, and the last one is the length of the line; for others results are anything, but nothing outside is
/// touched. The sizes of a call are the length of the line and the number of segments. Inputs and scalars are those of the line, whose values are not used, the
/// offsets, the sink.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SegmentNumbers {
    /// The line.
    pub line: Source,
    /// Offsets of segments.
    pub offsets: Source,
    /// The use of the numbers.
    pub sink: Sink,
}

/// The types of the values.
const VALUES: [Type; 2] = [Type::I32, Type::BOOL];
/// Threads of a block of a GPU, and elements of a thread.
const THREADS: u32 = cost::BLOCK_THREADS;
const ITEMS: u32 = cost::NUMBERED_ITEMS;

impl SegmentNumbers {
    /// Writes the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        const NAME: &str = "segment numbers";
        match self.offsets.results()[..] {
            [ty] if ty.is_scalar() && ty.element().is_integer() => {}
            _ => {
                let reason = format!("`{}` does not give one integer", self.offsets.function().name());
                return Err(Error::Pattern { pattern: NAME, reason });
            }
        }
        self.sink.check(NAME, 1, &VALUES)?;
        let index = Domain::LINE.check(NAME, &[&self.line, &self.offsets], &self.sink)?;
        let (n, segments) = (Count::size(0), Count::size(1));
        let mut draft = Draft::new(NAME, 2);
        draft.source(&self.line);
        let sequence = Sequence { offsets: draft.source(&self.offsets), index };
        let outlet = draft.sink(&self.sink, &VALUES, &n);
        draft.least(segments.clone(), 1);
        draft.limit(if index == Type::U32 { n + segments } else { segments });
        if Costs::of(machine).in_vectors() {
            let (parts, run) = sequence.parts(machine);
            let k = Writer::new("segment_numbers", [32, 1, 1]);
            sequence.walk(&k, &run, &outlet);
            draft.launch(k, [parts, 1u32.into(), 1u32.into()], [32, 1, 1])?;
        } else {
            let k = Writer::new("segment_numbers", [THREADS, 1, 1]);
            sequence.search(&k, &outlet);
            let blocks = Count::size(0).div_ceil(THREADS * ITEMS);
            draft.launch(k, [blocks, 1u32.into(), 1u32.into()], [THREADS, 1, 1])?;
        }
        Ok(draft.finish())
    }
}

/// Returns for each lane how many of the numbers that lanes hold, in order, are not greater than its own number: less than `1 << bits`.
fn count_up_to(k: &Writer, numbers: Value, own: Value, bits: u32) -> Value {
    (0..bits).rev().fold(k.literal(0u32), |count, bit| {
        let step = 1u32 << bit;
        let number = k.shuffle(Shuffle::Index, numbers, k.add(count, step - 1));
        k.select(k.le(number, own), k.add(count, step), count)
    })
}

impl Sequence {
    /// A warp walks through its part. Whole rows of a segment have its number; elsewhere each lane counts the ends before its element.
    fn walk(&self, k: &Writer, run: &Count, outlet: &Outlet) {
        let lane = k.thread(Axis::X);
        let piece = self.piece(k, run);
        let most = k.sub(k.count(Count::size(1), self.index), 1);
        let walk = Walk::new(k, self, &piece);
        // Whether the open segment starts at the next element, and its end before is not among those to come.
        let starts = k.variable_with(k.eq(self.offset(k, piece.first), piece.from));
        let put = |first: Value, segment: Value, is_head: Value| {
            let (place, segment) = (k.add(first, self.wide(k, lane)), k.convert(k.min(segment, most), Type::I32));
            outlet.put(k, &[place], beside(k, first), &[segment, is_head]);
        };
        let rows = |whole: Value| {
            let (open, first) = (k.get(walk.open), k.get(walk.place));
            let start = k.select(k.get(starts), first, piece.to);
            k.for_step(first, k.add(first, whole), 32, Unroll::Never, |row| {
                put(row, open, k.eq(k.add(row, self.wide(k, lane)), start));
            });
            k.set(starts, false);
        };
        walk.walk(k, rows, |row| {
            let (open, place, after) = (k.get(walk.open), k.get(walk.place), row.after);
            let found = k.popcount(k.ballot(k.lt(after, row.count), None));
            let heads = k.or(row.heads(k), k.select(k.get(starts), k.literal(1u32), 0u32));
            let all = || {
                let most = count_up_to(k, after, lane, 5);
                let is_more = k.le(k.shuffle(Shuffle::Index, after, most), lane);
                vec![k.select(is_more, k.add(most, 1), most)]
            };
            let before = k.choose_list(k.lt(found, 16), || vec![count_up_to(k, after, lane, 4)], all)[0];
            let is_head = k.ne(k.and(heads, k.shl(k.literal(1u32), lane)), 0);
            let whole = || put(place, k.add(open, self.wide(k, before)), is_head);
            // Behind the last of 32 ends, others may come.
            let is_full = k.eq(found, 32);
            let taken = k.select(is_full, k.shuffle(Shuffle::Index, after, 31u32), row.count);
            k.if_else(k.eq(taken, 32), whole, || k.if_then(k.lt(lane, taken), whole));
            walk.go_on(k, &row, found);
            k.set(starts, is_full);
        });
    }

    /// Each thread searches for the segments of its elements.
    fn search(&self, k: &Writer, outlet: &Outlet) {
        let n = k.count(Count::size(0), self.index);
        let first = k.mul(self.wide(k, k.block(Axis::X)), THREADS * ITEMS);
        let last = k.sub(k.min(k.add(first, THREADS * ITEMS), n), 1);
        let (low, high) = (self.segment_of(k, first), self.segment_of(k, last));
        let own = k.add(first, self.wide(k, k.thread(Axis::X)));
        for item in 0..ITEMS {
            let place = k.add(own, item * THREADS);
            k.if_then(k.lt(place, n), || {
                let (from, to) = (k.variable_with(low), k.variable_with(high));
                k.set(from, low);
                k.set(to, high);
                k.while_loop(
                    || k.lt(k.get(from), k.get(to)),
                    || {
                        let middle = k.add(k.get(from), k.shr(k.sub(k.get(to), k.get(from)), 1));
                        let is_behind = k.le(self.offset(k, k.add(middle, 1)), place);
                        k.set(from, k.select(is_behind, k.add(middle, 1), k.get(from)));
                        k.set(to, k.select(is_behind, k.get(to), middle));
                    },
                );
                let segment = k.get(from);
                let is_head = k.eq(self.offset(k, segment), place);
                outlet.put(k, &[place], place, &[k.convert(segment, Type::I32), is_head]);
            });
        }
    }

    /// The segment of an element that is the same for all lanes of a warp.
    fn segment_of(&self, k: &Writer, place: Value) -> Value {
        let [_, segments, _] = self.sizes(k);
        let lane = self.wide(k, k.and(k.thread(Axis::X), 31));
        self.first_false(k, lane, (k.constant(self.index, 0), k.sub(segments, 1)), |segment| {
            k.le(self.offset(k, k.add(segment, 1)), place)
        })
    }
}
