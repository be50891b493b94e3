//! Firings that give the items on the inner tapes of a section back to the evaluator.

use crate::language::graph::{Graph, NodeId, TapeId};
use crate::language::schedule::{Firing, Schedule};
use crate::planner::restructure::{Section, in_order};
use cranelift_entity::EntityRef;
use std::collections::{HashMap, HashSet};

/// The last firings of the nodes of a section, as many as give the items on its inner tapes between steady states.
#[derive(Clone, Debug, Default)]
pub(super) struct Refill {
    /// Nodes, producers before consumers, with their number of firings.
    firings: Vec<(NodeId, u64)>,
    /// Popped items of each tape that the firings read.
    popped: HashMap<TapeId, u64>,
    /// Tapes within the section.
    pub(super) inner: HashSet<TapeId>,
}

impl Refill {
    /// Counts the firings for a section, from its outputs to its inputs.
    pub(super) fn new(graph: &Graph, schedule: &Schedule, section: &Section) -> Refill {
        let mut inside = vec![false; graph.nodes.len()];
        section.nodes.iter().for_each(|node| inside[node.index()] = true);
        let mut made = Refill::default();
        for id in in_order(graph, &section.nodes).into_iter().rev() {
            let (node, flow) = (&graph.nodes[id], Firing::new(graph.nodes[id].flow()));
            let mut count = 0;
            for (tape, push) in node.outputs.iter().zip(&flow.push) {
                if inside[graph.tapes[*tape].to.0.index()] {
                    let wanted = schedule.remaining[tape.index()].saturating_add(made.popped_items(*tape));
                    count = count.max(wanted.div_ceil((*push).max(1)));
                    made.inner.insert(*tape);
                }
            }
            for (tape, pop) in node.inputs.iter().zip(&flow.pop) {
                made.popped.insert(*tape, count.saturating_mul(*pop));
            }
            made.firings.push((id, count));
        }
        made.firings.reverse();
        made
    }

    /// Returns the popped items of a tape that the firings read.
    pub(super) fn popped_items(&self, tape: TapeId) -> u64 {
        self.popped.get(&tape).copied().unwrap_or(0)
    }

    /// Returns each node with its number of firings.
    pub(super) fn firings(&self) -> impl Iterator<Item = (NodeId, u64)> {
        self.firings.iter().copied()
    }
}
