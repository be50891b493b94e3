//! Occupancy.

use crate::boundary::exported;
use crate::pointer::{In, Out};
use crate::shared_api::launches::asked;
pub(crate) use crate::shared_api::occupancy::*;
use crate::types::LaunchConfig;

exported! { runtime
    fn cudaOccupancyMaxPotentialClusterSize(call, size: Out<i32>, function: usize, config: In<LaunchConfig>) {
        size.wanted()?;
        let config = config.get()?;
        size.set(call.runtime.most_cluster_blocks(&*call.runtime.kernel(function)?, config.block.list(), config.shared)?)
    }

    fn cudaOccupancyMaxActiveClusters(call, count: Out<i32>, function: usize, config: In<LaunchConfig>) {
        count.wanted()?;
        let config = config.get()?;
        let (_, cluster) = asked(In::at(config.attributes), config.count)?;
        count.set(call.runtime.active_clusters(&*call.runtime.kernel(function)?, config.block.list(), config.shared, cluster)?)
    }
}
