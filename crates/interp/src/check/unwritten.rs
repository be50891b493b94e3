//! Reads of unwritten memory that follow from a missing barrier.
//!
//! A thread that reads too early may find memory that nobody has written yet. If another thread writes it
//! later and nothing orders the two, the race is the finding and the read is its consequence, which is not
//! reported. A read that is ordered before all writes remains a finding.

use super::Checker;
use super::history::Record;
use super::shadow::Area;
use crate::cta::{Cta, Site};
use crate::watch::{Access, Home};
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
struct UnwrittenRead {
    reader: Record,
    access: Access,
    times: u64,
    finding: usize,
    /// True if the finding describes this read.
    is_described: bool,
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
struct Explained {
    times: u64,
    /// The first of the races.
    race: usize,
    is_described: bool,
}

/// Reads of unwritten memory in a launch.
#[derive(Debug, Default)]
pub(super) struct UnwrittenReads {
    /// By area and first word.
    reads: FxHashMap<Area, FxHashMap<u64, Vec<UnwrittenRead>>>,
    count: usize,
    /// By finding.
    explained: HashMap<usize, Explained>,
}

impl UnwrittenReads {
    fn add(&mut self, area: Area, read: UnwrittenRead) {
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
    fn take(&mut self, area: Area, access: Access) -> Vec<UnwrittenRead> {
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

    fn explain(&mut self, read: &UnwrittenRead, race: usize) {
        let explained = self.explained.entry(read.finding).or_insert(Explained { times: 0, race, is_described: false });
        explained.times += read.times;
        explained.is_described |= read.is_described;
    }

    /// Returns a read of a finding that no race explains.
    fn other(&self, finding: usize) -> Option<UnwrittenRead> {
        let mut all = self.reads.values().flat_map(|words| words.values()).flatten();
        let earliest = all.by_ref().filter(|read| read.finding == finding);
        earliest.min_by_key(|read| (read.reader.block, read.reader.thread, read.access.offset)).copied()
    }
}

impl Checker<'_> {
    /// Describes a read of unwritten memory.
    pub(super) fn unwritten_message(&self, access: Access) -> String {
        let space = match access.home {
            Home::Device(_) => "global",
            Home::Shared | Home::Peer(_) => "shared",
            Home::Local => "local",
            Home::Param => "parameter",
        };
        format!("{} bytes of {space} memory{} are read, and nothing has written them", access.bytes, self.at(access))
    }

    /// Records a read of unwritten memory that a finding reports.
    pub(super) fn keep_unwritten(&mut self, cta: &Cta, site: Site<'_>, access: Access, finding: usize, is_described: bool) {
        let block = cta.number as u32;
        let Some(area) = Area::of(access.home, block) else { return };
        let time = self.thread(cta, site.thread).time;
        let (func, inst, manner) = (site.func, site.op.inst, super::races::manner(site, access));
        let reader = Record { block, thread: site.thread as u16, time, func, inst, manner };
        self.unwritten.add(area, UnwrittenRead { reader, access, times: 1, finding, is_described });
    }

    /// Explains the reads of unwritten memory with which a write races.
    pub(super) fn explain_unwritten(&mut self, cta: &Cta, writer: &Record, area: Area, access: Access, race: usize) {
        for read in self.unwritten.take(area, access) {
            let excused = read.reader.manner.excuses(writer.manner, read.reader.block == writer.block);
            if excused || self.ordered(cta, writer.thread.into(), &read.reader) {
                self.unwritten.add(area, read);
            } else {
                self.unwritten.explain(&read, race);
            }
        }
    }

    /// Removes the reads that races explain from the findings of the launch. A finding that keeps others
    /// describes one of them.
    pub(crate) fn conclude(&mut self) {
        for (finding, Explained { times, race, is_described }) in std::mem::take(&mut self.unwritten.explained) {
            let left = self.findings.list[finding].count.saturating_sub(times);
            self.findings.list[finding].count = left;
            if left == 0 {
                self.findings.explain(finding, race);
            } else if is_described && let Some(other) = self.unwritten.other(finding) {
                let message = self.unwritten_message(other.access);
                let (block, thread) = (self.block_index(other.reader.block), self.thread_index(other.reader.thread));
                let finding = &mut self.findings.list[finding];
                finding.message = message;
                if let Some(location) = &mut finding.location {
                    (location.block, location.thread) = (block, thread);
                }
            }
        }
    }
}
