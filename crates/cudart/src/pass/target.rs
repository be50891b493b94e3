//! Target of a function: this library, or NVIDIA's.

use super::{library, timing};
use crate::functions::{FUNCTIONS, OWN};
use crate::tell::tell;
use std::panic::catch_unwind;
use std::sync::OnceLock;

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

/// Returns the target of a function. `recorded` is the target of a function whose calls are recorded.
pub(super) fn target_of(index: usize, recorded: *const ()) -> *const () {
    let target = catch_unwind(|| {
        if !wanted() {
            return OWN[index].0;
        }
        match library::of(FUNCTIONS[index].library) {
            None => OWN[index].0,
            Some(library) => match library.find(index) {
                None => library::missing as *const (),
                Some(_) if crate::tracing::is_wanted() => {
                    crate::tracing::set_complete(timing::finish);
                    recorded
                }
                Some(address) => address,
            },
        }
    });
    target.unwrap_or(library::missing as *const ())
}
