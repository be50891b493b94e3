//! Segments in tiles, one for each block of a GPU.

use super::Parts;
use crate::cooperate::{Shared, scan_warp, shift_warp};
use crate::draft::{Draft, Writer};
use crate::lookback::Chain;
use crate::operator::{Accumulator, Operator};
use crate::program::Argument;
use crate::{Count, Result};
use broadloom_scalar::{AtomicOp, Axis, Element, Order, Scope, Type, Unroll, Value};

/// Threads of a block.
const THREADS: u32 = 256;
/// Bytes of shared memory for elements, and as many for results.
const ROOM: u32 = 20 << 10;

impl Parts {
    /// How many of the sequence a thread has: a power of two up to 16.
    fn items(&self) -> u32 {
        let bytes: u32 = self.operator.types().iter().map(|ty| ty.bytes()).sum();
        let most = (ROOM / THREADS / bytes).clamp(1, 16);
        1 << most.ilog2()
    }

    pub(super) fn tiles(&self, draft: &mut Draft) -> Result<()> {
        let segmented = self.operator.segmented()?;
        let sum = Operator::sum(Type::U32)?;
        let items = self.items();
        let tile = THREADS * items;
        let tiles = (Count::size(0) + Count::size(1)).div_ceil(tile);
        let starts = draft.temporary((tiles.clone() + 1u32) * self.index.bytes(), false);
        let chain = Chain::new(draft, &segmented, self.index, &Count::Constant(1), &tiles);
        self.find_starts(draft, starts, tile, &tiles)?;

        let block = [THREADS, 1, 1];
        let k = Writer::with_blocks("segments", block, 5);
        let thread = k.thread(Axis::X);
        let (lane, warp) = (k.and(thread, 31), k.shr(thread, 5));
        let n = k.count(Count::size(0), self.index);
        let [_, _, all] = self.sizes(&k);
        let number = chain.number(&k);
        let starts = k.memory(Argument::Temporary(starts), self.index.element());
        let from = k.min(k.mul(number, tile), all);
        let to = k.min(k.add(from, tile), all);
        let (first_end, last_end) = (k.load(starts, number), k.load(starts, k.add(number, 1)));
        let first_element = k.add(k.sub(from, first_end), self.base(&k));
        let narrow = |value: Value| k.convert(value, Type::U32);
        // What offsets that decrease lead to stays within the tile, and within what there is.
        let span = narrow(k.sub(to, from));
        let ends = k.min(narrow(k.sub(k.max(last_end, first_end), first_end)), span);
        let elements = narrow(k.min(self.wide(&k, k.sub(span, ends)), k.sub(k.max(n, first_element), first_element)));

        // Elements that one thread reads lie in different banks from what its neighbours read.
        let padded = |place: Value| k.add(place, k.shr(place, 5));
        let types = self.operator.types();
        let staged = Shared::new(&k, &types, tile + tile / 32);
        let results = Shared::new(&k, &types, tile);
        let words = (tile / 32).max(1);
        let marks = k.shared(Element::U32, words);
        let stage = |place: Value| self.inlet.at(&k, &[k.add(first_element, self.wide(&k, place))]);
        let places: Vec<Value> = (0..items).map(|item| k.add(thread, item * THREADS)).collect();
        let loaded: Vec<Vec<Value>> = places
            .iter()
            .map(|place| k.choose_list(k.lt(*place, elements), || stage(*place), || self.operator.nothing(&k)))
            .collect();
        k.if_then(k.lt(thread, words), || k.store(marks, thread, 0));
        places.iter().zip(&loaded).for_each(|(place, values)| staged.set(&k, padded(*place), values));
        k.barrier();
        k.for_step(thread, ends, THREADS, Unroll::Never, |end| {
            let place = narrow(k.sub(self.end(&k, k.add(first_end, self.wide(&k, end))), from));
            let bit = k.shl(k.literal(1u32), k.and(place, 31));
            k.if_then(k.lt(place, tile), || {
                k.atomic(AtomicOp::Or, marks, k.shr(place, 5), bit, Order::Relaxed(Scope::Block));
            });
        });
        k.barrier();

        // The ends that a thread has, and how many come before them.
        let first = k.mul(thread, items);
        let bits = k.shr(k.load(marks, k.shr(first, 5)), k.and(first, 31));
        let bits = k.and(bits, (1u32 << items) - 1);
        let own = [k.popcount(bits)];
        let up_to = scan_warp(&k, &sum, &own, lane);
        let counts = k.shared(Element::U32, THREADS / 32);
        k.if_then(k.eq(lane, 31), || k.store(counts, warp, up_to[0]));
        k.barrier();
        let mut before = k.sub(up_to[0], own[0]);
        for other in 0..THREADS / 32 {
            before = k.add(before, k.select(k.lt(k.literal(other), warp), k.load(counts, other), 0));
        }

        // A thread goes through what it has. What it finds at its first end lacks what comes before the thread.
        let ended = k.variable_with(before);
        let open = Accumulator::new(&k, &self.operator);
        k.for_step(0, k.literal(items), 1, Unroll::By(4), |item| {
            let is_end = k.ne(k.and(k.shr(bits, item), 1), 0);
            k.if_else(
                is_end,
                || {
                    results.set(&k, k.get(ended), &open.get(&k));
                    open.set(&k, &self.operator.nothing(&k));
                    k.set(ended, k.add(k.get(ended), 1));
                },
                || {
                    let place = k.sub(k.add(first, item), k.get(ended));
                    k.if_then(k.lt(place, elements), || open.add(&k, &staged.get(&k, padded(place))));
                },
            );
        });
        let has_end = k.ne(bits, 0);
        let own: Vec<Value> = std::iter::once(has_end).chain(open.get(&k)).collect();
        let up_to = scan_warp(&k, &segmented, &own, lane);
        let in_warp = shift_warp(&k, &segmented, &up_to, lane);
        let totals = Shared::new(&k, &segmented.types(), THREADS / 32);
        k.if_then(k.eq(lane, 31), || totals.set(&k, warp, &up_to));
        k.barrier();
        let (mut before_warp, mut whole) = (segmented.nothing(&k), segmented.nothing(&k));
        for other in 0..THREADS / 32 {
            let is_mine = k.eq(warp, other);
            before_warp = before_warp.iter().zip(&whole).map(|(old, new)| k.select_value(is_mine, *new, *old)).collect();
            whole = segmented.combine(&k, &whole, &totals.get(&k, k.literal(other)));
        }
        let before_tile = chain.before(&k, None, number, &whole);
        let carried = segmented.combine(&k, &segmented.combine(&k, &before_tile, &before_warp), &in_warp);
        k.if_then(has_end, || {
            let found = results.get(&k, before);
            results.set(&k, before, &self.operator.combine(&k, &carried[1..], &found));
        });
        k.barrier();
        k.for_step(thread, ends, THREADS, Unroll::Never, |end| {
            let segment = k.add(first_end, self.wide(&k, end));
            self.outlet.put(&k, &[segment], segment, &results.get(&k, end));
        });
        draft.launch(k, [tiles, 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }

    /// How many ends come before each tile, and before the end of the last one.
    fn find_starts(&self, draft: &mut Draft, starts: usize, tile: u32, tiles: &Count) -> Result<()> {
        let block = [32, 4, 1];
        let k = Writer::new("segments_start", block);
        let number = k.add(k.mul(k.block(Axis::X), block[1]), k.thread(Axis::Y));
        let number = self.wide(&k, number);
        let lane = k.thread(Axis::X);
        k.if_then(k.le(number, k.count(tiles.clone(), self.index)), || {
            let [_, _, all] = self.sizes(&k);
            let found = self.ends_before(&k, k.min(k.mul(number, tile), all), lane);
            let starts = k.memory(Argument::Temporary(starts), self.index.element());
            k.if_then(k.eq(lane, 0), || k.store(starts, number, found));
        });
        // Where there is nothing to do, nothing is launched.
        let warps = tiles.clone() + tiles.clone().min(1u32);
        draft.launch(k, [warps.div_ceil(block[1]), 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }
}
