//! Binding of exported symbols to functions.
//!
//! With `BROADLOOM_DEVICE=cuda` a symbol leads to NVIDIA's function, found in the libraries that the program
//! would use without this one. Otherwise it leads to a function of this library. With a trace, calls of
//! NVIDIA's functions become spans, and events around launches time the kernels. **Calls that are not
//! recorded cost one jump. Without NVIDIA's libraries the machine appears to have no GPU.**

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

/// Number of registers that hold arguments before the stack is used.
const REGISTERS: usize = if cfg!(target_arch = "aarch64") { 8 } else { 6 };

/// Saved state of a call in progress.
#[repr(C)]
pub(crate) struct Frame {
    words: [usize; REGISTERS],
    index: usize,
    stack: *const usize,
    result: [usize; 2],
    /// State of the recorder.
    open: Option<Box<record::Open>>,
    /// Address of a large result, on machines with a register for it.
    hidden: usize,
    floats: [[u64; 2]; 8],
}

// The stack must stay aligned.
const _: () = assert!(size_of::<Frame>().is_multiple_of(16));

impl Frame {
    /// Returns an argument by its word index. Larger arguments count as several words.
    fn word(&self, place: usize) -> usize {
        match place.checked_sub(REGISTERS) {
            None => self.words[place],
            // SAFETY: only existing arguments are requested, and those that are not in registers are on the
            // stack.
            Some(behind) => unsafe { *self.stack.add(behind) },
        }
    }
}

/// Tests if calls go to NVIDIA's libraries.
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

/// Selects and stores the target of a function.
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
                Some(_) if crate::tracing::is_wanted() => {
                    crate::tracing::set_complete(timing::finish);
                    entry::recorded as *const ()
                }
                Some(address) => address,
            },
        }
    });
    let target = chosen.unwrap_or(missing as *const ());
    entry::TABLE[index].store(target.cast_mut(), Ordering::Relaxed);
    target
}

/// Stands for a function that NVIDIA's library does not have.
extern "C" fn missing() -> u32 {
    Status::CALL_REQUIRES_NEWER_DRIVER.0
}
