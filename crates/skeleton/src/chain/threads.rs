//! Chains on threads: blocks of many threads, several rows at a time.
//!
//! In a step each stage computes some rows of all columns of a block. A thread has all rows of one column, so that what rows share stays in registers; or a
//! part of the rows of several neighbouring columns, which it reads and writes together, where columns share more than rows. A barrier separates a stage from those that read it, and another one ends the step: then the next step may replace the oldest rows of all rings.
//!
//! Rows of a step that lie outside of the image are left out: the step starts at another row, and only stores those rows that belong to it. Other rows are
//! computed from whatever the rings hold there, and dropped.

use super::{Parts, Place, Port, Tap, TapRead};
use crate::cost::{self, Costs};
use crate::kit::{Draft, Writer, unravel};
use crate::program::Argument;
use crate::{Count, Result};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Binding, Cache, Element, Literal, Order, Type, Unroll, Value, reading};
use std::cell::RefCell;
use std::collections::HashMap;

/// The rows of a stage in a step, and the columns of a thread. Numbers are `i32`.
struct Rows {
    /// The first row that the thread computes.
    start: Value,
    /// The first row that belongs to the step, and the one behind the last.
    own: [Value; 2],
    /// The first column.
    column: Value,
    /// True if several columns are read and written together.
    together: bool,
    /// True if all rows belong to the step, and to the block where they are stored.
    simple: bool,
}

/// Several columns that were read together, by stage, value, row and number.
type Together = RefCell<HashMap<(usize, usize, i64, i64), Value>>;

impl Parts<'_> {
    /// Writes the kernel for threads.
    pub(super) fn launch_threads(&self, draft: &mut Draft, machine: &Machine) -> Result<()> {
        let (axes, rows) = (self.axes(), self.chain.rows);
        let block = [self.layout.threads, 1, 1];
        let k = Writer::with_blocks("chain", block, self.layout.resident);
        let room = k.large_shared(Element::U8, Count::Constant(self.layout.bytes.max(16)));
        let images = Count::product(0..axes - 2);
        let across = Count::size(axes - 1).div_ceil(self.layout.width);
        // All blocks are resident together: rows are divided into as many parts as that leaves room for.
        let resident = Count::Constant(Costs::of(machine).busy(self.layout.resident.into()));
        let wanted = resident.div_floor(across.clone() * images.clone()).max(1u32);
        let least = (cost::CHAIN_THREAD_ROWS * self.layout.most_rows()).max(4 * rows);
        let down = wanted.min(Count::size(axes - 2).div_ceil(least));
        let all = images * down.clone();
        let (number, step) = (k.convert(k.block(Axis::Y), Type::I32), k.convert(k.grid_size(Axis::Y), Type::I32));
        let lengths: Vec<Value> = (0..axes).map(|axis| self.length(&k, axis)).collect();
        let tiles = k.count(across.clone(), Type::I32);
        let columns = self.part(&k, lengths[axes - 1], k.convert(k.block(Axis::X), Type::I32), tiles);
        k.for_step(number, k.count(all.clone(), Type::I32), step, Unroll::Never, |number| {
            let each = k.count(down.clone(), Type::I32);
            let image = k.div(number, each);
            let above = unravel(&k, image, &lengths[..axes - 2]);
            let part = self.part(&k, lengths[axes - 2], k.sub(number, k.mul(image, each)), each);
            let start = k.mul(image, k.mul(lengths[axes - 2], lengths[axes - 1]));
            let place = Place { above, rows: part, columns, start, room };
            let stages = 0..self.chain.stages.len();
            let highest = stages.clone().map(|stage| self.layout.rows[stage].0).max().unwrap_or(0);
            let latest = stages.clone().map(|stage| self.layout.lags[stage] + self.layout.rows[stage].1).max().unwrap_or(0);
            let first = k.max(k.sub(part[0], highest), 0);
            k.for_step(first, k.add(part[1], latest), rows, Unroll::Never, |newest| {
                for stage in stages.clone() {
                    self.stage_rows(&k, stage, &place, newest);
                    if self.chain.stages[stage].staged.contains(&true) {
                        k.barrier();
                    }
                }
                k.barrier();
            });
        });
        draft.launch(k, [across, all.min(cost::GRID_ROWS), 1u32.into()], block)?;
        Ok(())
    }

    /// Computes the rows of a stage in a step.
    fn stage_rows(&self, k: &Writer, number: usize, place: &Place, newest: Value) {
        let (axes, count) = (self.axes(), self.chain.rows);
        let stage = &self.chain.stages[number];
        let bounds = |own: [Value; 2], around: (u32, u32), axis: usize| {
            let end = k.min(k.add(own[1], around.1), self.length(k, axis));
            [k.max(k.sub(own[0], around.0), 0), end]
        };
        let first = k.sub(newest, self.layout.lags[number]);
        let end = k.add(first, count);
        let [top, bottom] = bounds(place.rows, self.layout.rows[number], axes - 2);
        let own = [k.max(first, top), k.min(end, bottom)];
        k.if_then(k.lt(own[0], own[1]), || {
            let start = k.max(k.min(first, k.sub(self.length(k, axes - 2), count)), 0);
            let whole = k.and(k.ge(first, top), k.le(end, bottom));
            let lane = k.convert(k.thread(Axis::X), Type::I32);
            let beside = stage.columns;
            let (start, along) = match beside {
                1 => (start, lane),
                _ => {
                    let across = self.layout.threads / beside;
                    (k.add(start, k.mul(k.div(lane, across), count / beside)), k.mul(k.rem(lane, across), beside))
                }
            };
            let above = place.above.iter().enumerate();
            let above = above.fold(k.literal(true), |all, (axis, index)| k.and(all, self.inside(k, number, axis, *index)));
            let rows_inside = k.and(above, self.inside(k, number, axes - 2, start));
            let [left, right] = bounds(place.columns, self.layout.columns[number], axes - 1);
            // Columns that are read together start at the same places in all rings.
            let left = if beside == 1 { left } else { k.sub(place.columns[0], self.layout.columns[number].0) };
            // A thread has all that it computes at once. In a loop the assembler would compute ahead of it what only edges need.
            let column = k.add(left, along);
            k.if_then(k.lt(column, right), || {
                let compute = |tap: &Tap, port: &Port, column: Value, simple: bool| {
                    let rows = Rows { start, own, column, together: simple && beside > 1, simple };
                    let results = self.results_of_rows(k, number, tap, port, place, &rows);
                    self.keep_rows(k, number, &results, place, &rows);
                };
                let (inner, edge) = &self.ports[number];
                let mut simple = whole;
                if stage.stored.contains(&true) {
                    simple = k.and(simple, k.and(k.ge(first, place.rows[0]), k.le(end, place.rows[1])));
                }
                // Near edges, and in steps of which some rows belong to others, each row is tested.
                match stage.edge.as_ref().zip(edge.as_ref()) {
                    None => {
                        k.if_else(
                            simple,
                            || compute(&stage.inner, inner, column, true),
                            || compute(&stage.inner, inner, column, false),
                        );
                    }
                    Some((tap, port)) => {
                        let mut inside = k.and(rows_inside, self.inside(k, number, axes - 1, column));
                        let mut near = column;
                        if beside > 1 {
                            let last = k.sub(self.length(k, axes - 1), beside);
                            inside = k.and(inside, k.and(k.ge(column, 0), k.le(column, last)));
                            near = k.max(k.min(column, last), 0);
                        }
                        k.if_else(
                            k.and(simple, inside),
                            || compute(&stage.inner, inner, column, true),
                            || compute(tap, port, near, false),
                        );
                    }
                }
            });
        });
    }

    /// The place in the ring of a stage, for a row by its number and a column.
    fn ring(&self, k: &Writer, stage: usize, place: &Place, row: Value, column: Value) -> Value {
        let pitch = self.layout.pitch(stage, self.layout.width);
        let left = k.sub(place.columns[0], self.layout.columns[stage].0);
        let slot = k.convert(k.rem(k.convert(row, Type::U32), self.layout.rings[stage]), Type::I32);
        k.add(k.mul(slot, pitch), k.sub(column, left))
    }

    /// The place in the ring of a stage that is so many rows and columns from a place in it. `before` is the most columns that are read before the place.
    fn ring_near(&self, k: &Writer, stage: usize, from: Value, [row, column]: [i64; 2], before: u32) -> Value {
        let (ring, pitch) = (i64::from(self.layout.rings[stage]), i64::from(self.layout.pitch(stage, self.layout.width)));
        let ahead = row.rem_euclid(ring) * pitch;
        let from = k.convert(k.sub(from, before), Type::U32);
        let at = match ahead {
            0 => from,
            // The lesser of both without a sign is the one within the ring.
            _ => {
                let turned = k.sub(from, (ring * pitch - ahead) as u32);
                k.min(k.add(from, ahead as u32), turned)
            }
        };
        k.add(k.convert(at, Type::I32), (column + i64::from(before)) as i32)
    }

    /// The results of the columns of a thread, row by row.
    fn results_of_rows(&self, k: &Writer, number: usize, tap: &Tap, port: &Port, place: &Place, rows: &Rows) -> Vec<Value> {
        let mut arguments: Vec<Value> = place.above.iter().copied().chain([rows.start, rows.column]).collect();
        arguments.extend(port.scalars.iter().map(|(number, ty)| k.scalar(*number, *ty)));
        let reaches = &self.chain.stages[number].reaches;
        let known = |value: Value| k.as_literal(value).and_then(Literal::as_i128).and_then(|number| i64::try_from(number).ok());
        let together = Together::default();
        let accessors = tap.function.accessors().iter().zip(&tap.reads).zip(&port.inputs);
        let mut bindings: Vec<_> = accessors
            .map(|((accessor, read), input)| {
                let (ty, together) = (accessor.ty, &together);
                let memory = move || k.memory(Argument::Input(input.unwrap_or_default()), ty.element());
                reading(move |_, at: &[Value]| match *read {
                    TapRead::Number => k.load_element(memory(), ty, at[0]),
                    TapRead::Column => k.fail("a column of memory"),
                    TapRead::Stage(stage, value) => {
                        let memory = self.memory(k, (stage, value), place.room);
                        let (Some(1), Some(down), Some(along)) = (known(at[2]), known(at[0]), known(at[1])) else {
                            return k.load_element(memory, ty, self.ring(k, stage, place, at[0], at[1]));
                        };
                        let own = self.ring(k, stage, place, rows.start, rows.column);
                        let before = reaches.iter().find(|reach| reach.stage == stage).map_or(0, |reach| reach.columns.0);
                        if !rows.together {
                            return k.load_element(memory, ty, self.ring_near(k, stage, own, [down, along], before));
                        }
                        let width = i64::from(cost::CHAIN_ALIGNED);
                        let group = along.div_euclid(width);
                        let loaded = *together.borrow_mut().entry((stage, value, down, group)).or_insert_with(|| {
                            let before = before.next_multiple_of(cost::CHAIN_ALIGNED);
                            let index = self.ring_near(k, stage, own, [down, group * width], before);
                            k.load_vector(memory, index, width as usize)
                        });
                        k.lane(loaded, along.rem_euclid(width) as usize)
                    }
                })
            })
            .collect();
        let mut bindings: Vec<&mut dyn Binding> = bindings.iter_mut().map(|binding| binding as &mut dyn Binding).collect();
        k.inline(&tap.function, &arguments, &mut bindings)
    }

    /// Keeps the results of the columns of a thread: in rings for later stages, in memory where they are stored.
    fn keep_rows(&self, k: &Writer, number: usize, results: &[Value], place: &Place, rows: &Rows) {
        let stage = &self.chain.stages[number];
        let (values, beside) = (stage.staged.len(), stage.columns as usize);
        let all = 0..self.chain.rows as usize / beside;
        let width = self.length(k, self.axes() - 1);
        let first = k.add(place.start, k.add(k.mul(rows.start, width), rows.column));
        let own = self.ring(k, number, place, rows.start, rows.column);
        let at = |row: usize, along: usize, value: usize| results[(row * beside + along) * values + value];
        let memory = |value: usize| self.memory(k, (number, value), place.room);
        let staged = || (0..values).filter(|value| stage.staged[*value]);
        let put = |row: usize, along: usize| {
            for value in staged() {
                let index = self.ring_near(k, number, own, [row as i64, along as i64], 0);
                k.store_element(memory(value), index, at(row, along, value), Cache::Normal);
            }
        };
        let put_row = |row: usize| match rows.together {
            false => (0..beside).for_each(|along| put(row, along)),
            true => {
                for value in staged() {
                    let index = self.ring_near(k, number, own, [row as i64, 0], 0);
                    let results: Vec<Value> = (0..beside).map(|along| at(row, along, value)).collect();
                    k.store_as(memory(value), index, k.vector(&results), Order::Weak, Cache::Normal);
                }
            }
        };
        let store = |row: usize| {
            for (value, output) in self.outputs[number].iter().enumerate() {
                let Some(output) = output else { continue };
                let result = at(row, 0, value);
                let memory = k.memory(Argument::Output(*output), k.type_of(result).element());
                k.store_element(memory, k.add(first, k.mul(width, row)), result, Cache::Normal);
            }
        };
        let is_stored = stage.stored.contains(&true);
        let is_own = k.and(k.ge(rows.column, place.columns[0]), k.lt(rows.column, place.columns[1]));
        // Other blocks store what is computed beside the rows and columns of this one.
        let each = |row: usize| {
            let at = k.add(rows.start, row);
            k.if_then(k.and(k.ge(at, rows.own[0]), k.lt(at, rows.own[1])), || {
                put_row(row);
                if is_stored {
                    let within = k.and(k.ge(at, place.rows[0]), k.lt(at, place.rows[1]));
                    k.if_then(k.and(within, is_own), || store(row));
                }
            });
        };
        if !rows.simple {
            return all.for_each(each);
        }
        all.clone().for_each(put_row);
        if is_stored {
            match self.layout.columns[number] {
                (0, 0) => all.for_each(store),
                _ => k.if_then(is_own, || all.for_each(store)),
            }
        }
    }
}
