//! From the symbols that programs link with to the functions behind them.
//!
//! With `BROADLOOM_DEVICE=cuda` these are NVIDIA's own, found in the libraries that the program would use without this one; otherwise those of this library.
//! Where there is a trace, calls on their way to NVIDIA's are spans, and kernels are timed by events around their launches. **What is not recorded
//! costs one jump. A machine without NVIDIA's libraries answers as one without a GPU.**

pub(crate) mod entry;
mod library;
mod record;
mod timing;

use crate::functions::{FUNCTIONS, OWN};
use crate::status::Status;
use crate::tell::tell;
use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

/// Registers that hold arguments before any stand on the stack.
const REGISTERS: usize = if cfg!(target_arch = "aarch64") { 8 } else { 6 };

/// What is kept of a call while it is under way.
#[repr(C)]
pub(crate) struct Frame {
    words: [usize; REGISTERS],
    index: usize,
    stack: *const usize,
    result: [usize; 2],
    /// What `record` knows of it.
    open: Option<Box<record::Open>>,
    /// Where a large result goes, on machines that have a register for it.
    hidden: usize,
    floats: [[u64; 2]; 8],
}

// The stack has to stay aligned.
const _: () = assert!(size_of::<Frame>().is_multiple_of(16));

impl Frame {
    /// An argument by its place among words: what is larger than one counts for as many as it has.
    fn word(&self, place: usize) -> usize {
        match place.checked_sub(REGISTERS) {
            None => self.words[place],
            // SAFETY: functions are asked for arguments that they have, and what does not fit into registers lies there.
            Some(behind) => unsafe { *self.stack.add(behind) },
        }
    }
}

/// The program ends: what is still under way on a GPU is waited for and recorded.
pub(crate) fn finish() {
    timing::finish();
}

/// Whether calls are to go to NVIDIA's libraries.
fn wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| {
        let name = std::env::var("BROADLOOM_DEVICE").unwrap_or_default();
        let wanted = name == "cuda" || name.starts_with("cuda:");
        if wanted && crate::check::is_wanted() {
            tell("kernels on a GPU are not checked; without BROADLOOM_DEVICE they run on the interpreter, and are");
        }
        wanted
    })
}

/// Where a function leads, from now on.
extern "C" fn choose(frame: &mut Frame) -> *const () {
    let index = frame.index;
    let chosen = catch_unwind(|| {
        if !wanted() {
            return OWN[index].0;
        }
        match library::of(FUNCTIONS[index].library) {
            None => OWN[index].0,
            Some(library) => match library.find(index) {
                None => missing as *const (),
                Some(_) if crate::tracing::is_wanted() => entry::recorded as *const (),
                Some(address) => address,
            },
        }
    });
    let target = chosen.unwrap_or(missing as *const ());
    entry::TABLE[index].store(target.cast_mut(), Ordering::Relaxed);
    target
}

/// A function that NVIDIA's library does not have.
extern "C" fn missing() -> u32 {
    Status::CALL_REQUIRES_NEWER_DRIVER.0
}
