//! The queue of tasks of a sequential form for warps: offsets in bytes.

/// The number of tasks so far is at offset 0. The smallest number of elements that is worth a task.
pub(crate) const GRAIN: u32 = 4;
/// The number of tasks that there is memory for.
pub(crate) const CAPACITY: u32 = 8;
/// The number of workers that take calls, whose arenas are large. The others take tasks only.
pub(crate) const CALLERS: u32 = 12;
/// Bytes of the arenas of the others, a `u64`.
pub(crate) const ARENA: u32 = 16;
/// The next task that a warp takes.
pub(crate) const NEXT: u32 = 64;
/// The number of calls that have ended.
pub(crate) const ENDED: u32 = 128;
/// The first record.
pub(crate) const FIRST: u32 = 256;
/// Bytes of a record.
pub(crate) const RECORD: u32 = 256;
