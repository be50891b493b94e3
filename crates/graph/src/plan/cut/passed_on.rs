//! Nodes that a pattern passes to the functions that feed it, such as segment numbers: a reduction of the
//! segments computes them anyway. A node that all its users receive in this way is not computed.

use super::Cutter;
use crate::expr::operation::OperationResult;
use crate::plan::group::Group;
use crate::tape::entries::Id;
use std::collections::HashSet;

impl Cutter<'_> {
    /// Adds to the first function of a kernel the nodes that its pattern knows.
    pub(super) fn give(&self, group: &mut Group) {
        let (Some(first), Some(feed)) = (group.combined.first(), group.feeds.first_mut()) else { return };
        let (true, Some(applied)) = (self.knows, self.tape.applied(*first)) else { return };
        let inputs = &self.tape.entry(*first).inputs;
        let is_known = |other: &OperationResult, theirs: &[Id]| {
            let known = applied.operation().knows(other.operation());
            other.result() == 0 && known.is_some_and(|(own, other)| inputs.get(own) == theirs.get(other))
        };
        for (id, entry) in (0..).zip(&self.tape.entries) {
            if self.tape.rank(id) == 1 && entry.applied().is_some_and(|other| is_known(other, &entry.inputs)) {
                feed.given.push(id);
            }
        }
    }

    /// Removes kernels of patterns whose results have no reader, because the readers received the values from
    /// their patterns.
    pub(super) fn without_unread(&self, mut groups: Vec<Group>) -> Vec<Group> {
        loop {
            let mut wanted: HashSet<Id> = groups.iter().flat_map(|group| &group.reads).copied().collect();
            wanted.extend(self.tape.outputs.iter().map(|output| self.tape.behind(*output)));
            let count = groups.len();
            groups.retain(|group| group.roots.is_empty() || group.roots.iter().any(|root| wanted.contains(root)));
            if groups.len() == count {
                return groups;
            }
        }
    }
}
