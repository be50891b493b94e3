//! The kernels of kept nodes: each pattern alone, other nodes together if they share a domain and more.

use super::{Cutter, Outline};
use crate::expr::operation::OperationResult;
use crate::limits::{MAX_BUFFERS, MAX_JOINED, MAX_RESULTS};
use crate::plan::group::Group;
use crate::tape::entries::Id;
use std::collections::{BTreeSet, HashMap};

impl Cutter<'_> {
    /// Returns the kernels: each pattern alone, other kept nodes together if they share a domain and
    /// something else.
    pub(super) fn groups(&mut self) -> Vec<Group> {
        let mut groups: Vec<Group> = vec![];
        let mut sequence = Sequence::default();
        let mut readers = Readers::default();
        let mut home: HashMap<Id, usize> = HashMap::new();
        let kept: Vec<Id> = (0..self.tape.entries.len() as Id).filter(|id| self.kept[*id as usize]).collect();
        for id in kept {
            let mut alone = Group::of(self.tape, id);
            self.give(&mut alone);
            let Some(outline) = self.outline(&alone) else { continue };
            let Outline { domain, line, reads, computed, .. } = &*outline;
            let producers: Vec<usize> = reads.iter().filter_map(|read| home.get(read).copied()).collect();
            let needs = sequence.needs(&producers);
            // The results of one application come from one kernel, whatever it reads. The context may prefer
            // few launches over kernels that share something.
            let one = alone.gives_results(self.tape);
            let candidates = match one || self.tape.joins {
                true => (0..groups.len()).rev().collect(),
                false => {
                    let computed = computed[0].keys().filter_map(|node| home.get(node).copied());
                    readers.of(reads, computed.chain(producers.iter().copied()), |group| groups[group].roots.len() < MAX_RESULTS)
                }
            };
            let partner = candidates.into_iter().find(|group| {
                let other = &groups[*group];
                let same = alone.joins(other, self.tape);
                let fits = same && other.domain == *domain && other.roots.len() < MAX_RESULTS;
                // A read node of the group itself must be computed at the same position.
                let indirect = producers.iter().any(|producer| producer != group && sequence.is_before(*group, *producer));
                let shares = reads.iter().any(|read| other.reads.contains(read) || home.get(read) == Some(group));
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
                        both.roots.sort_by_key(|root| self.tape.applied(*root).map(OperationResult::result));
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
                        sequence.add(group, &needs);
                        readers.add(group, reads);
                        groups[group] = Group { domain: *domain, line: *line, reads: reads.clone(), ..both };
                        home.insert(id, group);
                        continue;
                    }
                }
            }
            home.insert(id, groups.len());
            sequence.0.push(needs);
            readers.add(groups.len(), reads);
            groups.push(Group { domain: *domain, line: *line, reads: reads.clone(), ..alone });
        }
        groups
    }
}

/// The order in which groups must run: for each group, the groups that must run before it, as bits.
#[derive(Default)]
struct Sequence(Vec<Vec<u64>>);

impl Sequence {
    /// Returns the groups that must run before a group that reads results of these.
    fn needs(&self, producers: &[usize]) -> Vec<u64> {
        let mut needs = vec![];
        for producer in producers {
            unite(&mut needs, &self.0[*producer]);
            let word = producer / 64;
            needs.resize(needs.len().max(word + 1), 0);
            needs[word] |= 1 << (producer % 64);
        }
        needs
    }

    /// Returns whether a group must run before another.
    fn is_before(&self, group: usize, other: usize) -> bool {
        has(&self.0[other], group)
    }

    /// Lets a group, and those after it, run after others.
    fn add(&mut self, group: usize, needs: &[u64]) {
        let mut needs = needs.to_vec();
        if let Some(word) = needs.get_mut(group / 64) {
            *word &= !(1 << (group % 64));
        }
        if needs.iter().all(|word| *word == 0) {
            return;
        }
        unite(&mut self.0[group], &needs);
        self.0.iter_mut().filter(|before| has(before, group)).for_each(|before| unite(before, &needs));
    }
}

fn has(bits: &[u64], bit: usize) -> bool {
    bits.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 != 0)
}

fn unite(bits: &mut Vec<u64>, others: &[u64]) {
    bits.resize(bits.len().max(others.len()), 0);
    bits.iter_mut().zip(others).for_each(|(own, other)| *own |= other);
}

/// The groups that read each node.
#[derive(Default)]
struct Readers(HashMap<Id, Vec<usize>>);

impl Readers {
    fn add(&mut self, group: usize, reads: &[Id]) {
        for read in reads {
            let own = self.0.entry(*read).or_default();
            if own.last() != Some(&group) {
                own.push(group);
            }
        }
    }

    /// Returns the groups with room that read one of these nodes, and others, the last first. Groups without
    /// room are not looked at again.
    fn of(&mut self, reads: &[Id], others: impl Iterator<Item = usize>, has_room: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut found: BTreeSet<usize> = others.filter(|group| has_room(*group)).collect();
        for read in reads {
            if let Some(groups) = self.0.get_mut(read) {
                groups.retain(|group| has_room(*group));
                found.extend(groups.iter());
            }
        }
        found.into_iter().rev().collect()
    }
}
