//! Numbers of items on tapes while nodes fire.

use super::phased::{Entry, Phase};
use crate::language::graph::{Flow, Graph, NodeId, Rate};
use cranelift_entity::EntityRef;

/// The rates of one firing, as plain numbers.
#[derive(Clone, Debug)]
pub(crate) struct Firing {
    pub(crate) pop: Vec<u64>,
    pub(crate) peek: Vec<u64>,
    pub(crate) push: Vec<u64>,
}

impl Firing {
    /// Takes the upper bounds of the rates. A rate without an upper bound uses its lower bound.
    pub(crate) fn new(flow: Flow) -> Self {
        let numbers = |rates: Vec<Rate>| rates.into_iter().map(|rate| u64::from(rate.max.unwrap_or(rate.min))).collect();
        Firing { pop: numbers(flow.pop), peek: numbers(flow.peek), push: numbers(flow.push) }
    }
}

/// The state of all tapes and nodes, by index.
#[derive(Clone, Debug)]
pub(super) struct Levels<'a> {
    pub(super) graph: &'a Graph,
    /// The first firing, if it differs, and all other firings.
    pub(super) firings: Vec<(Option<Firing>, Firing)>,
    pub(super) items: Vec<u64>,
    pub(super) most: Vec<u64>,
    pub(super) fired: Vec<u64>,
}

impl<'a> Levels<'a> {
    pub(super) fn new(graph: &'a Graph) -> Self {
        let firings = graph.nodes.values().map(|node| (node.first_flow().map(Firing::new), Firing::new(node.flow()))).collect();
        let items: Vec<u64> = graph.tapes.values().map(|tape| tape.enqueued.len() as u64).collect();
        Levels { graph, firings, most: items.clone(), items, fired: vec![0; graph.nodes.len()] }
    }

    /// Returns the rates of the next firing of a node.
    pub(super) fn next(&self, node: NodeId) -> &Firing {
        let (first, other) = &self.firings[node.index()];
        first.as_ref().filter(|_| self.fired[node.index()] == 0).unwrap_or(other)
    }

    /// Returns the first input of a node that has too few items for its next firing.
    pub(super) fn lacking(&self, node: NodeId) -> Option<usize> {
        let inputs = &self.graph.nodes[node].inputs;
        self.next(node).peek.iter().zip(inputs).position(|(need, tape)| self.items[tape.index()] < *need)
    }

    /// Fires a node if it has enough items. Returns whether it fired.
    pub(super) fn fire(&mut self, node: NodeId) -> bool {
        if self.lacking(node).is_some() {
            return false;
        }
        let graph = self.graph;
        let (first, other) = &self.firings[node.index()];
        let firing = first.as_ref().filter(|_| self.fired[node.index()] == 0).unwrap_or(other);
        for (tape, count) in graph.nodes[node].inputs.iter().zip(&firing.pop) {
            let items = &mut self.items[tape.index()];
            *items = items.saturating_sub(*count);
        }
        for (tape, count) in graph.nodes[node].outputs.iter().zip(&firing.push) {
            let items = &mut self.items[tape.index()];
            *items = items.saturating_add(*count);
            self.most[tape.index()] = self.most[tape.index()].max(*items);
        }
        self.fired[node.index()] += 1;
        true
    }

    /// Runs a phase. Returns whether every firing had its items.
    pub(super) fn run(&mut self, phase: &Phase) -> bool {
        phase.entries.iter().all(|(entry, count)| {
            (0..*count).all(|_| match entry {
                Entry::Fire(node) => self.fire(*node),
                Entry::Phase(inner) => self.run(inner),
            })
        })
    }
}
