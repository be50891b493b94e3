//! Reads of unwritten memory that follow from a missing barrier.
//!
//! A thread that reads too early may find memory that nobody has written yet. If another thread writes it
//! later and nothing orders the two, the race is the finding and the read is its consequence, which is not
//! reported. A read that is ordered before all writes remains a finding.

use super::Checker;
use super::history::Record;
use super::shadow::Area;
use super::unwritten_reads::{ExplainedReads, UnwrittenRead};
use crate::cta::{CodeSite, Cta};
use crate::watch::{Access, ByteMemory};

impl Checker<'_> {
    /// Describes a read of unwritten memory.
    pub(super) fn unwritten_message(&self, access: Access) -> String {
        let space = match access.home {
            ByteMemory::Device(_) => "global",
            ByteMemory::Shared | ByteMemory::Peer(_) => "shared",
            ByteMemory::Local => "local",
            ByteMemory::Param => "parameter",
        };
        format!("{} bytes of {space} memory{} are read, and nothing has written them", access.bytes, self.at(access))
    }

    /// Records a read of unwritten memory that a finding reports.
    pub(super) fn keep_unwritten(&mut self, cta: &Cta, site: CodeSite<'_>, access: Access, finding: usize, is_described: bool) {
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
        for (finding, ExplainedReads { times, race, is_described }) in std::mem::take(&mut self.unwritten.explained) {
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
