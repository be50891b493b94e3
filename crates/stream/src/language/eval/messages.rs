//! Sending and delivery of messages.

use super::machine::Machine;
use super::mail::{PendingMessage, Route};
use super::stop::Stop;
use crate::language::codes;
use crate::language::core::Value;
use crate::language::graph::{Graph, NodeId, NodeKind};
use broadloom_diag::{Diagnostic, Span};
use cranelift_entity::EntityRef;
use std::sync::Arc;

/// Returns the pairs of filters in which the first may send messages to the second.
pub(crate) fn correspondents(graph: &Graph) -> Vec<(NodeId, NodeId)> {
    let mut pairs = vec![];
    for (sender, node) in graph.nodes.iter() {
        let NodeKind::Filter(instance) = &node.kind else { continue };
        for param in instance.params.iter() {
            let Value::Portal(portal) = param else { continue };
            pairs.extend(graph.portals.get(*portal as usize).into_iter().flatten().map(|receiver| (sender, *receiver)));
        }
    }
    pairs
}

/// Returns whether a filter may send messages to filters above it.
pub(crate) fn has_upstream_messages(graph: &Graph) -> bool {
    correspondents(graph).iter().any(|(sender, receiver)| sender != receiver && graph.reach(*sender, false)[receiver.index()])
}

/// Maximum latency.
const MAX_LATENCY: i32 = 1 << 24;

impl Machine<'_> {
    pub(super) fn send(
        &mut self,
        sender: NodeId,
        portal: u32,
        handler: &Arc<str>,
        args: &[Value],
        latency: i32,
        span: Span,
    ) -> Result<(), Stop> {
        if latency.unsigned_abs() > MAX_LATENCY.unsigned_abs() {
            let message = format!("the latency is {latency}; the limit is {MAX_LATENCY}");
            return Err(Stop::error(codes::BAD_MESSAGE, message, span).help("check the values that it is computed from"));
        }
        let graph = self.graph;
        let receivers = graph.portals.get(portal as usize).map_or(&[][..], |receivers| receivers);
        for receiver in receivers.iter().copied() {
            let Some((filter, _)) = graph.nodes[receiver].filter(self.program) else { continue };
            let function = filter.handlers.iter().find(|(name, _)| name == handler).map(|(_, function)| *function);
            let function = function.filter(|function| self.program.functions[*function].params == args.len());
            let Some(function) = function else {
                let message =
                    format!("the receiver `{}` has no handler `{handler}` for this message", graph.nodes[receiver].name);
                let error = Diagnostic::error(codes::BAD_MESSAGE, message).at(span, "");
                let error = error.label(graph.nodes[receiver].span, "the receiver");
                return Err(Stop::Error(Box::new(error.help("add the handler to the filter, or register another filter"))));
            };
            let time = (self.nodes[sender.index()].fired + 1).saturating_add_signed(i64::from(latency));
            let mut route = match self.messages.routes.remove(&(sender, receiver)) {
                Some(route) => route,
                None => Route::new(graph, sender, receiver, span)?,
            };
            let at = route.delivery(graph, time);
            route.forget(self.nodes[sender.index()].fired);
            self.messages.routes.insert((sender, receiver), route);
            let state = &mut self.nodes[receiver.index()];
            if at < state.fired {
                let message = format!(
                    "the message comes too late: `{}` has to get it after {at} firings, but has fired {} times",
                    graph.nodes[receiver].name, state.fired
                );
                let error = Diagnostic::error(codes::MISSED_DEADLINE, message).at(span, "");
                return Err(Stop::Error(Box::new(error.help("allow a longer latency"))));
            }
            let place = state.mail.partition_point(|mail| mail.at <= at);
            state.mail.insert(place, PendingMessage { at, function, args: args.to_vec() });
        }
        Ok(())
    }

    /// Delivers the messages that are due before the next firing of a filter.
    pub(super) fn deliver(&mut self, node: NodeId) -> Result<(), Stop> {
        loop {
            let state = &mut self.nodes[node.index()];
            let fired = state.fired;
            let Some(mail) = state.mail.pop_front_if(|mail| mail.at <= fired) else { return Ok(()) };
            self.handle(node, mail.function, mail.args)?;
        }
    }
}
