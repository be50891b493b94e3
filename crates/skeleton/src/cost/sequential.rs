//! Sequential calls. A recursive function with nested parallelism is flattened level by level, or its calls
//! run in one thread each. A front end describes the code of its calls ([`SequentialCalls`]).

use super::workers::{Teams, Workers};
use super::{Costs, LANES};
use broadloom_device::MachineKind;

/// A number for workers that are warps or threads of a GPU, and for those that are cores of a CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ByWorker<T> {
    /// The value for workers of a GPU.
    pub gpu: T,
    /// For a CPU, and for the interpreter.
    pub core: T,
}

/// Cost of flattened code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlattenedLevels {
    /// Launches of a level.
    pub launches: f64,
    /// Bytes that the kernels of a level read and write for each element of its calls.
    pub bytes: f64,
    /// Levels for each level of a balanced recursion: flattened code goes on until the deepest call ends.
    pub levels: f64,
}

/// Bytes of an arena. The total is rounded up to a multiple of 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArenaBytes {
    /// Bytes for each element of the calls.
    pub element: u64,
    /// Bytes for each call.
    pub call: u64,
    /// Bytes that do not depend on the calls.
    pub fixed: u64,
}

/// Description of calls in teams of warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeamCalls {
    /// Maximum number of calls. More calls keep single warps busy.
    pub calls: u64,
    /// Minimum number of elements of the largest call.
    pub elements: u64,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks of a multiprocessor.
    pub blocks: u32,
    /// Size of the arena of all teams. A team releases no memory, so it is for all levels of a recursion
    /// together.
    pub arena: ArenaBytes,
    /// Divisor of the memory: the quotient is the maximum size of the arena.
    pub arena_share: u64,
    /// Bytes of a thread's stack per level of calls.
    pub frame: u64,
    /// Minimum and maximum depth of calls on a GPU.
    pub depth: [u64; 2],
    /// Blocks, threads of a block, and maximum depth of calls for tests on a machine with few threads.
    pub forced: (u32, u32, u64),
}

/// Description of the calls of a front end that run sequentially or flattened: what their code needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequentialCalls {
    /// Cost of the flattened code.
    pub flattened: FlattenedLevels,
    /// Dependent accesses of a worker to memory for each element of a call: of a warp, where other warps take
    /// parts of the call, and of a core for each level of a balanced recursion.
    pub accesses: ByWorker<f64>,
    /// Minimum number of elements of a call that another worker may take.
    pub task_elements: ByWorker<u32>,
    /// Maximum number of elements of a small call as a multiple of a worker's part of all elements: other
    /// workers wait for the call.
    pub part_of_worker: f64,
    /// The same multiple for cores that take parts of calls.
    pub part_of_core: f64,
    /// Size of the arena of a worker. Memory of a CPU that is not used takes no page.
    pub arena: ByWorker<ArenaBytes>,
    /// Elements of a part of a call that a worker without calls can take in any case: its arena is made for
    /// them.
    pub task_arena_elements: u64,
    /// Number of warps in each block of the launch.
    pub warps_of_block: u32,
    /// Maximum number of elements of a call that runs in one thread of a GPU, where there are calls for that
    /// many threads.
    pub thread_elements: u64,
    /// Maximum number of threads of a block for such calls. They take different branches, and a warp executes
    /// one branch at a time.
    pub threads_of_block: u32,
    /// Maximum depth of calls in a thread of a GPU.
    pub thread_depth: u64,
    /// Maximum depth of calls in a warp and in a core.
    pub depth: ByWorker<u64>,
    /// Calls in teams of warps.
    pub teams: TeamCalls,
}

/// Divisor of the memory: the quotient is the maximum for arenas of sequential calls.
const ARENA_SHARE: u64 = 16;
/// Divisor of the memory: the quotient is for the stacks of all resident threads.
const STACK_SHARE: u64 = 16;
/// Threads of a multiprocessor for sequential calls: half of those that are resident.
const WORKERS_SHARE: u64 = 2;
/// Threads of a multiprocessor for calls that run in one thread: an eighth of those that are resident.
const THREADS_SHARE: u64 = 8;

/// Returns whether the mean call is more than eight times as large as a small call, of at most `limit`
/// elements.
pub fn are_large_calls(elements: usize, calls: usize, limit: usize) -> bool {
    elements / calls.max(1) > limit.saturating_mul(8)
}

impl ArenaBytes {
    /// Returns the size of an arena; `u64::MAX` if it is larger than any memory.
    fn of(&self, calls: u64, elements: u64) -> u64 {
        let bytes =
            self.fixed.saturating_add(calls.saturating_mul(self.call)).saturating_add(elements.saturating_mul(self.element));
        bytes.checked_next_multiple_of(256).unwrap_or(u64::MAX)
    }
}

impl Costs<'_> {
    /// Returns the number for the workers of this machine.
    fn of_worker<T>(&self, each: ByWorker<T>) -> T {
        match self.machine.kind {
            MachineKind::Cuda => each.gpu,
            MachineKind::Cpu | MachineKind::Interp => each.core,
        }
    }

    /// Returns the seconds of a flattened level, whatever its calls are.
    fn level(&self, levels: &FlattenedLevels) -> f64 {
        let latencies = self.latencies();
        levels.launches * latencies.launch + latencies.wait
    }

    /// Returns the maximum number of elements of a call that runs sequentially, if all calls together have
    /// `elements`.
    ///
    /// A core needs `n · log2(n) · accesses` accesses for a call of `n` elements, a warp `n · accesses`.
    /// Flattened code needs `levels · log2(n)` levels. Calls of a thread are small up to the size at which
    /// both take equally long. Calls of a warp are small up to the size at which the largest call takes
    /// longer by the time that a level less saves. The bytes of a level count only for calls that do not take
    /// much more than a worker's part of all elements: other workers would wait for them. Cores wait less if
    /// they take parts of calls (`has_tasks`).
    pub fn sequential_limit(&self, code: &SequentialCalls, elements: u64, has_tasks: bool) -> u64 {
        let latencies = self.latencies();
        let levels = match self.machine.kind {
            MachineKind::Cuda => code.flattened.levels * std::f64::consts::LOG2_E,
            MachineKind::Cpu | MachineKind::Interp => code.flattened.levels,
        };
        let element = self.of_worker(code.accesses) * latencies.access;
        let bytes = elements as f64 * code.flattened.bytes * latencies.byte;
        let level = self.level(&code.flattened);
        let (few, many) = (levels * level / element, levels * (level + bytes) / element);
        let share = match self.machine.kind {
            MachineKind::Cpu | MachineKind::Interp if has_tasks => code.part_of_core,
            MachineKind::Cpu | MachineKind::Interp | MachineKind::Cuda => code.part_of_worker,
        };
        let part = elements as f64 * share / self.workers() as f64;
        few.max(many.min(part)) as u64
    }

    /// Returns the maximum number of elements of the rounds of a loop that one core runs. A round of flattened
    /// code is a level. A thread of a GPU is too slow.
    pub fn sequential_loop_limit(&self, code: &SequentialCalls, elements: u64) -> u64 {
        if self.machine.kind == MachineKind::Cuda {
            return 0;
        }
        let latencies = self.latencies();
        let element = self.of_worker(code.accesses) * latencies.access;
        let bytes = elements as f64 * code.flattened.bytes * latencies.byte;
        ((self.level(&code.flattened) + bytes) / element) as u64
    }

    /// Returns whether small calls run sequentially while the large ones stay flattened. All calls have
    /// `elements`, the small ones `small` of them.
    ///
    /// The levels of the large calls remain, so only bytes are saved. That pays where they take longer than
    /// the launches of a level do, and where most of them are saved.
    pub fn separates_calls(&self, code: &SequentialCalls, elements: u64, small: u64) -> bool {
        let bytes = elements as f64 * code.flattened.bytes * self.latencies().byte;
        small > 0 && small >= elements / 2 && bytes >= self.level(&code.flattened)
    }

    /// Returns how many workers run sequential calls at the same time.
    fn workers(&self) -> u64 {
        match self.machine.kind {
            MachineKind::Cpu => self.busy(1).max(1),
            MachineKind::Cuda => self.busy(self.resident_threads() / WORKERS_SHARE / u64::from(LANES)).max(1),
            // Two, so that they share the counter of calls.
            MachineKind::Interp => 2,
        }
    }

    /// Returns how `calls` calls are launched, of which the largest has `largest` elements. `has_tasks` is
    /// true if threads can take parts of calls.
    pub fn sequential_workers(&self, code: &SequentialCalls, calls: u64, largest: u64, has_tasks: bool) -> Workers {
        let size = self.of_worker(code.arena);
        let arena = |elements: u64| size.of(1, elements);
        let threads = self.busy(self.resident_threads() / THREADS_SHARE).max(1);
        let (lanes, of_block, depth, all, grain) = match self.machine.kind {
            // Many short calls keep all threads busy, each with its own. The shortest ones have nothing for
            // the lanes to share.
            MachineKind::Cuda if largest <= LANES.into() || calls >= threads && largest <= code.thread_elements => {
                let of_block = (calls / self.workers()).clamp(1, code.threads_of_block.into());
                (1, of_block as u32, code.thread_depth, threads, 0)
            }
            MachineKind::Cuda => (LANES, code.warps_of_block, code.depth.gpu, self.workers(), code.task_elements.gpu),
            MachineKind::Cpu | MachineKind::Interp if has_tasks => {
                (1, 1, code.depth.core, self.workers(), code.task_elements.core)
            }
            MachineKind::Cpu | MachineKind::Interp => (1, 1, code.depth.core, self.workers(), 0),
        };
        let tasks = largest.checked_div(grain.into()).unwrap_or(0);
        let memory = self.machine.memory_bytes / ARENA_SHARE;
        let (least, arena) = (arena(largest.min(code.task_arena_elements)), arena(largest));
        let callers = all.min(calls).min(memory / arena).max(1);
        let left = memory.saturating_sub(callers.saturating_mul(arena));
        let task_arena = (left / all / 256 * 256).clamp(least, arena);
        let others = left / task_arena;
        let workers = all.min(calls.saturating_mul(1 + tasks)).min(callers + others).max(1);
        let of_block = of_block.min(workers as u32);
        let blocks = u32::try_from(workers.div_ceil(of_block.into())).unwrap_or(u32::MAX);
        let callers = u32::try_from(callers).unwrap_or(u32::MAX);
        Workers { blocks, threads: of_block * lanes, lanes, grain, callers, arena, task_arena, depth }
    }

    /// Returns how teams of warps run `calls` calls with `elements` in all, of which the largest has
    /// `largest`. Returns `None` if single warps or flattened code are faster. Tests on a machine with few
    /// threads force teams.
    ///
    /// A team takes a few microseconds for a pass over the elements of a call, a flattened level hundreds for
    /// its launches. Calls for many warps have no need of it.
    pub fn sequential_teams(&self, code: &TeamCalls, calls: u64, elements: u64, largest: u64, forced: bool) -> Option<Teams> {
        let (blocks, threads, depth) = match self.machine.kind {
            MachineKind::Cuda => {
                let stack = self.machine.memory_bytes / STACK_SHARE / self.busy(self.resident_threads()).max(1);
                let [least, most] = code.depth;
                (self.machine.multiprocessors.max(1) * code.blocks, code.threads, (stack / code.frame).clamp(least, most))
            }
            MachineKind::Cpu | MachineKind::Interp if forced => code.forced,
            MachineKind::Cpu | MachineKind::Interp => return None,
        };
        if !forced && (calls > code.calls || largest < code.elements) {
            return None;
        }
        let arena = code.arena.of(calls, elements);
        (arena <= self.machine.memory_bytes / code.arena_share).then_some(Teams { blocks, threads, arena, depth })
    }
}
