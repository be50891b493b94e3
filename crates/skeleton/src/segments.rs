//! Reductions of segments of a line, balanced for segments of any length.
//!
//! Elements and the ends of segments form one sequence, from the first offset on: each end follows the
//! elements of its segment. The sequence is split into equal parts. All parts therefore have the same work,
//! for one segment as for a million empty ones (Merrill and Garland's merge path). The end of segment `s` has
//! the number `offset(s + 1) - offset(0) + s` in the sequence, so the start of a part can be searched for.
//!
//! On a GPU a part is a tile of a block. A first kernel visits all ends and finds the start of each tile. In
//! the second kernel a block loads its elements into shared memory and marks the ends. Each thread walks
//! along a few items of the sequence. Open sums are scanned over the threads and, by a [`TileChain`], over
//! the blocks.
//!
//! On a CPU there are a few parts for each core. A warp searches for the start of its part and reads rows of
//! 32 neighbours. A row of tiny segments holds several of them, which a scan separates. If the operator has
//! an exact inverse, these segments are differences of prefixes of a row. Larger segments have rows of their
//! own, and 32 of them become results together. Each lane walks through a segment of its own in two cases:
//! the cost model decides that the operator is too expensive for a scan, or the source takes the number of a
//! segment. A second kernel combines segments that span several parts.

mod numbers;
mod parts;
mod rows;
mod tiles;
mod transposed;
mod walk;

pub use numbers::SegmentNumbers;

use crate::cost::{self, Costs};
use crate::kit::{Draft, Inlet, Outlet, Writer};
use crate::operator::Operator;
use crate::program::Program;
use crate::{Count, Domain, Error, Result, Sink, Source};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Type, Value};

/// Combines the values of a [`Source`] on a line within segments by an [`Operator`], in order. The results go
/// to a [`Sink`] whose positions are segments.
///
/// The offsets are a source of one integer with one position more than there are segments: segment `s` is
/// from `offset(s)` to `offset(s + 1)`. They must not decrease or exceed the length of the line. For other
/// offsets results are undefined, but no memory outside is accessed. Elements before the first offset and
/// after the last belong to no segment. The result of an empty segment is the operator's identity. The sizes
/// of a call are the length of the line and the number of segments. Inputs and scalars are those of the
/// source, the offsets and the sink.
///
/// The source may take the number of the segment with the position, an `i32`, if the machine knows it during
/// the walk ([`Costs::knows_segments`]).
///
/// ```
/// use broadloom_device::Device;
/// use broadloom_interp::Interp;
/// use broadloom_scalar::{AccessorKind, Builder, Element, Type};
/// use broadloom_skeleton::{Call, Operator, SegmentedReduce, Sink, Source};
///
/// let read = |name: &str, element: Element| {
///     let f = Builder::function(name);
///     let i = f.parameter("i", Type::I32);
///     let x = f.accessor(name, AccessorKind::Input, element, 1);
///     Source::new(f.finish_function(&[f.read(x, &[i.into()])]).unwrap(), 1).unwrap()
/// };
/// let sums = SegmentedReduce {
///     source: read("x", Element::F32),
///     offsets: read("offsets", Element::U32),
///     operator: Operator::sum(Element::F32).unwrap(),
///     sink: Sink::STORE,
/// };
/// let device = Device::new(Interp::new(Default::default()));
/// let program = sums.program(device.machine()).unwrap().load(&device).unwrap();
/// let x = device.upload(&[1.0f32, 2.0, 3.0, 4.0]).unwrap();
/// let offsets = device.upload(&[0u32, 3, 3, 4]).unwrap();
/// let result = device.allocate::<f32>(3).unwrap();
/// let inputs = [x.view::<u8>().unwrap(), offsets.view::<u8>().unwrap()];
/// let outputs = [result.view::<u8>().unwrap()];
/// program.run(&Call { inputs: &inputs, outputs: &outputs, sizes: &[4, 3], ..Call::default() }).unwrap();
/// assert_eq!(result.read().unwrap(), [6.0, 0.0, 4.0]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SegmentedReduce {
    /// The values.
    pub source: Source,
    /// Offsets of segments.
    pub offsets: Source,
    /// Operator that combines values.
    pub operator: Operator,
    /// Use of the results.
    pub sink: Sink,
}

/// Emitter of the kernels of a reduction of segments.
struct SegmentsEmitter {
    inlet: Inlet,
    /// True if the source takes the number of the segment.
    numbered: bool,
    sequence: Sequence,
    outlet: Outlet,
    operator: Operator,
}

/// The sequence of elements and ends of segments.
struct Sequence {
    offsets: Inlet,
    index: Type,
}

/// Part of the sequence that a block has.
struct SequencePart {
    number: Value,
    /// Number of ends before the part, and before the next part.
    first: Value,
    last: Value,
    /// Range of its elements.
    from: Value,
    to: Value,
}

/// Returns the index of a lane's element in a row of memory. The first index of the row is uniform. With 64
/// bits, an executor knows that neighbours are contiguous.
fn beside(k: &Writer, first: Value) -> Value {
    k.add(k.convert(first, Type::U64), k.convert(k.thread(Axis::X), Type::U64))
}

impl SegmentedReduce {
    /// Returns the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        let bad = |reason: String| Err(Error::Pattern { pattern: "segmented reduce", reason });
        let types = self.operator.types();
        if self.source.results() != types {
            return bad(format!("`{}` does not give what the operator takes", self.source.function().name()));
        }
        match self.offsets.results()[..] {
            [ty] if ty.is_scalar() && ty.element().is_integer() => {}
            _ => return bad(format!("`{}` does not give one integer", self.offsets.function().name())),
        }
        let in_vectors = Costs::of(machine).in_vectors();
        let numbered = match self.source.given()[..] {
            [] => false,
            [Type::I32] if Costs::of(machine).knows_segments() => true,
            _ => return bad(format!("`{}` takes values that are not given", self.source.function().name())),
        };
        self.sink.check("segmented reduce", 1, &types)?;
        let index = Domain::LINE.check_positions("segmented reduce", &[&self.source, &self.offsets], &self.sink)?;
        let (n, segments) = (Count::size(0), Count::size(1));
        let mut draft = Draft::new("segmented reduce", 2);
        let (inlet, offsets) = (draft.source(&self.source), draft.source(&self.offsets));
        let outlet = draft.sink(&self.sink, &types, &segments);
        if index == Type::U32 {
            draft.limit(n + segments);
        } else if numbered {
            draft.limit(segments);
        }
        let parts =
            SegmentsEmitter { inlet, numbered, sequence: Sequence { offsets, index }, outlet, operator: self.operator.clone() };
        if in_vectors {
            parts.parts(&mut draft, machine)?;
        } else {
            parts.tiles(&mut draft)?;
        }
        Ok(draft.finish())
    }
}

impl Sequence {
    /// Returns the number of elements from the first offset on, the number of ends, and their sum.
    fn sizes(&self, k: &Writer) -> [Value; 3] {
        let (n, segments) = (k.count(Count::size(0), self.index), k.count(Count::size(1), self.index));
        let n = k.sub(n, self.base(k));
        [n, segments, k.add(n, segments)]
    }

    /// Returns the first offset, the start of the sequence.
    fn base(&self, k: &Writer) -> Value {
        self.offset(k, k.constant(self.index, 0))
    }

    fn wide(&self, k: &Writer, value: Value) -> Value {
        k.convert(value, self.index)
    }

    /// Returns an offset, limited to the length of the line, so that no read is outside for any offsets.
    fn offset(&self, k: &Writer, segment: Value) -> Value {
        k.min(self.wide(k, self.offsets.at(k, &[segment])[0]), k.count(Count::size(0), self.index))
    }

    /// Returns the number of a segment's end in the sequence.
    fn end(&self, k: &Writer, segment: Value) -> Value {
        k.sub(k.add(self.offset(k, k.add(segment, 1)), segment), self.base(k))
    }

    /// Counts the ends among the first `number` of the sequence. All lanes of a warp must call it with the
    /// same number.
    fn ends_before(&self, k: &Writer, number: Value, lane: Value) -> Value {
        let [n, segments, _] = self.sizes(k);
        let (low, high) = (k.sub(k.max(number, n), n), k.min(number, segments));
        self.first_false(k, self.wide(k, lane), low, high, |segment| k.lt(self.end(k, segment), number))
    }

    /// Returns the first number of a range for which a condition is false, or the end of the range. All lanes
    /// of a warp search together. The condition must be true up to some number, and false from there on.
    fn first_false(&self, k: &Writer, lane: Value, low: Value, high: Value, holds: impl Fn(Value) -> Value) -> Value {
        let (low, high) = (k.variable_with(low), k.variable_with(high));
        k.while_loop(
            || k.lt(k.get(low), k.get(high)),
            || {
                let (first, last) = (k.get(low), k.get(high));
                let step = k.shr(k.add(k.sub(last, first), 31), 5);
                let asked = k.min(k.add(first, k.sub(k.mul(k.add(lane, 1), step), 1)), k.sub(last, 1));
                // True up to some lane, false from there on.
                let before = self.wide(k, k.popcount(k.ballot(holds(asked), None)));
                let next = k.add(first, k.mul(before, step));
                k.set(low, k.min(next, last));
                k.set(high, k.min(k.sub(k.add(next, step), 1), last));
            },
        );
        k.get(low)
    }

    /// Returns the number of parts for a machine with vectors, and the length of each in the sequence.
    fn parts(&self, machine: &Machine) -> (Count, Count) {
        let units = (Count::size(0) + Count::size(1)).div_ceil(cost::SEGMENT_PART);
        let parts = units.clone().min(Costs::of(machine).busy(cost::SEGMENT_PARTS));
        (parts.clone(), units.div_ceil(parts) * cost::SEGMENT_PART)
    }

    /// Returns the part of a block, which is one warp.
    fn piece(&self, k: &Writer, run: &Count) -> SequencePart {
        let lane = k.thread(Axis::X);
        let number = self.wide(k, k.block(Axis::X));
        let [_, _, all] = self.sizes(k);
        let run = k.count(run.clone(), self.index);
        let from = k.min(k.mul(number, run), all);
        let to = k.min(k.add(from, run), all);
        let (first, last) = (self.ends_before(k, from, lane), self.ends_before(k, to, lane));
        let base = self.base(k);
        SequencePart { number, first, last, from: k.add(base, k.sub(from, first)), to: k.add(base, k.sub(to, last)) }
    }
}
