//! Messages. Time is the flow of information. A message with latency L that is sent in firing n of its sender
//! refers to firing n + L of the sender. Downstream, it arrives together with the items that this firing
//! produces. Upstream, it arrives with the items that this firing needs.
//!
//! Let `need(d)` be the number of firings of the upper filter that d firings of the lower filter need. A
//! message downstream arrives before firing d of the receiver, the first with `need(d) ≥ n + L`. A message
//! upstream arrives when the receiver has fired `need(n + L)` times. All counts begin with 1.

use super::stop::Stop;
use crate::language::codes;
use crate::language::core::{FunctionId, Value};
use crate::language::graph::{Graph, NodeId};
use crate::language::schedule::Firing;
use broadloom_diag::{Diagnostic, Span};
use cranelift_entity::EntityRef;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Number of firings for which a route is remembered.
const MEMORY: u64 = 1 << 16;

/// A message that waits for its receiver.
#[derive(Clone, Debug)]
pub(super) struct PendingMessage {
    /// Firings of the receiver after which it is delivered.
    pub(super) at: u64,
    pub(super) function: FunctionId,
    pub(super) args: Vec<Value>,
}

/// Facts about pairs of senders and receivers.
#[derive(Clone, Default)]
pub(super) struct Messages {
    pub(super) routes: HashMap<(NodeId, NodeId), Route>,
}

/// The dependence between two filters.
#[derive(Clone)]
pub(super) struct Route {
    downstream: bool,
    lower: NodeId,
    upper: NodeId,
    /// Rates of the nodes between them: the first firing, if it differs, and the others.
    firings: BTreeMap<NodeId, (Option<Firing>, Firing)>,
    fired: BTreeMap<NodeId, u64>,
    /// Items on the tapes between the nodes.
    items: HashMap<usize, u64>,
    /// `needs[d - forgotten]` is the number of firings of the upper filter that d firings of the lower one
    /// need.
    needs: VecDeque<u64>,
    /// Number of old entries that were dropped.
    forgotten: u64,
}

impl Route {
    pub(super) fn new(graph: &Graph, sender: NodeId, receiver: NodeId, span: Span) -> Result<Route, Stop> {
        let below = graph.reach(sender, true);
        let above = graph.reach(sender, false);
        let downstream = below[receiver.index()];
        if sender == receiver || (!downstream && !above[receiver.index()]) {
            let names = (&graph.nodes[sender].name, &graph.nodes[receiver].name);
            let message =
                format!("there is no way along the tapes between the sender `{}` and the receiver `{}`", names.0, names.1);
            let error = Diagnostic::error(codes::BAD_MESSAGE, message).at(span, "");
            let error = error.label(graph.nodes[receiver].span, "the receiver");
            return Err(Stop::Error(Box::new(
                error.help("its time is counted in items between the two; register a filter up- or downstream of the sender"),
            )));
        }
        let (upper, lower) = if downstream { (sender, receiver) } else { (receiver, sender) };
        let (from, to) = (graph.reach(upper, true), graph.reach(lower, false));
        let mut route = Route {
            downstream,
            lower,
            upper,
            firings: BTreeMap::new(),
            fired: BTreeMap::new(),
            items: HashMap::new(),
            needs: VecDeque::from([0]),
            forgotten: 0,
        };
        for (id, node) in graph.nodes.iter().filter(|(id, _)| from[id.index()] && to[id.index()]) {
            // The input of the upper filter and the output of the lower one are not relevant.
            let unknown = |flow: &crate::language::graph::Flow| {
                let input = id != upper && flow.pop.iter().chain(&flow.peek).any(|rate| rate.known().is_none());
                input || (id != lower && flow.push.iter().any(|rate| rate.known().is_none()))
            };
            let (first, other) = (node.first_flow(), node.flow());
            if unknown(&other) || first.as_ref().is_some_and(unknown) {
                let message = format!("the rates of `{}`, between sender and receiver, are not constant", node.name);
                let error = Diagnostic::error(codes::BAD_MESSAGE, message).at(span, "").label(node.span, "has dynamic rates");
                return Err(Stop::Error(Box::new(error)));
            }
            route.firings.insert(id, (first.map(Firing::new), Firing::new(other)));
            route.fired.insert(id, 0);
        }
        for (id, tape) in graph.tapes.iter() {
            let inside = |node: NodeId| route.firings.contains_key(&node);
            if inside(tape.from.0) && inside(tape.to.0) && !tape.is_back_edge && tape.to.0 != upper && tape.from.0 != lower {
                route.items.insert(id.index(), tape.enqueued.len() as u64);
            }
        }
        Ok(route)
    }

    /// Counts a firing of a node, after the firings that it needs.
    fn fire(&mut self, graph: &Graph, target: NodeId) {
        let mut chain = vec![target];
        while let Some(node) = chain.last().copied() {
            let fired = self.fired.get(&node).copied().unwrap_or(0);
            let Some((first, other)) = self.firings.get(&node) else { return };
            let firing = first.as_ref().filter(|_| fired == 0).unwrap_or(other);
            let inputs = &graph.nodes[node].inputs;
            let lacking = firing.peek.iter().zip(inputs).find(|(need, tape)| {
                let items = self.items.get(&tape.index());
                node != self.upper && items.is_some_and(|items| items < need)
            });
            if let Some((_, tape)) = lacking {
                chain.push(graph.tapes[*tape].from.0);
                continue;
            }
            for (count, tape) in firing.pop.iter().zip(inputs) {
                if let Some(items) = self.items.get_mut(&tape.index()) {
                    *items = items.saturating_sub(*count);
                }
            }
            for (count, tape) in firing.push.iter().zip(&graph.nodes[node].outputs) {
                if let Some(items) = self.items.get_mut(&tape.index()) {
                    *items += count;
                }
            }
            self.fired.insert(node, fired + 1);
            chain.pop();
        }
    }

    /// Returns the firings of the upper filter that a number of firings of the lower one need.
    fn need(&mut self, graph: &Graph, firings: u64) -> u64 {
        while self.forgotten + self.needs.len() as u64 <= firings {
            self.fire(graph, self.lower);
            self.needs.push_back(self.fired.get(&self.upper).copied().unwrap_or(0));
        }
        self.needs[firings.saturating_sub(self.forgotten) as usize]
    }

    /// Drops entries far before the present firing of the sender.
    pub(super) fn forget(&mut self, sender_fired: u64) {
        while self.needs.len() as u64 > MEMORY {
            let present = if self.downstream { self.needs[1] } else { self.forgotten + 1 };
            if present + MEMORY >= sender_fired {
                return;
            }
            self.needs.pop_front();
            self.forgotten += 1;
        }
    }

    /// Returns the number of firings of the receiver after which a message is delivered.
    pub(super) fn delivery(&mut self, graph: &Graph, time: u64) -> u64 {
        if !self.downstream {
            return self.need(graph, time);
        }
        let mut firings = self.forgotten + self.needs.partition_point(|need| *need < time) as u64;
        while self.need(graph, firings) < time {
            firings += 1;
        }
        firings.saturating_sub(1)
    }
}
