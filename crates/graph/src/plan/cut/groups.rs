//! The kernels of kept nodes: each pattern alone, other nodes together if they share a domain and more.

use super::{Cutter, Outline};
use crate::expr::operation::OperationResult;
use crate::limits::{MAX_BUFFERS, MAX_JOINED, MAX_RESULTS};
use crate::plan::group::Group;
use crate::tape::entries::Id;
use std::collections::HashMap;

impl Cutter<'_> {
    /// Returns the kernels: each pattern alone, other kept nodes together if they share a domain and
    /// something else.
    pub(super) fn groups(&mut self) -> Vec<Group> {
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
}
