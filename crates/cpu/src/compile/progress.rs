//! Current stage of a compilation, for the threads that wait for it.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

/// Stage of a compilation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<Mutex<&'static str>>);

thread_local! {
    static CURRENT: RefCell<Option<Progress>> = const { RefCell::new(None) };
}

impl Progress {
    /// Returns the stage; empty before the first.
    pub(crate) fn stage(&self) -> &'static str {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes this the progress of all further compilations of this thread.
    pub(crate) fn enter(&self) {
        CURRENT.set(Some(self.clone()));
    }
}

/// Records that this thread begins a stage.
pub(super) fn begin(stage: &'static str) {
    CURRENT.with_borrow(|current| {
        if let Some(Progress(current)) = current {
            *current.lock().unwrap_or_else(PoisonError::into_inner) = stage;
        }
    });
}
