//! The graph while it is built, and the open ends of its streams.

use crate::language::codes;
use crate::language::core::{Layout, Program, StreamId, Value};
use crate::language::eval::{Budget, Host, Stop};
use crate::language::graph::{Graph, Node, NodeId, NodeKind, Rates, Tape, TapeId, Tree, unconnected};
use broadloom_diag::{Diagnostic, Span};
use cranelift_entity::PrimaryMap;
use std::collections::HashMap;
use std::sync::Arc;

/// A filter with values for some of its parameters.
#[derive(Clone)]
pub(super) struct PartialFilter {
    pub(super) fields: Arc<[Value]>,
    pub(super) cells: u64,
    pub(super) input: Option<Layout>,
    pub(super) output: Option<Layout>,
    pub(super) work: Rates,
    pub(super) prework: Option<Rates>,
}

/// A cache of built filters, so that equal instances are evaluated once.
#[derive(Default)]
pub(super) struct FilterCache {
    /// The relevant parameters of each filter. `None` if its instances must be evaluated one by one.
    pub(super) params: HashMap<StreamId, Option<Vec<usize>>>,
    pub(super) made: HashMap<(StreamId, Vec<u32>), PartialFilter>,
}

/// A built stream with its open ends.
pub(super) struct OpenStream {
    pub(super) tree: Tree,
    pub(super) input: Option<OpenEnd>,
    pub(super) output: Option<OpenEnd>,
    pub(super) name: String,
}

/// An open end of a stream: a port of a node and the items it carries.
#[derive(Clone)]
pub(super) struct OpenEnd {
    pub(super) node: NodeId,
    pub(super) port: usize,
    pub(super) layout: Layout,
}

/// Builds the graph of a program, stream by stream.
pub(super) struct Builder<'a> {
    pub(super) program: &'a Program,
    pub(super) host: &'a mut dyn Host,
    pub(super) budget: Budget,
    pub(super) nodes: PrimaryMap<NodeId, Node>,
    pub(super) tapes: PrimaryMap<TapeId, Tape>,
    /// Number of nodes with each name.
    pub(super) names: HashMap<String, u32>,
    pub(super) portals: Vec<Vec<NodeId>>,
    pub(super) statics: Arc<Vec<Value>>,
    pub(super) printed: String,
    pub(super) random: u64,
    pub(super) depth: u32,
    pub(super) known: FilterCache,
}

impl Builder<'_> {
    pub(super) fn finish(mut self, tree: Tree) -> Graph {
        // A number distinguishes nodes with the same name. A unique name needs none.
        for node in self.nodes.values_mut() {
            if let Some((name, "1")) = node.name.rsplit_once('#')
                && self.names.get(name) == Some(&1)
            {
                node.name.truncate(name.len());
            }
        }
        Graph {
            nodes: self.nodes,
            tapes: self.tapes,
            tree,
            portals: self.portals,
            statics: self.statics,
            printed: self.printed,
            random: self.random,
        }
    }

    pub(super) fn node(&mut self, name: &str, kind: NodeKind, ports: (usize, usize), span: Span) -> Result<NodeId, Stop> {
        if self.nodes.len() >= self.budget.limits.nodes as usize {
            let message = format!("the graph has more than {} nodes", self.budget.limits.nodes);
            let error = Diagnostic::error(codes::TOO_LARGE, message).at(span, "the last one is created here");
            let error = error.help("check the end of the loop or the recursion that creates streams");
            return Err(Stop::Error(Box::new(error)));
        }
        let count = self.names.entry(name.to_owned()).or_default();
        *count += 1;
        let name = format!("{name}#{count}");
        let node = Node { name, kind, inputs: vec![unconnected(); ports.0], outputs: vec![unconnected(); ports.1], span };
        Ok(self.nodes.push(node))
    }
}
