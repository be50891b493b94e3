//! Fast path of barriers: whole warps at the barrier for all threads are only counted, without a list of
//! waiting strands. Most kernels need no more.

use super::{Block, Wait};
use crate::abi::Kind;
use crate::barrier::Arrival;

impl Block {
    /// Returns whether whole warps that reach barrier 0 are only counted. That is so in a cluster of one
    /// block in which no thread has exited, while no strand is at any other barrier.
    #[inline(always)]
    pub(crate) fn gathers(&self) -> bool {
        // SAFETY: the grid is alive while its blocks run.
        let threads = unsafe { (*self.grid).threads };
        match self.ctas.as_slice() {
            [cta] => self.kind == Kind::Warps && cta.alive == threads && cta.barriers.are_unused(),
            _ => false,
        }
    }

    /// Records the arrival of a whole warp at barrier 0, where all others wait in the same way or have yet to
    /// arrive. Returns whether the barrier is complete.
    #[inline(always)]
    pub(crate) fn gather(&mut self, index: usize) -> bool {
        self.gathered += 1;
        if self.gathered < self.count {
            self.strands[index].wait = Wait::All;
            return false;
        }
        self.gathered = 0;
        self.events += 1;
        for strand in &mut self.strands[..self.count] {
            strand.wait = Wait::Nothing;
        }
        true
    }

    /// Converts the counted strands to ordinary arrivals.
    #[cold]
    pub(crate) fn disperse(&mut self) {
        // SAFETY: the grid is alive while its blocks run.
        let threads = unsafe { (*self.grid).threads };
        self.gathered = 0;
        for index in 0..self.count {
            if self.strands[index].wait == Wait::All {
                let lanes = self.lane_mask(index).count_ones();
                let arrival = Arrival { strand: index as u32, threads: lanes, trues: 0, expected: None, waits: true };
                self.strands[index].wait = Wait::Barrier(0);
                // The arrival is valid: the barrier exists and all arrived in the same way.
                let _ = self.ctas[0].barriers.arrive(0, arrival, threads);
            }
        }
    }
}
