//! Knowledge that arrivals leave at mbarriers and cluster barriers.
//!
//! The knowledge that a thread releases by arriving reaches the waiting threads when the phase is complete,
//! not before: an arrival of the next phase tells nothing to a thread that waits for this one.

use super::clock::PublishedClock;
use super::history::Record;
use crate::watch::Meeting;
use std::collections::HashMap;

/// Knowledge that arrivals left at one meeting.
#[derive(Debug, Default)]
struct MeetingKnowledge {
    made: Option<Record>,
    alive: bool,
    /// Knowledge of arrivals of the current phase.
    current: Option<PublishedClock>,
    /// Knowledge of all complete phases.
    complete: Option<PublishedClock>,
}

/// All meetings of a launch.
#[derive(Debug, Default)]
pub(super) struct Meetings {
    places: HashMap<Meeting, MeetingKnowledge>,
}

fn merge(into: &mut Option<PublishedClock>, known: PublishedClock) {
    match into {
        Some(before) => before.merge(&known),
        None => *into = Some(known),
    }
}

impl Meetings {
    /// Records the arrival of a thread, with its knowledge.
    pub(super) fn arrive(&mut self, meeting: Meeting, known: PublishedClock) {
        merge(&mut self.places.entry(meeting).or_default().current, known);
    }

    /// Completes a phase.
    pub(super) fn complete(&mut self, meeting: Meeting) {
        if let Some(gathered) = self.places.get_mut(&meeting)
            && let Some(known) = gathered.current.take()
        {
            merge(&mut gathered.complete, known);
        }
    }

    /// Returns the knowledge for threads that waited for a complete phase.
    pub(super) fn known(&self, meeting: Meeting) -> Option<&PublishedClock> {
        self.places.get(&meeting)?.complete.as_ref()
    }

    /// Starts or ends the lifetime of a meeting.
    pub(super) fn renew(&mut self, meeting: Meeting, made: Record, alive: bool) {
        self.places.insert(meeting, MeetingKnowledge { made: Some(made), alive, ..MeetingKnowledge::default() });
    }

    /// Returns whether some of these bytes of a block's shared memory belong to a live mbarrier.
    pub(super) fn touches_mbarrier(&self, block: u64, offset: u64, bytes: u64) -> bool {
        let lives = |offset: u64| self.places.get(&Meeting::Mbarrier { block, offset }).is_some_and(|gathered| gathered.alive);
        !self.places.is_empty() && (offset & !7..offset + bytes).step_by(8).any(lives)
    }

    /// Returns the access that initialised it. Later accesses hide that one in the shadow memory.
    pub(super) fn made(&self, meeting: Meeting) -> Option<Record> {
        self.places.get(&meeting)?.made
    }

    /// Removes the meetings of a block that has ended.
    pub(super) fn end(&mut self, number: u64) {
        self.places.retain(|meeting, _| match meeting {
            Meeting::Mbarrier { block, .. } => *block != number,
            Meeting::Cluster(cluster) => *cluster != number,
        });
    }
}
