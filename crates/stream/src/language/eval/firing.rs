//! A firing of a filter: its access to the tapes, and the check of its rates.

use super::budget::Budget;
use super::code::{Code, Weights, World};
use super::machine::{Machine, random};
use super::stop::Stop;
use crate::language::codes;
use crate::language::core::{Create, FunctionId, Layout, Role, Value};
use crate::language::graph::{Graph, NodeId, NodeKind, Rate, Rates, TapeId};
use crate::language::text::plural;
use broadloom_diag::{Diagnostic, Span};
use cranelift_entity::EntityRef;
use std::sync::Arc;

/// Returns the error for a firing that moved too few items.
pub(super) fn rate_error(graph: &Graph, id: NodeId, word: &str, count: u32, rate: Rate, span: Span) -> Stop {
    let node = &graph.nodes[id];
    let declared = match (rate.known(), rate.max) {
        (Some(known), _) => format!("exactly {known}"),
        (None, Some(max)) => format!("{} to {max}", rate.min),
        (None, None) => format!("at least {}", rate.min),
    };
    let tape = if word == "push" { node.outputs.first() } else { node.inputs.first() };
    let tape = tape.map_or_else(|| "its tape".to_owned(), |tape| graph.describe(*tape));
    let verb = if word == "pop" { "took" } else { "put" };
    let message = format!(
        "a firing of `{}` {verb} {} {} {tape}; declared: {declared}",
        node.name,
        plural(count, "item"),
        if word == "pop" { "from" } else { "on" }
    );
    let error = Diagnostic::error(codes::RATE_BROKEN, message).at(span, format!("declares {word} {declared}"));
    Stop::Error(Box::new(error.help(format!("make the {word} rate and the code agree on every path"))))
}

/// A firing in progress.
pub(super) struct Firing<'m, 'a> {
    pub(super) machine: &'m mut Machine<'a>,
    pub(super) node: NodeId,
    pub(super) input: Option<TapeId>,
    pub(super) output: Option<TapeId>,
    pub(super) rates: Rates,
    pub(super) popped: u32,
    pub(super) pushed: u32,
}

impl Firing<'_, '_> {
    pub(super) fn call(&mut self, function: FunctionId, args: Vec<Value>) -> Result<(), Stop> {
        let (program, graph) = (self.machine.program, self.machine.graph);
        let NodeKind::Filter(instance) = &graph.nodes[self.node].kind else { return Ok(()) };
        let index = self.node.index();
        let fields = std::mem::take(&mut self.machine.nodes[index].fields);
        // A firing within this one, which a pop from a dynamic tape begins, has a stack of its own.
        let stack = std::mem::take(&mut self.machine.stack);
        let mut code = Code::new(program, &instance.params, fields, graph.statics.clone(), self);
        code.stack = stack;
        let result = code.enter(function, args);
        let (fields, mut stack) = (std::mem::take(&mut code.fields), std::mem::take(&mut code.stack));
        stack.clear();
        self.machine.nodes[index].fields = fields;
        self.machine.stack = stack;
        result.map(drop)
    }

    fn too_many(&self, word: &str, rate: Rate, span: Span) -> Stop {
        let graph = self.machine.graph;
        let node = &graph.nodes[self.node];
        let tape = if word == "push" { self.output } else { self.input };
        let tape = tape.map_or_else(|| "its tape".to_owned(), |tape| graph.describe(tape));
        let max = rate.max.unwrap_or(0);
        let message = match word {
            "pop" => format!("`{}` pops more than {} from {tape} in one firing", node.name, plural(max, "item")),
            "push" => format!("`{}` pushes more than {} on {tape} in one firing", node.name, plural(max, "item")),
            _ => format!("`{}` peeks beyond what it may see of {tape}: {}", node.name, plural(max, "item")),
        };
        let declared = node.filter(self.machine.program).map_or(node.span, |(filter, _)| filter.work.span);
        let error = Diagnostic::error(codes::RATE_BROKEN, message).at(span, "").label(declared, format!("declares {word} {max}"));
        Stop::Error(Box::new(error.help(format!("raise the declared {word} rate, or change the code"))))
    }
}

fn no_graph(span: Span) -> Stop {
    Stop::error(codes::MISPLACED, "the graph is complete and cannot be changed", span)
}

impl World for Firing<'_, '_> {
    fn pop(&mut self, span: Span) -> Result<Value, Stop> {
        let Some(tape) = self.input else { return Err(self.too_many("pop", self.rates.pop, span)) };
        if self.rates.pop.max.is_some_and(|max| self.popped >= max) {
            return Err(self.too_many("pop", self.rates.pop, span));
        }
        if self.machine.on_demand {
            self.machine.ensure(tape, 1)?;
        }
        self.popped = self.popped.saturating_add(1);
        self.machine.take(tape, self.node)
    }

    fn peek(&mut self, index: i32, span: Span) -> Result<Value, Stop> {
        let Ok(index) = u32::try_from(index) else {
            let message = format!("`peek({index})` looks at an item that was popped before");
            return Err(
                Stop::error(codes::RATE_BROKEN, message, span).help("`peek(0)` is the next item; keep older items in a field")
            );
        };
        let Some(tape) = self.input else { return Err(self.too_many("peek", self.rates.peek, span)) };
        if self.rates.peek.max.is_some_and(|max| u64::from(self.popped) + u64::from(index) >= u64::from(max)) {
            return Err(self.too_many("peek", self.rates.peek, span));
        }
        if self.machine.on_demand {
            self.machine.ensure(tape, index as usize + 1)?;
        }
        let value = self.machine.tapes[tape.index()].get(index as usize).cloned();
        value.ok_or_else(|| self.too_many("peek", self.rates.peek, span))
    }

    fn push(&mut self, value: Value, span: Span) -> Result<(), Stop> {
        let Some(tape) = self.output else { return Err(self.too_many("push", self.rates.push, span)) };
        if self.rates.push.max.is_some_and(|max| self.pushed >= max) {
            return Err(self.too_many("push", self.rates.push, span));
        }
        let layout = &self.machine.graph.tapes[tape].layout;
        if matches!(value, Value::Array(_) | Value::Struct(_)) && !layout.holds(&value) {
            let ty = layout.show(&self.machine.program.structs);
            let message =
                format!("an array of other lengths is pushed on {}, which carries {ty}", self.machine.graph.describe(tape));
            return Err(Stop::error(codes::TAPE_TYPE, message, span).help("push an array of the declared lengths"));
        }
        self.pushed = self.pushed.saturating_add(1);
        self.machine.put(tape, value, span)
    }

    fn print(&mut self, append: &dyn Fn(&mut String)) -> Result<(), Stop> {
        self.machine.print(append)
    }

    fn iterations(&self) -> i32 {
        self.machine.nodes[self.node.index()].iterations
    }

    fn random(&mut self) -> f64 {
        random(&mut self.machine.random)
    }

    fn send(&mut self, portal: u32, handler: &Arc<str>, args: Vec<Value>, latency: i32, span: Span) -> Result<(), Stop> {
        self.machine.send(self.node, portal, handler, &args, latency, span)
    }

    fn portal(&mut self) -> u32 {
        0
    }

    fn create(&mut self, _: Role, create: &Create, _: Vec<Value>, _: Vec<u32>, _: Option<Layout>) -> Result<(), Stop> {
        Err(no_graph(create.span))
    }

    fn split(&mut self, _: Weights, span: Span) -> Result<(), Stop> {
        Err(no_graph(span))
    }

    fn join(&mut self, _: Weights, span: Span) -> Result<(), Stop> {
        Err(no_graph(span))
    }

    fn enqueue(&mut self, _: Value, span: Span) -> Result<(), Stop> {
        Err(no_graph(span))
    }

    fn read_numbers(&mut self, file: &str, _: u32, span: Span) -> Result<Vec<f64>, Stop> {
        let message = format!("`{file}` can be read into an array only while the graph is built");
        Err(Stop::error(codes::MISPLACED, message, span).help("read it in `init`, or as the initial value of a field"))
    }

    fn budget(&mut self) -> &mut Budget {
        &mut self.machine.budget
    }
}
