//! Components: consecutive firings of several filters that a thread runs in registers.
//!
//! Three stages of butterflies exchange items among groups of eight. A group needs nothing of the others.
//! Such a group is a *component*. In a kernel by block, the threads share components instead of firings. A
//! thread loads the words of a component, runs its operations in registers and stores the results. Several
//! filters then need only one pass through shared memory and one barrier.
//!
//! An operation is a firing, or a round of one. The words that it reads and writes depend on the round alone.
//! Operations that pass items to each other belong to one component. Components with the same operations and
//! the same registers form a *class*. Numbers that differ between the components of a class, such as the
//! places of words, are sums of multiples of the digits of a component's number. One piece of code therefore
//! serves the whole class.

use super::digits::Digits;
use super::section::Actor;
use broadloom_scalar::Function;

/// An operation of a component. Registers are numbered.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// The actor, by number.
    pub(super) actor: usize,
    pub(super) round: Digits,
    pub(super) reads: Vec<usize>,
    pub(super) writes: Vec<usize>,
}

/// A word that a component loads or stores, counted from the start of its unit.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) buffer: usize,
    pub(super) place: Digits,
    pub(super) register: usize,
}

/// Components with the same code.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// Number of components in a unit.
    pub(super) count: i64,
    pub(super) operations: Vec<Operation>,
    pub(super) loads: Vec<Word>,
    pub(super) stores: Vec<Word>,
    pub(super) registers: usize,
}

/// Neighbouring actors whose operations form components.
#[derive(Clone, Debug)]
pub struct Components {
    /// The actors, by number, in order.
    pub actors: Vec<usize>,
    /// Buffers whose words are registers.
    pub inner: Vec<usize>,
    /// Buffers that are read.
    pub inputs: Vec<usize>,
    /// Buffers that are written.
    pub outputs: Vec<usize>,
    /// True if each component overwrites in the output the words that it reads from the input.
    pub in_place: bool,
    pub(super) classes: Vec<Class>,
}

impl Components {
    /// Returns the number of components in a unit.
    pub fn count(&self) -> i64 {
        self.classes.iter().map(|class| class.count).sum()
    }
}

/// Returns the code of an operation, and the number of rounds in a firing.
pub(super) fn code(actor: &Actor) -> (&Function, i64) {
    actor.code.rounds.as_ref().map_or((&actor.code.function, 1), |rounds| (&rounds.function, i64::from(rounds.count)))
}
