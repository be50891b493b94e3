//! The walk of a warp along elements and ends of segments, on a CPU.

use super::{Sequence, SequencePart};
use crate::Count;
use crate::kit::Writer;
use broadloom_scalar::{Axis, Type, Value, Variable, WarpReduce};

/// The position of a warp in its part of the sequence.
pub(super) struct WarpPosition<'a> {
    sequence: &'a Sequence,
    piece: &'a SequencePart,
    /// Segment whose end comes next.
    pub(super) open: Variable,
    /// Next element.
    pub(super) place: Variable,
    /// Number of steps so far. Each step takes at least an element or an end, so the walk terminates for any
    /// offsets.
    steps: Variable,
}

/// Number of elements of two rows that are taken together.
pub(super) const PAIR: u32 = 64;

/// A row of up to 32 elements, and 32 ends. Each lane has one of each.
pub(super) struct Row {
    /// Number of elements, a `u32`.
    pub(super) count: Value,
    /// True if the row is known to have 32 elements.
    pub(super) is_whole: bool,
    /// Number of elements before the end of the lane's segment, a `u32`. It is 32 or more if the segment does
    /// not end in the row.
    pub(super) after: Value,
}

impl Row {
    /// Returns the elements at which segments start, one bit each.
    pub(super) fn heads(&self, k: &Writer) -> Value {
        k.warp_reduce(WarpReduce::Or, k.shl(k.literal(1u32), self.after), None)
    }
}

impl<'a> WarpPosition<'a> {
    /// Starts at the start of a part.
    pub(super) fn new(k: &Writer, sequence: &'a Sequence, piece: &'a SequencePart) -> WarpPosition<'a> {
        let none = k.constant(sequence.index, 0);
        let [open, place, steps] = [piece.first, piece.from, none].map(|value| k.variable_with(value));
        WarpPosition { sequence, piece, open, place, steps }
    }

    /// Takes steps to the end of the part. `rows` handles whole rows of elements of the open segment with
    /// more elements after them; it gets the number of elements. `row` handles any other row. `first` is
    /// emitted before each step, and may take steps of its own.
    pub(super) fn walk(&self, k: &Writer, first: Option<&dyn Fn()>, rows: impl Fn(Value), row: impl Fn(Row)) {
        let piece = self.piece;
        let most = k.add(k.sub(piece.to, piece.from), k.sub(piece.last, piece.first));
        k.while_loop(
            || k.and(k.lt(k.get(self.steps), most), k.lt(k.get(self.place), piece.to)),
            || {
                k.set(self.steps, k.add(k.get(self.steps), 1));
                if let Some(first) = first {
                    first();
                    k.if_then(k.ge(k.get(self.place), piece.to), || k.break_loop());
                }
                let (open, place) = (k.get(self.open), k.get(self.place));
                let left = k.sub(k.max(k.sub(self.end(k, open), place), 1), 1);
                let whole = k.sub(left, k.and(left, 31));
                let other = || {
                    // Most rows are not at the edge of a part, and need no more checks.
                    let is_inner = k.and(k.le(k.add(open, 32), piece.last), k.le(k.add(place, 32), piece.to));
                    k.if_else(is_inner, || row(self.row(k, true)), || row(self.row(k, false)));
                };
                let long = || {
                    rows(whole);
                    k.set(self.place, k.add(place, whole));
                };
                k.if_else(k.eq(whole, 0), other, long);
            },
        );
    }

    /// Takes two rows at a time, as long as at least one and fewer than 32 segments end in them. `rows` gets
    /// two numbers. The first is the number of elements before the end of each lane's segment, 64 or more if
    /// it does not end in the rows. The second is the number of segments that end. This saves most checks of
    /// a step, and more lanes have an end.
    pub(super) fn pairs(&self, k: &Writer, rows: impl Fn(Value, Value)) {
        let is_inner = || {
            let (open, place) = (k.get(self.open), k.get(self.place));
            k.and(k.le(k.add(open, 32), self.piece.last), k.le(k.add(place, PAIR), self.piece.to))
        };
        k.while_loop(is_inner, || {
            let row = self.row(k, true);
            let ended = k.popcount(k.ballot(k.lt(row.after, PAIR), None));
            k.if_then(k.ge(k.sub(ended, 1), 31), || k.break_loop());
            rows(row.after, ended);
            k.set(self.place, k.add(k.get(self.place), PAIR));
            k.set(self.open, k.add(k.get(self.open), self.sequence.wide(k, ended)));
        });
    }

    fn offset(&self, k: &Writer, number: Value) -> Value {
        self.sequence.wide(k, self.sequence.offsets.at(k, &[number])[0])
    }

    /// Returns the end of a segment. For any offsets, it is neither before the next element nor after the
    /// part.
    fn end(&self, k: &Writer, segment: Value) -> Value {
        let number = k.min(k.add(segment, 1), k.count(Count::size(1), self.sequence.index));
        k.max(k.min(self.offset(k, number), self.piece.to), k.get(self.place))
    }

    fn row(&self, k: &Writer, is_inner: bool) -> Row {
        let first = k.get(self.place);
        let segment = k.add(k.get(self.open), self.sequence.wide(k, k.thread(Axis::X)));
        let narrow = |number: Value, most: u32| k.convert(k.min(number, most), Type::U32);
        let number = k.add(segment, 1);
        let number = if is_inner { number } else { k.min(number, k.count(Count::size(1), self.sequence.index)) };
        let after = k.sub(self.offset(k, number), first);
        let after = if self.sequence.index == Type::U32 { after } else { narrow(after, 64) };
        // There are no ends after the last segment.
        let after = if is_inner { after } else { k.select(k.lt(segment, self.piece.last), after, 64u32) };
        let count = if is_inner { k.literal(32u32) } else { narrow(k.sub(self.piece.to, first), 32) };
        Row { count, is_whole: is_inner, after }
    }

    /// Continues after a row in which `ended` segments ended. If all 32 ended, more may end in it: the next
    /// row then starts after the last end.
    pub(super) fn go_on(&self, k: &Writer, row: &Row, ended: Value) {
        let (open, place) = (k.get(self.open), k.get(self.place));
        let behind = k.add(place, self.sequence.wide(k, row.count));
        // A branch, so that the next row does not wait for the load.
        k.if_else(k.eq(ended, 32), || k.set(self.place, self.end(k, k.add(open, 31))), || k.set(self.place, behind));
        k.set(self.open, k.add(open, self.sequence.wide(k, ended)));
    }
}
