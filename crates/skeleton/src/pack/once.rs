//! Packing in one pass: each block has a tile, and gets the number of chosen values before it from a
//! [`TileChain`].
//!
//! A warp has a few rows of its tile. In a row each lane has four adjacent values, loaded by one access, if
//! the inputs are contiguous, and one value otherwise. Chosen values are first compacted in shared memory,
//! while the number before the tile is not known yet. From there adjacent lanes write to adjacent memory.

use super::total::store_total;
use crate::kit::{Draft, Inlet, Outlet, Shared, TileChain, Writer};
use crate::operator::Operator;
use crate::{Count, Result, Source};
use broadloom_scalar::{Axis, Literal, Type, Value};

/// The parts of a one-pass program.
pub(super) struct OnePassEmitter<'a> {
    pub(super) source: &'a Source,
    pub(super) inlet: Inlet,
    pub(super) outlet: Outlet,
    pub(super) index: Type,
    pub(super) sum: Operator,
    /// Output for the number of chosen positions.
    pub(super) total: usize,
}

/// Number of warps of a block.
const WARPS: u32 = crate::cost::PACK_WARPS;
/// Maximum number of bytes of shared memory for the chosen values of a tile.
const ROOM: u32 = crate::cost::PACK_TILE;

/// The thread layout of a block.
struct BlockThreads {
    /// Number of positions of a thread, limited by registers.
    each: u32,
    /// Number of adjacent positions among them.
    items: u32,
    /// Number of blocks that a multiprocessor should hold.
    blocks: u32,
}

impl OnePassEmitter<'_> {
    fn shape(&self) -> BlockThreads {
        let bytes: u32 = self.source.results().iter().skip(1).map(|ty| ty.bytes()).sum();
        let items = if self.inlet.reads_rows() { 4 } else { 1 };
        let (each, blocks) = match (bytes, items) {
            (0..=4, 4) => (32, 3),
            (0..=4, _) => (20, 4),
            (5..=8, _) => (8, 4),
            _ => (4, 4),
        };
        BlockThreads { each, items, blocks }
    }

    pub(super) fn launch(&self, draft: &mut Draft) -> Result<()> {
        let (BlockThreads { each, items, blocks }, block) = (self.shape(), [32 * WARPS, 1, 1]);
        let (rows, row, tile) = (each / items, 32 * items, block[0] * each);
        // An empty line has one tile, which stores the total.
        let tiles = Count::size(0).div_ceil(tile).max(1u32);
        let chain = TileChain::new(draft, &self.sum, self.index, &Count::Constant(1), &tiles);
        let k = Writer::with_blocks("pack", block, blocks);
        let thread = k.thread(Axis::X);
        let (lane, warp) = (k.and(thread, 31), k.shr(thread, 5));
        let number = chain.number(&k);
        let (first, to) = (k.mul(number, tile), k.count(Count::size(0), self.index));
        let start = k.add(k.mul(warp, 32 * each), if items == 1 { lane } else { k.mul(lane, items) });
        let start = k.add(first, k.convert(start, self.index));
        let place = |row_number: u32, item: u32| k.add(start, row_number * row + item);
        let types = self.source.results();
        let nothing = || types.iter().map(|ty| k.spread(Literal::zero(ty.element()), *ty)).collect::<Vec<Value>>();
        let all_of = |value: &dyn Fn(u32, u32) -> Vec<Value>| -> Vec<Value> {
            (0..each).flat_map(|number| value(number / items, number % items)).collect()
        };
        let whole = k.ge(k.sub(to, first), tile);
        let at_once = if items == 1 { whole } else { k.and(whole, k.aligned(self.inlet.row_addresses(&k))) };
        // All loads come first, so that they are in flight together.
        let values = self.inlet.together(&k, || {
            k.choose_list(
                at_once,
                || {
                    if items == 1 {
                        return all_of(&|row, item| self.inlet.at(&k, &[place(row, item)]));
                    }
                    let rows: Vec<_> = (0..rows).map(|row| self.inlet.row(&k, place(row, 0), items as usize)).collect();
                    all_of(&|row, item| {
                        let loaded = |index: usize| rows[row as usize][index].map(|values| k.lane(values, item as usize));
                        self.inlet.at_with(&k, &[place(row, item)], &loaded)
                    })
                },
                || {
                    all_of(&|row, item| {
                        let place = place(row, item);
                        k.choose_list(k.lt(place, to), || self.inlet.at(&k, &[place]), nothing)
                    })
                },
            )
        });
        let values: Vec<&[Value]> = values.chunks(types.len()).collect();
        // The number of chosen positions before each one in its warp.
        let lower = k.sub(k.shl(k.literal(1u32), lane), 1);
        let mut ranks = vec![];
        let mut in_warp = k.literal(0u32);
        for row in values.chunks(items as usize) {
            let ballots: Vec<Value> = row.iter().map(|values| k.ballot(values[0], None)).collect();
            let count = |sum: Value, ballot: Value| k.add(sum, k.popcount(ballot));
            let mut rank = ballots.iter().fold(in_warp, |sum, ballot| count(sum, k.and(*ballot, lower)));
            for values in row {
                ranks.push(rank);
                rank = k.add(rank, k.convert(values[0], Type::U32));
            }
            in_warp = ballots.iter().fold(in_warp, |sum, ballot| count(sum, *ballot));
        }
        let totals = Shared::new(&k, &[Type::U32], WARPS);
        k.if_then(k.eq(lane, 0), || totals.set(&k, warp, &[in_warp]));
        k.barrier();
        let (mut before_warp, mut all) = (k.literal(0u32), k.literal(0u32));
        for other in 0..WARPS {
            before_warp = k.select(k.eq(warp, other), all, before_warp);
            all = k.add(all, totals.get(&k, k.literal(other))[0]);
        }
        let bytes: u32 = types[1..].iter().map(|ty| ty.bytes()).sum();
        let staged = (tile * bytes <= ROOM).then(|| Shared::new(&k, &types[1..], tile));
        if let Some(staged) = &staged {
            for (values, rank) in values.iter().zip(&ranks) {
                k.if_then(values[0], || staged.set(&k, k.add(before_warp, *rank), &values[1..]));
            }
        }
        // The look-back contains a barrier, so the staged values are complete after it.
        let whole = k.convert(all, self.index);
        let before_tile = chain.before(&k, None, number, &[whole])[0];
        let is_last = k.eq(k.add(number, 1), k.count(tiles.clone(), self.index));
        k.if_then(k.and(is_last, k.eq(thread, 0)), || store_total(&k, self.total, k.add(before_tile, whole)));
        let put = |rank: Value, values: &[Value]| {
            let rank = k.add(before_tile, k.convert(rank, self.index));
            self.outlet.put(&k, &[rank], rank, values);
        };
        match &staged {
            Some(staged) => {
                for number in 0..each {
                    let rank = k.add(thread, number * block[0]);
                    k.if_then(k.lt(rank, all), || put(rank, &staged.get(&k, rank)));
                }
            }
            None => {
                for (values, rank) in values.iter().zip(&ranks) {
                    k.if_then(values[0], || put(k.add(before_warp, *rank), &values[1..]));
                }
            }
        }
        draft.launch(k, [tiles, 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }
}
