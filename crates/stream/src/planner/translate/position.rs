//! Positions on the tapes within a firing.
//!
//! A position is *fixed* if it follows from constants and loop counters. For example, a loop that pops two
//! items in each round reads the item at twice its counter. If pops or pushes depend on data, the position
//! becomes a variable, and every access checks it.

use super::value::Atom;
use broadloom_scalar::Variable;

/// A position on a tape, in items from the start of the firing's window.
#[derive(Clone, Debug)]
pub(super) enum TapePosition {
    /// Computed from constants and loop counters.
    Fixed(Atom),
    /// Counted in a variable.
    Counted(Variable),
}

/// Items popped and pushed by a piece of code. `None` if they depend on data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ItemCounts {
    pub(super) pops: Option<u32>,
    pub(super) pushes: Option<u32>,
}

impl ItemCounts {
    pub(super) const NOTHING: ItemCounts = ItemCounts { pops: Some(0), pushes: Some(0) };

    pub(super) fn add(self, other: ItemCounts) -> ItemCounts {
        let add = |a: Option<u32>, b: Option<u32>| a?.checked_add(b?);
        ItemCounts { pops: add(self.pops, other.pops), pushes: add(self.pushes, other.pushes) }
    }

    /// Returns the items moved by one of two branches. A number is known only if both are equal.
    pub(super) fn or(self, other: ItemCounts) -> ItemCounts {
        let same = |a: Option<u32>, b: Option<u32>| a.filter(|_| a == b);
        ItemCounts { pops: same(self.pops, other.pops), pushes: same(self.pushes, other.pushes) }
    }

    /// Returns the items moved by repeated code. If the number of rounds is not known, only zero stays known.
    pub(super) fn times(self, rounds: Option<u32>) -> ItemCounts {
        let times = |a: Option<u32>| match (a, rounds) {
            (Some(0), _) => Some(0),
            (Some(count), Some(rounds)) => count.checked_mul(rounds),
            _ => None,
        };
        ItemCounts { pops: times(self.pops), pushes: times(self.pushes) }
    }
}
