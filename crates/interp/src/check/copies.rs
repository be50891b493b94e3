//! Asynchronous copies into shared memory that are not waited for yet.

use super::history::Record;
use std::collections::HashMap;

/// Copies of a block.
#[derive(Debug, Default)]
pub(super) struct Copies {
    under_way: Vec<Copy>,
    /// Number of groups that each thread has committed.
    closed: HashMap<usize, u64>,
}

#[derive(Debug)]
struct Copy {
    thread: usize,
    /// Number of its group among those of its thread.
    group: u64,
    offset: u64,
    bytes: u64,
    issued: Record,
}

impl Copies {
    fn closed(&self, thread: usize) -> u64 {
        self.closed.get(&thread).copied().unwrap_or(0)
    }

    /// Adds a copy that a thread has issued.
    pub(super) fn add(&mut self, thread: usize, offset: u64, bytes: u64, issued: Record) {
        let group = self.closed(thread);
        self.under_way.push(Copy { thread, group, offset, bytes, issued });
    }

    /// Commits a group of a thread.
    pub(super) fn commit(&mut self, thread: usize) {
        *self.closed.entry(thread).or_default() += 1;
    }

    /// Removes the copies that a thread has waited for: until at most `left` of its groups are pending, or
    /// all of its copies.
    pub(super) fn wait(&mut self, thread: usize, left: Option<u64>) {
        let closed = self.closed(thread);
        self.under_way.retain(|copy| {
            let goes_on = left.is_some_and(|left| copy.group.saturating_add(left) >= closed);
            copy.thread != thread || goes_on
        });
    }

    /// Returns a pending copy that overlaps some bytes.
    pub(super) fn at(&self, offset: u64, bytes: u64) -> Option<Record> {
        let touches = |copy: &&Copy| copy.offset < offset + bytes && offset < copy.offset + copy.bytes;
        self.under_way.iter().find(touches).map(|copy| copy.issued)
    }
}
