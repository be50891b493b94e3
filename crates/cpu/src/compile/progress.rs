//! The stage that a compilation has come to, for whoever waits for it.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

/// The stage of a compilation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<Mutex<&'static str>>);

thread_local! {
    static CURRENT: RefCell<Option<Progress>> = const { RefCell::new(None) };
}

impl Progress {
    /// The stage; empty before the first.
    pub(crate) fn stage(&self) -> &'static str {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes it the progress of what this thread compiles from now on.
    pub(crate) fn enter(&self) {
        CURRENT.set(Some(self.clone()));
    }
}

/// Notes that this thread begins a stage.
pub(super) fn begin(stage: &'static str) {
    CURRENT.with_borrow(|current| {
        if let Some(Progress(current)) = current {
            *current.lock().unwrap_or_else(PoisonError::into_inner) = stage;
        }
    });
}
