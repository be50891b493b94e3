//! Traces of the nodes that one function of a kernel computes: of the interior, and of all positions.

use super::patch::Patch;
use crate::emit::trace::{Condition, ElementIndex, Index, Item, Trace};
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
pub(crate) struct Fused<'k> {
    pub(super) interior: Trace<'k>,
    pub(super) everywhere: Option<Trace<'k>>,
    pub(super) roots: Vec<u32>,
    pub(super) roots_everywhere: Vec<u32>,
    pub(super) rank: usize,
    pub(super) line: bool,
    /// True if it is known that threads side by side have positions side by side along the last axis.
    pub(crate) along_last: bool,
    /// The node that holds the first extent of the domain, where only the device knows it, and how many
    /// positions there are for each of its elements: all others of a line, or one.
    pub(crate) length: Option<(Id, Number)>,
    /// The values that a pattern is given for positions beyond the length.
    pub(crate) absent: Option<Vec<Lanes>>,
    /// Words that are written where a condition is true. The conditions are the last roots.
    pub(super) traps: Vec<Id>,
    /// Nodes that a chain reads at a row and a column.
    pub(crate) staged: &'k [bool],
}

impl<'k> Fused<'k> {
    /// The traces; `None` if they are too much for one kernel. `line` takes all elements as one line. What
    /// feeds a pattern is read where it is kept; what a kernel is there to compute is computed. Some nodes
    /// may be given at the position of the thread.
    pub(crate) fn trace(
        tape: &'k Tape,
        kept: &'k [bool],
        roots: Roots<'_>,
        (traps, given): (&[Id], &[Id]),
        rank: usize,
        line: bool,
    ) -> Option<Fused<'k>> {
        let given: SmallVec<[(Id, u8); 1]> = given.iter().copied().zip(0..).collect();
        Fused::trace_all(tape, kept, (roots, traps), rank, line, &given)
    }

    /// Traces nodes of which some are given at the position of the thread, each with the number of its value.
    pub(crate) fn trace_behind(
        tape: &'k Tape,
        kept: &'k [bool],
        roots: Roots<'_>,
        rank: usize,
        line: bool,
        given: &[(Id, u8)],
    ) -> Option<Fused<'k>> {
        Fused::trace_all(tape, kept, (roots, &[]), rank, line, given)
    }

    fn trace_all(
        tape: &'k Tape,
        kept: &'k [bool],
        (roots, traps): (Roots<'_>, &[Id]),
        rank: usize,
        line: bool,
        given: &[(Id, u8)],
    ) -> Option<Fused<'k>> {
        let condition = |trap: &Id| tape.entry(*trap).inputs[0];
        let first = roots.ids().first().copied().or_else(|| traps.first().map(condition));
        let run = |interior: bool| {
            let mut trace = Trace::new(tape, kept, interior);
            trace.domain = first.filter(|_| !line).map(|root| tape.entry(root).shape);
            let place = trace.start(rank, line);
            given.iter().for_each(|(node, value)| trace.give(*value, *node, &place));
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
        let mut fused = Fused::of(run, false, rank, line, length)?;
        fused.traps = traps.iter().map(|trap| tape.entry(*trap).inputs[1]).collect();
        Some(fused)
    }

    /// Traces of nodes in a strip of rows that starts at the position of the thread; what rows share is there
    /// once, and what columns share comes from other lanes where `sliding` says so. The roots of the first
    /// row come first.
    pub(crate) fn strip(
        tape: &'k Tape,
        (kept, sliding): (&'k [bool], &'k [bool]),
        roots: Roots<'_>,
        rank: usize,
        rows: u32,
    ) -> Option<Fused<'k>> {
        Fused::patch(tape, (kept, sliding), roots, rank, (Patch { rows, ..Patch::SINGLE }, None), false)
    }

    /// Traces of nodes in a patch of rows and columns that starts at the position of the thread, row by row.
    /// `alone` has the trace of everywhere at one position; then there is one where patches have several
    /// columns. Nodes that are `windowed` come from the lanes that have their columns, if this is given.
    pub(crate) fn patch(
        tape: &'k Tape,
        (kept, sliding): (&'k [bool], &'k [bool]),
        roots: Roots<'_>,
        rank: usize,
        (patch, windowed): (Patch, Option<Rc<[bool]>>),
        alone: bool,
    ) -> Option<Fused<'k>> {
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
        Fused::of(run, alone && patch.columns > 1, rank, false, length)
    }

    /// Traces of nodes at places relative to the position of the thread, in the interior of all axes but one.
    pub(crate) fn beside(
        tape: &'k Tape,
        kept: &'k [bool],
        roots: Roots<'_>,
        rank: usize,
        places: impl Iterator<Item = (i64, i64)>,
        ruled: u8,
    ) -> Option<Fused<'k>> {
        let mut trace = Trace::new(tape, kept, true);
        trace.domain = roots.ids().first().map(|root| tape.entry(*root).shape);
        trace.ruled = Some(ruled);
        trace.most = MAX_PATCH;
        let items = traced_at(&mut trace, roots, rank, places)?;
        let length = tape.shapes[trace.domain? as usize].length.map(|length| (length, Number::Known(1)));
        Some(Fused::with((trace, items), None, rank, false, length))
    }

    /// The traces that a function makes for the interior, and for everywhere if that is something else, or
    /// always.
    fn of(
        run: impl Fn(bool) -> Option<(Trace<'k>, Vec<u32>)>,
        always: bool,
        rank: usize,
        line: bool,
        length: Option<(Id, Number)>,
    ) -> Option<Fused<'k>> {
        let interior = run(true)?;
        let everywhere = if interior.0.conditions.is_empty() && !always { None } else { Some(run(false)?) };
        Some(Fused::with(interior, everywhere, rank, line, length))
    }

    fn with(
        (interior, roots): (Trace<'k>, Vec<u32>),
        everywhere: Option<(Trace<'k>, Vec<u32>)>,
        rank: usize,
        line: bool,
        length: Option<(Id, Number)>,
    ) -> Fused<'k> {
        let (everywhere, roots_everywhere) = everywhere.unzip();
        let roots_everywhere = roots_everywhere.unwrap_or_default();
        let (absent, traps) = (None, vec![]);
        Fused { interior, everywhere, roots, roots_everywhere, rank, line, along_last: false, length, absent, traps, staged: &[] }
    }

    /// Returns the lanes before and behind its own that it reads.
    pub(crate) fn reach(&self) -> (u32, u32) {
        let all = std::iter::once(&self.interior).chain(&self.everywhere);
        all.fold((0, 0), |(a, b), trace| (a.max(trace.reach.0 as u32), b.max(trace.reach.1 as u32)))
    }

    /// Returns whether some of what it computes is computed only where it is chosen.
    pub(crate) fn chooses(&self) -> bool {
        let all = std::iter::once(&self.interior).chain(&self.everywhere);
        all.flat_map(|trace| &trace.items).any(|item| matches!(item, Item::Before { .. }))
    }

    /// Returns whether indices along axes of a shape are found by division.
    pub(crate) fn unravels(&self, shape: ShapeId) -> bool {
        self.interior.indices.iter().any(|index| matches!(index, Index::Unravel(_, own, _) if *own == shape))
    }

    /// The nodes that are read from memory. Near the edges that can be more: without its rules a place may be
    /// one that was computed.
    pub(crate) fn reads(&self) -> Vec<Id> {
        let mut reads = self.interior.reads();
        let others = self.everywhere.iter().flat_map(Trace::reads).collect::<Vec<Id>>();
        reads.extend(others.into_iter().filter(|id| !reads.contains(id)).collect::<Vec<Id>>());
        let length = self.length.as_ref().map(|(length, _)| *length);
        reads.extend(length.filter(|length| !reads.contains(length)));
        reads
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

    /// Returns whether functions are called, of which nobody knows what calls at different places share.
    pub(crate) fn calls(&self, tape: &Tape) -> bool {
        let is_call = |node: Id| matches!(tape.entry(node).kind, Kind::Elementwise(Elementwise::Call(..)));
        self.interior.items.iter().any(|item| matches!(item, Item::Apply(node, _) if is_call(*node)))
    }

    /// The nodes that are computed, with how many places each.
    pub(crate) fn computed(&self) -> HashMap<Id, u64> {
        self.interior.computed()
    }

    /// The traces for the interior and, if that is another, for everywhere.
    pub(crate) fn traces(&self) -> impl Iterator<Item = &Trace<'k>> {
        std::iter::once(&self.interior).chain(&self.everywhere)
    }

    /// The reads that run along another axis than the last, and that axis, if all of them run along the same
    /// one and nothing is looked at near edges: what such a kernel reads row by row it would write column by
    /// column, or the other way round.
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

    /// Returns what has to hold for positions to be in the interior.
    pub(crate) fn conditions(&self) -> &[Condition] {
        &self.interior.conditions
    }
}
