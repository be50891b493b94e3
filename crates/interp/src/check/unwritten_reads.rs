//! Reads of unwritten memory in a launch, and the races that explain them.

use super::history::Record;
use super::shadow::Area;
use crate::watch::Access;
use rustc_hash::FxHashMap;
use std::collections::HashMap;

/// Bytes of a word.
const WORD: u64 = 4;
/// Maximum bytes of an access.
const MOST_BYTES: u64 = 64;
/// Maximum number of reads that are kept; the rest are findings.
const MOST_READS: usize = 1 << 20;

/// Reads of unwritten memory by one thread and instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnwrittenRead {
    pub(super) reader: Record,
    pub(super) access: Access,
    pub(super) times: u64,
    pub(super) finding: usize,
    /// True if the finding describes this read.
    pub(super) is_described: bool,
}

impl UnwrittenRead {
    fn overlaps(&self, access: Access) -> bool {
        self.access.offset < access.offset + access.bytes && access.offset < self.access.offset + self.access.bytes
    }

    fn repeats(&self, earlier: &UnwrittenRead) -> bool {
        let by = |read: &UnwrittenRead| (read.reader.block, read.reader.thread, read.reader.func, read.reader.inst);
        by(self) == by(earlier) && self.access.offset == earlier.access.offset
    }
}

/// Reads of a finding that races explain.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExplainedReads {
    pub(super) times: u64,
    /// The first of the races.
    pub(super) race: usize,
    pub(super) is_described: bool,
}

/// Reads of unwritten memory in a launch.
#[derive(Debug, Default)]
pub(super) struct UnwrittenReads {
    /// By area and first word.
    reads: FxHashMap<Area, FxHashMap<u64, Vec<UnwrittenRead>>>,
    count: usize,
    /// By finding.
    pub(super) explained: HashMap<usize, ExplainedReads>,
}

impl UnwrittenReads {
    pub(super) fn add(&mut self, area: Area, read: UnwrittenRead) {
        let here = self.reads.entry(area).or_default().entry(read.access.offset / WORD).or_default();
        match here.last_mut() {
            Some(earlier) if read.repeats(earlier) => {
                earlier.reader = read.reader;
                earlier.times += read.times;
            }
            Some(_) | None if self.count < MOST_READS => {
                here.push(read);
                self.count += 1;
            }
            Some(_) | None => {}
        }
    }

    /// Removes and returns the reads that overlap an access.
    pub(super) fn take(&mut self, area: Area, access: Access) -> Vec<UnwrittenRead> {
        let mut taken = vec![];
        let Some(words) = self.reads.get_mut(&area) else { return taken };
        let first = access.offset.saturating_sub(MOST_BYTES) / WORD;
        for word in first..(access.offset + access.bytes).div_ceil(WORD) {
            if let Some(here) = words.get_mut(&word) {
                taken.extend(here.extract_if(.., |read| read.overlaps(access)));
                if here.is_empty() {
                    words.remove(&word);
                }
            }
        }
        self.count -= taken.len();
        taken
    }

    pub(super) fn explain(&mut self, read: &UnwrittenRead, race: usize) {
        let explained = self.explained.entry(read.finding).or_insert(ExplainedReads { times: 0, race, is_described: false });
        explained.times += read.times;
        explained.is_described |= read.is_described;
    }

    /// Returns a read of a finding that no race explains.
    pub(super) fn other(&self, finding: usize) -> Option<UnwrittenRead> {
        let mut all = self.reads.values().flat_map(|words| words.values()).flatten();
        let earliest = all.by_ref().filter(|read| read.finding == finding);
        earliest.min_by_key(|read| (read.reader.block, read.reader.thread, read.access.offset)).copied()
    }
}
