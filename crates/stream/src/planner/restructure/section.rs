//! Sections: connected parts of the graph that run on the device.
//!
//! A section consists of *actors*, which are filters with their code, and *buffers*, which are tapes that
//! hold items. Identities, splitters and joiners are neither: they are steps of index arithmetic between
//! actors and buffers. A copying actor is only needed where items pass from a splitter, or from the host,
//! into a joiner or to the host.
//!
//! A *unit* is the smallest part of a steady state in which every node of the section fires a whole number of
//! times. Numbers of items and firings are counted from the start of the program, less those of the units
//! before. They are therefore equal for all units, and index arithmetic needs no other constants.

use super::wiring::{Range, Step, image, preimage};
use crate::language::graph::{NodeId, TapeId};
use crate::planner::translate::{FilterCode, Words};
use std::sync::Arc;

/// The coefficients of a convolution. A pushed item is the constant plus the sum of the items from its place
/// on, each times its coefficient.
#[derive(Clone, Debug, PartialEq)]
pub struct Taps {
    /// Coefficients, in the order of items.
    pub coefficients: Vec<f64>,
    /// The term that is added to the weighted sum.
    pub constant: f64,
}

/// The connection of an actor to a buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Port {
    /// Number of the buffer that is read or written.
    pub buffer: usize,
    /// The steps from the actor's tape to the buffer.
    pub steps: Vec<Step>,
    /// The first item of the firing with number 0.
    pub start: i64,
    /// Items from the start of one firing to the next.
    pub rate: i64,
    /// Items that a firing uses, at least the rate.
    pub seen: i64,
    /// True if the steps apply to numbers that count from the start of the batch, because the items of a unit
    /// are not contiguous.
    pub absolute: bool,
}

impl Port {
    /// Returns the items of firings, on the tape of the actor.
    pub fn items(&self, firings: Range) -> Range {
        Range::new(self.start + firings.start * self.rate, self.start + (firings.end - 1) * self.rate + self.seen)
    }
}

/// A filter on the device.
#[derive(Clone, Debug)]
pub struct Actor {
    /// The nodes that it stands for.
    pub nodes: Vec<NodeId>,
    /// The display name.
    pub name: String,
    /// The firing as scalar code.
    pub code: Arc<FilterCode>,
    /// Firings in a unit.
    pub firings: i64,
    /// The number that the code sees in firing 0: finished firings of `work`.
    pub first: i64,
    /// True if the first firing of the program runs another function.
    pub has_prework: bool,
    /// Firings before the first unit.
    pub before: i64,
    /// The buffer that it pops from; a source has none.
    pub input: Option<Port>,
    /// The buffer that it pushes to; a sink has none.
    pub output: Option<Port>,
    /// True if it replaces several linear filters.
    pub combined: bool,
    /// The coefficients, if it is a long convolution.
    pub taps: Option<Arc<Taps>>,
}

/// A role of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The host produces its items.
    Input,
    /// The host consumes its items.
    Output,
    /// Actors produce and consume its items.
    Inner,
}

/// A tape that holds items.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// The tape whose items the buffer holds.
    pub tape: TapeId,
    /// Whether the kernel reads, writes or keeps the items.
    pub role: Role,
    /// Words of an item.
    pub words: Words,
    /// Items in a unit.
    pub items: i64,
    /// The first item of an output that belongs to the unit.
    pub start: i64,
}

/// A part of the graph that runs on the device.
#[derive(Clone, Debug)]
pub struct Section {
    /// The graph's nodes that the kernel runs.
    pub nodes: Vec<NodeId>,
    /// The actors, producers before consumers.
    pub actors: Vec<Actor>,
    /// Storage of the tapes at and inside of the section.
    pub buffers: Vec<Buffer>,
    /// Units in a steady state.
    pub units: u64,
}

/// Work to do: firings of each actor and items of each buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Firings of each actor. `None` if they are not needed.
    pub firings: Vec<Option<Range>>,
    /// Items of each buffer.
    pub items: Vec<Option<Range>>,
}

impl Section {
    /// Returns the items of outputs that units produce.
    pub fn outputs(&self, units: i64) -> Vec<Option<Range>> {
        let range = |buffer: &Buffer| Range::new(buffer.start, buffer.start + units * buffer.items);
        self.buffers.iter().map(|buffer| (buffer.role == Role::Output).then(|| range(buffer))).collect()
    }

    /// Returns the firings and items that actors must compute so that buffers hold the wanted items. The
    /// actors are given by number, in order.
    pub fn needs(&self, actors: impl DoubleEndedIterator<Item = usize>, wanted: Vec<Option<Range>>) -> Needs {
        let mut items = wanted;
        let mut firings: Vec<Option<Range>> = vec![None; self.actors.len()];
        for index in actors.rev() {
            let actor = &self.actors[index];
            let Some(output) = &actor.output else { continue };
            let Some(wanted) = items[output.buffer] else { continue };
            let range = if output.absolute {
                // Whole units are wanted.
                Range::new(0, wanted.len() / self.buffers[output.buffer].items.max(1) * actor.firings)
            } else {
                let made = preimage(&output.steps, wanted);
                if made.is_empty() || output.rate == 0 {
                    continue;
                }
                let start = (made.start - output.start).div_euclid(output.rate);
                let end = (made.end - output.start + output.rate - 1).div_euclid(output.rate);
                Range::new(start, end)
            };
            firings[index] = Some(range);
            if let Some(input) = &actor.input {
                let seen = image(&input.steps, input.items(range));
                let slot = &mut items[input.buffer];
                *slot = Some(slot.map_or(seen, |known| known.hull(seen)));
            }
        }
        Needs { firings, items }
    }
}

/// The actors that read and write each buffer, by number.
pub(super) struct Users {
    pub(super) readers: Vec<Vec<usize>>,
    pub(super) writers: Vec<Vec<usize>>,
}

impl Users {
    pub(super) fn of(section: &Section) -> Users {
        let none = vec![vec![]; section.buffers.len()];
        let mut users = Users { readers: none.clone(), writers: none };
        for (index, actor) in section.actors.iter().enumerate() {
            actor.input.iter().for_each(|port| users.readers[port.buffer].push(index));
            actor.output.iter().for_each(|port| users.writers[port.buffer].push(index));
        }
        users
    }

    /// Returns the readers and writers of a buffer.
    pub(super) fn all(&self, buffer: usize) -> impl Iterator<Item = usize> + '_ {
        self.readers[buffer].iter().chain(&self.writers[buffer]).copied()
    }

    /// Returns the only writer or reader of a buffer between actors.
    pub(super) fn only(&self, section: &Section, buffer: usize, reads: bool) -> Option<usize> {
        let users = if reads { &self.readers[buffer] } else { &self.writers[buffer] };
        match users[..] {
            [only] if section.buffers[buffer].role == Role::Inner => Some(only),
            _ => None,
        }
    }
}
