//! Nodes that are kept in shared memory, between kernels that become a chain.

use super::Cutter;
use crate::limits::MAX_STAGED;
use crate::tape::entries::{Id, Int, Kind, RecordedAxisMap};
use broadloom_skeleton::Rule;

/// Rule for keeping nodes that are read nearby in shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Staging {
    /// Simple operations in the time of one byte of shared memory.
    pub(crate) balance: u64,
}

impl Cutter<'_> {
    /// Returns whether a node is kept in shared memory: all its users read it nearby.
    pub(super) fn is_staged(&self, id: Id) -> bool {
        let own = self.tape.entry(id);
        let class = self.tape.shapes[own.shape as usize];
        if self.staging.is_none() || class.rank < 2 || !class.rows || !class.tall || class.length.is_some() || !own.ty.is_scalar()
        {
            return false;
        }
        let is_near = |(axis, map): (usize, &RecordedAxisMap)| {
            let near = if axis + 2 >= usize::from(class.rank) { MAX_STAGED } else { 0 };
            let offset = matches!(map.offset, Int::Known(offset) if offset.abs() <= near);
            let is_only = class.flat && axis + 2 < usize::from(class.rank) && map.source.is_none();
            let is_own = map.source == Some(axis as u8) && map.stride == Int::Known(1);
            offset && (is_own || is_only) && map.rule != Rule::Wrap
        };
        let reads_nearby = |user: &Id| match &self.tape.entry(*user).kind {
            Kind::View(maps, _, _) => self.tape.entry(*user).shape == own.shape && maps.iter().enumerate().all(is_near),
            Kind::Elementwise(_) => true,
            _ => false,
        };
        self.users[id as usize].iter().all(reads_nearby)
    }
}
