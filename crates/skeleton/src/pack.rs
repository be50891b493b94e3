//! Pack: the values at chosen positions of a line, without gaps.
//!
//! A block has a tile of the line. It finds the number of values chosen before the tile by look-back
//! ([`TileChain`](crate::kit::TileChain)), in one pass over memory. On a GPU a tile fits into registers. On a
//! CPU it fits into the cache of a core: a block counts its chosen values, then reads the tile again and
//! stores them.
//!
//! If the other values follow the chosen ones, nothing can be stored before all are counted. The line is then
//! split into parts, one for each block. A first kernel counts the chosen values of each part, and a second
//! one adds up the counts. A third one reads the parts again and stores. Within a warp a ballot gives the
//! index of each value.

mod once;
mod total;

use crate::cost::{self, Costs};
use crate::kit::{Accumulator, Draft, Inlet, Outlet, Shared, TileChain, Writer, broadcast, reduce_block, scan_warp, shift_warp};
use crate::operator::Operator;
use crate::program::{Argument, Output, Program};
use crate::{Count, Domain, Error, Result, Sink, Source};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Literal, Memory, Type, Unroll, Value};
use total::{store_total, total_memory};

/// Passes to a [`Sink`] the values of a [`Source`] at the chosen positions of a line, in order. The positions
/// of the sink number the chosen values. With `rest`, all other values follow, also in order.
///
/// The first result of the source is a `bool`, true at a chosen position. The others are the values. The size
/// of a call is the length of the line, which is also the length of the outputs. Elements after the last
/// value are not written. The last output has one element: the number of chosen positions, a `u32` also if
/// positions have 64 bits. So fewer than 2³² positions may be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pack {
    /// Flag of a position, true if it is chosen, and the values.
    pub source: Source,
    /// Use of the values.
    pub sink: Sink,
    /// True if the values that are not chosen follow.
    pub rest: bool,
}

/// Emitter of the kernels of a pack.
struct PackEmitter<'a> {
    pack: &'a Pack,
    inlet: Inlet,
    outlet: Outlet,
    index: Type,
    sum: Operator,
    warps: u32,
    /// Number of rows of a warp in a tile.
    rows: u32,
    total: usize,
}

impl Pack {
    /// Returns the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        let results = self.source.results();
        let Some((&Type::BOOL, types)) = results.split_first() else {
            let reason = format!("`{}` does not begin with a `bool`", self.source.function().name());
            return Err(Error::Pattern { pattern: "pack", reason });
        };
        self.sink.check("pack", 1, types)?;
        let index = Domain::LINE.check("pack", &[&self.source], &self.sink)?;
        let n = Count::size(0);
        let mut draft = Draft::new("pack", 1);
        let inlet = draft.source(&self.source);
        let outlet = draft.sink(&self.sink, types, &n);
        let total = draft.output(Output { ty: Type::U32, count: Count::Constant(1) });
        if index == Type::U32 {
            draft.limit(n.clone());
        }
        let is_cpu = Costs::of(machine).in_vectors();
        let costs = Costs::of(machine);
        let sum = Operator::sum(index)?;
        if !is_cpu && !self.rest {
            once::OnePassEmitter { source: &self.source, inlet, outlet, index, sum, total }.launch(&mut draft)?;
            return Ok(draft.finish());
        }
        let (warps, rows) = if is_cpu { (1, 1) } else { (8, 8) };
        let pack = PackEmitter { pack: self, inlet, outlet, index, sum, warps, rows, total };
        if self.rest {
            pack.in_three_steps(&mut draft, costs.blocks(cost::PACK_BLOCKS, 32 * warps))?;
        } else {
            pack.in_turn(&mut draft, costs)?;
        }
        Ok(draft.finish())
    }
}

/// Number of positions of the smallest part.
const UNIT: u32 = cost::PART;

impl PackEmitter<'_> {
    fn in_three_steps(&self, draft: &mut Draft, busy: u64) -> Result<()> {
        let block = [32 * self.warps, 1, 1];
        let units = Count::size(0).div_ceil(UNIT);
        // The second kernel also runs for an empty line and stores the total.
        let parts = units.clone().min(busy).max(1u32);
        let run = units.div_ceil(parts.clone()) * UNIT;
        let counts = draft.temporary(parts.clone() * self.index.bytes(), false);
        let counts = |k: &Writer| k.memory(Argument::Temporary(counts), self.index.element());
        let grid = [parts.clone(), 1u32.into(), 1u32.into()];
        let k = Writer::new("pack_count", block);
        let (from, to) = self.range(&k, &run);
        let all = self.count(&k, from, to);
        k.if_then(k.eq(k.thread(Axis::X), 0), || k.store(counts(&k), k.block(Axis::X), all));
        draft.launch(k, grid.clone(), block)?;
        let k = Writer::new("pack_places", [32, 1, 1]);
        self.places(&k, counts, &parts);
        draft.launch(k, [1u32.into(), 1u32.into(), 1u32.into()], [32, 1, 1])?;
        let k = Writer::new("pack", block);
        let (from, to) = self.range(&k, &run);
        self.store(&k, from, to, k.load(counts(&k), k.block(Axis::X)));
        draft.launch(k, grid, block)?;
        Ok(())
    }

    /// Emits the kernel of a CPU: one warp for each tile.
    fn in_turn(&self, draft: &mut Draft, costs: Costs<'_>) -> Result<()> {
        let bytes: u32 = self.pack.source.inputs().iter().map(|ty| ty.bytes()).sum();
        let most = (costs.read_twice() / bytes.max(1)).clamp(UNIT, 32 * UNIT) / UNIT;
        let units = Count::size(0).div_ceil(UNIT).div_ceil(costs.busy(4)).min(most).max(1u32);
        let run = units * UNIT;
        // An empty line has one tile, which stores the total.
        let tiles = Count::size(0).div_ceil(run.clone()).max(1u32);
        let chain = TileChain::new(draft, &self.sum, self.index, &Count::Constant(1), &tiles);
        let k = Writer::new("pack", [32, 1, 1]);
        let number = chain.number(&k);
        let (from, to) = self.range(&k, &run);
        let all = self.count(&k, from, to);
        let before = chain.before_warp(&k, number, &[all])[0];
        let is_last = k.eq(k.add(number, 1), k.count(tiles.clone(), self.index));
        k.if_then(k.and(is_last, k.eq(k.thread(Axis::X), 0)), || store_total(&k, self.total, k.add(before, all)));
        self.store(&k, from, to, before);
        draft.launch(k, [tiles, 1u32.into(), 1u32.into()], [32, 1, 1])?;
        Ok(())
    }

    fn range(&self, k: &Writer, run: &Count) -> (Value, Value) {
        let run = k.count(run.clone(), self.index);
        let from = k.mul(k.convert(k.block(Axis::X), self.index), run);
        let n = k.count(Count::size(0), self.index);
        (from, k.min(k.add(from, run), n))
    }

    /// Counts the chosen positions of a range. Thread 0 has the result.
    fn count(&self, k: &Writer, from: Value, to: Value) -> Value {
        let threads = 32 * self.warps;
        let thread = k.thread(Axis::X);
        let sum = Accumulator::new(k, &self.sum);
        let one = |i: Value| sum.add(k, &[k.convert(self.inlet.at(k, &[i])[0], self.index)]);
        k.for_step(from, to, 4 * threads, Unroll::Never, |first| {
            let start = k.add(first, k.convert(thread, self.index));
            k.if_else(
                k.ge(k.sub(to, first), 4 * threads),
                || (0..4u32).for_each(|item| one(k.add(start, item * threads))),
                || {
                    for item in 0..4u32 {
                        let i = k.add(start, item * threads);
                        k.if_then(k.lt(i, to), || one(i));
                    }
                },
            );
        });
        reduce_block(k, &self.sum, &sum.get(k), thread, threads)[0]
    }

    /// Replaces the number of chosen positions of each part by the number before it, in one warp.
    fn places(&self, k: &Writer, counts: impl Fn(&Writer) -> Memory, parts: &Count) {
        let parts = k.count(parts.clone(), self.index);
        let lane = k.thread(Axis::X);
        let carry = Accumulator::new(k, &self.sum);
        k.for_step(0, parts, 32, Unroll::Never, |row| {
            let part = k.add(row, k.convert(lane, self.index));
            let there = k.lt(part, parts);
            let own = k.choose_list(there, || vec![k.load(counts(k), part)], || self.sum.nothing(k));
            let up_to = scan_warp(k, &self.sum, &own, lane);
            let before = self.sum.combine(k, &carry.get(k), &shift_warp(k, &self.sum, &up_to, lane));
            k.if_then(there, || k.store(counts(k), part, before[0]));
            carry.add(k, &broadcast(k, &up_to, 31));
        });
        k.if_then(k.eq(lane, 0), || store_total(k, self.total, carry.get(k)[0]));
    }

    /// Stores the values of a range. `before` is the number of chosen positions before it.
    fn store(&self, k: &Writer, from: Value, to: Value, before: Value) {
        let thread = k.thread(Axis::X);
        let (lane, warp) = (k.and(thread, 31), k.shr(thread, 5));
        let carry = k.variable_with(before);
        let all = self.pack.rest.then(|| k.convert(k.load(total_memory(k, self.total), 0), self.index));
        let totals = (self.warps > 1).then(|| Shared::new(k, &[self.index], self.warps));
        let lower = k.sub(k.shl(k.literal(1u32), lane), 1);
        let types = self.pack.source.results();
        let tile = 32 * self.warps * self.rows;
        let body = |first: Value, checked: bool| {
            let start = k.add(first, k.convert(k.add(k.mul(warp, 32 * self.rows), lane), self.index));
            let place = |row: u32| k.add(start, row * 32);
            let items: Vec<Vec<Value>> = (0..self.rows)
                .map(|row| {
                    let nothing = || types.iter().map(|ty| k.spread(Literal::zero(ty.element()), *ty)).collect();
                    let at = || self.inlet.at(k, &[place(row)]);
                    if checked { k.choose_list(k.lt(place(row), to), at, nothing) } else { at() }
                })
                .collect();
            let ballots: Vec<Value> = items.iter().map(|item| k.ballot(item[0], None)).collect();
            let mut in_warp = k.convert(k.literal(0u32), self.index);
            let mut before_row = vec![];
            for ballot in &ballots {
                before_row.push(in_warp);
                in_warp = k.add(in_warp, k.convert(k.popcount(*ballot), self.index));
            }
            let so_far = k.get(carry);
            let before_warp = match &totals {
                None => {
                    k.set(carry, k.add(so_far, in_warp));
                    so_far
                }
                Some(totals) => {
                    k.if_then(k.eq(lane, 0), || totals.set(k, warp, &[in_warp]));
                    k.barrier();
                    let (mut before, mut whole) = (so_far, so_far);
                    for other in 0..self.warps {
                        before = k.select(k.eq(warp, other), whole, before);
                        whole = k.add(whole, totals.get(k, k.literal(other))[0]);
                    }
                    k.set(carry, whole);
                    before
                }
            };
            for (row, (item, ballot)) in (0..self.rows).zip(items.iter().zip(&ballots)) {
                let in_row = k.convert(k.popcount(k.and(*ballot, lower)), self.index);
                let rank = k.add(k.add(before_warp, before_row[row as usize]), in_row);
                k.if_then(item[0], || self.outlet.put(k, &[rank], rank, &item[1..]));
                if let Some(all) = all {
                    let there = if checked { k.lt(place(row), to) } else { k.literal(true) };
                    let place = if self.warps == 1 {
                        // Counted like the chosen values, which vectors store contiguously.
                        let others = k.convert(k.popcount(k.and(k.not(*ballot), lower)), self.index);
                        k.add(k.add(all, k.sub(first, so_far)), others)
                    } else {
                        k.add(all, k.sub(place(row), rank))
                    };
                    k.if_then(k.and(there, k.not(item[0])), || self.outlet.put(k, &[place], place, &item[1..]));
                }
            }
            if totals.is_some() {
                // The totals are overwritten in the next round.
                k.barrier();
            }
        };
        k.for_step(from, to, tile, Unroll::Never, |first| {
            if self.warps > 1 {
                body(first, true);
            } else {
                k.if_else(k.ge(k.sub(to, first), tile), || body(first, false), || body(first, true));
            }
        });
    }
}
