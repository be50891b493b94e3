//! Saved state of a call in progress.

use super::timing::TimedLaunch;
use broadloom_device::trace::Span;

/// Number of registers that hold arguments before the stack is used.
const REGISTERS: usize = if cfg!(target_arch = "aarch64") { 8 } else { 6 };

/// State of a recorded call in progress.
pub(crate) struct RecordedCall {
    pub(super) span: Span,
    pub(super) timed: Option<TimedLaunch>,
}

/// Saved state of a call in progress.
#[repr(C)]
pub(crate) struct Frame {
    pub(super) words: [usize; REGISTERS],
    pub(super) index: usize,
    pub(super) stack: *const usize,
    pub(super) result: [usize; 2],
    /// State of the recorder.
    pub(super) open: Option<Box<RecordedCall>>,
    /// Address of a large result, on machines with a register for it.
    pub(super) hidden: usize,
    pub(super) floats: [[u64; 2]; 8],
}

// The stack must stay aligned.
const _: () = assert!(size_of::<Frame>().is_multiple_of(16));

impl Frame {
    /// Returns an argument by its word index. Larger arguments count as several words.
    pub(super) fn word(&self, place: usize) -> usize {
        match place.checked_sub(REGISTERS) {
            None => self.words[place],
            // SAFETY: only existing arguments are requested, and those that are not in registers are on the
            // stack.
            Some(behind) => unsafe { *self.stack.add(behind) },
        }
    }
}
