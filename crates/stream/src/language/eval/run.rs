//! Execution of a graph, one firing at a time.

use super::firing::{Firing, rate_error};
use super::host::Host;
use super::machine::{Machine, Outcome, Settings};
use super::messages::has_upstream_messages;
use super::stop::{Stop, both};
use crate::language::codes;
use crate::language::core::{FunctionId, Program, StreamKind, Value};
use crate::language::graph::{Graph, Node, NodeId, NodeKind, Rate, Rates, TapeId};
use crate::language::schedule::{Entry, Phase, Schedule, Style, schedule};
use broadloom_diag::{Diagnostic, Span};
use cranelift_entity::EntityRef;

/// Maximum firings of one node between two iterations of a program with dynamic rates.
const MAX_DRAIN: u32 = 1 << 20;

/// Runs a graph.
///
/// A program with known rates runs by its schedule. A program with dynamic rates runs on demand: an iteration
/// fires each sink until some source has fired, and then every other node that can fire.
pub fn run(program: &Program, graph: &Graph, host: &mut dyn Host, settings: &Settings) -> Result<Outcome, Box<Diagnostic>> {
    let mut machine = Machine::new(program, graph, host, settings);
    let result = machine
        .print(&|text| text.push_str(&graph.printed))
        .and_then(|()| if graph.is_static() { machine.scheduled(settings) } else { machine.on_demand(settings) });
    machine.finish(result)
}

impl Machine<'_> {
    fn scheduled(&mut self, settings: &Settings) -> Result<Outcome, Stop> {
        let fitting = if has_upstream_messages(self.graph) { Style::Pull } else { Style::Phased };
        let style = settings.style.unwrap_or(fitting);
        let schedule = schedule(self.graph, &settings.limits, style).map_err(Stop::Error)?;
        if settings.iterations == Some(0) {
            return Ok(Outcome::Done);
        }
        self.check_room(&schedule)?;
        for phase in &schedule.init {
            self.phase(phase)?;
        }
        self.run_steady(&schedule, settings.iterations)
    }

    /// Fails if a tape will hold more items than the limit of memory allows, before it is filled.
    fn check_room(&self, schedule: &Schedule) -> Result<(), Stop> {
        for (id, tape) in &self.graph.tapes {
            let (items, limit) = (schedule.bound(id), self.budget.limits.cells);
            if items.saturating_mul(tape.layout.cells()) > limit {
                let message = format!("{} holds {items} items: the limit is {limit} scalars", self.graph.describe(id));
                let error = Stop::error(codes::MEMORY, message, self.graph.nodes[tape.from.0].span);
                return Err(error.help("push, peek or enqueue fewer items"));
            }
        }
        Ok(())
    }

    /// Runs steady states. `left` is their number, endless if absent.
    pub(crate) fn run_steady(&mut self, schedule: &Schedule, mut left: Option<u64>) -> Result<Outcome, Stop> {
        self.states_left = left;
        while left != Some(0) {
            self.run_state(schedule, left.is_none())?;
            left = left.map(|left| left - 1);
            self.states_left = left;
        }
        Ok(Outcome::Done)
    }

    /// Runs a steady state. `is_endless` says that nobody knows how many will follow.
    pub(crate) fn run_state(&mut self, schedule: &Schedule, is_endless: bool) -> Result<(), Stop> {
        for phase in &schedule.steady {
            self.phase(phase)?;
        }
        if is_endless {
            self.flush()?;
        }
        self.write_in_time()
    }

    /// Ends a run: passes on what was read before the input ended, and writes the pending output. A file without
    /// items is created too: an older file of that name would look like the output.
    pub(crate) fn finish(&mut self, result: Result<Outcome, Stop>) -> Result<Outcome, Box<Diagnostic>> {
        let result = match result {
            Err(Stop::EndOfInput) => self.drain_input().and(Err(Stop::EndOfInput)),
            other => other,
        };
        let created = match &result {
            Err(Stop::Error(_)) => Ok(()),
            Ok(_) | Err(_) => self.create_files(),
        };
        // Files are closed whatever happened to the printed text, and the other way round.
        let written = both(both(created, self.flush()), self.close());
        match both(result, written) {
            Ok(outcome) => Ok(outcome),
            Err(Stop::EndOfInput) => {
                self.warn_of_end();
                Ok(Outcome::EndOfInput)
            }
            Err(Stop::Idle) => Ok(Outcome::Idle),
            Err(Stop::OutputClosed) => Ok(Outcome::OutputClosed),
            Err(Stop::Error(error)) => Err(error),
        }
    }

    /// Flushes the output of an endless program after every iteration.
    fn flush_if_endless(&mut self, left: Option<u64>) -> Result<(), Stop> {
        if left.is_none() { self.flush() } else { Ok(()) }
    }

    /// Fires the nodes of a phase.
    pub(crate) fn phase(&mut self, phase: &Phase) -> Result<(), Stop> {
        for (entry, count) in &phase.entries {
            match entry {
                Entry::Fire(node) => {
                    for _ in 0..*count {
                        self.fire(*node)?;
                    }
                }
                Entry::Phase(inner) => {
                    for _ in 0..*count {
                        self.phase(inner)?;
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
            self.states_left = left;
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
    pub(super) fn has_items(&self, node: NodeId) -> bool {
        let first = if self.nodes[node.index()].fired == 0 { self.graph.nodes[node].first_flow() } else { None };
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
        self.budget.limits.check_stop(node.span)?;
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
        if let Some(records) = &mut self.records {
            records[index].add(&mut self.text);
        }
        Ok(())
    }

    /// Provides the items that a firing needs at its start, as far as the rates are known.
    fn pull_inputs(&mut self, id: NodeId) -> Result<(), Stop> {
        let graph = self.graph;
        let first = if self.nodes[id.index()].fired == 0 { graph.nodes[id].first_flow() } else { None };
        for (port, tape) in graph.nodes[id].inputs.iter().enumerate() {
            let flow = first.as_ref().unwrap_or(&self.flows[id.index()]);
            if let Some(need) = flow.peek.get(port).and_then(|need| need.known()) {
                self.ensure(*tape, need as usize)?;
            }
        }
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
}
