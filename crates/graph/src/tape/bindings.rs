//! Parts of an expression that its [tape](crate::tape::entries) leaves out: what one run binds.

use crate::expr::amount::Amount;
use crate::expr::error::{Error, Result};
use crate::expr::shape::Shape;
use crate::expr::tracing::{Symbol, Tracing};
use broadloom_device::Buffer;
use broadloom_scalar::Lanes;
use std::sync::Arc;

/// Parts of an expression that its tape leaves out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bindings {
    /// Memory; `None` for the inputs of a traced function.
    pub(crate) buffers: Vec<Option<Buffer<u8>>>,
    /// Values, by their slots.
    pub(crate) values: Vec<Lanes>,
    pub(crate) integers: Vec<i64>,
    /// Shapes of the tape.
    pub(crate) shapes: Vec<Shape>,
    /// Values that come with the call of a function.
    pub(crate) symbols: Symbols,
}

/// Symbols of a tape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    pub(crate) tracing: Option<Arc<Tracing>>,
    /// Slots of buffers, each with the number of its symbol.
    pub(crate) buffers: Vec<(u32, u32)>,
    /// Symbols of values.
    pub(crate) values: Vec<(u32, u32)>,
    /// Shapes of the tape, with the terms of their extents.
    pub(crate) shapes: Vec<Shape>,
    /// Slots of integers that depend on extents of the inputs.
    pub(crate) integers: Vec<(u32, Amount)>,
    /// Slots of values that depend on extents of the inputs.
    pub(crate) amounts: Vec<(u32, Amount)>,
}

impl Symbols {
    /// Records the trace that a symbol belongs to. All symbols belong to one trace.
    pub(crate) fn join(&mut self, symbol: &Symbol) -> Result<()> {
        self.join_tracing(symbol.tracing())
    }

    /// Records the trace that extents belong to.
    pub(crate) fn join_tracing(&mut self, tracing: &Arc<Tracing>) -> Result<()> {
        let own = self.tracing.get_or_insert_with(|| tracing.clone());
        if Arc::ptr_eq(own, tracing) { Ok(()) } else { Err(Error::symbolic("arrays of two functions")) }
    }

    /// Returns whether there are no symbols.
    pub(crate) fn is_empty(&self) -> bool {
        self.tracing.is_none()
    }
}
