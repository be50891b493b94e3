//! Kernels in [patches](crate::emit::patch::Patch): which patch of a kernel costs least, and its program.

use crate::emit::code::{Code, KernelScalar, bounds};
use crate::emit::fused::{FusedTraces, PatchTrace};
use crate::emit::patch::Patch;
use crate::emit::price::PatchPrice;
use crate::expr::error::Result;
use crate::plan::group::{Group, GroupFunction, GroupKind};
use crate::plan::pattern::{KernelProgram, StencilForm};
use crate::tape::entries::{Id, Int, Kind, Tape};
use broadloom_device::Machine;
use broadloom_skeleton::Library;
use broadloom_skeleton::cost::{self, Costs};
use smallvec::SmallVec;
use std::rc::Rc;
use std::sync::OnceLock;

/// Remainders of lengths of rows, divided by the columns of the widest patch.
const REMAINDERS: usize = 4;

/// The kernels in patches that cost less than the kernel for all sizes. They are made when they are first
/// used.
#[derive(Debug)]
pub(crate) struct PatchKernels {
    /// Cost of a position in the kernel for all sizes.
    least: u64,
    /// The kernels by the remainder of the length of rows, the best first.
    by_remainder: [OnceLock<Vec<PatchKernel>>; REMAINDERS],
}

impl PatchKernels {
    /// Returns the kernels in patches for some sizes.
    pub(crate) fn of_sizes(
        &self,
        tape: &Tape,
        kept: &[bool],
        group: &Group,
        sizes: &[u64],
        library: &Library,
    ) -> Result<&[PatchKernel]> {
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
pub(crate) struct PatchKernel {
    pub(crate) patch: Patch,
    pub(crate) codes: Vec<Code>,
    pub(crate) bounds: Vec<KernelScalar>,
    pub(crate) ready: KernelProgram,
}

/// Returns for each node whether its elements are computed, inside of the kernel that computes it, from
/// elements at other positions.
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
    part: &'p GroupFunction<'p>,
    rank: usize,
    side_by_side: bool,
    /// Nodes whose elements are computed from neighbours.
    windowed: Rc<[bool]>,
    /// Cost of the bytes of a position that are read and written, in hundredths of simple operations.
    memory: u64,
}

impl<'p> Patches<'p> {
    /// Returns the patches of a kernel, or `None` if it can have none.
    pub(crate) fn of(
        tape: &'p Tape,
        kept: &'p [bool],
        group: &'p Group,
        part: &'p GroupFunction<'p>,
        machine: &Machine,
    ) -> Option<Self> {
        let costs = Costs::of(machine);
        let class = tape.shapes[part.shape as usize];
        let has_room = |root: &Id| tape.fits_patches(*root) && tape.entry(*root).shape == part.shape;
        let is_possible = group.kind == GroupKind::Map && group.traps.is_empty() && group.feeds.len() == 1 && !part.line;
        if !costs.takes_patches() || tape.kernels.single_positions || !is_possible || !group.roots.iter().all(has_room) {
            return None;
        }
        if part.fused.chooses() || part.fused.items() > crate::limits::MAX_PATCHED {
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

    fn traced(&self, patch: Patch) -> Option<FusedTraces<'p>> {
        let roots = self.group.roots_of(&self.group.feeds[0]);
        let windowed = patch.exchanges.then(|| self.windowed.clone());
        let of = PatchTrace { patch, windowed, alone: true };
        FusedTraces::patch(self.tape, self.kept, &[], roots, self.rank, of)
    }

    /// Returns the cost of a position in strips of rows, or in threads of one position. Memory and operations
    /// overlap, so the slower of both counts.
    fn strips(&self, strip: Option<(&FusedTraces<'_>, u32)>) -> u64 {
        let (fused, rows) = strip.unwrap_or((&self.part.fused, 1));
        fused.priced(Patch { rows, ..Patch::SINGLE }).cost.max(self.memory)
    }

    /// Returns the least cost of a position without memory, if an image has room for all patches in use.
    pub(crate) fn least(&self, sizes: &[u64]) -> u64 {
        let single = self.part.fused.single_cost();
        let width = sizes.last().copied().unwrap_or(0);
        let skew = |columns: u32| (width % u64::from(columns)) as u32;
        let all = cost::PATCH_COLUMNS.into_iter().filter_map(|columns| self.cheapest(columns, skew(columns)));
        all.map(|priced| priced.cost).fold(single, u64::min)
    }

    /// Returns the patch of `columns` columns that costs least, without memory, for rows with this remainder
    /// of columns.
    fn cheapest(&self, columns: u32, skew: u32) -> Option<PatchPrice> {
        let mut best: Option<PatchPrice> = None;
        let alone = self.part.fused.priced(Patch::SINGLE).work;
        // Steps whose larger patches are too large.
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
            // Positions that share nothing, such as those of transposed reads, are faster in separate threads.
            if !cost::PATCH_GAIN.pays(priced.work, alone * u64::from(rows * columns)) {
                continue;
            }
            if priced.live <= cost::PATCH_LIVE && best.is_none_or(|best| cost::patch_gain(rows).pays(priced.own, best.own)) {
                best = Some(priced);
            }
        }
        best
    }

    /// Returns the patches that cost less than `least`, the best first, for rows with this remainder of
    /// columns.
    fn choices(&self, mut least: u64, remainder: u32) -> Vec<PatchPrice> {
        let mut found = vec![];
        // One column serves images of any width, so it comes first: wider patches have to cost less than
        // that.
        for columns in cost::PATCH_COLUMNS {
            let Some(priced) = self.cheapest(columns, remainder % columns) else { continue };
            let cost = priced.cost.max(self.memory);
            if cost::PATCH_GAIN.pays(cost, least) {
                least = cost;
                found.insert(0, priced);
            }
        }
        found
    }

    /// Makes the kernel in a patch.
    fn made(&self, priced: PatchPrice, library: &Library) -> Result<Option<PatchKernel>> {
        let PatchPrice { patch, live, .. } = priced;
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
        let ready = KernelProgram::patches(self.tape, self.group, &codes, StencilForm { patch, reach, live }, library)?;
        Ok(Some(PatchKernel { patch, codes, bounds, ready }))
    }

    /// Returns the traces of strips along rows and along columns for the positions around patches. Returns
    /// `None` if positions cost little or share little.
    fn border(&self, priced: PatchPrice) -> Option<[FusedTraces<'p>; 2]> {
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
            let strip = FusedTraces::beside(self.tape, self.kept, roots, self.rank, places, ruled)?;
            let work = strip.priced(Patch { rows: positions, ..Patch::SINGLE }).work;
            cost::BORDER_GAIN.pays(work, alone * u64::from(positions)).then_some(strip)
        };
        let along_rows = traced(&mut apart.clone().map(|column| (0, column)), last - 1)?;
        let along_columns = traced(&mut apart.map(|row| (row, 0)), last)?;
        Some([along_rows, along_columns])
    }

    /// Returns the kernels in patches, if there are any for rows without a remainder. The kernel for all
    /// sizes may be in strips of rows.
    pub(crate) fn patchable(&self, strip: Option<(&FusedTraces<'_>, u32)>) -> Option<PatchKernels> {
        let least = self.strips(strip);
        let has_any = !self.choices(least, 0).is_empty();
        has_any.then(|| PatchKernels { least, by_remainder: Default::default() })
    }
}
