//! Blocks of items between files, tapes and kernels, as if each item had passed by itself.
//!
//! A reader gives a block only of items that were [read ahead](Machine::read_ahead).

use super::machine::Machine;
use super::stop::Stop;
use crate::language::codes;
use crate::language::core::Value;
use crate::language::graph::{NodeId, NodeKind, TapeId};
use broadloom_diag::Span;
use cranelift_entity::EntityRef;
use std::borrow::Cow;
use std::collections::VecDeque;

impl Machine<'_> {
    /// Fires a `FileReader` many times. Returns its items as words of kernels. They must have been read ahead.
    pub(crate) fn read_words(&mut self, id: NodeId, items: usize) -> Result<Cow<'_, [u8]>, Stop> {
        let NodeKind::FileReader(layout, _) = &self.graph.nodes[id].kind else { return Err(Stop::EndOfInput) };
        if items == 0 {
            return Ok(Cow::Borrowed(&[]));
        }
        let (keeps, state) = (self.holds, &mut self.nodes[id.index()]);
        state.fired += items as u64;
        let reader = state.reader.as_mut().ok_or(Stop::EndOfInput)?;
        reader.take_words(&layout.ty(), items, keeps).ok_or(Stop::EndOfInput)
    }

    /// Fires a `FileWriter` many times. `read` stores its items as words of kernels, which have a number of bytes.
    pub(crate) fn write_words<E: From<Stop>>(
        &mut self,
        id: NodeId,
        items: usize,
        bytes: usize,
        read: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let node = &self.graph.nodes[id];
        let NodeKind::FileWriter(layout, name) = &node.kind else { return Ok(()) };
        self.nodes[id.index()].fired += items as u64;
        let writer = self.writer(id, layout, name)?;
        writer.write_words(&layout.ty(), bytes, read)
    }

    /// Fires a `FileReader` many times.
    pub(crate) fn read_block(&mut self, id: NodeId, items: usize) -> Result<(), Stop> {
        let node = &self.graph.nodes[id];
        let NodeKind::FileReader(layout, _) = &node.kind else { return Ok(()) };
        let keeps = self.holds;
        self.charge(node.outputs[0], items, node.span)?;
        let state = &mut self.nodes[id.index()];
        state.fired += items as u64;
        let reader = state.reader.as_mut().ok_or(Stop::EndOfInput)?;
        let tape = &mut self.tapes[node.outputs[0].index()];
        reader.take_values(&layout.ty(), items, tape, keeps).ok_or(Stop::EndOfInput)
    }

    /// Fires a `FileWriter` many times.
    pub(crate) fn write_block(&mut self, id: NodeId, items: usize) -> Result<(), Stop> {
        let node = &self.graph.nodes[id];
        let NodeKind::FileWriter(layout, name) = &node.kind else { return Ok(()) };
        self.nodes[id.index()].fired += items as u64;
        for _ in 0..items {
            let value = self.take(node.inputs[0], id)?;
            self.write_item(id, layout, name, &value)?;
        }
        Ok(())
    }

    /// Takes items from a tape of which no past items are kept.
    pub(crate) fn take_block(&mut self, tape: TapeId, items: usize) -> Result<impl Iterator<Item = Value>, Stop> {
        let (layout, own) = (&self.graph.tapes[tape].layout, &mut self.tapes[tape.index()]);
        if own.len() < items {
            let (message, consumer) = (format!("{} is empty", self.graph.describe(tape)), self.graph.tapes[tape].to.0);
            return Err(Stop::error(codes::RATE_BROKEN, message, self.graph.nodes[consumer].span));
        }
        self.budget.cells = self.budget.cells.saturating_sub(layout.cells().saturating_mul(items as u64));
        Ok(own.drain(..items))
    }

    /// Returns a tape onto which a number of items will be put.
    pub(crate) fn room_for(&mut self, tape: TapeId, items: usize, span: Span) -> Result<&mut VecDeque<Value>, Stop> {
        self.charge(tape, items, span)?;
        let own = &mut self.tapes[tape.index()];
        own.reserve(items);
        Ok(own)
    }
}
