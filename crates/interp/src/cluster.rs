//! What a cluster of blocks is while it runs (manual: "Cluster of Cooperative Thread Arrays").
//!
//! Every block belongs to a cluster; without a directive that says otherwise, to one of its own. The blocks of a cluster are under way together.
//! One of them runs at a time, and the shared memory of the others is then kept here, where its threads can reach it.

use crate::cta::Cta;

/// Most blocks of a cluster.
pub(crate) const MOST_BLOCKS: u64 = 16;

/// A block of the cluster that is not the running one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    /// Its number in the grid.
    pub(crate) number: u64,
    /// Its shared memory while another block runs.
    pub(crate) shared: Vec<u8>,
    /// Whether all its threads have ended.
    pub(crate) ended: bool,
}

/// What the blocks of a cluster share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Common {
    /// Blocks in each direction.
    pub(crate) size: [u32; 3],
    /// Whether the kernel asked for this size.
    pub(crate) explicit: bool,
    /// The blocks by rank.
    pub(crate) peers: Vec<Peer>,
    /// The rank of the running block.
    pub(crate) rank: u32,
    /// Threads of all blocks that have not ended.
    pub(crate) alive: u32,
    /// How often the barrier of the cluster was complete.
    pub(crate) phase: u64,
    /// Those of the threads alive that have arrived at the barrier since.
    pub(crate) arrived: u32,
}

impl Common {
    /// The number of the cluster: that of its first block.
    pub(crate) fn number(&self) -> u64 {
        self.peers.first().map_or(0, |peer| peer.number)
    }

    /// Blocks in all.
    pub(crate) fn blocks(&self) -> u32 {
        self.size.iter().product()
    }
}

/// A cluster under way.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) blocks: Vec<Cta>,
    pub(crate) common: Common,
    /// Rounds, and instructions in them, in which nobody did anything but ask in vain whether an mbarrier's phase is complete.
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

    /// Puts the shared memory of the other blocks where a block that runs can reach it, or, called again, back.
    pub(crate) fn exchange(blocks: &mut [Cta], common: &mut Common, rank: usize) {
        common.rank = rank as u32;
        for (other, (cta, peer)) in blocks.iter_mut().zip(&mut common.peers).enumerate() {
            if other != rank {
                std::mem::swap(&mut cta.shared, &mut peer.shared);
            }
        }
    }
}
