//! Reductions on a CPU whose results are adjacent along the last axis.
//!
//! A warp has a tile of a row of results. All indices except the last are uniform, reads are contiguous, and
//! no lane divides to compute its position. The reduced positions are a loop along their last axis, nested in
//! one over all others.
//!
//! If rows of results are computed from mostly the same inputs, a lane computes a result in each of several
//! rows. Shared values are then read and computed once.

use super::ReduceEmitter;
use crate::Count;
use crate::Result;
use crate::kit::{Accumulator, Draft, Writer, unravel};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Level, Type, Unroll, Value};

/// Number of lanes of a warp.
const LANES: u32 = crate::cost::LANES;
/// Number of rows that are prefetched before they are reduced. Only functions with few operations prefetch:
/// those take no longer than memory.
const ROWS_AHEAD: u32 = crate::cost::ROWS_AHEAD;
const SMALL: u64 = crate::cost::PREFETCHED;

impl ReduceEmitter<'_> {
    /// Returns true if the lanes of a warp have results of one row.
    pub(super) fn has_columns(&self) -> bool {
        self.is_cpu && self.reduce.spread.columns > 0 && !self.kept_axes.is_empty()
    }

    pub(super) fn along_columns(&self, draft: &mut Draft, machine: &Machine) -> Result<()> {
        let folded = self.product(&self.folded_axes);
        let (above, last) = self.kept_axes.split_at(self.kept_axes.len() - 1);
        let length = self.product(last);
        // Rows that are computed together are adjacent along the last axes, so they share all other indices.
        let [high, low] = self.reduce.spread.rows;
        let together = |axis: usize| match above.len() - axis {
            1 => low,
            2 => high,
            _ => 1,
        };
        let runs: Vec<Count> =
            above.iter().enumerate().map(|(i, axis)| self.reduce.domain.size(*axis).div_ceil(together(i))).collect();
        let is_one = (0..above.len()).all(|axis| together(axis) == 1);
        let columns = if is_one { self.reduce.spread.columns } else { 1 };
        let tile = LANES * columns;
        let tiles = length.clone().div_ceil(tile);
        let groups = runs.iter().cloned().reduce(|a, b| a * b).unwrap_or(Count::Constant(1));
        let blocks = groups.clone() * tiles;
        let (split, pieces) = self.split(draft, machine, &folded, &blocks);
        let block = [LANES, 1, 1];
        let k = Writer::new("reduce", block);
        let (width, all) = (k.count_in_code(length, self.index), k.count_in_code(folded.clone(), self.index));
        let part_length = k.count_in_code(folded.clone().div_ceil(split.clone()), self.index);
        let part = self.wide(&k, k.block(Axis::Y));
        let (from, to) = self.range(&k, &pieces, part, part_length, all);
        // The rows of a tile follow each other: inputs without rows are then still in a cache.
        let number = self.wide(&k, k.block(Axis::X));
        let groups = k.count_in_code(groups, self.index);
        let tile_number = k.div(number, groups);
        let group = k.sub(number, k.mul(tile_number, groups));
        // With 64 bits a CPU sees that the lanes of a warp are contiguous.
        let long = |value: Value| k.convert(value, Type::U64);
        // Indices of the rows, and the numbers of their first results.
        let runs: Vec<Value> = runs.iter().map(|runs| k.count_in_code(runs.clone(), self.index)).collect();
        let mut places: Vec<(Vec<Value>, Value)> = vec![(vec![], k.constant(self.index, 0))];
        for (axis, run) in unravel(&k, group, &runs).into_iter().enumerate() {
            let (length, count) = (k.count_in_code(self.reduce.domain.size(above[axis]), self.index), together(axis));
            let index = |row: u32| match count {
                1 => run,
                // Rows beyond the last one repeat it and store the same results.
                _ => k.min(k.add(k.mul(run, count), row), k.sub(length, 1)),
            };
            let indices: Vec<Value> = (0..count).map(index).collect();
            let longer = |(place, number): &(Vec<Value>, Value)| {
                let start = k.mul(*number, length);
                let next = |index: &Value| (place.iter().copied().chain([*index]).collect::<Vec<Value>>(), k.add(start, *index));
                indices.iter().map(next).collect::<Vec<_>>()
            };
            places = places.iter().flat_map(longer).collect();
        }
        let places: Vec<(Vec<Value>, Value)> =
            places.into_iter().map(|(place, number)| (place, k.mul(long(number), long(width)))).collect();
        let first = k.mul(tile_number, tile);
        let thread = self.wide(&k, k.thread(Axis::X));
        let is_small = self.reduce.source.function().operations() <= SMALL;
        let is_short = matches!(folded, Count::Constant(_));
        let run = |checked: bool| {
            let columns: Vec<Value> = (0..columns).map(|column| k.add(k.add(first, column * LANES), thread)).collect();
            let sums = || places.iter().map(|_| Accumulator::new(&k, self.operator())).collect::<Vec<_>>();
            let sums: Vec<Vec<Accumulator<'_>>> = columns.iter().map(|_| sums()).collect();
            let kept = |place: &[Value], column: Value| place.iter().copied().chain([column]).collect::<Vec<Value>>();
            let guarded = |column: Value, body: &dyn Fn()| if checked { k.if_then(k.lt(column, width), body) } else { body() };
            self.for_folded(&k, from, to, |folded, later| {
                // Hardware does not prefetch rows that are far apart. All results of a lane read about the
                // same elements as the last one.
                if let Some((place, _)) = places.last().filter(|_| !checked && is_small && !is_short) {
                    let ask =
                        |column: &Value| self.inlet.prefetch(&k, &self.position(&kept(place, *column), later), Level::First);
                    columns.iter().for_each(ask);
                }
                for (column, sums) in columns.iter().zip(&sums) {
                    guarded(*column, &|| {
                        let at = |(place, _): &(Vec<Value>, Value)| self.at(&k, &kept(place, *column), folded);
                        let values: Vec<Vec<Value>> = places.iter().map(at).collect();
                        sums.iter().zip(&values).for_each(|(sum, values)| sum.add(&k, values));
                    });
                }
            });
            for (column, sums) in columns.iter().zip(&sums) {
                for ((place, start), sum) in places.iter().zip(sums) {
                    let result = k.add(*start, long(*column));
                    guarded(*column, &|| match &pieces {
                        Some(pieces) => {
                            let before = k.mul(long(part), k.count_in_code(self.kept.clone(), Type::U64));
                            pieces.values.store(&k, k.add(before, result), &sum.get(&k));
                        }
                        None => self.outlet.put(&k, &kept(place, *column), result, &sum.get(&k)),
                    });
                }
            }
        };
        k.if_else(k.ge(k.sub(width, first), tile), || run(false), || run(true));
        draft.launch(k, [blocks, split, 1u32.into()], block)?;
        match pieces {
            Some(pieces) => self.combine_columns(draft, &pieces, LANES),
            None => Ok(()),
        }
    }

    /// Visits all reduced positions whose numbers are in a range, in order, each with a later position to
    /// prefetch.
    fn for_folded(&self, k: &Writer, from: Value, to: Value, body: impl Fn(&[Value], &[Value])) {
        let Some((last, above)) = self.folded_axes.split_last().filter(|(_, above)| !above.is_empty()) else {
            let place = |number: Value| if self.folded_axes.is_empty() { vec![] } else { vec![number] };
            k.for_step(from, to, 1, self.rounds(), |number| body(&place(number), &place(k.add(number, ROWS_AHEAD))));
            return;
        };
        let length = k.count_in_code(self.reduce.domain.size(*last), self.index);
        let end = k.div(k.add(to, k.sub(length, 1)), length);
        k.for_step(k.div(from, length), end, 1, Unroll::Never, |row| {
            let start = k.mul(row, length);
            let first = k.sub(k.max(start, from), start);
            let place = unravel(k, row, &self.lengths(k, above));
            let later = unravel(k, k.add(row, 1), &self.lengths(k, above));
            k.for_step(first, k.min(length, k.sub(to, start)), 1, Unroll::Never, |column| {
                let at = |place: &[Value]| place.iter().copied().chain([column]).collect::<Vec<Value>>();
                body(&at(&place), &at(&later));
            });
        });
    }
}
