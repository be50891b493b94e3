//! The words of a buffer that a block copies between global and shared memory.

use crate::planner::restructure::cut::{Cut, Shape};
use crate::planner::restructure::section::Section;
use broadloom_scalar::Value;
use broadloom_skeleton::cost::dataflow;

/// Values that the tiles of a block share.
#[derive(Clone, Copy)]
pub(super) struct BlockValues {
    /// The number of the thread in its block.
    pub(super) thread: Value,
    /// Units of the batch.
    pub(super) all: Value,
    /// Units that are computed, with those beyond the batch.
    pub(super) whole: Value,
    /// The number of the first unit.
    pub(super) first: Value,
}

/// The words of a buffer that a full block copies.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// Words of a unit.
    pub(super) per_unit: i64,
    /// Words before those of the first unit.
    pub(super) offset: i64,
    /// Words of all units.
    pub(super) all: i64,
    /// Words of an access.
    pub(super) lanes: i64,
    /// Accesses per thread. The words after them are copied one by one.
    pub(super) rounds: i64,
}

/// Returns the words of a buffer whose memory begins with item `start`, for blocks of `full` units.
pub(super) fn span(section: &Section, cut: &Cut, buffer: usize, start: i64, full: i64, wide: bool) -> Option<Span> {
    let items = cut.unit.items[buffer]?;
    let own = &section.buffers[buffer];
    let words = i64::from(own.words.count);
    let (per_unit, offset) = (own.items * words, (items.start - start) * words);
    let all = (full - 1) * per_unit + items.len() * words;
    let lanes = i64::from(dataflow::ACCESS_BYTES / own.words.element.bytes());
    let aligned = offset % lanes == 0 && full * per_unit % lanes == 0;
    let rounds = if wide && aligned { all / lanes / i64::from(cut.threads) } else { 0 };
    Some(Span { per_unit, offset, all, lanes, rounds })
}

/// Returns the number of units in a tile.
pub(super) fn units_of_tile(cut: &Cut) -> i64 {
    match cut.shape {
        Shape::Block(units) => units,
        Shape::Thread | Shape::Firing | Shape::Spectrum(_) => i64::from(cut.threads) * cut.per_thread,
    }
}
