//! Nodes that are kept in shared memory, between kernels that become a chain.

use super::{Cutter, Reason};
use crate::limits::MAX_STAGED;
use crate::tape::{Along, Id, Int, Kind};
use crate::view::Rule;
use broadloom_skeleton::cost;

/// Rule for keeping nodes that are read nearby in shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Staging {
    /// Simple operations in the time of a byte of shared memory.
    pub(crate) balance: u64,
    /// True if nodes are kept that are ready before what they are combined with.
    pub(crate) early: bool,
}

impl Cutter<'_> {
    /// Returns whether a node is kept in shared memory: all that use it read it nearby.
    pub(super) fn is_staged(&self, id: Id) -> bool {
        let own = self.tape.entry(id);
        let class = self.tape.shapes[own.shape as usize];
        if self.staging.is_none() || class.rank < 2 || !class.rows || !class.tall || class.length.is_some() || !own.ty.is_scalar()
        {
            return false;
        }
        let is_near = |(axis, map): (usize, &Along)| {
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

    /// Returns for each node how many windows are behind each other on the longest way to it.
    pub(super) fn windows(&self) -> Vec<u32> {
        let mut windows = vec![0u32; self.tape.entries.len()];
        for id in 0..self.tape.entries.len() {
            let entry = self.tape.entry(id as Id);
            let before = entry.inputs.iter().map(|input| windows[*input as usize]).max().unwrap_or(0);
            let is_moved = matches!(&entry.kind, Kind::View(maps, ..) if maps.iter().any(|map| map.offset != Int::Known(0)));
            windows[id] = before + u32::from(is_moved);
        }
        windows
    }

    /// Keeps a node that is combined with one behind more windows, where that pays: in a chain it would be computed later, from nodes that are kept until then.
    pub(super) fn keep_early(&mut self, id: Id, windows: &[u32]) {
        let is_deeper = |user: &Id| windows[*user as usize] > windows[id as usize];
        let combines = |user: &Id| matches!(self.tape.entry(*user).kind, Kind::Elementwise(_)) && is_deeper(user);
        let is_early = self.staging.is_some_and(|staging| staging.early)
            && windows[id as usize] > 0
            && !self.kept[id as usize]
            && self.users[id as usize].iter().all(combines)
            && self.is_staged(id);
        let Some(recomputed) = self.fused(&[id]).filter(|_| is_early).map(|fused| fused.cost()) else { return };
        let kept = self.traffic(id) + cost::READ;
        if recomputed > kept {
            self.keep(id, Reason::Early { recomputed, kept });
        }
    }
}
