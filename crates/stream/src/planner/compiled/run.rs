//! Runs of compiled programs.

use super::batch_end::BatchEnd;
use super::device_state::DeviceState;
use super::hand_back::{Checkpoint, changing_filters};
use super::prepare::Preparation;
use super::program::{Compiled, CompiledIsland, CompiledPiece, CompiledSection, CompiledStage};
use super::words::decode_all;
use crate::language::codes;
use crate::language::core::facts;
use crate::language::eval::{Host, Machine, Outcome, Record, Settings, Stop, with_stack};
use crate::language::graph::{NodeId, NodeKind, TapeId};
use crate::language::program::Failure;
use crate::language::schedule::{Entry, Phase, Schedule};
use crate::planner::classify::Placement;
use crate::planner::restructure::Role;
use crate::planner::translate::Words;
use broadloom_device::{Buffer, Stream};
use broadloom_diag::{Diagnostics, Span};
use broadloom_scalar::Literal;
use broadloom_skeleton::Call;
use broadloom_skeleton::cost::{Costs, dataflow};
use cranelift_entity::EntityRef;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The reason why a run ends early.
enum RunEnd {
    /// The evaluator ended it.
    Stop(Stop),
    /// The device failed.
    Device(String),
}

impl From<Stop> for RunEnd {
    fn from(stop: Stop) -> RunEnd {
        RunEnd::Stop(stop)
    }
}

impl From<BatchEnd> for RunEnd {
    fn from(trouble: BatchEnd) -> RunEnd {
        match trouble {
            BatchEnd::Closed => RunEnd::Stop(Stop::OutputClosed),
            BatchEnd::Device(error) => RunEnd::Device(error),
            BatchEnd::Stopped(error) | BatchEnd::Repeat(Some(error)) => RunEnd::Stop(Stop::Error(error)),
            BatchEnd::Repeat(None) => RunEnd::Device("a firing failed that had not failed before".into()),
        }
    }
}

pub(super) fn run(compiled: &Compiled<'_>, host: &mut dyn Host, settings: &Settings) -> Result<Outcome, Failure> {
    let program = compiled.program;
    let schedule = match &program.schedule {
        Some(schedule) if !compiled.stages.is_empty() && settings.style.is_none() && settings.iterations != Some(0) => schedule,
        _ => return program.run(host, settings),
    };
    let ended = with_stack(|| {
        let mut machine = Machine::new(&program.core, &program.graph, host, settings);
        let ended = match batches(compiled, schedule, &mut machine, settings) {
            Ok(outcome) => Ok(outcome),
            Err(RunEnd::Stop(stop)) => Err(stop),
            Err(RunEnd::Device(error)) => {
                // The output so far is kept. A second failure is less important.
                let _ = machine.finish(Ok(Outcome::Done));
                return Err(device_failure(compiled, &error));
            }
        };
        machine
            .finish(ended)
            .map_err(|error| Failure { sources: program.sources.clone(), diagnostics: Diagnostics::from(*error) })
    });
    ended.unwrap_or_else(|error| Err(device_failure(compiled, &error.to_string())))
}

fn device_failure(compiled: &Compiled<'_>, error: &str) -> Failure {
    compiled.refused(codes::DEVICE, format!("the device `{}` failed: {error}", compiled.device.machine().id))
}

/// Runs the batches of a run.
fn batches(
    compiled: &Compiled<'_>,
    schedule: &Schedule,
    machine: &mut Machine<'_>,
    settings: &Settings,
) -> Result<Outcome, RunEnd> {
    let warm_up = compiled.sections().map(|ready| ready.warm_up).max().unwrap_or(0);
    let mut done = settings.iterations.map_or(warm_up, |iterations| iterations.min(warm_up));
    begin(compiled, schedule, machine, done)?;
    let mut left = settings.iterations.map(|iterations| iterations - done);
    if left == Some(0) {
        return Ok(Outcome::Done);
    }
    done += run_until_ready(compiled, schedule, machine, settings)?;
    // What is held back belongs to a batch.
    machine.commit()?;
    let mut live = DeviceState::default();
    live.take_over(compiled, machine, done)?;
    let most = compiled.largest_batch();
    let in_order = order_of_output(compiled);
    let changing = changing_filters(compiled);
    let mut wanted = 1;
    while left != Some(0) {
        // An endless program begins with short batches, so that its output appears soon.
        let states = match left {
            Some(left) => left.min(most),
            None => wanted,
        };
        wanted = (wanted * 2).min(most);
        settings.limits.check_stop(Span::default()).map_err(Stop::Error)?;
        let states = machine.read_ahead(schedule, states);
        if states == 0 {
            break;
        }
        let checkpoint = Checkpoint::save(&compiled.device, machine, &live, &changing)?;
        machine.holds = true;
        match batch(compiled, schedule, machine, states, done, in_order, &mut live) {
            Err(BatchEnd::Repeat(_)) => {
                checkpoint.restore(machine, &mut live);
                break;
            }
            // What the batch printed first is kept, unless it was not in order.
            Err(trouble) if in_order => {
                checkpoint.restore(machine, &mut live);
                return Err(trouble.into());
            }
            ended => ended?,
        }
        machine.commit()?;
        compiled.counters.batches.fetch_add(1, Ordering::Relaxed);
        compiled.counters.states.fetch_add(states, Ordering::Relaxed);
        done += states;
        left = left.map(|left| left - states);
    }
    if left != Some(0) {
        machine.holds = false;
        compiled.counters.handed_back.fetch_add(1, Ordering::Relaxed);
        live.hand_back(compiled, schedule, machine, done)?;
        return Ok(machine.run_steady(schedule, left)?);
    }
    Ok(Outcome::Done)
}

/// Runs steady states on the evaluator while kernels are compiled. Returns their number.
fn run_until_ready(
    compiled: &Compiled<'_>,
    schedule: &Schedule,
    machine: &mut Machine<'_>,
    settings: &Settings,
) -> Result<u64, Stop> {
    let firings: u64 = compiled.program.graph.nodes.keys().fold(0, |all, node| all.saturating_add(schedule.repetition(node)));
    let Some(patience) = compiled.options.patience.filter(|_| settings.iterations.is_none()) else { return Ok(0) };
    if firings > dataflow::EVALUATED_FIRINGS {
        return Ok(0);
    }
    let Some(preparation) = Preparation::begin(compiled).filter(|kernels| !kernels.is_ready_within(patience)) else {
        return Ok(0);
    };
    let mut states = 0;
    while !preparation.is_ready() {
        settings.limits.check_stop(Span::default()).map_err(Stop::Error)?;
        machine.run_state(schedule, true)?;
        states += 1;
    }
    Ok(states)
}

/// Runs the initial schedule and steady states on the evaluator. It keeps the items that kernels look back
/// at.
pub(super) fn begin(compiled: &Compiled<'_>, schedule: &Schedule, machine: &mut Machine<'_>, states: u64) -> Result<(), Stop> {
    for inlet in compiled.pieces().flat_map(CompiledPiece::inlets) {
        machine.past[inlet.tape.index()].0 = inlet.kept as usize;
    }
    machine.print(&|text| text.push_str(&compiled.program.graph.printed))?;
    for phase in &schedule.init {
        machine.phase(phase)?;
    }
    for _ in 0..states {
        for phase in &schedule.steady {
            machine.phase(phase)?;
        }
    }
    Ok(())
}

/// Returns whether nodes of several stages print. Their output must then be put into order.
fn order_of_output(compiled: &Compiled<'_>) -> bool {
    let core = &compiled.program.core;
    let prints =
        |node: NodeId| compiled.program.graph.nodes[node].filter(core).is_some_and(|(filter, _)| facts(core, filter).prints);
    let stages = compiled.stages.iter().filter(|stage| match stage {
        CompiledStage::Host(chosen) => compiled.program.graph.nodes.keys().any(|node| chosen[node.index()] && prints(node)),
        CompiledStage::Device(_) => false,
    });
    stages.count() > 1
}

/// Runs a batch: `states` steady states after those that are done.
pub(super) fn batch(
    compiled: &Compiled<'_>,
    schedule: &Schedule,
    machine: &mut Machine<'_>,
    states: u64,
    done: u64,
    in_order: bool,
    live: &mut DeviceState,
) -> Result<(), BatchEnd> {
    if in_order {
        machine.flush()?;
        machine.records = Some(vec![Record::default(); compiled.program.graph.nodes.len()]);
    }
    if compiled.stages.is_empty() {
        for _ in 0..states {
            for phase in &schedule.steady {
                machine.phase(phase)?;
            }
        }
    }
    for (number, stage) in compiled.stages.iter().enumerate() {
        let begun = Instant::now();
        match stage {
            CompiledStage::Host(chosen) => on_host(compiled, schedule, machine, chosen, states, live)?,
            CompiledStage::Device(pieces) => {
                for piece in pieces {
                    match piece {
                        CompiledPiece::Section(ready) => ready.run(compiled, machine, states, done, live)?,
                        CompiledPiece::Island(sole) => sole.run(compiled, machine, states, done, live)?,
                    }
                    fired(compiled, machine, piece.nodes(), states);
                }
            }
        }
        compiled.counters.stages[number].fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
    live.check()?;
    if let Some(mut records) = machine.records.take() {
        for _ in 0..states {
            for phase in &schedule.steady {
                print_records(machine, phase, &mut records)?;
            }
        }
    }
    Ok(())
}

/// Runs a stage on the host. Readers of files fire before the other nodes and writers behind them, in blocks.
fn on_host(
    compiled: &Compiled<'_>,
    schedule: &Schedule,
    machine: &mut Machine<'_>,
    chosen: &[bool],
    states: u64,
    live: &DeviceState,
) -> Result<(), Stop> {
    let (mut chosen, mut readers, mut writers) = (chosen.to_vec(), vec![], vec![]);
    live.files.iter().for_each(|file| chosen[file.index()] = false);
    if !chosen.contains(&true) {
        return Ok(());
    }
    let mut block = states;
    for (id, node) in &compiled.program.graph.nodes {
        let rate = schedule.repetition(id);
        let files = match node.kind {
            NodeKind::FileReader(..) => &mut readers,
            NodeKind::FileWriter(..) => &mut writers,
            _ => continue,
        };
        if chosen[id.index()] && (1..=dataflow::FILE_ITEMS).contains(&rate) {
            chosen[id.index()] = false;
            block = block.min(dataflow::FILE_ITEMS / rate);
            files.push((id, rate));
        }
    }
    let steady: Vec<Phase> = schedule.steady.iter().map(|phase| phase.restricted_to(&|node| chosen[node.index()])).collect();
    let mut left = states;
    while left > 0 {
        let count = left.min(block);
        readers.iter().try_for_each(|(id, rate)| machine.read_block(*id, (count * rate) as usize))?;
        for _ in 0..count {
            for phase in &steady {
                machine.phase(phase)?;
            }
        }
        writers.iter().try_for_each(|(id, rate)| machine.write_block(*id, (count * rate) as usize))?;
        left -= count;
    }
    Ok(())
}

/// Prints the collected output of nodes in the order of a phase.
fn print_records(machine: &mut Machine<'_>, phase: &Phase, records: &mut [Record]) -> Result<(), Stop> {
    for (entry, count) in &phase.entries {
        for _ in 0..*count {
            match entry {
                Entry::Fire(node) => {
                    let text = records[node.index()].next_text();
                    machine.print(&|own| own.push_str(text))?;
                }
                Entry::Phase(inner) => print_records(machine, inner, records)?,
            }
        }
    }
    Ok(())
}

impl Compiled<'_> {
    /// Returns the maximum number of steady states in a batch. It keeps the machine busy and the memory
    /// small, and respects the latency option.
    pub fn largest_batch(&self) -> u64 {
        let mut most = if order_of_output(self) { dataflow::ORDERED_BATCH_UNITS } else { dataflow::BATCH_UNITS };
        let batch_bytes = Costs::of(self.device.machine()).batch_bytes();
        let graph = &self.program.graph;
        let is_host = |node: NodeId| {
            let is_file = matches!(graph.nodes[node].kind, NodeKind::FileReader(..) | NodeKind::FileWriter(..));
            matches!(self.classified[node.index()].placement, Placement::Host(_)) && !is_file
        };
        self.each_line(&mut |tape, items, words| {
            let bytes = (items as u64).saturating_mul(words.bytes());
            if let Some(states) = batch_bytes.checked_div(bytes) {
                most = most.min(states.max(1));
                most = most.min((dataflow::BUFFER_WORDS / items.saturating_mul(i64::from(words.count)).max(1)).max(1) as u64);
            }
            if items > 0 && (is_host(graph.tapes[tape].from.0) || is_host(graph.tapes[tape].to.0)) {
                most = most.min((dataflow::HOST_ITEMS / items as u64).max(1));
            }
        });
        self.options.latency.map_or(most, |latency| most.min(latency.max(1)))
    }

    /// Returns the largest number of steady states in a batch whose indices fit in 32 bits.
    pub(super) fn indexed_batch(&self) -> u64 {
        let mut most = dataflow::BUFFER_WORDS as u64;
        self.each_line(&mut |_, items, words| {
            let words = (items as u64).saturating_mul(u64::from(words.count)).max(1);
            most = most.min((dataflow::BUFFER_WORDS as u64 / words).max(1));
        });
        most
    }

    /// Returns the approximate bytes of all tapes in device memory for a batch of the largest size.
    pub fn batch_bytes(&self) -> u64 {
        let (mut bytes, states) = (0u64, self.largest_batch());
        self.each_line(&mut |_, items, words| {
            bytes = bytes.saturating_add((items as u64).saturating_mul(states).saturating_mul(words.bytes()));
        });
        bytes
    }

    /// Calls a function with every tape in device memory: its items in a steady state, and its words.
    fn each_line(&self, visit: &mut dyn FnMut(TapeId, i64, Words)) {
        for ready in self.sections() {
            for (index, buffer) in ready.section.buffers.iter().enumerate() {
                if ready.cuts.iter().any(|cut| cut.places[index].is_global()) {
                    visit(buffer.tape, buffer.items.saturating_mul(ready.section.units as i64), buffer.words);
                }
            }
        }
        for sole in self.islands() {
            for crossing in sole.island.inputs.iter().chain(&sole.island.outputs) {
                visit(crossing.tape, crossing.items.saturating_mul(sole.island.units as i64), crossing.words);
            }
        }
    }
}

impl Compiled<'_> {
    /// Returns the readers and writers of files at tapes of kernels.
    pub(super) fn files_at_kernels(&self) -> Vec<NodeId> {
        let graph = &self.program.graph;
        let readers = self.pieces().flat_map(CompiledPiece::inlets).map(|inlet| graph.tapes[inlet.tape].from.0);
        let writers = self.pieces().flat_map(CompiledPiece::extras).map(|(tape, _)| graph.tapes[tape].to.0);
        let is_file = |node: &NodeId| matches!(graph.nodes[*node].kind, NodeKind::FileReader(..) | NodeKind::FileWriter(..));
        readers.chain(writers).filter(is_file).collect()
    }
}

/// Counts firings of nodes on the device.
fn fired(compiled: &Compiled<'_>, machine: &mut Machine<'_>, nodes: &[NodeId], states: u64) {
    for node in nodes {
        let firings = compiled.program.schedule.as_ref().map_or(0, |schedule| schedule.repetition(*node)) * states;
        let state = &mut machine.nodes[node.index()];
        state.fired += firings;
        state.iterations = state.iterations.wrapping_add(firings as i32);
    }
}

fn failed(error: &dyn std::fmt::Display) -> BatchEnd {
    BatchEnd::Device(error.to_string())
}

/// An output tape of a piece.
struct PieceOutput {
    tape: TapeId,
    words: Words,
    /// Items of the batch, and the allocated items.
    items: usize,
    room: usize,
}

/// Returns memory for an output tape. A reader on the device provides its own memory.
fn room(compiled: &Compiled<'_>, live: &mut DeviceState, outlet: &PieceOutput) -> Result<Buffer<u8>, BatchEnd> {
    if live.reads(outlet.tape) {
        return live.room(&compiled.device, outlet.tape, outlet.items);
    }
    let bytes = outlet.room.max(1) * outlet.words.bytes() as usize;
    compiled.device.allocate::<u8>(bytes).map_err(|error| failed(&error))
}

/// Passes the items of a tape to their consumer on the host.
fn hand_over(
    compiled: &Compiled<'_>,
    machine: &mut Machine<'_>,
    live: &mut DeviceState,
    outlet: &PieceOutput,
    memory: &Buffer<u8>,
) -> Result<(), BatchEnd> {
    if live.reads(outlet.tape) {
        return Ok(());
    }
    let size = outlet.words.bytes() as usize;
    let Some(items) = memory.slice(0, outlet.items * size) else { return Ok(()) };
    let graph = &compiled.program.graph;
    let consumer = graph.tapes[outlet.tape].to.0;
    let is_file = live.files.contains(&consumer);
    if is_file && let Some(made) = &mut live.made {
        made.push(items);
        return Ok(());
    }
    if outlet.items == 0 {
        return Ok(());
    }
    live.check()?;
    if is_file {
        let read = |into: &mut [u8]| items.read_into(Stream::default(), into).map_err(|error| failed(&error));
        return machine.write_words(consumer, outlet.items, items.len(), read);
    }
    let bytes = items.read().map_err(|error| failed(&error))?;
    let (layout, producer) = (&graph.tapes[outlet.tape].layout, graph.tapes[outlet.tape].from.0);
    let span = graph.nodes[producer].span;
    decode_all(layout, outlet.words, &bytes, machine.room_for(outlet.tape, outlet.items, span)?);
    Ok(())
}

impl CompiledIsland {
    /// Runs the island for a number of steady states.
    fn run(
        &self,
        compiled: &Compiled<'_>,
        machine: &mut Machine<'_>,
        states: u64,
        done: u64,
        live: &mut DeviceState,
    ) -> Result<(), BatchEnd> {
        let island = &self.island;
        let units = (states * island.units) as i64;
        let inlets = self.inlets();
        let mut inputs = vec![];
        for inlet in &inlets {
            inputs.push(live.line(compiled, machine, inlet, units)?);
        }
        let outlet = |output: &crate::planner::restructure::island::BorderTape| {
            let items = (units * output.items) as usize;
            PieceOutput { tape: output.tape, words: output.words, items, room: items }
        };
        let outlets: Vec<PieceOutput> = island.outputs.iter().map(outlet).collect();
        let mut outputs = vec![];
        for outlet in &outlets {
            outputs.push(room(compiled, live, outlet)?);
        }
        outputs.extend_from_slice(live.state(island));
        outputs.push(live.flag()?);
        let number = (done as i64).wrapping_mul(island.units as i64) as i32;
        let call = Call {
            inputs: &inputs,
            outputs: &outputs,
            scalars: &[Literal::from(number)],
            sizes: &[units as u64],
            ..Call::default()
        };
        let begun = Instant::now();
        self.kernel.run(&call).map_err(|error| failed(&error))?;
        self.counted.0.fetch_add(1, Ordering::Relaxed);
        if compiled.options.timed {
            compiled.device.synchronise().map_err(|error| failed(&error))?;
            self.counted.1.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
        for (outlet, memory) in outlets.iter().zip(&outputs) {
            hand_over(compiled, machine, live, outlet, memory)?;
        }
        inlets.iter().try_for_each(|inlet| live.close(inlet, units))
    }
}

impl CompiledSection {
    /// Runs the section for a number of steady states.
    fn run(
        &self,
        compiled: &Compiled<'_>,
        machine: &mut Machine<'_>,
        states: u64,
        done: u64,
        live: &mut DeviceState,
    ) -> Result<(), BatchEnd> {
        let device = &compiled.device;
        let units = (states * self.section.units) as i64;
        let inlets = self.inlets();
        let mut memory: Vec<Option<Buffer<u8>>> = vec![None; self.section.buffers.len()];
        let mut outlets = vec![];
        let extra = self.cuts.iter().map(|cut| cut.extra).max().unwrap_or(0);
        for (index, buffer) in self.section.buffers.iter().enumerate() {
            let length = self.lengths[index] + (units - 1) * buffer.items;
            let items = length.max((units + extra) * buffer.items).max(1);
            memory[index] = match buffer.role {
                Role::Input => {
                    let inlet = inlets.iter().find(|inlet| inlet.tape == buffer.tape);
                    inlet.map(|inlet| live.line(compiled, machine, inlet, units)).transpose()?
                }
                Role::Output => {
                    let made = (units * buffer.items) as usize;
                    let outlet = PieceOutput { tape: buffer.tape, words: buffer.words, items: made, room: items as usize };
                    let memory = room(compiled, live, &outlet)?;
                    outlets.push((outlet, memory.clone()));
                    Some(memory)
                }
                Role::Inner if self.cuts.iter().any(|cut| cut.places[index].is_global()) => {
                    let bytes = items as u64 * buffer.words.bytes();
                    Some(device.allocate::<u8>(bytes as usize).map_err(|error| failed(&error))?)
                }
                Role::Inner => None,
            };
        }
        let flag = live.flag()?;
        let before = (done as i64).wrapping_mul(self.section.units as i64);
        for (kernel, counted) in self.counted.iter().enumerate() {
            let begun = Instant::now();
            self.launch(kernel, &memory, &flag, units, before).map_err(|error| failed(&error))?;
            counted.0.fetch_add(1, Ordering::Relaxed);
            if compiled.options.timed {
                device.synchronise().map_err(|error| failed(&error))?;
                counted.1.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
            }
        }
        for (outlet, memory) in &outlets {
            hand_over(compiled, machine, live, outlet, memory)?;
        }
        inlets.iter().try_for_each(|inlet| live.close(inlet, units))
    }
}
