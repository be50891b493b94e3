//! Execution of a graph, one firing at a time.

use super::code::{PATHS, Stop};
use super::files::{Reader, Writer};
use super::firing::{Firing, rate_error};
use super::messages::{Mail, Messages, has_upstream_messages};
use super::{Budget, Host, Limits};
use crate::codes;
use crate::core::{FunctionId, Layout, Program, StreamKind, Value};
use crate::graph::{Flow, Graph, Node, NodeId, NodeKind, Rate, Rates, TapeId};
use crate::schedule::{Entry, Phase, Schedule, Style, schedule};
use broadloom_diag::{Diagnostic, Span};
use cranelift_entity::EntityRef;
use std::collections::VecDeque;

/// Settings of a run.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Number of steady states after the initial schedule. Endless if absent.
    pub iterations: Option<u64>,
    /// Limits.
    pub limits: Limits,
    /// The order of firings. If absent, the program decides.
    pub style: Option<Style>,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All iterations were run.
    Done,
    /// An input file ended.
    EndOfInput,
    /// Nothing can fire.
    Idle,
    /// The output is no longer read.
    OutputClosed,
}

/// Output is printed in portions of this many bytes.
const PORTION: usize = 1 << 16;

/// Maximum firings of one node between two iterations of a program with dynamic rates.
const MAX_DRAIN: u32 = 1 << 20;

/// Advances the random generator and returns a number in [0, 1).
pub(crate) fn random(state: &mut u64) -> f64 {
    let mut next = |bits: u32| {
        *state = (state.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB)) & ((1 << 48) - 1);
        *state >> (48 - bits)
    };
    let high = next(26) << 27;
    (high + next(27)) as f64 / (1u64 << 53) as f64
}

/// Runs a graph.
///
/// A program with known rates runs by its schedule. A program with dynamic rates runs on demand: an iteration
/// fires each sink until some source has fired, and then every other node that can fire.
pub fn run(program: &Program, graph: &Graph, host: &mut dyn Host, settings: &Settings) -> Result<Outcome, Box<Diagnostic>> {
    let mut machine = Machine::new(program, graph, host, settings);
    let result = machine
        .print(&graph.printed)
        .and_then(|()| if graph.is_static() { machine.scheduled(settings) } else { machine.on_demand(settings) });
    machine.finish(result)
}

/// The state of a node.
pub(crate) struct State {
    pub(crate) fields: Vec<Value>,
    /// Finished firings.
    pub(crate) fired: u64,
    /// Finished firings of `work`.
    pub(crate) iterations: i32,
    /// True while a firing is in progress.
    busy: bool,
    pub(super) mail: VecDeque<Mail>,
    pub(super) reader: Option<Reader>,
    pub(super) writer: Option<Writer>,
}

pub(crate) struct Machine<'a> {
    pub(super) program: &'a Program,
    pub(super) graph: &'a Graph,
    host: &'a mut dyn Host,
    pub(crate) tapes: Vec<VecDeque<Value>>,
    /// For each tape, how many popped items are kept, and those items.
    pub(crate) past: Vec<(usize, VecDeque<Value>)>,
    pub(crate) nodes: Vec<State>,
    flows: Vec<Flow>,
    pub(crate) budget: Budget,
    pub(super) random: u64,
    /// True if firings pull the items they need.
    pub(super) on_demand: bool,
    pub(super) text: String,
    /// True if text and items of files are kept back until [`commit`](Self::commit).
    pub(crate) holds: bool,
    /// The output of each node, firing by firing, if output is put into order later.
    pub(crate) said: Option<Vec<VecDeque<String>>>,
    pub(super) messages: Messages,
}

impl<'a> Machine<'a> {
    pub(crate) fn new(program: &'a Program, graph: &'a Graph, host: &'a mut dyn Host, settings: &Settings) -> Self {
        let state = |node: &Node| State {
            fields: match &node.kind {
                NodeKind::Filter(instance) => instance.fields.to_vec(),
                _ => vec![],
            },
            fired: 0,
            iterations: 0,
            busy: false,
            mail: VecDeque::new(),
            reader: None,
            writer: None,
        };
        Machine {
            program,
            graph,
            host,
            tapes: graph.tapes.values().map(|tape| tape.enqueued.iter().cloned().collect()).collect(),
            past: vec![(0, VecDeque::new()); graph.tapes.len()],
            nodes: graph.nodes.values().map(state).collect(),
            flows: graph.nodes.values().map(Node::flow).collect(),
            budget: Budget::new(settings.limits.clone()),
            random: graph.random,
            on_demand: false,
            text: String::new(),
            holds: false,
            said: None,
            messages: Messages::default(),
        }
    }

    fn scheduled(&mut self, settings: &Settings) -> Result<Outcome, Stop> {
        let fitting = if has_upstream_messages(self.graph) { Style::Pull } else { Style::Phased };
        let style = settings.style.unwrap_or(fitting);
        let schedule = schedule(self.graph, &settings.limits, style).map_err(Stop::Error)?;
        if settings.iterations == Some(0) {
            return Ok(Outcome::Done);
        }
        for phase in &schedule.init {
            self.phase(phase)?;
        }
        self.run_steady(&schedule, settings.iterations)
    }

    /// Runs steady states. `left` is their number, endless if absent.
    pub(crate) fn run_steady(&mut self, schedule: &Schedule, mut left: Option<u64>) -> Result<Outcome, Stop> {
        while left != Some(0) {
            for phase in &schedule.steady {
                self.phase(phase)?;
            }
            self.flush_if_endless(left)?;
            left = left.map(|left| left - 1);
        }
        Ok(Outcome::Done)
    }

    /// Ends a run: writes the pending output.
    pub(crate) fn finish(&mut self, result: Result<Outcome, Stop>) -> Result<Outcome, Box<Diagnostic>> {
        let flushed = self.flush().and_then(|()| self.close());
        match result.and_then(|outcome| flushed.map(|()| outcome)) {
            Ok(outcome) => Ok(outcome),
            Err(Stop::EndOfInput) => Ok(Outcome::EndOfInput),
            Err(Stop::Idle) => Ok(Outcome::Idle),
            Err(Stop::OutputClosed) => Ok(Outcome::OutputClosed),
            Err(Stop::Error(error)) => Err(error),
        }
    }

    /// Flushes the output of an endless program after every iteration.
    fn flush_if_endless(&mut self, left: Option<u64>) -> Result<(), Stop> {
        if left.is_none() { self.flush() } else { Ok(()) }
    }

    fn phase(&mut self, phase: &Phase) -> Result<(), Stop> {
        self.phase_of(phase, &|_| true)
    }

    /// Fires the chosen nodes of a phase.
    pub(crate) fn phase_of(&mut self, phase: &Phase, chosen: &dyn Fn(NodeId) -> bool) -> Result<(), Stop> {
        for (entry, count) in &phase.entries {
            match entry {
                Entry::Fire(node) if !chosen(*node) => {}
                Entry::Fire(node) => {
                    for _ in 0..*count {
                        self.fire(*node)?;
                    }
                }
                Entry::Phase(inner) => {
                    for _ in 0..*count {
                        self.phase_of(inner, chosen)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn on_demand(&mut self, settings: &Settings) -> Result<Outcome, Stop> {
        self.on_demand = true;
        let of_kind = |test: &dyn Fn(&Node) -> bool| -> Vec<NodeId> {
            self.graph.nodes.iter().filter(|(_, node)| test(node)).map(|(id, _)| id).collect()
        };
        let sources = of_kind(&|node| node.inputs.is_empty());
        let mut sinks = of_kind(&|node| node.outputs.is_empty());
        if sinks.is_empty() {
            sinks = of_kind(&|node| matches!(node.kind, NodeKind::Filter(_)));
        }
        let mut left = settings.iterations;
        while left != Some(0) {
            let mut progress = false;
            for sink in &sinks {
                let count = |machine: &Self| sources.iter().map(|source| machine.nodes[source.index()].fired).sum::<u64>();
                let before = count(self);
                loop {
                    match self.fire(*sink) {
                        Ok(()) => progress = true,
                        Err(Stop::Idle) => {
                            self.budget.depth = 0;
                            break;
                        }
                        Err(stop) => return Err(stop),
                    }
                    if count(self) != before {
                        break;
                    }
                }
            }
            self.drain()?;
            self.flush_if_endless(left)?;
            if left.is_none() && !progress {
                return Ok(Outcome::Idle);
            }
            left = left.map(|left| left - 1);
        }
        Ok(Outcome::Done)
    }

    /// Fires every node that has its items, except sources.
    fn drain(&mut self) -> Result<(), Stop> {
        loop {
            let mut fired = false;
            for node in self.graph.nodes.keys() {
                let mut count = 0;
                while count < MAX_DRAIN && !self.graph.nodes[node].inputs.is_empty() && self.has_items(node) {
                    match self.fire(node) {
                        Ok(()) => fired = true,
                        Err(Stop::Idle) => {
                            self.budget.depth = 0;
                            break;
                        }
                        Err(stop) => return Err(stop),
                    }
                    count += 1;
                }
            }
            if !fired {
                return Ok(());
            }
        }
    }

    /// Returns whether a node can fire with the items on its tapes. Returns false if a rate is not known.
    fn has_items(&self, node: NodeId) -> bool {
        let first = self.graph.nodes[node].first_flow().filter(|_| self.nodes[node.index()].fired == 0);
        let flow = first.as_ref().unwrap_or(&self.flows[node.index()]);
        flow.peek.iter().zip(&flow.pop).zip(&self.graph.nodes[node].inputs).all(|((peek, pop), tape)| {
            pop.known().is_some() && peek.known().is_some_and(|need| self.tapes[tape.index()].len() >= need as usize)
        })
    }

    /// Fires producers until a tape holds a number of items.
    pub(super) fn ensure(&mut self, tape: TapeId, count: usize) -> Result<(), Stop> {
        let mut idle = 0;
        loop {
            let before = self.tapes[tape.index()].len();
            if before >= count {
                return Ok(());
            }
            let producer = self.graph.tapes[tape].from.0;
            self.fire(producer)?;
            idle = if self.tapes[tape.index()].len() == before { idle + 1 } else { 0 };
            if idle > self.budget.limits.schedule {
                let node = &self.graph.nodes[producer];
                let message = format!("{idle} firings of `{}` gave no item to {}", node.name, self.graph.describe(tape));
                return Err(Stop::error(codes::STEPS, message, node.span).help("let it push an item now and then"));
            }
        }
    }

    /// Fires a node once.
    pub(super) fn fire(&mut self, id: NodeId) -> Result<(), Stop> {
        let graph = self.graph;
        let node = &graph.nodes[id];
        let index = id.index();
        self.budget.steps = self.budget.steps.saturating_add(1);
        if let Some(stop) = self.budget.limits.stopped(node.span) {
            return Err(stop);
        }
        if self.budget.steps > self.budget.limits.steps {
            let message = format!("the program was stopped after {} steps", self.budget.limits.steps);
            return Err(Stop::error(codes::STEPS, message, node.span).help("end the loop or the recursion, or do less"));
        }
        if self.nodes[index].busy || !self.budget.has_stack() {
            let message = format!("`{}` needs its own output before it can produce it", node.name);
            let error = Diagnostic::error(codes::DEADLOCK, message).at(node.span, "");
            return Err(Stop::Error(Box::new(error.help("enqueue more items in the feedbackloop"))));
        }
        if self.on_demand {
            self.nodes[index].busy = true;
            let ready = self.pull_inputs(id);
            self.nodes[index].busy = false;
            ready?;
        }
        match &node.kind {
            NodeKind::Filter(instance) => {
                let StreamKind::Filter(filter) = &self.program.streams[instance.stream].kind else { return Ok(()) };
                let first = self.nodes[index].fired == 0;
                let (work, rates) = match (&filter.prework, instance.prework) {
                    (Some(prework), Some(rates)) if first => (prework, rates),
                    _ => (&filter.work, instance.work),
                };
                let is_work = work.function == filter.work.function;
                self.deliver(id)?;
                self.fire_filter(id, work.function, rates, work.span)?;
                if is_work {
                    let iterations = &mut self.nodes[index].iterations;
                    *iterations = iterations.wrapping_add(1);
                }
            }
            NodeKind::Identity => self.pass(node.inputs[0], node.outputs[0], 1, id)?,
            NodeKind::FileReader(layout, name) => {
                let value = self.read_item(id, layout, name)?;
                self.put(node.outputs[0], value, node.span)?;
            }
            NodeKind::FileWriter(layout, name) => {
                let value = self.take(node.inputs[0], id)?;
                self.write_item(id, layout, name, &value)?;
            }
            NodeKind::Duplicate => {
                let value = self.take(node.inputs[0], id)?;
                for tape in &node.outputs {
                    self.put(*tape, value.clone(), node.span)?;
                }
            }
            NodeKind::Split(weights) => {
                for (tape, weight) in node.outputs.iter().zip(weights) {
                    self.pass(node.inputs[0], *tape, *weight, id)?;
                }
            }
            NodeKind::Join(weights) => {
                for (tape, weight) in node.inputs.iter().zip(weights) {
                    self.pass(*tape, node.outputs[0], *weight, id)?;
                }
            }
        }
        self.nodes[index].fired += 1;
        if let Some(said) = &mut self.said {
            said[index].push_back(std::mem::take(&mut self.text));
        }
        Ok(())
    }

    /// Provides the items that a firing needs at its start, as far as the rates are known.
    fn pull_inputs(&mut self, id: NodeId) -> Result<(), Stop> {
        let graph = self.graph;
        let first = graph.nodes[id].first_flow().filter(|_| self.nodes[id.index()].fired == 0);
        let flow = first.unwrap_or_else(|| self.flows[id.index()].clone());
        for (need, tape) in flow.peek.iter().zip(&graph.nodes[id].inputs) {
            if let Some(need) = need.known() {
                self.ensure(*tape, need as usize)?;
            }
        }
        Ok(())
    }

    fn pass(&mut self, from: TapeId, to: TapeId, count: u32, id: NodeId) -> Result<(), Stop> {
        for _ in 0..count {
            let value = self.take(from, id)?;
            self.put(to, value, self.graph.nodes[id].span)?;
        }
        Ok(())
    }

    pub(crate) fn take(&mut self, tape: TapeId, id: NodeId) -> Result<Value, Stop> {
        let value = self.tapes[tape.index()].pop_front();
        let value = value.ok_or_else(|| {
            let message = format!("{} is empty", self.graph.describe(tape));
            Stop::error(codes::RATE_BROKEN, message, self.graph.nodes[id].span).help("pop fewer items, or push more before")
        })?;
        self.budget.cells = self.budget.cells.saturating_sub(value.cells());
        let (limit, past) = &mut self.past[tape.index()];
        if *limit > 0 {
            if past.len() >= *limit {
                past.pop_front();
            }
            past.push_back(value.clone());
        }
        Ok(value)
    }

    pub(crate) fn put(&mut self, tape: TapeId, value: Value, span: Span) -> Result<(), Stop> {
        self.budget.cells = self.budget.cells.saturating_add(value.cells());
        if self.budget.cells > self.budget.limits.cells {
            let message =
                format!("{} holds too many items: the limit is {} scalars", self.graph.describe(tape), self.budget.limits.cells);
            return Err(Stop::error(codes::MEMORY, message, span).help("push fewer items for each one that is taken"));
        }
        self.tapes[tape.index()].push_back(value);
        Ok(())
    }

    fn fire_filter(&mut self, id: NodeId, function: FunctionId, rates: Rates, span: Span) -> Result<(), Stop> {
        let node = &self.graph.nodes[id];
        let (input, output) = (node.inputs.first().copied(), node.outputs.first().copied());
        self.nodes[id.index()].busy = true;
        // A pop from a tape of dynamic rate fires its producer. Steps of an inner firing do not count for the
        // outer one.
        let (start, outer_end) = (self.budget.steps, self.budget.firing_end);
        self.budget.firing_end = start.saturating_add(self.budget.limits.firing);
        let mut firing = Firing { machine: self, node: id, input, output, rates, popped: 0, pushed: 0 };
        let result = firing.call(function, vec![]);
        let (popped, pushed) = (firing.popped, firing.pushed);
        self.budget.firing_end = outer_end.saturating_add(self.budget.steps - start);
        self.nodes[id.index()].busy = false;
        result.map_err(|stop| match stop {
            // The innermost firing is the failed one.
            Stop::Error(error) if error.notes.iter().all(|note| !note.starts_with("in firing")) => {
                let note = format!("in firing {} of `{}`", self.nodes[id.index()].fired + 1, self.graph.nodes[id].name);
                Stop::Error(Box::new(error.note(note)))
            }
            other => other,
        })?;
        if self.on_demand && popped == 0 && pushed == 0 {
            return Err(Stop::Idle);
        }
        for (rate, count, word) in [(rates.pop, popped, "pop"), (rates.push, pushed, "push")] {
            if count < rate.min {
                return Err(rate_error(self.graph, id, word, count, rate, span));
            }
        }
        Ok(())
    }

    /// Calls a function of a filter outside of a firing: a message handler.
    pub(super) fn handle(&mut self, id: NodeId, function: FunctionId, args: Vec<Value>) -> Result<(), Stop> {
        let none = Rate::exact(0);
        let rates = Rates { push: none, pop: none, peek: none };
        Firing { machine: self, node: id, input: None, output: None, rates, popped: 0, pushed: 0 }.call(function, args)
    }

    pub(crate) fn print(&mut self, text: &str) -> Result<(), Stop> {
        self.text.push_str(text);
        if self.text.len() >= PORTION && self.said.is_none() && !self.holds { self.flush() } else { Ok(()) }
    }

    pub(crate) fn flush(&mut self) -> Result<(), Stop> {
        if self.text.is_empty() {
            return Ok(());
        }
        let text = std::mem::take(&mut self.text);
        self.host.print(&text).map_err(|_| Stop::OutputClosed)
    }

    fn read_item(&mut self, id: NodeId, layout: &Layout, name: &str) -> Result<Value, Stop> {
        let span = self.graph.nodes[id].span;
        let failed =
            |error: std::io::Error| Stop::error(codes::FILE, format!("`{name}` cannot be read: {error}"), span).help(PATHS);
        let keeps = self.holds;
        let reader = self.reader(id, name).map_err(failed)?;
        reader.read(&layout.ty(), keeps).map_err(failed)?.ok_or(Stop::EndOfInput)
    }

    /// Returns the reader of a file. Opens the file first.
    pub(super) fn reader(&mut self, id: NodeId, name: &str) -> std::io::Result<&mut Reader> {
        let state = &mut self.nodes[id.index()];
        Ok(match &mut state.reader {
            Some(reader) => reader,
            absent => absent.insert(Reader::new(self.host.open(name)?)),
        })
    }

    fn write_item(&mut self, id: NodeId, _: &Layout, name: &str, value: &Value) -> Result<(), Stop> {
        let span = self.graph.nodes[id].span;
        let failed =
            |error: std::io::Error| Stop::error(codes::FILE, format!("`{name}` cannot be written: {error}"), span).help(PATHS);
        let state = &mut self.nodes[id.index()];
        if state.writer.is_none() {
            state.writer = Some(Writer::new(self.host.create(name).map_err(failed)?));
        }
        let holds = self.holds;
        state.writer.as_mut().map_or(Ok(()), |writer| writer.write(value, holds).map_err(failed))
    }

    /// Writes the last items of all files.
    pub(crate) fn close(&mut self) -> Result<(), Stop> {
        self.each_writer(Writer::close)
    }

    pub(super) fn each_writer(&mut self, write: fn(&mut Writer) -> std::io::Result<()>) -> Result<(), Stop> {
        for (id, node) in self.graph.nodes.iter() {
            if let Some(writer) = &mut self.nodes[id.index()].writer {
                let failed = |error| {
                    let message = format!("the file of `{}` cannot be written: {error}", node.name);
                    Stop::error(codes::FILE, message, node.span).help("check the space on its disk")
                };
                write(writer).map_err(failed)?;
            }
        }
        Ok(())
    }
}
