//! The number of the segment of each element.
//!
//! On a CPU the parts are those of a [reduction](super): a warp walks along its elements and the ends of segments beside them, 32 at a time. On a GPU a block searches for
//! the segments of its first and last element, and each thread for its own among those between.

use super::Sequence;
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

/// Returns for each lane how many of the ends that lanes hold, in order, are not behind its place.
fn ends_up_to(k: &Writer, ends: Value, place: Value) -> Value {
    let count = [16u32, 8, 4, 2, 1].into_iter().fold(k.literal(0u32), |count, step| {
        let end = k.shuffle(Shuffle::Index, ends, k.add(count, step - 1));
        k.select(k.le(end, place), k.add(count, step), count)
    });
    let end = k.shuffle(Shuffle::Index, ends, count);
    k.select(k.le(end, place), k.add(count, 1), count)
}

impl Sequence {
    /// A warp walks through its part, 32 elements at a time. Each lane holds the end of a segment, and a window of 32 ends moves along with the elements.
    fn walk(&self, k: &Writer, run: &Count, outlet: &Outlet) {
        let lane = self.wide(k, k.thread(Axis::X));
        let piece = self.piece(k, run);
        let [_, segments, _] = self.sizes(k);
        let ends_from = |segment: Value| self.offset(k, k.min(k.add(k.add(segment, lane), 1), segments));
        // The first segment of the window, where it starts, and the ends.
        let base = k.variable_with(piece.first);
        let start = k.variable_with(self.offset(k, piece.first));
        let window = k.variable_with(ends_from(piece.first));
        let count_up_to = |place: Value| k.popcount(k.ballot(k.le(k.get(window), place), None));
        let (number, is_head) = (k.variable(Type::I32), k.variable(Type::BOOL));
        // The number of the segment that so many ends come before, and whether it starts at a place.
        let found = |ends: Value, place: Value| {
            let segment = k.min(k.add(k.get(base), self.wide(k, ends)), k.sub(segments, 1));
            let before = k.shuffle(Shuffle::Index, k.get(window), k.sub(k.max(ends, 1), 1));
            let starts = k.select(k.eq(ends, 0), k.get(start), before);
            (k.convert(segment, Type::I32), k.eq(place, starts))
        };
        let row = |first: Value, to: Value, is_whole: bool| {
            let (place, last) = (k.add(first, lane), k.sub(to, 1));
            let (low, high) = (count_up_to(first), count_up_to(last));
            let set = |(segment, starts): (Value, Value)| {
                k.set(number, segment);
                k.set(is_head, starts);
            };
            k.if_else(k.eq(low, high), || set(found(low, place)), || set(found(ends_up_to(k, k.get(window), place), place)));
            // Segments of the next window begin in this row, or are empty.
            k.while_loop(
                || k.and(k.eq(count_up_to(last), 32), k.lt(k.add(k.get(base), 32), segments)),
                || {
                    k.set(start, k.shuffle(Shuffle::Index, k.get(window), 31u32));
                    k.set(base, k.add(k.get(base), 32));
                    k.set(window, ends_from(k.get(base)));
                    let (segment, starts) = found(ends_up_to(k, k.get(window), place), place);
                    let is_later = k.ge(place, k.get(start));
                    set((k.select(is_later, segment, k.get(number)), k.select(is_later, starts, k.get(is_head))));
                },
            );
            let put = || outlet.put(k, &[place], place, &[k.get(number), k.get(is_head)]);
            if is_whole { put() } else { k.if_then(k.lt(place, to), put) }
        };
        let rest = k.sub(piece.to, k.and(k.sub(piece.to, piece.from), 31));
        k.for_step(piece.from, rest, 32, Unroll::Never, |first| row(first, k.add(first, 32), true));
        k.if_then(k.lt(rest, piece.to), || row(rest, piece.to, false));
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
