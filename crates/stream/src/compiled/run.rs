//! Runs of compiled programs.

use super::words::{decode, encode};
use super::{Compiled, Part, Ready};
use crate::codes;
use crate::core::{StreamKind, facts};
use crate::eval::{Host, Machine, Outcome, Settings, Stop, with_stack};
use crate::graph::{NodeId, NodeKind, TapeId};
use crate::restructure::Role;
use crate::restructure::cut::Place;
use crate::schedule::{Entry, Phase, Schedule};
use crate::{Failure, Program};
use broadloom_device::Buffer;
use broadloom_diag::Diagnostic;
use broadloom_scalar::Literal;
use broadloom_skeleton::Call;
use cranelift_entity::EntityRef;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Bytes of tapes between host and device that a batch may have, about.
const BATCH_BYTES: u64 = 32 << 20;
/// The most steady states of a batch.
const MAX_BATCH: u64 = 1 << 16;
/// The most words of a buffer, so that indices have 32 bits.
const MAX_WORDS: i64 = 1 << 29;

/// A host that counts what is printed, and leaves out what was printed before.
struct Counting<'h> {
    host: &'h mut dyn Host,
    printed: usize,
    skipped: usize,
}

impl Host for Counting<'_> {
    fn print(&mut self, text: &str) -> io::Result<()> {
        self.printed += text.len();
        let skip = self.skipped.min(text.len());
        self.skipped -= skip;
        // Text that was printed before is the start of this text, so it ends before a character.
        match text.get(skip..) {
            Some("") | None => Ok(()),
            Some(rest) => self.host.print(rest),
        }
    }

    fn open(&mut self, path: &str) -> io::Result<Box<dyn Read + Send>> {
        self.host.open(path)
    }

    fn create(&mut self, path: &str) -> io::Result<Box<dyn Write + Send>> {
        self.host.create(path)
    }
}

/// The reason why a batch ends early.
pub(super) enum Trouble {
    /// The evaluator has to repeat the run, and says what is wrong; a node on the host may have said it already.
    Repeat(Option<Box<Diagnostic>>),
    /// The output is not read any more.
    Closed,
    /// The device failed.
    Device(String),
}

impl From<Stop> for Trouble {
    fn from(stop: Stop) -> Trouble {
        match stop {
            Stop::OutputClosed => Trouble::Closed,
            Stop::Error(error) => Trouble::Repeat(Some(error)),
            Stop::EndOfInput | Stop::Idle => Trouble::Repeat(None),
        }
    }
}

pub(super) fn run(compiled: &Compiled<'_>, host: &mut dyn Host, settings: &Settings) -> Result<Outcome, Failure> {
    let program = compiled.program;
    let schedule = match &program.schedule {
        Some(schedule) if !compiled.stages.is_empty() && settings.style.is_none() && settings.iterations != Some(0) => schedule,
        _ => return program.run(host, settings),
    };
    let mut counting = Counting { host, printed: 0, skipped: 0 };
    let ended = with_stack(|| execute(compiled, schedule, &mut counting, settings));
    let printed = counting.printed;
    match ended {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(Trouble::Closed)) => Ok(Outcome::OutputClosed),
        Ok(Err(Trouble::Repeat(_))) => {
            compiled.counters.repeated.fetch_add(1, Ordering::Relaxed);
            program.run(&mut Counting { host, printed: 0, skipped: printed }, settings)
        }
        Ok(Err(Trouble::Device(error))) => Err(device_failure(compiled, &error)),
        Err(error) => Err(device_failure(compiled, &error.to_string())),
    }
}

fn device_failure(compiled: &Compiled<'_>, error: &str) -> Failure {
    compiled.refused(codes::DEVICE, format!("the device `{}` failed: {error}", compiled.device.machine().id))
}

fn execute(compiled: &Compiled<'_>, schedule: &Schedule, host: &mut dyn Host, settings: &Settings) -> Result<Outcome, Trouble> {
    let program = compiled.program;
    let mut machine = Machine::new(&program.core, &program.graph, host, settings);
    let warm_up = compiled.sections().map(|ready| ready.warm_up).max().unwrap_or(0);
    let mut done = settings.iterations.map_or(warm_up, |iterations| iterations.min(warm_up));
    begin(compiled, schedule, &mut machine, done)?;
    let mut left = settings.iterations.map(|iterations| iterations - done);
    let mut raw = Raw::default();
    let most = compiled.largest_batch();
    let in_order = order_of_output(compiled);
    let mut wanted = 1;
    while left != Some(0) {
        // An endless program begins with short batches, so that its output appears soon.
        let states = match left {
            Some(left) => left.min(most),
            None => wanted,
        };
        wanted = (wanted * 2).min(most);
        batch(compiled, schedule, &mut machine, (states, done), in_order, &mut raw)?;
        if left.is_none() {
            machine.flush()?;
        }
        compiled.counters.batches.fetch_add(1, Ordering::Relaxed);
        compiled.counters.states.fetch_add(states, Ordering::Relaxed);
        done += states;
        left = left.map(|left| left - states);
    }
    machine.flush()?;
    machine.close()?;
    Ok(Outcome::Done)
}

/// Runs the initial schedule and steady states on the evaluator, which keeps what kernels will look back at.
pub(super) fn begin(compiled: &Compiled<'_>, schedule: &Schedule, machine: &mut Machine<'_>, states: u64) -> Result<(), Trouble> {
    for ready in compiled.sections() {
        for (buffer, kept) in ready.section.buffers.iter().zip(&ready.kept) {
            if buffer.role == Role::Input {
                machine.past[buffer.tape.index()].0 = *kept as usize;
            }
        }
    }
    machine.print(&compiled.program.graph.printed)?;
    for phase in &schedule.init {
        machine.phase_of(phase, &|_| true)?;
    }
    for _ in 0..states {
        for phase in &schedule.steady {
            machine.phase_of(phase, &|_| true)?;
        }
    }
    Ok(())
}

/// Tapes between files and kernels whose items are kept as bytes.
#[derive(Debug, Default)]
pub(super) struct Raw {
    /// Inputs: items that kernels look back at, then those that were not taken.
    pub(super) inputs: Vec<(TapeId, Vec<u8>)>,
    /// Outputs.
    pub(super) outputs: Vec<(TapeId, Vec<u8>)>,
    /// Readers and writers that do not fire.
    pub(super) files: Vec<NodeId>,
}

/// Returns whether nodes of several stages print, so that their output has to be put into order.
fn order_of_output(compiled: &Compiled<'_>) -> bool {
    let prints = |node: NodeId| match &compiled.program.graph.nodes[node].kind {
        NodeKind::Filter(instance) => match &compiled.program.core.streams[instance.stream].kind {
            StreamKind::Filter(filter) => facts(&compiled.program.core, filter).prints,
            StreamKind::Composite(..) => false,
        },
        _ => false,
    };
    let stages = compiled.stages.iter().filter(|stage| match stage {
        Part::Host(chosen) => compiled.program.graph.nodes.keys().any(|node| chosen[node.index()] && prints(node)),
        Part::Device(_) => false,
    });
    stages.count() > 1
}

/// Runs a batch: a number of steady states behind those that are done.
pub(super) fn batch(
    compiled: &Compiled<'_>,
    schedule: &Schedule,
    machine: &mut Machine<'_>,
    (states, done): (u64, u64),
    in_order: bool,
    raw: &mut Raw,
) -> Result<(), Trouble> {
    if in_order {
        machine.flush()?;
        machine.said = Some(vec![VecDeque::new(); compiled.program.graph.nodes.len()]);
    }
    if compiled.stages.is_empty() {
        for _ in 0..states {
            for phase in &schedule.steady {
                machine.phase_of(phase, &|_| true)?;
            }
        }
    }
    for (number, stage) in compiled.stages.iter().enumerate() {
        let begun = Instant::now();
        match stage {
            Part::Host(chosen) => {
                for _ in 0..states {
                    for phase in &schedule.steady {
                        machine.phase_of(phase, &|node| chosen[node.index()] && !raw.files.contains(&node))?;
                    }
                }
            }
            Part::Device(sections) => {
                for ready in sections {
                    ready.run(compiled, machine, (states, done), raw)?;
                }
            }
        }
        compiled.counters.stages[number].fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
    if let Some(mut said) = machine.said.take() {
        for _ in 0..states {
            for phase in &schedule.steady {
                say(machine, phase, &mut said)?;
            }
        }
    }
    Ok(())
}

/// Prints what nodes said, in the order of a phase.
fn say(machine: &mut Machine<'_>, phase: &Phase, said: &mut [VecDeque<String>]) -> Result<(), Stop> {
    for (entry, count) in &phase.entries {
        for _ in 0..*count {
            match entry {
                Entry::Fire(node) => {
                    if let Some(text) = said[node.index()].pop_front() {
                        machine.print(&text)?;
                    }
                }
                Entry::Phase(inner) => say(machine, inner, said)?,
            }
        }
    }
    Ok(())
}

impl Compiled<'_> {
    /// Returns the most steady states of a batch.
    pub(super) fn largest_batch(&self) -> u64 {
        let mut most = MAX_BATCH;
        for ready in self.sections() {
            let units = ready.section.units as i64;
            for (index, buffer) in ready.section.buffers.iter().enumerate() {
                let global = ready.cuts.iter().any(|cut| cut.places[index].is_global());
                let bytes = (buffer.items * units) as u64 * buffer.words.bytes();
                if global && bytes > 0 {
                    most = most.min((BATCH_BYTES / bytes).max(1));
                    let words = buffer.items * units * i64::from(buffer.words.count);
                    most = most.min((MAX_WORDS / words.max(1)).max(1) as u64);
                }
            }
        }
        most
    }
}

impl Ready {
    /// Runs the section for a number of steady states.
    fn run(
        &self,
        compiled: &Compiled<'_>,
        machine: &mut Machine<'_>,
        (states, done): (u64, u64),
        raw: &mut Raw,
    ) -> Result<(), Trouble> {
        let program: &Program = compiled.program;
        let device = &compiled.device;
        let failed = |error: &dyn std::fmt::Display| Trouble::Device(error.to_string());
        let units = states as i64 * self.section.units as i64;
        let mut memory: Vec<Option<Buffer<u8>>> = vec![None; self.section.buffers.len()];
        for (index, buffer) in self.section.buffers.iter().enumerate() {
            let length = self.lengths[index] + (units - 1) * buffer.items;
            let given = raw.inputs.iter_mut().find(|(tape, _)| *tape == buffer.tape && buffer.role == Role::Input);
            if let Some((_, bytes)) = given {
                let wanted = (length.max(1) as u64 * buffer.words.bytes()) as usize;
                bytes.resize(bytes.len().max(wanted), 0);
                memory[index] = Some(device.upload(&bytes[..wanted]).map_err(|error| failed(&error))?);
                bytes.drain(..(units * buffer.items) as usize * buffer.words.bytes() as usize);
            } else if buffer.role == Role::Input {
                let tape = buffer.tape;
                let layout = &program.graph.tapes[tape].layout;
                let mut bytes = Vec::with_capacity((length.max(0) as u64 * buffer.words.bytes()) as usize);
                let items = machine.past[tape.index()].1.iter().chain(&machine.tapes[tape.index()]);
                items.take(length.max(0) as usize).for_each(|item| encode(layout, buffer.words, item, &mut bytes));
                // At least one byte: there are no empty buffers.
                bytes.resize((length.max(1) as u64 * buffer.words.bytes()) as usize, 0);
                memory[index] = Some(device.upload(&bytes).map_err(|error| failed(&error))?);
                let consumer = program.graph.tapes[tape].to.0;
                for _ in 0..units * buffer.items {
                    machine.take(tape, consumer)?;
                }
            } else if self.cuts.iter().any(|cut| cut.places[index].is_global()) {
                let extra = self.cuts.iter().map(|cut| cut.extra).max().unwrap_or(0);
                let items = length.max((units + extra) * buffer.items).max(1);
                let bytes = items as u64 * buffer.words.bytes();
                memory[index] = Some(device.allocate::<u8>(bytes as usize).map_err(|error| failed(&error))?);
            }
        }
        let flag = device.zeros::<u32>(1).map_err(|error| failed(&error))?;
        let flag_bytes = flag.view::<u8>().ok_or_else(|| Trouble::Device("a buffer is not aligned".into()))?;
        let number = (done as i64).wrapping_mul(self.section.units as i64) as i32;
        for (cut, kernel) in self.cuts.iter().zip(&self.kernels) {
            let of = |wanted: &dyn Fn(Place) -> bool| -> Vec<Buffer<u8>> {
                let places = cut.places.iter().zip(&memory).filter(|(place, _)| wanted(**place));
                places.filter_map(|(_, memory)| memory.clone()).collect()
            };
            let inputs = of(&|place| matches!(place, Place::Read | Place::Staged(_)));
            let mut outputs = of(&|place| matches!(place, Place::Written | Place::Collected(_)));
            outputs.push(flag_bytes.clone());
            let call = Call {
                inputs: &inputs,
                outputs: &outputs,
                scalars: &[Literal::from(number)],
                sizes: &[units as u64],
                ..Call::default()
            };
            kernel.run(&call).map_err(|error| failed(&error))?;
        }
        if flag.read().map_err(|error| failed(&error))?[0] != 0 {
            return Err(Trouble::Repeat(None));
        }
        for (index, buffer) in self.section.buffers.iter().enumerate() {
            if let (Role::Output, Some(memory)) = (buffer.role, &memory[index]) {
                let (tape, size) = (buffer.tape, buffer.words.bytes() as usize);
                let mut bytes = memory.read().map_err(|error| failed(&error))?;
                if let Some((_, into)) = raw.outputs.iter_mut().find(|(own, _)| *own == tape) {
                    bytes.truncate((units * buffer.items) as usize * size);
                    into.append(&mut bytes);
                    continue;
                }
                let (layout, producer) = (&program.graph.tapes[tape].layout, program.graph.tapes[tape].from.0);
                let span = program.graph.nodes[producer].span;
                for item in bytes.chunks_exact(size).take((units * buffer.items) as usize) {
                    machine.put(tape, decode(layout, buffer.words, item), span)?;
                }
            }
        }
        for node in &self.section.nodes {
            let firings = self.repetitions(program, *node) * states;
            let state = &mut machine.nodes[node.index()];
            state.fired += firings;
            state.iterations = state.iterations.wrapping_add(firings as i32);
        }
        Ok(())
    }

    fn repetitions(&self, program: &Program, node: NodeId) -> u64 {
        program.schedule.as_ref().map_or(0, |schedule| schedule.repetition(node))
    }
}
