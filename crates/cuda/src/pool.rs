//! Memory pool: driver allocations split into blocks.
//!
//! Small blocks are cut from slabs of one size class each; large blocks are separate allocations. Freed
//! blocks are kept for reuse. This file is bookkeeping only: it makes no driver calls, and [`crate::memory`]
//! reports completed work to it.
//!
//! **Blocks never overlap. A block is freed only once: freeing a block that is not live is an error. A block
//! that is freed while work may access it waits under the number of the last piece of work submitted
//! before.**

use broadloom_device::{Error, MemoryUse, Result};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Alignment of every block.
const ALIGN: u64 = 256;
/// Largest block cut from a slab.
const MAX_SMALL: u64 = 256 << 10;
/// Size of a slab in bytes.
const SLAB: u64 = 2 << 20;
/// Granularity of large blocks.
const LARGE_STEP: u64 = 64 << 10;

/// Returns the size class of an allocation: four classes per power of two.
fn class_bytes(bytes: u64) -> u64 {
    let bytes = bytes.max(1).next_multiple_of(ALIGN);
    let step = (bytes.next_power_of_two() / 8).max(ALIGN);
    bytes.next_multiple_of(step)
}

/// Memory that a block is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockPlace {
    /// In the slab that starts there.
    Slab(u64),
    /// Separate allocation.
    Own,
    /// Variable of a module, which is not freed here.
    Variable,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    /// Requested bytes.
    bytes: u64,
    /// Allocated bytes.
    taken: u64,
    place: BlockPlace,
}

#[derive(Debug)]
struct Slab {
    block_bytes: u64,
    bytes: u64,
    /// Number of blocks in use.
    taken: u64,
}

/// Memory to request from the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryRequest {
    /// Bytes to request.
    pub(crate) bytes: u64,
    /// Size of the blocks that it is split into; equal to `bytes` if it is not split.
    block_bytes: u64,
}

/// All memory obtained from the driver.
#[derive(Debug)]
pub(crate) struct Pool {
    limit: u64,
    live: BTreeMap<u64, Block>,
    slabs: HashMap<u64, Slab>,
    /// Free blocks of slabs by size, each with its slab.
    small: HashMap<u64, Vec<(u64, u64)>>,
    /// Free allocations by size.
    large: BTreeMap<u64, Vec<u64>>,
    /// Freed blocks that may be in use, with the number of the work that must be done first.
    dying: VecDeque<(u64, u64, Block)>,
    /// Bytes obtained from the driver.
    reserved: u64,
    used: u64,
}

impl Pool {
    pub(crate) fn new(limit: u64) -> Pool {
        Pool {
            limit,
            live: BTreeMap::new(),
            slabs: HashMap::new(),
            small: HashMap::new(),
            large: BTreeMap::new(),
            dying: VecDeque::new(),
            reserved: 0,
            used: 0,
        }
    }

    /// Takes a free block that fits, if there is one.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<u64> {
        if bytes <= MAX_SMALL {
            let taken = class_bytes(bytes);
            let (address, start) = self.small.get_mut(&taken)?.pop()?;
            if let Some(slab) = self.slabs.get_mut(&start) {
                slab.taken += 1;
            }
            self.enter(address, Block { bytes, taken, place: BlockPlace::Slab(start) });
            return Some(address);
        }
        let wanted = bytes.checked_next_multiple_of(LARGE_STEP)?;
        let taken = self.large.range(wanted..=wanted.saturating_add(wanted / 8)).next().map(|(size, _)| *size)?;
        let list = self.large.get_mut(&taken)?;
        let address = list.pop()?;
        if list.is_empty() {
            self.large.remove(&taken);
        }
        self.enter(address, Block { bytes, taken, place: BlockPlace::Own });
        Some(address)
    }

    fn enter(&mut self, address: u64, block: Block) {
        self.used += block.taken;
        self.live.insert(address, block);
    }

    /// Returns the memory to request from the driver for `bytes` bytes, or an error if the limit forbids it.
    pub(crate) fn wanted(&self, bytes: u64) -> Result<MemoryRequest> {
        let refused = self.refusal(bytes);
        let room = self.limit.saturating_sub(self.reserved);
        if bytes <= MAX_SMALL {
            let block_bytes = class_bytes(bytes);
            // Near the limit a slab is as small as possible.
            let bytes = if room >= SLAB { SLAB / block_bytes * block_bytes } else { block_bytes };
            return if bytes <= room { Ok(MemoryRequest { bytes, block_bytes }) } else { Err(refused) };
        }
        match bytes.checked_next_multiple_of(LARGE_STEP) {
            Some(taken) if taken <= room => Ok(MemoryRequest { bytes: taken, block_bytes: taken }),
            Some(_) | None => Err(refused),
        }
    }

    /// Returns the out-of-memory error for a request.
    pub(crate) fn refusal(&self, requested: u64) -> Error {
        Error::OutOfMemory { requested, available: self.limit.saturating_sub(self.used) }
    }

    /// Adds memory obtained from the driver.
    pub(crate) fn add(&mut self, address: u64, wanted: MemoryRequest) {
        self.reserved += wanted.bytes;
        if wanted.block_bytes > MAX_SMALL {
            self.large.entry(wanted.bytes).or_default().push(address);
            return;
        }
        let blocks = wanted.bytes / wanted.block_bytes;
        // Blocks are taken from the end, so the lowest address is used first.
        let starts = (0..blocks).rev().map(|index| (address + index * wanted.block_bytes, address));
        self.small.entry(wanted.block_bytes).or_default().extend(starts);
        self.slabs.insert(address, Slab { block_bytes: wanted.block_bytes, bytes: wanted.bytes, taken: 0 });
    }

    /// Frees a block. With a number, it waits until the work up to that number is done.
    pub(crate) fn free(&mut self, address: u64, after: Option<u64>) -> Result<()> {
        let bad = Error::BadAddress { call: "free", address, bytes: 0 };
        match self.live.get(&address) {
            Some(Block { place: BlockPlace::Slab(_) | BlockPlace::Own, .. }) => {}
            Some(Block { place: BlockPlace::Variable, .. }) | None => return Err(bad),
        }
        let block = self.live.remove(&address).ok_or(bad)?;
        match after {
            None => self.release(address, block),
            Some(number) => self.dying.push_back((number, address, block)),
        }
        Ok(())
    }

    fn release(&mut self, address: u64, block: Block) {
        self.used -= block.taken;
        match block.place {
            BlockPlace::Slab(start) => {
                if let Some(slab) = self.slabs.get_mut(&start) {
                    slab.taken -= 1;
                }
                self.small.entry(block.taken).or_default().push((address, start));
            }
            BlockPlace::Own => self.large.entry(block.taken).or_default().push(address),
            BlockPlace::Variable => {}
        }
    }

    /// Tests if any blocks wait for work to be done.
    pub(crate) fn has_dying(&self) -> bool {
        !self.dying.is_empty()
    }

    /// Frees the blocks that waited for work that `is_done` reports as done.
    pub(crate) fn reap(&mut self, is_done: impl Fn(u64) -> bool) {
        // Numbers ascend along the queue.
        while self.dying.front().is_some_and(|(number, ..)| is_done(*number)) {
            if let Some((_, address, block)) = self.dying.pop_front() {
                self.release(address, block);
            }
        }
    }

    /// Removes free memory, largest first, until at most `keep` bytes are left. Returns the allocations for
    /// the driver. No work may access any of it.
    pub(crate) fn surplus(&mut self, keep: u64) -> Vec<u64> {
        let mut free: Vec<(u64, u64)> =
            self.large.iter().flat_map(|(size, list)| list.iter().map(|address| (*size, *address))).collect();
        free.extend(self.slabs.iter().filter(|(_, slab)| slab.taken == 0).map(|(start, slab)| (slab.bytes, *start)));
        free.sort_unstable();
        let mut left: u64 = free.iter().map(|(bytes, _)| bytes).sum();
        let mut surplus = vec![];
        while left > keep {
            let Some((bytes, address)) = free.pop() else { break };
            left -= bytes;
            self.reserved -= bytes;
            surplus.push(address);
            match self.slabs.remove(&address) {
                Some(slab) => {
                    if let Some(list) = self.small.get_mut(&slab.block_bytes) {
                        list.retain(|(_, start)| *start != address);
                    }
                }
                None => {
                    if let Some(list) = self.large.get_mut(&bytes) {
                        list.retain(|other| *other != address);
                        if list.is_empty() {
                            self.large.remove(&bytes);
                        }
                    }
                }
            }
        }
        surplus
    }

    /// Returns all driver allocations, live or not, and empties the pool.
    pub(crate) fn everything(&mut self) -> Vec<u64> {
        let own = self.live.iter().map(|(address, block)| (*address, *block)).filter(|(_, block)| block.place == BlockPlace::Own);
        let mut all: Vec<u64> = own.map(|(address, _)| address).collect();
        all.extend(self.dying.iter().filter(|(_, _, block)| block.place == BlockPlace::Own).map(|(_, address, _)| *address));
        all.extend(self.large.values().flatten());
        all.extend(self.slabs.keys());
        *self = Pool::new(self.limit);
        all
    }

    /// Records a variable of a module, so that ranges in it are known.
    pub(crate) fn add_variable(&mut self, address: u64, bytes: u64) {
        self.live.entry(address).or_insert(Block { bytes, taken: 0, place: BlockPlace::Variable });
    }

    pub(crate) fn remove_variable(&mut self, address: u64) {
        if self.live.get(&address).is_some_and(|block| block.place == BlockPlace::Variable) {
            self.live.remove(&address);
        }
    }

    /// Checks that a range is inside a block or a variable.
    pub(crate) fn check(&self, call: &'static str, address: u64, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        match self.live.range(..=address).next_back() {
            Some((start, block)) if address - start < block.bytes && block.bytes - (address - start) >= bytes => Ok(()),
            _ => Err(Error::BadAddress { call, address, bytes }),
        }
    }

    /// Returns the memory usage.
    pub(crate) fn usage(&self) -> MemoryUse {
        MemoryUse { used: self.used, pooled: self.reserved.saturating_sub(self.used), limit: self.limit }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pool with a fake driver that hands out addresses and records releases.
    struct Bench {
        pool: Pool,
        next: u64,
        had: BTreeMap<u64, u64>,
    }

    impl Bench {
        fn new(limit: u64) -> Bench {
            Bench { pool: Pool::new(limit), next: 1 << 40, had: BTreeMap::new() }
        }

        fn allocate(&mut self, bytes: u64) -> Result<u64> {
            if let Some(address) = self.pool.take(bytes) {
                return Ok(address);
            }
            let wanted = self.pool.wanted(bytes)?;
            let address = self.next;
            self.next += wanted.bytes + 4096;
            self.had.insert(address, wanted.bytes);
            self.pool.add(address, wanted);
            Ok(self.pool.take(bytes).unwrap())
        }

        fn give_back(&mut self, keep: u64) {
            for address in self.pool.surplus(keep) {
                assert!(self.had.remove(&address).is_some(), "{address:#x} was given back twice or never had");
            }
        }
    }

    #[test]
    fn classes_are_aligned_and_waste_little() {
        for bytes in (0..3000).chain([65_537, 100_000, 200_001, MAX_SMALL]) {
            let class = class_bytes(bytes);
            assert!(
                class >= bytes.max(1) && class.is_multiple_of(ALIGN) && class <= bytes.max(1) + bytes / 4 + ALIGN,
                "{bytes} in {class}"
            );
            assert_eq!(class_bytes(class), class);
        }
    }

    #[test]
    fn random_use_keeps_blocks_apart() {
        let mut bench = Bench::new(1 << 30);
        let mut live: Vec<(u64, u64)> = vec![];
        let mut numbers = broadloom_random::Random::new(7);
        let mut random = |below: u64| numbers.below(below);
        for round in 0..4000u64 {
            if random(2) == 0 && !live.is_empty() {
                let (address, _) = live.swap_remove(random(live.len() as u64) as usize);
                bench.pool.free(address, (random(3) == 0).then_some(round)).unwrap();
                assert!(bench.pool.free(address, None).is_err(), "freed twice");
            } else {
                let scale = random(14);
                let bytes = random(1 << (8 + scale));
                let address = bench.allocate(bytes).unwrap();
                assert!(address.is_multiple_of(ALIGN));
                for (other, length) in &live {
                    assert!(address + bytes <= *other || other + length <= address || bytes == 0, "blocks meet");
                }
                bench.pool.check("test", address, bytes).unwrap();
                assert!(bench.pool.check("test", address, bytes + 1).is_err());
                live.push((address, bytes));
            }
            if round % 500 == 0 {
                bench.pool.reap(|number| number <= round);
                bench.give_back(1 << 20);
            }
        }
        for (address, _) in live.drain(..) {
            bench.pool.free(address, None).unwrap();
        }
        bench.pool.reap(|_| true);
        assert_eq!(bench.pool.usage().used, 0);
        bench.give_back(0);
        assert!(bench.had.is_empty(), "not given back: {:?}", bench.had);
        assert_eq!(bench.pool.usage().pooled, 0);
    }

    #[test]
    fn what_waits_is_not_given_out() {
        let mut bench = Bench::new(1 << 30);
        let address = bench.allocate(1 << 20).unwrap();
        bench.pool.free(address, Some(7)).unwrap();
        assert_ne!(bench.allocate(1 << 20).unwrap(), address);
        bench.pool.reap(|number| number < 7);
        assert!(bench.pool.has_dying());
        bench.pool.reap(|number| number <= 7);
        assert_eq!(bench.allocate(1 << 20).unwrap(), address);
    }

    #[test]
    fn the_limit_is_kept() {
        let mut bench = Bench::new(3 << 20);
        let first = bench.allocate(1 << 20).unwrap();
        assert!(matches!(bench.allocate(3 << 20), Err(Error::OutOfMemory { requested: 0x30_0000, available: 0x20_0000 })));
        assert!(bench.allocate(u64::MAX).is_err());
        let small: Vec<u64> = (0..4).map(|_| bench.allocate(200 << 10).unwrap()).collect();
        bench.pool.free(first, None).unwrap();
        for address in small {
            bench.pool.free(address, None).unwrap();
        }
        bench.give_back(0);
        assert!(bench.allocate(3 << 20).is_ok());
    }

    #[test]
    fn everything_is_found_in_the_end() {
        let mut bench = Bench::new(1 << 30);
        let kept = bench.allocate(100).unwrap();
        let dying = bench.allocate(1 << 20).unwrap();
        let free = bench.allocate(2 << 20).unwrap();
        bench.allocate(3 << 20).unwrap();
        bench.pool.add_variable(16, 4);
        assert!(bench.pool.free(16, None).is_err(), "variables belong to their module");
        bench.pool.free(dying, Some(1)).unwrap();
        bench.pool.free(free, None).unwrap();
        assert_ne!(kept, dying);
        let mut all = bench.pool.everything();
        all.sort_unstable();
        assert_eq!(all, bench.had.keys().copied().collect::<Vec<_>>());
    }
}
