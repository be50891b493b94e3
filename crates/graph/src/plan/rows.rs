//! Rows that stay: reductions along the last axis that are joined with the kernels that use their results at
//! positions of the same row.
//!
//! The kernels of one domain that read each other's values of a row become the stages of one kernel
//! ([`broadloom_skeleton::Rows`]). Elements that several stages use are held: arrays that they read at the
//! position itself, and the most expensive function that they share. The row is read once and written once.

use crate::emit::fused::{FusedTraces, Roots};
use crate::emit::trace::{ElementIndex, Index, Item, Trace};
use crate::limits::{MAX_BUFFERS, MAX_COMBINED, MAX_RESULTS};
use crate::plan::chain::{leaves, sorted};
use crate::plan::cut::Cut;
use crate::plan::group::{Group, GroupKind, Link};
use crate::plan::pattern::combination;
use crate::tape::bindings::Bindings;
use crate::tape::entries::{Id, Kind, ShapeId, Tape};
use crate::tape::number::Number;
use broadloom_device::Machine;
use broadloom_skeleton::RowValue;
use broadloom_skeleton::cost::{self, Costs};
use std::collections::{HashMap, HashSet};

/// A stage of a kernel of rows.
pub(crate) struct RowStageTrace<'k> {
    /// The function of a position.
    pub(crate) fused: FusedTraces<'k>,
    /// The nodes that it is given, with their places among the stages.
    pub(crate) given: Vec<(Id, RowValue)>,
    /// True if it is a function of a row.
    pub(crate) is_row: bool,
    /// The reduction whose values it computes; `None` for a function of every position or row.
    pub(crate) reduction: Option<RowReduction<'k>>,
    /// The results, each with a flag that is true if it is stored.
    pub(crate) results: Vec<(Id, bool)>,
}

/// A reduction along rows.
pub(crate) struct RowReduction<'k> {
    /// Its kernel before it became a stage.
    pub(crate) group: Group,
    /// The function of the combined values, if they are not the results.
    pub(crate) tail: Option<FusedTraces<'k>>,
    /// The nodes that the tail is given besides the values.
    pub(crate) given: Vec<(Id, RowValue)>,
}

/// Returns the kernels of a tape with rows that stay.
pub(crate) fn joined(tape: &Tape, mut cut: Cut, bindings: &Bindings, machine: &Machine) -> Cut {
    let domains: Vec<Option<ShapeId>> = cut.groups.iter().map(|group| domain_of(tape, group)).collect();
    let is_reduction = |index: usize| domains[index].is_some() && cut.groups[index].kind == GroupKind::Pattern;
    if tape.wide || !(0..domains.len()).any(is_reduction) {
        return cut;
    }
    let home: HashMap<Id, usize> =
        cut.groups.iter().enumerate().flat_map(|(index, group)| group.made().map(move |made| (made, index))).collect();
    let producers: Vec<Vec<usize>> =
        cut.groups.iter().map(|group| group.reads.iter().filter_map(|read| home.get(read).copied()).collect()).collect();
    let mut readers: HashMap<Id, Vec<usize>> = HashMap::new();
    for (index, group) in cut.groups.iter().enumerate() {
        group.reads.iter().for_each(|read| readers.entry(*read).or_default().push(index));
    }
    let costs = Costs::of(machine);
    let fits = |domain: ShapeId| {
        let extents = bindings.shapes[domain as usize].extents();
        let (length, rows) = (extents.last().copied().unwrap_or(1) as u64, extents.iter().rev().skip(1).product::<usize>());
        costs.keeps_rows(rows as u64, length)
    };
    let mut open: Vec<(ShapeId, Vec<usize>)> = vec![];
    for index in sorted(&producers) {
        let domain = domains[index].filter(|domain| fits(*domain));
        if domain.is_none() && !is_of_rows(tape, &cut.groups[index]) {
            continue;
        }
        let joined = open.iter_mut().find_map(|(own, members)| {
            let mut more = members.clone();
            more.push(index);
            let reads_them = producers[index].iter().any(|producer| members.contains(producer));
            let is_one = domain.is_none_or(|domain| domain == *own) && reads_them && !leaves(&producers, &more);
            (is_one && group_of(tape, &cut, &readers, &more, *own, true).is_some()).then_some((members, more))
        });
        match (joined, domain) {
            (Some((members, more)), _) => *members = more,
            (None, Some(domain)) if cut.groups[index].kind == GroupKind::Pattern => open.push((domain, vec![index])),
            (None, _) => {}
        }
    }
    let mut taken: HashSet<usize> = HashSet::new();
    let mut groups = vec![];
    for (domain, mut members) in open {
        // Members that were to be read by others, which then did not join, are left out.
        while members.len() > 1 {
            if let Some(group) = group_of(tape, &cut, &readers, &members, domain, false) {
                taken.extend(members);
                groups.push(group);
                break;
            }
            members.pop();
        }
    }
    groups.extend(cut.groups.iter().enumerate().filter(|(index, _)| !taken.contains(index)).map(|(_, group)| group.clone()));
    cut.groups = groups;
    cut
}

/// Returns the domain of a kernel that can be a stage of rows: a reduction along the last axis, or a function
/// of every position.
fn domain_of(tape: &Tape, group: &Group) -> Option<ShapeId> {
    let [feed] = &group.feeds[..] else { return None };
    let node = *feed.nodes.first()?;
    let domain = tape.entry(node).shape;
    let class = tape.shapes[domain as usize];
    let is_plain = group.traps.is_empty() && feed.traps.is_empty() && feed.given.is_empty() && feed.absent.is_none();
    let is_row = class.rank >= 2 && class.rows && class.tall && class.length.is_none();
    let is_stage = match group.kind {
        GroupKind::Map => group.roots.iter().all(|root| tape.entry(*root).shape == domain),
        GroupKind::Pattern => {
            let is_commutative =
                || combination(tape, group, false).is_ok_and(|found| found.is_some_and(|own| own.is_commutative()));
            group.reduced(tape) == Some(&[class.rank - 1]) && is_commutative()
        }
        GroupKind::Transpose(_) | GroupKind::Chain | GroupKind::Rows => false,
    };
    let is_scalar = group.roots.iter().chain(&feed.nodes).all(|node| tape.entry(*node).ty.is_scalar());
    (is_plain && is_row && is_stage && is_scalar).then_some(domain)
}

/// Returns whether a kernel may be a function of rows.
fn is_of_rows(tape: &Tape, group: &Group) -> bool {
    let [feed] = &group.feeds[..] else { return false };
    let Some(root) = group.roots.first() else { return false };
    let shape = tape.entry(*root).shape;
    group.kind == GroupKind::Map
        && group.traps.is_empty()
        && feed.traps.is_empty()
        && tape.shapes[shape as usize].length.is_none()
        && group.roots.iter().all(|root| tape.entry(*root).shape == shape && tape.entry(*root).ty.is_scalar())
}

/// Returns the kernel of some members in their order; `None` if they cannot form one. More members may follow
/// if it `is_open`.
fn group_of(
    tape: &Tape,
    cut: &Cut,
    readers: &HashMap<Id, Vec<usize>>,
    members: &[usize],
    domain: ShapeId,
    is_open: bool,
) -> Option<Group> {
    let is_output = |id: &Id| tape.outputs.iter().any(|output| tape.behind(*output) == *id);
    let read_outside = |id: &Id| readers.get(id).is_some_and(|groups| groups.iter().any(|group| !members.contains(group)));
    let link = |member: &usize| {
        let group = cut.groups[*member].clone();
        let stored = group.roots.iter().map(|root| is_output(root) || read_outside(root)).collect();
        Link { staged: vec![], stored, reaches: vec![], near: vec![], cost: 0, growth: 100, group }
    };
    let links: Vec<Link> = members.iter().map(link).collect();
    let stages = stages(tape, &cut.kept, &links, domain, is_open)?;
    let mut reads: Vec<Id> = vec![];
    let (mut size, mut inputs) = (0, 0);
    for stage in &stages {
        let tail = stage.reduction.iter().filter_map(|reduction| reduction.tail.as_ref());
        for fused in std::iter::once(&stage.fused).chain(tail) {
            size += fused.size();
            inputs += fused.reads().len();
            reads.extend(fused.reads());
        }
    }
    reads.sort_unstable();
    reads.dedup();
    let stored =
        |stage: &RowStageTrace<'_>| stage.results.iter().filter(|(_, stored)| *stored).map(|(id, _)| *id).collect::<Vec<Id>>();
    let roots: Vec<Id> = stages.iter().flat_map(stored).collect();
    if roots.is_empty() || roots.len() > MAX_RESULTS || inputs > MAX_BUFFERS || size > MAX_COMBINED {
        return None;
    }
    let (kind, combined, feeds, traps, line) = (GroupKind::Rows, vec![], vec![], vec![], false);
    Some(Group { kind, roots, combined, feeds, domain, line, reads, traps, links })
}

/// Returns the stages of the members of a kernel; `None` if one of them needs a result of another one at
/// another position.
pub(crate) fn stages<'k>(
    tape: &'k Tape,
    kept: &'k [bool],
    links: &'k [Link],
    domain: ShapeId,
    is_open: bool,
) -> Option<Vec<RowStageTrace<'k>>> {
    StageFinder {
        tape,
        kept,
        links,
        rank: tape.shapes[domain as usize].rank.into(),
        domain,
        is_open,
        stages: vec![],
        rows: vec![],
        held: vec![],
    }
    .run()
}

/// Finder of the stages of a kernel.
struct StageFinder<'k> {
    tape: &'k Tape,
    kept: &'k [bool],
    links: &'k [Link],
    rank: usize,
    domain: ShapeId,
    /// True if members may follow.
    is_open: bool,
    stages: Vec<RowStageTrace<'k>>,
    /// Results of reductions, with their places.
    rows: Vec<(Id, RowValue)>,
    /// Nodes of the domain that later stages are given, with their places.
    held: Vec<(Id, RowValue)>,
}

impl<'k> StageFinder<'k> {
    fn run(mut self) -> Option<Vec<RowStageTrace<'k>>> {
        let made: HashSet<Id> = self.links.iter().flat_map(|link| link.group.made()).collect();
        // All results of rows, whatever their places, for a first look at what the members share.
        let is_row = |id: &&Id| self.tape.entry(**id).shape != self.domain;
        let all: Vec<(Id, RowValue)> = made.iter().filter(is_row).map(|id| (*id, RowValue { stage: 0, result: 0 })).collect();
        let first = self.links.iter().map(|link| self.trace(roots_of(link), &all)).collect::<Option<Vec<FusedTraces<'_>>>>()?;
        let mut counts: HashMap<Id, usize> = HashMap::new();
        for fused in &first {
            own_reads(fused).into_iter().filter(|id| !made.contains(id)).for_each(|id| *counts.entry(id).or_default() += 1);
        }
        let mut shared: Vec<Id> = counts.into_iter().filter(|(_, count)| *count > 1).map(|(id, _)| id).collect();
        shared.sort_unstable();
        for node in shared {
            let fused = self.trace(Roots::Feed(&[node]), &[])?;
            self.hold(fused, vec![], &[node]);
        }
        let common = self.common(&first, &all);
        for (number, link) in self.links.iter().enumerate() {
            if let Some((node, _)) = common.filter(|(_, user)| *user == number) {
                let roots = [node];
                let (fused, given) = self.given(Roots::Compute(&roots), &self.rows.clone())?;
                if fused.reads().iter().any(|read| made.contains(read)) {
                    return None;
                }
                self.hold(fused, given, &roots);
            }
            let rows: Vec<(Id, RowValue)> = self.rows.iter().filter(|(id, _)| link.group.reads.contains(id)).copied().collect();
            let (fused, given) = self.given(roots_of(link), &rows)?;
            if fused.reads().iter().any(|read| made.contains(read)) {
                return None;
            }
            let results: Vec<(Id, bool)> = link.group.roots.iter().copied().zip(link.stored.iter().copied()).collect();
            if link.group.kind == GroupKind::Map && self.is_of_rows(link) {
                self.row(fused, given, results)?;
                continue;
            }
            if link.group.kind == GroupKind::Map {
                let is_read = self.links[number + 1..]
                    .iter()
                    .any(|later| later.group.reads.iter().any(|read| link.group.roots.contains(read)));
                let stored: Vec<(Id, bool)> = results.iter().filter(|(_, stored)| *stored).copied().collect();
                if !is_read {
                    self.stages.push(RowStageTrace { fused, given, is_row: false, reduction: None, results });
                    continue;
                }
                self.hold(fused, given, &link.group.roots);
                if !stored.is_empty() {
                    let ids: Vec<Id> = stored.iter().map(|(id, _)| *id).collect();
                    let (fused, given) = self.given(Roots::Compute(&ids), &[])?;
                    self.stages.push(RowStageTrace { fused, given, is_row: false, reduction: None, results: stored });
                }
                continue;
            }
            let reduction = self.reduction(&link.group, &rows)?;
            if reduction.tail.as_ref().is_some_and(|tail| tail.reads().iter().any(|read| made.contains(read))) {
                return None;
            }
            let stage = self.stages.len();
            let places = results.iter().enumerate().map(|(result, (id, _))| (*id, RowValue { stage, result }));
            self.rows.extend(places);
            let reduction = Some(reduction);
            self.stages.push(RowStageTrace { fused, given, is_row: false, reduction, results });
        }
        Some(self.stages)
    }

    /// Returns whether a member is a function of rows, not of every position.
    fn is_of_rows(&self, link: &Link) -> bool {
        link.group.roots.first().is_some_and(|root| self.tape.entry(*root).shape != self.domain)
    }

    /// Adds a stage that is a function of rows; `None` if its results are not values of the rows.
    fn row(&mut self, fused: FusedTraces<'k>, given: Vec<(Id, RowValue)>, results: Vec<(Id, bool)>) -> Option<()> {
        let shape = |id: &Id| self.tape.entry(*id).shape;
        let first = results.first().map(|(id, _)| *id)?;
        // An array with an axis of extent 1 is not stored: its other extents may not be those of rows.
        let rank = self.tape.rank(first);
        let is_result = rank + 1 == self.rank && self.rows.iter().any(|(id, _)| shape(id) == shape(&first));
        let is_inner = rank == self.rank && (self.is_open || !results.iter().any(|(_, stored)| *stored));
        if !is_result && !is_inner {
            return None;
        }
        let stage = self.stages.len();
        self.rows.extend(results.iter().enumerate().map(|(result, (id, _))| (*id, RowValue { stage, result })));
        self.stages.push(RowStageTrace { fused, given, is_row: true, reduction: None, results });
        Some(())
    }

    /// Adds a stage whose results later stages are given at the position.
    fn hold(&mut self, fused: FusedTraces<'k>, given: Vec<(Id, RowValue)>, nodes: &[Id]) {
        let stage = self.stages.len();
        self.held.extend(nodes.iter().enumerate().map(|(result, id)| (*id, RowValue { stage, result })));
        let results = nodes.iter().map(|id| (*id, false)).collect();
        self.stages.push(RowStageTrace { fused, given, is_row: false, reduction: None, results });
    }

    fn trace(&self, roots: Roots<'_>, given: &[(Id, RowValue)]) -> Option<FusedTraces<'k>> {
        let given: Vec<Id> = given.iter().map(|(id, _)| *id).collect();
        let rank = self.tape.rank(*roots.ids().first()?);
        FusedTraces::trace_rows(self.tape, self.kept, roots, rank, &given)
    }

    /// Traces nodes with the given results of rows, and with those held nodes that they use.
    fn given(&self, roots: Roots<'_>, rows: &[(Id, RowValue)]) -> Option<(FusedTraces<'k>, Vec<(Id, RowValue)>)> {
        let mut given = rows.to_vec();
        let mut fused = self.trace(roots, &given)?;
        // A function of rows has no position within a row. Later nodes are computed from earlier ones.
        let is_each = roots.ids().first().is_some_and(|root| self.tape.entry(*root).shape == self.domain);
        for held in self.held.iter().rev().filter(|_| is_each) {
            given.push(*held);
            let with = self.trace(roots, &given)?;
            let is_read = own_reads(&fused).contains(&held.0);
            if is_read || with.cost() < fused.cost() {
                fused = with;
            } else {
                given.pop();
            }
        }
        Some((fused, given))
    }

    /// Returns the most expensive node that several members compute at the position, and the first of them.
    fn common(&self, first: &[FusedTraces<'k>], rows: &[(Id, RowValue)]) -> Option<(Id, usize)> {
        let computed: Vec<HashSet<Id>> = first.iter().map(|fused| fused.computed().into_keys().collect()).collect();
        let mut best: Option<(u64, Id, usize)> = None;
        for node in computed.iter().flatten().copied().collect::<HashSet<Id>>() {
            let entry = self.tape.entry(node);
            let users: Vec<usize> = (0..computed.len()).filter(|user| computed[*user].contains(&node)).collect();
            let is_word = entry.ty.is_scalar() && entry.ty.bytes() == 4;
            if users.len() < 2 || !matches!(entry.kind, Kind::Elementwise(_)) || entry.shape != self.domain || !is_word {
                continue;
            }
            if self.kept[node as usize] {
                continue;
            }
            let cost = self.trace(Roots::Compute(&[node]), rows).map_or(0, |fused| fused.cost());
            if cost >= cost::MATH && best.is_none_or(|(most, id, _)| (cost, node) > (most, id)) {
                best = Some((cost, node, users[0]));
            }
        }
        best.map(|(_, node, user)| (node, user))
    }

    /// Returns a reduction with its tail, which is given these results of rows.
    fn reduction(&self, group: &Group, rows: &[(Id, RowValue)]) -> Option<RowReduction<'k>> {
        let group = group.clone();
        if group.is_stored(self.tape) {
            return Some(RowReduction { group, tail: None, given: vec![] });
        }
        let mut given = group.given(self.tape);
        let values = group.values(self.tape).len();
        given.extend(rows.iter().enumerate().map(|(number, (id, _))| (*id, (values + number) as u8)));
        let roots = Roots::Compute(&group.roots);
        let tail = FusedTraces::trace_behind(self.tape, self.kept, roots, self.rank - 1, false, &given)?;
        Some(RowReduction { group, tail: Some(tail), given: rows.to_vec() })
    }
}

/// Returns the nodes that a member computes at a position.
fn roots_of(link: &Link) -> Roots<'_> {
    link.group.roots_of(&link.group.feeds[0])
}

/// Returns the nodes that a function reads at the position itself.
fn own_reads(fused: &FusedTraces<'_>) -> HashSet<Id> {
    let is_own = |trace: &Trace<'_>, indices: &[u32]| {
        indices.iter().enumerate().all(|(axis, index)| {
            let own = Index::Affine { axis: Some(axis as u8), stride: Number::Known(1), offset: Number::Known(0) };
            trace.indices[*index as usize] == own
        })
    };
    let mut found = HashSet::new();
    for trace in fused.traces() {
        for item in &trace.items {
            if let Item::Read { node, place: ElementIndex::Axes(indices) } = item
                && indices.len() == fused.rank()
                && is_own(trace, indices)
            {
                found.insert(*node);
            }
        }
    }
    found
}
