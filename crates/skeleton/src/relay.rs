//! Relay: a function that reads lines of values computed by another function.
//!
//! A block takes a few rows of the domain at a time. It computes the line of values that belongs to each row,
//! keeps the lines in shared memory, and computes the results of the rows from them. Lines never reach global
//! memory, and each value is computed once. Resampling an image along columns and then along rows is such a
//! pair: the second function reads a few values of a line for each result, at computed places.
//!
//! A block is one warp, which takes 32 positions at a time. On a machine that runs warps as vectors, shared
//! memory is in the cache of a core. The last group of positions of a row overlaps the one before, so that
//! every lane has a position.
//!
//! Adjacent lanes mostly read values of a line that are close together. Then 32 or 64 values are loaded at
//! once, and lanes get theirs by exchanges. This takes less time than a load at a different place in each
//! lane. One test covers all reads of a position in all rows: all lanes must be within the loaded values.

use crate::cost::{self, Costs, LANES};
use crate::kit::{Draft, Inlet, Outlet, Writer, unravel};
use crate::program::Argument;
use crate::{Count, Domain, Error, Program, Result, Sink, Source};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Binding, Body, Cache, Memory, Shuffle, Statement, Type, Unroll, Value, Vote, reading};
use std::cell::RefCell;

/// Computes a function of positions that reads lines, and passes its values to a [`Sink`].
/// The sizes of a call are the lengths of the axes, then the length of a line. The last axis and a line have
/// 32 positions or more. Inputs and scalars are those of `source` without its lines, then of `line`, then of
/// the sink.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Relay {
    /// Positions of the results: two axes or more.
    pub domain: Domain,
    /// Function of a position of the domain.
    pub source: Source,
    /// For each input of `source`: true if it reads the line of its position, at an index along the line.
    pub along: Vec<bool>,
    /// Function of a position whose last index counts along a line; the other indices are those of the
    /// domain. It returns one scalar.
    pub line: Source,
    /// Use of the values.
    pub sink: Sink,
}

impl Relay {
    fn check(&self) -> Result<()> {
        let bad = |reason: String| Err(Error::Pattern { pattern: "relay", reason });
        let index = self.domain.check("relay", &[&self.source, &self.line], &self.sink)?;
        self.sink.check("relay", self.domain.axes(), &self.source.results())?;
        if self.domain.axes() < 2 || index != Type::U32 {
            return bad(format!("{} axes with indices of type `{index}`", self.domain.axes()));
        }
        let line = self.line.results();
        if line.len() != 1 || !line[0].is_scalar() {
            return bad(format!("`{}` gives {} values", self.line.function().name(), line.len()));
        }
        let inputs = self.source.inputs();
        let is_line = |(ty, along): (&Type, &bool)| !along || *ty == line[0];
        if inputs.len() != self.along.len() || !inputs.iter().zip(&self.along).all(is_line) {
            return bad(format!("`{}` reads lines of another type", self.source.function().name()));
        }
        Ok(())
    }

    /// Returns the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        self.check()?;
        let axes = self.domain.axes();
        let mut draft = Draft::new("relay", axes + 1);
        let inputs = self.source.inputs().into_iter().zip(&self.along);
        let inputs = inputs.map(|(ty, along)| (!along).then(|| draft.input(ty))).collect();
        let scalars = self.source.scalars().into_iter().map(|ty| (draft.scalar(ty), ty)).collect();
        let line = draft.source(&self.line);
        let outlet = draft.sink(&self.sink, &self.source.results(), &self.domain.count());
        draft.limit(self.domain.count());
        draft.limit(Count::product(0..axes - 1) * Count::size(axes));
        draft.least(Count::size(axes - 1), LANES.into());
        draft.least(Count::size(axes), LANES.into());
        RelayEmitter { relay: self, inputs, scalars, line, outlet }.launch(&mut draft, machine)?;
        Ok(draft.finish())
    }
}

/// Maximum number of values of all lines, more than any shared memory holds. It tells a vector executor that
/// the places of neighbours do not wrap around.
const MOST: u32 = 1 << 24;
/// Maximum number of positions of a row.
const MOST_COLUMNS: u32 = i32::MAX as u32;

/// Emitter of the kernels of a relay.
struct RelayEmitter<'a> {
    relay: &'a Relay,
    /// Numbers of the source's inputs that are in memory.
    inputs: Vec<Option<usize>>,
    scalars: Vec<(usize, Type)>,
    line: Inlet,
    outlet: Outlet,
}

impl RelayEmitter<'_> {
    fn launch(&self, draft: &mut Draft, machine: &Machine) -> Result<()> {
        let axes = self.relay.domain.axes();
        let block = [LANES, 1, 1];
        let k = Writer::new("relay", block);
        let ty = self.relay.line.results()[0];
        let room = k.large_shared(ty.element(), Count::size(axes) * cost::RELAY_ROWS);
        let rows = Count::product(0..axes - 1);
        // The rows of a block follow each other, because they share the inputs of their lines.
        let blocks = rows.clone().min(Costs::of(machine).busy(cost::RELAY_BLOCKS));
        let each = rows.clone().div_ceil(blocks.clone());
        let size = |axis: usize| k.count(Count::size(axis), Type::U32);
        let lengths: Vec<Value> = (0..axes).map(size).collect();
        let (length, width) = (size(axes), lengths[axes - 1]);
        let each = k.count(each, Type::U32);
        let first = k.mul(k.block(Axis::X), each);
        let end = k.min(k.add(first, each), k.count(rows, Type::U32));
        let along = |length: Value, at: &dyn Fn(Value)| {
            let last = k.min(k.sub(length, LANES), MOST_COLUMNS);
            k.for_step(0u32, length, LANES, Unroll::Never, |start| at(k.add(k.min(start, last), k.thread(Axis::X))));
        };
        let wide = |value: Value| k.convert(value, Type::U64);
        k.for_step(first, end, cost::RELAY_ROWS, Unroll::Never, |top| {
            // Rows beyond the last row of a block repeat it.
            let line = |number: Value| {
                let row = k.min(k.add(top, number), k.sub(end, 1));
                Line {
                    row,
                    above: unravel(&k, row, &lengths[..axes - 1]),
                    start: k.min(k.mul(number, length), MOST),
                    room,
                    length,
                }
            };
            let each_line = |compute: &dyn Fn(Line)| {
                k.for_step(0u32, k.literal(cost::RELAY_ROWS), 1, Unroll::Never, |number| compute(line(number)));
            };
            each_line(&|line| {
                along(length, &|place| {
                    let value = self.line.at(&k, &line.position(place))[0];
                    k.store_element(room, k.add(wide(line.start), wide(place)), value, Cache::Normal);
                });
            });
            k.warp_barrier();
            let put = |line: &Line, column: Value, values: &[Value]| {
                // With 64 bits a vector executor sees that neighbours are contiguous.
                let linear = k.add(k.mul(wide(line.row), wide(width)), wide(column));
                self.outlet.put(&k, &line.position(column), linear, values);
            };
            let put_apart = |line: &Line, column: Value| {
                put(line, column, &self.at(&k, line, column, &|at| self.load(&k, line, k.convert(at, Type::U64))));
            };
            let lines: Vec<Line> = (0..cost::RELAY_ROWS).map(|number| line(k.literal(number))).collect();
            // All rows read the same places of their lines, which are computed once.
            let near = |rows: u32| {
                along(width, &|column| {
                    let (mut results, mut are_near) = (vec![], k.literal(true));
                    for line in &lines {
                        let (values, is_near) = self.near(&k, line, column, rows);
                        results.push(values);
                        are_near = k.and(are_near, is_near);
                    }
                    k.if_else(
                        k.vote(Vote::All, are_near, None),
                        || lines.iter().zip(&results).for_each(|(line, values)| put(line, column, values)),
                        || each_line(&|line| put_apart(&line, column)),
                    );
                });
            };
            let apart = || each_line(&|line| along(width, &|column| put_apart(&line, column)));
            // Condition: 32 results read at most `most` values of a line.
            let is_within = |most: u32| k.le(k.mul(wide(length), u64::from(LANES)), k.mul(wide(width), u64::from(most)));
            match self.exchanges() {
                false => apart(),
                true => k.if_else(
                    is_within(cost::RELAY_NEAR[0]),
                    || near(1),
                    || {
                        let both = k.and(is_within(cost::RELAY_NEAR[1]), k.ge(length, 2 * LANES));
                        k.if_else(both, || near(2), apart);
                    },
                ),
            }
            k.warp_barrier();
        });
        draft.launch(k, [blocks, 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }

    /// Returns true if lanes can exchange values of a line: 4-byte values that are read unconditionally.
    fn exchanges(&self) -> bool {
        let source = &self.relay.source;
        let body = source.function().body();
        let is_straight = body.block(Body::ENTRY).statements.iter().all(|statement| matches!(statement, Statement::Define(_)));
        is_straight && source.function().operations() <= cost::RELAY_OPERATIONS && self.relay.line.results()[0].bytes() == 4
    }

    /// Returns a value of a line at a 64-bit index.
    fn load(&self, k: &Writer, line: &Line, index: Value) -> Value {
        k.load_element(line.room, self.relay.line.results()[0], k.add(k.convert(line.start, Type::U64), index))
    }

    /// Returns the values at a position for lanes that read the line near each other. All reads must be
    /// within `rows` rows of 32 values after the first read of the first lane. Also returns a condition: this
    /// lane does.
    fn near(&self, k: &Writer, line: &Line, column: Value, rows: u32) -> (Vec<Value>, Value) {
        let lane = k.thread(Axis::X);
        let loaded: RefCell<Option<(Value, Vec<Value>, Value)>> = RefCell::default();
        let values = self.at(k, line, column, &|index| {
            let index = k.convert(index, Type::U32);
            let mut loaded = loaded.borrow_mut();
            let (start, words, is_near) = loaded.get_or_insert_with(|| {
                let first = k.shuffle(Shuffle::Index, index, 0u32);
                let start = k.min(k.min(first, k.sub(line.length, rows * LANES)), MOST);
                let word = |row: u32| self.load(k, line, k.convert(k.add(start, k.add(lane, row * LANES)), Type::U64));
                (start, (0..rows).map(word).collect(), k.literal(true))
            });
            let distance = k.sub(index, *start);
            *is_near = k.and(*is_near, k.lt(distance, rows * LANES));
            // A shuffle uses the low five bits of the distance.
            let mut taken = words.iter().map(|word| k.shuffle(Shuffle::Index, *word, distance));
            let first = taken.next().unwrap_or(distance);
            taken.fold(first, |first, second| k.select(k.lt(distance, LANES), first, second))
        });
        let is_near = loaded.into_inner().map_or(k.literal(true), |(.., is_near)| is_near);
        (values, is_near)
    }

    /// Returns the values at a position. `read` reads the line.
    fn at(&self, k: &Writer, line: &Line, column: Value, read: &dyn Fn(Value) -> Value) -> Vec<Value> {
        let source = &self.relay.source;
        let mut arguments = k.positions(&line.position(column), source.index());
        arguments.extend(self.scalars.iter().map(|(number, ty)| k.scalar(*number, *ty)));
        let inputs = source.inputs().into_iter().zip(&self.inputs);
        let mut bindings: Vec<_> = inputs
            .map(|(ty, input)| {
                reading(move |_, at: &[Value]| match input {
                    Some(input) => k.load_element(k.memory(Argument::Input(*input), ty.element()), ty, at[0]),
                    None => read(at[0]),
                })
            })
            .collect();
        let mut bindings: Vec<&mut dyn Binding> = bindings.iter_mut().map(|binding| binding as &mut dyn Binding).collect();
        k.inline(source.function(), &arguments, &mut bindings)
    }
}

/// A row of the domain, and its line.
struct Line {
    row: Value,
    /// Indices of the row.
    above: Vec<Value>,
    /// Start of the line in the memory of all lines.
    start: Value,
    room: Memory,
    /// Number of values of the line.
    length: Value,
}

impl Line {
    fn position(&self, last: Value) -> Vec<Value> {
        self.above.iter().copied().chain([last]).collect()
    }
}
