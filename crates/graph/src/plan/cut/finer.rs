//! The finest cut of stencils. Kernels are joined from it by the cost of their patches.

use super::Cutter;
use crate::tape::entries::{Id, Int, Kind};

impl Cutter<'_> {
    /// Returns whether a node may not be kept for its uses.
    pub(super) fn is_loose(&self, id: Id) -> bool {
        self.finer.is_some_and(|loose| loose.contains(&id))
    }

    /// Returns whether the finest cut keeps a node: neighbours of its elements are read, or it is combined
    /// with a node behind more windows. In the second case it would otherwise be computed there, beside
    /// patches of another shape.
    pub(super) fn is_apart(&self, id: Id, windows: &[u32]) -> bool {
        let users = &self.users[id as usize];
        if self.finer.is_none() || self.is_loose(id) || !self.tape.fits_patches(id) || users.is_empty() || self.slides(id) {
            return false;
        }
        let moves = |user: &Id| match &self.tape.entry(*user).kind {
            Kind::View(maps, ..) => maps.iter().any(|map| map.offset != Int::Known(0)),
            _ => false,
        };
        let is_deeper = |user: &Id| windows[*user as usize] > windows[id as usize];
        let combines = |user: &Id| matches!(self.tape.entry(*user).kind, Kind::Elementwise(_)) && is_deeper(user);
        users.iter().any(moves) || windows[id as usize] > 0 && users.iter().all(combines)
    }

    /// Returns for each node the maximum number of consecutive windows on a path to it.
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
}
