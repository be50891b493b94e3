//! Patches: rows and columns of results that a thread computes together.
//!
//! A thread of a GPU pays for each access to its first cache, whose width is a row of 32 elements: a read that does not start at a multiple of that takes two
//! accesses, and one of four neighbouring elements four. In a patch of several columns, what columns share is read once, four elements at a time. Its rows share
//! what they read, too; where they look at rows that are some distance apart, the rows of the patch have that distance.
//!
//! Accesses of 16 bytes need addresses that are multiples of 16. Where the length of rows is no multiple of four elements, patches are skewed: each of their rows
//! starts at an aligned column. How rows are shifted against each other depends on the remainder of the length only, which the code of a kernel is made for.

use super::Fused;
use super::shared::Shared;
use crate::number::Number;
use crate::tape::{Id, Kind};
use crate::trace::{Index, IndexId, Item, ItemId, Place, Trace};
use broadloom_skeleton::cost;
use smallvec::SmallVec;
use std::collections::HashSet;
use std::fmt;

/// Rows and columns of results that a thread computes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Number of rows.
    pub rows: u32,
    /// Number of neighbouring columns.
    pub columns: u32,
    /// Distance of the rows.
    pub step: u32,
    /// The remainder of the length of a row, divided by the columns: each row of the patch starts at an aligned column.
    pub skew: u32,
    /// True if values of neighbouring columns that other lanes compute come from these lanes.
    pub exchanges: bool,
}

impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "patches of {}×{}", self.rows, self.columns)?;
        if self.step > 1 {
            write!(f, ", rows {} apart", self.step)?;
        }
        if self.skew > 0 {
            f.write_str(", each row from an aligned column on")?;
        }
        if self.exchanges { f.write_str(", values of other lanes by shuffles") } else { Ok(()) }
    }
}

impl Patch {
    pub(crate) const SINGLE: Patch = Patch { rows: 1, columns: 1, step: 1, skew: 0, exchanges: false };

    /// Returns whether an image has room for patches: rows for one at least, and as many columns beside whole patches as the patch is made for.
    pub(crate) fn fits(self, sizes: &[u64]) -> bool {
        let [.., height, width] = sizes else { return false };
        *height >= u64::from(self.rows) * u64::from(self.step) && width % u64::from(self.columns) == u64::from(self.skew)
    }

    /// Returns the rows and columns of all places from that of the thread on, row by row.
    pub(super) fn places(self) -> impl Iterator<Item = (i64, i64)> {
        let [rows, columns, step, skew] = [self.rows, self.columns, self.step, self.skew].map(i64::from);
        (0..rows).flat_map(move |row| (0..columns).map(move |column| (row * step, column - row * step * skew % columns)))
    }
}

impl Trace<'_> {
    /// The group of so many columns in which an element lies, and its place there; `None` where it cannot be read together with its neighbours.
    pub(super) fn column_group(&self, node: Id, place: &Place, columns: u32) -> Option<(i64, usize)> {
        let entry = self.tape().entry(node);
        if columns == 1 || Some(entry.shape) != self.domain || !entry.ty.is_scalar() || entry.ty.bytes() != cost::PATCH_BYTES {
            return None;
        }
        let Place::At(indices) = place else { return None };
        let is_plain = |index: &IndexId| matches!(self.indices[*index as usize], Index::Affine { .. });
        let above = &indices[..indices.len().saturating_sub(1)];
        if self.skew == 0 && !above.iter().all(is_plain) {
            return None;
        }
        self.column_of(indices, columns)
    }

    /// Returns the offset of an index from the position along an axis; `None` if it does not follow the position.
    fn offset(&self, axis: usize, index: IndexId) -> Option<i64> {
        match &self.indices[index as usize] {
            Index::Affine { axis: Some(own), stride: Number::Known(1), offset: Number::Known(offset) } => {
                (usize::from(*own) == axis).then_some(*offset)
            }
            _ => None,
        }
    }

    /// Returns the distance in lanes to the thread whose patch has the column of a place, and the number of the column in that patch.
    fn column_of(&self, indices: &[IndexId], columns: u32) -> Option<(i64, usize)> {
        let (last, above) = indices.split_last()?;
        let (offset, columns) = (self.offset(above.len(), *last)?, i64::from(columns));
        let offset = match self.skew {
            0 => offset,
            // Rows start at other remainders than that of the thread, by their distance from it.
            skew => {
                let (row, images) = above.split_last()?;
                if images.iter().enumerate().any(|(axis, index)| self.offset(axis, *index) != Some(0)) {
                    return None;
                }
                offset + (self.offset(images.len(), *row)? * i64::from(skew)).rem_euclid(columns)
            }
        };
        Some((offset.div_euclid(columns), offset.rem_euclid(columns) as usize))
    }

    /// Returns the place of an element in the patch of the lane that has its column, relative to that lane, and the distance in lanes; `None` where the element
    /// is the thread's own, or costs less to compute than to exchange.
    pub(crate) fn exchanged(&mut self, node: Id, indices: &[IndexId]) -> Option<(Place, i64)> {
        let entry = self.tape().entry(node);
        let is_far = self.windowed.as_ref().is_some_and(|windowed| windowed[node as usize]);
        let is_exchangeable = matches!(entry.kind, Kind::Elementwise(_)) && entry.ty.is_scalar() && entry.ty.bytes() >= 4;
        if !is_far || !is_exchangeable || Some(entry.shape) != self.domain {
            return None;
        }
        let (last, above) = indices.split_last()?;
        if above.iter().enumerate().any(|(axis, index)| self.offset(axis, *index).is_none()) {
            return None;
        }
        let (lanes, _) = self.column_of(indices, self.columns)?;
        if lanes == 0 {
            return None;
        }
        let column = self.offset(above.len(), *last)? - lanes * i64::from(self.columns);
        let column =
            self.index(Index::Affine { axis: Some(above.len() as u8), stride: Number::Known(1), offset: Number::Known(column) });
        let own = above.iter().copied().chain([column]).collect();
        Some((Place::At(own), lanes))
    }

    /// Returns the lanes before and behind its own that a thread reads to compute items.
    pub(super) fn lanes_read(&self, roots: &[ItemId]) -> (i64, i64) {
        let mut reach: Vec<(i64, i64)> = Vec::with_capacity(self.items.len());
        let mut inputs = vec![];
        for item in &self.items {
            inputs.clear();
            self.needed_by_item(item, &mut inputs);
            let by = if let Item::Shift { by, .. } = item { *by } else { 0 };
            let each = inputs.iter().map(|input| reach[*input as usize]);
            let (before, behind) = each.fold((0, 0), |all: (i64, i64), one| (all.0.max(one.0), all.1.max(one.1)));
            reach.push(((before - by).max(0), (behind + by).max(0)));
        }
        roots.iter().map(|root| reach[*root as usize]).fold((0, 0), |all, one| (all.0.max(one.0), all.1.max(one.1)))
    }
}

/// A patch and its price. Costs are those of a position without memory, in hundredths of simple operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Priced {
    pub(crate) patch: Patch,
    pub(crate) cost: u64,
    /// Cost without the start of a thread. Patches of one width are compared by it: the start is hidden by other threads, which larger patches leave fewer of.
    pub(crate) own: u64,
    /// Cost of all positions of a thread, in simple operations.
    pub(crate) work: u64,
    /// Values that a thread keeps.
    pub(crate) live: u32,
}

impl Fused<'_> {
    /// Returns the cost of all reads of the interior where a thread has so many columns, in simple operations.
    fn access_cost(&self, columns: u32) -> u64 {
        let trace = &self.interior;
        let mut groups: HashSet<(Id, SmallVec<[IndexId; 4]>, i64)> = HashSet::new();
        let mut cost = 0;
        for item in &trace.items {
            let Item::Read { node, place } = item else { continue };
            let Place::At(indices) = place else {
                cost += cost::SCATTERED_READ;
                continue;
            };
            if let Some((group, _)) = trace.column_group(*node, place, columns) {
                if groups.insert((*node, SmallVec::from_slice(&indices[..indices.len() - 1]), group)) {
                    cost += u64::from(columns) * cost::ROW_READ;
                }
                continue;
            }
            cost += self.read_cost(indices, columns);
        }
        cost
    }

    /// Returns the cost of a read that is not one of several columns. Neighbouring threads whose places lie in other rows, or several elements apart, read from a
    /// row of the first cache each.
    fn read_cost(&self, indices: &[IndexId], columns: u32) -> u64 {
        let trace = &self.interior;
        let (Some((last, above)), Some(axis)) = (indices.split_last(), self.rank.checked_sub(1)) else { return cost::ROW_READ };
        let step = |index: &IndexId| trace.step(*index, axis as u8);
        match step(last).filter(|_| above.iter().all(|index| step(index) == Some(0))) {
            Some(0) => cost::ROW_READ,
            Some(1) if columns > 1 => cost::SCATTERED_READ,
            Some(1) => match &trace.indices[*last as usize] {
                Index::Affine { offset: Number::Known(0), .. } => cost::ROW_READ,
                _ => cost::SHIFTED_READ,
            },
            _ => cost::SCATTERED_READ,
        }
    }

    /// Prices a patch of which these are the traces.
    pub(crate) fn priced(&self, patch: Patch) -> Priced {
        let Shared { live, saved } = self.interior.shared(&self.roots, patch.columns);
        let (before, behind) = self.reach();
        // Lanes at the ends of a warp have no results of their own.
        let lanes = u64::from(cost::LANES.saturating_sub(before + behind).max(1));
        let work = self.work(patch.columns, saved) * u64::from(cost::LANES) / lanes;
        let each = |operations: u64| operations * cost::patch_share(live) / u64::from(patch.rows * patch.columns);
        Priced { patch, cost: each(work + cost::PATCH_START), own: each(work), work, live }
    }

    /// Returns the cost of all reads and operations where a thread has so many columns and calls share operations of so much, in simple operations. Signs are
    /// changed where values are used.
    fn work(&self, columns: u32, saved: u64) -> u64 {
        self.access_cost(columns) + self.computing().saturating_sub(self.interior.signs + saved)
    }

    /// Returns the cost of a position without memory where each thread has one, in hundredths of simple operations.
    pub(crate) fn single_cost(&self) -> u64 {
        self.priced(Patch::SINGLE).cost
    }

    /// Returns whether a row at a multiple of a distance is read.
    pub(crate) fn reads_apart(&self, step: u32) -> bool {
        let trace = &self.interior;
        let is_apart = |index: &IndexId| match &trace.indices[*index as usize] {
            Index::Affine { stride: Number::Known(1), offset: Number::Known(offset), .. } => {
                *offset != 0 && offset.unsigned_abs().is_multiple_of(step.into())
            }
            _ => false,
        };
        trace.items.iter().any(|item| match item {
            Item::Read { place: Place::At(indices), .. } => indices.len() >= 2 && is_apart(&indices[indices.len() - 2]),
            _ => false,
        })
    }
}
