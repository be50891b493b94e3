//! Hands a run back to the evaluator, between two steady states.
//!
//! The evaluator finishes a run whose input ends within a steady state, or a firing of which failed. It needs
//! the items of all tapes and the fields of all filters as they are between steady states:
//!
//! - tapes that cross into a piece: the last items of their line;
//! - fields and inner tapes of an island: the words of its state;
//! - fields of a section's filters that count firings: values computed from the number of firings;
//! - inner tapes of a section: kernels keep none of their items, but compute them again from items that were popped
//!   before. The evaluator repeats the same firings; [`Refill`] is their number.
//!
//! A [`Checkpoint`] is the state before a batch. It is restored if a firing of the batch fails.

use super::batch_end::BatchEnd;
use super::device_state::DeviceState;
use super::program::{Compiled, CompiledPiece};
use super::refill::Refill;
use super::words::{compose, decode_all};
use crate::language::core::{Value, facts};
use crate::language::eval::{Machine, Snapshot};
use crate::language::graph::{Graph, NodeId, TapeId};
use crate::language::schedule::Schedule;
use crate::planner::classify::Placement;
use crate::planner::restructure::Island;
use crate::planner::translate::{CLASSES, Induction, Words, class_of};
use broadloom_device::{Buffer, Device, Stream};
use cranelift_entity::EntityRef;
use std::collections::{HashMap, HashSet};

impl Refill {
    /// Repeats the firings. The input tapes hold the items that kernels looked back at.
    fn run(&self, compiled: &Compiled<'_>, schedule: &Schedule, machine: &mut Machine<'_>) -> Result<(), BatchEnd> {
        for (node, count) in self.firings() {
            for tape in &compiled.program.graph.nodes[node].inputs {
                let wanted = schedule.remaining[tape.index()].saturating_add(self.popped_items(*tape));
                if !machine.keep_last(*tape, wanted) {
                    return Err(missing());
                }
            }
            set_inductions(compiled, machine, node, count);
            machine.fire_again(node, count, &|tape| self.inner.contains(&tape))?;
        }
        Ok(())
    }
}

/// Sets the fields of a filter that follow from the number of its firings to their values before the last
/// `count`.
fn set_inductions(compiled: &Compiled<'_>, machine: &mut Machine<'_>, node: NodeId, count: u64) {
    let Placement::Kernel(code) = &compiled.classified[node.index()].placement else { return };
    let state = &mut machine.nodes[node.index()];
    let firing = state.iterations.wrapping_sub(count as i32);
    for Induction { field, start, step } in &code.inductions {
        if let Some(value) = state.fields.get_mut(*field) {
            *value = Value::Int(start.wrapping_add(step.wrapping_mul(firing)));
        }
    }
}

/// The state of a run before a batch.
pub(super) struct Checkpoint {
    machine: Snapshot,
    lines: HashMap<TapeId, Buffer<u8>>,
    states: HashMap<NodeId, Vec<Buffer<u8>>>,
}

impl Checkpoint {
    /// Saves the state.
    pub(super) fn save(
        device: &Device,
        machine: &mut Machine<'_>,
        live: &DeviceState,
        changing: &[NodeId],
    ) -> Result<Checkpoint, BatchEnd> {
        // The items of a line before a batch are never overwritten.
        let lines = live.lines.iter().filter_map(|(tape, line)| Some((*tape, line.kept.clone()?))).collect();
        let mut states = HashMap::new();
        for (node, buffers) in &live.states {
            let copies = buffers.iter().map(|buffer| {
                let copy = device.allocate_behind::<u8>(Stream::default(), buffer.len())?;
                copy.copy_from(Stream::default(), buffer)?;
                Ok(copy)
            });
            states.insert(*node, copies.collect::<broadloom_device::Result<Vec<_>>>().map_err(|error| failed(&error))?);
        }
        Ok(Checkpoint { machine: machine.snapshot(changing), lines, states })
    }

    /// Returns to the state.
    pub(super) fn restore(mut self, machine: &mut Machine<'_>, live: &mut DeviceState) {
        machine.go_back(self.machine);
        for (tape, line) in &mut live.lines {
            line.now = None;
            line.kept = self.lines.remove(tape);
        }
        live.states = self.states;
    }
}

/// Returns the filters on the host whose firings change fields.
pub(super) fn changing_filters(compiled: &Compiled<'_>) -> Vec<NodeId> {
    let program = compiled.program;
    let on_device: HashSet<NodeId> = compiled.pieces().flat_map(CompiledPiece::nodes).copied().collect();
    let changes = |id: NodeId| {
        let filter = program.graph.nodes[id].filter(&program.core);
        filter.is_some_and(|(filter, _)| !facts(&program.core, filter).written.is_empty())
    };
    program.graph.nodes.keys().filter(|id| !on_device.contains(id) && changes(*id)).collect()
}

impl DeviceState {
    /// Moves items and fields from device memory to the evaluator, after `done` steady states.
    pub(super) fn hand_back(
        mut self,
        compiled: &Compiled<'_>,
        schedule: &Schedule,
        machine: &mut Machine<'_>,
        done: u64,
    ) -> Result<(), BatchEnd> {
        let graph = &compiled.program.graph;
        for inlet in compiled.pieces().flat_map(CompiledPiece::inlets) {
            let Some(kept) = self.lines.remove(&inlet.tape).and_then(|line| line.kept) else { continue };
            let bytes = kept.read().map_err(|error| failed(&error))?;
            refill(machine, graph, inlet.tape, inlet.words, &bytes)?;
        }
        for piece in compiled.pieces() {
            match piece {
                CompiledPiece::Section(ready) => ready.refill.run(compiled, schedule, machine)?,
                CompiledPiece::Island(sole) => {
                    let buffers = self.states.remove(&sole.island.nodes[0]).ok_or_else(missing)?;
                    restore_island(&sole.island, graph, machine, done, &buffers)?;
                }
            }
        }
        Ok(())
    }
}

/// Puts items onto a tape.
fn refill(machine: &mut Machine<'_>, graph: &Graph, tape: TapeId, words: Words, bytes: &[u8]) -> Result<(), BatchEnd> {
    let (layout, span) = (&graph.tapes[tape].layout, graph.nodes[graph.tapes[tape].from.0].span);
    let items = bytes.len() / words.bytes() as usize;
    decode_all(layout, words, bytes, machine.room_for(tape, items, span)?);
    Ok(())
}

/// Moves the state of an island to the evaluator: the inverse of `state_of`.
fn restore_island(
    island: &Island,
    graph: &Graph,
    machine: &mut Machine<'_>,
    done: u64,
    buffers: &[Buffer<u8>],
) -> Result<(), BatchEnd> {
    let mut filled = buffers.iter();
    let mut state: [Vec<u8>; 3] = Default::default();
    for (bytes, _) in state.iter_mut().zip(island.state_words).filter(|(_, words)| *words > 0) {
        *bytes = filled.next().ok_or_else(missing)?.read().map_err(|error| failed(&error))?;
    }
    let word = |class: usize, word: u64| {
        let size = CLASSES[class].bytes();
        state[class].get((word * size as u64) as usize..((word + 1) * size as u64) as usize).ok_or_else(missing)
    };
    for field in &island.fields {
        let mut words = vec![];
        for kept in &field.leaves {
            let class = class_of(kept.stored.element);
            for index in 0..kept.stored.words {
                words.push(word(class, kept.stored.start + index)?);
            }
        }
        let value = machine.nodes[island.nodes[field.node].index()].fields.get_mut(field.field).ok_or_else(missing)?;
        *value = compose(&field.layout, &words);
    }
    for inner in &island.inner {
        let (crossing, class) = (inner.crossing, class_of(inner.crossing.words.element));
        let count = u64::from(crossing.words.count);
        // A ring continues at the position that the next unit reads.
        let first = done.wrapping_mul(island.units).wrapping_mul(crossing.items as u64).wrapping_mul(count);
        let mut bytes = vec![];
        for index in 0..inner.remaining as u64 * count {
            let place = if inner.local { index } else { first.wrapping_add(index) & (inner.stored.words - 1) };
            bytes.extend_from_slice(word(class, inner.stored.start + place)?);
        }
        refill(machine, graph, crossing.tape, crossing.words, &bytes)?;
    }
    Ok(())
}

fn failed(error: &dyn std::fmt::Display) -> BatchEnd {
    BatchEnd::Device(error.to_string())
}

fn missing() -> BatchEnd {
    BatchEnd::Device("a part of the state is not there".into())
}
