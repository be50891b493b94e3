//! Costs of the code of sequential calls. Figures are those of quicksort on the machines of
//! `docs/PERFORMANCE.md`.

use broadloom_graph::{ArenaBytes, ByWorker, FlattenedLevels, SequentialCalls, TeamCalls};

/// Description of sequential calls for the cost model.
pub const SEQUENTIAL_CALLS: SequentialCalls = SequentialCalls {
    flattened: FlattenedLevels { launches: 24.0, bytes: 200.0, levels: 2.0 },
    accesses: ByWorker { gpu: 1.0, core: 10.0 },
    task_elements: ByWorker { gpu: 96, core: 1 << 12 },
    part_of_worker: 1.5,
    part_of_core: 2.0,
    arena: ByWorker {
        gpu: ArenaBytes { element: 96, call: 1 << 13, fixed: 0 },
        core: ArenaBytes { element: 192, call: 1 << 13, fixed: 0 },
    },
    task_arena_elements: 1 << 12,
    warps_of_block: 2,
    thread_elements: 128,
    threads_of_block: 8,
    thread_depth: 48,
    depth: ByWorker { gpu: 64, core: 96 },
    teams: TeamCalls {
        calls: 1 << 10,
        elements: 1 << 12,
        threads: 512,
        blocks: 2,
        arena: ArenaBytes { element: 1536, call: 1 << 15, fixed: 1 << 22 },
        arena_share: 4,
        frame: 384,
        depth: [16, 80],
        forced: (3, 160, 64),
    },
};
