//! Scans of split lines in one pass: each block has a tile, and gets the prefix of its tile from a
//! [`TileChain`].
//!
//! A warp has a few rows of its tile. In a row each lane has four adjacent elements. They are moved by one
//! access if the tile is complete and buffers are aligned. Every element is read once and written once.

use super::ScanEmitter;
use crate::kit::{Draft, Shared, TileChain, Writer, broadcast, scan_warp, shift_warp};
use crate::{Count, Result};
use broadloom_scalar::{Axis, Value};

impl ScanEmitter<'_> {
    pub(super) fn once(&self, draft: &mut Draft) -> Result<()> {
        let (shape, operator) = (self.shape(), self.operator());
        let block = [32 * shape.warps, 1, 1];
        let tiles = Count::size(self.scan.axis).div_ceil(shape.tile());
        let chain = TileChain::new(draft, operator, self.index, &self.lines, &tiles);
        let k = Writer::with_blocks("scan", block, shape.blocks);
        let thread = k.thread(Axis::X);
        let (lane, warp) = (k.and(thread, 31), k.shr(thread, 5));
        let number = chain.number(&k);
        let (line, tile) = if self.other_axes.is_empty() {
            (None, number)
        } else {
            let tiles = k.count(tiles.clone(), self.index);
            let line = k.div(number, tiles);
            (Some(line), k.sub(number, k.mul(line, tiles)))
        };
        let own_line = line.map_or(vec![], |line| self.line(&k, line));
        let (first, to) = (k.mul(tile, shape.tile()), self.length(&k));
        let start = k.add(first, self.wide(&k, k.mul(warp, shape.rows * shape.row())));
        let start = k.add(start, self.wide(&k, k.mul(lane, shape.items)));
        let place = |row: u32, item: u32| k.add(start, row * shape.row() + item);
        let whole = k.ge(k.sub(to, first), shape.tile());
        let stores_rows = self.outlet.stores_rows() && line.is_none();
        let mut moved = self.inlet.row_addresses(&k);
        if stores_rows {
            moved.extend(self.outlet.row_addresses(&k));
        }
        let at_once = k.and(whole, k.aligned(moved));
        let width = operator.types().len();
        // All loads come first, so that they are in flight together.
        let values = self.inlet.together(&k, || {
            k.choose_list(
                at_once,
                || {
                    let rows: Vec<Vec<Option<Value>>> =
                        (0..shape.rows).map(|row| self.inlet.row(&k, place(row, 0), shape.items as usize)).collect();
                    self.each(&shape, |row, item| {
                        let position = self.position(&own_line, place(row, item));
                        let loaded = |index: usize| rows[row as usize][index].map(|values| k.lane(values, item as usize));
                        self.inlet.at_with(&k, &position, &loaded)
                    })
                },
                || {
                    self.each(&shape, |row, item| {
                        let place = place(row, item);
                        k.choose_list(k.lt(place, to), || self.at(&k, &own_line, place), || operator.nothing(&k))
                    })
                },
            )
        });
        let items: Vec<&[Value]> = values.chunks(width).collect();
        let rows: Vec<&[&[Value]]> = items.chunks(shape.items as usize).collect();
        // The prefix of each lane in each row, from the start of the warp's part.
        let mut before_rows = operator.nothing(&k);
        let mut starts = vec![];
        for row in &rows {
            let own = row[1..].iter().fold(row[0].to_vec(), |own, item| operator.combine(&k, &own, item));
            let up_to = scan_warp(&k, operator, &own, lane);
            let before = shift_warp(&k, operator, &up_to, lane);
            starts.push(operator.combine(&k, &before_rows, &before));
            before_rows = operator.combine(&k, &before_rows, &broadcast(&k, &up_to, 31));
        }
        let totals = Shared::new(&k, &operator.types(), shape.warps);
        k.if_then(k.eq(lane, 0), || totals.set(&k, warp, &before_rows));
        k.barrier();
        let (mut before_warp, mut all) = (operator.nothing(&k), operator.nothing(&k));
        for other in 0..shape.warps {
            let is_mine = k.eq(warp, other);
            before_warp = before_warp.iter().zip(&all).map(|(old, new)| k.select_value(is_mine, *new, *old)).collect();
            all = operator.combine(&k, &all, &totals.get(&k, k.literal(other)));
        }
        let before_tile = chain.before(&k, line, tile, &all);
        let before_warp = operator.combine(&k, &before_tile, &before_warp);
        let mut results: Vec<Vec<Vec<Value>>> = vec![];
        for (row, start) in rows.iter().zip(&starts) {
            let mut before = operator.combine(&k, &before_warp, start);
            let mut scanned = vec![];
            for own in *row {
                let (result, up_to) = self.result(&k, &before, own);
                scanned.push(result);
                before = up_to;
            }
            results.push(scanned);
        }
        let put = |checked: bool| {
            for (row, results) in (0..shape.rows).zip(&results) {
                if stores_rows && !checked {
                    self.outlet.put_row(&k, place(row, 0), results);
                    continue;
                }
                for (item, result) in (0..shape.items).zip(results) {
                    let place = place(row, item);
                    let body = || self.put(&k, &own_line, place, result);
                    if checked { k.if_then(k.lt(place, to), body) } else { body() }
                }
            }
        };
        k.if_else(at_once, || put(false), || put(true));
        draft.launch(k, [self.lines.clone() * tiles, 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }

    /// Returns the values of all items of a thread, row by row.
    fn each(&self, shape: &super::LineThreads, values: impl Fn(u32, u32) -> Vec<Value>) -> Vec<Value> {
        (0..shape.rows)
            .flat_map(|row| (0..shape.items).map(move |item| (row, item)))
            .flat_map(|(row, item)| values(row, item))
            .collect()
    }
}
