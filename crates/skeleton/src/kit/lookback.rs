//! Look-back: finding the combined values before a tile while other tiles are still in progress.
//!
//! A pass over a line takes it tile by tile, one tile per block. A block publishes the combined values of its
//! tile. It waits for the values that other blocks publish for the tiles before it:
//!
//! - 32 tiles form a *group*, 32 groups a *range*. A tile is published as soon as it has been read. The last
//!   tile of a group publishes the group as soon as it has seen the other tiles. The last tile of a range
//!   publishes everything up to the end of the range.
//! - The prefix of a tile has three parts: everything before its range, the earlier groups of its range, and
//!   the earlier tiles of its group. Three warps wait for the three parts at the same time.
//!
//! A tile waits for at most 63 entries, at any place of the line. Values are always combined in the same way,
//! independent of the order in which blocks run. Results therefore repeat bit for bit, also for floats.
//!
//! Rejected: looking back until some tile has published its whole prefix (Merrill and Garland's decoupled
//! look-back). The way it combines values depends on timing.
//!
//! Rejected: reading the tiles of the preceding groups instead of waiting for the entry that the last tile of
//! each group publishes. This saves one trip through memory. On an H200 scans were no faster and packs were
//! slower.
//!
//! **Blocks wait only for blocks with smaller numbers.** Every device starts blocks in the order of their
//! numbers. A GPU does so: CUB's scans depend on it too, though no manual promises it. The CPU takes blocks
//! from a counter, and the interpreter runs them one by one. A block that another block waits for has
//! therefore started, and no block waits forever. Blocks that take numbers from a counter in memory, as in
//! CUB's one-sweep sort, do not need this order. On an H200 the counter took 6 % of a scan.
//!
//! **Each word carries its own flag.** Published values are split into 64-bit words, each with a bit that
//! marks the word as present. A word is written once, atomically, so neither fences nor an order between
//! words are needed.

use super::{Accumulator, Draft, Shared, Writer, broadcast, reduce_warp};
use crate::Count;
use crate::operator::Operator;
use crate::program::Argument;
use broadloom_scalar::{Axis, Element, Memory, Order, Scope, Type, Unroll, Value, Vote};

/// Number of tiles per group and of groups per range: the lanes of a warp.
const FAN: u32 = crate::cost::LANES;
/// Number of bits of a word without the flag.
const PAYLOAD: u32 = 63;
/// Number of warps that wait.
const WAITING: u32 = crate::cost::WAITING_WARPS;

/// Lines of tiles whose results depend on the tiles before them. Each block of a kernel has one tile.
#[derive(Clone, Debug)]
pub struct TileChain {
    operator: Operator,
    index: Type,
    /// Number of tiles of a line.
    tiles: Count,
    memory: usize,
    pieces: Vec<BitRun>,
    /// Number of words per entry.
    words: u32,
}

/// A run of bits from one lane of a value, and its place in the words.
#[derive(Clone, Copy, Debug)]
struct BitRun {
    value: usize,
    lane: usize,
    /// First bit within the lane. `bits` is the number of bits.
    shift: u32,
    bits: u32,
    word: u32,
    place: u32,
}

/// Splits values of these types into pieces, each within one word. Returns the pieces and the number of
/// words.
fn pieces(types: &[Type]) -> (Vec<BitRun>, u32) {
    let (mut pieces, mut word, mut place) = (vec![], 0, 0);
    for (value, ty) in types.iter().enumerate() {
        let all = ty.element().bits();
        for lane in 0..ty.lanes() {
            for shift in (0..all).step_by(32) {
                let bits = (all - shift).min(32);
                if place + bits > PAYLOAD {
                    (word, place) = (word + 1, 0);
                }
                pieces.push(BitRun { value, lane, shift, bits, word, place });
                place += bits;
            }
        }
    }
    (pieces, word + 1)
}

impl TileChain {
    /// Makes chains for `lines` lines of `tiles` tiles each. `index` is the type of tile numbers.
    pub fn new(draft: &mut Draft, operator: &Operator, index: Type, lines: &Count, tiles: &Count) -> TileChain {
        TileChain::with(draft, operator, index, lines, tiles, true)
    }

    /// Makes a chain for one line whose entries an earlier kernel [clears](TileChain::clear).
    pub fn cleared_by_kernel(draft: &mut Draft, operator: &Operator, index: Type, tiles: &Count) -> TileChain {
        TileChain::with(draft, operator, index, &Count::Constant(1), tiles, false)
    }

    fn with(draft: &mut Draft, operator: &Operator, index: Type, lines: &Count, tiles: &Count, zeroed: bool) -> TileChain {
        let (pieces, words) = pieces(&operator.types());
        let chain = TileChain { operator: operator.clone(), index, tiles: tiles.clone(), memory: 0, pieces, words };
        let bytes = (lines.clone() * chain.entries() * words) * 8u32;
        TileChain { memory: draft.temporary(bytes, zeroed), ..chain }
    }

    /// Returns the number of 64-bit words of an entry. One bit of each word marks it as present.
    pub fn words(&self) -> u32 {
        self.words
    }

    /// Clears all entries, in a kernel before the one that publishes. Each of `threads` threads calls it with
    /// its number.
    pub fn clear(&self, k: &Writer, thread: Value, threads: &Count) {
        let all = k.count(self.entries() * self.words, self.index);
        k.for_step(thread, all, k.count(threads.clone(), self.index), Unroll::Never, |word| {
            k.store(self.memory(k), word, k.literal(0u64));
        });
    }

    fn groups(&self) -> Count {
        self.tiles.clone().div_ceil(FAN)
    }

    /// Returns the number of entries of a line.
    fn entries(&self) -> Count {
        self.tiles.clone() + self.groups() + self.groups().div_ceil(FAN)
    }

    fn memory(&self, k: &Writer) -> Memory {
        k.memory(Argument::Temporary(self.memory), Element::U64)
    }

    /// Returns the number of the block, which is the number of its tile.
    pub fn number(&self, k: &Writer) -> Value {
        k.convert(k.block(Axis::X), self.index)
    }

    /// Publishes an entry. The entries of a line are its tiles, then its groups, then its ranges.
    pub fn publish(&self, k: &Writer, entry: Value, values: &[Value]) {
        let mut words = vec![k.literal(1u64 << PAYLOAD); self.words as usize];
        for piece in &self.pieces {
            let lane = k.lane(values[piece.value], piece.lane);
            let bits = match k.type_of(lane).element().unsigned() {
                Some(unsigned) => k.bitcast(lane, unsigned),
                None => lane,
            };
            let bits = k.convert(bits, Type::U64);
            let part = if piece.shift == 0 { bits } else { k.shr(bits, piece.shift) };
            let part = if piece.shift == 0 && piece.bits == 32 { k.and(part, u64::from(u32::MAX)) } else { part };
            let word = &mut words[piece.word as usize];
            *word = k.or(*word, if piece.place == 0 { part } else { k.shl(part, piece.place) });
        }
        for (number, word) in (0..self.words).zip(words) {
            k.store_as(self.memory(k), self.place(k, entry, number), word, Order::Relaxed(Scope::Device), Default::default());
        }
    }

    fn place(&self, k: &Writer, entry: Value, word: u32) -> Value {
        let entry = k.convert(entry, Type::U64);
        k.add(if self.words == 1 { entry } else { k.mul(entry, self.words) }, word)
    }

    fn values(&self, k: &Writer, words: &[Value]) -> Vec<Value> {
        let types = self.operator.types();
        let mut lanes: Vec<Vec<Value>> = types.iter().map(|ty| vec![k.literal(0u64); ty.lanes()]).collect();
        for piece in &self.pieces {
            let word = words[piece.word as usize];
            let part = if piece.place == 0 { word } else { k.shr(word, piece.place) };
            let part = k.and(part, u64::MAX >> (64 - piece.bits));
            let lane = &mut lanes[piece.value][piece.lane];
            *lane = if piece.shift == 0 { part } else { k.or(*lane, k.shl(part, piece.shift)) };
        }
        let lane = |ty: &Type, bits: Value| match ty.element().unsigned() {
            Some(unsigned) => k.bitcast(k.convert(bits, unsigned), ty.element()),
            None => k.ne(bits, 0),
        };
        let vector = |(ty, lanes): (&Type, Vec<Value>)| {
            let lanes: Vec<Value> = lanes.into_iter().map(|bits| lane(ty, bits)).collect();
            if ty.is_scalar() { lanes[0] } else { k.vector(&lanes) }
        };
        types.iter().zip(lanes).map(vector).collect()
    }

    /// Loads an entry for each lane where `wanted` is true, and the identity for the others. All lanes of a
    /// warp must call it.
    fn wait(&self, k: &Writer, entry: Value, wanted: Value) -> Vec<Value> {
        self.wait_until(k, entry, wanted, |_, there| k.vote(Vote::All, there, None))
    }

    /// Loads entries and waits until all are present from the last ended one on. An entry is ended if its
    /// first value is true. Earlier entries may be missing, and are then the identity.
    fn wait_since_end(&self, k: &Writer, entry: Value, wanted: Value) -> Vec<Value> {
        self.wait_until(k, entry, wanted, |first_word, there| {
            let missing = k.not(k.ballot(there, None));
            let ended = k.and(k.and(wanted, there), k.ne(k.and(first_word, 1), 0));
            // The last missing lane is before the last ended lane. No lane is both.
            k.le(missing, k.ballot(ended, None))
        })
    }

    fn wait_until(&self, k: &Writer, entry: Value, wanted: Value, enough: impl Fn(Value, Value) -> Value) -> Vec<Value> {
        let words: Vec<_> = (0..self.words).map(|_| k.variable_with(k.literal(0u64))).collect();
        let waits = k.variable_with(k.literal(true));
        let is_there = k.variable_with(k.literal(false));
        k.while_loop(
            || k.get(waits),
            || {
                k.if_then(wanted, || {
                    for (number, word) in (0..self.words).zip(&words) {
                        let order = Order::Relaxed(Scope::Device);
                        k.set(*word, k.load_as(self.memory(k), self.place(k, entry, number), 1, order, Default::default()));
                    }
                });
                let all = words.iter().map(|word| k.get(*word)).reduce(|a, b| k.and(a, b)).unwrap_or(k.literal(0u64));
                let there = k.or(k.not(wanted), k.ne(k.shr(all, PAYLOAD), 0));
                k.set(waits, k.not(enough(k.get(words[0]), there)));
                k.set(is_there, k.and(wanted, there));
            },
        );
        let words: Vec<Value> = words.into_iter().map(|word| k.get(word)).collect();
        let nothing = self.operator.nothing(k);
        let values = self.values(k, &words);
        let is_there = k.get(is_there);
        values.into_iter().zip(nothing).map(|(value, nothing)| k.select_value(is_there, value, nothing)).collect()
    }

    /// Returns the combined values before a tile since the last end of a segment, on the only line. The
    /// operator must be [segmented](Operator::segmented). One warp calls it once, after the tile was
    /// [published](TileChain::publish). The first lane of the warp has the result.
    pub fn since_end(&self, k: &Writer, tile: Value, whole: &[Value]) -> Vec<Value> {
        self.by_one_warp(k, tile, whole, true)
    }

    /// Publishes the values of a tile and returns the combined values before it on the only line, for blocks
    /// of one warp. All lanes call it once. The first lane must have the values of the tile. All lanes have
    /// the result.
    pub fn before_warp(&self, k: &Writer, tile: Value, whole: &[Value]) -> Vec<Value> {
        k.if_then(k.eq(k.thread(Axis::X), 0), || self.publish(k, tile, whole));
        broadcast(k, &self.by_one_warp(k, tile, whole, false), 0)
    }

    fn by_one_warp(&self, k: &Writer, tile: Value, whole: &[Value], since_end: bool) -> Vec<Value> {
        let operator = &self.operator;
        let lane = k.and(k.thread(Axis::X), 31);
        let is_first = k.eq(lane, 0);
        let narrow = |value: Value| k.convert(value, Type::U32);
        let (group, range) = (k.shr(tile, 5), k.shr(tile, 10));
        let groups_at = k.count(self.tiles.clone(), self.index);
        let ranges_at = k.add(groups_at, k.count(self.groups(), self.index));
        let entries = |first: Value, count: Value| {
            let entry = k.add(first, k.convert(lane, self.index));
            let wanted = k.lt(lane, count);
            let found = if since_end { self.wait_since_end(k, entry, wanted) } else { self.wait(k, entry, wanted) };
            reduce_warp(k, operator, &found, FAN)
        };
        let before = Accumulator::new(k, operator);
        let prepend = |found: &[Value]| before.set(k, &operator.combine(k, found, &before.get(k)));
        // The earlier tiles of the group, then the earlier groups of the range, then the earlier ranges,
        // until a segment has ended.
        let in_group = k.and(tile, FAN - 1);
        before.set(k, &entries(k.sub(tile, in_group), narrow(in_group)));
        let is_last = k.eq(in_group, FAN - 1);
        k.if_then(k.and(is_first, is_last), || {
            self.publish(k, k.add(groups_at, group), &operator.combine(k, &before.get(k), whole));
        });
        let is_open = || if since_end { k.not(broadcast(k, &before.get(k)[..1], 0)[0]) } else { k.literal(true) };
        k.if_then(is_open(), || {
            let in_range = k.and(group, FAN - 1);
            prepend(&entries(k.add(groups_at, k.sub(group, in_range)), narrow(in_range)));
            k.if_then(is_open(), || prepend(&entries(k.sub(k.add(ranges_at, range), 1), narrow(k.min(range, 1)))));
        });
        let is_last = k.eq(k.and(tile, FAN * FAN - 1), FAN * FAN - 1);
        k.if_then(k.and(is_first, is_last), || {
            self.publish(k, k.add(ranges_at, range), &operator.combine(k, &before.get(k), whole));
        });
        before.get(k)
    }

    /// Publishes `whole`, the values of a tile, and returns the combined values before it on its line. All
    /// threads of a block of at least three warps call it once, with the same values.
    pub fn before(&self, k: &Writer, line: Option<Value>, tile: Value, whole: &[Value]) -> Vec<Value> {
        let operator = &self.operator;
        let thread = k.thread(Axis::X);
        let (lane, warp) = (k.and(thread, 31), k.shr(thread, 5));
        let start = match line {
            Some(line) => k.mul(line, k.count(self.entries(), self.index)),
            None => k.constant(self.index, 0),
        };
        let (group, range) = (k.shr(tile, 5), k.shr(tile, 10));
        let narrow = |value: Value| k.convert(value, Type::U32);
        let (in_group, in_range) = (narrow(k.and(tile, FAN - 1)), narrow(k.and(group, FAN - 1)));
        let groups_at = k.add(start, k.count(self.tiles.clone(), self.index));
        let ranges_at = k.add(groups_at, k.count(self.groups(), self.index));
        k.if_then(k.eq(thread, 0), || self.publish(k, k.add(start, tile), whole));
        let found = Shared::new(k, &operator.types(), WAITING);
        k.if_then(k.lt(warp, WAITING), || {
            let [tiles, groups] = [0u32, 1].map(|role| k.eq(warp, role));
            let by_warp = |a: Value, b: Value, c: Value| k.select(tiles, a, k.select(groups, b, c));
            let first = by_warp(
                k.add(start, k.sub(tile, k.convert(in_group, self.index))),
                k.add(groups_at, k.sub(group, k.convert(in_range, self.index))),
                k.sub(k.add(ranges_at, range), 1),
            );
            let count = by_warp(in_group, in_range, narrow(k.min(range, 1)));
            let values = self.wait(k, k.add(first, k.convert(lane, self.index)), k.lt(lane, count));
            let all = reduce_warp(k, operator, &values, FAN);
            k.if_then(k.eq(lane, 0), || {
                found.set(k, warp, &all);
                let is_last = k.and(tiles, k.eq(in_group, FAN - 1));
                k.if_then(is_last, || self.publish(k, k.add(groups_at, group), &operator.combine(k, &all, whole)));
            });
        });
        k.barrier();
        let [tiles, groups, ranges] = [0u32, 1, 2].map(|role| found.get(k, k.literal(role)));
        let before = operator.combine(k, &operator.combine(k, &ranges, &groups), &tiles);
        let is_last = k.and(k.eq(in_group, FAN - 1), k.eq(in_range, FAN - 1));
        k.if_then(k.and(k.eq(thread, 0), is_last), || {
            self.publish(k, k.add(ranges_at, range), &operator.combine(k, &before, whole));
        });
        before
    }
}
