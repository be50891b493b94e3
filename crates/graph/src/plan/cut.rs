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
mod groups;
mod passed_on;
mod reuse;
mod staging;
mod tails;
mod traps;

use crate::emit::fused::{FusedTraces, Roots};
use crate::limits::{MAX_BUFFERS, MAX_FUSED, MAX_ITEMS, ROOM, ROUNDS};
use crate::plan::group::{Group, reads_of, size_of, traced};
use crate::tape::entries::{Id, Kind, ShapeId, Tape};
use broadloom_skeleton::cost;
pub(crate) use staging::Staging;
use std::collections::{HashMap, HashSet};
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
    /// True if patterns pass on the nodes that they know ([`Operation::knows`](crate::Operation::knows)).
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

    fn fused(&self, roots: &[Id]) -> Option<FusedTraces<'_>> {
        traced(self.tape, &self.kept, Roots::Compute(roots), &[], &[], true).map(|(fused, ..)| fused)
    }

    fn fits(&self, id: Id) -> bool {
        let small = |fused: FusedTraces<'_>| fused.items() <= MAX_ITEMS - ROOM && fused.size() <= MAX_FUSED;
        self.fused(&[id]).is_some_and(|fused| fused.reads().len() <= MAX_BUFFERS && small(fused))
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
