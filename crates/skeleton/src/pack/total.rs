//! Number of chosen positions: the last output.

use crate::kit::Writer;
use crate::program::Argument;
use broadloom_scalar::{Element, Memory, Type, Value};

/// Returns the output for the number of chosen positions.
pub(super) fn total_memory(k: &Writer, total: usize) -> Memory {
    k.memory(Argument::Output(total), Element::U32)
}

/// Stores the number of chosen positions.
pub(super) fn store_total(k: &Writer, total: usize, count: Value) {
    k.store(total_memory(k, total), 0, k.convert(count, Type::U32));
}
