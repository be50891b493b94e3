//! Matrix product on a CPU, blocked for registers and caches as in linear algebra libraries.
//!
//! A block is one warp with a tile of the result: some *strips* of rows by some *panels* of 32 columns. It
//! walks along the common axis in pieces. For each piece it packs its columns of the right factor, panel by
//! panel, so that elements that are used together are contiguous. The packed panels stay in the second-level
//! cache of its core. Then it takes one strip after the other. A copy of its rows of the left factor stays in
//! the first-level cache, while the panels pass by. The sums of a strip by a panel are in registers. Along
//! the common axis the warp takes a row of the panel and one number of each row of the strip. The number is
//! broadcast to all lanes. Between pieces the sums are kept in a temporary.
//!
//! There is one launch: a core reads only panels that it wrote itself. The numbers of strips and panels of a
//! tile are computed from the sizes, so that tiles have the same size and every core has some. Copies are in
//! memory with 64-bit addresses, so that the innermost loop computes only sums.

use crate::cost::{Blocking, Costs};
use crate::kit::{Draft, Writer};
use crate::product::ProductEmitter;
use crate::program::Argument;
use crate::{Count, Result};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Level, Literal, Type, Unroll, Value, Variable};

/// Number of lanes of a warp, and of columns of a panel.
const LANES: u32 = crate::cost::LANES;
/// Padding between rows of a copy, in elements. It avoids cache conflicts between rows.
const PAD: u32 = crate::cost::ROW_PADDING;

/// Minimum number of panels that a tile should have.
const FEW_PANELS: u32 = crate::cost::PRODUCT_PANELS;
/// Number of rows of the right factor that are prefetched before they are copied.
const ROWS_AHEAD: u32 = crate::cost::FACTOR_ROWS_AHEAD;
/// Number of rows of a panel that are prefetched before they are multiplied.
const STEPS_AHEAD: u32 = crate::cost::PANEL_ROWS_AHEAD;

impl ProductEmitter {
    pub(crate) fn panels(&self, draft: &mut Draft, machine: &Machine) -> Result<()> {
        let costs = Costs::of(machine);
        let Blocking { rows, strips, panels, depth } = costs.blocking(self.sum.bytes());
        let block = [LANES, 1, 1];
        let element = self.sum.element();
        let cores = u32::try_from(costs.busy(1)).unwrap_or(u32::MAX);
        let all_panels = Count::size(1).div_ceil(LANES);
        let all_strips = Count::size(0).div_ceil(rows);
        // With few panels per tile the left factor is copied often. With few strips per tile the right one
        // is.
        let across = all_panels.clone().div_ceil(panels).max(all_panels.clone().div_ceil(FEW_PANELS).min(cores));
        // All cores get the same number of tiles. If there are too few panels, tiles are also divided by
        // rows.
        let across = (across.div_ceil(cores) * cores).min(all_panels.clone().div_ceil(FEW_PANELS));
        let together = Count::from(cores).div_ceil(across.clone());
        let down = (all_strips.clone().div_ceil(strips).div_ceil(together.clone()) * together).min(all_strips.clone());
        let panels_each = all_panels.clone().div_ceil(across.clone());
        let strips_each = all_strips.clone().div_ceil(down.clone());
        let tiles = down.clone() * across.clone();
        // Pieces of the common axis have the same length, in whole vectors.
        let pieces = Count::size(2).div_ceil(depth).max(1u32);
        let depth_each = Count::size(2).div_ceil(pieces).div_ceil(16u32).max(1u32) * 16u32;
        // One row of padding per panel avoids cache conflicts between panels.
        let panel_rows = depth_each.clone() + 1u32;
        let packed =
            draft.temporary(tiles.clone() * panels_each.clone() * panel_rows.clone() * (LANES * self.sum.bytes()), false);
        let sums_each = strips_each * panels_each.clone() * (rows * LANES);
        let kept = draft.temporary(tiles.clone() * sums_each.clone() * self.sum.bytes(), false);
        let stride = depth + PAD;
        let strips = draft.temporary(tiles.clone() * (rows * stride * self.sum.bytes()), false);

        let k = Writer::new("product", block);
        let (packed, kept) = (k.memory(Argument::Temporary(packed), element), k.memory(Argument::Temporary(kept), element));
        let count = |count: &Count| k.count(count.clone(), self.index);
        let long = |count: &Count| k.count(count.clone(), Type::U64);
        let (m, n, common) = (self.size(&k, 0), self.size(&k, 1), self.size(&k, 2));
        let zero = || k.spread(Literal::zero(element), self.sum);
        let strips = k.memory(Argument::Temporary(strips), element);
        let lane = k.thread(Axis::X);
        let lane_wide = k.convert(lane, Type::U64);
        let tile = self.wide(&k, k.block(Axis::X));
        let narrow = |value: Value| k.convert(value, Type::U32);
        // Returns the first strip or panel of a tile and the number of them. Counts of tiles differ by at
        // most one.
        let share = |number: Value, all: &Count, among: &Count| {
            let start = |number: Value| k.div(k.mul(k.convert(number, Type::U64), long(all)), long(among));
            let first = start(number);
            (k.convert(first, self.index), narrow(k.sub(start(k.add(number, 1)), first)))
        };
        let column_of_tiles = k.div(tile, count(&down));
        let row_of_tiles = k.sub(tile, k.mul(column_of_tiles, count(&down)));
        let (first_strip, own_strips) = share(row_of_tiles, &all_strips, &down);
        let (first_panel, own_panels) = share(column_of_tiles, &all_panels, &across);
        let last = k.sub(m, 1);
        let tile_wide = k.convert(tile, Type::U64);
        // Place of the lane's column in the first row of a panel.
        let first_packed = k.add(k.mul(tile_wide, k.mul(long(&(panels_each.clone() * panel_rows.clone())), LANES)), lane_wide);
        let panel_length = k.mul(long(&panel_rows), LANES);
        let packed_at = |panel: Value, row: Value| {
            k.add(k.add(first_packed, k.mul(k.convert(panel, Type::U64), panel_length)), k.mul(k.convert(row, Type::U64), LANES))
        };
        let left_at = k.mul(tile_wide, rows * stride);
        // Place of the lane's sum in the first row of a strip.
        let first_kept = k.add(k.mul(tile_wide, long(&sums_each)), lane_wide);
        let keep_at = |strip: Value, panel: Value| {
            let number = k.add(k.mul(k.convert(strip, Type::U64), long(&panels_each)), k.convert(panel, Type::U64));
            k.add(first_kept, k.mul(number, rows * LANES))
        };
        let column = |panel: Value| k.add(k.mul(k.add(first_panel, self.wide(&k, panel)), LANES), self.wide(&k, lane));
        let depth_each = count(&depth_each);
        let piece = |from: Value| {
            let length = narrow(k.min(k.sub(common, from), depth_each));
            let (is_first, is_last) = (k.eq(from, 0), k.ge(k.add(from, depth_each), common));
            k.for_step(0, length, 1, Unroll::Never, |row| {
                k.for_step(0, own_panels, 1, Unroll::Never, |panel| {
                    let j = column(panel);
                    let place = |row: Value| [k.add(from, self.wide(&k, row)), j];
                    self.right.prefetch(&k, &place(k.add(row, ROWS_AHEAD)), Level::First);
                    let at = || k.convert(self.right.at(&k, &place(row))[0], self.sum);
                    k.store(packed, packed_at(panel, row), k.choose(k.lt(j, n), at, zero));
                });
            });
            k.for_step(0, own_strips, 1, Unroll::Never, |strip| {
                let first_row = k.mul(k.add(first_strip, self.wide(&k, strip)), rows);
                k.warp_barrier();
                k.for_step(0, k.literal(rows), 1, Unroll::Never, |row| {
                    // Rows beyond the last one repeat it. Their results are not stored.
                    let i = k.min(k.add(first_row, self.wide(&k, row)), last);
                    let to = k.add(left_at, k.convert(k.mul(row, stride), Type::U64));
                    k.for_step(0, length, LANES, Unroll::Never, |start| {
                        let step = k.add(start, lane);
                        k.if_then(k.lt(step, length), || {
                            let a = self.left.at(&k, &[i, k.add(from, self.wide(&k, step))])[0];
                            k.store(strips, k.add(to, k.convert(step, Type::U64)), k.convert(a, self.sum));
                        });
                    });
                });
                k.warp_barrier();
                k.for_step(0, own_panels, 1, Unroll::Never, |panel| {
                    let j = column(panel);
                    let there = k.lt(j, n);
                    let right = packed_at(panel, k.literal(0u32));
                    let sums: Vec<Variable> = (0..rows).map(|_| k.variable_with(zero())).collect();
                    let waits = keep_at(strip, panel);
                    let wait_at = |row: u32| k.add(waits, row * LANES);
                    k.if_then(k.not(is_first), || (0..rows).for_each(|r| k.prefetch(kept, wait_at(r), Level::First)));
                    k.for_step(k.literal(0u64), k.convert(length, Type::U64), 1, Unroll::By(2), |step| {
                        let at = k.add(right, k.mul(step, LANES));
                        let b = k.load(packed, at);
                        let here = k.add(left_at, step);
                        k.prefetch(packed, k.add(at, STEPS_AHEAD * LANES), Level::First);
                        for (r, sum) in (0..rows).zip(&sums) {
                            let a = k.load(strips, k.add(here, r * stride));
                            k.set(*sum, self.multiply_add(&k, a, b, k.get(*sum)));
                        }
                    });
                    // Sums of earlier pieces are added last.
                    k.if_then(k.not(is_first), || {
                        for (r, sum) in (0..rows).zip(&sums) {
                            k.set(*sum, k.add(k.load(kept, wait_at(r)), k.get(*sum)));
                        }
                    });
                    let finished = || {
                        for (r, sum) in (0..rows).zip(&sums) {
                            let i = k.add(first_row, r);
                            k.if_then(k.lt(i, m), || k.if_then(there, || self.put(&k, i, j, k.get(*sum))));
                        }
                    };
                    let waiting = || (0..rows).zip(&sums).for_each(|(r, sum)| k.store(kept, wait_at(r), k.get(*sum)));
                    k.if_else(is_last, finished, waiting);
                });
            });
        };
        // If the common axis is empty, one empty piece stores the zeros.
        k.for_step(0, k.max(common, 1), depth_each, Unroll::Never, piece);
        draft.launch(k, [tiles, 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }
}
