//! Patches: rows and columns of results that a thread computes together.
//!
//! A thread of a GPU pays for each access to its first cache, whose width is a row of 32 elements: a read that does not start at a multiple of that takes two
//! accesses, and one of four neighbouring elements four. In a patch of several columns, what columns share is read once, four elements at a time. Its rows share
//! what they read, too; where they look at rows that are some distance apart, the rows of the patch have that distance.
//!
//! Accesses of 16 bytes need addresses that are multiples of 16. Where the length of rows is no multiple of four elements, patches are skewed: each of their rows
//! starts at an aligned column. How rows are shifted against each other depends on the remainder of the length only, which the code of a kernel is made for.

use super::shared::Shared;
use super::{Code, Fused, Given, bounds};
use crate::cut::{Group, GroupKind, Part};
use crate::error::Result;
use crate::number::Number;
use crate::pattern::Ready;
use crate::tape::{Id, Int, Kind, Tape};
use crate::trace::{Index, IndexId, Item, ItemId, Place, Trace};
use broadloom_device::Machine;
use broadloom_skeleton::Library;
use broadloom_skeleton::cost::{self, Costs};
use smallvec::SmallVec;
use std::collections::HashSet;
use std::fmt;
use std::rc::Rc;
use std::sync::OnceLock;

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

/// Remainders of lengths of rows, divided by the columns of the widest patch.
const REMAINDERS: usize = 4;

/// The kernels in patches that cost less than the one that serves all sizes, made when they are first wanted.
#[derive(Debug)]
pub(crate) struct Patchable {
    /// Cost of a position in the kernel for all sizes.
    least: u64,
    /// The kernels by the remainder of the length of rows, the best first.
    by_remainder: [OnceLock<Vec<Patched>>; REMAINDERS],
}

impl Patchable {
    /// The kernels in patches for sizes.
    pub(crate) fn of_sizes(
        &self,
        tape: &Tape,
        kept: &[bool],
        group: &Group,
        sizes: &[u64],
        library: &Library,
    ) -> Result<&[Patched]> {
        let remainder = sizes.last().map_or(0, |width| (width % REMAINDERS as u64) as usize);
        if let Some(known) = self.by_remainder[remainder].get() {
            return Ok(known);
        }
        let mut found = vec![];
        let parts = group.traced(tape, kept);
        if let Some([part]) = parts.as_deref()
            && let Some(patches) = Patches::of(tape, kept, group, part, library.device().machine())
        {
            for priced in patches.choices(self.least, remainder as u32) {
                found.extend(patches.made(priced, library)?);
            }
        }
        Ok(self.by_remainder[remainder].get_or_init(|| found))
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
    fn priced(&self, patch: Patch) -> Priced {
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

/// Returns for each node whether its elements are computed, inside of the kernel that computes it, from elements at other positions.
fn windowed(tape: &Tape, kept: &[bool]) -> Rc<[bool]> {
    let mut windowed = vec![false; tape.entries.len()];
    for (id, entry) in tape.entries.iter().enumerate() {
        let moves = matches!(&entry.kind, Kind::View(maps, ..) if maps.iter().any(|map| map.offset != Int::Known(0)));
        let computed = |input: &Id| !kept[*input as usize] && windowed[*input as usize];
        windowed[id] = moves || entry.inputs.iter().any(computed);
    }
    windowed.into()
}

/// Patches of a kernel: their traces and what they cost.
pub(crate) struct Patches<'p> {
    tape: &'p Tape,
    kept: &'p [bool],
    group: &'p Group,
    part: &'p Part<'p>,
    rank: usize,
    side_by_side: bool,
    /// Nodes whose elements are computed from neighbours.
    windowed: Rc<[bool]>,
    /// Cost of the bytes of a position that are read and written, in hundredths of simple operations.
    memory: u64,
}

/// A patch and its price. Costs are those of a position without memory, in hundredths of simple operations.
#[derive(Clone, Copy, Debug)]
struct Priced {
    patch: Patch,
    cost: u64,
    /// Cost without the start of a thread. Patches of one width are compared by it: the start is hidden by other threads, which larger patches leave fewer of.
    own: u64,
    /// Cost of all positions of a thread, in simple operations.
    work: u64,
    /// Values that a thread keeps.
    live: u32,
}

impl<'p> Patches<'p> {
    /// The patches of a kernel; `None` if it can have none.
    pub(crate) fn of(tape: &'p Tape, kept: &'p [bool], group: &'p Group, part: &'p Part<'p>, machine: &Machine) -> Option<Self> {
        let costs = Costs::of(machine);
        let class = tape.shapes[part.shape as usize];
        let has_room = |root: &Id| tape.fits_patches(*root) && tape.entry(*root).shape == part.shape;
        let is_possible = group.kind == GroupKind::Map && group.traps.is_empty() && group.feeds.len() == 1 && !part.line;
        if !costs.takes_patches() || tape.alone || !is_possible || !group.roots.iter().all(has_room) {
            return None;
        }
        if part.fused.chooses() || part.fused.items() * 2 > crate::limits::MAX_PATCH {
            return None;
        }
        let bytes =
            |id: &Id| Some(tape.entry(*id)).filter(|entry| entry.shape == part.shape).map(|entry| u64::from(entry.ty.bytes()));
        let bytes = group.reads.iter().chain(&group.roots).filter_map(bytes).sum();
        let memory = costs.started(bytes) * cost::PATCH_MEMORY / 100;
        let windowed = windowed(tape, kept);
        let (rank, side_by_side) = (class.rank.into(), costs.side_by_side());
        Some(Patches { tape, kept, group, part, rank, side_by_side, windowed, memory })
    }

    fn traced(&self, patch: Patch) -> Option<Fused<'p>> {
        let roots = self.group.roots_of(&self.group.feeds[0]);
        let windowed = patch.exchanges.then(|| self.windowed.clone());
        Fused::patch(self.tape, (self.kept, &[]), roots, self.rank, (patch, windowed), true)
    }

    /// Returns the cost of a position in strips of so many rows, or where each thread has one position. Memory and operations go on at the same time, so the
    /// slower of both counts.
    fn strips(&self, strip: Option<(&Fused<'_>, u32)>) -> u64 {
        let (fused, rows) = strip.unwrap_or((&self.part.fused, 1));
        fused.priced(Patch { rows, ..Patch::SINGLE }).cost.max(self.memory)
    }

    /// Returns the least cost of a position without memory, where an image has room for all patches that are used.
    pub(crate) fn least(&self, sizes: &[u64]) -> u64 {
        let single = self.part.fused.single_cost();
        let width = sizes.last().copied().unwrap_or(0);
        let skew = |columns: u32| (width % u64::from(columns)) as u32;
        let all = cost::PATCH_COLUMNS.into_iter().filter_map(|columns| self.cheapest(columns, skew(columns)));
        all.map(|priced| priced.cost).fold(single, u64::min)
    }

    /// Returns the patch of so many columns that costs least, without memory, where so many columns remain of a row.
    fn cheapest(&self, columns: u32, skew: u32) -> Option<Priced> {
        let mut best: Option<Priced> = None;
        let alone = self.part.fused.priced(Patch::SINGLE).work;
        // Steps of which larger patches are too large.
        let mut full: SmallVec<[(bool, u32); 4]> = SmallVec::new();
        let computes_far =
            self.part.fused.computed().keys().any(|node| self.windowed[*node as usize] && !self.kept[*node as usize]);
        let ways: &[bool] = if computes_far && columns > 1 { &[false, true] } else { &[false] };
        let steps = cost::PATCH_ROWS.iter().flat_map(|rows| cost::PATCH_STEPS.iter().map(move |step| (*rows, *step)));
        for ((rows, step), exchanges) in steps.flat_map(|size| ways.iter().map(move |way| (size, *way))) {
            if rows == 1 && step > 1 || columns == 1 && rows * step == 1 || full.contains(&(exchanges, step)) {
                continue;
            }
            if step > 1 && !self.part.fused.reads_apart(step) {
                continue;
            }
            let patch = Patch { rows, columns, step, skew, exchanges };
            let Some(fused) = self.traced(patch).filter(|fused| columns == 1 || fused.read_count() <= cost::PATCH_READS) else {
                full.push((exchanges, step));
                continue;
            };
            if exchanges {
                let (before, behind) = fused.reach();
                // The lanes that are read do not depend on the rows.
                if before + behind == 0 || before + behind > cost::MOST_REACH {
                    full.push((exchanges, step));
                    continue;
                }
            }
            let priced = fused.priced(patch);
            // Positions that share nothing, such as those of transposed reads, are better off in threads of their own.
            if priced.work * 100 >= alone * u64::from(rows * columns) * cost::PATCH_GAIN {
                continue;
            }
            if priced.live <= cost::PATCH_LIVE && best.is_none_or(|best| priced.own * 100 < best.own * cost::patch_gain(rows)) {
                best = Some(priced);
            }
        }
        best
    }

    /// Returns the patches that cost less than that, the best first, where so many columns remain of rows divided by the widest patch.
    fn choices(&self, mut least: u64, remainder: u32) -> Vec<Priced> {
        let mut found = vec![];
        // One column serves images of any width, so it comes first: wider patches have to cost less than that.
        for columns in cost::PATCH_COLUMNS {
            let Some(priced) = self.cheapest(columns, remainder % columns) else { continue };
            let cost = priced.cost.max(self.memory);
            if cost * 100 < least * cost::PATCH_GAIN {
                least = cost;
                found.insert(0, priced);
            }
        }
        found
    }

    /// The kernel in a patch.
    fn made(&self, priced: Priced, library: &Library) -> Result<Option<Patched>> {
        let Priced { patch, live, .. } = priced;
        let Some(fused) = self.traced(patch) else { return Ok(None) };
        let reach = fused.reach();
        let mut conditions = fused.conditions().to_vec();
        let mut codes = fused.patch_codes(self.tape, self.side_by_side, patch.columns, ["inner", "edge"])?;
        let last = self.rank as u8 - 1;
        let mut bounds_along = vec![];
        if let Some(border) = self.border(priced) {
            bounds_along = bounds(last..last + 1, border[0].conditions().to_vec());
            // Images have to be in the interior of all functions.
            let others = border.iter().flat_map(|strip| strip.conditions()).filter(|condition| condition.axis != last);
            conditions.extend(others.cloned());
            for (strip, name) in border.into_iter().zip(["along_rows", "along_columns"]) {
                codes.extend(strip.patch_codes(self.tape, self.side_by_side, 1, [name; 2])?);
            }
        }
        let mut bounds = bounds(0..last + 1, conditions);
        bounds.extend(bounds_along);
        let ready = Ready::patches(self.tape, self.group, &codes, patch, (reach, live), library)?;
        Ok(Some(Patched { patch, codes, bounds, ready }))
    }

    /// Returns the traces of strips along rows and along columns for the positions around patches; `None` where positions cost little or share little.
    fn border(&self, priced: Priced) -> Option<[Fused<'p>; 2]> {
        let Patch { rows, step, .. } = priced.patch;
        let positions = rows.min(cost::BORDER_POSITIONS);
        let alone = self.part.fused.priced(Patch::SINGLE).work;
        if positions == 1 || self.rank < 2 || alone < cost::BORDER_WORK {
            return None;
        }
        let apart = (0..i64::from(positions)).map(|place| place * i64::from(step));
        let last = self.rank as u8 - 1;
        let traced = |places: &mut dyn Iterator<Item = (i64, i64)>, ruled: u8| {
            let roots = self.group.roots_of(&self.group.feeds[0]);
            let strip = Fused::beside(self.tape, self.kept, roots, self.rank, places, ruled)?;
            let work = strip.priced(Patch { rows: positions, ..Patch::SINGLE }).work;
            (work * 100 < alone * u64::from(positions) * cost::BORDER_GAIN).then_some(strip)
        };
        let along_rows = traced(&mut apart.clone().map(|column| (0, column)), last - 1)?;
        let along_columns = traced(&mut apart.map(|row| (row, 0)), last)?;
        Some([along_rows, along_columns])
    }

    /// The kernels in patches, if there are any for rows that come out even. The kernel for all sizes is in strips of so many rows, or has none.
    pub(crate) fn patchable(&self, strip: Option<(&Fused<'_>, u32)>) -> Option<Patchable> {
        let least = self.strips(strip);
        let has_any = !self.choices(least, 0).is_empty();
        has_any.then(|| Patchable { least, by_remainder: Default::default() })
    }
}
