//! Scan: all prefixes along one axis of a domain, combined by an associative operator.
//!
//! A domain is a set of *lines* along the axis. Threads are distributed in one of two ways:
//!
//! - adjacent threads have adjacent lines, and each runs along its own;
//! - the threads of a block work on one line, tile by tile. A warp takes rows of its part of the tile. Each
//!   lane has a few adjacent elements. The sums of lanes are scanned by shuffles, then those of rows, then
//!   those of warps. On a CPU a block is one warp that takes one row at a time.
//!
//! If there are too few lines to keep the machine busy, lines are *split*. A GPU has a block for each tile,
//! and blocks find the prefix of their tile by look-back ([`TileChain`](crate::kit::TileChain)) in one pass.
//! On a CPU, and if threads have separate lines, lines are split into parts. A first kernel reduces the
//! parts, a second one scans the results, and a third one scans the parts. A core then reads its part from
//! its cache. The number of parts is computed from sizes and machine, so results are deterministic. Nothing
//! is combined out of order.

mod once;
mod segmented;
mod segmented_row;

use crate::cost::{self, Costs};
use crate::kit::{
    Accumulator, Draft, Inlet, Outlet, Shared, Temporaries, Writer, broadcast, ravel, reduce_block, scan_warp, shift_warp,
    unravel,
};
use crate::operator::Operator;
use crate::program::Program;
use crate::{Count, Domain, Error, Result, Sink, Source};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Type, Unroll, Value};
use segmented_row::scan_in_segments;

/// Passes to a [`Sink`] at every position the values of a [`Source`] along an axis, combined by an
/// [`Operator`] up to that position.
///
/// The sizes of a call are the lengths of all axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scan {
    /// The positions.
    pub domain: Domain,
    /// Axis along which prefixes are combined.
    pub axis: usize,
    /// The values.
    pub source: Source,
    /// Operator that combines them.
    pub operator: Operator,
    /// True if the result at a position includes the value there.
    pub inclusive: bool,
    /// Use of the results.
    pub sink: Sink,
    /// Spread of threads.
    pub spread: ScanSpread,
}

/// The distribution of threads over a scan. Every spread gives correct results for all sizes.
/// [`ScanSpread::of`] chooses a fast one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScanSpread {
    /// True if neighbouring threads work along the axis. Otherwise they have neighbouring lines.
    pub along_axis: bool,
    /// True if lines are split among several blocks.
    pub split: bool,
}

impl ScanSpread {
    /// Returns a fast spread for these sizes.
    pub fn of(machine: &Machine, sizes: &[u64], axis: usize) -> ScanSpread {
        let length = sizes.get(axis).copied().unwrap_or(1);
        let lines = sizes.iter().enumerate().filter(|(other, _)| *other != axis);
        let lines = lines.fold(1u64, |product, (_, length)| product.saturating_mul(*length));
        let last = sizes.last().copied().unwrap_or(1);
        let along_axis = if axis + 1 == sizes.len() { length >= 16 } else { last < 32 && length >= 32 };
        let costs = Costs::of(machine);
        let enough = if along_axis { costs.busy(cost::ENOUGH_SCAN_ROWS) } else { costs.enough_scan_columns() };
        let long = length >= if along_axis { cost::SPLIT_ROWS } else { cost::SPLIT_COLUMNS };
        ScanSpread { along_axis, split: lines < enough && long }
    }
}

impl Scan {
    /// Returns the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        let axes = self.domain.axes();
        if self.axis >= axes {
            return Err(Error::Pattern { pattern: "scan", reason: format!("there is no axis {} among {axes}", self.axis) });
        }
        let types = self.operator.types();
        if self.source.results() != types {
            let reason = format!("`{}` does not give what the operator takes", self.source.function().name());
            return Err(Error::Pattern { pattern: "scan", reason });
        }
        self.sink.check("scan", axes, &types)?;
        let index = self.domain.check("scan", &[&self.source], &self.sink)?;
        let mut draft = Draft::new("scan", axes);
        let inlet = draft.source(&self.source);
        let outlet = draft.sink(&self.sink, &types, &self.domain.count());
        if index == Type::U32 {
            draft.limit(self.domain.count());
        }
        let is_cpu = Costs::of(machine).in_vectors();
        let other_axes: Vec<usize> = (0..axes).filter(|axis| *axis != self.axis).collect();
        let lines = other_axes.iter().map(|axis| Count::size(*axis)).reduce(|a, b| a * b).unwrap_or(Count::Constant(1));
        let costs = Costs::of(machine);
        let parts = ScanEmitter { scan: self, inlet, outlet, index, is_cpu, costs, other_axes, lines };
        if self.spread.along_axis {
            parts.along_axis(&mut draft)?
        } else {
            parts.along_lines(&mut draft)?
        }
        Ok(draft.finish())
    }
}

/// Emitter of the kernels of a scan.
struct ScanEmitter<'a> {
    scan: &'a Scan,
    inlet: Inlet,
    outlet: Outlet,
    index: Type,
    is_cpu: bool,
    costs: Costs<'a>,
    other_axes: Vec<usize>,
    lines: Count,
}

/// The thread layout of a block that works on one line.
struct LineThreads {
    warps: u32,
    /// Number of rows of a warp in a tile, and of neighbours of a lane in a row.
    rows: u32,
    items: u32,
    /// Number of blocks that a multiprocessor should hold.
    blocks: u32,
}

impl LineThreads {
    fn row(&self) -> u32 {
        32 * self.items
    }

    fn tile(&self) -> u32 {
        self.warps * self.rows * self.row()
    }
}

impl ScanEmitter<'_> {
    fn operator(&self) -> &Operator {
        &self.scan.operator
    }

    fn wide(&self, k: &Writer, value: Value) -> Value {
        k.convert(value, self.index)
    }

    fn length(&self, k: &Writer) -> Value {
        k.count(Count::size(self.scan.axis), self.index)
    }

    /// Returns the indices of a line on the other axes.
    fn line(&self, k: &Writer, line: Value) -> Vec<Value> {
        let lengths: Vec<Value> = self.other_axes.iter().map(|axis| k.count(Count::size(*axis), self.index)).collect();
        unravel(k, line, &lengths)
    }

    fn position(&self, line: &[Value], place: Value) -> Vec<Value> {
        let mut position = line.to_vec();
        position.insert(self.scan.axis, place);
        position
    }

    fn at(&self, k: &Writer, line: &[Value], place: Value) -> Vec<Value> {
        self.inlet.at(k, &self.position(line, place))
    }

    fn put(&self, k: &Writer, line: &[Value], place: Value, values: &[Value]) {
        let position = self.position(line, place);
        let lengths: Vec<Value> = (0..position.len()).map(|axis| k.count(Count::size(axis), self.index)).collect();
        self.outlet.put(k, &position, ravel(k, &position, &lengths), values);
    }

    /// Allocates memory for the sums of the parts of lines.
    fn pieces(&self, draft: &mut Draft, parts: &Count) -> Temporaries {
        Temporaries::new(draft, &self.operator().types(), &(self.lines.clone() * parts.clone()))
    }

    // Spread along lines: neighbouring threads have neighbouring lines.

    fn along_lines(&self, draft: &mut Draft) -> Result<()> {
        let threads = self.costs.pick(cost::COLUMN_THREADS);
        let block = [threads, 1, 1];
        let blocks = self.lines.clone().div_ceil(threads);
        let length = Count::size(self.scan.axis);
        let busy = self.costs.blocks(cost::SCAN_COLUMN_BLOCKS, threads);
        let parts = length.clone().div_ceil(16u32).min(Count::Constant(busy).div_ceil(blocks.clone())).max(1u32);
        let parts = if self.scan.spread.split { parts } else { Count::Constant(1) };
        let pieces = self.scan.spread.split.then(|| self.pieces(draft, &parts));
        let each = |name: &str, body: &dyn Fn(&Writer, Value, Value, Value)| {
            let k = Writer::new(name, block);
            let line = self.wide(&k, k.global_thread(Axis::X));
            let part = self.wide(&k, k.block(Axis::Y));
            let n = k.count(self.lines.clone(), self.index);
            k.if_then(k.lt(line, n), || body(&k, line, part, k.add(k.mul(part, n), line)));
            k
        };
        let range = |k: &Writer, part: Value| {
            let run = k.count(length.clone().div_ceil(parts.clone()), self.index);
            let from = k.mul(part, run);
            (from, k.min(k.add(from, run), self.length(k)))
        };
        if let Some(pieces) = &pieces {
            let k = each("scan_reduce", &|k, line, part, place| {
                let sum = Accumulator::new(k, self.operator());
                let line = self.line(k, line);
                let (from, to) = range(k, part);
                k.for_step(from, to, 1, Unroll::Never, |i| sum.add(k, &self.at(k, &line, i)));
                pieces.store(k, place, &sum.get(k));
            });
            draft.launch(k, [blocks.clone(), parts.clone(), 1u32.into()], block)?;
            let k = each("scan_parts", &|k, line, _, _| {
                let sum = Accumulator::new(k, self.operator());
                let n = k.count(self.lines.clone(), self.index);
                k.for_range(0, k.count(parts.clone(), self.index), |part| {
                    let place = k.add(k.mul(part, n), line);
                    let own = pieces.load(k, place);
                    pieces.store(k, place, &sum.get(k));
                    sum.add(k, &own);
                });
            });
            draft.launch(k, [blocks.clone(), 1u32.into(), 1u32.into()], block)?;
        }
        let k = each("scan", &|k, line, part, place| {
            let sum = Accumulator::new(k, self.operator());
            if let Some(pieces) = &pieces {
                sum.set(k, &pieces.load(k, place));
            }
            let line = self.line(k, line);
            let (from, to) = range(k, part);
            k.for_step(from, to, 1, Unroll::Never, |i| {
                let (own, before) = (self.at(k, &line, i), sum.get(k));
                sum.add(k, &own);
                self.put(k, &line, i, &if self.scan.inclusive { sum.get(k) } else { before });
            });
        });
        draft.launch(k, [blocks, parts, 1u32.into()], block)?;
        Ok(())
    }

    // Spread along the axis: the threads of a block work on one line.

    fn shape(&self) -> LineThreads {
        if self.is_cpu {
            return LineThreads { warps: 1, rows: 1, items: 1, blocks: 1 };
        }
        let bytes: u32 = self.operator().types().iter().map(|ty| ty.bytes()).sum();
        // Registers limit the number of elements and of blocks.
        let (rows, blocks) = match bytes {
            0..=5 => (13, 2),
            6..=12 => (2, 4),
            _ => (1, 2),
        };
        LineThreads { warps: 8, rows, items: 4, blocks }
    }

    fn along_axis(&self, draft: &mut Draft) -> Result<()> {
        if self.scan.spread.split && !self.is_cpu {
            return self.once(draft);
        }
        let shape = self.shape();
        let block = [32 * shape.warps, 1, 1];
        // A part is a whole number of tiles. On a CPU it consists of rows of about 4 KiB.
        let unit = shape.tile().max(1024);
        let units = Count::size(self.scan.axis).div_ceil(unit);
        let busy = self.costs.busy(cost::SCAN_ROW_BLOCKS);
        let parts = units.clone().min(Count::Constant(busy).div_ceil(self.lines.clone())).max(1u32);
        let parts = if self.scan.spread.split { parts } else { Count::Constant(1) };
        let pieces = self.scan.spread.split.then(|| self.pieces(draft, &parts));
        let run = units.div_ceil(parts.clone()) * unit;
        let all = self.lines.clone() * parts.clone();
        let grid = |count: &Count| [count.clone(), 1u32.into(), 1u32.into()];
        let start = |k: &Writer| {
            let group = self.wide(k, k.block(Axis::X));
            let (line, part) = if pieces.is_some() {
                let parts = k.count(parts.clone(), self.index);
                let line = k.div(group, parts);
                (line, k.sub(group, k.mul(line, parts)))
            } else {
                (group, k.convert(k.literal(0u32), self.index))
            };
            let run = k.count(run.clone(), self.index);
            let from = k.mul(part, run);
            (group, self.line(k, line), from, k.min(k.add(from, run), self.length(k)))
        };
        if let Some(pieces) = &pieces {
            let k = Writer::new("scan_reduce", block);
            let (group, line, from, to) = start(&k);
            let sum = match self.segments() {
                Some(parts) => self.reduce_last(&k, &parts, &line, from, to),
                None => self.reduce_part(&k, &shape, &line, from, to),
            };
            k.if_then(k.eq(k.thread(Axis::X), 0), || pieces.store(&k, group, &sum));
            draft.launch(k, grid(&all), block)?;
            let k = Writer::new("scan_parts", [32, 1, 1]);
            self.scan_pieces(&k, pieces, &parts);
            draft.launch(k, grid(&self.lines), [32, 1, 1])?;
        }
        let k = Writer::new("scan", block);
        let (group, line, from, to) = start(&k);
        let carry = Accumulator::new(&k, self.operator());
        if let Some(pieces) = &pieces {
            carry.set(&k, &pieces.load(&k, group));
        }
        if self.is_cpu {
            self.scan_rows(&k, &line, from, to, &carry);
        } else {
            self.scan_tiles(&k, &shape, &line, from, to, &carry);
        }
        draft.launch(k, grid(&all), block)?;
        Ok(())
    }

    /// Reduces a part of a line. Thread 0 has the result.
    fn reduce_part(&self, k: &Writer, shape: &LineThreads, line: &[Value], from: Value, to: Value) -> Vec<Value> {
        let threads = 32 * shape.warps;
        let thread = k.thread(Axis::X);
        let wide = self.wide(k, thread);
        let operator = self.operator();
        if operator.is_commutative() {
            let chains: Vec<Accumulator<'_>> = (0..4).map(|_| Accumulator::new(k, operator)).collect();
            k.for_step(from, to, 4 * threads, Unroll::Never, |first| {
                let start = k.add(first, wide);
                k.if_else(
                    k.ge(k.sub(to, first), 4 * threads),
                    || chains.iter().zip(0u32..).for_each(|(sum, i)| sum.add(k, &self.at(k, line, k.add(start, i * threads)))),
                    || {
                        for (sum, i) in chains.iter().zip(0u32..) {
                            let place = k.add(start, i * threads);
                            k.if_then(k.lt(place, to), || sum.add(k, &self.at(k, line, place)));
                        }
                    },
                );
            });
            let (first, others) = chains.split_at(1);
            others.iter().for_each(|other| first[0].add(k, &other.get(k)));
            return reduce_block(k, operator, &first[0].get(k), thread, threads);
        }
        let sum = Accumulator::new(k, operator);
        k.for_step(from, to, 8 * threads, Unroll::Never, |first| {
            let own = Accumulator::new(k, operator);
            own.set(k, &operator.nothing(k));
            let start = k.add(first, k.mul(wide, 8));
            k.for_range(0, k.constant(self.index, 8), |item| {
                let place = k.add(start, item);
                k.if_then(k.lt(place, to), || own.add(k, &self.at(k, line, place)));
            });
            let all = reduce_block(k, operator, &own.get(k), thread, threads);
            sum.add(k, &all);
        });
        sum.get(k)
    }

    /// Replaces the sums of a line's parts by their exclusive prefixes, in one warp.
    fn scan_pieces(&self, k: &Writer, pieces: &Temporaries, parts: &Count) {
        let operator = self.operator();
        let parts = k.count(parts.clone(), self.index);
        let first = k.mul(self.wide(k, k.block(Axis::X)), parts);
        let lane = k.thread(Axis::X);
        let carry = Accumulator::new(k, operator);
        k.for_step(0, parts, 32, Unroll::Never, |row| {
            let part = k.add(row, self.wide(k, lane));
            let place = k.add(first, part);
            let there = k.lt(part, parts);
            let own = k.choose_list(there, || pieces.load(k, place), || operator.nothing(k));
            let up_to = scan_warp(k, operator, &own, lane);
            let before = operator.combine(k, &carry.get(k), &shift_warp(k, operator, &up_to, lane));
            k.if_then(there, || pieces.store(k, place, &before));
            carry.add(k, &broadcast(k, &up_to, 31));
        });
    }

    /// Returns the result at a position and the prefix up to it, from the prefix before and the value there.
    fn result(&self, k: &Writer, before: &[Value], own: &[Value]) -> (Vec<Value>, Vec<Value>) {
        let up_to = self.operator().combine(k, before, own);
        (if self.scan.inclusive { up_to.clone() } else { before.to_vec() }, up_to)
    }

    /// Scans row by row, in one warp.
    fn scan_rows(&self, k: &Writer, line: &[Value], from: Value, to: Value, carry: &Accumulator<'_>) {
        let operator = self.operator();
        let segments = self.segments().filter(|_| self.scan.inclusive);
        let lane = k.thread(Axis::X);
        let wide = self.wide(k, lane);
        let row = |first: Value, checked: bool| {
            let place = k.add(first, wide);
            let there = k.lt(place, to);
            let own = match checked {
                true => k.choose_list(there, || self.at(k, line, place), || operator.nothing(k)),
                false => self.at(k, line, place),
            };
            let so_far = carry.get(k);
            let (results, next) = match &segments {
                Some(parts) => scan_in_segments(k, parts, &so_far, &own, lane),
                None => {
                    let up_to = scan_warp(k, operator, &own, lane);
                    let scanned = if self.scan.inclusive { up_to.clone() } else { shift_warp(k, operator, &up_to, lane) };
                    let results = operator.combine(k, &so_far, &scanned);
                    (results, operator.combine(k, &so_far, &broadcast(k, &up_to, 31)))
                }
            };
            if checked {
                k.if_then(there, || self.put(k, line, place, &results));
            } else {
                self.put(k, line, place, &results);
            }
            carry.set(k, &next);
        };
        k.for_step(from, to, 32, Unroll::Never, |first| {
            k.if_else(k.ge(k.sub(to, first), 32), || row(first, false), || row(first, true));
        });
    }

    /// Scans tile by tile, in one block.
    fn scan_tiles(&self, k: &Writer, shape: &LineThreads, line: &[Value], from: Value, to: Value, carry: &Accumulator<'_>) {
        let operator = self.operator();
        let thread = k.thread(Axis::X);
        let (lane, warp) = (k.and(thread, 31), k.shr(thread, 5));
        let totals = Shared::new(k, &operator.types(), shape.warps);
        k.for_step(from, to, shape.tile(), Unroll::Never, |first| {
            let start = k.add(first, self.wide(k, k.mul(warp, shape.rows * shape.row())));
            let start = k.add(start, self.wide(k, k.mul(lane, shape.items)));
            let place = |row: u32, item: u32| k.add(start, row * shape.row() + item);
            // All loads come first, so that they are in flight together.
            let items: Vec<Vec<Vec<Value>>> = (0..shape.rows)
                .map(|row| {
                    let item = |item: u32| {
                        let place = place(row, item);
                        k.choose_list(k.lt(place, to), || self.at(k, line, place), || operator.nothing(k))
                    };
                    (0..shape.items).map(item).collect()
                })
                .collect();
            // The prefix of each lane in each row, from the start of the warp's part.
            let mut before_rows = operator.nothing(k);
            let mut starts = vec![];
            for row in &items {
                let mut own = row[0].clone();
                row[1..].iter().for_each(|item| own = operator.combine(k, &own, item));
                let up_to = scan_warp(k, operator, &own, lane);
                let before = shift_warp(k, operator, &up_to, lane);
                starts.push(operator.combine(k, &before_rows, &before));
                before_rows = operator.combine(k, &before_rows, &broadcast(k, &up_to, 31));
            }
            k.if_then(k.eq(lane, 0), || totals.set(k, warp, &before_rows));
            k.barrier();
            let (so_far, mut before_warp, mut whole) = (carry.get(k), operator.nothing(k), operator.nothing(k));
            for other in 0..shape.warps {
                let is_mine = k.eq(warp, other);
                before_warp = before_warp.iter().zip(&whole).map(|(old, new)| k.select_value(is_mine, *new, *old)).collect();
                whole = operator.combine(k, &whole, &totals.get(k, k.literal(other)));
            }
            let before_warp = operator.combine(k, &so_far, &before_warp);
            carry.set(k, &operator.combine(k, &so_far, &whole));
            for (row, (items, start)) in (0..shape.rows).zip(items.iter().zip(&starts)) {
                let mut before = operator.combine(k, &before_warp, start);
                for (item, own) in (0..shape.items).zip(items) {
                    let (result, up_to) = self.result(k, &before, own);
                    let place = place(row, item);
                    k.if_then(k.lt(place, to), || self.put(k, line, place, &result));
                    before = up_to;
                }
            }
            // The totals are overwritten in the next round.
            k.barrier();
        });
    }
}
