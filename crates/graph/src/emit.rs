//! Scalar code for traces.
//!
//! A fused kernel is a function from the position of a thread to its results. Where boundary rules can be omitted in the interior, the
//! function has two halves: one for positions whose indices all lie inside, and one for the rest. The bounds of the interior are scalars
//! that the host computes.

mod index;
mod patch;
mod shared;

use self::index::own_axis;
pub use self::patch::Patch;
pub(crate) use self::patch::Priced;
use crate::bindings::Bindings;
use crate::elementwise::{Elementwise, emit};
use crate::error::{Error, Result};
use crate::hash::QuickMap;
use crate::limits::{MAX_PATCH, MAX_TRANSPOSED};
use crate::number::Number;
use crate::tape::{Id, Kind, Tape};
use crate::trace::{Condition, Index, IndexId, Item, Place, Side, Trace};
use broadloom_scalar::{Accessor, AccessorKind, Builder, Element, Function, Lanes, Literal, Shuffle, Type, Value};
use broadloom_skeleton::cost;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// The value of a scalar of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Given {
    /// A number, as an index.
    Number(Number),
    /// A lane of a slot of the values.
    Lane(u32, u8),
    /// The first position along an axis that is in the interior.
    First(u8, Arc<Vec<Condition>>),
    /// The position behind the last one.
    End(u8, Arc<Vec<Condition>>),
}

/// A function with what its inputs and scalars are.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(crate) function: Function,
    /// The nodes behind its accessors.
    pub(crate) inputs: Vec<Id>,
    pub(crate) scalars: Vec<Given>,
    /// Number of axes of its position.
    pub(crate) axes: usize,
    /// Cost of an element, in simple operations.
    pub(crate) cost: u64,
    /// Inputs that are read at the position itself only.
    pub(crate) aligned: Vec<bool>,
    /// True if boundaries are looked at only near the edges.
    pub(crate) interior: bool,
}

/// The interior along an axis: where all conditions on it hold.
pub fn interior(axis: u8, conditions: &[Condition], bindings: &Bindings) -> (i64, i64) {
    let (mut first, mut end) = (0i128, i128::from(i64::MAX));
    for condition in conditions.iter().filter(|condition| condition.axis == axis) {
        let [stride, offset, extent] =
            [&condition.stride, &condition.offset, &condition.extent].map(|number| i128::from(number.of(bindings)));
        let (least, most) = (&condition.others.0, &condition.others.1);
        let (least, most) = (offset + i128::from(least.of(bindings)), offset + i128::from(most.of(bindings)));
        // 0 <= least + stride * position, most + stride * position < extent
        let (low, high) = match stride {
            0 if least >= 0 && most < extent => continue,
            0 => (1, 0),
            1.. => (-(least.div_euclid(stride)), (extent - 1 - most).div_euclid(stride) + 1),
            _ => (-((extent - 1 - most).div_euclid(-stride)), least.div_euclid(-stride) + 1),
        };
        first = first.max(low);
        end = end.min(high);
    }
    if first >= end { (0, 0) } else { (first as i64, end as i64) }
}

/// Returns the bounds of the interior along axes under conditions.
pub(crate) fn bounds(axes: impl Iterator<Item = u8>, conditions: Vec<Condition>) -> Vec<Given> {
    let conditions = Arc::new(conditions);
    axes.flat_map(|axis| [Given::First(axis, conditions.clone()), Given::End(axis, conditions.clone())]).collect()
}

impl Given {
    /// Its value in a run, where indices have this type.
    pub(crate) fn literal(&self, index: Element, bindings: &Bindings) -> Literal {
        let held = |value: i64| match index {
            Element::I32 => Literal::from(value.clamp(0, i32::MAX.into()) as i32),
            _ => Literal::from(value),
        };
        match self {
            Given::Number(number) => Literal::from_i128(index, number.of(bindings).into()),
            Given::Lane(slot, lane) => bindings.values[*slot as usize][usize::from(*lane)],
            Given::First(axis, conditions) => held(interior(*axis, conditions, bindings).0),
            Given::End(axis, conditions) => held(interior(*axis, conditions, bindings).1),
        }
    }
}

struct Emitter<'t> {
    tape: &'t Tape,
    builder: Builder,
    index: Type,
    /// The type in which the parts of a place in memory are added.
    sum: Type,
    /// True if the executor runs threads side by side in vectors.
    vectors: bool,
    /// The axis along which threads side by side have positions, if it is known.
    along: Option<u8>,
    position: Vec<Value>,
    /// The values of the pattern in front.
    given: Vec<Value>,
    /// Items of a trace that it gives, by number.
    replaced: Vec<u32>,
    scalars: Vec<(Given, Value)>,
    inputs: Vec<(Id, Accessor)>,
    aligned: Vec<bool>,
    /// Lengths that were read, by the nodes that hold them.
    lengths: Vec<(Id, Value)>,
    /// Words that are written, among the inputs.
    traps: Vec<(Id, Accessor)>,
    /// Nodes that a chain reads at a row and a column.
    staged: &'t [bool],
    /// Columns that are read together.
    columns: u32,
    /// Inputs of which several columns are read together.
    wide: Vec<(Id, Accessor)>,
}

/// Offsets that are added to a place in memory last: less than what places are kept from the ends of 32 bits by.
const NEAR: i64 = 1 << 23;

/// The values of one trace.
struct Half<'e, 't, 'k> {
    emitter: &'e mut Emitter<'t>,
    trace: &'k Trace<'k>,
    values: Vec<Value>,
    indices: QuickMap<IndexId, Value>,
    calls: QuickMap<(Function, SmallVec<[u32; 3]>), Vec<Value>>,
    /// Groups of columns that were read together, by node, other indices and number.
    groups: QuickMap<(Id, SmallVec<[IndexId; 4]>, i64), Value>,
    line: bool,
}

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

/// Traces roots at rows and columns relative to the position of the thread. All roots of the first place come first.
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
    interior: Trace<'k>,
    everywhere: Option<Trace<'k>>,
    roots: Vec<u32>,
    roots_everywhere: Vec<u32>,
    rank: usize,
    line: bool,
    /// True if it is known that threads side by side have positions side by side along the last axis.
    pub(crate) along_last: bool,
    /// The node that holds the first extent of the domain, where only the device knows it, and how many positions there are for each of its
    /// elements: all others of a line, or one.
    pub(crate) length: Option<(Id, Number)>,
    /// The values that a pattern is given for positions beyond the length.
    pub(crate) absent: Option<Vec<Lanes>>,
    /// Words that are written where a condition is true. The conditions are the last roots.
    traps: Vec<Id>,
    /// Nodes that a chain reads at a row and a column.
    pub(crate) staged: &'k [bool],
}

impl<'k> Fused<'k> {
    /// The traces; `None` if they are too much for one kernel. `line` takes all elements as one line. What feeds a pattern is read where it
    /// is kept; what a kernel is there to compute is computed. Some nodes may be given at the position of the thread.
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

    /// Traces of nodes in a strip of rows that starts at the position of the thread; what rows share is there once, and what columns share comes from
    /// other lanes where `sliding` says so. The roots of the first row come first.
    pub(crate) fn strip(
        tape: &'k Tape,
        (kept, sliding): (&'k [bool], &'k [bool]),
        roots: Roots<'_>,
        rank: usize,
        rows: u32,
    ) -> Option<Fused<'k>> {
        Fused::patch(tape, (kept, sliding), roots, rank, (Patch { rows, ..Patch::SINGLE }, None), false)
    }

    /// Traces of nodes in a patch of rows and columns that starts at the position of the thread, row by row. `alone` has the trace of everywhere at one position;
    /// then there is one where patches have several columns. Nodes that are `windowed` come from the lanes that have their columns, if this is given.
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

    /// The traces that a function makes for the interior, and for everywhere if that is something else, or always.
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
    pub(crate) fn unravels(&self, shape: crate::tape::ShapeId) -> bool {
        self.interior.indices.iter().any(|index| matches!(index, Index::Unravel(_, own, _) if *own == shape))
    }

    /// The nodes that are read from memory. Near the edges that can be more: without its rules a place may be one that was computed.
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

    fn emitter<'t>(&self, tape: &'t Tape, name: &str, side_by_side: bool, values: &[Type]) -> Emitter<'t>
    where
        'k: 't,
    {
        let axes = if self.line { 1 } else { self.rank };
        let index = if tape.wide { Type::I64 } else { Type::I32 };
        let builder = Builder::function(name);
        builder.prefer(tape.precision);
        let position =
            (0..axes).map(|axis| builder.parameter(["i", "j", "k", "l", "m", "n", "o", "p"][axis % 8], index)).collect();
        let given = values.iter().map(|ty| builder.parameter("x", *ty)).collect();
        let sum = if side_by_side { Type::I64 } else { index };
        let replaced = vec![];
        let vectors = side_by_side;
        let (scalars, inputs, aligned) = (vec![], vec![], vec![]);
        let along = self.rank.checked_sub(1).filter(|_| self.along_last && !self.line).map(|last| last as u8);
        let (lengths, traps, staged) = (vec![], vec![], self.staged);
        let mut emitter = Emitter {
            tape,
            builder,
            index,
            sum,
            vectors,
            along,
            position,
            given,
            replaced,
            scalars,
            inputs,
            aligned,
            lengths,
            traps,
            staged,
            columns: 1,
            wide: vec![],
        };
        let own = self.length.iter().filter(|_| self.absent.is_some()).map(|(length, _)| length);
        let traces = std::iter::once(&self.interior).chain(&self.everywhere);
        traces.flat_map(|trace| &trace.lengths).chain(own).for_each(|length| emitter.read_length(*length));
        emitter
    }

    /// The reads that run along another axis than the last, and that axis, if all of them run along the same one and nothing is looked at near edges: what such a kernel reads
    /// row by row it would write column by column, or the other way round.
    pub(crate) fn transposed(&self, tape: &Tape) -> Option<(u8, Vec<u32>)> {
        let last = self.rank.checked_sub(1).filter(|last| *last > 0 && !self.line)?;
        if self.everywhere.is_some() || self.interior.items.iter().any(|item| matches!(item, Item::Before { .. })) {
            return None;
        }
        let (mut along, mut found) = (None, vec![]);
        for (number, item) in self.interior.items.iter().enumerate() {
            let Item::Read { node, place: Place::At(indices) } = item else { continue };
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

    /// Returns the reads along an axis, as a function of positions with that axis and the last one exchanged, and the function that takes the values read.
    pub(crate) fn code_transposed(self, tape: &Tape, side_by_side: bool, axis: u8, reads: Vec<u32>) -> Result<[Code; 2]> {
        let mut emitter = self.emitter(tape, "rows", side_by_side, &[]);
        emitter.position.swap(usize::from(axis), self.rank - 1);
        let (trace, line) = (&self.interior, false);
        let mut half = Half::new(&mut emitter, trace, line);
        let mut results = vec![];
        for read in &reads {
            if let Item::Read { node, place } = &trace.items[*read as usize] {
                let (_, accessor) = half.emitter.input(*node);
                let at = half.linear(*node, place);
                results.push(half.emitter.builder.read(accessor, &[at.into()]));
            }
        }
        let types: Vec<Type> = results.iter().map(|value| emitter.builder.type_of(*value)).collect();
        let rows = emitter.code(&results, self.rank, 0, false)?;
        Ok([rows, self.code_replacing(tape, "fused", side_by_side, &types, reads)?])
    }

    /// Returns the functions of a strip, that of the interior and that near edges if it is another, and the bounds of the interior along all axes.
    pub(crate) fn strip_codes(self, tape: &Tape, side_by_side: bool) -> Result<(Vec<Code>, Vec<Given>)> {
        let bounds = bounds(0..self.rank as u8, self.interior.conditions.clone());
        Ok((self.patch_codes(tape, side_by_side, 1, ["inner", "edge"])?, bounds))
    }

    /// Returns the functions of patches with so many columns, as [`Fused::strip_codes`] gives them. Several columns are read together in the interior, where that is
    /// possible.
    pub(crate) fn patch_codes(self, tape: &Tape, side_by_side: bool, columns: u32, names: [&str; 2]) -> Result<Vec<Code>> {
        let edge = self.everywhere.as_ref().map(|trace| (trace, &self.roots_everywhere));
        let halves = std::iter::once((&self.interior, &self.roots, names[0], columns))
            .chain(edge.map(|(trace, roots)| (trace, roots, names[1], 1)));
        let mut codes = vec![];
        for (trace, roots, name, columns) in halves {
            let mut emitter = self.emitter(tape, name, side_by_side, &[]);
            emitter.columns = columns;
            let results = emitter.half(trace, roots, &[], false)?;
            // A strip reads what another one may have written.
            emitter.aligned.iter_mut().for_each(|aligned| *aligned = false);
            let cost = if codes.is_empty() { trace.cost } else { 0 };
            codes.push(emitter.code(&results, self.rank, cost, self.everywhere.is_some())?);
        }
        Ok(codes)
    }

    /// Returns what has to hold for positions to be in the interior.
    pub(crate) fn conditions(&self) -> &[Condition] {
        &self.interior.conditions
    }

    /// The function of the interior alone, and what has to hold for a position to lie in it; `None` where all do anyway.
    pub(crate) fn inner_code(&self, tape: &Tape, side_by_side: bool) -> Result<Option<(Code, Arc<Vec<Condition>>)>> {
        if self.everywhere.is_none() {
            return Ok(None);
        }
        let mut emitter = self.emitter(tape, "inner", side_by_side, &[]);
        let results = emitter.half(&self.interior, &self.roots, &self.traps, self.line)?;
        let axes = if self.line { 1 } else { self.rank };
        let code = emitter.code(&results, axes, self.interior.cost, false)?;
        Ok(Some((code, Arc::new(self.interior.conditions.clone()))))
    }

    /// The function, which takes values of these types behind the position.
    /// `side_by_side` adds up places in memory so that an executor of vectors can see that neighbouring threads stay neighbours.
    pub(crate) fn code(self, tape: &Tape, name: &str, side_by_side: bool, values: &[Type]) -> Result<Code> {
        self.code_replacing(tape, name, side_by_side, values, vec![])
    }

    /// Emits code in which the values stand for these items.
    fn code_replacing(self, tape: &Tape, name: &str, side_by_side: bool, values: &[Type], replaced: Vec<u32>) -> Result<Code> {
        let axes = if self.line { 1 } else { self.rank };
        let mut emitter = Emitter { replaced, ..self.emitter(tape, name, side_by_side, values) };
        let results = match &self.absent {
            None => emitter.results(&self)?,
            Some(absent) => emitter.present(&self, absent)?,
        };
        emitter.code(&results, axes, self.interior.cost, self.everywhere.is_some())
    }
}

impl Emitter<'_> {
    fn code(self, results: &[Value], axes: usize, cost: u64, interior: bool) -> Result<Code> {
        Ok(Code {
            function: self.builder.finish_function(results)?,
            inputs: self.inputs.iter().map(|(id, _)| *id).collect(),
            scalars: self.scalars.into_iter().map(|(given, _)| given).collect(),
            axes,
            cost,
            aligned: self.aligned,
            interior,
        })
    }

    /// Reads a length, before any branch.
    fn read_length(&mut self, length: Id) {
        if self.lengths.iter().any(|(known, _)| *known == length) {
            return;
        }
        let (input, accessor) = self.input(length);
        self.aligned[input] = false;
        let zero = self.builder.literal(Literal::zero(self.index.element()));
        let value = self.builder.read(accessor, &[zero.into()]);
        let value = self.builder.convert(value, self.index);
        self.lengths.push((length, value));
    }

    fn results(&mut self, fused: &Fused<'_>) -> Result<Vec<Value>> {
        match &fused.everywhere {
            None => self.half(&fused.interior, &fused.roots, &fused.traps, fused.line),
            Some(everywhere) => self.halves(fused, everywhere),
        }
    }

    /// The results at positions that are within the length, and what stands for them elsewhere, where nothing is computed.
    fn present(&mut self, fused: &Fused<'_>, absent: &[Lanes]) -> Result<Vec<Value>> {
        let Some((length, each)) = &fused.length else { return self.results(fused) };
        let limit = self.number(&Number::product(&Number::Length(*length), each));
        let position = self.position[0];
        self.builder.begin_if(self.builder.lt(position, limit));
        let results = self.results(fused)?;
        let variables: Vec<_> = results.iter().map(|value| self.builder.variable(self.builder.type_of(*value))).collect();
        variables.iter().zip(&results).for_each(|(variable, value)| self.builder.set(*variable, *value));
        self.builder.begin_else();
        for (variable, lanes) in variables.iter().zip(absent) {
            let lanes: Vec<Value> = lanes.iter().map(|lane| self.builder.literal(*lane)).collect();
            self.builder.set(*variable, self.builder.vector(&lanes));
        }
        self.builder.end_if();
        Ok(variables.iter().map(|variable| self.builder.get(*variable)).collect())
    }

    /// The values of roots. The last of them are the conditions of traps.
    fn half(&mut self, trace: &Trace<'_>, roots: &[u32], traps: &[Id], line: bool) -> Result<Vec<Value>> {
        let mut half = Half::new(self, trace, line);
        half.items(roots)?;
        let mut values: Vec<Value> = roots.iter().map(|root| half.values[*root as usize]).collect();
        let conditions = values.split_off(roots.len() - traps.len());
        traps.iter().zip(conditions).for_each(|(word, condition)| self.trap(*word, condition));
        Ok(values)
    }

    /// Writes a word where a condition is true.
    fn trap(&mut self, word: Id, condition: Value) {
        let accessor = match self.traps.iter().find(|(known, _)| *known == word) {
            Some((_, accessor)) => *accessor,
            None => {
                let accessor = self.builder.accessor("trap", AccessorKind::Output, self.tape.entry(word).ty, 1);
                self.traps.push((word, accessor));
                self.inputs.push((word, accessor));
                self.aligned.push(false);
                accessor
            }
        };
        let b = &self.builder;
        b.begin_if(condition);
        let first = b.literal(Literal::zero(self.index.element()));
        b.write(accessor, &[first.into()], b.literal(1u32));
        b.end_if();
    }

    fn halves(&mut self, fused: &Fused<'_>, everywhere: &Trace<'_>) -> Result<Vec<Value>> {
        let conditions = Arc::new(fused.interior.conditions.clone());
        let mut inside: Option<Value> = None;
        for axis in 0..self.position.len() {
            if !conditions.iter().any(|condition| usize::from(condition.axis) == axis) {
                continue;
            }
            let first = self.scalar(Given::First(axis as u8, conditions.clone()), self.index);
            let end = self.scalar(Given::End(axis as u8, conditions.clone()), self.index);
            let b = &self.builder;
            let both = b.and(b.ge(self.position[axis], first), b.lt(self.position[axis], end));
            inside = Some(inside.map_or(both, |inside| b.and(inside, both)));
        }
        let inside = inside.unwrap_or_else(|| self.builder.literal(true));
        self.builder.begin_if(inside);
        let results = self.half(&fused.interior, &fused.roots, &fused.traps, fused.line)?;
        let variables: Vec<_> = results.iter().map(|value| self.builder.variable(self.builder.type_of(*value))).collect();
        variables.iter().zip(&results).for_each(|(variable, value)| self.builder.set(*variable, *value));
        self.builder.begin_else();
        let results = self.half(everywhere, &fused.roots_everywhere, &fused.traps, fused.line)?;
        variables.iter().zip(&results).for_each(|(variable, value)| self.builder.set(*variable, *value));
        self.builder.end_if();
        Ok(variables.iter().map(|variable| self.builder.get(*variable)).collect())
    }

    fn scalar(&mut self, given: Given, ty: Type) -> Value {
        if let Some((_, value)) = self.scalars.iter().find(|(known, _)| *known == given) {
            return *value;
        }
        let value = self.builder.parameter("s", ty);
        self.scalars.push((given, value));
        value
    }

    fn number(&mut self, number: &Number) -> Value {
        match number {
            Number::Known(value) => self.builder.literal(Literal::from_i128(self.index.element(), (*value).into())),
            Number::Length(length) => match self.lengths.iter().find(|(known, _)| known == length) {
                Some((_, value)) => *value,
                None => self.builder.fail("a length that was not read"),
            },
            Number::Sum(pair) if number.is_on_device() => {
                let (a, b) = (self.number(&pair.0), self.number(&pair.1));
                self.builder.add(a, b)
            }
            Number::Product(pair) if number.is_on_device() => {
                let (a, b) = (self.number(&pair.0), self.number(&pair.1));
                self.builder.mul(a, b)
            }
            other => self.scalar(Given::Number(other.clone()), self.index),
        }
    }

    fn is_staged(&self, node: Id) -> bool {
        self.staged.get(node as usize).copied().unwrap_or(false)
    }

    fn input(&mut self, node: Id) -> (usize, Accessor) {
        let is_read = |id: Id, accessor: Accessor| {
            id == node && !self.traps.contains(&(id, accessor)) && !self.wide.contains(&(id, accessor))
        };
        if let Some(known) = self.inputs.iter().position(|(id, accessor)| is_read(*id, *accessor)) {
            return (known, self.inputs[known].1);
        }
        let rank = if self.is_staged(node) { 3 } else { 1 };
        let accessor = self.builder.accessor("x", AccessorKind::Input, self.tape.entry(node).ty, rank);
        self.inputs.push((node, accessor));
        self.aligned.push(true);
        (self.inputs.len() - 1, accessor)
    }

    /// An input that is read in groups of columns.
    fn wide_input(&mut self, node: Id) -> Accessor {
        if let Some((_, known)) = self.wide.iter().find(|(id, _)| *id == node) {
            return *known;
        }
        let ty = self.tape.entry(node).ty;
        let ty = Type::vector(ty.element(), self.columns as usize).unwrap_or(ty);
        let accessor = self.builder.accessor("x", AccessorKind::Input, ty, 1);
        self.inputs.push((node, accessor));
        self.aligned.push(false);
        self.wide.push((node, accessor));
        accessor
    }

    /// `base * stride + offset`, left out where that changes nothing.
    fn affine(&mut self, base: Value, stride: &Number, offset: &Number) -> Value {
        let scaled = match stride {
            Number::Known(0) => return self.number(offset),
            Number::Known(1) => base,
            Number::Known(-1) => {
                let offset = self.number(offset);
                return self.builder.sub(offset, base);
            }
            stride => {
                let stride = self.number(stride);
                self.builder.mul(base, stride)
            }
        };
        match offset {
            Number::Known(0) => scaled,
            offset => {
                let offset = self.number(offset);
                self.builder.add(scaled, offset)
            }
        }
    }

    /// A type for numbers that may need more than 32 bits.
    fn wide(&self) -> Type {
        if self.vectors { Type::F64 } else { Type::I64 }
    }

    /// A number modulo another that is positive. Vector units divide no integers: for them numbers of 32 bits are divided as floats, which hold them exactly.
    fn modulo(&self, value: Value, by: Value) -> Value {
        let b = &self.builder;
        let ty = b.type_of(value);
        match ty {
            Type::I32 if self.vectors => b.convert(self.modulo(b.convert(value, Type::F64), b.convert(by, Type::F64)), ty),
            Type::F64 => b.sub(value, b.mul(b.floor(b.div(value, by)), by)),
            _ => {
                let rest = b.rem(value, by);
                if ty.element().is_signed() { b.select(b.lt(rest, 0), b.add(rest, by), rest) } else { rest }
            }
        }
    }

    fn fill(&mut self, slot: u32, ty: Type) -> Value {
        if let Some((_, literal)) = self.tape.literals.iter().find(|(own, _)| *own == slot) {
            return self.builder.literal(*literal);
        }
        let lanes: Vec<Value> =
            (0..ty.lanes()).map(|lane| self.scalar(Given::Lane(slot, lane as u8), Type::of(ty.element()))).collect();
        self.builder.vector(&lanes)
    }
}

impl<'e, 't, 'k> Half<'e, 't, 'k> {
    fn new(emitter: &'e mut Emitter<'t>, trace: &'k Trace<'k>, line: bool) -> Half<'e, 't, 'k> {
        // What is not computed yet is looked at by nobody.
        let nothing = emitter.builder.literal(false);
        let values = vec![nothing; trace.items.len()];
        Half {
            emitter,
            trace,
            values,
            indices: QuickMap::default(),
            calls: QuickMap::default(),
            groups: QuickMap::default(),
            line,
        }
    }
}

impl Half<'_, '_, '_> {
    /// All items that are needed, each as far out as it is.
    fn items(&mut self, roots: &[u32]) -> Result<()> {
        // The type of an item that is a fill or a position is that of the node that it stands for.
        let types = self.trace.types();
        let mut scopes: HashMap<Vec<Side>, Vec<usize>> = HashMap::new();
        for (number, side) in self.trace.sides(roots).into_iter().enumerate() {
            if let Some(side) = side {
                scopes.entry(side).or_default().push(number);
            }
        }
        self.scope(&[], &scopes, &types)
    }

    /// The items of one side of a choice, or of none.
    fn scope(&mut self, side: &[Side], scopes: &HashMap<Vec<Side>, Vec<usize>>, types: &[Type]) -> Result<()> {
        let Some(own) = scopes.get(side) else { return Ok(()) };
        for number in own {
            let value = match &self.trace.items[*number] {
                Item::Before { index, limit, first, second } => {
                    let (index, limit) = (self.index(*index), self.emitter.number(limit));
                    let b = &self.emitter.builder;
                    let result = b.variable(types[*number]);
                    b.begin_if(b.lt(index, limit));
                    self.branch(side, (*number as u32, true), scopes, types)?;
                    self.emitter.builder.set(result, self.values[*first as usize]);
                    self.emitter.builder.begin_else();
                    self.branch(side, (*number as u32, false), scopes, types)?;
                    self.emitter.builder.set(result, self.values[*second as usize]);
                    self.emitter.builder.end_if();
                    self.emitter.builder.get(result)
                }
                item => self.item(*number, item, types)?,
            };
            self.values[*number] = value;
        }
        Ok(())
    }

    /// A side of a choice; what is computed there is not known outside.
    fn branch(&mut self, outside: &[Side], side: Side, scopes: &HashMap<Vec<Side>, Vec<usize>>, types: &[Type]) -> Result<()> {
        let (indices, calls) = (self.indices.clone(), self.calls.clone());
        let side: Vec<Side> = outside.iter().copied().chain([side]).collect();
        self.scope(&side, scopes, types)?;
        (self.indices, self.calls) = (indices, calls);
        Ok(())
    }

    fn item(&mut self, number: usize, item: &Item, types: &[Type]) -> Result<Value> {
        if let Some(given) = self.emitter.replaced.iter().position(|replaced| *replaced as usize == number) {
            return Ok(self.emitter.given[given]);
        }
        let trace = self.trace;
        Ok(match item {
            Item::Fill(slot) => self.emitter.fill(*slot, types[number]),
            Item::Position(index) => {
                let value = self.index(*index);
                self.emitter.builder.convert(value, types[number].element())
            }
            Item::Read { node, place } => {
                if let Some((group, lane)) = trace.column_group(*node, place, self.emitter.columns)
                    && let Place::At(indices) = place
                {
                    return Ok(self.wide(*node, indices, group, lane));
                }
                let (input, accessor) = self.emitter.input(*node);
                if let Place::At(indices) = place
                    && self.emitter.is_staged(*node)
                {
                    return Ok(self.staged(accessor, indices));
                }
                let aligned = match place {
                    Place::Number(index) => self.line && trace.indices[*index as usize] == own_axis(0),
                    Place::At(indices) => {
                        indices.len() == self.emitter.position.len()
                            && indices.iter().enumerate().all(|(a, index)| trace.indices[*index as usize] == own_axis(a))
                    }
                };
                self.emitter.aligned[input] &= aligned;
                let index = self.linear(*node, place);
                let extents = trace.device_extents(place);
                self.read_of_some(&extents, types[number], |b| b.read(accessor, &[index.into()]))
            }
            Item::Apply(node, inputs) => self.apply(*node, inputs)?,
            Item::Guard { inside, item, fill } => {
                let mut all: Option<Value> = None;
                for (index, extent) in inside {
                    let one = self.inside(*index, extent);
                    all = Some(all.map_or(one, |all| self.emitter.builder.and(all, one)));
                }
                let fill = self.emitter.fill(*fill, types[number]);
                let value = self.values[*item as usize];
                match all {
                    Some(all) => self.emitter.builder.select(all, value, fill),
                    None => value,
                }
            }
            Item::Given(value, _) => match self.emitter.given.get(usize::from(*value)) {
                Some(value) => self.emitter.builder.convert(*value, types[number].element()),
                None => self.emitter.builder.fail("a value that nothing gives"),
            },
            Item::Shift { item, by } => {
                let (kind, lanes) = if *by < 0 { (Shuffle::Up, -by) } else { (Shuffle::Down, *by) };
                self.emitter.builder.shuffle(kind, self.values[*item as usize], lanes)
            }
            // Only where it is chosen what is computed, see `scope`.
            Item::Before { .. } => self.emitter.builder.fail("a choice"),
        })
    }

    /// A value that is read where no extent is 0, else zero: an index that is held to an extent is 0 in an array without elements.
    fn read_of_some(&mut self, extents: &[Number], ty: Type, read: impl FnOnce(&Builder) -> Value) -> Value {
        let mut has_any: Option<Value> = None;
        for extent in extents {
            let extent = self.emitter.number(extent);
            let one = self.emitter.builder.ne(extent, 0);
            has_any = Some(has_any.map_or(one, |all| self.emitter.builder.and(all, one)));
        }
        let b = &self.emitter.builder;
        let Some(has_any) = has_any else { return read(b) };
        let result = b.variable(ty);
        b.begin_if(has_any);
        b.set(result, read(b));
        b.end_if();
        b.get(result)
    }

    fn apply(&mut self, node: Id, inputs: &SmallVec<[u32; 3]>) -> Result<Value> {
        let Kind::Elementwise(op) = &self.emitter.tape.entry(node).kind else {
            return Err(Error::Plan { what: "a kernel".into(), reason: format!("node {node} is no operation on elements") });
        };
        let values: SmallVec<[Value; 4]> = inputs.iter().map(|input| self.values[*input as usize]).collect();
        let Elementwise::Call(function, result) = op else { return Ok(emit(&self.emitter.builder, op, &values)) };
        // One call gives all results.
        let builder = &self.emitter.builder;
        let results =
            self.calls.entry((function.clone(), inputs.clone())).or_insert_with(|| builder.inline(function, &values, &mut []));
        Ok(results.get(usize::from(*result)).copied().unwrap_or_else(|| builder.fail("a function without that result")))
    }
}
