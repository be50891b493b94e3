//! The elaborated program: filters, splitters and joiners, connected by tapes.

use crate::language::core::{Filter, Layout, Program, StreamId, StreamKind, Value};
use crate::language::format::StreamFile;
use crate::language::picture::{Line, Picture, PictureBox};
use broadloom_diag::Span;
use cranelift_entity::packed_option::ReservedValue;
use cranelift_entity::{EntityRef, PrimaryMap, entity_impl};
use std::fmt::Write as _;
use std::sync::Arc;

/// Names a node of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);
entity_impl!(NodeId, "node");

/// Names a tape of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TapeId(u32);
entity_impl!(TapeId, "tape");

/// Filters, splitters and joiners, and the tapes between them.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Filters, splitters and joiners.
    pub nodes: PrimaryMap<NodeId, Node>,
    /// Connections between them.
    pub tapes: PrimaryMap<TapeId, Tape>,
    /// The hierarchy of composite streams that the nodes came from.
    pub tree: Tree,
    /// Portals by number: the nodes that are registered with each.
    pub portals: Vec<Vec<NodeId>>,
    /// Values of the static variables.
    pub statics: Arc<Vec<Value>>,
    /// Text that `init` functions printed.
    pub printed: String,
    /// State of the random generator after construction.
    pub random: u64,
}

/// A filter, splitter or joiner.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its display name: the declaration, and a number if several nodes share the name.
    pub name: String,
    /// What the node does.
    pub kind: NodeKind,
    /// Input tapes.
    pub inputs: Vec<TapeId>,
    /// Output tapes.
    pub outputs: Vec<TapeId>,
    /// The statement that created it.
    pub span: Span,
}

/// What a node does: run a filter, split, join, read or write a file.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// A filter of the program.
    Filter(Box<Instance>),
    /// A filter that copies its input to its output.
    Identity,
    /// A source that reads items from a file.
    FileReader(Layout, StreamFile),
    /// A sink that writes items to a file.
    FileWriter(Layout, StreamFile),
    /// A splitter that gives every item to every output.
    Duplicate,
    /// A splitter that gives each output its number of items in turn, round robin.
    Split(Vec<u32>),
    /// A joiner that takes from each input its number of items in turn, round robin.
    Join(Vec<u32>),
}

/// A filter with values for its parameters.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The code.
    pub stream: StreamId,
    /// Values of the parameters.
    pub params: Arc<[Value]>,
    /// Values of the fields after `init`. Equal instances share them.
    pub fields: Arc<[Value]>,
    /// Rates of `work`.
    pub work: Rates,
    /// Rates of `prework`, if there is one.
    pub prework: Option<Rates>,
}

/// The rates of a firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Items pushed.
    pub push: Rate,
    /// Items popped.
    pub pop: Rate,
    /// Items peeked, at least as many as popped.
    pub peek: Rate,
}

/// The bounds of a rate. The upper bound is absent if it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The least number of items.
    pub min: u32,
    /// The greatest number of items.
    pub max: Option<u32>,
}

impl Rate {
    /// Returns a fixed rate.
    pub fn exact(items: u32) -> Self {
        Rate { min: items, max: Some(items) }
    }

    /// Returns the number of items if the rate is fixed.
    pub fn known(self) -> Option<u32> {
        self.max.filter(|max| *max == self.min)
    }

    /// Returns whether the rate is 0.
    pub fn is_zero(self) -> bool {
        self.max == Some(0)
    }
}

/// A first-in first-out queue between two nodes.
#[derive(Clone, Debug)]
pub struct Tape {
    /// The layout of an item.
    pub layout: Layout,
    /// The producer and the position among its outputs.
    pub from: (NodeId, usize),
    /// The consumer and the position among its inputs.
    pub to: (NodeId, usize),
    /// Items on the tape before anything runs.
    pub enqueued: Vec<Value>,
    /// True if the tape leads from the loop stream of a feedbackloop to its joiner.
    pub is_back_edge: bool,
}

/// The hierarchy of streams.
#[derive(Clone, Debug)]
pub enum Tree {
    /// A filter.
    Node(NodeId),
    /// Streams in sequence.
    Pipeline(Vec<Tree>),
    /// Branches between a splitter and a joiner. Either is absent if nothing flows through it.
    SplitJoin(Option<NodeId>, Vec<Tree>, Option<NodeId>),
    /// Joiner, body, splitter and loop stream of a feedbackloop.
    FeedbackLoop(NodeId, Box<Tree>, NodeId, Box<Tree>),
}

/// Items that one firing of a node moves: popped and peeked at each input, pushed to each output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Items popped from each input.
    pub pop: Vec<Rate>,
    /// Items that must be available at each input.
    pub peek: Vec<Rate>,
    /// Items pushed to each output.
    pub push: Vec<Rate>,
}

impl Node {
    /// Returns the filter of the program that the node is an instance of.
    pub(crate) fn filter<'n>(&'n self, program: &'n Program) -> Option<(&'n Filter, &'n Instance)> {
        let NodeKind::Filter(instance) = &self.kind else { return None };
        match &program.streams[instance.stream].kind {
            StreamKind::Filter(filter) => Some((filter, instance)),
            StreamKind::Composite(..) => None,
        }
    }

    /// Returns the flow of the first firing, if it differs from the others.
    pub fn first_flow(&self) -> Option<Flow> {
        match &self.kind {
            NodeKind::Filter(instance) => instance.prework.map(|rates| self.filter_flow(rates)),
            _ => None,
        }
    }

    /// Returns the flow of each firing, except the first firing of a filter with `prework`.
    pub fn flow(&self) -> Flow {
        let one = || vec![Rate::exact(1)];
        match &self.kind {
            NodeKind::Filter(instance) => self.filter_flow(instance.work),
            NodeKind::Identity => Flow { pop: one(), peek: one(), push: one() },
            NodeKind::FileReader(..) => Flow { pop: vec![], peek: vec![], push: one() },
            NodeKind::FileWriter(..) => Flow { pop: one(), peek: one(), push: vec![] },
            NodeKind::Duplicate => Flow { pop: one(), peek: one(), push: vec![Rate::exact(1); self.outputs.len()] },
            NodeKind::Split(weights) => {
                let total = vec![Rate::exact(weights.iter().fold(0, |sum: u32, weight| sum.saturating_add(*weight)))];
                Flow { pop: total.clone(), peek: total, push: weights.iter().copied().map(Rate::exact).collect() }
            }
            NodeKind::Join(weights) => {
                let total = vec![Rate::exact(weights.iter().fold(0, |sum: u32, weight| sum.saturating_add(*weight)))];
                let pop: Vec<Rate> = weights.iter().copied().map(Rate::exact).collect();
                Flow { peek: pop.clone(), pop, push: total }
            }
        }
    }

    fn filter_flow(&self, rates: Rates) -> Flow {
        Flow {
            pop: vec![rates.pop; self.inputs.len()],
            peek: vec![rates.peek; self.inputs.len()],
            push: vec![rates.push; self.outputs.len()],
        }
    }

    /// Returns whether all rates are known before the program runs.
    pub fn is_static(&self) -> bool {
        let known = |flow: &Flow| flow.pop.iter().chain(&flow.peek).chain(&flow.push).all(|rate| rate.known().is_some());
        known(&self.flow()) && self.first_flow().is_none_or(|flow| known(&flow))
    }
}

impl Graph {
    /// Returns whether all rates are known before the program runs.
    pub fn is_static(&self) -> bool {
        self.nodes.values().all(Node::is_static)
    }

    /// Returns a flag for each node: true if the node is reachable along the tapes. Back edges of loops are
    /// not followed.
    pub(crate) fn reach(&self, from: NodeId, forward: bool) -> Vec<bool> {
        let mut seen = vec![false; self.nodes.len()];
        let mut waiting = vec![from];
        while let Some(node) = waiting.pop() {
            if std::mem::replace(&mut seen[node.index()], true) {
                continue;
            }
            let tapes = if forward { &self.nodes[node].outputs } else { &self.nodes[node].inputs };
            for tape in tapes.iter().map(|tape| &self.tapes[*tape]).filter(|tape| !tape.is_back_edge) {
                waiting.push(if forward { tape.to.0 } else { tape.from.0 });
            }
        }
        seen
    }

    /// Describes a tape: "the tape from `A` to `B`".
    pub fn describe(&self, tape: TapeId) -> String {
        let Some(tape) = self.tapes.get(tape) else { return "a tape".to_owned() };
        format!("the tape from `{}` to `{}`", self.nodes[tape.from.0].name, self.nodes[tape.to.0].name)
    }

    /// Draws the graph as a picture: filters with their rates, splitters and joiners with their weights.
    pub fn picture(&self) -> Picture {
        let mut picture = Picture::default();
        for node in self.nodes.values() {
            let shown = |rate: Rate| rate.known().map_or("*".to_owned(), |items| items.to_string());
            let weights = |weights: &[u32]| match weights {
                [first, rest @ ..] if rest.len() > 3 && rest.iter().all(|other| other == first) => first.to_string(),
                _ if weights.len() > 8 => "…".to_owned(),
                _ => weights.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
            };
            let (note, is_wire) = match &node.kind {
                NodeKind::Filter(instance) => {
                    let Rates { push, pop, peek } = instance.work;
                    let mut note = vec![];
                    let parts = [("pop", pop, !pop.is_zero()), ("peek", peek, peek != pop), ("push", push, !push.is_zero())];
                    parts.iter().filter(|part| part.2).for_each(|(word, rate, _)| note.push(format!("{word} {}", shown(*rate))));
                    (note.join(", "), false)
                }
                NodeKind::Duplicate => ("duplicate".to_owned(), true),
                NodeKind::Split(given) => (format!("roundrobin {}", weights(given)), true),
                NodeKind::Join(taken) => (format!("roundrobin {}", weights(taken)), true),
                NodeKind::Identity => (String::new(), true),
                NodeKind::FileReader(_, file) | NodeKind::FileWriter(_, file) => (file.to_string(), false),
            };
            picture.boxes.push(PictureBox { label: node.name.clone(), note, colour: None, is_wire });
        }
        let line = |tape: &Tape| Line { from: tape.from.0.index(), to: tape.to.0.index(), is_back: tape.is_back_edge };
        picture.lines = self.tapes.values().map(line).collect();
        picture
    }

    /// Draws the graph in the DOT language.
    pub fn to_dot(&self, program: &Program) -> String {
        let mut text = "digraph stream {\n".to_owned();
        for (id, node) in self.nodes.iter() {
            let shape = match node.kind {
                NodeKind::Duplicate | NodeKind::Split(_) | NodeKind::Join(_) => "trapezium",
                NodeKind::Filter(_) | NodeKind::Identity | NodeKind::FileReader(..) | NodeKind::FileWriter(..) => "box",
            };
            let _ = writeln!(text, "  {id} [label=\"{}\", shape={shape}];", node.name.replace('"', "'"));
        }
        for tape in self.tapes.values() {
            let label = tape.layout.show(&program.structs);
            let style = if tape.is_back_edge { ", style=dashed" } else { "" };
            let _ = writeln!(text, "  {} -> {} [label=\"{label}\"{style}];", tape.from.0, tape.to.0);
        }
        text + "}\n"
    }
}

/// Returns the id of a tape that is not connected yet.
pub(crate) fn unconnected() -> TapeId {
    TapeId::reserved_value()
}
