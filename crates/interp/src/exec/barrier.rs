//! Barriers of a block (manual: "Parallel Synchronization and Communication Instructions: bar, barrier").
//!
//! Threads arrive one by one. A barrier without a count is complete when every thread that has not exited
//! waits at it.

use super::{Engine, NextAction, Stop};
use crate::cta::{BARRIERS, CodeSite, Cta, Wait};
use crate::op::Arg;
use crate::watch::Watch;
use broadloom_device::FaultKind;
use broadloom_ptx::Modifier;

impl<W: Watch> Engine<'_, W> {
    pub(super) fn barrier(&mut self, cta: &mut Cta, site: CodeSite<'_>, registers: usize) -> Result<NextAction, Stop> {
        let (op, index) = (site.op, site.thread);
        let number = self.read(cta, site, registers, &op.reads[0]);
        if number >= BARRIERS as u64 {
            let message = format!("a block has {BARRIERS} barriers; {number} is none of them");
            return Err(self.fault(cta, site, FaultKind::BadBarrier, None, message));
        }
        let reduces = op.has(Modifier::Red);
        // `bar.red` has its predicate last; a count, if given, always comes second.
        let counted = op.reads.len() > if reduces { 2 } else { 1 } && op.reads[1] != Arg::Sink;
        let expected = if counted { Some(self.read(cta, site, registers, &op.reads[1]) as u32) } else { None };
        let predicate = match op.reads.last() {
            Some(arg) if reduces => self.read(cta, site, registers, arg) != 0,
            _ => false,
        };
        let threads = cta.threads.len() as u32;
        if let Some(count) = expected
            && (count == 0 || count > threads.next_multiple_of(32))
        {
            let message = format!("a barrier for {count} threads in a block of {threads}");
            return Err(self.fault(cta, site, FaultKind::BadBarrier, None, message));
        }
        let waits = !op.has(Modifier::Arrive);
        self.watch.arrive(cta, site, number as u8, waits);
        let barrier = &mut cta.barriers[number as usize];
        let first = barrier.waiting.is_empty() && barrier.arrived.is_empty();
        if !first && barrier.expected != expected {
            let message = format!(
                "barrier {number} is used with different numbers of threads at the same time: {} and {}",
                describe(barrier.expected),
                describe(expected)
            );
            return Err(self.fault(cta, site, FaultKind::BadBarrier, None, message));
        }
        barrier.expected = expected;
        barrier.trues += u32::from(predicate);
        if waits {
            barrier.waiting.push(index as u32);
            cta.threads[index].wait = Wait::Barrier(number as u8);
        } else {
            barrier.arrived.push(index as u32);
        }
        self.complete_barriers(cta);
        // The last arriving thread has been released by the completion, and its position is already after the
        // barrier.
        Ok(match (waits, cta.threads[index].ready()) {
            (false, _) => NextAction::Step,
            (true, true) => NextAction::Jumped,
            (true, false) => NextAction::Stop,
        })
    }

    /// Releases every complete barrier.
    pub(super) fn complete_barriers(&mut self, cta: &mut Cta) {
        for number in 0..BARRIERS {
            let barrier = &cta.barriers[number];
            let here = (barrier.waiting.len() + barrier.arrived.len()) as u32;
            let needed = match barrier.expected {
                Some(count) => count.min(cta.threads.len() as u32),
                None => cta.alive.max(1),
            };
            if here == 0 || here < needed {
                continue;
            }
            self.events += 1;
            let barrier = std::mem::take(&mut cta.barriers[number]);
            self.watch.barrier(cta, number as u8, &barrier.waiting, &barrier.arrived);
            for thread in &barrier.waiting {
                let index = *thread as usize;
                self.reduce(cta, index, barrier.trues, here);
                self.resume(cta, index);
            }
        }
    }

    /// Writes the result of `bar.red` for one thread.
    fn reduce(&mut self, cta: &mut Cta, index: usize, trues: u32, all: u32) {
        let program = self.program;
        let Some(frame) = cta.threads[index].frames.last() else { return };
        let registers = frame.registers;
        let Some(op) = program.routine(frame.func).ops.get(frame.pc) else { return };
        if !op.has(Modifier::Red) {
            return;
        }
        let value = if op.has(Modifier::Popc) {
            u64::from(trues)
        } else if op.has(Modifier::And) {
            u64::from(trues == all)
        } else {
            u64::from(trues > 0)
        };
        if let Some(place) = op.writes.first() {
            self.write(cta, index, registers, place, value);
        }
    }
}

fn describe(expected: Option<u32>) -> String {
    expected.map_or_else(|| "all threads".to_owned(), |count| format!("{count} threads"))
}
