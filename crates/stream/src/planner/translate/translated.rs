//! A translated firing, as data.

use super::words::Words;
use broadloom_scalar::Function;

/// Rates of a firing, in items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// Items popped.
    pub pop: u32,
    /// Items peeked, at least those popped.
    pub peek: u32,
    /// Items pushed.
    pub push: u32,
}

/// A field that grows by the same amount in every firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Induction {
    /// The field that changes by a constant in each firing.
    pub field: usize,
    /// Its value before the first firing.
    pub start: i32,
    /// The amount.
    pub step: i32,
}

/// The firing of a filter as scalar code: parameter 0 is the number of the firing, of type `i32`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FilterCode {
    /// The code. Its accessors are the input, then the output, if the filter has them.
    pub function: Function,
    /// Words of an item of the input.
    pub input: Option<Words>,
    /// Words of an item of the output.
    pub output: Option<Words>,
    /// Rates of a firing.
    pub window: Window,
    /// True if a firing can fail.
    pub fails: bool,
    /// True if a firing depends on its number.
    pub numbered: bool,
    /// Fields that follow from the number of the firing.
    pub inductions: Vec<Induction>,
    /// Words of local arrays, before they become registers.
    pub local_words: u64,
    /// True if a firing adds up many items in loops whose rounds threads can share.
    pub adds_up: bool,
    /// True if a firing pushes only sums of integers, so that consecutive firings can be added up as one.
    pub pushes_sums: bool,
    /// True if a firing pushes the sum of the integers that it pops.
    pub adds_items: bool,
    /// The code of a round of the firing's loop, if its rounds are independent.
    pub rounds: Option<Rounds>,
}

/// A firing that is split along its loop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rounds {
    /// The code of a round: parameter 1 is its number.
    pub function: Function,
    /// Number of rounds in a firing.
    pub count: u32,
}
