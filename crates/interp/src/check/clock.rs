//! Vector clocks for the threads of a grid.
//!
//! Each thread has a time that advances whenever it releases something: at a barrier, a fence, a release. An
//! access carries the time of its thread. It happened before the current action of a thread if the thread
//! knows that time: because it is its own, or because a barrier, a warp barrier or a release and acquire
//! passed it on.
//!
//! A grid has too many threads for full vectors. The knowledge that all threads of a block share since their
//! last common barrier is one shared vector. What a thread learnt since then is a small map. Other blocks are
//! known only if one of their releases was acquired.

use std::collections::HashMap;
use std::sync::Arc;

/// Times of the threads of one block.
pub type Times = Arc<Vector>;

/// Times by thread number, with their minimum.
#[derive(Clone, Debug)]
pub struct Vector {
    times: Vec<u32>,
    least: u32,
}

impl Vector {
    pub fn new(times: Vec<u32>) -> Vector {
        let least = times.iter().copied().min().unwrap_or(0);
        Vector { times, least }
    }
}

/// Knowledge of a thread.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Knowledge from the last barrier of the whole block.
    base: Option<Times>,
    /// Later knowledge about threads of the same block.
    since: HashMap<u16, u32>,
    /// Knowledge about other blocks.
    foreign: HashMap<u32, Times>,
}

/// Published clock, for others to acquire.
#[derive(Clone, Debug)]
pub struct PublishedClock {
    block: u32,
    times: Times,
    foreign: HashMap<u32, Times>,
}

fn join(into: &mut HashMap<u32, Times>, block: u32, times: &Times) {
    match into.get_mut(&block) {
        None => {
            into.insert(block, times.clone());
        }
        Some(known) if Arc::ptr_eq(known, times) => {}
        Some(known) => {
            let longest = known.times.len().max(times.times.len());
            let at = |list: &[u32], index: usize| list.get(index).copied().unwrap_or(0);
            let later = |index| at(&known.times, index).max(at(&times.times, index));
            *known = Arc::new(Vector::new((0..longest).map(later).collect()));
        }
    }
}

impl Clock {
    /// Returns the latest known time of a thread of the same block.
    pub fn of(&self, thread: u16) -> u32 {
        let base = self.base.as_ref().and_then(|base| base.times.get(usize::from(thread))).copied().unwrap_or(0);
        base.max(self.since.get(&thread).copied().unwrap_or(0))
    }

    /// Returns the latest known time of a thread of another block.
    pub fn of_foreign(&self, block: u32, thread: u16) -> u32 {
        self.foreign.get(&block).and_then(|known| known.times.get(usize::from(thread))).copied().unwrap_or(0)
    }

    /// Returns a time that is known of every thread of the same block.
    pub(super) fn least(&self) -> u32 {
        self.base.as_ref().map_or(0, |base| base.least)
    }

    /// Returns a time that is known of every thread of another block.
    pub(super) fn least_foreign(&self, block: u32) -> u32 {
        self.foreign.get(&block).map_or(0, |known| known.least)
    }

    /// Learns the time of a thread of the same block.
    pub(super) fn learn(&mut self, thread: u16, time: u32) {
        if self.of(thread) < time {
            self.since.insert(thread, time);
        }
    }

    /// Publishes all knowledge, with the thread's own time.
    pub fn publish(&self, block: u32, threads: usize, thread: u16, time: u32) -> PublishedClock {
        let mut times: Vec<u32> = match &self.base {
            Some(base) => base.times.clone(),
            None => vec![0; threads],
        };
        for (&other, &known) in self.since.iter().chain(std::iter::once((&thread, &time))) {
            let place = &mut times[usize::from(other)];
            *place = (*place).max(known);
        }
        PublishedClock { block, times: Arc::new(Vector::new(times)), foreign: self.foreign.clone() }
    }

    /// Acquires a published clock.
    pub fn acquire(&mut self, block: u32, known: &PublishedClock) {
        if known.block == block {
            for (thread, &time) in known.times.times.iter().enumerate() {
                self.learn(thread as u16, time);
            }
        } else {
            join(&mut self.foreign, known.block, &known.times);
        }
        for (&other, times) in &known.foreign {
            if other == block {
                for (thread, &time) in times.times.iter().enumerate() {
                    self.learn(thread as u16, time);
                }
            } else {
                join(&mut self.foreign, other, times);
            }
        }
    }

    /// Restarts from the knowledge of a barrier of the whole block.
    pub fn rebase(&mut self, base: &Times, foreign: &HashMap<u32, Times>) {
        self.base = Some(base.clone());
        self.since.clear();
        self.foreign = foreign.clone();
    }

    /// Returns the knowledge about other blocks.
    pub(super) fn foreign(&self) -> &HashMap<u32, Times> {
        &self.foreign
    }
}

impl PublishedClock {
    /// Merges another published clock.
    pub fn merge(&mut self, other: &PublishedClock) {
        let mut all = std::mem::take(&mut self.foreign);
        join(&mut all, self.block, &self.times);
        join(&mut all, other.block, &other.times);
        for (block, times) in &other.foreign {
            join(&mut all, *block, times);
        }
        if let Some(times) = all.remove(&self.block) {
            self.times = times;
        }
        self.foreign = all;
    }
}

/// Joins the knowledge of several threads about other blocks.
pub(super) fn join_foreign<'a>(clocks: impl Iterator<Item = &'a Clock>) -> HashMap<u32, Times> {
    let mut all = HashMap::new();
    for clock in clocks {
        for (block, times) in clock.foreign() {
            join(&mut all, *block, times);
        }
    }
    all
}
