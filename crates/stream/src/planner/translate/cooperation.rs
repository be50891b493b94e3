//! The threads that run a firing together, and their shares of its loops.

use broadloom_scalar::{Memory, Value as ScalarValue};
use std::cell::Cell;

/// The reduction over rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    Add,
    Multiply,
    And,
    Or,
    Xor,
}

/// The work of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopShare {
    /// A whole firing.
    Whole,
    /// A part of the first loop of a firing.
    Part,
    /// The rest of a firing, after the parts.
    Rest,
}

/// The threads that run a firing together.
#[derive(Clone, Copy)]
pub(crate) struct Cooperation<'a> {
    pub(crate) thread: ScalarValue,
    pub(crate) threads: i32,
    pub(crate) share: LoopShare,
    /// The number of this part, and the number of parts.
    pub(crate) part: ScalarValue,
    pub(crate) parts: i32,
    /// Threads that take neighbouring rounds. Other groups of threads take stretches of their own.
    pub(crate) together: i32,
    /// Consecutive firings with merged loops, if the following filter adds up their items.
    pub(crate) firings: u32,
    /// Copies of each array in shared memory. Lanes of a warp that add to different copies use different
    /// banks.
    pub(crate) copies: u32,
    /// Words that a thread loads together, and prefetches for its next rounds.
    pub(crate) rows: Option<Rows<'a>>,
    /// Reduces a value over all threads. All threads get the result.
    pub(crate) reduce: &'a dyn Fn(Fold, ScalarValue) -> ScalarValue,
    /// Declares integers in shared memory.
    pub(crate) array: &'a dyn Fn(u32) -> Memory,
    /// Stores a word of this part, and returns a word of any part.
    pub(crate) keep: &'a dyn Fn(ScalarValue, ScalarValue),
    pub(crate) kept: &'a dyn Fn(ScalarValue, ScalarValue) -> ScalarValue,
    /// Adds a word to the total of all parts.
    pub(crate) add: &'a dyn Fn(ScalarValue, ScalarValue),
    /// The size of a part, which is measured while it is written.
    pub(crate) measure: &'a Cell<PartSize>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PartSize {
    /// Words that it stores.
    pub(crate) words: u32,
    /// True if it adds them to the total of all parts.
    pub(crate) adds: bool,
    /// Loop rounds of all parts together.
    pub(crate) rounds: u32,
    /// Additions to array elements in a round.
    pub(crate) added: u32,
}

/// Vector loads of the input.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// Loads the words of a row (`ROW_WORDS` of the cost model), from a word number that is a multiple of
    /// that.
    pub(crate) load: &'a dyn Fn(ScalarValue) -> ScalarValue,
    /// True at run time if the tape is aligned for these loads.
    pub(crate) aligned: ScalarValue,
    /// Rows that a thread loads together.
    pub(crate) pieces: u32,
    /// True if the rows of the next rounds are prefetched.
    pub(crate) prefetched: bool,
}
