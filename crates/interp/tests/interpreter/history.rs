//! Histories of locations, compared with lists of all accesses.

use broadloom_interp::check::clock::{Clock, PublishedClock, Vector};
use broadloom_interp::check::history::{AccessEffect, Effect, History, Record, Strength, View, Width};
use broadloom_ptx::{Func, Inst};
use broadloom_random::Random;
use std::collections::HashMap;
use std::sync::Arc;

const THREADS: usize = 4;
const BLOCKS: usize = 3;

/// All threads of a grid, with their clocks, and in addition with a full vector of times each.
struct Grid {
    clocks: Vec<Clock>,
    times: Vec<u32>,
    known: Vec<[u32; THREADS * BLOCKS]>,
}

impl Grid {
    fn new() -> Grid {
        let count = THREADS * BLOCKS;
        Grid { clocks: vec![Clock::default(); count], times: vec![1; count], known: vec![[0; THREADS * BLOCKS]; count] }
    }

    fn release(&mut self, index: usize) -> (PublishedClock, [u32; THREADS * BLOCKS]) {
        let (block, thread, time) = ((index / THREADS) as u32, (index % THREADS) as u16, self.times[index]);
        self.known[index][index] = time;
        self.times[index] += 1;
        (self.clocks[index].publish(block, THREADS, thread, time), self.known[index])
    }

    fn acquire(&mut self, index: usize, released: &(PublishedClock, [u32; THREADS * BLOCKS])) {
        let (clock, known) = released;
        self.clocks[index].acquire((index / THREADS) as u32, clock);
        for (mine, theirs) in self.known[index].iter_mut().zip(known) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Runs a barrier of a block, none of whose threads knows of other blocks.
    fn barrier(&mut self, block: usize) {
        let members = block * THREADS..(block + 1) * THREADS;
        let all = Arc::new(Vector::new(self.times[members.clone()].to_vec()));
        for index in members.clone() {
            self.clocks[index].rebase(&all, &HashMap::new());
            self.known[index] = [0; THREADS * BLOCKS];
            self.known[index][members.clone()].copy_from_slice(&self.times[members.clone()]);
        }
        members.for_each(|index| self.times[index] += 1);
    }
}

/// A history finds the first race of a location exactly when a list of all accesses does.
#[test]
fn histories_agree_with_lists_of_all_accesses() {
    let mut races = 0;
    for seed in 0..3000 {
        let mut dice = Random::new(seed);
        let mut grid = Grid::new();
        let mut history = History::default();
        let mut all: Vec<(usize, Record)> = vec![];
        let (writes, orders) = (1 + dice.below(40), 1 + dice.below(4));
        for _ in 0..200 {
            let index = dice.below(THREADS * BLOCKS);
            if dice.below(orders) > 0 {
                if dice.below(4) == 0 && orders == 2 {
                    grid.barrier(index / THREADS);
                } else if orders != 2 {
                    let left = grid.release(index);
                    grid.acquire(dice.below(THREADS * BLOCKS), &left);
                }
                continue;
            }
            let strength = [Strength::Weak, Strength::Cta, Strength::Wide][dice.below(3)];
            let effect = match dice.below(writes) {
                0 if strength == Strength::Weak => Effect::Write,
                0 => [Effect::Write, Effect::Atomic(Width::Four), Effect::Atomic(Width::Eight)][dice.below(3)],
                _ => Effect::Read,
            };
            let manner = AccessEffect { effect, strength };
            let new = Record {
                block: (index / THREADS) as u32,
                thread: (index % THREADS) as u16,
                time: grid.times[index],
                func: Func::from_u32(0),
                inst: Inst::from_u32(dice.below(2) as u32),
                manner,
            };
            let races_with = |(other, earlier): &(usize, Record)| {
                let excused = earlier.manner.excuses(manner, earlier.block == new.block);
                *other != index && !excused && grid.known[index][*other] < earlier.time
            };
            let expected = all.iter().any(races_with);
            let view = View { block: new.block, clock: &grid.clocks[index], met: &[] };
            let found = history.clash(&new, &view, |_, _| true);
            let writer = all.iter().any(|(_, earlier)| earlier.manner.writes());
            assert_eq!(history.writer().is_some(), writer, "seed {seed}: {all:?}: {history:?}");
            assert_eq!(found.is_some(), expected, "seed {seed}: {new:?} among {all:?}: {history:?}");
            if expected {
                races += 1;
                break;
            }
            history.add(new, &view);
            all.push((index, new));
        }
    }
    assert!(races > 1000, "{races}");
}

/// A word that every thread of a grid reads has one group. One that threads read repeatedly has no more
/// groups than threads.
#[test]
fn readers_take_little_room() {
    let (func, inst) = (Func::from_u32(0), Inst::from_u32(0));
    let clock = Clock::default();
    let mut history = History::default();
    for block in 0..1000 {
        for thread in (3..1024).step_by(4) {
            let new = Record { block, thread, time: 1, func, inst, manner: AccessEffect::PLAIN_READ };
            history.add(new, &View { block, clock: &clock, met: &[] });
        }
    }
    assert!(history.group_count() <= 2, "{}", history.group_count());
    let mut history = History::default();
    let mut dice = Random::new(7);
    for time in 1..20_000 {
        let thread = dice.below(40) as u16;
        let new = Record { block: 0, thread, time, func, inst, manner: AccessEffect::PLAIN_READ };
        history.add(new, &View { block: 0, clock: &clock, met: &[] });
    }
    assert!(history.group_count() <= 128, "{}", history.group_count());
}
