//! Special registers (manual: "Special Registers").

use super::Engine;
use crate::cta::Cta;
use crate::watch::Watch;
use broadloom_ptx::{Special, specials};

/// Start value of the timer, so that it never reads as zero.
const TIMER_START: u64 = 1_000_000_000;

impl<W: Watch> Engine<'_, W> {
    /// Returns the value of a special register for a thread.
    ///
    /// The registers describe this machine: one multiprocessor, a clock that counts the instructions of the
    /// whole grid, a timer that counts nanoseconds since the launch, no performance counters, no shared
    /// memory reserved by the system. Environment registers are those of a CUDA driver: 1 and 2 hold the
    /// address of the workspace of grid-wide barriers, high half first.
    pub(super) fn special(&self, cta: &Cta, index: usize, special: Special) -> u64 {
        let thread = &cta.threads[index];
        let (grid, block) = (self.launch.grid, self.launch.block);
        let cluster = self.cluster.size;
        let lane = index as u32 % 32;
        let clock = self.steps + cta.steps;
        let timer = || self.started.elapsed().as_nanos() as u64 + TIMER_START;
        match special {
            Special::TidX => u64::from(thread.id[0]),
            Special::TidY => u64::from(thread.id[1]),
            Special::TidZ => u64::from(thread.id[2]),
            Special::NtidX => u64::from(block[0]),
            Special::NtidY => u64::from(block[1]),
            Special::NtidZ => u64::from(block[2]),
            Special::CtaidX => u64::from(cta.id[0]),
            Special::CtaidY => u64::from(cta.id[1]),
            Special::CtaidZ => u64::from(cta.id[2]),
            Special::NctaidX => u64::from(grid[0]),
            Special::NctaidY => u64::from(grid[1]),
            Special::NctaidZ => u64::from(grid[2]),
            Special::ClusteridX => u64::from(cta.id[0] / cluster[0]),
            Special::ClusteridY => u64::from(cta.id[1] / cluster[1]),
            Special::ClusteridZ => u64::from(cta.id[2] / cluster[2]),
            Special::NclusteridX => u64::from(grid[0] / cluster[0]),
            Special::NclusteridY => u64::from(grid[1] / cluster[1]),
            Special::NclusteridZ => u64::from(grid[2] / cluster[2]),
            Special::ClusterCtaidX => u64::from(cta.id[0] % cluster[0]),
            Special::ClusterCtaidY => u64::from(cta.id[1] % cluster[1]),
            Special::ClusterCtaidZ => u64::from(cta.id[2] % cluster[2]),
            Special::ClusterNctaidX => u64::from(cluster[0]),
            Special::ClusterNctaidY => u64::from(cluster[1]),
            Special::ClusterNctaidZ => u64::from(cluster[2]),
            Special::TidW | Special::CtaidW | Special::ClusteridW | Special::ClusterCtaidW => 0,
            Special::NtidW | Special::NctaidW | Special::NclusteridW | Special::ClusterNctaidW => 1,
            Special::ClusterCtarank => u64::from(self.cluster.rank),
            Special::ClusterNctarank => u64::from(self.cluster.blocks()),
            Special::IsExplicitCluster => u64::from(self.cluster.explicit),
            Special::Laneid => u64::from(lane),
            Special::Warpid => (index / 32) as u64,
            Special::Nwarpid => cta.warps() as u64,
            Special::Smid => 0,
            Special::Nsmid | Special::Gridid => 1,
            Special::LanemaskEq => 1 << lane,
            Special::LanemaskLe => (2 << lane) - 1,
            Special::LanemaskLt => (1 << lane) - 1,
            Special::LanemaskGe => !((1 << lane) - 1) & 0xffff_ffff,
            Special::LanemaskGt => !((2 << lane) - 1) & 0xffff_ffff,
            Special::Clock => clock & 0xffff_ffff,
            Special::ClockHi => clock >> 32,
            Special::Clock64 => clock,
            Special::Globaltimer => timer(),
            Special::GlobaltimerLo => timer() & 0xffff_ffff,
            Special::GlobaltimerHi => timer() >> 32,
            Special::TotalSmemSize | Special::AggrSmemSize => self.shared_bytes,
            Special::DynamicSmemSize => u64::from(self.launch.shared_bytes),
            Special::Envreg1 => self.workspace >> 32,
            Special::Envreg2 => self.workspace & 0xffff_ffff,
            specials!(zero) => 0,
        }
    }
}
