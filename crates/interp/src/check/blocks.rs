//! Shadows of the running blocks.
//!
//! Every instruction looks up the running block, which runs for a long time. The last one looked up is found
//! at once, any other by a search.

use super::BlockShadow;

/// Shadows by block number.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    list: Vec<(u64, BlockShadow)>,
    recent: usize,
}

impl Blocks {
    /// Returns the shadow of a block, if it is running.
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut BlockShadow> {
        if self.list.get(self.recent).is_none_or(|(other, _)| *other != number) {
            self.recent = self.list.iter().position(|(other, _)| *other == number)?;
        }
        Some(&mut self.list[self.recent].1)
    }

    /// Returns the shadow of a block; creates it if there is none.
    pub(super) fn of(&mut self, number: u64) -> &mut BlockShadow {
        if self.get_mut(number).is_none() {
            self.insert(number, BlockShadow::default());
        }
        &mut self.list[self.recent].1
    }

    /// Adds a block that starts.
    pub(super) fn insert(&mut self, number: u64, shadow: BlockShadow) {
        self.remove(number);
        self.recent = self.list.len();
        self.list.push((number, shadow));
    }

    /// Removes a block that has ended.
    pub(super) fn remove(&mut self, number: u64) {
        self.list.retain(|(other, _)| *other != number);
    }
}
