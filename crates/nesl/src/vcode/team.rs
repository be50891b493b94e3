//! The memory of a sequential form for teams: offsets in bytes.

/// Start of the memory for barriers, after the header of the queue of tasks.
pub(crate) const SYNC: u32 = super::task::FIRST;
/// Maximum number of threads of a block. It has a barrier for each boundary between its warps, and one for
/// itself.
pub(crate) const THREADS: u32 = 512;
/// Bytes of the record of a warp.
pub(crate) const RECORD: u32 = 32;
