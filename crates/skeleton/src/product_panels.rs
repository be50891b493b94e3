//! Matrix product on a CPU, blocked for its registers and caches as libraries for linear algebra are.
//!
//! A first kernel copies the right factor into *panels* of 32 columns, so that what is used together lies side by side. In the second one a block is one
//! warp with a tile of the result: some strips of rows by some panels. It goes along the common axis in pieces. Of each piece it copies
//! its rows of the left factor, which then lie in the second-level cache, and goes through them with one panel after the other, a piece of which lies in
//! the first-level cache. Sums of a strip by a panel are in registers: along the common axis the warp takes a row of the panel and one number of each
//! row of the strip, which all lanes share. Between pieces sums wait in a temporary.
//!
//! How many strips and panels a tile has follows from the sizes, so that tiles are equally large and every core has some.

use crate::draft::{Draft, Writer};
use crate::product::Parts;
use crate::program::Argument;
use crate::{Count, Result};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Literal, Type, Unroll, Value, Variable};

/// Lanes of a warp, and columns of a panel.
const LANES: u32 = 32;
/// Elements between rows of a copy, so that rows do not fall onto each other in a cache.
const PAD: u32 = 16;

/// Rows and panels that a block of the first kernel copies.
const PACKED_ROWS: u32 = 8;
const PACKED_PANELS: u32 = 16;

/// The largest tile, and what is copied of its factors at a time.
struct Blocking {
    /// Rows of a strip. Two vectors of a register file of 32 hold a row of 32-bit sums, four one of 64-bit sums.
    rows: u32,
    /// Strips of a tile.
    strips: u32,
    /// Panels of a tile.
    panels: u32,
    /// Most elements of a piece of the common axis.
    depth: u32,
}

impl Blocking {
    fn of(sum: Type) -> Blocking {
        match sum.bytes() {
            8 => Blocking { rows: 6, strips: 24, panels: 32, depth: 128 },
            _ => Blocking { rows: 12, strips: 22, panels: 32, depth: 192 },
        }
    }
}

impl Parts {
    pub(crate) fn panels(&self, draft: &mut Draft, machine: &Machine) -> Result<()> {
        let all_panels = Count::size(1).div_ceil(LANES);
        let packed = draft.temporary(all_panels.clone() * Count::size(2) * (LANES * self.sum.bytes()), false);
        self.pack_panels(draft, packed, &all_panels)?;
        self.multiply_panels(draft, packed, &all_panels, machine)
    }

    /// Copies the right factor: a block has some rows of as many panels as lie in a row of memory that is read at once.
    fn pack_panels(&self, draft: &mut Draft, packed: usize, all_panels: &Count) -> Result<()> {
        let block = [LANES, 1, 1];
        let k = Writer::new("product_panels", block);
        let packed = k.memory(Argument::Temporary(packed), self.sum.element());
        let (n, common) = (self.size(&k, 1), self.size(&k, 2));
        let lane = self.wide(&k, k.thread(Axis::X));
        let first_panel = k.mul(self.wide(&k, k.block(Axis::Y)), PACKED_PANELS);
        let first_row = k.mul(self.wide(&k, k.block(Axis::X)), PACKED_ROWS);
        let last_panel = k.min(k.add(first_panel, PACKED_PANELS), k.count(all_panels.clone(), self.index));
        let last_row = k.min(k.add(first_row, PACKED_ROWS), common);
        k.for_step(first_row, last_row, 1, Unroll::Never, |row| {
            k.for_step(first_panel, last_panel, 1, Unroll::Never, |panel| {
                let j = k.add(k.mul(panel, LANES), lane);
                let at = || k.convert(self.right.at(&k, &[row, j])[0], self.sum);
                let value = k.choose(k.lt(j, n), at, || k.spread(Literal::zero(self.sum.element()), self.sum));
                k.store(packed, self.packed_at(&k, panel, row), value);
            });
        });
        let grid = [Count::size(2).div_ceil(PACKED_ROWS), all_panels.clone().div_ceil(PACKED_PANELS), 1u32.into()];
        draft.launch(k, grid, block)?;
        Ok(())
    }

    /// Where the column of a lane is in a row of a panel.
    fn packed_at(&self, k: &Writer, panel: Value, row: Value) -> Value {
        let wide = |value: Value| k.convert(value, Type::U64);
        let row = k.add(k.mul(wide(panel), k.count(Count::size(2), Type::U64)), wide(row));
        k.add(k.mul(row, LANES), wide(k.thread(Axis::X)))
    }

    fn multiply_panels(&self, draft: &mut Draft, packed: usize, all_panels: &Count, machine: &Machine) -> Result<()> {
        let Blocking { rows, strips, panels, depth } = Blocking::of(self.sum);
        let block = [LANES, 1, 1];
        let element = self.sum.element();
        let all_strips = Count::size(0).div_ceil(rows);
        let across = all_panels.clone().div_ceil(panels);
        let panels_each = all_panels.clone().div_ceil(across.clone());
        // Some tiles for each core, as many for one as for another, if there are so many strips.
        let cores = machine.multiprocessors;
        let least = Count::from(4 * cores).div_ceil(across.clone());
        let down = all_strips.clone().div_ceil(strips).max(least).div_ceil(cores) * cores;
        let down = down.min(all_strips.clone());
        let strips_each = all_strips.clone().div_ceil(down.clone());
        let tiles = down.clone() * across.clone();
        let sums_each = strips_each.clone() * panels_each.clone() * (rows * LANES);
        let kept = draft.temporary(tiles.clone() * sums_each * self.sum.bytes(), false);

        let k = Writer::new("product", block);
        let kept = k.memory(Argument::Temporary(kept), element);
        let packed = k.memory(Argument::Temporary(packed), element);
        let count = |count: &Count| k.count(count.clone(), self.index);
        let (m, n, common) = (self.size(&k, 0), self.size(&k, 1), self.size(&k, 2));
        let zero = || k.spread(Literal::zero(element), self.sum);
        let stride = depth + PAD;
        let pieces = k.large_shared(element, strips_each.clone() * (rows * stride));
        let lane = k.thread(Axis::X);
        let tile = self.wide(&k, k.block(Axis::X));
        let narrow = |value: Value| k.convert(value, Type::U32);
        // The first of a tile's strips or panels, and how many it has: the same number, or one less.
        let share = |number: Value, all: &Count, among: &Count| {
            let (all, among) = (k.count(all.clone(), Type::U64), k.count(among.clone(), Type::U64));
            let start = |number: Value| k.div(k.mul(k.convert(number, Type::U64), all), among);
            let first = start(number);
            (k.convert(first, self.index), narrow(k.sub(start(k.add(number, 1)), first)))
        };
        let column_of_tiles = k.div(tile, count(&down));
        let row_of_tiles = k.sub(tile, k.mul(column_of_tiles, count(&down)));
        let (first_strip, own_strips) = share(row_of_tiles, &all_strips, &down);
        let (first_panel, own_panels) = share(column_of_tiles, all_panels, &across);
        let first_row = k.mul(first_strip, rows);
        let last = k.sub(m, 1);
        let row_of = |row: Value| k.add(first_row, self.wide(&k, row));
        // Where the first sums of a tile wait, and those of a row of one of its panels.
        let (tile_wide, lane_wide) = (k.convert(tile, Type::U64), k.convert(lane, Type::U64));
        let rows_each = k.mul(k.count(strips_each, Type::U64), rows);
        let first_kept = k.mul(tile_wide, k.count(panels_each, Type::U64));
        let keep_at = |panel: Value, row: Value| {
            let row = k.add(k.mul(k.add(first_kept, k.convert(panel, Type::U64)), rows_each), k.convert(row, Type::U64));
            k.add(k.mul(row, LANES), lane_wide)
        };

        // Pieces of the common axis are equally long, in whole vectors.
        let number = Count::size(2).div_ceil(depth).max(1u32);
        let depth_each = count(&(Count::size(2).div_ceil(number).div_ceil(16u32).max(1u32) * 16u32));
        let piece = |from: Value| {
            let length = narrow(k.min(k.sub(common, from), depth_each));
            let (is_first, is_last) = (k.eq(from, 0), k.ge(k.add(from, depth_each), common));
            k.warp_barrier();
            k.for_step(0, k.mul(own_strips, rows), 1, Unroll::Never, |row| {
                // Rows behind the last one are like it, and nobody sees what becomes of them.
                let i = k.min(row_of(row), last);
                let to = k.mul(row, stride);
                k.for_step(0, length, LANES, Unroll::Never, |start| {
                    let step = k.add(start, lane);
                    k.if_then(k.lt(step, length), || {
                        let a = self.left.at(&k, &[i, k.add(from, self.wide(&k, step))])[0];
                        k.store(pieces, k.add(to, step), k.convert(a, self.sum));
                    });
                });
            });
            k.warp_barrier();
            k.for_step(0, own_panels, 1, Unroll::Never, |panel| {
                let whole_panel = k.add(first_panel, self.wide(&k, panel));
                let j = k.add(k.mul(whole_panel, LANES), self.wide(&k, lane));
                let there = k.lt(j, n);
                let right = self.packed_at(&k, whole_panel, from);
                k.for_step(0, own_strips, 1, Unroll::Never, |strip| {
                    let first = k.mul(strip, rows);
                    let row = |row: u32| k.add(first, row);
                    let sums: Vec<Variable> = (0..rows).map(|_| k.variable_with(zero())).collect();
                    let left = k.mul(first, stride);
                    k.for_step(0, length, 1, Unroll::By(4), |step| {
                        let b = k.load(packed, k.add(right, k.convert(k.mul(step, LANES), Type::U64)));
                        let strip = k.shared_view(pieces, element, k.mul(k.add(left, step), element.bytes()));
                        for (r, sum) in (0..rows).zip(&sums) {
                            let a = k.load(strip, r * stride);
                            k.set(*sum, self.multiply_add(&k, a, b, k.get(*sum)));
                        }
                    });
                    // What earlier pieces came to is added last.
                    k.if_then(k.not(is_first), || {
                        for (r, sum) in (0..rows).zip(&sums) {
                            k.set(*sum, k.add(k.load(kept, keep_at(panel, row(r))), k.get(*sum)));
                        }
                    });
                    let finished = || {
                        for (r, sum) in (0..rows).zip(&sums) {
                            let i = row_of(row(r));
                            k.if_then(k.lt(i, m), || k.if_then(there, || self.put(&k, i, j, k.get(*sum))));
                        }
                    };
                    let waiting = || (0..rows).zip(&sums).for_each(|(r, sum)| k.store(kept, keep_at(panel, row(r)), k.get(*sum)));
                    k.if_else(is_last, finished, waiting);
                });
            });
        };
        // Where there is nothing to add up, one empty piece gives the zeros.
        k.for_step(0, k.max(common, 1), depth_each, Unroll::Never, piece);
        draft.launch(k, [tiles, 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }
}
