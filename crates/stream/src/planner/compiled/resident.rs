//! Resident runs: a compiled program whose input and output are buffers of the device.
//!
//! The `FileReader` of the program stands for the input buffer and the `FileWriter` for the output buffer.
//! All nodes between them run in kernels of one section, so nothing crosses to the host. A run is only
//! submitted to the device; [`Resident::check`] waits for it.
//!
//! The input buffer is a *window*. It holds the items that the run pops. Before them are the items that
//! kernels look back at. Behind them are the items that filters peek beyond those they pop. The next window
//! begins [`Resident::taken_items`] further.

use super::program::{Compiled, CompiledSection};
use crate::language::codes;
use crate::language::graph::NodeKind;
use crate::language::program::Failure;
use crate::planner::classify::Placement;
use crate::planner::restructure::Role;
use broadloom_device::{Buffer, Element};
use broadloom_skeleton::cost::dataflow::BUFFER_WORDS;
use cranelift_entity::EntityRef;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A compiled program whose data stay on the device.
#[derive(Debug)]
pub struct Resident<'c> {
    compiled: &'c Compiled<'c>,
    ready: &'c CompiledSection,
    /// The indices of the input buffer and the output buffer of the section.
    ends: (usize, usize),
    /// A flag that kernels set if a firing fails.
    flag: Buffer<u32>,
    /// Tapes between kernels, with the number of steady states they have room for.
    inner: Mutex<(u64, Vec<Option<Buffer<u8>>>)>,
    /// Steady states before the next run.
    done: AtomicU64,
}

impl<'c> Resident<'c> {
    /// Prepares a program for resident runs. The program must have one `FileReader` and one `FileWriter`, and
    /// all other nodes must run on the device.
    pub fn new(compiled: &'c Compiled<'c>) -> Result<Resident<'c>, Failure> {
        let refuse = |message: String| compiled.refused(codes::BAD_SHAPE, message);
        let graph = &compiled.program.graph;
        for (id, node) in graph.nodes.iter() {
            let is_file = matches!(node.kind, NodeKind::FileReader(..) | NodeKind::FileWriter(..));
            if let (Placement::Host(reason), false) = (&compiled.classified[id.index()].placement, is_file) {
                let message =
                    format!("`{}` runs on the host: {reason}; a resident run needs all filters on the device", node.name);
                return Err(refuse(message));
            }
        }
        if compiled.islands().next().is_some() {
            return Err(refuse("a resident run needs filters without state and without feedback".into()));
        }
        let sections: Vec<&CompiledSection> = compiled.sections().collect();
        let [ready] = sections[..] else {
            return Err(refuse("a resident run needs filters between one `FileReader` and one `FileWriter`".into()));
        };
        let ends = |role: Role| -> Vec<usize> {
            let buffers = ready.section.buffers.iter().enumerate();
            buffers.filter(|(_, buffer)| buffer.role == role).map(|(index, _)| index).collect()
        };
        let (inputs, outputs) = (ends(Role::Input), ends(Role::Output));
        let ([input], [output]) = (&inputs[..], &outputs[..]) else {
            return Err(refuse("a resident run needs one `FileReader` and one `FileWriter`".into()));
        };
        let flag = compiled.device.zeros::<u32>(1).map_err(|error| compiled.refused(codes::DEVICE, error.to_string()))?;
        let (inner, done) = (Mutex::new((0, vec![])), AtomicU64::new(ready.warm_up));
        Ok(Resident { compiled, ready, ends: (*input, *output), flag, inner, done })
    }

    fn units(&self, states: u64) -> i64 {
        states as i64 * self.ready.section.units as i64
    }

    /// Returns the number of items in the window of a run of `states` steady states.
    pub fn input_items(&self, states: u64) -> u64 {
        let input = self.ends.0;
        let length = self.ready.lengths[input] + (self.units(states) - 1) * self.ready.section.buffers[input].items;
        length.max(1) as u64
    }

    /// Returns the number of items from the start of a window to the start of the next one.
    pub fn taken_items(&self, states: u64) -> u64 {
        (self.units(states) * self.ready.section.buffers[self.ends.0].items) as u64
    }

    /// Returns the number of items that a run writes.
    pub fn output_items(&self, states: u64) -> u64 {
        (self.units(states) * self.ready.section.buffers[self.ends.1].items) as u64
    }

    /// Returns the number of the first item in the next window, counted from the start of the stream. The
    /// window of the first run begins behind the steady states that fill the peeked items.
    pub fn first_input(&self) -> u64 {
        let units = self.units(self.done.load(Ordering::Relaxed));
        (self.ready.starts[self.ends.0] + units * self.ready.section.buffers[self.ends.0].items).max(0) as u64
    }

    /// Returns the number of the first item that the next run writes, counted from the start of the stream.
    pub fn first_output(&self) -> u64 {
        let units = self.units(self.done.load(Ordering::Relaxed));
        let buffer = &self.ready.section.buffers[self.ends.1];
        (buffer.start + units * buffer.items).max(0) as u64
    }

    /// Returns the size in bytes of the window of a run.
    pub fn input_bytes(&self, states: u64) -> u64 {
        self.input_items(states) * self.ready.section.buffers[self.ends.0].words.bytes()
    }

    /// Returns the number of bytes that a run writes.
    pub fn output_bytes(&self, states: u64) -> u64 {
        self.output_items(states) * self.ready.section.buffers[self.ends.1].words.bytes()
    }

    /// Returns the number of kernel launches of a run.
    pub fn launches(&self) -> usize {
        self.ready.kernels.len()
    }

    /// Submits a run of `states` steady states to the device. `complex` items are pairs of `f32`.
    pub fn run<I: Element, O: Element>(&self, input: &Buffer<I>, output: &Buffer<O>, states: u64) -> Result<(), Failure> {
        let (compiled, ready) = (self.compiled, self.ready);
        let section = &ready.section;
        let (wanted, made) = (self.input_bytes(states), self.output_bytes(states));
        for (name, buffer, least) in [("input", input.raw().bytes(), wanted), ("output", output.raw().bytes(), made)] {
            if buffer < least {
                let message = format!("the {name} buffer has {buffer} bytes, {states} steady states need {least}");
                return Err(compiled.refused(codes::MISMATCH, message));
            }
        }
        let units = self.units(states);
        let words =
            |buffer: &crate::planner::restructure::Buffer| units.saturating_mul(buffer.items * i64::from(buffer.words.count));
        if states == 0 || section.buffers.iter().any(|buffer| words(buffer) > BUFFER_WORDS) {
            let message = format!("a run of {states} steady states is empty or has tapes of more than {BUFFER_WORDS} words");
            return Err(compiled.refused(codes::TOO_LARGE, message));
        }
        let failed = |error: &dyn std::fmt::Display| compiled.refused(codes::DEVICE, error.to_string());
        let unaligned = || compiled.refused(codes::DEVICE, "a buffer is not aligned".into());
        let mut memory = self.inner(states).map_err(|error| failed(&error))?;
        memory[self.ends.0] = Some(input.view::<u8>().ok_or_else(unaligned)?);
        memory[self.ends.1] = Some(output.view::<u8>().ok_or_else(unaligned)?);
        let flag = self.flag.view::<u8>().ok_or_else(unaligned)?;
        let done = self.done.fetch_add(states, Ordering::Relaxed);
        let before = (done as i64).wrapping_mul(section.units as i64);
        for kernel in 0..ready.kernels.len() {
            ready.launch(kernel, &memory, &flag, units, before).map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// Returns memory for the tapes between kernels. Runs share it, because the device executes them one
    /// after the other.
    fn inner(&self, states: u64) -> broadloom_device::Result<Vec<Option<Buffer<u8>>>> {
        let mut known = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 < states {
            let (ready, units) = (self.ready, self.units(states));
            let extra = ready.cuts.iter().map(|cut| cut.extra).max().unwrap_or(0);
            let mut memory = vec![];
            for (index, buffer) in ready.section.buffers.iter().enumerate() {
                let is_inner = index != self.ends.0 && index != self.ends.1;
                memory.push(if is_inner && ready.cuts.iter().any(|cut| cut.places[index].is_global()) {
                    let length = ready.lengths[index] + (units - 1) * buffer.items;
                    let items = length.max((units + extra) * buffer.items).max(1);
                    Some(self.compiled.device.allocate::<u8>((items as u64 * buffer.words.bytes()) as usize)?)
                } else {
                    None
                });
            }
            *known = (states, memory);
        }
        Ok(known.1.clone())
    }

    /// Waits for the runs so far. Fails if one of their firings failed.
    pub fn check(&self) -> Result<(), Failure> {
        let flag = self.flag.read().map_err(|error| self.compiled.refused(codes::DEVICE, error.to_string()))?;
        if flag[0] != 0 {
            let message = "a firing failed: an index outside of an array, a division by zero or a rate that is not kept";
            return Err(self.compiled.refused(codes::RUN_TIME, message.into()));
        }
        Ok(())
    }
}
