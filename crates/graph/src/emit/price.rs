//! Prices of patches: the cost of what a thread reads and computes, by the values that its
//! positions share.

use super::fused::FusedTraces;
use super::patch::Patch;
use super::shared::SharedValues;
use crate::emit::trace::{ElementIndex, Index, IndexId, Item};
use crate::tape::entries::Id;
use crate::tape::number::Number;
use broadloom_skeleton::cost;
use smallvec::SmallVec;
use std::collections::HashSet;

/// A patch and its price. Costs are those of a position without memory, in hundredths of simple operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatchPrice {
    pub(crate) patch: Patch,
    pub(crate) cost: u64,
    /// Cost without the start of a thread. Patches of one width are compared by this cost: other threads hide
    /// the start, and larger patches leave fewer of them.
    pub(crate) own: u64,
    /// Cost of all positions of a thread, in simple operations.
    pub(crate) work: u64,
    /// Values that a thread keeps.
    pub(crate) live: u32,
}

impl FusedTraces<'_> {
    /// Returns the cost of all reads of the interior in simple operations, if a thread has `columns` columns.
    fn access_cost(&self, columns: u32) -> u64 {
        let trace = &self.interior;
        let mut groups: HashSet<(Id, SmallVec<[IndexId; 4]>, i64)> = HashSet::new();
        let mut cost = 0;
        for item in &trace.items {
            let Item::Read { node, place } = item else { continue };
            let ElementIndex::Axes(indices) = place else {
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

    /// Returns the cost of a read that is not one of several columns. Strided reads of neighbouring threads
    /// take a line of the first cache each.
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

    /// Returns the price of the patch of these traces.
    pub(crate) fn priced(&self, patch: Patch) -> PatchPrice {
        let SharedValues { live, saved } = self.interior.shared(&self.roots, patch.columns);
        let (before, behind) = self.reach();
        // Lanes at the ends of a warp have no results of their own.
        let lanes = u64::from(cost::LANES.saturating_sub(before + behind).max(1));
        let work = self.work(patch.columns, saved) * u64::from(cost::LANES) / lanes;
        let each = |operations: u64| operations * cost::patch_share(live) / u64::from(patch.rows * patch.columns);
        PatchPrice { patch, cost: each(work + cost::PATCH_START), own: each(work), work, live }
    }

    /// Returns the cost of all reads and operations in simple operations, if a thread has `columns` columns
    /// and calls save operations of cost `saved`. Changes of signs are part of the instructions that use the
    /// values.
    fn work(&self, columns: u32, saved: u64) -> u64 {
        self.access_cost(columns) + self.computing().saturating_sub(self.interior.signs + saved)
    }

    /// Returns the cost of a position in hundredths of simple operations, without memory, for threads of one
    /// position.
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
            Item::Read { place: ElementIndex::Axes(indices), .. } => indices.len() >= 2 && is_apart(&indices[indices.len() - 2]),
            _ => false,
        })
    }
}
