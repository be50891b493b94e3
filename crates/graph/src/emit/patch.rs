//! Patches: rows and columns of results that a thread computes together.
//!
//! A thread of a GPU pays for each access to its first cache, whose width is a row of 32 elements: a read that does not start at a multiple of that takes two
//! accesses, and one of four neighbouring elements four. In a patch of several columns, what columns share is read once, four elements at a time. Its rows share
//! what they read, too; where they look at rows that are some distance apart, the rows of the patch have that distance.

use super::{Code, Fused, Given};
use crate::cut::{Cut, Group, GroupKind, Part};
use crate::error::Result;
use crate::number::Number;
use crate::pattern::Ready;
use crate::tape::{Id, Tape};
use crate::trace::{Index, IndexId, Item, Place, Trace};
use broadloom_skeleton::Library;
use broadloom_skeleton::cost::{self, Costs};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

/// Rows and columns of a thread. Rows are some distance apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patch {
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    pub(crate) step: u32,
}

impl Patch {
    /// Returns whether an image has room for patches: rows for one at least, and columns that come out even.
    pub(crate) fn fits(self, sizes: &[u64]) -> bool {
        let [.., height, width] = sizes else { return false };
        *height >= u64::from(self.rows) * u64::from(self.step) && width.is_multiple_of(self.columns.into())
    }
}

/// A kernel in patches, for sizes that have room for them.
#[derive(Debug)]
pub(crate) struct Patched {
    pub(crate) patch: Patch,
    pub(crate) codes: Vec<Code>,
    pub(crate) bounds: Vec<Given>,
    pub(crate) ready: Ready,
}

impl Trace<'_> {
    /// The group of so many columns in which an element lies, and its place there; `None` where it cannot be read together with its neighbours.
    pub(super) fn column_group(&self, node: Id, place: &Place, columns: u32) -> Option<(i64, usize)> {
        let entry = self.tape().entry(node);
        if columns == 1 || Some(entry.shape) != self.domain || !entry.ty.is_scalar() || entry.ty.bytes() != cost::PATCH_BYTES {
            return None;
        }
        let Place::At(indices) = place else { return None };
        let (last, above) = indices.split_last()?;
        let is_plain = |index: &IndexId| matches!(self.indices[*index as usize], Index::Affine { .. });
        match &self.indices[*last as usize] {
            Index::Affine { axis: Some(axis), stride: Number::Known(1), offset: Number::Known(offset) }
                if usize::from(*axis) + 1 == indices.len() && above.iter().all(is_plain) =>
            {
                let columns = i64::from(columns);
                Some((offset.div_euclid(columns), offset.rem_euclid(columns) as usize))
            }
            _ => None,
        }
    }
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
            let last = indices.last().map(|last| &trace.indices[*last as usize]);
            cost += match last {
                Some(Index::Affine { axis: None, .. }) | None => cost::ROW_READ,
                Some(Index::Affine { stride: Number::Known(1), offset: Number::Known(0), .. }) if columns == 1 => cost::ROW_READ,
                Some(Index::Affine { stride: Number::Known(1), .. }) if columns == 1 => cost::SHIFTED_READ,
                _ => cost::SCATTERED_READ,
            };
        }
        cost
    }

    /// Returns how many values of the interior a thread keeps at the same time, where it reads so many columns together, computes whatever it can when a value is
    /// read, and stores results in their order.
    fn live(&self, columns: u32) -> u32 {
        let trace = &self.interior;
        let mut groups: HashMap<(Id, SmallVec<[IndexId; 4]>, i64), u32> = HashMap::new();
        let mut reads = 0u32;
        // For each item, when it is there, and when it is used last.
        let mut born: Vec<u32> = vec![0; trace.items.len()];
        let mut used: Vec<u32> = vec![0; trace.items.len()];
        for (number, item) in trace.items.iter().enumerate() {
            let mut next = || {
                reads += 1;
                reads
            };
            born[number] = match item {
                Item::Read { node, place } => match (trace.column_group(*node, place, columns), place) {
                    (Some((group, _)), Place::At(indices)) => {
                        let key = (*node, SmallVec::from_slice(&indices[..indices.len() - 1]), group);
                        *groups.entry(key).or_insert_with(next)
                    }
                    _ => next(),
                },
                item => {
                    let mut inputs = vec![];
                    trace.needed_by_item(item, &mut inputs);
                    let time = inputs.iter().map(|input| born[*input as usize]).max().unwrap_or(0);
                    inputs.iter().for_each(|input| used[*input as usize] = used[*input as usize].max(time));
                    time
                }
            };
        }
        let mut stored = 0;
        for root in &self.roots {
            stored = born[*root as usize].max(stored);
            used[*root as usize] = used[*root as usize].max(stored);
        }
        let mut change = vec![0i64; reads as usize + 2];
        for (born, used) in born.iter().zip(&used).filter(|(born, used)| **born > 0 && used > born) {
            change[*born as usize] += 1;
            change[*used as usize] -= 1;
        }
        let mut live = 0i64;
        let most = change.iter().map(|change| {
            live += change;
            live
        });
        most.max().unwrap_or(0).max(0) as u32 + columns
    }

    /// Returns the cost of a position in a patch, in hundredths of simple operations, and the values that a thread keeps.
    pub(crate) fn patch_cost(&self, patch: Patch) -> (u64, u32) {
        let live = self.live(patch.columns);
        let all = self.access_cost(patch.columns) + self.computing();
        let places = u64::from(patch.rows * patch.columns);
        (all * cost::patch_share(live) / places, live)
    }

    /// Returns whether a row at a multiple of a distance is read.
    fn reads_apart(&self, step: u32) -> bool {
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

/// The kernels in patches that cost less than the one that serves all sizes, the best first.
pub(crate) fn patches(
    tape: &Tape,
    cut: &Cut,
    group: &Group,
    part: &Part<'_>,
    strip: Option<(u64, u32)>,
    library: &Library,
) -> Result<Vec<Patched>> {
    let costs = Costs::of(library.device().machine());
    let class = tape.shapes[part.shape as usize];
    let is_plain = |root: &Id| {
        let entry = tape.entry(*root);
        entry.ty.is_scalar() && entry.ty.bytes() == cost::PATCH_BYTES && entry.shape == part.shape
    };
    let is_possible = group.kind == GroupKind::Map && group.traps.is_empty() && group.feeds.len() == 1 && !part.line;
    let has_room = class.rows && class.tall && class.length.is_none();
    if !costs.takes_patches() || tape.alone || !is_possible || !has_room || !group.roots.iter().all(is_plain) {
        return Ok(vec![]);
    }
    if part.fused.chooses() || part.fused.items() * 2 > crate::limits::MAX_STRIP {
        return Ok(vec![]);
    }
    let roots = group.roots_of(&group.feeds[0]);
    let traced = |patch: Patch| Fused::patch(tape, (&cut.kept, &[]), roots, class.rank.into(), patch);
    let one = part.fused.patch_cost(Patch { rows: 1, columns: 1, step: 1 }).0;
    let mut least = strip.map_or(one, |(cost, _)| cost);
    let mut found = vec![];
    // What serves images of any width comes first, so that wider patches have to be better than that.
    for columns in cost::PATCH_COLUMNS {
        let mut best: Option<(u64, u32, Patch)> = None;
        for (rows, step) in cost::PATCH_ROWS.iter().flat_map(|rows| cost::PATCH_STEPS.iter().map(move |step| (*rows, *step))) {
            if rows == 1 && step > 1 || columns == 1 && rows * step == 1 || step > 1 && !part.fused.reads_apart(step) {
                continue;
            }
            let patch = Patch { rows, columns, step };
            let Some(fused) = traced(patch) else { continue };
            let (cost, live) = fused.patch_cost(patch);
            let least = best.as_ref().map_or(least, |(least, ..)| *least);
            if live <= cost::PATCH_LIVE && cost * 100 < least * cost::PATCH_GAIN {
                best = Some((cost, live, patch));
            }
        }
        let Some((cost, live, patch)) = best else { continue };
        let Some(fused) = traced(patch) else { continue };
        least = cost;
        let (codes, bounds) = fused.patch_codes(tape, costs.side_by_side(), columns)?;
        let ready = Ready::patches(tape, group, &codes, patch, live, library)?;
        found.insert(0, Patched { patch, codes, bounds, ready });
    }
    Ok(found)
}
