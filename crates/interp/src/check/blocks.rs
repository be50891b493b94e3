//! Shadows of the blocks under way.
//!
//! Every instruction asks for the block that runs, and it runs for a long while: the one asked for last is found at once, any
//! other by a search.

use super::BlockShadow;

/// Shadows by the number of their block.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    list: Vec<(u64, BlockShadow)>,
    recent: usize,
}

impl Blocks {
    /// The shadow of a block, if it is under way.
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut BlockShadow> {
        if self.list.get(self.recent).is_none_or(|(other, _)| *other != number) {
            self.recent = self.list.iter().position(|(other, _)| *other == number)?;
        }
        Some(&mut self.list[self.recent].1)
    }

    /// The shadow of a block, made when there is none yet.
    pub(super) fn of(&mut self, number: u64) -> &mut BlockShadow {
        if self.get_mut(number).is_none() {
            self.insert(number, BlockShadow::default());
        }
        &mut self.list[self.recent].1
    }

    /// A block starts.
    pub(super) fn insert(&mut self, number: u64, shadow: BlockShadow) {
        self.remove(number);
        self.recent = self.list.len();
        self.list.push((number, shadow));
    }

    /// A block has ended.
    pub(super) fn remove(&mut self, number: u64) {
        self.list.retain(|(other, _)| *other != number);
    }
}
