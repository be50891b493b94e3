//! Failures of a block: threads that wait for each other, and signals of the host.

use super::{Block, Strand, Wait};
use crate::abi::Kind;
use crate::grid::Failure;
use crate::memory::AddressSurroundings;
use broadloom_device::FaultKind;

impl Block {
    /// Returns the failure of a block in which no thread can go on.
    pub(super) fn deadlock(&self) -> Failure {
        // SAFETY: the grid is alive while its blocks run.
        let grid = unsafe { &*self.grid };
        let describe = |strand: &Strand| match strand.wait {
            Wait::Barrier(number) => format!("barrier {number}"),
            Wait::All => "barrier 0".to_owned(),
            Wait::Lanes(mask) => format!("the lanes of the mask {mask:#010x}"),
            Wait::Cluster => "the barrier of its cluster".to_owned(),
            Wait::Nothing if strand.asks => "a phase of an mbarrier".to_owned(),
            Wait::Convergence | Wait::Nothing | Wait::Ended => "other lanes of its warp".to_owned(),
        };
        let stuck = self.strands[..self.count].iter().position(|strand| strand.wait != Wait::Ended);
        let Some(stuck) = stuck else { return Failure::new(FaultKind::Deadlock, "no thread of the block can go on") };
        let rank = self.rank(stuck);
        let waiting: Vec<&Strand> = self.strands[stuck..(rank + 1) * self.each]
            .iter()
            .map(|strand| &**strand)
            .filter(|strand| strand.wait != Wait::Ended)
            .collect();
        let (first, alive) = (&self.strands[stuck], self.ctas[rank].alive);
        let mut message = format!(
            "no thread of the block can go on: {} of {} have ended, {alive} wait; the first one waits for {}",
            grid.threads - alive,
            grid.threads,
            describe(first)
        );
        if let Some(other) = waiting.iter().find(|other| other.wait != first.wait) {
            let [x, y, z] = grid.tid(other.warp.first);
            message.push_str(&format!(", thread ({x}, {y}, {z}) for {}", describe(other)));
        }
        let (thread, ctaid) = (Some(first.warp.first), Some(self.ctas[rank].ctaid));
        Failure { thread, ctaid, ..Failure::new(FaultKind::Deadlock, message) }
    }

    /// Translates a signal to a failure.
    pub(super) fn signal(&self, number: i32, address: usize, known: bool) -> Failure {
        let strand = &self.strands[self.current];
        let threads = self.kind == Kind::Threads;
        let place = if threads { String::new() } else { format!(" (warp {})", strand.warp.first / 32) };
        let thread = threads.then_some(strand.warp.first);
        let (kind, message) = match number {
            libc::SIGSEGV | libc::SIGBUS if strand.stack.overflows_at(address) => {
                (FaultKind::StackOverflow, format!("nested calls need more stack than there is{place}"))
            }
            libc::SIGSEGV | libc::SIGBUS if !known => {
                let message = format!("an access to an address that the machine does not have{place}");
                return Failure { thread, ..Failure::new(FaultKind::OutOfBounds, message) };
            }
            libc::SIGSEGV | libc::SIGBUS => {
                // SAFETY: the surroundings outlive the worker.
                let near = unsafe { (*self.surroundings).memory.near(address as u64) };
                match near {
                    AddressSurroundings::Freed(text) => (FaultKind::UseAfterFree, format!("a stray access: {text}{place}")),
                    AddressSurroundings::Outside(text) => (FaultKind::OutOfBounds, format!("a stray access: {text}{place}")),
                    AddressSurroundings::Nowhere => {
                        (FaultKind::OutOfBounds, format!("a stray access: {address:#x} is not in any memory{place}"))
                    }
                }
            }
            libc::SIGFPE => (FaultKind::Trap, format!("an arithmetic exception of the machine{place}")),
            _ => (FaultKind::Trap, format!("an instruction that the machine does not have{place}")),
        };
        let access = matches!(kind, FaultKind::OutOfBounds | FaultKind::UseAfterFree);
        Failure { thread, address: access.then_some(address as u64), ..Failure::new(kind, message) }
    }
}
