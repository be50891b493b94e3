//! Running cluster of blocks (manual: "Cluster of Cooperative Thread Arrays").
//!
//! Every block belongs to a cluster; without a directive that says otherwise, to its own one. The blocks of a
//! cluster are resident together. One of them runs at a time. The shared memory of the others is then kept
//! here, where its threads can access it.

use crate::cta::Cta;

/// Maximum blocks of a cluster.
pub(crate) const MOST_BLOCKS: u64 = 16;

/// Block of the cluster that is not running.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    /// Number in the grid.
    pub(crate) number: u64,
    /// Its shared memory while another block runs.
    pub(crate) shared: Vec<u8>,
    /// True if all its threads have exited.
    pub(crate) ended: bool,
}

/// State that the blocks of a cluster share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Common {
    /// Blocks in each direction.
    pub(crate) size: [u32; 3],
    /// True if the kernel requested this size.
    pub(crate) explicit: bool,
    /// Blocks by rank.
    pub(crate) peers: Vec<Peer>,
    /// Rank of the running block.
    pub(crate) rank: u32,
    /// Number of threads of all blocks that have not exited.
    pub(crate) alive: u32,
    /// Number of completed phases of the cluster barrier.
    pub(crate) phase: u64,
    /// Number of live threads that have arrived at the barrier in the current phase.
    pub(crate) arrived: u32,
}

impl Common {
    /// Returns the number of the cluster: that of its first block.
    pub(crate) fn number(&self) -> u64 {
        self.peers.first().map_or(0, |peer| peer.number)
    }

    /// Returns the total number of blocks.
    pub(crate) fn blocks(&self) -> u32 {
        self.size.iter().product()
    }
}

/// Resident cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) blocks: Vec<Cta>,
    pub(crate) common: Common,
    /// Number of rounds, and of instructions in them, in which threads only polled incomplete mbarrier
    /// phases.
    pub(crate) idle_rounds: u64,
    pub(crate) idle_steps: u64,
}

impl Cluster {
    pub(crate) fn new(blocks: Vec<Cta>, size: [u32; 3], explicit: bool) -> Cluster {
        let peers = blocks.iter().map(|cta| Peer { number: cta.number, shared: vec![], ended: false }).collect();
        let alive = blocks.iter().map(|cta| cta.alive).sum();
        let common = Common { size, explicit, peers, alive, ..Common::default() };
        Cluster { blocks, common, idle_rounds: 0, idle_steps: 0 }
    }

    /// Moves the shared memory of the other blocks to where the running block can access it, or, called
    /// again, back.
    pub(crate) fn exchange(blocks: &mut [Cta], common: &mut Common, rank: usize) {
        common.rank = rank as u32;
        for (other, (cta, peer)) in blocks.iter_mut().zip(&mut common.peers).enumerate() {
            if other != rank {
                std::mem::swap(&mut cta.shared, &mut peer.shared);
            }
        }
    }
}
