//! Sequential calls. A recursive function with nested parallelism is flattened level by level, or its calls run in
//! one thread each. Figures are those of quicksort on the machines of `docs/PERFORMANCE.md`.

use super::workers::{Teams, Workers};
use super::{Costs, LANES};
use broadloom_device::MachineKind;

/// Launches of a flattened level.
const LEVEL_LAUNCHES: f64 = 24.0;
/// Bytes that the kernels of a flattened level read and write for each element of its calls.
const LEVEL_BYTES: f64 = 200.0;
/// Flattened levels for each level of a balanced recursion: flattened code goes on until the deepest call ends.
const LEVELS: f64 = 2.0;
/// Dependent accesses of a thread to memory for each element and each level of a balanced recursion.
const THREAD_ACCESSES: f64 = 10.0;
/// Dependent accesses of a warp to memory for each element of a call, where other warps take parts of it.
const WARP_ACCESSES: f64 = 1.0;
/// The smallest number of elements of a call that another warp may take, and that another core may take.
const TASK_ELEMENTS: u32 = 96;
const CORE_TASK_ELEMENTS: u32 = 1 << 12;
/// Elements of a small call as a multiple of a worker's part of all elements, at most: other workers wait for the call, or
/// take parts of it.
const PART_OF_WORKER: f64 = 1.5;
const PART_OF_CORE: f64 = 2.0;
/// The part of the memory that arenas of sequential calls take, at most.
const ARENA_SHARE: u64 = 16;
/// Bytes of an arena for each element of a call, on a GPU and on a CPU, and besides. Memory of a CPU that is not used takes
/// no page.
const ARENA_OF_ELEMENT: u64 = 96;
const CORE_ARENA_OF_ELEMENT: u64 = 192;
const ARENA: u64 = 1 << 13;
/// Elements of a part of a call that a worker without calls can take in any case: its arena is made for them.
const TASK_ARENA_ELEMENTS: u64 = 1 << 12;
/// Threads of a multiprocessor for sequential calls: half of those that are resident.
const WORKERS_SHARE: u64 = 2;
/// Warps of a block for sequential calls.
const WARPS_OF_BLOCK: u32 = 2;
/// Calls that teams of warps run, at most, and the smallest number of elements of the largest of them.
const TEAM_CALLS: u64 = 1 << 10;
const TEAM_ELEMENTS: u64 = 1 << 12;
/// Threads of a block of teams, and blocks of a multiprocessor.
const TEAM_THREADS: u32 = 512;
const TEAM_BLOCKS: u32 = 2;
/// Bytes of the arena of teams for each element and for each call, and besides. A team releases no memory, so they are for all
/// levels of a recursion together.
const TEAM_ARENA_OF_ELEMENT: u64 = 1536;
const TEAM_ARENA_OF_CALL: u64 = 1 << 15;
const TEAM_ARENA: u64 = 1 << 22;
/// Bytes of the stack of a thread for a call in a call.
const TEAM_FRAME: u64 = 384;
/// The part of the memory that the arena of teams takes, at most.
const TEAM_ARENA_SHARE: u64 = 4;
/// Elements of a call that runs in one thread of a GPU, at most, where there are calls for that many threads.
const THREAD_ELEMENTS: u64 = 128;
/// Threads of a multiprocessor for such calls: an eighth of those that are resident.
const THREADS_SHARE: u64 = 8;
/// Threads of a block for such calls, at most. They take different branches, and a warp executes one branch at a time.
const THREADS_OF_BLOCK: u32 = 8;

impl Costs<'_> {
    /// Returns the seconds of a flattened level, whatever its calls are.
    fn level(&self) -> f64 {
        let latencies = self.latencies();
        LEVEL_LAUNCHES * latencies.launch + latencies.wait
    }

    /// Returns how many elements a call has at most that runs sequentially, where all calls together have so many.
    ///
    /// A thread needs `n · log2(n) · THREAD_ACCESSES` accesses for a call of `n` elements, a warp `n · WARP_ACCESSES`. Flattened
    /// code needs `LEVELS · log2(n)` levels. Calls of a thread are small up to the size at which both take equally long. Calls
    /// of a warp are small up to the size at which the largest call takes as much longer as a level less saves. The bytes of
    /// a level count only for calls that do not take much more than a worker's part of all elements: other workers would
    /// wait for them. Cores wait less where they take parts of calls (`has_tasks`).
    pub fn sequential_limit(&self, elements: u64, has_tasks: bool) -> u64 {
        let latencies = self.latencies();
        let (accesses, levels) = match self.machine.kind {
            MachineKind::Cuda => (WARP_ACCESSES, LEVELS * std::f64::consts::LOG2_E),
            MachineKind::Cpu | MachineKind::Interp => (THREAD_ACCESSES, LEVELS),
        };
        let element = accesses * latencies.access;
        let bytes = elements as f64 * LEVEL_BYTES * latencies.byte;
        let (few, many) = (levels * self.level() / element, levels * (self.level() + bytes) / element);
        let share = match self.machine.kind {
            MachineKind::Cpu | MachineKind::Interp if has_tasks => PART_OF_CORE,
            MachineKind::Cpu | MachineKind::Interp | MachineKind::Cuda => PART_OF_WORKER,
        };
        let part = elements as f64 * share / self.workers() as f64;
        few.max(many.min(part)) as u64
    }

    /// Returns whether some small calls run sequentially while the large ones stay flattened, where all have so many elements
    /// and the small ones so many.
    ///
    /// The levels of the large calls remain, so only bytes are saved. That pays where they take longer than the launches of
    /// a level do, and where most of them are saved.
    pub fn separates_calls(&self, elements: u64, small: u64) -> bool {
        let bytes = elements as f64 * LEVEL_BYTES * self.latencies().byte;
        small > 0 && small >= elements / 2 && bytes >= self.level()
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

    /// Returns how so many calls are launched, of which the largest has so many elements. `has_tasks` is set where threads can
    /// take parts of calls.
    pub fn sequential_workers(&self, calls: u64, largest: u64, has_tasks: bool) -> Workers {
        let of_element = match self.machine.kind {
            MachineKind::Cuda => ARENA_OF_ELEMENT,
            MachineKind::Cpu | MachineKind::Interp => CORE_ARENA_OF_ELEMENT,
        };
        let arena = |elements: u64| {
            let bytes = ARENA.saturating_add(elements.saturating_mul(of_element));
            bytes.checked_next_multiple_of(256).unwrap_or(u64::MAX)
        };
        let threads = self.busy(self.resident_threads() / THREADS_SHARE).max(1);
        let (lanes, of_block, depth, all, grain) = match self.machine.kind {
            // Many short calls keep all threads busy, each with its own. The shortest ones have nothing for the lanes to share.
            MachineKind::Cuda if largest <= LANES.into() || calls >= threads && largest <= THREAD_ELEMENTS => {
                let of_block = (calls / self.workers()).clamp(1, THREADS_OF_BLOCK.into());
                (1, of_block as u32, 48, threads, 0)
            }
            MachineKind::Cuda => (LANES, WARPS_OF_BLOCK, 64, self.workers(), TASK_ELEMENTS),
            MachineKind::Cpu | MachineKind::Interp if has_tasks => (1, 1, 96, self.workers(), CORE_TASK_ELEMENTS),
            MachineKind::Cpu | MachineKind::Interp => (1, 1, 96, self.workers(), 0),
        };
        let tasks = largest.checked_div(grain.into()).unwrap_or(0);
        let memory = self.machine.memory_bytes / ARENA_SHARE;
        let (least, arena) = (arena(largest.min(TASK_ARENA_ELEMENTS)), arena(largest));
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

    /// Returns how teams of warps run so many calls with so many elements, of which the largest has so many; `None` where
    /// single warps or flattened code do. Teams are `forced` for tests, where the machine has few threads.
    ///
    /// A team takes a few microseconds for a pass over the elements of a call, a flattened level hundreds for its launches.
    /// Calls for many warps have no need of it.
    pub fn sequential_teams(&self, calls: u64, elements: u64, largest: u64, forced: bool) -> Option<Teams> {
        let (blocks, threads) = match self.machine.kind {
            MachineKind::Cuda => (self.machine.multiprocessors.max(1) * TEAM_BLOCKS, TEAM_THREADS),
            MachineKind::Cpu | MachineKind::Interp if forced => (3, 5 * LANES),
            MachineKind::Cpu | MachineKind::Interp => return None,
        };
        if !forced && (calls > TEAM_CALLS || largest < TEAM_ELEMENTS) {
            return None;
        }
        let of_elements = elements.checked_mul(TEAM_ARENA_OF_ELEMENT)?;
        let arena = of_elements.checked_add(calls.checked_mul(TEAM_ARENA_OF_CALL)?)?.checked_add(TEAM_ARENA)?;
        let arena = arena.checked_next_multiple_of(256)?;
        let depth = match self.machine.kind {
            // All resident threads together have a sixteenth of the memory as stack.
            MachineKind::Cuda => {
                let stack = self.machine.memory_bytes / 16 / self.busy(self.resident_threads()).max(1);
                (stack / TEAM_FRAME).clamp(16, 80)
            }
            MachineKind::Cpu | MachineKind::Interp => 64,
        };
        (arena <= self.machine.memory_bytes / TEAM_ARENA_SHARE).then_some(Teams { blocks, threads, arena, depth })
    }
}
