//! What is chosen, in one pass: each block has a tile, and learns from a [`Chain`] how many come before it.

use super::{Pack, store_total};
use crate::cooperate::Shared;
use crate::draft::{Draft, Inlet, Outlet, Writer};
use crate::lookback::Chain;
use crate::operator::Operator;
use crate::{Count, Result};
use broadloom_scalar::{Axis, Literal, Type, Value};

/// The parts of a program of one pass.
pub(super) struct Once<'a> {
    pub(super) pack: &'a Pack,
    pub(super) inlet: Inlet,
    pub(super) outlet: Outlet,
    pub(super) index: Type,
    pub(super) sum: Operator,
    /// The output that says how many are chosen.
    pub(super) total: usize,
}

/// Warps of a block.
const WARPS: u32 = 8;

impl Pack {
    /// Rows of 32 positions that a warp has: as many as registers hold.
    fn rows(&self) -> u32 {
        let bytes: u32 = self.source.results().iter().skip(1).map(|ty| ty.bytes()).sum();
        match bytes {
            0..=4 => 20,
            5..=8 => 8,
            _ => 4,
        }
    }
}

impl Once<'_> {
    pub(super) fn launch(&self, draft: &mut Draft) -> Result<()> {
        let (rows, block) = (self.pack.rows(), [32 * WARPS, 1, 1]);
        let tile = block[0] * rows;
        // Where there is nothing, one tile says so.
        let tiles = Count::size(0).div_ceil(tile).max(1u32);
        let chain = Chain::new(draft, &self.sum, self.index, &Count::Constant(1), &tiles);
        let k = Writer::with_blocks("pack", block, 4);
        let thread = k.thread(Axis::X);
        let (lane, warp) = (k.and(thread, 31), k.shr(thread, 5));
        let number = chain.number(&k);
        let (first, to) = (k.mul(number, tile), k.count(Count::size(0), self.index));
        let start = k.add(first, k.convert(k.add(k.mul(warp, 32 * rows), lane), self.index));
        let place = |row: u32| k.add(start, row * 32);
        let types = self.pack.source.results();
        let at = |row: u32| self.inlet.at(&k, &[place(row)]);
        let nothing = || types.iter().map(|ty| k.spread(Literal::zero(ty.element()), *ty)).collect::<Vec<Value>>();
        // All loads first, so that they are under way together.
        let values = k.choose_list(
            k.ge(k.sub(to, first), tile),
            || (0..rows).flat_map(at).collect(),
            || (0..rows).flat_map(|row| k.choose_list(k.lt(place(row), to), || at(row), nothing)).collect(),
        );
        let items: Vec<&[Value]> = values.chunks(types.len()).collect();
        let ballots: Vec<Value> = items.iter().map(|item| k.ballot(item[0], None)).collect();
        let mut before_rows = vec![];
        let mut in_warp = k.literal(0u32);
        for ballot in &ballots {
            before_rows.push(in_warp);
            in_warp = k.add(in_warp, k.popcount(*ballot));
        }
        let totals = Shared::new(&k, &[self.index], WARPS);
        k.if_then(k.eq(lane, 0), || totals.set(&k, warp, &[k.convert(in_warp, self.index)]));
        k.barrier();
        let zero = k.constant(self.index, 0);
        let (mut before_warp, mut all) = (zero, zero);
        for other in 0..WARPS {
            before_warp = k.select(k.eq(warp, other), all, before_warp);
            all = k.add(all, totals.get(&k, k.literal(other))[0]);
        }
        let before_tile = chain.before(&k, None, number, &[all])[0];
        let is_last = k.eq(k.add(number, 1), k.count(tiles.clone(), self.index));
        k.if_then(k.and(is_last, k.eq(thread, 0)), || store_total(&k, self.total, k.add(before_tile, all)));
        let before_warp = k.add(before_tile, before_warp);
        let lower = k.sub(k.shl(k.literal(1u32), lane), 1);
        for ((item, ballot), before_row) in items.iter().zip(&ballots).zip(before_rows) {
            let in_warp = k.add(before_row, k.popcount(k.and(*ballot, lower)));
            let rank = k.add(before_warp, k.convert(in_warp, self.index));
            k.if_then(item[0], || self.outlet.put(&k, &[rank], rank, &item[1..]));
        }
        draft.launch(k, [tiles, 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }
}
