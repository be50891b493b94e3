//! What a block of threads is while it runs.

use crate::op::Op;
use broadloom_ptx::Func;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: it can run.
    #[default]
    Nothing,
    /// A barrier of the block, by number.
    Barrier(u8),
    /// The other lanes of a mask.
    Lanes(u32),
    /// Lanes that come to the same instruction, whoever they are.
    Convergence,
    /// A phase of an mbarrier, until the others have had their turn.
    Mbarrier,
    /// The barrier of the cluster.
    Cluster,
    /// It has ended.
    Exited,
}

/// A function that has been called and not returned.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) func: Func,
    /// Position of the next instruction.
    pub(crate) pc: usize,
    /// First slot of its registers.
    pub(crate) registers: usize,
    /// First byte of its frame in local memory.
    pub(crate) base: u64,
}

/// A thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    /// Its index in the block.
    pub(crate) id: [u32; 3],
    /// Calls, innermost last. Empty once it has ended.
    pub(crate) frames: Vec<Frame>,
    /// Registers of all frames.
    pub(crate) registers: Vec<u64>,
    /// Local memory: frames of functions, one behind the other.
    pub(crate) local: Vec<u8>,
    /// The carry flag.
    pub(crate) carry: bool,
    pub(crate) wait: Wait,
    /// Whether it has waited for an mbarrier and asks for the last time now.
    pub(crate) asked: bool,
    /// How often the barrier of the cluster had been complete when it arrived there; `None` when it has waited since.
    pub(crate) arrived: Option<u64>,
    /// Whether it has used up its turn without stopping.
    pub(crate) spent: bool,
}

impl Thread {
    /// Puts it before the first instruction of a kernel, everything zero. What memory it has, it keeps.
    pub(crate) fn start(&mut self, id: [u32; 3], kernel: Func, slots: usize, local_bytes: usize) {
        self.frames.clear();
        self.frames.push(Frame { func: kernel, pc: 0, registers: 0, base: 0 });
        self.registers.clear();
        self.registers.resize(slots, 0);
        self.local.clear();
        self.local.resize(local_bytes, 0);
        (self.id, self.carry, self.wait, self.spent) = (id, false, Wait::Nothing, false);
        (self.asked, self.arrived) = (false, None);
    }

    pub(crate) fn ready(&self) -> bool {
        self.wait == Wait::Nothing
    }

    pub(crate) fn exited(&self) -> bool {
        self.wait == Wait::Exited
    }
}

/// A barrier of a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Barrier {
    /// Threads that wait.
    pub(crate) waiting: Vec<u32>,
    /// Threads that arrived and went on.
    pub(crate) arrived: Vec<u32>,
    /// How many it takes, when said; else all threads that have not ended.
    pub(crate) expected: Option<u32>,
    /// How many of the threads that came had a true predicate, for reductions.
    pub(crate) trues: u32,
}

/// Barriers of a block: 0 to 15.
pub(crate) const BARRIERS: usize = 16;

/// A block of threads.
#[derive(Clone, Debug)]
pub(crate) struct Cta {
    /// Its index in the grid.
    pub(crate) id: [u32; 3],
    /// Its number in the grid.
    pub(crate) number: u64,
    pub(crate) threads: Vec<Thread>,
    pub(crate) shared: Vec<u8>,
    pub(crate) barriers: [Barrier; BARRIERS],
    /// Threads that have not ended.
    pub(crate) alive: u32,
    /// Threads that wait for an mbarrier or for their cluster.
    pub(crate) parked: u32,
    /// Instructions run so far.
    pub(crate) steps: u64,
}

impl Cta {
    /// The threads of a warp.
    pub(crate) fn lanes(&self, warp: usize) -> std::ops::Range<usize> {
        warp * 32..(warp * 32 + 32).min(self.threads.len())
    }

    pub(crate) fn warps(&self) -> usize {
        self.threads.len().div_ceil(32)
    }
}

/// Where in the code something happens.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) func: Func,
    pub(crate) op: &'a Op,
    pub(crate) thread: usize,
}
