//! Prefetch of staged inputs.
//!
//! A block runs several tiles of units, one after the other. It prefetches the staged words of its next tile
//! into registers, computes the current tile in shared memory, and then moves the registers to shared memory.

use super::memory::{BufferMemory, KernelBuffer};
use super::span::{BlockValues, Span, span, units_of_tile};
use crate::planner::restructure::cut::{BufferPlace, Cut, Shape};
use crate::planner::restructure::section::Section;
use broadloom_device::Machine;
use broadloom_scalar::{Type, Value, Variable};
use broadloom_skeleton::cost::Costs;
use broadloom_skeleton::cost::dataflow;
use broadloom_skeleton::kit::Writer;

/// Registers that hold the next tile.
pub(super) struct PrefetchedTile {
    rows: Vec<Row>,
    threads: u32,
    thread: Value,
    /// Units of a full tile, and units of all tiles.
    full: i64,
    whole: Value,
}

/// Registers that hold one input.
struct Row {
    buffer: usize,
    global: KernelBuffer,
    span: Span,
    registers: Vec<Variable>,
}

/// Returns the maximum number of blocks of a kernel that prefetches. Returns `None` if the kernel cannot
/// prefetch, or if neither the caller nor the cost model asks for it.
pub(crate) fn blocks(section: &Section, cut: &Cut, starts: &[i64], machine: &Machine, wish: Option<bool>) -> Option<u64> {
    if !can_prefetch(section, cut, starts) {
        return None;
    }
    let costs = Costs::of(machine);
    let resident = costs.resident_blocks(cut.threads, cut.shared_bytes as u32);
    wish.unwrap_or(costs.prefetches_tiles(resident)).then(|| costs.busy(resident))
}

/// Returns whether a kernel stages inputs with vector loads.
pub(crate) fn can_prefetch(section: &Section, cut: &Cut, starts: &[i64]) -> bool {
    let by_tile = match cut.shape {
        Shape::Block(_) => true,
        Shape::Thread => cut.per_thread == 1,
        Shape::Firing | Shape::Spectrum(_) => false,
    };
    by_tile && spans(section, cut, starts).next().is_some()
}

/// Returns the staged inputs whose tiles give each thread a whole number of accesses.
fn spans<'s>(section: &'s Section, cut: &'s Cut, starts: &'s [i64]) -> impl Iterator<Item = (usize, Span)> + 's {
    let staged = cut.places.iter().enumerate().filter(|(_, place)| matches!(place, BufferPlace::Staged(_)));
    staged.filter_map(move |(index, _)| {
        let span = span(section, cut, index, starts[index], units_of_tile(cut), true)?;
        (span.rounds > 0).then_some((index, span))
    })
}

impl PrefetchedTile {
    /// Declares the registers and loads the words of a first tile.
    pub(super) fn new(
        k: &Writer,
        section: &Section,
        cut: &Cut,
        starts: &[i64],
        global: &[Option<KernelBuffer>],
        values: BlockValues,
        tile: Value,
    ) -> PrefetchedTile {
        let (mut rows, mut left) = (vec![], dataflow::PREFETCHED_ACCESSES);
        for (buffer, span) in spans(section, cut, starts) {
            let count = span.rounds.min(left);
            let Some(global) = global[buffer].filter(|_| count > 0) else { continue };
            left -= count;
            let element = global.words.element;
            let ty = Type::vector(element, span.lanes as usize).unwrap_or(Type::of(element));
            let registers = (0..count).map(|_| k.variable(ty)).collect();
            rows.push(Row { buffer, global, span, registers });
        }
        let ahead =
            PrefetchedTile { rows, threads: cut.threads, thread: values.thread, full: units_of_tile(cut), whole: values.whole };
        ahead.load(k, tile);
        ahead
    }

    /// Loads the words of a tile if it is a full one.
    pub(super) fn load(&self, k: &Writer, tile: Value) {
        let first = k.mul(tile, self.full);
        k.if_then(k.le(k.add(first, self.full), self.whole), || {
            for row in &self.rows {
                let BufferMemory::Memory(memory) = row.global.store else { continue };
                let start = k.add(k.mul(first, row.span.per_unit), row.span.offset);
                for (round, register) in row.registers.iter().enumerate() {
                    let place = self.place(k, &row.span, round as i64);
                    k.set(*register, k.load_vector(memory, k.add(start, place), row.span.lanes as usize));
                }
            }
        });
    }

    /// Moves the words of an input to shared memory. Returns the number of finished accesses of a thread.
    pub(super) fn unload(&self, k: &Writer, buffer: usize, shared: &KernelBuffer) -> i64 {
        let Some(row) = self.rows.iter().find(|row| row.buffer == buffer) else { return 0 };
        for (round, register) in row.registers.iter().enumerate() {
            let near = shared.pad(k, self.place(k, &row.span, round as i64));
            let value = k.get(*register);
            (0..row.span.lanes).for_each(|lane| shared.store(k, k.add(near, lane), k.lane(value, lane as usize)));
        }
        row.registers.len() as i64
    }

    fn place(&self, k: &Writer, span: &Span, round: i64) -> Value {
        k.mul(k.add(self.thread, round * i64::from(self.threads)), span.lanes)
    }
}
