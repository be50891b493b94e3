//! Traces of functions under way, and their symbols: the values and arrays that come with a call.

use crate::expr::terms::{Conditions, Terms};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Trace of a function: the terms of its extents, and the conditions under which it is valid.
#[derive(Debug)]
pub(crate) struct Tracing {
    /// `None` after the end of the trace.
    terms: Mutex<Option<Terms>>,
}

impl Tracing {
    /// Begins a trace.
    pub(crate) fn new() -> Tracing {
        Tracing { terms: Mutex::new(Some(Terms::default())) }
    }

    pub(crate) fn terms(&self) -> MutexGuard<'_, Option<Terms>> {
        self.terms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the trace and returns its conditions.
    pub(crate) fn finish(&self) -> Conditions {
        self.terms().take().unwrap_or_default().finish()
    }
}

/// Value or array that is given when a function is called.
#[derive(Clone, Debug)]
pub struct Symbol {
    tracing: Arc<Tracing>,
    number: u32,
}

impl Symbol {
    /// Creates the symbol of a trace with a number.
    pub(crate) fn new(tracing: &Arc<Tracing>, number: u32) -> Symbol {
        Symbol { tracing: tracing.clone(), number }
    }

    /// Returns the trace that it belongs to.
    pub(crate) fn tracing(&self) -> &Arc<Tracing> {
        &self.tracing
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}
