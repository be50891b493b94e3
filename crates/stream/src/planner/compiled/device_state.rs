//! The state of a run: tapes and fields in device memory, and tapes that cross to the host.
//!
//! A tape that a kernel reads is a line of items. The line holds the items that were there before the batch,
//! followed by those of the batch. The former include popped items that kernels look back at. A producer on
//! the device writes the items of the batch in place. After the batch, the last items of the line begin the
//! next one; their number is the number of items before the batch.

use super::batch_end::BatchEnd;
use super::program::{Compiled, CompiledPiece, PieceInput};
use super::words::{encode_all, state_word};
use crate::language::eval::Machine;
use crate::language::graph::{NodeId, TapeId};
use crate::planner::restructure::Island;
use crate::planner::translate::{CLASSES, Words, class_of, scalars};
use broadloom_device::{Buffer, Device, Stream};
use cranelift_entity::EntityRef;
use std::collections::HashMap;

/// A tape that a kernel reads.
#[derive(Debug)]
pub(super) struct InputTape {
    words: Words,
    /// Items before the batch, and extra room behind it, in items.
    before: usize,
    slack: usize,
    /// The items before the batch, if they are not in `now`.
    pub(super) kept: Option<Buffer<u8>>,
    /// All items, during a batch.
    pub(super) now: Option<Buffer<u8>>,
}

/// The state of a run.
#[derive(Debug, Default)]
pub(super) struct DeviceState {
    pub(super) lines: HashMap<TapeId, InputTape>,
    /// State of islands, by their first node.
    pub(super) states: HashMap<NodeId, Vec<Buffer<u8>>>,
    /// The word in which kernels report failed firings.
    flag: Option<Buffer<u32>>,
    /// True if any firing can fail.
    fails: bool,
    /// Items for the next batch of a tape from a file, if they are on the device.
    pub(super) given: Option<(TapeId, Buffer<u8>)>,
    /// Output buffers, if the caller wants them on the device.
    pub(super) made: Option<Vec<Buffer<u8>>>,
    /// Readers and writers of files at tapes of kernels. Their items pass in blocks.
    pub(super) files: Vec<NodeId>,
}

fn failed(error: &dyn std::fmt::Display) -> BatchEnd {
    BatchEnd::Device(error.to_string())
}

fn missing() -> BatchEnd {
    BatchEnd::Device("a part of a tape is not there".into())
}

impl DeviceState {
    /// Moves the evaluator's tapes and the fields of nodes on the device into device memory. `done` is the
    /// number of steady states already run.
    pub(super) fn take_over(&mut self, compiled: &Compiled<'_>, machine: &mut Machine<'_>, done: u64) -> Result<(), BatchEnd> {
        let (device, graph) = (&compiled.device, &compiled.program.graph);
        self.files = compiled.files_at_kernels();
        self.flag = Some(device.zeros::<u32>(1).map_err(|error| failed(&error))?);
        self.fails = compiled.pieces().any(|piece| match piece {
            CompiledPiece::Section(ready) => ready.section.actors.iter().any(|actor| actor.code.fails),
            CompiledPiece::Island(sole) => sole.scan.is_none(),
        });
        let mut extras: HashMap<TapeId, i64> = HashMap::new();
        for piece in compiled.pieces() {
            for (tape, extra) in piece.extras() {
                extras.insert(tape, extra);
            }
        }
        for piece in compiled.pieces() {
            for inlet in piece.inlets() {
                let (tape, layout) = (inlet.tape, &graph.tapes[inlet.tape].layout);
                let past = std::mem::take(&mut machine.past[tape.index()]).1;
                let waiting = machine.tapes[tape.index()].len();
                let before = past.len() + waiting;
                let mut bytes = vec![];
                let items = past.into_iter().chain(machine.take_block(tape, waiting)?);
                encode_all(layout, inlet.words, items, &mut bytes);
                let kept = if bytes.is_empty() { None } else { Some(device.upload(&bytes).map_err(|error| failed(&error))?) };
                let slack = (inlet.length - inlet.items - before as i64).max(extras.get(&tape).copied().unwrap_or(0)).max(0);
                let line = InputTape { words: inlet.words, before, slack: slack as usize, kept, now: None };
                self.lines.insert(tape, line);
            }
            if let CompiledPiece::Island(sole) = piece {
                let state = state_of(&sole.island, compiled, machine, done, device)?;
                self.states.insert(sole.island.nodes[0], state);
            }
        }
        Ok(())
    }

    /// Returns the word in which kernels report failed firings.
    pub(super) fn flag(&self) -> Result<Buffer<u8>, BatchEnd> {
        self.flag.as_ref().and_then(Buffer::view::<u8>).ok_or_else(missing)
    }

    /// Fails if a firing failed.
    pub(super) fn check(&self) -> Result<(), BatchEnd> {
        match &self.flag {
            Some(flag) if self.fails && flag.read().map_err(|error| failed(&error))?[0] != 0 => Err(BatchEnd::Repeat(None)),
            _ => Ok(()),
        }
    }

    /// Returns the state of an island.
    pub(super) fn state(&self, island: &Island) -> &[Buffer<u8>] {
        self.states.get(&island.nodes[0]).map_or(&[], |state| state)
    }

    /// Returns whether a kernel reads a tape.
    pub(super) fn reads(&self, tape: TapeId) -> bool {
        self.lines.contains_key(&tape)
    }

    /// Allocates the memory for the items of a batch on a tape that a kernel reads.
    fn open(&mut self, device: &Device, tape: TapeId, items: usize) -> Result<&mut InputTape, BatchEnd> {
        let line = self.lines.get_mut(&tape).ok_or_else(missing)?;
        if line.now.is_none() {
            let size = line.words.bytes() as usize;
            // At least one item, because buffers cannot be empty.
            let length = (line.before + items + line.slack).max(1) * size;
            let stream = Stream::default();
            let now = device.allocate_behind::<u8>(stream, length).map_err(|error| failed(&error))?;
            if let Some(kept) = line.kept.take() {
                let front = now.slice(0, kept.len()).ok_or_else(missing)?;
                front.copy_from(stream, &kept).map_err(|error| failed(&error))?;
            }
            line.now = Some(now);
        }
        Ok(line)
    }

    /// Returns the memory into which a producer on the device writes the items of a batch.
    pub(super) fn room(&mut self, device: &Device, tape: TapeId, items: usize) -> Result<Buffer<u8>, BatchEnd> {
        let line = self.open(device, tape, items)?;
        let start = line.before * line.words.bytes() as usize;
        let now = line.now.as_ref().ok_or_else(missing)?;
        now.slice(start, now.len() - start).ok_or_else(missing)
    }

    /// Returns the items of a tape that a kernel reads in a batch, including those from a producer on the
    /// host.
    pub(super) fn line(
        &mut self,
        compiled: &Compiled<'_>,
        machine: &mut Machine<'_>,
        inlet: &PieceInput,
        units: i64,
    ) -> Result<Buffer<u8>, BatchEnd> {
        let (tape, size) = (inlet.tape, inlet.words.bytes() as usize);
        let items = (units * inlet.items) as usize;
        let written = self.lines.get(&tape).is_some_and(|line| line.now.is_some());
        if !written && let Some((_, given)) = self.given.take_if(|(own, _)| *own == tape) {
            let line = self.lines.get_mut(&tape).ok_or_else(missing)?;
            if line.before == 0 && line.slack == 0 {
                line.now = Some(given);
            } else {
                let room = self.room(&compiled.device, tape, items)?.slice(0, items * size).ok_or_else(missing)?;
                room.copy_from(Stream::default(), &given).map_err(|error| failed(&error))?;
            }
        } else if !written {
            let own = &compiled.program.graph.tapes[tape];
            let bytes = if self.files.contains(&own.from.0) {
                machine.read_words(own.from.0, items)?
            } else {
                let mut bytes = Vec::with_capacity(items * size);
                encode_all(&own.layout, inlet.words, machine.take_block(tape, items)?, &mut bytes);
                bytes.into()
            };
            let room = self.room(&compiled.device, tape, items)?;
            if !bytes.is_empty() {
                let room = room.slice(0, bytes.len()).ok_or_else(missing)?;
                room.write(&bytes).map_err(|error| failed(&error))?;
            }
        }
        self.lines.get(&tape).and_then(|line| line.now.clone()).ok_or_else(missing)
    }

    /// Ends a batch on a tape that a kernel read.
    pub(super) fn close(&mut self, inlet: &PieceInput, units: i64) -> Result<(), BatchEnd> {
        let line = self.lines.get_mut(&inlet.tape).ok_or_else(missing)?;
        let size = line.words.bytes() as usize;
        let now = line.now.take().ok_or_else(missing)?;
        if line.before > 0 {
            let taken = (units * inlet.items) as usize * size;
            line.kept = Some(now.slice(taken, line.before * size).ok_or_else(missing)?);
        }
        Ok(())
    }
}

/// Returns the state of an island as buffers, one for each word type.
fn state_of(
    island: &Island,
    compiled: &Compiled<'_>,
    machine: &mut Machine<'_>,
    done: u64,
    device: &Device,
) -> Result<Vec<Buffer<u8>>, BatchEnd> {
    let graph = &compiled.program.graph;
    let size = |class: usize| CLASSES[class].bytes() as usize;
    let mut bytes: Vec<Vec<u8>> =
        island.state_words.iter().enumerate().map(|(class, words)| vec![0; *words as usize * size(class)]).collect();
    let mut put = |class: usize, word: u64, value: &[u8]| {
        let start = word as usize * size(class);
        if let Some(place) = bytes[class].get_mut(start..start + value.len()) {
            place.copy_from_slice(value);
        }
    };
    for field in &island.fields {
        let value = machine.nodes[island.nodes[field.node].index()].fields.get(field.field);
        let leaves = value.and_then(|value| scalars(&field.layout, value)).ok_or_else(missing)?;
        for (kept, values) in field.leaves.iter().zip(leaves) {
            for (index, value) in values.iter().enumerate() {
                put(class_of(kept.stored.element), kept.stored.start + index as u64, &state_word(value, kept.stored.element));
            }
        }
    }
    for inner in &island.inner {
        let (crossing, layout) = (inner.crossing, &graph.tapes[inner.crossing.tape].layout);
        let class = class_of(crossing.words.element);
        let mut items = vec![];
        let waiting = machine.tapes[crossing.tape.index()].len();
        encode_all(layout, crossing.words, machine.take_block(crossing.tape, waiting)?, &mut items);
        // A ring continues at the position that the first unit reads.
        let units = done.wrapping_mul(island.units);
        let first = units.wrapping_mul(crossing.items as u64).wrapping_mul(u64::from(crossing.words.count));
        for (index, word) in items.chunks_exact(size(class)).enumerate() {
            let place = if inner.local { index as u64 } else { first.wrapping_add(index as u64) & (inner.stored.words - 1) };
            put(class, inner.stored.start + place, word);
        }
    }
    let filled = bytes.into_iter().filter(|bytes| !bytes.is_empty());
    filled.map(|bytes| device.upload(&bytes).map_err(|error| failed(&error))).collect()
}
