//! The memory of a sequential form for teams: offsets in bytes.

/// Memory for barriers begins here, behind the header of the queue of tasks.
pub(crate) const SYNC: u32 = super::task::FIRST;
/// Threads of a block, at most. It has a barrier for each place between its warps, and one for itself.
pub(crate) const THREADS: u32 = 512;
/// Bytes of the record of a block.
pub(crate) const RECORD: u32 = 64;

/// Returns the bytes of the memory for barriers: a record, a `u32` and room up to 8 bytes for each block, a `u64` for each warp.
pub(crate) fn sync_bytes(blocks: u32, warps: u32) -> usize {
    blocks as usize * (RECORD as usize + 8) + warps as usize * 8
}
