//! Workers and teams that run sequential calls.

/// The way in which sequential calls are launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// Blocks of the grid.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Threads of a worker: one, or those of a warp. A worker takes one call after the other.
    pub lanes: u32,
    /// Minimum number of elements of a call that another worker may take; 0 if workers take no such calls.
    pub grain: u32,
    /// Workers that take calls. The others take parts of them.
    pub callers: u32,
    /// Bytes of the arena of a worker that takes calls.
    pub arena: u64,
    /// Bytes of the arena of a worker that takes parts of calls.
    pub task_arena: u64,
    /// Maximum depth of calls. A thread of a GPU has a small stack.
    pub depth: u64,
}

/// The way in which calls in teams of warps are launched: all blocks at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Teams {
    /// Maximum blocks of the grid: those that are resident.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of the arena of all teams.
    pub arena: u64,
    /// Maximum depth of calls.
    pub depth: u64,
}

impl Workers {
    /// Returns the number of workers.
    pub fn count(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.threads / self.lanes.max(1))
    }

    /// Returns the number of workers that take calls.
    pub fn callers(&self) -> u64 {
        self.count().min(self.callers.into())
    }

    /// Returns the bytes of all arenas.
    pub fn bytes(&self) -> u64 {
        let tasks = (self.count() - self.callers()).saturating_mul(self.task_arena);
        self.callers().saturating_mul(self.arena).saturating_add(tasks)
    }
}
