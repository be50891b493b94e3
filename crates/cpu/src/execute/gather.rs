//! Whole warps at the barrier for all, only counted: what most kernels do, without a list of who waits.

use super::{Block, Wait};
use crate::abi::Kind;
use crate::barrier::Arrival;

impl Block {
    /// Whether whole warps that come to barrier 0 are only counted: in a cluster of one block of which no thread has ended, while
    /// nobody is at any other barrier.
    #[inline(always)]
    pub(crate) fn gathers(&self) -> bool {
        // SAFETY: the grid is alive while its blocks run.
        let threads = unsafe { (*self.grid).threads };
        match self.ctas.as_slice() {
            [cta] => self.kind == Kind::Warps && cta.alive == threads && cta.barriers.are_unused(),
            _ => false,
        }
    }

    /// Comes to barrier 0 with a whole warp, all others waiting likewise or still to come; whether the barrier is complete.
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

    /// Makes ordinary arrivals of the strands that are only counted.
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
                // Nothing is wrong with it: the barrier exists and all came alike.
                let _ = self.ctas[0].barriers.arrive(0, arrival, threads);
            }
        }
    }
}
