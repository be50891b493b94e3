//! Barriers of a block (manual: "Parallel Synchronization and Communication Instructions: bar, barrier").
//!
//! Each strand arrives with the threads it stands for. A barrier without a count is complete when every
//! thread that has not exited waits at it.

/// Number of barriers of a block: 0 to 15.
pub(crate) const BARRIERS: usize = 16;

#[derive(Clone, Debug, Default)]
struct BlockBarrier {
    /// Strands that wait.
    waiting: Vec<u32>,
    /// Number of threads that arrived, waiting or not.
    threads: u32,
    /// Thread count of the instruction. `None` means all threads that have not exited.
    expected: Option<u32>,
    /// Number of arrived threads with a true predicate.
    trues: u32,
}

/// All barriers of a block.
#[derive(Clone, Debug, Default)]
pub struct Barriers {
    all: [BlockBarrier; BARRIERS],
    /// Bit mask of the barriers with an arrival.
    used: u32,
}

/// Arrival of threads at a barrier.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub strand: u32,
    pub threads: u32,
    pub trues: u32,
    /// Thread count of the instruction, if it has one.
    pub expected: Option<u32>,
    pub waits: bool,
}

/// Arrival that is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidArrival {
    /// Number of a barrier that a block does not have.
    #[error("a block has {BARRIERS} barriers; {0} is none of them")]
    Barrier(u32),
    /// Number of threads that a block does not have.
    #[error("a barrier for {count} threads in a block of {block}")]
    Threads {
        /// Threads of the instruction.
        count: u32,
        /// Threads of the block.
        block: u32,
    },
    /// Two instructions that expect different numbers of threads.
    #[error(
        "barrier {number} is used with different numbers of threads at the same time: {} and {}",
        describe(counts[0]),
        describe(counts[1])
    )]
    Counts {
        /// The barrier.
        number: u32,
        /// Both numbers.
        counts: [Option<u32>; 2],
    },
}

impl Barriers {
    pub fn reset(&mut self) {
        for number in 0..BARRIERS {
            if self.used >> number & 1 == 1 {
                self.all[number].clear();
            }
        }
        self.used = 0;
    }

    /// Returns whether no thread has arrived at any barrier.
    #[inline(always)]
    pub(crate) fn are_unused(&self) -> bool {
        self.used == 0
    }

    /// Records an arrival at a barrier of a block with `block` threads.
    pub fn arrive(&mut self, number: u32, arrival: Arrival, block: u32) -> Result<(), InvalidArrival> {
        let barrier = self.all.get_mut(number as usize).ok_or(InvalidArrival::Barrier(number))?;
        if let Some(count) = arrival.expected
            && (count == 0 || count > block.next_multiple_of(32))
        {
            return Err(InvalidArrival::Threads { count, block });
        }
        if barrier.threads != 0 && barrier.expected != arrival.expected {
            return Err(InvalidArrival::Counts { number, counts: [barrier.expected, arrival.expected] });
        }
        barrier.expected = arrival.expected;
        barrier.threads += arrival.threads;
        barrier.trues += arrival.trues;
        if arrival.waits {
            barrier.waiting.push(arrival.strand);
        }
        self.used |= 1 << number;
        Ok(())
    }

    /// Takes the strands that wait at a complete barrier, with the number of true predicates and of arrived
    /// threads.
    pub(crate) fn take(&mut self, number: usize, alive: u32, block: u32) -> Option<(Vec<u32>, (u32, u32))> {
        let barrier = &mut self.all[number];
        let needed = match barrier.expected {
            Some(count) => count.min(block),
            None => alive.max(1),
        };
        if barrier.threads == 0 || barrier.threads < needed {
            return None;
        }
        self.used &= !(1 << number);
        let reduced = (barrier.trues, barrier.threads);
        let waiting = std::mem::take(&mut barrier.waiting);
        barrier.clear();
        Some((waiting, reduced))
    }

    /// Takes the strands of all complete barriers.
    pub fn take_complete(&mut self, alive: u32, block: u32) -> Vec<(Vec<u32>, (u32, u32))> {
        if self.used == 0 {
            return vec![];
        }
        (0..BARRIERS).filter_map(|number| self.take(number, alive, block)).collect()
    }

    /// Takes a list of strands back, so that its memory is reused.
    pub(crate) fn recycle(&mut self, number: usize, mut list: Vec<u32>) {
        list.clear();
        if self.all[number].waiting.is_empty() {
            self.all[number].waiting = list;
        }
    }
}

impl BlockBarrier {
    fn clear(&mut self) {
        self.waiting.clear();
        (self.threads, self.expected, self.trues) = (0, None, 0);
    }
}

fn describe(expected: Option<u32>) -> String {
    expected.map_or_else(|| "all threads".to_owned(), |count| format!("{count} threads"))
}
