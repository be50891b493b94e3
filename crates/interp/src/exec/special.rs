//! Special registers (manual: "Special Registers").

use super::Engine;
use crate::cta::Cta;
use crate::memory::SHARED_BASE;
use crate::watch::Watch;
use broadloom_ptx::Special;

impl<W: Watch> Engine<'_, W> {
    /// The value of a special register for a thread.
    ///
    /// The machine that they describe: one multiprocessor, every block its own cluster, a clock that counts the instructions
    /// of the whole grid and a timer that counts nanoseconds since the launch.
    pub(super) fn special(&self, cta: &Cta, index: usize, special: Special) -> u64 {
        let thread = &cta.threads[index];
        let (grid, block) = (self.launch.grid, self.launch.block);
        let lane = index as u32 % 32;
        let name = special.text();
        let axis = match name.rsplit_once('.') {
            Some((_, "x")) => Some(0),
            Some((_, "y")) => Some(1),
            Some((_, "z")) => Some(2),
            Some((_, _)) => Some(3),
            None => None,
        };
        let of = |values: [u32; 3], last: u32| u64::from(axis.map_or(last, |axis| values.get(axis).copied().unwrap_or(last)));
        let clock = self.steps + cta.steps;
        match name.split('.').next().unwrap_or(name) {
            "%tid" => of(thread.id, 0),
            "%ntid" => of(block, 1),
            "%ctaid" => of(cta.id, 0),
            "%nctaid" => of(grid, 1),
            "%laneid" => u64::from(lane),
            "%warpid" => (index / 32) as u64,
            "%nwarpid" => cta.warps() as u64,
            "%smid" => 0,
            "%nsmid" => 1,
            "%gridid" => 1,
            "%is_explicit_cluster" => 0,
            "%clusterid" => of(cta.id, 0),
            "%nclusterid" => of(grid, 1),
            "%cluster_ctaid" => 0,
            "%cluster_nctaid" => 1,
            "%cluster_ctarank" => 0,
            "%cluster_nctarank" => 1,
            "%lanemask_eq" => 1 << lane,
            "%lanemask_le" => (2u64 << lane) - 1,
            "%lanemask_lt" => (1u64 << lane) - 1,
            "%lanemask_ge" => !((1u64 << lane) - 1) & 0xffff_ffff,
            "%lanemask_gt" => !((2u64 << lane) - 1) & 0xffff_ffff,
            "%clock" => clock & 0xffff_ffff,
            "%clock_hi" => clock >> 32,
            "%clock64" => clock,
            "%globaltimer" => self.started.elapsed().as_nanos() as u64 + 1_000_000_000,
            "%globaltimer_lo" => (self.started.elapsed().as_nanos() as u64 + 1_000_000_000) & 0xffff_ffff,
            "%globaltimer_hi" => (self.started.elapsed().as_nanos() as u64 + 1_000_000_000) >> 32,
            "%total_smem_size" | "%aggr_smem_size" => self.shared_bytes,
            "%dynamic_smem_size" => u64::from(self.launch.shared_bytes),
            "%reserved_smem_offset_begin" | "%reserved_smem_offset_end" | "%reserved_smem_offset_cap" => {
                SHARED_BASE - SHARED_BASE
            }
            "%current_graph_exec" => 0,
            // Performance counters, environment registers and reserved offsets read as zero, as on a machine that has not set them.
            _ => 0,
        }
    }
}
