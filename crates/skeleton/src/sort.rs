//! Sort: a stable radix sort by one or several keys, from the least significant digit on.
//!
//! On a GPU a round is one pass over eight bits ([`sweep`]). On a CPU the line is split into parts, one for
//! each block of one thread. Their code is scalar, and elements are moved one cache line at a time
//! ([`parts`]).
//!
//! The first round reads the source, the last one writes to the sink, and temporaries hold the elements
//! between rounds. Digits are taken from order-preserving unsigned integers, which are computed when a digit
//! is needed. The keys themselves are moved, so all their bits are preserved.

mod parts;
mod program;
mod sweep;

use crate::kit::{Accumulator, Writer, broadcast, scan_warp, shift_warp};
use crate::operator::Operator;
use crate::order::ordered;
use crate::{Sink, Source};
use broadloom_scalar::{Axis, Memory, Type, Unroll, Value};

/// Passes to a [`Sink`] the values of a [`Source`] on a line, sorted by the first of them. Positions with
/// equal keys keep their order.
///
/// The first results of the source are the keys, the most significant one first. The other results move with
/// them. To sort within segments, sort by the number of the segment, then by the key. Floats are ordered as
/// numbers: -0 before +0, and NaN after all numbers, also in descending order. The size of a call is the
/// length of the line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sort {
    /// Keys and values.
    pub source: Source,
    /// Order of each key.
    pub keys: Vec<SortKey>,
    /// Use of keys and values. Its position is the rank.
    pub sink: Sink,
}

/// The order of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// True for descending order.
    pub descending: bool,
    /// Number of low bits of an unsigned key that may be nonzero. `None` means all bits. Fewer bits need
    /// fewer rounds.
    pub bits: Option<u32>,
}

/// The memory that a round reads or writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RoundMemory {
    /// The source, or the sink.
    Outside,
    /// The first or the second set of temporaries.
    Set(usize),
}

/// A round: a key, the first of its bits, and the number of bits.
#[derive(Clone, Copy)]
struct Round {
    key: usize,
    shift: u32,
    bits: u32,
}

/// Number of bits of a digit on a GPU.
const GPU_BITS: u32 = crate::cost::SORT_BITS;
/// Number of values of a digit on a GPU.
const RADIX: u32 = 1 << GPU_BITS;

/// Returns the digit of a key that starts at bit `shift`, a `u32` less than `radix`.
fn digit(k: &Writer, sort: &Sort, round: Round, key: Value, shift: Value, radix: u32) -> Value {
    let how = sort.keys[round.key];
    if how.bits == Some(0) {
        return k.literal(0u32);
    }
    k.convert(k.and(k.shr(ordered(k, key, how.descending), shift), radix - 1), Type::U32)
}

/// Replaces the numbers in a row of memory by their exclusive prefix sums, in one warp. Returns the total.
fn add_up(k: &Writer, sum: &Operator, index: Type, memory: Memory, first: Value, length: Value) -> Value {
    let lane = k.thread(Axis::X);
    let carry = Accumulator::new(k, sum);
    k.for_step(0, length, 32, Unroll::Never, |row| {
        let part = k.add(row, k.convert(lane, index));
        let (there, place) = (k.lt(part, length), k.add(first, part));
        let own = k.choose_list(there, || vec![k.load(memory, place)], || sum.nothing(k));
        let up_to = scan_warp(k, sum, &own, lane);
        let before = sum.combine(k, &carry.get(k), &shift_warp(k, sum, &up_to, lane));
        k.if_then(there, || k.store(memory, place, before[0]));
        carry.add(k, &broadcast(k, &up_to, 31));
    });
    carry.get(k)[0]
}
