//! Elementwise work after a pattern, moved into the pattern's last kernel.

use super::Cutter;
use crate::limits::{MAX_BUFFERS, MAX_RESULTS};
use crate::plan::group::{Group, GroupKind, reads_of, size_of};
use crate::tape::entries::Id;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

impl Cutter<'_> {
    /// Moves elementwise work after a pattern into the pattern's kernel, if it needs only values of the
    /// pattern at the same position.
    pub(super) fn absorb(&mut self, mut groups: Vec<Group>) -> Vec<Group> {
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

    /// Returns a pattern and a map that can be moved into its kernel: their indices, and the joined group.
    pub(super) fn tail_of_some(&self, groups: &[Group]) -> Option<(usize, usize, Group)> {
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
}
