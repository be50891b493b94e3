//! Segmented reductions on a GPU, with one tile for each block: see [`super`].

use super::SegmentsEmitter;
use crate::kit::{Draft, Shared, TileChain, Writer, each_lane, scan_warp};
use crate::operator::Operator;
use crate::program::Argument;
use crate::{Count, Result};
use broadloom_scalar::{AtomicOp, Axis, Element, Order, Scope, Shuffle, Type, Unroll, Value};

/// Number of threads of a block.
const THREADS: u32 = crate::cost::BLOCK_THREADS;
const WARPS: u32 = THREADS / 32;
/// Number of segments per lane in the search for the starts of tiles.
const OWN_SEGMENTS: u32 = crate::cost::STARTED_SEGMENTS;
/// Number of bytes of shared memory for elements. Results reuse this memory.
const ROOM: u32 = crate::cost::SEGMENT_TILE;

impl SegmentsEmitter {
    /// Returns the number of elements and ends of a thread. It is odd, so that neighbouring threads read from
    /// different banks.
    fn items(&self) -> u32 {
        let bytes: u32 = self.operator.types().iter().map(|ty| ty.bytes()).sum();
        ((ROOM / THREADS / bytes).clamp(2, 16) - 1) | 1
    }

    pub(super) fn tiles(&self, draft: &mut Draft) -> Result<()> {
        let segmented = self.operator.segmented()?;
        let items = self.items();
        let tile = THREADS * items;
        let tiles = (Count::size(0) + Count::size(1)).div_ceil(tile);
        let starts = draft.temporary((tiles.clone() + 1u32) * self.sequence.index.bytes(), false);
        let chain = TileChain::cleared_by_kernel(draft, &segmented, self.sequence.index, &tiles);
        self.find_starts(draft, &chain, starts, tile, &tiles)?;

        let block = [THREADS, 1, 1];
        let k = Writer::with_blocks("segments", block, 6);
        let thread = k.thread(Axis::X);
        let (lane, warp) = (k.and(thread, 31), k.shr(thread, 5));
        let n = k.count(Count::size(0), self.sequence.index);
        let [_, _, all] = self.sequence.sizes(&k);
        let number = chain.number(&k);
        let starts = k.memory(Argument::Temporary(starts), self.sequence.index.element());
        let from = k.min(k.mul(number, tile), all);
        let to = k.min(k.add(from, tile), all);
        // Decreasing offsets leave starts that were never found.
        let start = |number: Value| k.min(k.load(starts, number), k.count(Count::size(1), self.sequence.index));
        let (first_end, last_end) = (start(number), start(k.add(number, 1)));
        let first_element = k.add(k.sub(from, first_end), self.sequence.base(&k));
        let narrow = |value: Value| k.convert(value, Type::U32);
        // With decreasing offsets, accesses stay within the tile and the line.
        let span = narrow(k.sub(to, from));
        let ends = k.min(narrow(k.sub(k.max(last_end, first_end), first_end)), span);
        let elements = narrow(k.min(self.sequence.wide(&k, k.sub(span, ends)), k.sub(k.max(n, first_element), first_element)));

        let types = self.operator.types();
        let staged = Shared::new(&k, &types, tile);
        // One word of padding, because threads read two words.
        let words = tile.div_ceil(32) + 1;
        let marks = k.shared(Element::U32, words);
        k.if_then(k.lt(thread, words), || k.store(marks, thread, 0));
        k.barrier();
        // Loads of ends and elements are in flight together. The ends come first: a trap of elements is
        // written after all of them are loaded.
        let place = |end: Value| narrow(k.sub(self.sequence.end(&k, k.add(first_end, self.sequence.wide(&k, end))), from));
        // Few tiles have more ends than this.
        let first_ends = [thread, k.add(thread, THREADS)];
        let found = first_ends.map(|end| k.choose_list(k.lt(end, ends), || vec![place(end)], || vec![k.literal(tile)])[0]);
        let load = || {
            // Loads beyond the last element repeat it, so that no load depends on a branch. The repeated
            // values are after all ends of the tile and are not used.
            let last = k.sub(elements, 1);
            let place = |item: u32| k.min(k.add(thread, item * THREADS), last);
            (0..items).flat_map(|item| self.inlet.at(&k, &[k.add(first_element, self.sequence.wide(&k, place(item)))])).collect()
        };
        let nothing = || (0..items).flat_map(|_| self.operator.nothing(&k)).collect();
        let loaded = self.inlet.together(&k, || k.choose_list(k.ne(elements, 0), load, nothing));
        let loaded: Vec<&[Value]> = loaded.chunks(types.len()).collect();
        let mark = |place: Value| {
            let bit = k.shl(k.literal(1u32), k.and(place, 31));
            k.if_then(k.lt(place, tile), || {
                k.atomic(AtomicOp::Or, marks, k.shr(place, 5), bit, Order::Relaxed(Scope::Block));
            });
        };
        found.into_iter().for_each(mark);
        k.for_step(k.add(thread, 2 * THREADS), ends, THREADS, Unroll::Never, |end| mark(place(end)));
        (0..items).zip(&loaded).for_each(|(item, values)| staged.set(&k, k.add(thread, item * THREADS), values));
        k.barrier();

        // The ends of a thread, and the number of ends before them.
        let first = k.mul(thread, items);
        let word = |index: Value| k.convert(k.load(marks, index), Type::U64);
        let in_word = k.shr(first, 5);
        let both = k.or(word(in_word), k.shl(word(k.add(in_word, 1)), 32));
        let bits = k.and(narrow(k.shr(both, k.and(first, 31))), (1u32 << items) - 1);
        let own = k.popcount(bits);
        let up_to = scan_warp(&k, &Operator::sum(Type::U32)?, &[own], lane)[0];
        let counts = k.shared(Element::U32, WARPS);
        k.if_then(k.eq(lane, 31), || k.store(counts, warp, up_to));
        k.barrier();
        let mut before = k.sub(up_to, own);
        for other in 0..WARPS {
            before = k.add(before, k.select(k.lt(k.literal(other), warp), k.load(counts, other), 0));
        }

        // Each thread walks through its items.
        let is_end = |item: u32| k.ne(k.and(bits, 1u32 << item), 0);
        let mut place = k.sub(first, before);
        let mut open = self.operator.nothing(&k);
        let mut found = vec![];
        for item in 0..items {
            let next = self.operator.combine(&k, &open, &staged.get(&k, place));
            let nothing = self.operator.nothing(&k);
            let behind = nothing.iter().zip(&next).map(|(nothing, next)| k.select_value(is_end(item), *nothing, *next));
            let behind = behind.collect();
            found.push(std::mem::replace(&mut open, behind));
            place = k.select(is_end(item), place, k.add(place, 1));
        }
        let (carried, whole) = self.carry(&k, &open, k.ne(bits, 0));
        k.if_then(k.eq(thread, 0), || chain.publish(&k, number, &whole));
        // All threads have read their elements, so results reuse their memory. The result at the first end of
        // a thread lacks the values before the thread.
        let results = staged;
        let mut ended = before;
        for (item, found) in (0..items).zip(&found) {
            k.if_then(is_end(item), || results.set(&k, ended, found));
            ended = k.select(is_end(item), k.add(ended, 1), ended);
        }
        k.if_then(k.ne(bits, 0), || {
            let found = results.get(&k, before);
            results.set(&k, before, &self.operator.combine(&k, &carried, &found));
        });
        k.barrier();
        // The first result lacks the values before the tile. One warp waits for them after all other work.
        k.for_step(thread, ends, THREADS, Unroll::Never, |end| {
            let segment = k.add(first_end, self.sequence.wide(&k, end));
            k.if_then(k.ne(end, 0), || self.outlet.put(&k, &[segment], segment, &results.get(&k, end)));
        });
        k.if_then(k.eq(warp, 0), || {
            let before = chain.since_end(&k, number, &whole);
            k.if_then(k.and(k.eq(lane, 0), k.ne(ends, 0)), || {
                let found = self.operator.combine(&k, &before[1..], &results.get(&k, k.literal(0u32)));
                self.outlet.put(&k, &[first_end], first_end, &found);
            });
        });
        draft.launch(k, [tiles, 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }

    /// Combines the values that threads leave open. `has_end` is true for a thread with an end. Returns for
    /// each thread the values before it of the segment that is open at its start, within the tile. Also
    /// returns the open values of the whole tile, after a `bool` that is true if the tile has an end.
    fn carry(&self, k: &Writer, open: &[Value], has_end: Value) -> (Vec<Value>, Vec<Value>) {
        let operator = &self.operator;
        let thread = k.thread(Axis::X);
        let (lane, warp) = (k.and(thread, 31), k.shr(thread, 5));
        let shifted =
            |values: &[Value], by: u32| -> Vec<Value> { values.iter().map(|value| k.shuffle(Shuffle::Up, *value, by)).collect() };
        let choose = |condition: Value, yes: &[Value], no: &[Value]| -> Vec<Value> {
            yes.iter().zip(no).map(|(yes, no)| k.select_value(condition, *yes, *no)).collect()
        };
        // Values up to each lane, back to the last lane before it with an end. `lanes` is a power of two.
        let scan = |values: &[Value], ended: Value, lanes: u32| {
            let up_to_lane = k.sub(k.shl(k.literal(2u32), lane), 1);
            let head = k.sub(31u32, k.leading_zeros(k.or(k.and(ended, up_to_lane), 1)));
            let mut values = values.to_vec();
            let mut distance = 1;
            while distance < lanes {
                let both = operator.combine(k, &shifted(&values, distance), &values);
                values = choose(k.ge(lane, k.add(head, distance)), &both, &values);
                distance *= 2;
            }
            values
        };
        let nothing = operator.nothing(k);
        let ended = k.ballot(has_end, None);
        let up_to = scan(open, ended, 32);
        let before_lane = choose(k.eq(lane, 0), &nothing, &shifted(&up_to, 1));
        let totals = Shared::new(k, &operator.types(), WARPS);
        let any = k.shared(Element::U32, WARPS);
        k.if_then(k.eq(lane, 31), || {
            totals.set(k, warp, &up_to);
            k.store(any, warp, ended);
        });
        k.barrier();
        // A scan over warps follows. Every warp computes it.
        let of_warp = k.and(lane, WARPS - 1);
        let warps_ended = k.and(k.ballot(k.ne(k.load(any, of_warp), 0), None), (1u32 << WARPS) - 1);
        let up_to_warp = scan(&totals.get(k, of_warp), warps_ended, WARPS);
        let from =
            |lane: Value| -> Vec<Value> { up_to_warp.iter().map(|value| k.shuffle(Shuffle::Index, *value, lane)).collect() };
        let whole = from(k.literal(WARPS - 1));
        let before_warp = choose(k.eq(warp, 0), &nothing, &from(k.sub(k.max(warp, 1), 1)));
        let whole: Vec<Value> = std::iter::once(k.ne(warps_ended, 0)).chain(whole).collect();
        let before = operator.combine(k, &before_warp, &before_lane);
        let ended_in_warp = k.ne(k.and(ended, k.sub(k.shl(k.literal(1u32), lane), 1)), 0);
        (choose(ended_in_warp, &before_lane, &before), whole)
    }

    /// Counts the ends before each tile, and before the end of the last one. Also clears the chain.
    ///
    /// A lane has a few segments. From its neighbour it gets the tile in which the segment before each of
    /// them ends. It stores the starts of the tiles from there up to its own end. All ends are read once,
    /// contiguously. A search for each tile would wait for memory four times or more.
    fn find_starts(&self, draft: &mut Draft, chain: &TileChain, starts: usize, tile: u32, tiles: &Count) -> Result<()> {
        let block = [THREADS, 1, 1];
        let k = Writer::new("segments_start", block);
        let [_, segments, _] = self.sequence.sizes(&k);
        let thread = self.sequence.wide(&k, k.global_thread(Axis::X));
        let lane = k.and(k.thread(Axis::X), 31);
        // The first lane of a warp only serves the second one. After the last segment comes the end of the
        // sequence.
        let blocks = (Count::size(1) + 1u32).div_ceil(WARPS * 31 * OWN_SEGMENTS);
        chain.clear(&k, thread, &(blocks.clone() * THREADS));
        let first = k.add(k.mul(k.shr(thread, 5), 31 * OWN_SEGMENTS), self.sequence.wide(&k, lane));
        let last = k.count(tiles.clone(), self.sequence.index);
        // All loads come first, so that they are in flight together. None depends on a branch.
        let own: Vec<(Value, Value)> = (0..OWN_SEGMENTS)
            .map(|number| {
                let behind = k.add(first, number * 31);
                (behind, self.sequence.offset(&k, k.min(behind, segments)))
            })
            .collect();
        let starts = k.memory(Argument::Temporary(starts), self.sequence.index.element());
        let zero = k.constant(self.sequence.index, 0);
        for (behind, offset) in own {
            let segment = k.sub(behind, 1);
            let end = k.sub(k.add(offset, segment), self.sequence.base(&k));
            let found = k.min(k.add(k.div(end, tile), 1), k.add(last, 1));
            let outside = k.select(k.eq(behind, 0), zero, k.add(last, 1));
            let to = k.select(k.lt(segment, segments), found, outside);
            let from = k.shuffle(Shuffle::Up, to, 1u32);
            let is_own = k.and(k.ne(lane, 0), k.le(segment, segments));
            let count = k.select(k.and(is_own, k.gt(to, from)), k.sub(to, from), zero);
            let few = k.le(count, 2);
            for number in 0..2u32 {
                k.if_then(k.and(few, k.gt(count, number)), || k.store(starts, k.add(from, number), segment));
            }
            // The whole warp handles a segment of many tiles.
            each_lane(&k, k.ballot(k.not(few), None), |owner| {
                let of_owner = |value: Value| k.shuffle(Shuffle::Index, value, owner);
                let (from, to, segment) = (of_owner(from), of_owner(to), of_owner(segment));
                k.for_step(k.add(from, self.sequence.wide(&k, lane)), to, 32, Unroll::Never, |number| {
                    k.store(starts, number, segment)
                });
            });
        }
        // Nothing is launched if there are no tiles.
        draft.launch(k, [blocks * tiles.clone().min(1u32), 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }
}
