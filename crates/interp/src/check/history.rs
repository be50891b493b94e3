//! Earlier accesses to a memory location, as far as a later one could race with them.
//!
//! A history loses no race and invents none. It separates the accesses of one thread by their
//! [`AccessEffect`], so that an atomic does not hide a plain write of the same thread. It drops an access
//! only if another one represents it:
//!
//! - A plain write represents everything before it. An access that is not ordered after an earlier access is
//!   not ordered after this write either, or the two raced, which was reported.
//! - The last access of a thread in a manner represents the thread's earlier ones in that manner.
//! - An access represents those of the same manner that happened before it.
//!
//! Many accesses can remain: all threads of a grid may read one word. Threads that access a location at the
//! same clock time and by the same instruction form a [`Group`]. Its members are evenly spaced in their
//! block, and its blocks are evenly spaced in the grid. A word that all threads read therefore has one group.
//! An irregular history has one group per thread at worst: 32 bytes for each thread that accessed the
//! location without an order between them. Adding an access takes amortised constant time. So does checking a
//! write, since a write that checks many groups removes them. Only an atomic among many plain reads checks
//! them all and keeps them.
//!
//! Rejected: a fixed number of readers per location, which forgets the one that races; a full vector of times
//! per location (FastTrack), which takes memory for each thread of the grid and location; the latest time of
//! a block as that of all its readers, which invents races.

use super::clock::Clock;
use broadloom_ptx::{Func, Inst};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Strength of an access: the accesses that it may run concurrently with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// Plain access: none.
    Weak,
    /// Strong accesses of its own block.
    Cta,
    /// Strong accesses of its block, and of other blocks if their scope is as wide.
    Wide,
    /// Volatile load or store, which does not order the lanes of a warp.
    Volatile,
}

/// Bytes that an atomic changes at once: an element of a vector or of a packed type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    Two,
    Four,
    Eight,
    Sixteen,
}

impl Width {
    /// Returns the smallest width with so many bytes.
    pub fn of(bytes: u64) -> Width {
        match bytes {
            0..=2 => Width::Two,
            3..=4 => Width::Four,
            5..=8 => Width::Eight,
            9.. => Width::Sixteen,
        }
    }

    pub fn bytes(self) -> u32 {
        match self {
            Width::Two => 2,
            Width::Four => 4,
            Width::Eight => 8,
            Width::Sixteen => 16,
        }
    }
}

/// Effect of an access on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    Read,
    Write,
    /// Atomic read and write.
    Atomic(Width),
}

/// Effect of an access, and its strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessEffect {
    pub effect: Effect,
    pub strength: Strength,
}

impl AccessEffect {
    pub const PLAIN_READ: AccessEffect = AccessEffect { effect: Effect::Read, strength: Strength::Weak };
    pub const PLAIN_WRITE: AccessEffect = AccessEffect { effect: Effect::Write, strength: Strength::Weak };

    pub fn writes(self) -> bool {
        self.effect != Effect::Read
    }

    /// Returns the widths of two atomics that are not atomic to each other, since their widths differ.
    pub fn different_widths(self, other: AccessEffect) -> Option<(Width, Width)> {
        match (self.effect, other.effect) {
            (Effect::Atomic(one), Effect::Atomic(two)) if one != two => Some((one, two)),
            (Effect::Read | Effect::Write | Effect::Atomic(_), Effect::Read | Effect::Write | Effect::Atomic(_)) => None,
        }
    }

    /// Returns whether two accesses of different threads may happen in any order.
    pub fn excuses(self, other: AccessEffect, same_block: bool) -> bool {
        let strong = self.strength != Strength::Weak && other.strength != Strength::Weak;
        let wide = self.strength >= Strength::Wide && other.strength >= Strength::Wide;
        let atomic = strong && (same_block || wide) && self.different_widths(other).is_none();
        !(self.writes() || other.writes()) || atomic
    }
}

/// Access that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub block: u32,
    pub time: u32,
    pub func: Func,
    pub inst: Inst,
    pub thread: u16,
    pub manner: AccessEffect,
}

impl Record {
    /// Returns the properties that accesses must share for one to represent another. For volatile ones this
    /// includes the instruction.
    fn key(&self) -> (AccessEffect, Option<(Func, Inst)>) {
        (self.manner, (self.manner.strength == Strength::Volatile).then_some((self.func, self.inst)))
    }

    fn is_by(&self, other: &Record) -> bool {
        (self.block, self.thread) == (other.block, other.thread)
    }

    fn is_in_warp_of(&self, other: &Record) -> bool {
        (self.block, self.thread / 32) == (other.block, other.thread / 32)
    }
}

/// Knowledge of a thread about others.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub block: u32,
    pub clock: &'a Clock,
    /// Times of the lanes of its warp when they last met, whether or not that orders memory. Empty if they
    /// never met.
    pub met: &'a [u32],
}

impl View<'_> {
    fn knows(&self, block: u32, thread: u16, time: u32) -> bool {
        let known = if block == self.block { self.clock.of(thread) } else { self.clock.of_foreign(block, thread) };
        known >= time
    }

    /// Returns whether it knows that time of every thread of a block.
    fn knows_all(&self, block: u32, time: u32) -> bool {
        let least = if block == self.block { self.clock.least() } else { self.clock.least_foreign(block) };
        least >= time
    }

    /// Returns whether lanes of a warp have met since an access of one of them.
    fn met_since(&self, earlier: &Record) -> bool {
        self.met.get(usize::from(earlier.thread % 32)).is_some_and(|met| *met >= earlier.time)
    }
}

/// Similar accesses: by one instruction, in one manner, at one time, by threads that are evenly spaced in
/// evenly spaced blocks.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: Record,
    block_step: u32,
    blocks: u32,
    thread_step: u16,
    threads: u16,
}

impl Group {
    fn of(first: Record) -> Group {
        Group { first, block_step: 0, blocks: 1, thread_step: 0, threads: 1 }
    }

    fn block_numbers(&self) -> impl Iterator<Item = u32> + use<> {
        let (first, step) = (self.first.block, self.block_step);
        (0..self.blocks).map(move |index| first + index * step)
    }

    fn thread_numbers(&self) -> impl Iterator<Item = u16> + use<> {
        let (first, step) = (self.first.thread, self.thread_step);
        (0..self.threads).map(move |index| first + index * step)
    }

    fn member(&self, block: u32, thread: u16) -> Record {
        Record { block, thread, ..self.first }
    }

    fn holds(&self, block: u32, thread: u16) -> bool {
        let lies = |at: Option<u32>, step: u32, count: u32| {
            at.is_some_and(|at| if step == 0 { at == 0 } else { at.is_multiple_of(step) && at / step < count })
        };
        lies(block.checked_sub(self.first.block), self.block_step, self.blocks)
            && lies(thread.checked_sub(self.first.thread).map(u32::from), u32::from(self.thread_step), u32::from(self.threads))
    }

    fn is_like(&self, record: &Record) -> bool {
        let first = &self.first;
        (first.time, first.func, first.inst, first.manner) == (record.time, record.func, record.inst, record.manner)
    }

    /// Adds an access if it fits or is already contained. Returns whether it did.
    fn take(&mut self, record: &Record) -> bool {
        let alone = self.threads == 1 && self.blocks == 1;
        if alone && self.first.is_by(record) && self.first.key() == record.key() {
            self.first = *record;
            return true;
        }
        if !self.is_like(record) {
            return false;
        }
        if self.holds(record.block, record.thread) {
            return true;
        }
        let Some(ahead) = record.thread.checked_sub(self.first.thread).filter(|ahead| *ahead > 0) else { return false };
        if self.blocks > 1 || record.block != self.first.block {
            return false;
        }
        if self.threads == 1 {
            self.thread_step = ahead;
        }
        let next = u32::from(self.thread_step) * u32::from(self.threads) == u32::from(ahead);
        self.threads += u16::from(next);
        next
    }

    /// Adds the same threads of the next block. Returns whether they were that.
    fn take_block(&mut self, next: &Group) -> bool {
        let alike = self.is_like(&next.first) && self.first.thread == next.first.thread;
        if !alike || (self.thread_step, self.threads) != (next.thread_step, next.threads) || next.blocks > 1 {
            return false;
        }
        let Some(ahead) = next.first.block.checked_sub(self.first.block).filter(|ahead| *ahead > 0) else { return false };
        if self.blocks == 1 {
            self.block_step = ahead;
        }
        let fits = u64::from(self.block_step) * u64::from(self.blocks) == u64::from(ahead);
        self.blocks += u32::from(fits);
        fits
    }

    /// Returns a member that neither happened before the new access nor may run concurrently with it.
    fn unordered(&self, new: &Record, view: &View<'_>) -> Option<Record> {
        if self.first.manner.excuses(new.manner, false) {
            return None;
        }
        for block in self.block_numbers() {
            let same_block = block == new.block;
            if self.first.manner.excuses(new.manner, same_block) || view.knows_all(block, self.first.time) {
                continue;
            }
            let late = |thread: &u16| {
                let own = same_block && *thread == new.thread;
                !own && !view.knows(block, *thread, self.first.time)
            };
            if let Some(thread) = self.thread_numbers().find(late) {
                return Some(self.member(block, thread));
            }
        }
        None
    }

    /// Returns a volatile access of another lane of the warp that has no order with the new volatile access.
    fn unordered_lane(&self, new: &Record, view: &View<'_>) -> Option<Record> {
        let both_volatile = [self.first.manner, new.manner].iter().all(|manner| manner.strength == Strength::Volatile);
        // A write against a write is ignored: lanes may agree on the last one.
        if !both_volatile || self.first.manner.writes() == new.manner.writes() {
            return None;
        }
        let warp = new.thread / 32 * 32;
        let lanes = (warp..warp + 32).filter(|thread| *thread != new.thread && self.holds(new.block, *thread));
        let mut members = lanes.map(|thread| self.member(new.block, thread));
        members.find(|member| !view.knows(member.block, member.thread, member.time) && !view.met_since(member))
    }

    /// Returns whether an access represents the whole group.
    fn is_behind(&self, new: &Record, view: &View<'_>) -> bool {
        if self.first.key() != new.key() {
            return false;
        }
        let stands = match new.manner.strength {
            Strength::Weak | Strength::Wide => true,
            Strength::Cta => self.blocks == 1 && self.first.block == new.block,
            Strength::Volatile => {
                let last = Record { thread: self.first.thread + self.thread_step * (self.threads - 1), ..self.first };
                self.blocks == 1 && self.first.is_in_warp_of(new) && last.is_in_warp_of(new)
            }
        };
        let known = |block: u32| {
            let knows = |thread| (block, thread) == (new.block, new.thread) || view.knows(block, thread, self.first.time);
            view.knows_all(block, self.first.time) || self.thread_numbers().all(knows)
        };
        stands && self.block_numbers().all(known)
    }
}

/// Fault between two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    /// Two accesses without an order, one of them a write.
    Race(Record),
    /// Volatile accesses of two lanes of one warp without an order.
    Lanes(Record),
}

/// Earlier accesses to a location.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Last plain write.
    write: Option<Record>,
    /// Other accesses since.
    groups: SmallVec<[Group; 1]>,
    /// Number of groups after the last tidying.
    tidied: u32,
}

/// Number of groups from which on they are tidied whenever their number has doubled.
const TIDY: usize = 4;
/// Number of groups from which on their members are sorted and regrouped.
const REGROUP: usize = 8;

impl History {
    /// Returns an earlier access with which a new one races. `reads_data` tells whether the value of a
    /// volatile load becomes data.
    pub fn clash(&self, new: &Record, view: &View<'_>, reads_data: impl Fn(Func, Inst) -> bool) -> Option<Clash> {
        let plain = self.write.filter(|write| !write.is_by(new) && !view.knows(write.block, write.thread, write.time));
        if let Some(write) = plain {
            return Some(Clash::Race(write));
        }
        if let Some(earlier) = self.groups.iter().find_map(|group| group.unordered(new, view)) {
            return Some(Clash::Race(earlier));
        }
        let lanes = |group: &Group| {
            let lane = group.unordered_lane(new, view)?;
            let reader = if new.manner.writes() { &lane } else { new };
            reads_data(reader.func, reader.inst).then_some(Clash::Lanes(lane))
        };
        if new.manner.strength == Strength::Volatile { self.groups.iter().find_map(lanes) } else { None }
    }

    /// Returns an access that wrote the location, ordered or not.
    pub fn writer(&self) -> Option<Record> {
        let strong = || self.groups.iter().find(|group| group.first.manner.writes()).map(|group| group.first);
        self.write.or_else(strong)
    }

    /// Returns the number of groups that the accesses take.
    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Records an access.
    pub fn add(&mut self, new: Record, view: &View<'_>) {
        if new.manner == AccessEffect::PLAIN_WRITE {
            self.write = Some(new);
            self.groups.clear();
            self.tidied = 0;
            return;
        }
        // An own plain write of the same time conflicts with everything that this access could.
        if self.write.is_some_and(|write| write.is_by(&new) && write.time == new.time) {
            return;
        }
        if self.groups.last_mut().is_some_and(|last| last.take(&new)) {
            return;
        }
        if let [.., before, last] = self.groups.as_mut_slice()
            && before.take_block(last)
        {
            self.groups.pop();
        }
        match self.groups.last_mut() {
            Some(last) if last.is_behind(&new, view) => *last = Group::of(new),
            _ => self.groups.push(Group::of(new)),
        }
        if self.groups.len() >= TIDY.max(2 * self.tidied as usize) {
            self.tidy(&new, view);
            self.tidied = self.groups.len() as u32;
        }
    }

    /// Drops the accesses that the newest one represents, and regroups the rest.
    fn tidy(&mut self, new: &Record, view: &View<'_>) {
        let newest = self.groups.pop();
        self.groups.retain(|group| !group.is_behind(new, view));
        self.groups.extend(newest);
        if self.groups.len() < REGROUP {
            return;
        }
        let (mut groups, single): (Vec<Group>, Vec<Group>) = self.groups.drain(..).partition(|group| group.blocks > 1);
        // Last access of each thread and manner.
        let mut last = HashMap::new();
        for group in &single {
            for thread in group.thread_numbers() {
                let record = group.member(group.first.block, thread);
                let place: &mut Record = last.entry((record.block, thread, record.key())).or_insert(record);
                if place.time <= record.time {
                    *place = record;
                }
            }
        }
        let alike = |record: &Record| (record.manner, record.func, record.inst, record.time);
        let mut records: Vec<Record> = last.into_values().collect();
        records.sort_by_key(|record| (alike(record), record.block, record.thread));
        let mut fresh: Vec<Group> = vec![];
        for record in &records {
            if !fresh.last_mut().is_some_and(|group| group.take(record)) {
                fresh.push(Group::of(*record));
            }
        }
        groups.append(&mut fresh);
        groups
            .sort_by_key(|group| (alike(&group.first), group.first.thread, group.thread_step, group.threads, group.first.block));
        for group in groups {
            if !self.groups.last_mut().is_some_and(|last| last.take_block(&group)) {
                self.groups.push(group);
            }
        }
    }
}
