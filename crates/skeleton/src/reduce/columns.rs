//! On a CPU: results that lie side by side along the last axis.
//!
//! A warp has a tile of a row of results, so that all but the last index is the same in its lanes, what it reads lies side by side, and no lane divides
//! to find its place. What is reduced is a loop for its last axis within one for all others.

use super::Parts;
use crate::Count;
use crate::Result;
use crate::domain::unravel;
use crate::draft::{Draft, Writer};
use crate::operator::Accumulator;
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Type, Unroll, Value};

/// Lanes of a warp.
const LANES: u32 = 32;
/// Results of a lane, a warp apart.
const COLUMNS: u32 = 4;

impl Parts<'_> {
    /// Whether results lie in rows that are worth a warp.
    pub(super) fn has_columns(&self) -> bool {
        self.is_cpu && self.reduce.domain.has_rows() && self.reduce.reduced.last() == Some(&false)
    }

    pub(super) fn along_columns(&self, draft: &mut Draft, machine: &Machine) -> Result<()> {
        let folded = self.product(&self.folded_axes);
        let (above, last) = self.kept_axes.split_at(self.kept_axes.len() - 1);
        let (rows, length) = (self.product(above), self.product(last));
        let tile = LANES * COLUMNS;
        let tiles = length.clone().div_ceil(tile);
        let blocks = rows.clone() * tiles;
        let (split, pieces) = self.split(draft, machine, &folded, &blocks);
        let block = [LANES, 1, 1];
        let k = Writer::new("reduce", block);
        let (width, all) = (k.count(length, self.index), k.count(folded.clone(), self.index));
        let part_length = k.count(folded.div_ceil(split.clone()), self.index);
        let part = self.wide(&k, k.block(Axis::Y));
        let from = k.mul(part, part_length);
        let to = k.min(k.add(from, part_length), all);
        // The rows of a tile one after the other: what they read of things that have no rows is still in a cache.
        let number = self.wide(&k, k.block(Axis::X));
        let rows = k.count(rows, self.index);
        let tile_number = k.div(number, rows);
        let row = k.sub(number, k.mul(tile_number, rows));
        let row_place = unravel(&k, row, &self.lengths(&k, above));
        let first = k.mul(tile_number, tile);
        let thread = self.wide(&k, k.thread(Axis::X));
        // In 64 bits a CPU sees that the lanes of a warp stay side by side.
        let long = |value: Value| k.convert(value, Type::U64);
        let row_start = k.mul(long(row), long(width));
        let run = |checked: bool| {
            let columns: Vec<Value> = (0..COLUMNS).map(|column| k.add(k.add(first, column * LANES), thread)).collect();
            let sums: Vec<Accumulator<'_>> = columns.iter().map(|_| Accumulator::new(&k, self.operator())).collect();
            let kept = |column: Value| row_place.iter().copied().chain([column]).collect::<Vec<Value>>();
            let guarded = |column: Value, body: &dyn Fn()| if checked { k.if_then(k.lt(column, width), body) } else { body() };
            self.for_folded(&k, from, to, |folded| {
                for (column, sum) in columns.iter().zip(&sums) {
                    guarded(*column, &|| sum.add(&k, &self.at(&k, &kept(*column), folded)));
                }
            });
            for (column, sum) in columns.iter().zip(&sums) {
                let result = k.add(row_start, long(*column));
                guarded(*column, &|| match &pieces {
                    Some(pieces) => {
                        let before = k.mul(long(part), k.count(self.kept.clone(), Type::U64));
                        self.store_pieces(&k, pieces, k.add(before, result), &sum.get(&k));
                    }
                    None => self.outlet.put(&k, &kept(*column), result, &sum.get(&k)),
                });
            }
        };
        k.if_else(k.ge(k.sub(width, first), tile), || run(false), || run(true));
        draft.launch(k, [blocks, split, 1u32.into()], block)?;
        match pieces {
            Some(pieces) => self.combine_columns(draft, &pieces, LANES),
            None => Ok(()),
        }
    }

    /// All reduced positions whose numbers are in a range, in order.
    fn for_folded(&self, k: &Writer, from: Value, to: Value, body: impl Fn(&[Value])) {
        let Some((last, above)) = self.folded_axes.split_last().filter(|(_, above)| !above.is_empty()) else {
            let place = |number: Value| if self.folded_axes.is_empty() { vec![] } else { vec![number] };
            k.for_step(from, to, 1, Unroll::Never, |number| body(&place(number)));
            return;
        };
        let length = k.count(Count::size(*last), self.index);
        let end = k.div(k.add(to, k.sub(length, 1)), length);
        k.for_step(k.div(from, length), end, 1, Unroll::Never, |row| {
            let start = k.mul(row, length);
            let first = k.sub(k.max(start, from), start);
            let place = unravel(k, row, &self.lengths(k, above));
            k.for_step(first, k.min(length, k.sub(to, start)), 1, Unroll::Never, |column| {
                body(&place.iter().copied().chain([column]).collect::<Vec<Value>>());
            });
        });
    }
}
