//! Running block of threads.

use crate::op::Op;
use broadloom_ptx::Func;

/// Condition that a thread waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: the thread can run.
    #[default]
    Nothing,
    /// A barrier of the block, by number.
    Barrier(u8),
    /// The other lanes of a mask.
    Lanes(u32),
    /// Any lanes that reach the same instruction.
    Convergence,
    /// A phase of an mbarrier, until the others have had their turn.
    Mbarrier,
    /// The barrier of the cluster.
    Cluster,
    /// The thread has exited.
    Exited,
}

/// Active function call.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) func: Func,
    /// Index of the next instruction.
    pub(crate) pc: usize,
    /// First slot of its registers.
    pub(crate) registers: usize,
    /// First byte of its frame in local memory.
    pub(crate) base: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    /// Index in the block.
    pub(crate) id: [u32; 3],
    /// Calls, innermost last. Empty once it has exited.
    pub(crate) frames: Vec<Frame>,
    /// Registers of all frames.
    pub(crate) registers: Vec<u64>,
    /// Local memory: frames of functions in sequence.
    pub(crate) local: Vec<u8>,
    /// The carry flag.
    pub(crate) carry: bool,
    pub(crate) wait: Wait,
    /// True if it has waited for an mbarrier and now polls for the last time.
    pub(crate) asked: bool,
    /// Number of completed phases of the cluster barrier when it arrived there; `None` if it has waited
    /// since.
    pub(crate) arrived: Option<u64>,
    /// True if it has used up its turn without stopping.
    pub(crate) spent: bool,
}

impl Thread {
    /// Resets it to the first instruction of a kernel, everything zero. It keeps its memory for reuse.
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

    /// Empties registers and local memory. Small ones keep their memory for the next thread.
    pub(crate) fn release(&mut self) {
        const KEPT_BYTES: usize = 1 << 12;
        self.registers.clear();
        self.registers.shrink_to(KEPT_BYTES / size_of::<u64>());
        self.local.clear();
        self.local.shrink_to(KEPT_BYTES);
    }

    pub(crate) fn ready(&self) -> bool {
        self.wait == Wait::Nothing
    }

    pub(crate) fn exited(&self) -> bool {
        self.wait == Wait::Exited
    }
}

/// Barrier of a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Barrier {
    /// Threads that wait.
    pub(crate) waiting: Vec<u32>,
    /// Threads that arrived without waiting.
    pub(crate) arrived: Vec<u32>,
    /// Thread count of the instruction. `None` means all threads that have not exited.
    pub(crate) expected: Option<u32>,
    /// Number of arrived threads with a true predicate, for reductions.
    pub(crate) trues: u32,
}

/// Number of barriers of a block: 0 to 15.
pub(crate) const BARRIERS: usize = 16;

/// Block of threads.
#[derive(Clone, Debug)]
pub(crate) struct Cta {
    /// Index in the grid.
    pub(crate) id: [u32; 3],
    /// Number in the grid.
    pub(crate) number: u64,
    pub(crate) threads: Vec<Thread>,
    pub(crate) shared: Vec<u8>,
    pub(crate) barriers: [Barrier; BARRIERS],
    /// Number of threads that have not exited.
    pub(crate) alive: u32,
    /// Number of threads that wait for an mbarrier or for their cluster.
    pub(crate) parked: u32,
    /// Number of instructions run so far.
    pub(crate) steps: u64,
}

impl Cta {
    /// Returns the threads of a warp.
    pub(crate) fn lanes(&self, warp: usize) -> std::ops::Range<usize> {
        warp * 32..(warp * 32 + 32).min(self.threads.len())
    }

    pub(crate) fn warps(&self) -> usize {
        self.threads.len().div_ceil(32)
    }
}

/// Place of an event in the code.
#[derive(Clone, Copy)]
pub(crate) struct CodeSite<'a> {
    pub(crate) func: Func,
    pub(crate) op: &'a Op,
    pub(crate) thread: usize,
}
