//! The queue of tasks of a sequential form for warps: offsets in bytes.

/// Minimum number of elements for a task. Offset 0 has the number of tasks so far.
pub(crate) const GRAIN: u32 = 4;
/// Number of tasks that fit into the memory.
pub(crate) const CAPACITY: u32 = 8;
/// Number of workers that take calls and have large arenas. The others take tasks only.
pub(crate) const CALLERS: u32 = 12;
/// Size in bytes of the arenas of the others, a `u64`.
pub(crate) const ARENA: u32 = 16;
/// Index of the next task for a warp.
pub(crate) const NEXT: u32 = 64;
/// Number of finished calls.
pub(crate) const ENDED: u32 = 128;
/// The first record.
pub(crate) const FIRST: u32 = 256;
/// Bytes of a record.
pub(crate) const RECORD: u32 = 256;
