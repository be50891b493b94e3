//! Traps, placed in kernels over the positions of their conditions.

use super::Cutter;
use crate::limits::MAX_BUFFERS;
use crate::plan::group::{Group, reads_of, size_of};
use crate::tape::entries::Id;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

impl Cutter<'_> {
    /// Places each trap in a kernel over the positions of its condition. It prefers a kernel that reads the
    /// same memory, and else makes a separate one.
    pub(super) fn with_traps(&self, groups: Vec<Group>) -> Vec<Group> {
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
    pub(super) fn with_traps_of(&self, group: &Group, other: &Group) -> Option<Group> {
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
