//! The memory of a sequential form for teams: offsets in bytes.

/// Memory for barriers begins here, behind the header of the queue of tasks.
pub(crate) const SYNC: u32 = super::task::FIRST;
/// Threads of a block, at most. It has a barrier for each place between its warps, and one for itself.
pub(crate) const THREADS: u32 = 512;
/// Bytes of the record of a warp.
pub(crate) const RECORD: u32 = 32;
