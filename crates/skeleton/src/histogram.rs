//! Histogram: the number of positions in each bin.
//!
//! A block counts in shared memory, on a GPU in one copy per warp if there is room, and finally adds its
//! counts to the result. If there are too many bins, all threads of a GPU count in one global memory, and the
//! few blocks of a CPU each in a table of their own. Integer sums do not depend on the order, so results are
//! deterministic.
//!
//! A thread of a GPU reads adjacent elements with 16-byte accesses, two at a time, if inputs are read at the
//! position itself and are aligned.

use crate::cost::{self, Costs};
use crate::kit::{Draft, Writer, unravel};
use crate::program::{Argument, Program};
use crate::{Count, Domain, Error, Result, Sink, Source};
use broadloom_device::Machine;
use broadloom_scalar::{AtomicOp, Axis, Element, Order, Scope, Type, Unroll, Value};

/// Counts the positions of a domain for each bin. A [`Source`] returns the bin of a position. The counts go
/// to a [`Sink`] whose positions are bins.
///
/// The source returns one integer. A number that is not a bin is not counted. Counts are `u32`, or `u64` if
/// positions have 64 bits. The sizes of a call are the lengths of the axes, then the number of bins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Histogram {
    /// The positions.
    pub domain: Domain,
    /// The numbers of bins.
    pub source: Source,
    /// Use of the counts.
    pub sink: Sink,
    /// Number of bins to reserve in shared memory. `None` if there are too many for every machine. See
    /// [`Histogram::room`].
    pub room: Option<u32>,
}

/// Maximum number of bins that are counted in shared memory, on any machine.
const MOST: u64 = cost::SHARED_BINS.vectors as u64;
/// Number of accesses of a GPU thread that are in flight together.
const PIECES: u32 = cost::HISTOGRAM_PIECES;
/// Number of warps of a block on a CPU. With several, barriers enclose the counting, and each lane can have
/// its own counters.
const CPU_WARPS: u32 = cost::HISTOGRAM_WARPS;

impl Histogram {
    /// Returns the number of bins to reserve in shared memory for `bins` bins.
    pub fn room(bins: u64) -> Option<u32> {
        (bins <= MOST).then(|| (bins.max(256) as u32).next_power_of_two())
    }

    /// Returns the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        let bad = |reason: String| Err(Error::Pattern { pattern: "histogram", reason });
        let axes = self.domain.axes();
        let ty = match self.source.results()[..] {
            [ty] if ty.is_scalar() && ty.element().is_integer() => ty,
            _ => return bad(format!("`{}` does not give one integer", self.source.function().name())),
        };
        if self.room.is_some_and(|room| room == 0 || u64::from(room) > MOST) {
            return bad(format!("room for {:?} bins in shared memory", self.room));
        }
        let index = self.domain.check("histogram", &[&self.source], &self.sink)?;
        self.sink.check("histogram", 1, &[index])?;
        let (count, bins) = (self.domain.count(), Count::size(axes));
        let mut draft = Draft::new("histogram", axes + 1);
        let inlet = draft.source(&self.source);
        let outlet = draft.sink(&self.sink, &[index], &bins);
        if index == Type::U32 {
            draft.limit(count.clone());
            draft.limit(bins.clone());
        }
        let costs = Costs::of(machine);
        let is_cpu = costs.in_vectors();
        let room = self.room.filter(|room| *room <= costs.pick(cost::SHARED_BINS));
        // Blocks with a table of their own: to set and add up a table costs less than its positions.
        let tables = (is_cpu && room.is_none()).then(|| {
            let least = bins.clone().div_ceil(cost::SCATTER_SPARSE) + cost::STRETCH;
            count.clone().div_ceil(least).min(Count::Constant(costs.busy(1))).max(1u32)
        });
        let bytes = bins.clone() * index.bytes();
        let whole = match &tables {
            None => draft.temporary(bytes, true),
            Some(tables) => draft.temporary(bytes * tables.clone(), false),
        };
        // Positions that are counted together are adjacent: those of a block on a GPU, and those of a warp on
        // a CPU, which runs warps one after the other.
        let (block, groups) = if is_cpu { ([32, CPU_WARPS, 1], CPU_WARPS) } else { ([256, 1, 1], 1) };
        let (threads, step) = (block[0] * block[1], block[0]);
        let k = Writer::new("histogram", block);
        let n = k.count(count.clone(), index);
        let bins_in = k.count(bins.clone(), index);
        let lengths: Vec<Value> = (0..axes).map(|axis| k.count(Count::size(axis), index)).collect();
        let counts = k.memory(Argument::Temporary(whole), index.element());
        let (lane, group) = (k.thread(Axis::X), k.thread(Axis::Y));
        let thread = if groups == 1 { lane } else { k.add(k.mul(group, step), lane) };
        let copies = room.map_or(0, |room| if is_cpu { 1 } else { (8192 / room).clamp(1, threads / 32) });
        let private = room.map(|room| match room > cost::SHARED_BINS.threads {
            true => k.large_shared(Element::U32, Count::Constant(room.into())),
            false => k.shared(Element::U32, room * copies),
        });
        if let (Some(private), Some(room)) = (private, room) {
            k.for_step(thread, k.literal(room * copies), threads, Unroll::Never, |bin| k.store(private, bin, 0));
            k.barrier();
        }
        let own = room.map(|room| k.mul(k.and(k.shr(thread, 5), copies - 1), room));
        let table = tables.is_some().then(|| {
            let all = k.count(bins.clone(), Type::U64);
            let start = k.mul(k.convert(k.block(Axis::X), Type::U64), all);
            k.for_step(k.convert(thread, Type::U64), all, threads, Unroll::Never, |bin| {
                k.store(counts, k.add(start, bin), k.constant(index, 0));
            });
            k.barrier();
            start
        });
        // The blocks keep the machine busy, and none has too little work.
        let busy = costs.blocks(cost::HISTOGRAM_BLOCKS, cost::BLOCK_THREADS);
        let mut blocks = count.clone().div_ceil(threads * costs.pick(cost::COUNTED)).min(busy);
        if let Some(room) = room.filter(|room| *room > cost::SHARED_BINS.threads) {
            blocks = blocks.min(count.clone().div_ceil(room * cost::COUNTED_PER_BIN));
        }
        if let Some(tables) = &tables {
            blocks = tables.clone();
        }
        // Number of neighbours that a GPU thread loads by one access.
        let width =
            if is_cpu { None } else { self.source.row_width().filter(|width| *width as u32 * PIECES <= cost::COUNTED.threads) };
        let unit = width.map_or(1, |width| threads * PIECES * width as u32);
        let run = k.count(count.clone().div_ceil(unit).div_ceil(blocks.clone() * groups) * unit, index);
        let number = k.convert(k.block(Axis::X), index);
        let number = if groups == 1 { number } else { k.add(k.mul(number, groups), k.convert(group, index)) };
        let from = k.min(k.mul(number, run), n);
        let to = k.min(k.add(from, run), n);
        // Every value of a byte has a counter. Counters of values that are not bins are ignored.
        let has_room = ty == Type::U8 && room.is_some_and(|room| room >= 256);
        let count_bin = |bin: Value| {
            // A negative number becomes a very large one.
            let wide = if ty.element().bits() == 64 || index == Type::U64 { Type::U64 } else { Type::U32 };
            let signed = if ty.element().is_signed() { k.convert(bin, wide.signed()) } else { bin };
            let number = k.convert(signed, wide);
            let add = || match (private, own) {
                (Some(private), Some(own)) => {
                    let place = k.add(own, k.convert(number, Type::U32));
                    k.atomic(AtomicOp::Add, private, place, 1, Order::Relaxed(Scope::Block));
                }
                _ => match table {
                    Some(start) => {
                        let place = k.add(start, k.convert(number, Type::U64));
                        k.atomic(AtomicOp::Add, counts, place, 1, Order::Relaxed(Scope::Block));
                    }
                    None => {
                        k.atomic(AtomicOp::Add, counts, number, 1, Order::Relaxed(Scope::Device));
                    }
                },
            };
            if has_room {
                add();
            } else {
                k.if_then(k.lt(number, k.convert(bins_in, wide)), add);
            }
        };
        let one = |i: Value| {
            let position = if axes == 1 { vec![i] } else { unravel(&k, i, &lengths) };
            count_bin(inlet.at(&k, &position)[0]);
        };
        let lane = k.convert(lane, index);
        // Start of the rest of the line, after the wide accesses.
        let from = match width {
            None => from,
            Some(width) => {
                let wide_end = k.sub(to, k.rem(k.sub(to, from), unit));
                let wide_end = k.select(k.aligned(inlet.row_addresses(&k)), wide_end, from);
                k.for_step(from, wide_end, unit, Unroll::Never, |first| {
                    let start = |piece: u32| k.add(first, k.mul(k.add(lane, piece * threads), width));
                    let rows: Vec<_> = (0..PIECES).map(|piece| inlet.row(&k, start(piece), width)).collect();
                    for (piece, row) in (0..PIECES).zip(&rows) {
                        for item in 0..width {
                            let i = k.add(start(piece), item);
                            count_bin(inlet.at_with(&k, &[i], &|index| row[index].map(|row| k.lane(row, item)))[0]);
                        }
                    }
                });
                wide_end
            }
        };
        k.for_step(from, to, 4 * step, Unroll::Never, |first| {
            let start = k.add(first, lane);
            k.if_else(
                k.ge(k.sub(to, first), 4 * step),
                || (0..4u32).for_each(|item| one(k.add(start, item * step))),
                || {
                    for item in 0..4u32 {
                        let i = k.add(start, item * step);
                        k.if_then(k.lt(i, to), || one(i));
                    }
                },
            );
        });
        if let (Some(private), Some(room)) = (private, room) {
            k.barrier();
            k.for_step(thread, k.convert(bins_in, Type::U32), threads, Unroll::Never, |bin| {
                let mut sum = k.load(private, bin);
                for copy in 1..copies {
                    sum = k.add(sum, k.load(private, k.add(bin, copy * room)));
                }
                k.if_then(k.ne(sum, 0), || {
                    k.atomic(AtomicOp::Add, counts, bin, k.convert(sum, index), Order::Relaxed(Scope::Device));
                });
            });
        }
        draft.launch(k, [blocks, 1u32.into(), 1u32.into()], block)?;
        let block = [threads, 1, 1];
        let k = Writer::new("histogram_result", block);
        let counts = k.memory(Argument::Temporary(whole), index.element());
        let bin = k.convert(k.global_thread(Axis::X), index);
        let all = k.count(bins.clone(), index);
        k.if_then(k.lt(bin, all), || {
            let sum = k.variable_with(k.load(counts, bin));
            if let Some(tables) = tables {
                let long = |value: Value| k.convert(value, Type::U64);
                k.for_step(k.constant(index, 1), k.count(tables, index), 1, Unroll::Never, |table| {
                    let place = k.add(k.mul(long(table), long(all)), long(bin));
                    k.set(sum, k.add(k.get(sum), k.load(counts, place)));
                });
            }
            outlet.put(&k, &[bin], bin, &[k.get(sum)]);
        });
        draft.launch(k, [bins.div_ceil(threads), 1u32.into(), 1u32.into()], block)?;
        Ok(draft.finish())
    }
}

trait SignedTwin {
    fn signed(self) -> Type;
}

impl SignedTwin for Type {
    /// Returns the signed integer type of the same width.
    fn signed(self) -> Type {
        if self.element().bits() == 64 { Type::I64 } else { Type::I32 }
    }
}
