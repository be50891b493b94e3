//! Map: one function at every position.
//!
//! | domain | on a GPU | on a CPU |
//! | --- | --- | --- |
//! | a line | each thread has a few neighbours. 16-byte accesses move them if inputs are read at the position itself and all buffers are aligned | a warp runs along a stretch, 32 positions at a time |
//! | a long last axis | threads along it, a few rows each | a warp runs along a stretch of a row, or through several short rows |
//! | a short last axis | threads along all positions; a position is computed by division | likewise, in stretches |
//!
//! Rejected: patches of eight columns and four rows for warps that read at computed places, so that the reads
//! fall in fewer cache lines. On an H200 a rotated image took 7 % longer.

use crate::cost::{self, Costs};
use crate::kit::{Draft, Inlet, Outlet, Writer, unravel, unravel_in_vectors};
use crate::program::Argument;
use crate::{Count, Domain, Program, Result, Sink, Source};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Element, Type, Unroll, Value};

/// Computes a [`Source`] at every position of a domain and passes the values to a [`Sink`].
/// The sizes of a call are the lengths of the axes. Inputs, outputs and scalars are those of the source, then
/// those of the sink.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Map {
    /// The positions.
    pub domain: Domain,
    /// Function of a position.
    pub source: Source,
    /// Use of its results.
    pub sink: Sink,
}

impl Map {
    /// Returns the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        let results = self.source.results();
        self.sink.check("map", self.domain.axes(), &results)?;
        let index = self.domain.check("map", &[&self.source], &self.sink)?;
        let mut draft = Draft::new("map", self.domain.axes());
        let inlet = draft.source(&self.source);
        let outlet = draft.sink(&self.sink, &results, &self.domain.count());
        if index == Type::U32 {
            draft.limit(self.domain.count());
        }
        let cpu = Costs::of(machine).in_vectors();
        let length = self.domain.is_counted_on_device().then(|| draft.input(Type::U32));
        let map = MapEmitter { map: self, inlet, outlet, index, cpu, length };
        if self.domain.has_rows() && self.domain.axes() > 1 {
            map.rows(&mut draft)?;
        } else {
            map.line(&mut draft)?;
        }
        Ok(draft.finish())
    }
}

/// Emitter of the kernels of a map.
struct MapEmitter<'a> {
    map: &'a Map,
    inlet: Inlet,
    outlet: Outlet,
    index: Type,
    cpu: bool,
    /// The input that holds the length of the first axis.
    length: Option<usize>,
}

impl MapEmitter<'_> {
    fn lengths(&self, k: &Writer) -> Vec<Value> {
        (0..self.map.domain.axes()).map(|axis| k.count_in_code(self.map.domain.size(axis), self.index)).collect()
    }

    /// Returns the product of the lengths of some axes.
    fn product(&self, k: &Writer, axes: std::ops::Range<usize>) -> Value {
        let Some(length) = self.length.filter(|_| axes.contains(&0)) else {
            return k.count_in_code(self.map.domain.product(axes), self.index);
        };
        let length = k.load(k.memory(Argument::Input(length), Element::U32), k.literal(0u32));
        let length = k.convert(length, self.index);
        if axes.end == 1 { length } else { k.mul(length, k.count_in_code(self.map.domain.product(1..axes.end), self.index)) }
    }

    /// Emits the work of a block. If the length is in memory, a block beyond it does nothing.
    fn guarded(&self, k: &Writer, first: Value, n: Value, block: impl FnOnce()) {
        match self.length {
            Some(_) => k.if_then(k.lt(first, n), block),
            None => block(),
        }
    }

    /// Emits the work of one position.
    fn at(&self, k: &Writer, position: &[Value], linear: Value) {
        let values = self.inlet.at(k, position);
        self.outlet.put(k, position, linear, &values);
    }

    /// Emits the work of the position with a number.
    fn at_number(&self, k: &Writer, number: Value) {
        match self.map.domain.axes() {
            0 => self.at(k, &[], number),
            1 => self.at(k, &[number], number),
            _ if self.cpu && self.index == Type::U32 => {
                self.at(k, &unravel_in_vectors(k, number, &self.lengths(k)), number);
            }
            _ => self.at(k, &unravel(k, number, &self.lengths(k)), number),
        }
    }

    /// Returns the number of neighbours that a thread moves with one access.
    fn width(&self) -> Option<usize> {
        if self.map.domain.axes() != 1 || self.outlet.writes_elsewhere() {
            return None;
        }
        let contiguous = self.map.source.contiguous();
        let inputs = self.map.source.inputs();
        let moved = inputs.iter().zip(&contiguous).filter(|(_, contiguous)| **contiguous).map(|(ty, _)| ty);
        let moved: Vec<Type> = moved.chain(&self.outlet.stored).copied().collect();
        let widest = moved.iter().filter(|ty| ty.is_scalar()).map(|ty| ty.bytes()).max()?;
        let width = (16 / widest).max(4) as usize;
        moved.iter().all(|ty| ty.is_scalar()).then_some(width)
    }

    /// Returns true if two rows of the function fit into about 32 registers.
    fn is_small(&self) -> bool {
        let source = &self.map.source;
        let narrow = source.inputs().iter().chain(&source.results()).all(|ty| ty.bytes() <= 4);
        narrow && source.function().body().nodes().len() <= SMALL
    }

    /// Returns true if the function is so large that it is emitted once, in a loop. Wider accesses would then
    /// gain nothing, and compilation would take long.
    fn is_large(&self) -> bool {
        self.map.source.function().operations() > LARGE
    }

    /// Emits the kernel for all positions as one line.
    fn line(&self, draft: &mut Draft) -> Result<()> {
        let count = self.map.domain.count();
        if self.cpu {
            return self.stretches(draft, count);
        }
        let block = [256, 1, 1];
        let k = Writer::new("map", block);
        let n = self.product(&k, 0..self.map.domain.axes());
        let thread = k.thread(Axis::X);
        let width = self.width();
        let items = width.unwrap_or(4) as u32;
        let tile = block[0] * items;
        let first = k.mul(k.convert(k.block(Axis::X), self.index), tile);
        let one = |item: Value| {
            let i = k.add(first, k.convert(k.add(thread, k.mul(item, block[0])), self.index));
            k.if_then(k.lt(i, n), || self.at_number(&k, i));
        };
        let apart = || (0..items).for_each(|item| one(k.literal(item)));
        self.guarded(&k, first, n, || match width {
            _ if self.is_large() => k.for_step(0, k.literal(items), 1, Unroll::Never, one),
            None => apart(),
            Some(width) => {
                let whole = k.ge(k.sub(n, first), tile);
                k.if_else(
                    k.and(whole, k.aligned([self.inlet.row_addresses(&k), self.outlet.row_addresses(&k)].concat())),
                    || self.neighbours(&k, first, thread, width),
                    apart,
                );
            }
        });
        draft.launch(k, [count.div_ceil(tile), 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }

    /// Emits the work of a thread for its neighbours. All of them are inside.
    fn neighbours(&self, k: &Writer, first: Value, thread: Value, width: usize) {
        let start = k.add(first, k.convert(k.mul(thread, width), self.index));
        let row = self.inlet.row(k, start, width);
        let value = |item: usize| {
            let i = k.add(start, item);
            self.inlet.at_with(k, &[i], &|index| row[index].map(|row| k.lane(row, item)))
        };
        let values: Vec<Vec<Value>> = self.inlet.together(k, || (0..width).map(value).collect());
        self.outlet.put_row(k, start, &values);
    }

    /// Emits the kernel for all positions as one line, for warps that run along stretches.
    fn stretches(&self, draft: &mut Draft, count: Count) -> Result<()> {
        let block = [32, 1, 1];
        let k = Writer::new("map", block);
        let n = self.product(&k, 0..self.map.domain.axes());
        let lane = k.convert(k.thread(Axis::X), self.index);
        let first = k.mul(k.convert(k.block(Axis::X), self.index), cost::STRETCH);
        self.guarded(&k, first, n, || self.stretch(&k, first, n, |i| self.at_number(&k, i), lane));
        draft.launch(k, [count.div_ceil(cost::STRETCH), 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }

    /// Runs a warp from `first` to the end of the stretch or to `n`.
    fn stretch(&self, k: &Writer, first: Value, n: Value, at: impl Fn(Value), lane: Value) {
        let left = k.sub(n, first);
        let some = |end: Value| {
            k.for_step(0, end, 32, Unroll::Never, |step| {
                let i = k.add(k.add(first, step), lane);
                k.if_then(k.lt(i, n), || at(i));
            });
        };
        if self.is_large() {
            return some(k.min(left, cost::STRETCH));
        }
        k.if_else(
            k.ge(left, cost::STRETCH),
            || {
                k.for_step(
                    0,
                    k.constant(self.index, cost::STRETCH),
                    32,
                    Unroll::Never,
                    |step| at(k.add(k.add(first, step), lane)),
                )
            },
            || some(left),
        );
    }

    /// Emits the kernel with threads along the last axis, and all other axes as one axis of rows.
    fn rows(&self, draft: &mut Draft) -> Result<()> {
        let axes = self.map.domain.axes();
        let (rows, length) = (Count::product(0..axes - 1), Count::size(axes - 1));
        let row_at = |k: &Writer, row: Value, column: Value, lengths: &[Value]| {
            let mut position = unravel(k, row, &lengths[..axes - 1]);
            position.push(column);
            let start = k.mul(row, lengths[axes - 1]);
            // With 32 bits, a CPU could not know that the lanes of a warp are contiguous. A GPU does not
            // depend on it.
            let linear =
                if self.cpu { k.add(k.convert(start, Type::U64), k.convert(column, Type::U64)) } else { k.add(start, column) };
            self.at(k, &position, linear);
        };
        if self.cpu {
            let block = [32, 1, 1];
            let k = Writer::new("map", block);
            let lengths = self.lengths(&k);
            let lane = k.convert(k.thread(Axis::X), self.index);
            let first = k.mul(k.convert(k.block(Axis::X), self.index), cost::STRETCH);
            // Number of rows that make up one stretch.
            let each = Count::Constant(cost::STRETCH.into()).div_ceil(length.clone());
            let groups = rows.div_ceil(each.clone());
            let (all, each) = (self.product(&k, 0..axes - 1), k.count_in_code(each, self.index));
            let (number, step) = (k.convert(k.block(Axis::Y), self.index), k.convert(k.grid_size(Axis::Y), self.index));
            k.for_step(number, k.count_in_code(groups.clone(), self.index), step, Unroll::Never, |group| {
                let start = k.mul(group, each);
                k.for_step(start, k.min(k.add(start, each), all), 1, Unroll::Never, |row| {
                    self.stretch(&k, first, lengths[axes - 1], |column| row_at(&k, row, column, &lengths), lane);
                });
            });
            draft.launch(k, [length.div_ceil(cost::STRETCH), groups.min(MAX_ROWS), 1u32.into()], block)?;
            return Ok(());
        }
        let block = [64, 4, 1];
        // Loads at computed places have a high latency. Small functions leave room for as many warps as a
        // multiprocessor can hold, which hides it.
        let (k, each) = match self.is_small() {
            true => (Writer::with_blocks("map", block, 8), 2),
            false => (Writer::new("map", block), 4),
        };
        let lengths = self.lengths(&k);
        let column = k.convert(k.global_thread(Axis::X), self.index);
        let first = k.mul(k.convert(k.block(Axis::Y), self.index), block[1] * each);
        let first = k.add(first, k.convert(k.thread(Axis::Y), self.index));
        let step = k.mul(k.convert(k.grid_size(Axis::Y), self.index), block[1] * each);
        let all = self.product(&k, 0..axes - 1);
        k.if_then(k.lt(column, lengths[axes - 1]), || {
            k.for_step(first, all, step, Unroll::Never, |start| {
                let one = |item: Value| {
                    let row = k.add(start, k.mul(k.convert(item, self.index), block[1]));
                    k.if_then(k.lt(row, all), || row_at(&k, row, column, &lengths));
                };
                match self.is_large() {
                    true => k.for_step(0, k.literal(each), 1, Unroll::Never, one),
                    false => (0..each).for_each(|item| one(k.literal(item))),
                }
            });
        });
        let grid = [length.div_ceil(block[0]), rows.div_ceil(block[1] * each).min(MAX_ROWS), 1u32.into()];
        draft.launch(k, grid, block)?;
        Ok(())
    }
}

/// Number of operations above which a function is emitted once, in a loop.
const LARGE: u64 = 1024;
/// Maximum number of nodes of a function that fits into about 32 registers.
const SMALL: usize = crate::cost::FEW_REGISTERS;
/// Maximum number of blocks in the second direction of a grid.
const MAX_ROWS: u32 = crate::cost::GRID_ROWS;
