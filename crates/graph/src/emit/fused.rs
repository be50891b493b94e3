//! Traces of the nodes that one function of a kernel computes: of the interior, and of all positions.

use super::patch::Patch;
use crate::emit::trace::{ElementIndex, ExtentCondition, Index, Item, Trace};
use crate::expr::elementwise::Elementwise;
use crate::limits::{MAX_PATCH, MAX_TRANSPOSED};
use crate::tape::entries::{Id, Kind, ShapeId, Tape};
use crate::tape::number::Number;
use broadloom_scalar::Lanes;
use broadloom_skeleton::cost;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::rc::Rc;

/// The nodes that a trace is for.
#[derive(Clone, Copy)]
pub(crate) enum Roots<'r> {
    /// These nodes are computed and written.
    Compute(&'r [Id]),
    /// A pattern takes these nodes.
    Feed(&'r [Id]),
}

impl Roots<'_> {
    pub(crate) fn ids(&self) -> &[Id] {
        match self {
            Roots::Compute(ids) | Roots::Feed(ids) => ids,
        }
    }
}

/// The patch that nodes are traced in.
pub(crate) struct PatchTrace {
    pub(crate) patch: Patch,
    /// Nodes that come from the lanes that have their columns, in a patch whose lanes exchange values.
    pub(crate) windowed: Option<Rc<[bool]>>,
    /// True if the trace near edges is of one position. Patches of several columns then always have it.
    pub(crate) alone: bool,
}

impl PatchTrace {
    /// Returns the trace of a patch whose lanes exchange nothing, near edges too.
    pub(crate) fn of(patch: Patch) -> PatchTrace {
        PatchTrace { patch, windowed: None, alone: false }
    }
}

/// Traces roots at rows and columns relative to the position of the thread. All roots of the first place come
/// first.
fn traced_at(trace: &mut Trace<'_>, roots: Roots<'_>, rank: usize, places: impl Iterator<Item = (i64, i64)>) -> Option<Vec<u32>> {
    let mut items = vec![];
    for (row, column) in places {
        let place = trace.near(rank, row, column);
        for root in roots.ids() {
            items.push(match roots {
                Roots::Compute(_) => trace.compute(*root, &place)?,
                Roots::Feed(_) => trace.at(*root, &place)?,
            });
        }
    }
    Some(items)
}

/// Traces of some nodes at the position of the thread, for the interior and, if that differs, for everywhere.
pub(crate) struct FusedTraces<'k> {
    pub(super) interior: Trace<'k>,
    pub(super) everywhere: Option<Trace<'k>>,
    pub(super) roots: Vec<u32>,
    pub(super) roots_everywhere: Vec<u32>,
    pub(super) rank: usize,
    pub(super) line: bool,
    /// True if neighbouring threads are known to have neighbouring positions along the last axis.
    pub(crate) along_last: bool,
    /// The node that holds the first extent of the domain, if only the device knows it, and the number of
    /// positions for each element along it.
    pub(crate) length: Option<(Id, Number)>,
    /// The values that a pattern takes at positions beyond the length.
    pub(crate) absent: Option<Vec<Lanes>>,
    /// Words that are written where a condition is true. The conditions are the last roots.
    pub(super) traps: Vec<Id>,
    /// Nodes that a chain reads at a row and a column.
    pub(crate) staged: &'k [bool],
}

/// The nodes whose values a function is given, each with the number of its value.
#[derive(Clone, Copy)]
struct GivenNodes<'g> {
    nodes: &'g [(Id, u8)],
    position: GivenPosition,
}

/// The position of the values that a function is given.
#[derive(Clone, Copy)]
enum GivenPosition {
    /// The position of the thread.
    Thread,
    /// The position of the thread for nodes of its domain, and the row of the thread for others.
    Row,
}

impl<'k> FusedTraces<'k> {
    /// Traces nodes. Returns `None` if the kernel would be too large. With `line`, all elements are one line.
    /// Nodes that feed a pattern are read if they are in memory; roots of a kernel are computed in any case.
    /// The values of `given` nodes are passed at the position of the thread.
    pub(crate) fn trace(
        tape: &'k Tape,
        kept: &'k [bool],
        roots: Roots<'_>,
        traps: &[Id],
        given: &[Id],
        rank: usize,
        line: bool,
    ) -> Option<FusedTraces<'k>> {
        let given: SmallVec<[(Id, u8); 1]> = given.iter().copied().zip(0..).collect();
        let given = GivenNodes { nodes: &given, position: GivenPosition::Thread };
        FusedTraces::trace_all(tape, kept, roots, traps, rank, line, given)
    }

    /// Traces nodes of a stage of rows. The values of `given` nodes are those of the thread's position or of its
    /// row.
    pub(crate) fn trace_rows(
        tape: &'k Tape,
        kept: &'k [bool],
        roots: Roots<'_>,
        rank: usize,
        given: &[Id],
    ) -> Option<FusedTraces<'k>> {
        let given: SmallVec<[(Id, u8); 1]> = given.iter().copied().zip(0..).collect();
        let given = GivenNodes { nodes: &given, position: GivenPosition::Row };
        FusedTraces::trace_all(tape, kept, roots, &[], rank, false, given)
    }

    /// Traces nodes of which some are passed at the position of the thread, each with the number of its
    /// value.
    pub(crate) fn trace_behind(
        tape: &'k Tape,
        kept: &'k [bool],
        roots: Roots<'_>,
        rank: usize,
        line: bool,
        given: &[(Id, u8)],
    ) -> Option<FusedTraces<'k>> {
        let given = GivenNodes { nodes: given, position: GivenPosition::Thread };
        FusedTraces::trace_all(tape, kept, roots, &[], rank, line, given)
    }

    fn trace_all(
        tape: &'k Tape,
        kept: &'k [bool],
        roots: Roots<'_>,
        traps: &[Id],
        rank: usize,
        line: bool,
        given: GivenNodes<'_>,
    ) -> Option<FusedTraces<'k>> {
        let condition = |trap: &Id| tape.entry(*trap).inputs[0];
        let first = roots.ids().first().copied().or_else(|| traps.first().map(condition));
        let run = |interior: bool| {
            let mut trace = Trace::new(tape, kept, interior);
            trace.domain = first.filter(|_| !line).map(|root| tape.entry(root).shape);
            let place = trace.start(rank, line);
            for (node, value) in given.nodes {
                let is_at_thread = trace.domain == Some(tape.entry(*node).shape);
                let own = match given.position {
                    GivenPosition::Thread => place.clone(),
                    // A value of a row is given at the position of the row, with or without an axis of extent 1.
                    GivenPosition::Row if tape.rank(*node) == rank && !is_at_thread => trace.first_of_row(&place),
                    GivenPosition::Row => place.first(tape.rank(*node)),
                };
                trace.give(*value, *node, &own);
            }
            let mut items = match roots {
                Roots::Compute(roots) => roots.iter().map(|root| trace.compute(*root, &place)).collect::<Option<Vec<u32>>>()?,
                Roots::Feed(roots) => roots.iter().map(|root| trace.at(*root, &place)).collect::<Option<Vec<u32>>>()?,
            };
            for trap in traps {
                items.push(trace.at(condition(trap), &place)?);
            }
            Some((trace, items))
        };
        let length = first.and_then(|root| {
            let shape = tape.entry(root).shape;
            let each = if line { Number::stride(shape, 0, rank) } else { Number::Known(1) };
            tape.shapes[shape as usize].length.map(|length| (length, each))
        });
        let mut fused = FusedTraces::of(run, false, rank, line, length)?;
        fused.traps = traps.iter().map(|trap| tape.entry(*trap).inputs[1]).collect();
        Some(fused)
    }

    /// Traces nodes in a strip of rows that starts at the position of the thread. Values that rows share are
    /// computed once. Values of `sliding` nodes that columns share come from other lanes. The roots of the
    /// first row come first.
    pub(crate) fn strip(
        tape: &'k Tape,
        kept: &'k [bool],
        sliding: &'k [bool],
        roots: Roots<'_>,
        rank: usize,
        rows: u32,
    ) -> Option<FusedTraces<'k>> {
        FusedTraces::patch(tape, kept, sliding, roots, rank, PatchTrace::of(Patch { rows, ..Patch::SINGLE }))
    }

    /// Traces nodes in a patch of rows and columns that starts at the position of the thread, row by row.
    pub(crate) fn patch(
        tape: &'k Tape,
        kept: &'k [bool],
        sliding: &'k [bool],
        roots: Roots<'_>,
        rank: usize,
        of: PatchTrace,
    ) -> Option<FusedTraces<'k>> {
        let PatchTrace { patch, windowed, alone } = of;
        let run = |interior: bool| {
            let mut trace = Trace::new(tape, kept, interior);
            trace.domain = roots.ids().first().map(|root| tape.entry(*root).shape);
            trace.sliding = sliding;
            trace.skew = patch.skew;
            trace.columns = patch.columns;
            trace.windowed = windowed.clone().filter(|_| interior);
            if patch.columns > 1 || patch.step > 1 {
                trace.most = MAX_PATCH;
            }
            let patch = if alone && !interior { Patch::SINGLE } else { patch };
            let items = traced_at(&mut trace, roots, rank, patch.places())?;
            if trace.windowed.is_some() {
                trace.reach = trace.lanes_read(&items);
            }
            Some((trace, items))
        };
        let length = roots.ids().first().and_then(|root| {
            let shape = tape.entry(*root).shape;
            let each = Number::Known(1);
            tape.shapes[shape as usize].length.map(|length| (length, each))
        });
        FusedTraces::of(run, alone && patch.columns > 1, rank, false, length)
    }

    /// Traces nodes at positions relative to the thread's, in the interior of all axes but one.
    pub(crate) fn beside(
        tape: &'k Tape,
        kept: &'k [bool],
        roots: Roots<'_>,
        rank: usize,
        places: impl Iterator<Item = (i64, i64)>,
        ruled: u8,
    ) -> Option<FusedTraces<'k>> {
        let mut trace = Trace::new(tape, kept, true);
        trace.domain = roots.ids().first().map(|root| tape.entry(*root).shape);
        trace.ruled = Some(ruled);
        trace.most = MAX_PATCH;
        let items = traced_at(&mut trace, roots, rank, places)?;
        let length = tape.shapes[trace.domain? as usize].length.map(|length| (length, Number::Known(1)));
        Some(FusedTraces::with(trace, items, None, rank, false, length))
    }

    /// Returns the traces that a function makes for the interior and for all positions. The second is omitted
    /// if it is equal, unless it is `always` wanted.
    fn of(
        run: impl Fn(bool) -> Option<(Trace<'k>, Vec<u32>)>,
        always: bool,
        rank: usize,
        line: bool,
        length: Option<(Id, Number)>,
    ) -> Option<FusedTraces<'k>> {
        let (interior, roots) = run(true)?;
        let everywhere = if interior.conditions.is_empty() && !always { None } else { Some(run(false)?) };
        Some(FusedTraces::with(interior, roots, everywhere, rank, line, length))
    }

    fn with(
        interior: Trace<'k>,
        roots: Vec<u32>,
        everywhere: Option<(Trace<'k>, Vec<u32>)>,
        rank: usize,
        line: bool,
        length: Option<(Id, Number)>,
    ) -> FusedTraces<'k> {
        let (everywhere, roots_everywhere) = everywhere.unzip();
        let roots_everywhere = roots_everywhere.unwrap_or_default();
        let (absent, traps) = (None, vec![]);
        FusedTraces {
            interior,
            everywhere,
            roots,
            roots_everywhere,
            rank,
            line,
            along_last: false,
            length,
            absent,
            traps,
            staged: &[],
        }
    }

    /// Returns the lanes before and behind its own that it reads.
    pub(crate) fn reach(&self) -> (u32, u32) {
        let all = std::iter::once(&self.interior).chain(&self.everywhere);
        all.fold((0, 0), |(a, b), trace| (a.max(trace.reach.0 as u32), b.max(trace.reach.1 as u32)))
    }

    /// Returns whether some items are computed in a branch of a selection only.
    pub(crate) fn chooses(&self) -> bool {
        let all = std::iter::once(&self.interior).chain(&self.everywhere);
        all.flat_map(|trace| &trace.items).any(|item| matches!(item, Item::Before { .. }))
    }

    /// Returns whether indices along axes of a shape are found by division.
    pub(crate) fn unravels(&self, shape: ShapeId) -> bool {
        self.interior.indices.iter().any(|index| matches!(index, Index::Unravel(_, own, _) if *own == shape))
    }

    /// Returns the nodes that are read from memory. Near edges that can be more nodes: without boundary
    /// rules, an index may be equal to one of a computed element.
    pub(crate) fn reads(&self) -> Vec<Id> {
        let mut reads = self.interior.reads();
        let others = self.everywhere.iter().flat_map(Trace::reads).collect::<Vec<Id>>();
        reads.extend(others.into_iter().filter(|id| !reads.contains(id)).collect::<Vec<Id>>());
        let length = self.length.as_ref().map(|(length, _)| *length);
        reads.extend(length.filter(|length| !reads.contains(length)));
        reads
    }

    /// Returns the number of axes of a position.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of items of the longer of its traces.
    pub(crate) fn items(&self) -> usize {
        self.interior.items.len().max(self.everywhere.as_ref().map_or(0, |trace| trace.items.len()))
    }

    /// Returns the number of items of the trace for positions near the edges; 0 if all have one trace.
    pub(crate) fn edge_items(&self) -> usize {
        self.everywhere.as_ref().map_or(0, |trace| trace.items.len())
    }

    /// Returns the estimated number of emitted operations of the larger of its traces.
    pub(crate) fn size(&self) -> u64 {
        self.interior.size.max(self.everywhere.as_ref().map_or(0, |trace| trace.size))
    }

    /// Returns the cost of a position; most positions are in the interior.
    pub(crate) fn cost(&self) -> u64 {
        self.interior.cost
    }

    /// Returns the number of values that are read at a position.
    pub(crate) fn read_count(&self) -> u64 {
        self.interior.items.iter().filter(|item| matches!(item, Item::Read { .. })).count() as u64
    }

    /// Returns the cost of a position without its reads.
    pub(crate) fn computing(&self) -> u64 {
        self.interior.cost.saturating_sub(self.read_count() * cost::READ)
    }

    /// Returns whether functions are called. It is not known what their calls at different positions share.
    pub(crate) fn calls(&self, tape: &Tape) -> bool {
        let is_call = |node: Id| matches!(tape.entry(node).kind, Kind::Elementwise(Elementwise::Call(..)));
        self.interior.items.iter().any(|item| matches!(item, Item::Apply(node, _) if is_call(*node)))
    }

    /// Returns the nodes that are computed, each with the number of its positions.
    pub(crate) fn computed(&self) -> HashMap<Id, u64> {
        self.interior.computed()
    }

    /// Returns the trace of the interior and, if it differs, that of all positions.
    pub(crate) fn traces(&self) -> impl Iterator<Item = &Trace<'k>> {
        std::iter::once(&self.interior).chain(&self.everywhere)
    }

    /// Returns the axis along which reads are contiguous, and these reads, if that is not the last axis, all
    /// of them have the same one, and no boundary is tested. Either the reads or the writes of such a kernel
    /// would be strided.
    pub(crate) fn transposed(&self, tape: &Tape) -> Option<(u8, Vec<u32>)> {
        let last = self.rank.checked_sub(1).filter(|last| *last > 0 && !self.line)?;
        if self.everywhere.is_some() || self.interior.items.iter().any(|item| matches!(item, Item::Before { .. })) {
            return None;
        }
        let (mut along, mut found) = (None, vec![]);
        for (number, item) in self.interior.items.iter().enumerate() {
            let Item::Read { node, place: ElementIndex::Axes(indices) } = item else { continue };
            let mut axes = vec![];
            for index in indices {
                match &self.interior.indices[*index as usize] {
                    Index::Affine { axis, stride, .. } => axes.push((axis.map(usize::from), stride)),
                    _ => axes.push((None, &Number::Known(0))),
                }
            }
            let affine = indices.iter().all(|index| matches!(self.interior.indices[*index as usize], Index::Affine { .. }));
            let strided = axes.iter().rev().skip(1).any(|(axis, _)| *axis == Some(last));
            let rows = tape.shapes[tape.entry(*node).shape as usize].rows;
            match axes.last() {
                Some((Some(axis), Number::Known(1 | -1))) if affine && strided && rows && *axis != last => {
                    if along.is_some_and(|along| along != *axis) {
                        return None;
                    }
                    along = Some(*axis);
                    found.push(number as u32);
                }
                _ => {}
            }
        }
        along.filter(|_| found.len() <= MAX_TRANSPOSED).map(|axis| (axis as u8, found))
    }

    /// Returns the conditions of positions in the interior.
    pub(crate) fn conditions(&self) -> &[ExtentCondition] {
        &self.interior.conditions
    }
}
