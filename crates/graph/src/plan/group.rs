//! Groups: the nodes that one kernel computes, and the functions that feed it.

use crate::emit::fused::{FusedTraces, Roots};
use crate::expr::op::zeros;
use crate::expr::operation::{Operation, OperationResult, SharedKernel};
use crate::limits::{MAX_COMBINED, MAX_FUSED};
use crate::tape::entries::{Id, ShapeId, Tape};
use broadloom_scalar::{Lanes, Type};
use broadloom_skeleton::{Reach, cost};
use smallvec::SmallVec;

/// Kind of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GroupKind {
    /// Function of every position.
    Map,
    /// Operation that combines elements of several positions.
    Pattern,
    /// Function of every position that reads along this axis and writes along the last.
    Transpose(u8),
    /// Functions of every position that read each other's values in shared memory.
    Chain,
    /// Reductions along the last axis, and functions of every position that use their results.
    Rows,
}

/// Nodes that one kernel computes.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) kind: GroupKind,
    /// The nodes that the kernel writes.
    pub(crate) roots: Vec<Id>,
    /// The nodes that the pattern produces, written or not; empty for a map.
    pub(crate) combined: Vec<Id>,
    /// The functions that feed the kernel, each with the nodes that it computes at a position: the roots, or
    /// their operands.
    pub(crate) feeds: Vec<GroupFeed>,
    /// The shape of the domain.
    pub(crate) domain: ShapeId,
    /// True if the domain is treated as one-dimensional.
    pub(crate) line: bool,
    /// The nodes that the kernel reads from memory.
    pub(crate) reads: Vec<Id>,
    /// The traps that the kernel tests.
    pub(crate) traps: Vec<Id>,
    /// The kernels of a chain, or the stages of rows.
    pub(crate) links: Vec<Link>,
}

/// Values that one function of a kernel computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupFeed {
    pub(crate) nodes: SmallVec<[Id; 2]>,
    /// True if the domain may be treated as one-dimensional.
    pub(crate) line: bool,
    /// True if all applications that share a pass have it in common.
    pub(crate) common: bool,
    /// The values that a pattern receives beyond a length that only the device knows.
    pub(crate) absent: Option<Vec<Lanes>>,
    /// Traps whose conditions the function tests.
    pub(crate) traps: SmallVec<[Id; 1]>,
    /// Nodes whose values at the position the pattern passes to the function.
    pub(crate) given: SmallVec<[Id; 1]>,
}

/// Function of a kernel.
pub(crate) struct GroupFunction<'k> {
    pub(crate) fused: FusedTraces<'k>,
    /// The shape of its domain.
    pub(crate) shape: ShapeId,
    /// True if the domain is treated as one-dimensional.
    pub(crate) line: bool,
}

/// Returns the nodes that all parts read from memory.
pub(crate) fn reads_of(parts: &[GroupFunction<'_>]) -> Vec<Id> {
    let mut reads: Vec<Id> = parts.iter().flat_map(|part| part.fused.reads()).collect();
    reads.sort_unstable();
    reads.dedup();
    reads
}

/// Returns the estimated number of emitted operations of all parts.
pub(crate) fn size_of(parts: &[GroupFunction<'_>]) -> u64 {
    parts.iter().map(|part| part.fused.size()).sum()
}

/// Kernel within a chain.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// The map.
    pub(crate) group: Group,
    /// For each of its nodes: true if later links of a chain read it.
    pub(crate) staged: Vec<bool>,
    /// For each of its nodes: true if it is written to memory.
    pub(crate) stored: Vec<bool>,
    /// Windows in which the kernel reads earlier links.
    pub(crate) reaches: Vec<Reach>,
    /// Nodes in memory, of the domain's shape, that the kernel reads in a window.
    pub(crate) near: Vec<Id>,
    /// Cost of one position, in simple operations.
    pub(crate) cost: u64,
    /// Number of computed positions per position of the domain, in hundredths.
    pub(crate) growth: u64,
}

impl Link {
    /// Returns the cost per position of the domain, in simple operations.
    pub(crate) fn work(&self) -> u64 {
        let kept = self.staged.iter().filter(|staged| **staged).count() as u64;
        (self.cost + kept * cost::STAGED_VALUE) * self.growth / 100
    }
}

impl GroupFeed {
    /// Creates a feed for nodes. `line`: the domain may be treated as one-dimensional.
    fn of(nodes: SmallVec<[Id; 2]>, line: bool) -> GroupFeed {
        GroupFeed { nodes, line, common: false, absent: None, traps: SmallVec::new(), given: SmallVec::new() }
    }
}

impl Group {
    /// Returns the maximum number of emitted operations of the group.
    pub(crate) fn most_operations(&self) -> u64 {
        if self.kind == GroupKind::Map { MAX_FUSED } else { MAX_COMBINED }
    }

    /// Creates the kernel of one node.
    pub(crate) fn of(tape: &Tape, id: Id) -> Group {
        if tape.is_trap(id) {
            return Group::of_trap(tape, id);
        }
        let entry = tape.entry(id);
        let (kind, combined, feeds) = match tape.applied(id) {
            None => (GroupKind::Map, vec![], vec![GroupFeed::of(SmallVec::from_slice(&[id]), true)]),
            Some(applied) => {
                let application = tape.application(id);
                let feeds = applied.operation().feeds(&application).into_iter().map(|feed| {
                    let nodes: SmallVec<[Id; 2]> = feed.inputs.iter().map(|input| entry.inputs[*input]).collect();
                    let absent = nodes.first().and_then(|node| tape.length(*node)).and_then(|_| {
                        let absent = applied.operation().absent(&application.types);
                        feed.inputs.iter().map(|input| absent.get(*input).cloned().flatten()).collect()
                    });
                    GroupFeed { common: feed.common, absent, ..GroupFeed::of(nodes, feed.line) }
                });
                (GroupKind::Pattern, vec![id], feeds.collect())
            }
        };
        Group {
            kind,
            roots: vec![id],
            combined,
            feeds,
            domain: entry.shape,
            line: false,
            reads: vec![],
            traps: vec![],
            links: vec![],
        }
    }

    /// Creates the kernel of a trap alone.
    fn of_trap(tape: &Tape, id: Id) -> Group {
        let domain = tape.entry(tape.entry(id).inputs[0]).shape;
        let feed = GroupFeed { traps: SmallVec::from_slice(&[id]), ..GroupFeed::of(SmallVec::new(), true) };
        let (kind, roots, combined, reads) = (GroupKind::Map, vec![], vec![], vec![]);
        Group { kind, roots, combined, feeds: vec![feed], domain, line: true, reads, traps: vec![id], links: vec![] }
    }

    /// Returns the nodes that are in memory after the kernel.
    pub(crate) fn made(&self) -> impl Iterator<Item = Id> {
        self.roots.iter().chain(&self.traps).copied()
    }

    /// Returns whether its first function is called at every position of a shape.
    pub(crate) fn visits_all(&self, tape: &Tape, shape: ShapeId) -> bool {
        let Some(feed) = self.feeds.first() else { return false };
        let condition = feed.traps.first().map(|trap| tape.entry(*trap).inputs[0]);
        let is_there = feed.nodes.first().copied().or(condition).is_some_and(|node| tape.entry(node).shape == shape);
        is_there && (self.kind == GroupKind::Map || self.operation(tape).is_some_and(|operation| operation.visits_all()))
    }

    /// Returns the operation of its pattern, if it has one; the first if several share a pass.
    pub(crate) fn operation<'t>(&self, tape: &'t Tape) -> Option<&'t dyn Operation> {
        self.combined.first().and_then(|id| tape.applied(*id)).map(OperationResult::operation)
    }

    /// Returns whether it produces all results of one application.
    pub(crate) fn gives_results(&self, tape: &Tape) -> bool {
        self.operation(tape).is_some_and(|operation| operation.joining() == SharedKernel::Results)
    }

    /// Returns whether the kernel of one node can become part of another kernel over the same domain.
    pub(crate) fn joins(&self, other: &Group, tape: &Tape) -> bool {
        if self.kind != other.kind || !self.traps.is_empty() || !other.traps.is_empty() {
            return false;
        }
        let applied = |group: &Group| group.combined.first().and_then(|id| tape.applied(*id));
        match (applied(self), applied(other)) {
            (None, None) => self.kind == GroupKind::Map,
            (Some(own), Some(others)) => match own.operation().joining() {
                SharedKernel::Alone => false,
                pass @ SharedKernel::Pass(..) => {
                    let in_common = |(own, other): (&GroupFeed, &GroupFeed)| !own.common || own == other;
                    pass == others.operation().joining() && self.feeds.iter().zip(&other.feeds).all(in_common)
                }
                SharedKernel::Results => {
                    // A pattern that stores its results stores each once.
                    let is_there = |root: &Id| tape.applied(*root).map(OperationResult::result) == Some(own.result());
                    let is_taken = self.values(tape).is_empty() && other.roots.iter().any(is_there);
                    own.is_same_operation(others) && self.feeds == other.feeds && !is_taken
                }
            },
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    /// Returns the axes that it reduces, if it is a reduction.
    pub(crate) fn reduced<'t>(&self, tape: &'t Tape) -> Option<&'t [u8]> {
        self.operation(tape).and_then(|operation| operation.reduced())
    }

    /// Returns whether it produces its results position by position, so that work on them can follow in its
    /// kernel.
    pub(crate) fn takes_tail(&self, tape: &Tape) -> bool {
        self.kind == GroupKind::Pattern && !self.values(tape).is_empty()
    }

    /// Returns the nodes of the applications of the pattern, one for each.
    pub(crate) fn applications(&self, tape: &Tape) -> &[Id] {
        if self.gives_results(tape) { &self.combined[..1] } else { &self.combined }
    }

    /// Returns the types of the values that the pattern produces at a position.
    pub(crate) fn values(&self, tape: &Tape) -> Vec<Type> {
        let values = |id: &Id| tape.applied(*id).map(|applied| applied.operation().values(&tape.application(*id)));
        self.applications(tape).iter().filter_map(values).flatten().collect()
    }

    /// Returns the nodes that the pattern produces, each with the index of its value.
    pub(crate) fn given(&self, tape: &Tape) -> Vec<(Id, u8)> {
        let is_one = self.gives_results(tape);
        let (mut before, mut given) = (0, vec![]);
        for id in &self.combined {
            let Some(applied) = tape.applied(*id) else { continue };
            let (operation, application) = (applied.operation(), tape.application(*id));
            given.push((*id, (before + operation.value(&application, applied.result())) as u8));
            if !is_one {
                before += operation.values(&application).len();
            }
        }
        given
    }

    /// Returns whether the written nodes are exactly the values of the pattern, in order.
    pub(crate) fn is_stored(&self, tape: &Tape) -> bool {
        let values = self.values(tape);
        let given = self.given(tape);
        values.is_empty()
            || self.roots == self.combined
                && values.len() == given.len()
                && given
                    .iter()
                    .zip(&values)
                    .enumerate()
                    .all(|(number, ((id, value), ty))| usize::from(*value) == number && tape.entry(*id).ty == *ty)
    }

    /// Returns the work on the values of a pattern before they are written; `None` if it is too much for one
    /// kernel.
    pub(crate) fn tail<'k>(&self, tape: &'k Tape, kept: &'k [bool]) -> Option<FusedTraces<'k>> {
        let first = *self.combined.first()?;
        let (roots, rank) = (Roots::Compute(&self.roots), tape.rank(first));
        let mut fused = FusedTraces::trace_behind(tape, kept, roots, rank, false, &self.given(tape))?;
        if tape.length(first).is_some() {
            // Nothing is computed from elements beyond a length.
            let nothing = |root: &Id| zeros(tape.entry(*root).ty);
            fused.absent = Some(self.roots.iter().map(nothing).collect());
        }
        Some(fused)
    }

    /// Returns the traces of the functions that feed its kernel.
    pub(crate) fn traced<'k>(&self, tape: &'k Tape, kept: &'k [bool]) -> Option<Vec<GroupFunction<'k>>> {
        let part = |feed: &GroupFeed| {
            let (mut fused, shape, line) = traced(tape, kept, self.roots_of(feed), &feed.traps, &feed.given, feed.line)?;
            fused.absent.clone_from(&feed.absent);
            Some(GroupFunction { fused, shape, line })
        };
        self.feeds.iter().map(part).collect()
    }

    /// Returns the nodes of a function. A map computes them; a pattern reads those that are kept.
    pub(crate) fn roots_of<'f>(&self, feed: &'f GroupFeed) -> Roots<'f> {
        match self.kind {
            GroupKind::Map | GroupKind::Transpose(_) | GroupKind::Chain | GroupKind::Rows => Roots::Compute(&feed.nodes),
            GroupKind::Pattern => Roots::Feed(&feed.nodes),
        }
    }
}

/// Returns the traces of some nodes of one shape. They are one-dimensional if possible, and if no index along
/// an axis is needed. Maps over rows whose number only the device knows keep their axes: their kernels
/// compare that number with an index along the first axis.
pub(crate) fn traced<'k>(
    tape: &'k Tape,
    kept: &'k [bool],
    roots: Roots<'_>,
    traps: &[Id],
    given: &[Id],
    line: bool,
) -> Option<(FusedTraces<'k>, ShapeId, bool)> {
    let first = roots.ids().first().copied().or_else(|| traps.first().map(|trap| tape.entry(*trap).inputs[0]))?;
    let (domain, rank) = (tape.entry(first).shape, tape.rank(first));
    let counts_rows = matches!(roots, Roots::Compute(_)) && rank > 1 && tape.length(first).is_some();
    if line && !counts_rows || rank == 0 {
        let fused = FusedTraces::trace(tape, kept, roots, traps, given, rank, true)?;
        if rank <= 1 || !fused.unravels(domain) {
            return Some((fused, domain, true));
        }
    }
    Some((FusedTraces::trace(tape, kept, roots, traps, given, rank, false)?, domain, false))
}
