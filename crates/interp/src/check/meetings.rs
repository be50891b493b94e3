//! What arrivals leave at mbarriers and at barriers of clusters.
//!
//! What a thread releases by arriving reaches those who wait once the phase is complete, and not before: an arrival of the next phase
//! tells a thread nothing that waits for this one.

use super::clock::Known;
use super::history::Record;
use crate::watch::Meeting;
use std::collections::HashMap;

#[derive(Debug, Default)]
struct Gathered {
    made: Option<Record>,
    alive: bool,
    /// By arrivals of the current phase.
    current: Option<Known>,
    /// By all phases that are complete.
    complete: Option<Known>,
}

/// All meetings of a launch.
#[derive(Debug, Default)]
pub(super) struct Meetings {
    places: HashMap<Meeting, Gathered>,
}

fn merge(into: &mut Option<Known>, known: Known) {
    match into {
        Some(before) => before.merge(&known),
        None => *into = Some(known),
    }
}

impl Meetings {
    /// A thread arrives, with what it knows.
    pub(super) fn arrive(&mut self, meeting: Meeting, known: Known) {
        merge(&mut self.places.entry(meeting).or_default().current, known);
    }

    /// A phase is complete.
    pub(super) fn complete(&mut self, meeting: Meeting) {
        if let Some(gathered) = self.places.get_mut(&meeting)
            && let Some(known) = gathered.current.take()
        {
            merge(&mut gathered.complete, known);
        }
    }

    /// What whoever waited for a complete phase learns.
    pub(super) fn known(&self, meeting: Meeting) -> Option<&Known> {
        self.places.get(&meeting)?.complete.as_ref()
    }

    /// A meeting begins or ends its life.
    pub(super) fn renew(&mut self, meeting: Meeting, made: Record, alive: bool) {
        self.places.insert(meeting, Gathered { made: Some(made), alive, ..Gathered::default() });
    }

    /// Whether some of these bytes of the shared memory of a block are those of an mbarrier that lives.
    pub(super) fn touches_mbarrier(&self, block: u64, offset: u64, bytes: u64) -> bool {
        let lives = |offset: u64| self.places.get(&Meeting::Mbarrier { block, offset }).is_some_and(|gathered| gathered.alive);
        !self.places.is_empty() && (offset & !7..offset + bytes).step_by(8).any(lives)
    }

    /// Who began its life. Later accesses hide that one from the shadow of memory.
    pub(super) fn made(&self, meeting: Meeting) -> Option<Record> {
        self.places.get(&meeting)?.made
    }

    /// A block has ended.
    pub(super) fn end(&mut self, number: u64) {
        self.places.retain(|meeting, _| match meeting {
            Meeting::Mbarrier { block, .. } => *block != number,
            Meeting::Cluster(cluster) => *cluster != number,
        });
    }
}
