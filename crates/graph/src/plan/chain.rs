//! Chains: several kernels joined into one, which keep their intermediate rows in ring buffers.
//!
//! If another map reads the result of a map in a small window, the result need not be written to memory. A
//! block that walks down the rows keeps the last few rows of it ([`broadloom_skeleton::Chain`]). In such a
//! chain, keeping a node costs little. The graph is therefore cut a second time with these costs, and kernels
//! that read each other's nodes are joined. The cheaper plan is used.

use crate::emit::fused::FusedTraces;
use crate::emit::trace::{ElementIndex, Index, IndexId, Item, Trace};
use crate::expr::kernel_settings::Chains;
use crate::limits::{MAX_AROUND, MAX_BUFFERS, MAX_RESULTS};
use crate::plan::cut::{Cut, Staging, cut};
use crate::plan::group::{Group, GroupKind, Link};
use crate::plan::join::joined;
use crate::tape::bindings::Bindings;
use crate::tape::entries::{Id, Tape};
use crate::tape::number::Number;
use broadloom_device::Machine;
use broadloom_skeleton::cost::{self, Costs};
use broadloom_skeleton::{ChainLayout, Reach};
use std::collections::{HashMap, HashSet};

/// Minimum and maximum distance of the rows and of the columns that are read.
type ReachBounds = [(i64, i64); 2];

/// Returns the cheapest kernels for a tape.
pub(crate) fn kernels(tape: &Tape, bindings: &Bindings, machine: &Machine) -> Cut {
    let costs = Costs::of(machine);
    let balance = costs.balance();
    let plain = joined(tape, cut(tape, balance, None, costs.knows_segments(), None), bindings, machine);
    let chains = |group: &&Group| is_linkable(tape, group);
    let reads_another =
        |group: &Group| plain.groups.iter().filter(chains).any(|other| other.roots.iter().any(|root| group.reads.contains(root)));
    let may_chain = match tape.kernels.chains {
        Chains::Never => false,
        Chains::Cheaper => plain.groups.iter().filter(chains).any(reads_another),
        Chains::Always => true,
    };
    if !may_chain || tape.wide || !costs.chains() {
        return plain;
    }
    let always = tape.kernels.chains == Chains::Always;
    let without = total(tape, &plain, bindings, &costs);
    if without.is_none() && !always {
        return plain;
    }
    let staging = Staging { balance: cost::STAGED_BALANCE };
    let mut staged = cut(tape, balance, Some(staging), costs.knows_segments(), None);
    staged.groups = chained(tape, &staged.kept, std::mem::take(&mut staged.groups), machine);
    if !staged.groups.iter().any(|group| group.kind == GroupKind::Chain) {
        return plain;
    }
    let is_cheaper =
        |without: u128| total(tape, &staged, bindings, &costs).is_some_and(|with| cost::CHAIN_GAIN.pays(with, without));
    if always || without.is_some_and(is_cheaper) { staged } else { plain }
}

/// Returns the cost of one position of a kernel that can be part of a chain, in simple operations; `None` if
/// the kernel is too large.
fn cost_of(tape: &Tape, kept: &[bool], group: &Group) -> Option<u64> {
    let rank = usize::from(tape.shapes[group.domain as usize].rank);
    FusedTraces::strip(tape, kept, &[], group.roots_of(&group.feeds[0]), rank, 1).map(|fused| fused.cost())
}

/// Returns the time of all kernels, in simple operations; `None` if one is too large. Memory traffic and
/// arithmetic overlap.
fn total(tape: &Tape, cut: &Cut, bindings: &Bindings, costs: &Costs<'_>) -> Option<u128> {
    let count = |shape: u32| bindings.shapes[shape as usize].count() as u64;
    let mut sum = 0u128;
    for group in &cut.groups {
        let traffic = |id: &Id| {
            let bytes = count(tape.entry(*id).shape).saturating_mul(tape.entry(*id).ty.bytes().into());
            let is_large = tape.shapes[tape.entry(*id).shape as usize].large;
            u128::from(bytes) * u128::from(if is_large { costs.balance() } else { costs.balance_in_cache() })
        };
        let memory = group.reads.iter().chain(&group.roots).map(traffic).sum::<u128>();
        let cost: u64 = match group.kind {
            GroupKind::Chain => group.links.iter().map(Link::work).sum(),
            _ if is_linkable(tape, group) => cost_of(tape, &cut.kept, group)?,
            _ => group.traced(tape, &cut.kept)?.iter().map(|part| part.fused.cost()).sum(),
        };
        sum += memory.max(u128::from(count(group.domain)) * u128::from(cost));
    }
    Some(sum)
}

/// Returns whether a kernel can be part of a chain.
fn is_linkable(tape: &Tape, group: &Group) -> bool {
    let class = tape.shapes[group.domain as usize];
    let is_plain = |root: &Id| tape.entry(*root).ty.is_scalar() && tape.entry(*root).shape == group.domain;
    group.kind == GroupKind::Map
        && group.traps.is_empty()
        && group.feeds.len() == 1
        && class.rank >= 2
        && class.rows
        && class.tall
        && class.length.is_none()
        && group.roots.iter().all(is_plain)
}

/// Returns the minimum and maximum distance of an index from the position along an axis; `None` if it is
/// unknown. Boundary rules are taken into account.
fn distance(trace: &Trace<'_>, index: IndexId, axis: u8, shape: u32) -> Option<(i64, i64)> {
    match &trace.indices[index as usize] {
        Index::Affine { axis: Some(own), stride: Number::Known(1), offset: Number::Known(offset) } if *own == axis => {
            Some((*offset, *offset))
        }
        Index::Scaled { base, stride: Number::Known(1), offset: Number::Known(offset) } => {
            let (least, most) = distance(trace, *base, axis, shape)?;
            Some((least + offset, most + offset))
        }
        // The clamped index lies between the position and the unclamped index.
        Index::Clamp(base, extent) if *extent == Number::Extent(shape, axis) => {
            let (least, most) = distance(trace, *base, axis, shape)?;
            Some((least.min(0), most.max(0)))
        }
        // The mirrored index has at most the same distance, on either side.
        Index::Mirror(base, extent) if *extent == Number::Extent(shape, axis) => {
            let (least, most) = distance(trace, *base, axis, shape)?;
            let far = least.abs().max(most.abs());
            Some((-far, far))
        }
        _ => None,
    }
}

/// Returns the windows in which a kernel reads nodes; the window is `None` for nodes that it reads elsewhere.
fn windows(tape: &Tape, fused: &FusedTraces<'_>, shape: u32) -> HashMap<Id, Option<ReachBounds>> {
    let mut windows: HashMap<Id, Option<ReachBounds>> = HashMap::new();
    let class = tape.shapes[shape as usize];
    let rank = class.rank;
    for trace in fused.traces() {
        for item in &trace.items {
            let Item::Read { node, place } = item else { continue };
            let window = match place {
                ElementIndex::Axes(indices) if tape.entry(*node).shape == shape => {
                    let along = |axis: u8| distance(trace, indices[usize::from(axis)], axis, shape);
                    // The axis has only one position.
                    let is_first = |axis: u8| {
                        let index = &trace.indices[indices[usize::from(axis)] as usize];
                        class.flat && matches!(index, Index::Affine { axis: None, offset: Number::Known(0), .. })
                    };
                    let is_own = (0..rank - 2).all(|axis| is_first(axis) || along(axis) == Some((0, 0)));
                    along(rank - 2).zip(along(rank - 1)).filter(|_| is_own).map(|(rows, columns)| [rows, columns])
                }
                ElementIndex::Axes(_) | ElementIndex::Linear(_) => None,
            };
            let known = windows.entry(*node).or_insert(window);
            *known = known.zip(window).map(|(known, window)| {
                let wider = |axis: usize| (known[axis].0.min(window[axis].0), known[axis].1.max(window[axis].1));
                [wider(0), wider(1)]
            });
        }
    }
    windows
}

/// Chain under construction.
struct OpenChain {
    /// The numbers of its groups, in order.
    members: Vec<usize>,
    domain: u32,
}

/// Joins kernels that read each other's nodes into chains.
fn chained(tape: &Tape, kept: &[bool], groups: Vec<Group>, machine: &Machine) -> Vec<Group> {
    let home: HashMap<Id, usize> =
        groups.iter().enumerate().flat_map(|(index, group)| group.made().map(move |root| (root, index))).collect();
    let producers: Vec<Vec<usize>> =
        groups.iter().map(|group| group.reads.iter().filter_map(|read| home.get(read).copied()).collect()).collect();
    let order = sorted(&producers);
    let mut reached: Vec<HashMap<Id, Option<ReachBounds>>> = vec![HashMap::new(); groups.len()];
    let mut costs = vec![0; groups.len()];
    let mut linkable = vec![false; groups.len()];
    for (index, group) in groups.iter().enumerate().filter(|(_, group)| is_linkable(tape, group)) {
        let rank = usize::from(tape.shapes[group.domain as usize].rank);
        let roots = group.roots_of(&group.feeds[0]);
        let Some(fused) = FusedTraces::trace(tape, kept, roots, &[], &[], rank, false) else { continue };
        linkable[index] = !fused.chooses() && fused.length.is_none();
        reached[index] = windows(tape, &fused, group.domain);
        let Some(cost) = cost_of(tape, kept, group) else {
            linkable[index] = false;
            continue;
        };
        costs[index] = cost;
    }
    let reader = ChainBuilder { tape, groups: &groups, home: &home, producers: &producers, windows: &reached, costs: &costs };
    let mut done: Vec<OpenChain> = vec![];
    for index in order.into_iter().filter(|index| linkable[*index]) {
        let joined = done.iter_mut().rev().find_map(|open| {
            let mut members = open.members.clone();
            members.push(index);
            let is_linked = producers[index].iter().any(|producer| open.members.contains(producer));
            let fits = members.len() <= cost::CHAIN_LENGTH && open.domain == groups[index].domain && is_linked;
            (fits && reader.chain(&members, machine).is_some()).then_some((open, members))
        });
        match joined {
            Some((open, members)) => open.members = members,
            None => done.push(OpenChain { members: vec![index], domain: groups[index].domain }),
        }
    }
    let mut result = vec![];
    let mut taken: HashSet<usize> = HashSet::new();
    for open in done.iter().filter(|open| open.members.len() > 1) {
        if let Some(chain) = reader.chain(&open.members, machine) {
            taken.extend(&open.members);
            result.push(chain);
        }
    }
    result.extend(groups.iter().enumerate().filter(|(index, _)| !taken.contains(index)).map(|(_, group)| group.clone()));
    result
}

/// Returns whether a group that is no member must run after one member and before another.
pub(crate) fn leaves(producers: &[Vec<usize>], members: &[usize]) -> bool {
    let mut stack: Vec<usize> = vec![];
    for member in members {
        stack.extend(producers[*member].iter().copied().filter(|producer| !members.contains(producer)));
    }
    let mut seen: HashSet<usize> = stack.iter().copied().collect();
    while let Some(group) = stack.pop() {
        if members.contains(&group) {
            return true;
        }
        stack.extend(producers[group].iter().copied().filter(|producer| seen.insert(*producer)));
    }
    false
}

/// Returns an order of the groups in which each group comes after the groups that it reads.
pub(crate) fn sorted(producers: &[Vec<usize>]) -> Vec<usize> {
    let mut order = vec![];
    let mut is_done = vec![false; producers.len()];
    while order.len() < producers.len() {
        let before = order.len();
        for index in 0..producers.len() {
            if !is_done[index] && producers[index].iter().all(|producer| is_done[*producer] || *producer == index) {
                is_done[index] = true;
                order.push(index);
            }
        }
        if order.len() == before {
            break;
        }
    }
    order
}

/// Builder of chains from groups.
struct ChainBuilder<'a> {
    tape: &'a Tape,
    groups: &'a [Group],
    home: &'a HashMap<Id, usize>,
    producers: &'a [Vec<usize>],
    windows: &'a [HashMap<Id, Option<ReachBounds>>],
    /// Cost of one position of each group.
    costs: &'a [u64],
}

impl ChainBuilder<'_> {
    /// Returns the chain of some groups; `None` if they cannot form one.
    fn chain(&self, members: &[usize], machine: &Machine) -> Option<Group> {
        let first = &self.groups[*members.first()?];
        if leaves(self.producers, members) {
            return None;
        }
        let is_output = |id: &Id| self.tape.outputs.iter().any(|output| self.tape.behind(*output) == *id);
        let read_outside =
            |id: &Id| (0..self.groups.len()).any(|group| !members.contains(&group) && self.groups[group].reads.contains(id));
        let is_own = |id: &Id| self.home.get(id).is_some_and(|group| members.contains(group));
        let mut links: Vec<Link> = vec![];
        for (place, member) in members.iter().enumerate() {
            let group = &self.groups[*member];
            let mut reaches: Vec<Reach> = vec![];
            for (stage, from) in links.iter_mut().enumerate().take(place) {
                let mut reach: Option<Reach> = None;
                for (number, root) in from.group.roots.iter().enumerate() {
                    let Some(window) = self.windows[*member].get(root) else { continue };
                    let [rows, columns] = (*window)?;
                    from.staged[number] = true;
                    let sides = |(least, most): (i64, i64)| {
                        Some((u32::try_from((-least).max(0)).ok()?, u32::try_from(most.max(0)).ok()?))
                    };
                    let (rows, columns) = (sides(rows)?, sides(columns)?);
                    let known = reach.get_or_insert(Reach { stage, rows, columns });
                    known.rows = (known.rows.0.max(rows.0), known.rows.1.max(rows.1));
                    known.columns = (known.columns.0.max(columns.0), known.columns.1.max(columns.1));
                }
                reaches.extend(reach);
            }
            let stored: Vec<bool> = group.roots.iter().map(|root| is_output(root) || read_outside(root)).collect();
            let (staged, cost) = (vec![false; group.roots.len()], self.costs[*member]);
            // Neighbouring columns of memory are loaded together.
            let is_near = |(id, window): (&Id, &Option<ReachBounds>)| (window.is_some() && !is_own(id)).then_some(*id);
            let near = self.windows[*member].iter().filter_map(is_near).collect();
            links.push(Link { group: group.clone(), staged, stored, reaches, near, cost, growth: 100 });
        }
        let bytes = |link: &Link| {
            let bytes = |(root, staged): (&Id, &bool)| if *staged { self.tape.entry(*root).ty.bytes() } else { 0 };
            link.group.roots.iter().zip(&link.staged).map(bytes).collect::<Vec<u32>>()
        };
        let stages: Vec<_> = links.iter().map(|link| (&link.reaches[..], bytes(link), link.cost)).collect();
        let layout = ChainLayout::new(&stages, machine).filter(|layout| layout.most_around() <= MAX_AROUND)?;
        (0..).zip(&mut links).for_each(|(stage, link)| link.growth = layout.growth(stage));
        let mut reads: Vec<Id> = links.iter().flat_map(|link| &link.group.reads).filter(|id| !is_own(id)).copied().collect();
        reads.sort_unstable();
        reads.dedup();
        let stored = |link: &Link| {
            link.group.roots.iter().zip(&link.stored).filter(|(_, stored)| **stored).map(|(root, _)| *root).collect::<Vec<Id>>()
        };
        let roots: Vec<Id> = links.iter().flat_map(stored).collect();
        if roots.is_empty() || roots.len() > MAX_RESULTS || reads.len() > MAX_BUFFERS {
            return None;
        }
        Some(Group {
            kind: GroupKind::Chain,
            roots,
            combined: vec![],
            feeds: vec![],
            traps: vec![],
            links,
            line: false,
            reads,
            domain: first.domain,
        })
    }
}
