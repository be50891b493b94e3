//! Pack: the values at chosen positions of a line, one behind the other.
//!
//! A GPU has a block for each tile of the line, and blocks learn how many are chosen before them from each other ([`crate::lookback`]): one pass. On a CPU, and where what
//! is not chosen follows behind all that is, the line is cut into parts, one for each block. A first kernel counts what is chosen in each part, a second adds up, a third
//! goes through the parts again and stores. Within a warp the place of a value is found from a ballot.

mod once;

use crate::cooperate::{Shared, broadcast, reduce_block, scan_warp, shift_warp};
use crate::draft::{Draft, Inlet, Outlet, Writer};
use crate::operator::{Accumulator, Operator};
use crate::program::{Argument, Output, Program};
use crate::{Count, Domain, Error, Result, Sink, Source};
use broadloom_device::{Machine, MachineKind};
use broadloom_scalar::{Axis, Literal, Type, Unroll, Value};

/// Gives a [`Sink`] the values of a [`Source`] at the positions of a line that it chooses, in their order; the positions of the sink count what is
/// chosen. With `rest`, all others follow behind them, in their order too.
///
/// The first result of the source is a `bool`, whether the position is chosen; the others are the values. The size of a call is the length of the
/// line, which outputs have too; what is behind the last value is not written. The last output has one element, how many were chosen: a `u32`, or a `u64` where
/// positions have 64 bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pack {
    /// Whether a position is chosen, and the values.
    pub source: Source,
    /// What becomes of the values.
    pub sink: Sink,
    /// Whether what is not chosen follows.
    pub rest: bool,
}

struct Parts<'a> {
    pack: &'a Pack,
    inlet: Inlet,
    outlet: Outlet,
    index: Type,
    sum: Operator,
    warps: u32,
    /// Rows of a warp in a tile.
    rows: u32,
    counts: usize,
    total: usize,
}

impl Pack {
    /// The program for a machine.
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
        let total = draft.output(Output { ty: index, count: Count::Constant(1) });
        if index == Type::U32 {
            draft.limit(n.clone());
        }
        let is_cpu = machine.kind == MachineKind::Cpu;
        let sum = Operator::sum(index)?;
        if !is_cpu && !self.rest {
            once::Once { pack: self, inlet, outlet, index, sum, total }.launch(&mut draft)?;
            return Ok(draft.finish());
        }
        let (warps, rows) = if is_cpu { (1, 1) } else { (8, 8) };
        let block = [32 * warps, 1, 1];
        let unit = 2048u32;
        let units = n.div_ceil(unit);
        let busy = u64::from(machine.multiprocessors) * if is_cpu { 16 } else { 8 };
        // Where there is nothing, the second kernel still says so.
        let parts = units.clone().min(busy).max(1u32);
        let run = units.div_ceil(parts.clone()) * unit;
        let counts = draft.temporary(parts.clone() * index.bytes(), false);
        let pack = Parts { pack: self, inlet, outlet, index, sum, warps, rows, counts, total };
        let grid = [parts.clone(), 1u32.into(), 1u32.into()];
        let k = Writer::new("pack_count", block);
        pack.count(&k, &run);
        draft.launch(k, grid.clone(), block)?;
        let k = Writer::new("pack_places", [32, 1, 1]);
        pack.places(&k, &parts);
        draft.launch(k, [1u32.into(), 1u32.into(), 1u32.into()], [32, 1, 1])?;
        let k = Writer::new("pack", block);
        pack.store(&k, &run);
        draft.launch(k, grid, block)?;
        Ok(draft.finish())
    }
}

impl Parts<'_> {
    fn range(&self, k: &Writer, run: &Count) -> (Value, Value) {
        let run = k.count(run.clone(), self.index);
        let from = k.mul(k.convert(k.block(Axis::X), self.index), run);
        let n = k.count(Count::size(0), self.index);
        (from, k.min(k.add(from, run), n))
    }

    fn counts(&self, k: &Writer) -> broadloom_scalar::Memory {
        k.memory(Argument::Temporary(self.counts), self.index.element())
    }

    fn count(&self, k: &Writer, run: &Count) {
        let threads = 32 * self.warps;
        let (from, to) = self.range(k, run);
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
        let all = reduce_block(k, &self.sum, &sum.get(k), thread, threads);
        k.if_then(k.eq(thread, 0), || k.store(self.counts(k), k.block(Axis::X), all[0]));
    }

    fn places(&self, k: &Writer, parts: &Count) {
        let parts = k.count(parts.clone(), self.index);
        let lane = k.thread(Axis::X);
        let carry = Accumulator::new(k, &self.sum);
        k.for_step(0, parts, 32, Unroll::Never, |row| {
            let part = k.add(row, k.convert(lane, self.index));
            let there = k.lt(part, parts);
            let own = k.choose_list(there, || vec![k.load(self.counts(k), part)], || self.sum.nothing(k));
            let up_to = scan_warp(k, &self.sum, &own, lane);
            let before = self.sum.combine(k, &carry.get(k), &shift_warp(k, &self.sum, &up_to, lane));
            k.if_then(there, || k.store(self.counts(k), part, before[0]));
            carry.add(k, &broadcast(k, &up_to, 31));
        });
        let total = k.memory(Argument::Output(self.total), self.index.element());
        k.if_then(k.eq(lane, 0), || k.store(total, 0, carry.get(k)[0]));
    }

    fn store(&self, k: &Writer, run: &Count) {
        let (from, to) = self.range(k, run);
        let thread = k.thread(Axis::X);
        let (lane, warp) = (k.and(thread, 31), k.shr(thread, 5));
        let carry = k.variable_with(k.load(self.counts(k), k.block(Axis::X)));
        let all = self.pack.rest.then(|| k.load(k.memory(Argument::Output(self.total), self.index.element()), 0));
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
                    k.if_then(k.and(there, k.not(item[0])), || {
                        let place = k.add(all, k.sub(place(row), rank));
                        self.outlet.put(k, &[place], place, &item[1..]);
                    });
                }
            }
            if totals.is_some() {
                // The totals are written again in the next round.
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
