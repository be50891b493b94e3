//! Patches: rows and columns of results that a thread computes together.
//!
//! A thread of a GPU pays for each access to its first cache, whose lines have 32 elements. An unaligned read
//! takes two accesses, and a read of four neighbouring elements takes four. In a patch of several columns,
//! columns share reads, four elements at a time. Rows of a patch share reads, too. If a function reads rows
//! at a distance, the rows of the patch have that distance.
//!
//! Accesses of 16 bytes need addresses that are multiples of 16. If the length of rows is no multiple of four
//! elements, patches are skewed: each of their rows starts at an aligned column. The shift between rows
//! depends only on the remainder of the length, for which the code of a kernel is made.

use crate::emit::trace::{ElementIndex, Index, IndexId, Item, ItemId, Trace};
use crate::tape::entries::{Id, Kind};
use crate::tape::number::Number;
use broadloom_skeleton::cost;
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
    /// The remainder of the length of a row, divided by the columns: each row of the patch starts at an
    /// aligned column.
    pub skew: u32,
    /// True if lanes exchange the values of neighbouring columns that they compute.
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

    /// Returns whether an image has room for patches: at least the rows of one, and a length of rows with the
    /// remainder that the patch is made for.
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
    /// Returns the group of columns of an element, and its index in the group. Returns `None` if it cannot be
    /// read together with its neighbours.
    pub(super) fn column_group(&self, node: Id, place: &ElementIndex, columns: u32) -> Option<(i64, usize)> {
        let entry = self.tape().entry(node);
        if columns == 1 || Some(entry.shape) != self.domain || !entry.ty.is_scalar() || entry.ty.bytes() != cost::PATCH_BYTES {
            return None;
        }
        let ElementIndex::Axes(indices) = place else { return None };
        let is_plain = |index: &IndexId| matches!(self.indices[*index as usize], Index::Affine { .. });
        let above = &indices[..indices.len().saturating_sub(1)];
        if self.skew == 0 && !above.iter().all(is_plain) {
            return None;
        }
        self.column_of(indices, columns)
    }

    /// Returns the offset of an index from the position along an axis. Returns `None` if the stride is not 1.
    fn offset(&self, axis: usize, index: IndexId) -> Option<i64> {
        match &self.indices[index as usize] {
            Index::Affine { axis: Some(own), stride: Number::Known(1), offset: Number::Known(offset) } => {
                (usize::from(*own) == axis).then_some(*offset)
            }
            _ => None,
        }
    }

    /// Returns the distance in lanes to the thread whose patch has the column of a place, and the number of
    /// the column in that patch.
    fn column_of(&self, indices: &[IndexId], columns: u32) -> Option<(i64, usize)> {
        let (last, above) = indices.split_last()?;
        let (offset, columns) = (self.offset(above.len(), *last)?, i64::from(columns));
        let offset = match self.skew {
            0 => offset,
            // Remainders of rows differ from that of the thread by their distance from it.
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

    /// Returns the indices of an element relative to the lane whose patch has its column, and the distance in
    /// lanes. Returns `None` if the element is the thread's own, or costs less to compute than to exchange.
    pub(crate) fn exchanged(&mut self, node: Id, indices: &[IndexId]) -> Option<(ElementIndex, i64)> {
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
        Some((ElementIndex::Axes(own), lanes))
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
