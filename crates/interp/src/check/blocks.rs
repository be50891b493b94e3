//! Shadows of the running blocks.
//!
//! Every instruction looks up the running block, which runs for a long time. The last one looked up is found
//! at once, any other by a search.

use super::clock::{Clock, PublishedClock};
use super::copies::Copies;
use super::defined::Bytes;
use super::value::Doubt;
use crate::watch::Scope;
use std::collections::{HashMap, HashSet};

/// Checker state of a thread.
#[derive(Debug, Default)]
pub(super) struct ThreadShadow {
    pub(super) clock: Clock,
    pub(super) time: u32,
    /// Knowledge seen by strong reads, to be learnt at the next fence.
    pub(super) pending: Option<PublishedClock>,
    /// Knowledge released by the last fence, for the strong writes after it.
    pub(super) fenced: Option<(PublishedClock, Scope)>,
    /// Times of the lanes of its warp when they last met it at a warp instruction; recorded once there are
    /// volatile accesses.
    pub(super) met: Vec<u32>,
    pub(super) registers: Vec<Doubt>,
    pub(super) local: Bytes,
    /// Origins of undefined bytes of local memory, by offset, if an undefined value was stored there; and
    /// whether it was computed.
    pub(super) local_origins: HashMap<u64, (u32, bool)>,
    /// Origins that a finding has named for this thread: their consequences are not reported again.
    pub(super) said: HashSet<u32>,
}

/// Checker state of a block.
#[derive(Debug, Default)]
pub(super) struct BlockShadow {
    pub(super) threads: Vec<ThreadShadow>,
    pub(super) shared: Bytes,
    pub(super) copies: Copies,
    /// True if there was a volatile access to its shared memory.
    pub(super) is_volatile: bool,
}

/// Shadows by block number.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    list: Vec<(u64, BlockShadow)>,
    recent: usize,
}

impl Blocks {
    /// Returns the shadow of a block, if it is running.
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut BlockShadow> {
        if self.list.get(self.recent).is_none_or(|(other, _)| *other != number) {
            self.recent = self.list.iter().position(|(other, _)| *other == number)?;
        }
        Some(&mut self.list[self.recent].1)
    }

    /// Returns the shadow of a block; creates it if there is none.
    pub(super) fn of(&mut self, number: u64) -> &mut BlockShadow {
        if self.get_mut(number).is_none() {
            self.insert(number, BlockShadow::default());
        }
        &mut self.list[self.recent].1
    }

    /// Adds a block that starts.
    pub(super) fn insert(&mut self, number: u64, shadow: BlockShadow) {
        self.remove(number);
        self.recent = self.list.len();
        self.list.push((number, shadow));
    }

    /// Removes a block that has ended.
    pub(super) fn remove(&mut self, number: u64) {
        self.list.retain(|(other, _)| *other != number);
    }
}
