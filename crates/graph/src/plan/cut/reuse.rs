//! Nodes that are kept because recomputing them costs more, or because a kernel would be too large.

use super::{Cutter, Reason};
use crate::limits::{MAX_COMBINED, MAX_FUSED, MAX_ITEMS, MAX_RESULTS, MAX_SLIDE, ROOM, STATE_PART};
use crate::tape::entries::{Id, Int, Kind, RecordedAxisMap};
use broadloom_skeleton::{Rule, cost};
use std::collections::HashSet;

impl Cutter<'_> {
    /// Returns how often direct users read an element of each node. Uses at the same position count as one.
    pub(super) fn uses(&self) -> Vec<u64> {
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
    pub(super) fn traffic(&self, id: Id) -> u64 {
        let staging = self.staging.filter(|_| self.is_staged(id));
        let balance = staging.map_or(self.balance, |staging| staging.balance);
        2 * u64::from(self.tape.entry(id).ty.bytes()) * balance
    }

    pub(super) fn reused(&mut self) {
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
                self.finish_states(id);
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
    pub(super) fn slides(&self, id: Id) -> bool {
        self.tape.rank(id) >= 3 && self.is_looked_at_near(id) && self.is_folded(id)
    }

    /// Returns whether a node is computed and read from neighbouring columns.
    pub(super) fn is_near(&self, id: Id) -> bool {
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
    pub(super) fn is_looked_at_near(&self, id: Id) -> bool {
        let own = self.tape.entry(id);
        let class = self.tape.shapes[own.shape as usize];
        if class.rank < 2 || !class.rows || !class.tall {
            return false;
        }
        let last = usize::from(class.rank) - 1;
        let is_near = |(axis, map): (usize, &RecordedAxisMap)| {
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
    pub(super) fn is_folded(&self, id: Id) -> bool {
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
    pub(super) fn below(&self, id: Id) -> Id {
        let mut below = id;
        while matches!(self.tape.entry(below).kind, Kind::View(..) | Kind::Reshape(_)) && !self.kept[below as usize] {
            below = self.tape.entry(below).inputs[0];
        }
        below
    }

    /// Keeps operands that a pattern would recompute many times, and operands with too much code.
    pub(super) fn operands(&mut self, id: Id) {
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

    /// Keeps the running states at a node that does not fit into a kernel: nodes before it of the same shape that
    /// nodes from it on use, and that take much of a kernel themselves. One kernel computes all of them. If each
    /// were kept where its own users do not fit any more, the kernels between would compute the others again.
    fn finish_states(&mut self, id: Id) {
        let shape = self.tape.entry(id).shape;
        let is_used_later = |cutter: &Cutter<'_>, mut nodes: Vec<Id>| {
            while let Some(node) = nodes.pop() {
                for user in &cutter.users[node as usize] {
                    match &cutter.tape.entry(*user).kind {
                        _ if *user >= id => return true,
                        Kind::View(..) | Kind::Reshape(_) => nodes.push(*user),
                        _ => {}
                    }
                }
            }
            false
        };
        let is_large = |cutter: &Cutter<'_>, node: Id| {
            cutter.fused(&[node]).is_none_or(|fused| fused.items() > (MAX_ITEMS - ROOM) / STATE_PART)
        };
        let states: Vec<Id> = (0..id)
            .filter(|node| self.tape.entry(*node).shape == shape && self.computes(*node) && !self.kept[*node as usize])
            .filter(|node| is_used_later(self, vec![*node]) && is_large(self, *node))
            .take(MAX_RESULTS + 1)
            .collect();
        if (2..=MAX_RESULTS).contains(&states.len()) {
            states.into_iter().for_each(|state| self.keep(state, Reason::Limit));
        }
    }

    /// Keeps the most expensive inputs of a node until the node fits into a kernel.
    pub(super) fn finish_inputs(&mut self, id: Id) {
        if self.fits(id) {
            return;
        }
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
}
