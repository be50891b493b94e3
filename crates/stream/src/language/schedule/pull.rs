//! Pull schedules: a node fires only when a later node needs its items.

use super::levels::Levels;
use super::phased::{Entry, Phase};
use crate::language::codes;
use crate::language::graph::{Graph, NodeId};
use crate::language::limits::Limits;
use crate::language::text::plural;
use broadloom_diag::Diagnostic;
use cranelift_entity::EntityRef;
use std::sync::Arc;

/// Returns the minimum firings of each node after which every `prework` has run and every tape holds the
/// items that its consumer peeks beyond those it pops.
pub(super) fn init_counts(graph: &Graph, levels: &Levels<'_>, limits: &Limits) -> Result<Vec<u64>, Box<Diagnostic>> {
    let mut counts: Vec<u64> = levels.firings.iter().map(|(first, _)| u64::from(first.is_some())).collect();
    let mut waiting: Vec<NodeId> = graph.nodes.keys().collect();
    let mut total = 0;
    while let Some(node) = waiting.pop() {
        let (first, other) = &levels.firings[node.index()];
        let fired = counts[node.index()];
        for (port, tape) in graph.nodes[node].inputs.iter().enumerate() {
            let consumed = match first {
                Some(first) if fired > 0 => first.pop[port].saturating_add((fired - 1).saturating_mul(other.pop[port])),
                _ => fired.saturating_mul(other.pop[port]),
            };
            let beyond = other.peek[port].saturating_sub(other.pop[port]);
            let at_first = first.as_ref().filter(|_| fired > 0).map_or(0, |first| first.peek[port]);
            let needed = consumed.saturating_add(beyond).max(at_first);
            let (producer, from) = graph.tapes[*tape].from;
            let (first, other) = &levels.firings[producer.index()];
            let mut have = graph.tapes[*tape].enqueued.len() as u64;
            let mut least = 0;
            if let (Some(first), true) = (first, have < needed) {
                have = have.saturating_add(first.push[from]);
                least = 1;
            }
            if have < needed {
                least = u64::saturating_add(least, (needed - have).div_ceil(other.push[from].max(1)));
            }
            if least > counts[producer.index()] {
                total = u64::saturating_add(total, least - counts[producer.index()]);
                counts[producer.index()] = least;
                waiting.push(producer);
            }
            if total > limits.schedule {
                // Only a loop can need ever more.
                let has_loop = graph.tapes.values().any(|tape| tape.is_back_edge);
                return Err(if has_loop { deadlock(graph, levels, node) } else { too_long(graph, node, needed, limits) });
            }
        }
    }
    Ok(counts)
}

/// Orders the given numbers of firings.
pub(super) fn order(graph: &Graph, levels: &mut Levels<'_>, counts: &[u64]) -> Result<Arc<Phase>, Box<Diagnostic>> {
    let mut left = counts.to_vec();
    let mut phase = Phase::default();
    let mut in_chain = vec![false; graph.nodes.len()];
    // Sinks are pulled in turn, each in proportion to its firings. The remaining firings follow from the end
    // to the start.
    let mut sinks: Vec<NodeId> = graph.nodes.iter().filter(|(_, node)| node.outputs.is_empty()).map(|(id, _)| id).collect();
    sinks.retain(|sink| left[sink.index()] > 0);
    while !sinks.is_empty() {
        let done = |sink: &NodeId| (counts[sink.index()] - left[sink.index()]) as f64 / counts[sink.index()] as f64;
        let next = sinks.iter().copied().min_by(|a, b| done(a).total_cmp(&done(b)));
        let Some(sink) = next else { break };
        if !pull(graph, levels, &mut left, sink, &mut in_chain, &mut phase) {
            return Err(deadlock(graph, levels, sink));
        }
        sinks.retain(|sink| left[sink.index()] > 0);
    }
    for node in graph.nodes.keys().rev() {
        while left[node.index()] > 0 {
            if !pull(graph, levels, &mut left, node, &mut in_chain, &mut phase) {
                return Err(deadlock(graph, levels, node));
            }
        }
    }
    Ok(Arc::new(phase))
}

/// Fires a node once, after the producers it needs. Returns whether that was possible. `in_chain` marks
/// waiting nodes; it is all false before and after.
fn pull(
    graph: &Graph,
    levels: &mut Levels<'_>,
    left: &mut [u64],
    target: NodeId,
    in_chain: &mut [bool],
    phase: &mut Phase,
) -> bool {
    let mut chain = vec![target];
    in_chain[target.index()] = true;
    while let Some(node) = chain.last().copied() {
        if let Some(port) = levels.lacking(node) {
            let producer = graph.tapes[graph.nodes[node].inputs[port]].from.0;
            // A producer that waits for this node, or that has used all its firings, cannot help.
            if in_chain[producer.index()] || left[producer.index()] == 0 {
                return false;
            }
            in_chain[producer.index()] = true;
            chain.push(producer);
            continue;
        }
        if left[node.index()] == 0 || !levels.fire(node) {
            return false;
        }
        left[node.index()] -= 1;
        phase.append(Entry::Fire(node));
        in_chain[node.index()] = false;
        chain.pop();
    }
    true
}

/// Returns the error for an initial schedule with too many firings.
fn too_long(graph: &Graph, node: NodeId, needed: u64, limits: &Limits) -> Box<Diagnostic> {
    let node = &graph.nodes[node];
    let message = format!("`{}` needs {} before its first firing", node.name, plural(needed, "item"));
    let error = Diagnostic::error(codes::TOO_LARGE, message).at(node.span, "");
    let note = format!("the firings before a steady state would be more than the limit of {}", limits.schedule);
    Box::new(error.note(note).help("peek at fewer items, or keep them in an array"))
}

/// Returns the error for a deadlocked graph, found by following the missing items.
fn deadlock(graph: &Graph, levels: &Levels<'_>, start: NodeId) -> Box<Diagnostic> {
    let mut seen = vec![false; graph.nodes.len()];
    let mut node = start;
    let mut back = None;
    while !std::mem::replace(&mut seen[node.index()], true) {
        let Some(port) = levels.lacking(node) else { break };
        let tape = graph.nodes[node].inputs[port];
        if graph.tapes[tape].is_back_edge {
            back = Some((tape, levels.items[tape.index()], levels.next(node).peek[port]));
        }
        node = graph.tapes[tape].from.0;
    }
    // If no tape is short at the moment, the loop lacks the items that its filters peek.
    let back = back.or_else(|| {
        let (tape, found) = graph.tapes.iter().find(|(_, tape)| tape.is_back_edge)?;
        Some((tape, found.enqueued.len() as u64, found.enqueued.len() as u64 + 1))
    });
    let Some((tape, held, needed)) = back else {
        let message = format!("`{}` can never fire: its input never has enough items", graph.nodes[start].name);
        let error = Diagnostic::error(codes::DEADLOCK, message).at(graph.nodes[start].span, "");
        return Box::new(error.help("raise what the streams before it push, or lower what it peeks"));
    };
    let joiner = graph.tapes[tape].to.0;
    let message = format!(
        "the feedbackloop stops: {} holds {}, but `{}` needs {needed}",
        graph.describe(tape),
        plural(held, "item"),
        graph.nodes[joiner].name
    );
    let error = Diagnostic::error(codes::DEADLOCK, message).at(graph.nodes[joiner].span, "waits here for items of the loop");
    let enqueued = graph.tapes[tape].enqueued.len() as u64;
    let more = enqueued + needed.saturating_sub(held).max(1);
    let error = error.note(format!("items that are enqueued before the program starts: {enqueued}"));
    Box::new(error.help(format!("enqueue at least {}", plural(more, "item"))))
}
