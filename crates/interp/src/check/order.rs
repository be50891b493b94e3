//! Order of findings: a cause before its consequences.
//!
//! Findings of an earlier launch come first. Within a launch, the order is:
//!
//! 1. Missing synchronisation: races, misused barriers, exchanges with missing lanes. Reads after one are
//!    unpredictable.
//! 2. Stray writes. They are not performed, so later reads find the old value.
//! 3. Everything else in the order of execution.
//!
//! An access whose address was computed from an uninitialised value comes after the finding about that value,
//! for any kind.

use super::{Finding, FindingKind, Findings};

/// Class of a finding; lower ones are reported first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Missing synchronisation.
    Order,
    /// A write outside of live memory, or at a misaligned address.
    StrayWrite,
    /// Anything else.
    Other,
}

impl Rank {
    /// Returns the class of a kind of finding, at an instruction that writes memory or does not.
    pub(super) fn of(kind: FindingKind, writes: bool) -> Rank {
        match kind {
            FindingKind::Race
            | FindingKind::NonCoherent
            | FindingKind::DivergentBarrier
            | FindingKind::BadBarrier
            | FindingKind::InactiveLane => Rank::Order,
            FindingKind::OutOfBounds | FindingKind::Misaligned | FindingKind::WrongSpace | FindingKind::UseAfterFree
                if writes =>
            {
                Rank::StrayWrite
            }
            FindingKind::OutOfBounds | FindingKind::Misaligned | FindingKind::WrongSpace | FindingKind::UseAfterFree => {
                Rank::Other
            }
            FindingKind::BadFree | FindingKind::UninitialisedMemory | FindingKind::UninitialisedRegister => Rank::Other,
            FindingKind::Leak | FindingKind::Stopped => Rank::Other,
        }
    }
}

impl Findings {
    /// Adds a finding. `cause` is the index of the finding that it follows from.
    pub(crate) fn add(&mut self, finding: Finding, rank: Rank, cause: Option<usize>) {
        self.list.push(finding);
        self.ranks.push((rank, cause));
    }

    /// Records that a finding follows from another one and is not reported. What follows from it follows from
    /// the other one.
    pub(super) fn explain(&mut self, finding: usize, by: usize) {
        self.explained.insert(finding, by);
    }

    /// Sorts the findings from an index on, those of one launch, into reporting order, and removes those that
    /// others explain.
    pub(crate) fn order_from(&mut self, first: usize) {
        let explained = std::mem::take(&mut self.explained);
        for (_, cause) in &mut self.ranks[first..] {
            *cause = cause.map(|cause| explained.get(&cause).copied().unwrap_or(cause));
        }
        let mut order = order(first, &self.ranks[first..]);
        order.retain(|index| !explained.contains_key(index));
        self.places.retain(|_, index| !explained.contains_key(index));
        if explained.is_empty() && order.iter().enumerate().all(|(place, index)| first + place == *index) {
            return;
        }
        let mut places = vec![0; self.list.len()];
        for (place, index) in order.iter().enumerate() {
            places[*index] = first + place;
        }
        let tail: Vec<Finding> = order.iter().map(|index| self.list[*index].clone()).collect();
        let ranks: Vec<_> = order.iter().map(|index| self.ranks[*index]).collect();
        self.list.splice(first.., tail);
        self.ranks.splice(first.., ranks);
        for index in self.places.values_mut().filter(|index| **index >= first) {
            *index = places[*index];
        }
    }
}

/// Returns the order of findings that begin at an index.
pub fn order(first: usize, ranks: &[(Rank, Option<usize>)]) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..ranks.len()).collect();
    indices.sort_by_key(|index| ranks[*index].0);
    let mut told = vec![false; ranks.len()];
    let mut order = vec![];
    for index in indices {
        let mut chain = vec![];
        let mut next = Some(index);
        while let Some(at) = next.filter(|at| !told[*at]) {
            told[at] = true;
            chain.push(at);
            next = ranks[at].1.and_then(|cause| cause.checked_sub(first)).filter(|cause| *cause < ranks.len());
        }
        order.extend(chain.into_iter().rev().map(|index| first + index));
    }
    order
}
