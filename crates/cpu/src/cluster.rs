//! Clusters of blocks (manual: "Cluster of Cooperative Thread Arrays").
//!
//! A kernel or its launch sets the cluster size; otherwise each block is its own cluster. The blocks of a
//! cluster run on one thread, so accesses to each other's shared memory need no locks.

use crate::abi::FAR;
use broadloom_device::Launch;
use broadloom_ptx::Function;

/// Number of blocks per cluster in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterShape {
    pub size: [u32; 3],
    /// True if the kernel or its launch sets the size.
    pub explicit: bool,
}

/// Cluster shape that a launch cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidCluster {
    #[error("it asks for clusters (`.explicitcluster`) without a size, and a launch names none")]
    Unsized,
    #[error("it asks for clusters of {0} blocks, and a cluster has 1 to {FAR}")]
    Blocks(u64),
    #[error("its clusters of {size:?} blocks do not divide the grid of {grid:?}")]
    Grid { size: [u32; 3], grid: [u32; 3] },
}

impl Default for ClusterShape {
    fn default() -> Self {
        ClusterShape { size: [1; 3], explicit: false }
    }
}

impl ClusterShape {
    /// Returns the cluster shape of a kernel. It may be invalid: see [`ClusterShape::check`].
    pub(crate) fn of(kernel: &Function) -> ClusterShape {
        ClusterShape::of_launch(kernel, &Launch::linear(1, 1))
    }

    /// Returns the cluster shape of a launch of a kernel.
    pub(crate) fn of_launch(kernel: &Function, launch: &Launch) -> ClusterShape {
        launch.cluster_of(kernel).map_or_else(ClusterShape::default, |size| ClusterShape { size, explicit: true })
    }

    /// Returns the total number of blocks.
    pub(crate) fn blocks(&self) -> u64 {
        self.size.iter().fold(1, |product, &n| product.saturating_mul(u64::from(n)))
    }

    /// Returns whether a cluster has more than one block.
    pub(crate) fn has_others(&self) -> bool {
        self.blocks() > 1
    }

    /// Checks a launch of a kernel with this cluster shape.
    pub(crate) fn check(&self, kernel: &Function, grid: [u32; 3]) -> Result<(), InvalidCluster> {
        if !self.explicit && kernel.directive("explicitcluster").is_some() {
            return Err(InvalidCluster::Unsized);
        }
        let (blocks, size) = (self.blocks(), self.size);
        if blocks == 0 || blocks > FAR {
            return Err(InvalidCluster::Blocks(blocks));
        }
        if !grid.iter().zip(size).all(|(blocks, size)| blocks.is_multiple_of(size)) {
            return Err(InvalidCluster::Grid { size, grid });
        }
        Ok(())
    }

    /// Returns the index of a block in the grid, by the number of its cluster and its rank there.
    pub fn ctaid(&self, grid: [u32; 3], cluster: u64, rank: u64) -> [u32; 3] {
        let [sx, sy, sz] = self.size.map(|size| u64::from(size.max(1)));
        let [cx, cy] = [u64::from(grid[0]) / sx, u64::from(grid[1]) / sy].map(|count| count.max(1));
        let first = [cluster % cx * sx, cluster / cx % cy * sy, cluster / (cx * cy) * sz];
        [first[0] + rank % sx, first[1] + rank / sx % sy, first[2] + rank / (sx * sy)].map(|at| at as u32)
    }
}

/// Arrivals and phases of the threads of a cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClusterBarrier {
    /// Number of threads of all blocks that have not exited.
    pub alive: u32,
    /// Number of completed phases.
    pub phase: u64,
    /// Number of live threads that have arrived in the current phase.
    pub arrived: u32,
}

impl ClusterBarrier {
    pub fn new(alive: u32) -> ClusterBarrier {
        ClusterBarrier { alive, ..ClusterBarrier::default() }
    }

    /// Begins the next phase if every thread that has not exited has arrived. Returns whether it did.
    pub fn complete(&mut self) -> bool {
        let complete = self.arrived > 0 && self.arrived >= self.alive;
        if complete {
            self.phase += 1;
            self.arrived = 0;
        }
        complete
    }
}
