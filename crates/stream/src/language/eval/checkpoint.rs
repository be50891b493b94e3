//! Checkpoints: a machine that can go back to the steady state before a batch.
//!
//! During a batch, text and items of files are held back. [`Machine::commit`] writes them. [`Machine::go_back`] drops
//! them, and readers return the items of the batch once more.

use super::files::{Reader, Writer};
use super::machine::{Machine, State};
use super::mail::{Messages, PendingMessage};
use super::stop::Stop;
use crate::language::core::Value;
use crate::language::graph::{NodeId, NodeKind, TapeId};
use crate::language::schedule::{Firing, Schedule};
use cranelift_entity::EntityRef;
use std::collections::VecDeque;

/// The state of a machine between two steady states, without its files.
#[derive(Clone)]
pub(crate) struct Snapshot {
    tapes: Vec<VecDeque<Value>>,
    nodes: Vec<NodeSnapshot>,
    /// The fields that firings on the host may change.
    fields: Vec<(NodeId, Vec<Value>)>,
    cells: u64,
    random: u64,
    messages: Messages,
}

#[derive(Clone)]
struct NodeSnapshot {
    fired: u64,
    iterations: i32,
    mail: VecDeque<PendingMessage>,
}

impl Machine<'_> {
    /// Reads the input of steady states ahead. Returns how many of `most` steady states all input files have items
    /// for: at least one, unless a file ends or cannot be read.
    pub(crate) fn read_ahead(&mut self, schedule: &Schedule, most: u64) -> u64 {
        let (graph, mut states) = (self.graph, most);
        for (id, node) in &graph.nodes {
            let rate = schedule.repetition(id);
            if let (NodeKind::FileReader(layout, name), 1..) = (&node.kind, rate) {
                // A file that cannot be opened is an error of the firing that reads it.
                let Ok(reader) = self.reader(id, layout, name) else { return 0 };
                states = states.min(reader.read_ahead(&layout.ty(), rate, rate.saturating_mul(states)) / rate);
            }
        }
        states
    }

    /// Takes a snapshot, with the fields of the given nodes.
    pub(crate) fn snapshot(&mut self, changing: &[NodeId]) -> Snapshot {
        self.nodes.iter_mut().filter_map(|state| state.reader.as_mut()).for_each(Reader::mark);
        let node = |state: &State| NodeSnapshot { fired: state.fired, iterations: state.iterations, mail: state.mail.clone() };
        Snapshot {
            tapes: self.tapes.clone(),
            nodes: self.nodes.iter().map(node).collect(),
            fields: changing.iter().map(|id| (*id, self.nodes[id.index()].fields.clone())).collect(),
            cells: self.budget.cells,
            random: self.random,
            messages: self.messages.clone(),
        }
    }

    /// Returns to a snapshot, and drops what was printed and written since.
    pub(crate) fn go_back(&mut self, snapshot: Snapshot) {
        self.tapes = snapshot.tapes;
        for (state, before) in self.nodes.iter_mut().zip(snapshot.nodes) {
            state.fired = before.fired;
            state.iterations = before.iterations;
            state.mail = before.mail;
            if let Some(reader) = &mut state.reader {
                reader.go_back();
            }
            if let Some(writer) = &mut state.writer {
                writer.drop_items();
            }
        }
        for (id, fields) in snapshot.fields {
            self.nodes[id.index()].fields = fields;
        }
        self.budget.cells = snapshot.cells;
        self.budget.depth = 0;
        self.random = snapshot.random;
        self.messages = snapshot.messages;
        self.text.clear();
        self.records = None;
    }

    /// Writes the text and the items of files that were held back.
    pub(crate) fn commit(&mut self) -> Result<(), Stop> {
        self.flush()?;
        self.each_writer(Writer::commit)
    }

    /// Drops the first items of a tape, so that a number of them is left. Returns false if there are fewer.
    pub(crate) fn keep_last(&mut self, tape: TapeId, count: u64) -> bool {
        let items = &mut self.tapes[tape.index()];
        let Some(surplus) = usize::try_from(count).ok().and_then(|count| items.len().checked_sub(count)) else { return false };
        let freed: u64 = items.drain(..surplus).map(|item| item.cells()).sum();
        self.budget.cells = self.budget.cells.saturating_sub(freed);
        true
    }

    /// Repeats the last firings of a filter without state, a splitter or a joiner. Its input tapes hold the items that
    /// the firings pop. Items that it pushes onto tapes other than `refilled` are dropped, because they are there
    /// already.
    pub(crate) fn fire_again(&mut self, id: NodeId, count: u64, refilled: &dyn Fn(TapeId) -> bool) -> Result<(), Stop> {
        let graph = self.graph;
        let state = &mut self.nodes[id.index()];
        let counts = (state.fired, state.iterations);
        state.fired = state.fired.saturating_sub(count);
        state.iterations = state.iterations.wrapping_sub(count as i32);
        for _ in 0..count {
            self.fire(id)?;
        }
        let push = Firing::new(graph.nodes[id].flow()).push;
        for (tape, push) in graph.nodes[id].outputs.iter().zip(push).filter(|(tape, _)| !refilled(**tape)) {
            let items = &mut self.tapes[tape.index()];
            let pushed = usize::try_from(count.saturating_mul(push)).unwrap_or(usize::MAX);
            let freed: u64 = items.drain(items.len().saturating_sub(pushed)..).map(|item| item.cells()).sum();
            self.budget.cells = self.budget.cells.saturating_sub(freed);
        }
        let state = &mut self.nodes[id.index()];
        (state.fired, state.iterations) = counts;
        Ok(())
    }
}
