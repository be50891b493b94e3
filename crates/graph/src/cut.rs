//! Cutting of the graph into kernels.
//!
//! A node that is not *kept* is computed inside the kernels that use it. Kept nodes are results, the operands
//! of combinations in patterns, and nodes for which keeping pays (`papers/accelerator` §5.2.3, 5.3.1, 5.4).
//! The choice proceeds from the leaves upwards:
//!
//! 1. A node that is used at several places, or through a view that enlarges it, is kept if recomputing it
//!    for all of them costs more than writing it once and reading it. The measure is the machine's balance of
//!    operations to bytes.
//! 2. If a node makes its kernel too large, its most expensive inputs are kept until the kernel fits.
//! 3. Kept nodes over one domain that share work or memory become one kernel with several results.
//! 4. A node that several kernels would each compute is kept if that is cheaper.
//! 5. Elementwise work after a pattern is moved into the pattern's last kernel. A node that only the kernel
//!    itself reads is not written at all.
//!
//! Rejected: choosing all cuts at once by integer programming (plans would take longer than most programs),
//! and cuts from the results downwards (the cost of a node is not known before its inputs are cut).

mod finer;
mod given;
mod staging;

use crate::chain::Link;
use crate::emit::{Fused, Roots};
use crate::limits::{MAX_BUFFERS, MAX_COMBINED, MAX_FUSED, MAX_ITEMS, MAX_JOINED, MAX_RESULTS, MAX_SLIDE, ROOM, ROUNDS};
use crate::op::zeros;
use crate::operation::{Applied, Joining, Operation};
use crate::tape::{Along, Id, Int, Kind, ShapeId, Tape};
use crate::view::Rule;
use broadloom_scalar::{Lanes, Type};
use broadloom_skeleton::cost;
use smallvec::SmallVec;
pub(crate) use staging::Staging;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::rc::Rc;

/// Reason why a node is kept in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It was requested.
    Result,
    /// It combines elements, which ends a kernel.
    Pattern,
    /// A pattern reads it from memory.
    Operand,
    /// It is used at several places, or through a view that enlarges it: recomputing it costs more than
    /// keeping it.
    Reused {
        /// Number of times that an element would be computed.
        times: u64,
        /// Cost of recomputing it, in simple operations per element.
        recomputed: u64,
        /// Cost of keeping it.
        kept: u64,
    },
    /// Several kernels use it, and recomputing it in each costs more.
    Shared {
        /// Number of kernels.
        kernels: u64,
        /// Cost of recomputing it in each.
        recomputed: u64,
        /// Cost of keeping it.
        kept: u64,
    },
    /// The kernel would be too large with it.
    Limit,
    /// It costs less than the patches of rows and columns that would recompute it at its uses.
    Apart,
    /// It is a length, which kernels read on the device.
    Length,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Result => f.write_str("a result"),
            Reason::Pattern => f.write_str("it combines elements"),
            Reason::Operand => f.write_str("its user reads memory"),
            Reason::Reused { times, recomputed, kept } => {
                write!(f, "used {times} times: computed each time it costs {recomputed}, kept {kept}")
            }
            Reason::Shared { kernels, recomputed, kept } => {
                write!(f, "used by {kernels} kernels: computed in each it costs {recomputed}, kept {kept}")
            }
            Reason::Limit => f.write_str("one kernel would be too large"),
            Reason::Apart => f.write_str("kept it costs less than in the patches that read it"),
            Reason::Length => f.write_str("it is a length"),
        }
    }
}

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
    pub(crate) feeds: Vec<Feed>,
    /// The shape of the domain.
    pub(crate) domain: ShapeId,
    /// True if the domain is treated as one-dimensional.
    pub(crate) line: bool,
    /// The nodes that the kernel reads from memory.
    pub(crate) reads: Vec<Id>,
    /// The traps that the kernel tests.
    pub(crate) traps: Vec<Id>,
    /// The kernels of a chain.
    pub(crate) links: Vec<Link>,
}

/// Values that one function of a kernel computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Feed {
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
pub(crate) struct Part<'k> {
    pub(crate) fused: Fused<'k>,
    /// The shape of its domain.
    pub(crate) shape: ShapeId,
    /// True if the domain is treated as one-dimensional.
    pub(crate) line: bool,
}

/// Returns the nodes that all parts read from memory.
fn reads_of(parts: &[Part<'_>]) -> Vec<Id> {
    let mut reads: Vec<Id> = parts.iter().flat_map(|part| part.fused.reads()).collect();
    reads.sort_unstable();
    reads.dedup();
    reads
}

/// Returns the estimated number of emitted operations of all parts.
fn size_of(parts: &[Part<'_>]) -> u64 {
    parts.iter().map(|part| part.fused.size()).sum()
}

/// Kernels of a tape, with the reasons for the cuts.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    pub(crate) kept: Vec<bool>,
    /// Nodes whose values neighbouring lanes exchange instead of recomputing them.
    pub(crate) sliding: Vec<bool>,
    /// Nodes whose values neighbouring lanes could exchange if that costs less.
    pub(crate) near: Vec<bool>,
    pub(crate) reasons: HashMap<Id, Reason>,
    pub(crate) groups: Vec<Group>,
}

struct Cutter<'t> {
    tape: &'t Tape,
    /// Simple operations in the time of one byte.
    balance: u64,
    /// Rule for keeping nodes that are read nearby in shared memory; `None` if none are kept there.
    staging: Option<Staging>,
    /// True if patterns pass on the nodes that they know ([`Operation::knows`]).
    knows: bool,
    /// Nodes that are computed at each use, in a cut that keeps all other nodes whose neighbours are read.
    finer: Option<&'t [Id]>,
    kept: Vec<bool>,
    sliding: Vec<bool>,
    reasons: HashMap<Id, Reason>,
    users: Vec<Vec<Id>>,
    /// Costs of nodes that are computed from kept ones. An entry is removed when a node below it is kept.
    costs: HashMap<Id, Option<u64>>,
    /// The work of kernels, keyed by the nodes that they write, traps included.
    outlines: HashMap<Vec<Id>, Option<Rc<Outline>>>,
}

/// Work of a kernel, without its traces.
struct Outline {
    domain: ShapeId,
    line: bool,
    reads: Vec<Id>,
    size: u64,
    /// For each part, the nodes that it computes, with the number of places of each.
    computed: Vec<HashMap<Id, u64>>,
}

impl Tape {
    /// Returns the node behind reshapes.
    pub(crate) fn behind(&self, id: Id) -> Id {
        match &self.entry(id).kind {
            Kind::Reshape(_) => self.behind(self.entry(id).inputs[0]),
            _ => id,
        }
    }
}

/// Cuts a tape for a machine. `balance` is the number of operations in the time of one byte. With `staging`,
/// kernels that read each other's nodes nearby will be joined. With `knows`, patterns pass on the nodes that
/// they know. With `finer`, every node whose neighbours are read is kept, except the nodes of the list.
pub(crate) fn cut(tape: &Tape, balance: u64, staging: Option<Staging>, knows: bool, finer: Option<&[Id]>) -> Cut {
    let mut users = vec![vec![]; tape.entries.len()];
    for (id, entry) in tape.entries.iter().enumerate() {
        for input in &entry.inputs {
            let of = &mut users[*input as usize];
            if of.last() != Some(&(id as Id)) {
                of.push(id as Id);
            }
        }
    }
    let none = vec![false; tape.entries.len()];
    let (kept, sliding) = (none.clone(), none);
    let (reasons, costs, outlines) = (HashMap::new(), HashMap::new(), HashMap::new());
    let mut cutter = Cutter { tape, balance, staging, knows, finer, kept, sliding, reasons, users, costs, outlines };
    cutter.required();
    cutter.reused();
    let mut groups = cutter.groups();
    for _ in 0..ROUNDS {
        if !cutter.shared(&groups) {
            break;
        }
        groups = cutter.groups();
    }
    let groups = cutter.without_unread(groups);
    let groups = cutter.absorb(groups);
    let groups = cutter.with_traps(groups);
    let near = (0..tape.entries.len() as Id).map(|id| cutter.is_near(id)).collect();
    Cut { kept: cutter.kept, sliding: cutter.sliding, near, reasons: cutter.reasons, groups }
}

impl Cutter<'_> {
    fn keep(&mut self, id: Id, reason: Reason) {
        if !matches!(self.tape.entry(id).kind, Kind::Leaf(_)) && !self.kept[id as usize] {
            self.kept[id as usize] = true;
            self.reasons.insert(id, reason);
            self.forget(id);
        }
    }

    /// Forgets costs above a node that is now kept.
    fn forget(&mut self, id: Id) {
        if self.costs.is_empty() && self.outlines.is_empty() {
            return;
        }
        let (mut above, mut seen) = (vec![id], HashSet::from([id]));
        while let Some(id) = above.pop() {
            above.extend(self.users[id as usize].iter().copied().filter(|user| seen.insert(*user)));
        }
        self.costs.retain(|id, _| !seen.contains(id));
        self.outlines.retain(|roots, _| !roots.iter().any(|root| seen.contains(root)));
    }

    /// Returns the work of a kernel; `None` if it is too much for one kernel.
    fn outline(&mut self, group: &Group) -> Option<Rc<Outline>> {
        let made: Vec<Id> = group.made().collect();
        if let Some(known) = self.outlines.get(&made) {
            return known.clone();
        }
        let outline = group.traced(self.tape, &self.kept).map(|parts| {
            let computed = parts.iter().map(|part| part.fused.computed()).collect();
            Rc::new(Outline {
                domain: parts[0].shape,
                line: parts[0].line,
                reads: reads_of(&parts),
                size: size_of(&parts),
                computed,
            })
        });
        self.outlines.insert(made, outline.clone());
        outline
    }

    /// Returns the cost of a node that is computed from kept nodes; `None` if that is too much for one
    /// kernel.
    fn cost(&mut self, id: Id) -> Option<u64> {
        if let Some(known) = self.costs.get(&id) {
            return *known;
        }
        let cost = self.fused(&[id]).map(|fused| fused.cost());
        self.costs.insert(id, cost);
        cost
    }

    /// Keeps the nodes that must be in memory, whatever the cost.
    fn required(&mut self) {
        for output in self.tape.outputs.clone() {
            self.keep(self.tape.behind(output), Reason::Result);
        }
        for (id, entry) in self.tape.entries.iter().enumerate() {
            if entry.is_pattern() {
                self.keep(id as Id, Reason::Pattern);
            }
        }
        for length in self.tape.shapes.iter().filter_map(|class| class.length) {
            self.keep(self.tape.behind(length), Reason::Length);
            self.keep(length, Reason::Length);
        }
    }

    /// Returns whether a node computes something. Keeping other nodes never pays.
    fn computes(&self, id: Id) -> bool {
        match &self.tape.entry(id).kind {
            Kind::Elementwise(_) | Kind::Gather(..) | Kind::Concatenate(_) => true,
            Kind::Leaf(_) | Kind::Fill(_) | Kind::View(..) | Kind::Reshape(_) | Kind::Position(_) | Kind::Pattern(_) => false,
        }
    }

    fn fused(&self, roots: &[Id]) -> Option<Fused<'_>> {
        traced(self.tape, &self.kept, Roots::Compute(roots), (&[], &[]), true).map(|(fused, ..)| fused)
    }

    fn fits(&self, id: Id) -> bool {
        let small = |fused: Fused<'_>| fused.items() <= MAX_ITEMS - ROOM && fused.size() <= MAX_FUSED;
        self.fused(&[id]).is_some_and(|fused| fused.reads().len() <= MAX_BUFFERS && small(fused))
    }

    /// Returns how often direct users read an element of each node. Uses at the same position count as one.
    fn uses(&self) -> Vec<u64> {
        let mut uses = vec![0u64; self.tape.entries.len()];
        for id in (0..self.tape.entries.len()).rev() {
            let (mut direct, mut through) = (0, 0u64);
            for user in &self.users[id] {
                let entry = self.tape.entry(*user);
                let theirs = uses[*user as usize].max(1);
                match &entry.kind {
                    Kind::View(_, _, growth) => through = through.saturating_add(theirs.saturating_mul(growth.factor())),
                    Kind::Reshape(_) => through = through.saturating_add(theirs),
                    Kind::Gather(_, _, growth) if entry.inputs[0] == id as Id => {
                        through = through.saturating_add(theirs.saturating_mul(growth.factor()));
                    }
                    Kind::Gather(..)
                    | Kind::Elementwise(_)
                    | Kind::Concatenate(_)
                    | Kind::Pattern(_)
                    | Kind::Leaf(_)
                    | Kind::Fill(_)
                    | Kind::Position(_) => direct = 1,
                }
            }
            uses[id] = through.saturating_add(direct);
        }
        uses
    }

    /// Returns the cost of writing an element and reading it once.
    fn traffic(&self, id: Id) -> u64 {
        let staging = self.staging.filter(|_| self.is_staged(id));
        let balance = staging.map_or(self.balance, |staging| staging.balance);
        2 * u64::from(self.tape.entry(id).ty.bytes()) * balance
    }

    fn reused(&mut self) {
        let uses = self.uses();
        let windows = self.windows();
        for id in 0..self.tape.entries.len() as Id {
            if self.tape.entry(id).is_pattern() {
                self.operands(id);
            }
            let looks = matches!(self.tape.entry(id).kind, Kind::View(..) | Kind::Reshape(_));
            if !self.computes(id) && !looks {
                continue;
            }
            if !self.fits(id) {
                self.finish_inputs(id);
            }
            if looks {
                continue;
            }
            let times = uses[id as usize];
            if self.is_apart(id, &windows) {
                self.keep(id, Reason::Apart);
            }
            if times <= 1 || self.kept[id as usize] || self.is_loose(id) {
                continue;
            }
            let Some(fused) = self.fused(&[id]) else { continue };
            let cost = fused.cost();
            let (recomputed, kept) = (times.saturating_mul(cost), cost + self.traffic(id) + times.saturating_mul(cost::READ));
            if recomputed > kept {
                if self.slides(id) {
                    self.sliding[id as usize] = true;
                    continue;
                }
                self.keep(id, Reason::Reused { times, recomputed, kept });
            }
        }
    }

    /// Returns whether a node is read along the last axis only, and only by reductions over the first axis.
    /// Keeping it would store data that the pattern mostly reduces away, and lanes can exchange its values
    /// instead.
    fn slides(&self, id: Id) -> bool {
        self.tape.rank(id) >= 3 && self.is_looked_at_near(id) && self.is_folded(id)
    }

    /// Returns whether a node is computed and read from neighbouring columns.
    fn is_near(&self, id: Id) -> bool {
        let own = self.tape.entry(id);
        let from_aside = |user: &Id| matches!(self.tape.entry(*user).kind, Kind::View(..));
        matches!(own.kind, Kind::Elementwise(_))
            && !self.kept[id as usize]
            && own.ty.is_scalar()
            && own.ty.bytes() >= 4
            && self.users[id as usize].iter().any(from_aside)
            && self.is_looked_at_near(id)
    }

    /// Returns whether a node is read along the last axis only, from a few columns away.
    fn is_looked_at_near(&self, id: Id) -> bool {
        let own = self.tape.entry(id);
        let class = self.tape.shapes[own.shape as usize];
        if class.rank < 2 || !class.rows || !class.tall {
            return false;
        }
        let last = usize::from(class.rank) - 1;
        let is_near = |(axis, map): (usize, &Along)| {
            let near = if axis == last { MAX_SLIDE } else { 0 };
            let offset = matches!(map.offset, Int::Known(offset) if offset.abs() <= near);
            let plain = map.source == Some(axis as u8) && map.stride == Int::Known(1);
            offset && plain && matches!(map.rule, Rule::Inside | Rule::Clamp)
        };
        let looks_near = |user: &Id| match &self.tape.entry(*user).kind {
            Kind::View(maps, _, _) => self.tape.entry(*user).shape == own.shape && maps.iter().enumerate().all(is_near),
            Kind::Elementwise(_) => true,
            _ => false,
        };
        self.users[id as usize].iter().all(looks_near)
    }

    /// Returns whether all uses of a node end in reductions over the first axis.
    fn is_folded(&self, id: Id) -> bool {
        let shape = self.tape.entry(id).shape;
        let (mut stack, mut seen) = (vec![id], HashSet::from([id]));
        while let Some(id) = stack.pop() {
            let users = &self.users[id as usize];
            if self.kept[id as usize] || users.is_empty() {
                return false;
            }
            for user in users {
                match &self.tape.entry(*user).kind {
                    Kind::Pattern(applied) if applied.operation().reduced() == Some(&[0]) => {}
                    Kind::View(..) | Kind::Elementwise(_) if self.tape.entry(*user).shape == shape => {
                        if seen.insert(*user) {
                            stack.push(*user);
                        }
                    }
                    _ => return false,
                }
            }
        }
        true
    }

    /// Returns the node at the end of a chain of views.
    fn below(&self, id: Id) -> Id {
        let mut below = id;
        while matches!(self.tape.entry(below).kind, Kind::View(..) | Kind::Reshape(_)) && !self.kept[below as usize] {
            below = self.tape.entry(below).inputs[0];
        }
        below
    }

    /// Keeps operands that a pattern would recompute many times, and operands with too much code.
    fn operands(&mut self, id: Id) {
        let rereads = self.tape.applied(id).is_some_and(|applied| applied.operation().rereads());
        let most = if self.tape.is_trap(id) { MAX_FUSED } else { MAX_COMBINED };
        for input in self.tape.entry(id).inputs.clone() {
            let below = self.below(input);
            if !self.computes(below) {
                continue;
            }
            let fused = self.fused(&[below]);
            if rereads && fused.as_ref().is_none_or(|fused| fused.cost() > cost::CHEAP) {
                self.keep(below, Reason::Operand);
            } else if fused.is_some_and(|fused| fused.size() > most) {
                self.keep(below, Reason::Limit);
            }
        }
    }

    /// Keeps the most expensive inputs of a node until the node fits into a kernel.
    fn finish_inputs(&mut self, id: Id) {
        let mut inputs: Vec<(u64, Id)> = vec![];
        for input in &self.tape.entry(id).inputs {
            let mut below = self.below(*input);
            // A long chain of views that do not compose.
            if !self.computes(below) && matches!(self.tape.entry(*input).kind, Kind::View(..) | Kind::Reshape(_)) {
                below = *input;
            }
            if (self.computes(below)
                || below == *input && !matches!(self.tape.entry(below).kind, Kind::Fill(_) | Kind::Position(_)))
                && !self.kept[below as usize]
                && !inputs.iter().any(|(_, known)| *known == below)
            {
                inputs.push((self.fused(&[below]).map_or(u64::MAX, |fused| fused.cost()), below));
            }
        }
        inputs.sort_unstable_by(|a, b| b.cmp(a));
        for (_, input) in inputs {
            self.keep(input, Reason::Limit);
            if self.fits(id) {
                break;
            }
        }
    }

    /// Returns the kernels: each pattern alone, other kept nodes together if they share a domain and
    /// something else.
    fn groups(&mut self) -> Vec<Group> {
        let mut groups: Vec<Group> = vec![];
        // The groups that must run before each group.
        let mut before: Vec<Vec<bool>> = vec![];
        let mut home: HashMap<Id, usize> = HashMap::new();
        let kept: Vec<Id> = (0..self.tape.entries.len() as Id).filter(|id| self.kept[*id as usize]).collect();
        for id in kept {
            let mut alone = Group::of(self.tape, id);
            self.give(&mut alone);
            let Some(outline) = self.outline(&alone) else { continue };
            let Outline { domain, line, reads, computed, .. } = &*outline;
            let mut needs = vec![false; groups.len()];
            for read in reads {
                if let Some(producer) = home.get(read) {
                    needs[*producer] = true;
                    for (earlier, needed) in before[*producer].iter().enumerate() {
                        needs[earlier] |= *needed;
                    }
                }
            }
            let partner = (0..groups.len()).rev().find(|group| {
                let other = &groups[*group];
                let same = alone.joins(other, self.tape);
                let fits = same && other.domain == *domain && other.roots.len() < MAX_RESULTS;
                // A read node of the group itself must be computed at the same position.
                let indirect = reads
                    .iter()
                    .filter_map(|read| home.get(read))
                    .any(|producer| producer != group && before[*producer].get(*group).copied().unwrap_or(false));
                let shares = reads.iter().any(|read| other.reads.contains(read) || home.get(read) == Some(group));
                // The results of one application come from one kernel, whatever it reads.
                let one = alone.gives_results(self.tape);
                // The context may prefer few launches over kernels that share something.
                let joins = self.tape.joins && other.reads.len() + reads.len() <= MAX_JOINED;
                fits && !indirect && (one || shares || joins || other.roots.iter().any(|root| computed[0].contains_key(root)))
            });
            if let Some(group) = partner {
                let mut both = groups[group].clone();
                both.roots.push(id);
                both.combined.extend(&alone.combined);
                if alone.gives_results(self.tape) {
                    if alone.values(self.tape).is_empty() {
                        // The pattern stores its results in the order of their numbers.
                        both.roots.sort_by_key(|root| self.tape.applied(*root).map(Applied::result));
                    }
                } else {
                    let own = both.feeds.iter_mut().zip(&alone.feeds).filter(|(feed, _)| !feed.common);
                    own.for_each(|(both, alone)| {
                        both.nodes.extend_from_slice(&alone.nodes);
                        both.absent.iter_mut().for_each(|absent| absent.extend(alone.absent.iter().flatten().cloned()));
                    });
                }
                if let Some(outline) = self.outline(&both) {
                    let Outline { domain, line, reads, size, .. } = &*outline;
                    let fits = reads.len() <= MAX_BUFFERS && *size <= both.most_operations();
                    if fits && !reads.iter().any(|read| both.roots.contains(read)) {
                        before[group].resize(needs.len(), false);
                        for (earlier, needed) in needs.iter().enumerate() {
                            before[group][earlier] |= *needed && earlier != group;
                        }
                        groups[group] = Group { domain: *domain, line: *line, reads: reads.clone(), ..both };
                        home.insert(id, group);
                        // Groups after this group also run after the groups that it needs now.
                        let own = before[group].clone();
                        for later in &mut before {
                            if later.get(group).copied().unwrap_or(false) {
                                later.resize(later.len().max(own.len()), false);
                                own.iter().enumerate().for_each(|(earlier, needed)| later[earlier] |= *needed);
                            }
                        }
                        continue;
                    }
                }
            }
            home.insert(id, groups.len());
            before.push(needs);
            groups.push(Group { domain: *domain, line: *line, reads: reads.clone(), ..alone });
        }
        groups
    }

    /// Moves elementwise work after a pattern into the pattern's kernel, if it needs only values of the
    /// pattern at the same position.
    fn absorb(&mut self, mut groups: Vec<Group>) -> Vec<Group> {
        while let Some((pattern, map, both)) = self.tail_of_some(&groups) {
            groups[pattern] = both;
            groups.remove(map);
        }
        // Nodes that only the kernel itself reads need not be written: values of its pattern for later work,
        // and nodes kept for kernels that became one.
        let mut wanted: HashSet<Id> = groups.iter().flat_map(|group| &group.reads).copied().collect();
        wanted.extend(self.tape.outputs.iter().map(|output| self.tape.behind(*output)));
        for group in groups.iter_mut().filter(|group| group.roots.len() > group.combined.len()) {
            let is_given = |root: &Id| group.combined.contains(root);
            let own: Vec<Id> = group.roots.iter().copied().filter(|root| !wanted.contains(root) && !is_given(root)).collect();
            let mut fewer = group.clone();
            fewer.roots.retain(|root| wanted.contains(root));
            if group.kind == GroupKind::Map {
                fewer.feeds.iter_mut().for_each(|feed| feed.nodes.retain(|node| wanted.contains(node)));
            }
            own.iter().for_each(|root| self.kept[*root as usize] = false);
            // A chain that was cut because of its length must not be joined again.
            let fits = fewer.traced(self.tape, &self.kept).is_some()
                && (fewer.is_stored(self.tape) || fewer.tail(self.tape, &self.kept).is_some());
            if fits {
                self.reasons.retain(|id, _| !own.contains(id));
                *group = fewer;
            } else {
                own.iter().for_each(|root| self.kept[*root as usize] = true);
            }
        }
        groups
    }

    /// Places each trap in a kernel over the positions of its condition. It prefers a kernel that reads the
    /// same memory, and else makes a separate one.
    fn with_traps(&self, groups: Vec<Group>) -> Vec<Group> {
        let is_trap = |group: &Group| group.roots.is_empty() && !group.traps.is_empty();
        let (traps, others): (Vec<Group>, Vec<Group>) = groups.into_iter().partition(is_trap);
        let mut groups = others;
        for (position, alone) in traps.iter().enumerate() {
            let waiting = &traps[position + 1..];
            let mut takers: Vec<(usize, usize)> = vec![];
            let visits_all = |(_, group): &(usize, &Group)| group.visits_all(self.tape, alone.domain);
            for (number, group) in groups.iter().enumerate().filter(visits_all) {
                takers.push((group.reads.iter().filter(|read| alone.reads.contains(read)).count(), number));
            }
            takers.sort_by_key(|(in_common, number)| (Reverse(*in_common), *number));
            let taken = takers.into_iter().find_map(|(_, number)| {
                let both = self.with_traps_of(&groups[number], alone)?;
                let mut all = [&groups, waiting].concat();
                all[number] = both.clone();
                has_order(&all).then_some((number, both))
            });
            match taken {
                Some((number, both)) => groups[number] = both,
                None => groups.push(alone.clone()),
            }
        }
        groups
    }

    /// Returns a kernel with the traps of another; `None` if that is too much for one kernel.
    fn with_traps_of(&self, group: &Group, other: &Group) -> Option<Group> {
        let mut both = group.clone();
        both.traps.extend(&other.traps);
        both.feeds.first_mut()?.traps.extend_from_slice(&other.traps);
        let parts = both.traced(self.tape, &self.kept)?;
        let (reads, size) = (reads_of(&parts), size_of(&parts));
        both.reads.extend(reads.into_iter().filter(|read| !group.reads.contains(read)));
        both.reads.sort_unstable();
        // The position of a one-dimensional domain cannot be split into several axes.
        let fits = parts.iter().zip(group.traced(self.tape, &self.kept)?).all(|(with, without)| with.line == without.line)
            && both.reads.len() < MAX_BUFFERS
            && size <= both.most_operations();
        (fits && !both.made().any(|made| both.reads.contains(&made))).then_some(both)
    }

    /// Returns a pattern and a map that can be moved into its kernel: their indices, and the joined group.
    fn tail_of_some(&self, groups: &[Group]) -> Option<(usize, usize, Group)> {
        let home: HashMap<Id, usize> =
            groups.iter().enumerate().flat_map(|(index, group)| group.made().map(move |made| (made, index))).collect();
        let producers =
            |group: &Group| group.reads.iter().filter_map(|read| home.get(read).copied()).collect::<BTreeSet<usize>>();
        let behind = |start: usize, looked_for: usize| {
            let (mut stack, mut seen) = (vec![start], HashSet::from([start]));
            while let Some(group) = stack.pop() {
                if group == looked_for {
                    return true;
                }
                stack.extend(producers(&groups[group]).into_iter().filter(|producer| seen.insert(*producer)));
            }
            false
        };
        let is_map = |(_, group): &(usize, &Group)| group.kind == GroupKind::Map && group.traps.is_empty();
        for (map, tail) in groups.iter().enumerate().filter(is_map) {
            let from = producers(tail);
            let mut patterns: Vec<usize> = from.iter().copied().filter(|from| groups[*from].takes_tail(self.tape)).collect();
            // A waiting kernel should keep little memory alive. Kernels that read only inputs come first, the
            // latest of them before others.
            patterns.sort_by_key(|pattern| (producers(&groups[*pattern]).len(), Reverse(*pattern)));
            for pattern in patterns {
                let own = &groups[pattern];
                // All nodes of a pass have the same positions, whatever the tape knows of their shapes.
                let shape = self.tape.entry(tail.roots[0]).shape;
                let fits = own.combined.iter().any(|combined| self.tape.entry(*combined).shape == shape)
                    && own.roots.len() + tail.roots.len() <= MAX_RESULTS;
                if !fits || from.iter().any(|other| *other != pattern && behind(*other, pattern)) {
                    continue;
                }
                let mut both = own.clone();
                both.roots.extend(&tail.roots);
                both.roots.sort_unstable();
                let (Some(fused), Some(parts)) = (both.tail(self.tape, &self.kept), both.traced(self.tape, &self.kept)) else {
                    continue;
                };
                let mut reads = reads_of(&parts);
                reads.extend(fused.reads());
                reads.sort_unstable();
                reads.dedup();
                let fits = reads.len() <= MAX_BUFFERS && size_of(&parts) + fused.size() <= both.most_operations();
                if fits && !reads.iter().any(|read| both.roots.contains(read)) {
                    both.reads = reads;
                    return Some((pattern, map, both));
                }
            }
        }
        None
    }

    /// Keeps the most expensive node that several kernels compute, if that pays. Returns whether there was
    /// one.
    fn shared(&mut self, groups: &[Group]) -> bool {
        let mut occurrences: HashMap<Id, (u64, u64)> = HashMap::new();
        // A trap usually becomes a part of another kernel.
        for group in groups.iter().filter(|group| group.traps.is_empty()) {
            let Some(outline) = self.outline(group) else { continue };
            for (id, places) in outline.computed.iter().flatten() {
                let entry = occurrences.entry(*id).or_default();
                *entry = (entry.0 + 1, entry.1 + places);
            }
        }
        let mut best: Option<(u64, Id, Reason)> = None;
        for (id, (kernels, places)) in occurrences {
            if kernels < 2 || !self.computes(id) || self.kept[id as usize] || self.is_loose(id) {
                continue;
            }
            let Some(cost) = self.cost(id) else { continue };
            let (recomputed, kept) = (places * cost, cost + self.traffic(id) + places * cost::READ);
            if recomputed > kept && best.as_ref().is_none_or(|(gain, known, _)| (recomputed - kept, id) > (*gain, *known)) {
                best = Some((recomputed - kept, id, Reason::Shared { kernels, recomputed, kept }));
            }
        }
        match best {
            Some((_, id, reason)) => {
                self.keep(id, reason);
                true
            }
            None => false,
        }
    }
}

impl Feed {
    /// Creates a feed for nodes. `line`: the domain may be treated as one-dimensional.
    fn of(nodes: SmallVec<[Id; 2]>, line: bool) -> Feed {
        Feed { nodes, line, common: false, absent: None, traps: SmallVec::new(), given: SmallVec::new() }
    }
}

/// Returns whether the kernels have an order, that is, no dependency cycle.
fn has_order(groups: &[Group]) -> bool {
    let home: HashMap<Id, usize> =
        groups.iter().enumerate().flat_map(|(index, group)| group.made().map(move |made| (made, index))).collect();
    let mut waits: Vec<BTreeSet<usize>> =
        groups.iter().map(|group| group.reads.iter().filter_map(|read| home.get(read).copied()).collect()).collect();
    let mut left: Vec<usize> = (0..groups.len()).collect();
    while !left.is_empty() {
        let (ready, waiting): (Vec<usize>, Vec<usize>) = left.into_iter().partition(|index| waits[*index].is_empty());
        if ready.is_empty() {
            return false;
        }
        waits.iter_mut().for_each(|waits| waits.retain(|index| !ready.contains(index)));
        left = waiting;
    }
    true
}

impl Group {
    /// Returns the maximum number of emitted operations of the group.
    fn most_operations(&self) -> u64 {
        if self.kind == GroupKind::Map { MAX_FUSED } else { MAX_COMBINED }
    }

    /// Creates the kernel of one node.
    fn of(tape: &Tape, id: Id) -> Group {
        if tape.is_trap(id) {
            return Group::of_trap(tape, id);
        }
        let entry = tape.entry(id);
        let (kind, combined, feeds) = match tape.applied(id) {
            None => (GroupKind::Map, vec![], vec![Feed::of(SmallVec::from_slice(&[id]), true)]),
            Some(applied) => {
                let site = tape.site(id);
                let feeds = applied.operation().feeds(&site).into_iter().map(|feed| {
                    let nodes: SmallVec<[Id; 2]> = feed.inputs.iter().map(|input| entry.inputs[*input]).collect();
                    let absent = nodes.first().and_then(|node| tape.length(*node)).and_then(|_| {
                        let absent = applied.operation().absent(&site.types);
                        feed.inputs.iter().map(|input| absent.get(*input).cloned().flatten()).collect()
                    });
                    Feed { common: feed.common, absent, ..Feed::of(nodes, feed.line) }
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
        let feed = Feed { traps: SmallVec::from_slice(&[id]), ..Feed::of(SmallVec::new(), true) };
        let (kind, roots, combined, reads) = (GroupKind::Map, vec![], vec![], vec![]);
        Group { kind, roots, combined, feeds: vec![feed], domain, line: true, reads, traps: vec![id], links: vec![] }
    }

    /// Returns the nodes that are in memory after the kernel.
    pub(crate) fn made(&self) -> impl Iterator<Item = Id> {
        self.roots.iter().chain(&self.traps).copied()
    }

    /// Returns whether its first function is called at every position of a shape.
    fn visits_all(&self, tape: &Tape, shape: ShapeId) -> bool {
        let Some(feed) = self.feeds.first() else { return false };
        let condition = feed.traps.first().map(|trap| tape.entry(*trap).inputs[0]);
        let is_there = feed.nodes.first().copied().or(condition).is_some_and(|node| tape.entry(node).shape == shape);
        is_there && (self.kind == GroupKind::Map || self.operation(tape).is_some_and(|operation| operation.visits_all()))
    }

    /// Returns the operation of its pattern, if it has one; the first if several share a pass.
    pub(crate) fn operation<'t>(&self, tape: &'t Tape) -> Option<&'t dyn Operation> {
        self.combined.first().and_then(|id| tape.applied(*id)).map(Applied::operation)
    }

    /// Returns whether it produces all results of one application.
    fn gives_results(&self, tape: &Tape) -> bool {
        self.operation(tape).is_some_and(|operation| operation.joining() == Joining::Results)
    }

    /// Returns whether the kernel of one node can become part of another kernel over the same domain.
    fn joins(&self, other: &Group, tape: &Tape) -> bool {
        if self.kind != other.kind || !self.traps.is_empty() || !other.traps.is_empty() {
            return false;
        }
        let applied = |group: &Group| group.combined.first().and_then(|id| tape.applied(*id));
        match (applied(self), applied(other)) {
            (None, None) => self.kind == GroupKind::Map,
            (Some(own), Some(others)) => match own.operation().joining() {
                Joining::Alone => false,
                pass @ Joining::Pass(..) => {
                    let in_common = |(own, other): (&Feed, &Feed)| !own.common || own == other;
                    pass == others.operation().joining() && self.feeds.iter().zip(&other.feeds).all(in_common)
                }
                Joining::Results => {
                    // A pattern that stores its results stores each once.
                    let is_there = |root: &Id| tape.applied(*root).map(Applied::result) == Some(own.result());
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
    fn takes_tail(&self, tape: &Tape) -> bool {
        self.kind == GroupKind::Pattern && !self.values(tape).is_empty()
    }

    /// Returns the nodes of the applications of the pattern, one for each.
    pub(crate) fn applications(&self, tape: &Tape) -> &[Id] {
        if self.gives_results(tape) { &self.combined[..1] } else { &self.combined }
    }

    /// Returns the types of the values that the pattern produces at a position.
    pub(crate) fn values(&self, tape: &Tape) -> Vec<Type> {
        let values = |id: &Id| tape.applied(*id).map(|applied| applied.operation().values(&tape.site(*id)));
        self.applications(tape).iter().filter_map(values).flatten().collect()
    }

    /// Returns the nodes that the pattern produces, each with the index of its value.
    fn given(&self, tape: &Tape) -> Vec<(Id, u8)> {
        let is_one = self.gives_results(tape);
        let (mut before, mut given) = (0, vec![]);
        for id in &self.combined {
            let Some(applied) = tape.applied(*id) else { continue };
            let (operation, site) = (applied.operation(), tape.site(*id));
            given.push((*id, (before + operation.value(&site, applied.result())) as u8));
            if !is_one {
                before += operation.values(&site).len();
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
    pub(crate) fn tail<'k>(&self, tape: &'k Tape, kept: &'k [bool]) -> Option<Fused<'k>> {
        let first = *self.combined.first()?;
        let (roots, rank) = (Roots::Compute(&self.roots), tape.rank(first));
        let mut fused = Fused::trace_behind(tape, kept, roots, rank, false, &self.given(tape))?;
        if tape.length(first).is_some() {
            // Nothing is computed from elements beyond a length.
            let nothing = |root: &Id| zeros(tape.entry(*root).ty);
            fused.absent = Some(self.roots.iter().map(nothing).collect());
        }
        Some(fused)
    }

    /// Returns the traces of the functions that feed its kernel.
    pub(crate) fn traced<'k>(&self, tape: &'k Tape, kept: &'k [bool]) -> Option<Vec<Part<'k>>> {
        let part = |feed: &Feed| {
            let (mut fused, shape, line) = traced(tape, kept, self.roots_of(feed), (&feed.traps, &feed.given), feed.line)?;
            fused.absent.clone_from(&feed.absent);
            Some(Part { fused, shape, line })
        };
        self.feeds.iter().map(part).collect()
    }

    /// Returns the nodes of a function. A map computes them; a pattern reads those that are kept.
    pub(crate) fn roots_of<'f>(&self, feed: &'f Feed) -> Roots<'f> {
        match self.kind {
            GroupKind::Map | GroupKind::Transpose(_) | GroupKind::Chain => Roots::Compute(&feed.nodes),
            GroupKind::Pattern => Roots::Feed(&feed.nodes),
        }
    }
}

/// Returns the traces of some nodes of one shape. They are one-dimensional if possible, and if no index along
/// an axis is needed. Maps over rows whose number only the device knows keep their axes: their kernels
/// compare that number with an index along the first axis.
fn traced<'k>(
    tape: &'k Tape,
    kept: &'k [bool],
    roots: Roots<'_>,
    (traps, given): (&[Id], &[Id]),
    line: bool,
) -> Option<(Fused<'k>, ShapeId, bool)> {
    let first = roots.ids().first().copied().or_else(|| traps.first().map(|trap| tape.entry(*trap).inputs[0]))?;
    let (domain, rank) = (tape.entry(first).shape, tape.rank(first));
    let counts_rows = matches!(roots, Roots::Compute(_)) && rank > 1 && tape.length(first).is_some();
    if line && !counts_rows || rank == 0 {
        let fused = Fused::trace(tape, kept, roots, (traps, given), rank, true)?;
        if rank <= 1 || !fused.unravels(domain) {
            return Some((fused, domain, true));
        }
    }
    Some((Fused::trace(tape, kept, roots, (traps, given), rank, false)?, domain, false))
}
