//! The segment number of each element.
//!
//! The parts are those of a [reduction](super): elements and the ends of segments form one sequence that is
//! split into equal parts. On a CPU a warp walks along its part, 32 elements and ends at a time. On a GPU a
//! block searches for the start of its tile, marks the starts of segments in shared memory, and scans the
//! marks. It needs no data from other blocks.

use super::walk::WarpPosition;
use super::{Sequence, beside};
use crate::cost::{self, Costs};
use crate::kit::{Draft, Outlet, Writer, last_bit};
use crate::program::Program;
use crate::{Count, Domain, Error, Result, Sink, Source};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Element, Shuffle, Type, Unroll, Value, WarpReduce};

/// Passes to a [`Sink`] two values at every position of a line: the number of its segment, an `i32`, and a
/// `bool` that is true at the start of the segment.
///
/// The offsets are a source of one integer with one position more than there are segments. There is at least
/// one segment. Segment `s` is from `offset(s)` to `offset(s + 1)`. The offsets must not decrease, the first
/// must be 0, and the last one the length of the line. For other offsets results are undefined, but no memory
/// outside is accessed. The sizes of a call are the length of the line and the number of segments. Inputs and
/// scalars are those of the line, whose values are not used, then of the offsets and the sink.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SegmentNumbers {
    /// The elements that are numbered; their values are not used.
    pub line: Source,
    /// Offsets of segments.
    pub offsets: Source,
    /// Use of the numbers.
    pub sink: Sink,
}

/// Types of the values.
const VALUES: [Type; 2] = [Type::I32, Type::BOOL];
/// Number of threads of a block on a GPU, and of elements of a thread.
const THREADS: u32 = cost::BLOCK_THREADS;
const ITEMS: u32 = cost::NUMBERED_ITEMS;
const WARPS: u32 = THREADS / 32;
/// Number of elements for which a block has shared memory, and the length of its part of the sequence. Up to
/// three elements of its first row of four are before its first element.
const ROOM: u32 = THREADS * ITEMS;
const TILE: u32 = ROOM - 4;

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
            sequence.number(&k, &outlet);
            // Nothing is launched if there are no elements.
            let blocks = (Count::size(0) + Count::size(1)).div_ceil(TILE) * Count::size(0).min(1u32);
            draft.launch(k, [blocks, 1u32.into(), 1u32.into()], [THREADS, 1, 1])?;
        }
        Ok(draft.finish())
    }
}

/// Returns for each lane how many numbers of the lanes, which are in order, are at most its own number. The
/// count must be less than `1 << bits`.
fn count_up_to(k: &Writer, numbers: Value, own: Value, bits: u32) -> Value {
    (0..bits).rev().fold(k.literal(0u32), |count, bit| {
        let step = 1u32 << bit;
        let number = k.shuffle(Shuffle::Index, numbers, k.add(count, step - 1));
        k.select(k.le(number, own), k.add(count, step), count)
    })
}

impl Sequence {
    /// Walks through the part of a warp. Whole rows of one segment have its number. In other rows each lane
    /// counts the ends before its element.
    fn walk(&self, k: &Writer, run: &Count, outlet: &Outlet) {
        let lane = k.thread(Axis::X);
        let piece = self.piece(k, run);
        let most = k.sub(k.count(Count::size(1), self.index), 1);
        let walk = WarpPosition::new(k, self, &piece);
        // True if the open segment starts at the next element and the end before it has been passed.
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
        walk.walk(k, None, rows, |row| {
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
            // After the last of 32 ends, more ends may follow.
            let is_full = k.eq(found, 32);
            let taken = k.select(is_full, k.shuffle(Shuffle::Index, after, 31u32), row.count);
            k.if_else(k.eq(taken, 32), whole, || k.if_then(k.lt(lane, taken), whole));
            walk.go_on(k, &row, found);
            k.set(starts, is_full);
        });
    }

    /// Numbers the elements of a block's tile. The first elements of segments are marked in shared memory
    /// with the segment. An element belongs to the last marked segment up to it, or else to the segment that
    /// is open at the start of the tile.
    fn number(&self, k: &Writer, outlet: &Outlet) {
        let thread = k.thread(Axis::X);
        let (lane, warp) = (k.and(thread, 31), k.shr(thread, 5));
        let n = k.count(Count::size(0), self.index);
        let [_, segments, all] = self.sizes(k);
        let from = k.min(k.mul(self.wide(k, k.block(Axis::X)), TILE), all);
        let to = k.min(k.add(from, TILE), all);
        let marks = k.shared(Element::U32, ROOM);
        let found = k.shared(self.index.element(), 2);
        for row in 0..ITEMS / 4 {
            k.store(marks, k.mul(k.add(thread, row * THREADS), 4), k.vector(&[k.literal(0u32); 4]));
        }
        // Both ends of the tile are searched for at the same time.
        k.if_then(k.lt(warp, 2), || {
            let ends = self.ends_before(k, k.select(k.eq(warp, 0), from, to), lane);
            k.if_then(k.eq(lane, 0), || k.store(found, warp, ends));
        });
        k.barrier();

        let narrow = |value: Value| k.convert(value, Type::U32);
        let (first_end, last_end) = (k.load(found, 0), k.load(found, 1));
        let first = k.add(k.sub(from, first_end), self.base(k));
        // Decreasing offsets do not lead outside of the tile or the line.
        let span = narrow(k.sub(to, from));
        let ends = k.min(narrow(k.sub(k.max(last_end, first_end), first_end)), span);
        let elements = narrow(k.min(self.wide(k, k.sub(span, ends)), k.sub(k.max(n, first), first)));
        // Rows of four elements start at multiples of four.
        let skipped = narrow(k.and(first, 3));
        let bounds = |number: Value| {
            let segment = k.min(k.add(first_end, self.wide(k, k.min(number, ends))), k.sub(segments, 1));
            (self.offset(k, segment), self.offset(k, k.add(segment, 1)))
        };
        let mark = |number: Value, (start, end): (Value, Value)| {
            let is_there = k.and(k.le(number, ends), k.lt(k.add(first_end, self.wide(k, number)), segments));
            let place = k.sub(start, first);
            let is_marked = k.and(k.lt(start, end), k.lt(place, self.wide(k, elements)));
            k.if_then(k.and(is_there, is_marked), || k.store(marks, k.add(narrow(place), skipped), k.add(number, 1)));
        };
        // These loads are in flight together. Few tiles have more ends.
        let numbers: Vec<Value> = (0..4u32).map(|turn| k.add(thread, turn * THREADS)).collect();
        let loaded: Vec<(Value, Value)> = numbers.iter().map(|number| bounds(*number)).collect();
        numbers.into_iter().zip(loaded).for_each(|(number, loaded)| mark(number, loaded));
        k.for_step(k.add(thread, 4 * THREADS), k.add(ends, 1), THREADS, Unroll::Never, |number| mark(number, bounds(number)));
        k.barrier();

        // A warp has consecutive rows. The last mark before them comes from another warp.
        let row_of_warp = k.mul(warp, 32 * ITEMS);
        let quad = |row: Value| {
            let quad = k.load_vector(marks, k.add(row, k.mul(lane, 4)), 4);
            [0, 1, 2, 3].map(|item| k.lane(quad, item))
        };
        let last_of = |quad: [Value; 4]| k.max(k.max(quad[0], quad[1]), k.max(quad[2], quad[3]));
        let last = (0..ITEMS / 4).map(|row| last_of(quad(k.add(row_of_warp, row * 128)))).reduce(|a, b| k.max(a, b));
        let last = k.warp_reduce(WarpReduce::Max, last.unwrap_or(k.literal(0u32)), None);
        let of_warps = k.shared(Element::U32, WARPS);
        k.if_then(k.eq(lane, 0), || k.store(of_warps, warp, last));
        k.barrier();
        let others = k.select(k.lt(lane, warp), k.load(of_warps, k.and(lane, WARPS - 1)), 0u32);
        let before = k.variable_with(k.max(k.warp_reduce(WarpReduce::Max, others, None), 1));
        let end = k.add(skipped, elements);
        let is_aligned = outlet.stores_rows().then(|| k.aligned(outlet.row_addresses(k)));
        let line = k.sub(first, self.wide(k, skipped));
        k.for_step(row_of_warp, k.min(k.add(row_of_warp, 32 * ITEMS), end), 128, Unroll::Never, |row| {
            let quad = quad(row);
            let last = last_of(quad);
            let lower = k.and(k.ballot(k.ne(last, 0), None), k.sub(k.shl(k.literal(1u32), lane), 1));
            let left = k.select(k.ne(lower, 0), k.shuffle(Shuffle::Index, last, last_bit(k, lower)), 0u32);
            let mut mark = k.max(k.get(before), left);
            k.set(before, k.max(k.get(before), k.warp_reduce(WarpReduce::Max, last, None)));
            let values = quad.map(|own| {
                mark = k.max(mark, own);
                let segment = k.min(k.add(first_end, self.wide(k, k.sub(mark, 1))), k.sub(segments, 1));
                vec![k.convert(segment, Type::I32), k.ne(own, 0)]
            });
            let place = k.add(row, k.mul(lane, 4));
            let start = k.add(line, self.wide(k, place));
            let apart = || {
                for (item, values) in (0..4u32).zip(&values) {
                    let place = k.add(place, item);
                    let position = k.add(start, item);
                    k.if_then(k.and(k.ge(place, skipped), k.lt(place, end)), || outlet.put(k, &[position], position, values));
                }
            };
            match is_aligned {
                Some(is_aligned) => {
                    let is_whole = k.and(k.ge(place, skipped), k.le(k.add(place, 4), end));
                    k.if_else(k.and(is_aligned, is_whole), || outlet.put_row(k, start, &values), apart);
                }
                None => apart(),
            }
        });
    }
}
