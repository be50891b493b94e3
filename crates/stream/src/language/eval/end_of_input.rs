//! The end of input: items that were read pass on as far as the rates allow, and mistakes that the end shows are told.

use super::machine::Machine;
use super::messages::has_upstream_messages;
use super::stop::Stop;
use crate::language::codes;
use crate::language::graph::{NodeId, NodeKind, TapeId};
use crate::language::schedule::balance;
use crate::language::text::plural;
use broadloom_diag::Diagnostic;
use cranelift_entity::EntityRef;

impl Machine<'_> {
    /// Fires nodes behind readers whose files have ended, until no node has its items. Other nodes fire only if a node
    /// behind such a reader waits for their items alone. Programs with dynamic rates or with messages that travel
    /// upstream end at once.
    pub(super) fn drain_input(&mut self) -> Result<(), Stop> {
        if self.on_demand || has_upstream_messages(self.graph) {
            return Ok(());
        }
        let repetitions = balance(self.graph)?;
        loop {
            let behind = self.nodes_behind_ended_readers();
            let fed: Vec<NodeId> = self.graph.nodes.keys().filter(|node| self.is_fed_by(*node, &behind)).collect();
            while self.fire_ready(&fed, &repetitions)? {}
            let Some(waiting) = fed.iter().copied().find(|node| self.waits_only_for_others(*node, &behind)) else {
                return Ok(());
            };
            let before = self.graph.reach(waiting, false);
            let others: Vec<NodeId> =
                self.graph.nodes.keys().filter(|node| before[node.index()] && !behind[node.index()]).collect();
            while !self.has_items(waiting) {
                match self.fire_ready(&others, &repetitions) {
                    Ok(true) => {}
                    Ok(false) => return Ok(()),
                    Err(Stop::EndOfInput) => break,
                    Err(stop) => return Err(stop),
                }
            }
        }
    }

    /// Fires each of some nodes that have their items, at most as often as in a steady state. Returns false if none fired.
    fn fire_ready(&mut self, nodes: &[NodeId], repetitions: &[u64]) -> Result<bool, Stop> {
        let mut fired = false;
        for node in nodes {
            for _ in 0..repetitions[node.index()] {
                if !self.has_items(*node) {
                    break;
                }
                self.fire(*node)?;
                fired = true;
            }
        }
        Ok(fired)
    }

    /// Returns a flag for each node: true if items of a file that has ended reach it.
    fn nodes_behind_ended_readers(&self) -> Vec<bool> {
        let mut behind = vec![false; self.graph.nodes.len()];
        for (id, node) in &self.graph.nodes {
            let NodeKind::FileReader(layout, _) = &node.kind else { continue };
            if self.nodes[id.index()].reader.as_ref().is_some_and(|reader| reader.has_ended(&layout.ty())) {
                behind.iter_mut().zip(self.graph.reach(id, true)).for_each(|(behind, reached)| *behind |= reached);
            }
        }
        behind
    }

    /// Returns whether a node pops items from a tape of a node behind an ended reader.
    fn is_fed_by(&self, node: NodeId, behind: &[bool]) -> bool {
        let flow = &self.flows[node.index()];
        let inputs = self.graph.nodes[node].inputs.iter().zip(&flow.pop);
        inputs.into_iter().any(|(tape, pop)| behind[self.producer(*tape).index()] && !pop.is_zero())
    }

    fn producer(&self, tape: TapeId) -> NodeId {
        self.graph.tapes[tape].from.0
    }

    /// Returns whether a node has all its items on the tapes of nodes behind ended readers, and not on the others.
    fn waits_only_for_others(&self, node: NodeId, behind: &[bool]) -> bool {
        let (needs, inputs) = (self.needs(node), &self.graph.nodes[node].inputs);
        let has_items = |(tape, need): (&TapeId, &u32)| {
            !behind[self.producer(*tape).index()] || self.tapes[tape.index()].len() >= *need as usize
        };
        !self.has_items(node) && inputs.iter().zip(&needs).all(has_items)
    }

    /// Returns the items that the next firing of a node needs on each input tape, as far as the rates are known.
    fn needs(&self, node: NodeId) -> Vec<u32> {
        let first = if self.nodes[node.index()].fired == 0 { self.graph.nodes[node].first_flow() } else { None };
        let flow = first.as_ref().unwrap_or(&self.flows[node.index()]);
        flow.peek.iter().map(|peek| peek.known().unwrap_or(0)).collect()
    }

    /// Warns of mistakes that the end of the input shows: a file without items, a file that is shorter than the window of
    /// a filter, a partial item at the end, fewer steady states than were asked for.
    pub(super) fn warn_of_end(&mut self) {
        let mut warnings = vec![];
        for (id, node) in &self.graph.nodes {
            let (NodeKind::FileReader(layout, name), Some(reader)) = (&node.kind, &self.nodes[id.index()].reader) else {
                continue;
            };
            let (ty, fired) = (layout.ty(), self.nodes[id.index()].fired);
            if !reader.has_ended(&ty) {
                continue;
            }
            let items = plural(fired, "item");
            let warning = |message: String| Diagnostic::warning(codes::END_OF_INPUT, message).at(node.span, "it is read here");
            if let Some((bytes, item)) = reader.partial_item(&ty) {
                let message = format!("`{name}` ends with {}, less than an item of {item} bytes", plural(bytes, "byte"));
                warnings.push(warning(message).help("they are dropped; check the type of the items"));
            }
            let behind = self.graph.reach(id, true);
            let never = self.graph.nodes.keys().find(|node| {
                let inputs = &self.graph.nodes[*node].inputs;
                let is_next = inputs.iter().any(|tape| self.nodes[self.producer(*tape).index()].fired > 0);
                behind[node.index()] && self.nodes[node.index()].fired == 0 && is_next
            });
            if fired == 0 {
                warnings.push(warning(format!("`{name}` has no items")).help("check the file, or what writes to the pipe"));
            } else if let Some(never) = never {
                let need = self.needs(never).into_iter().max().unwrap_or(0);
                let never = &self.graph.nodes[never];
                let message = format!("`{name}` ended after {items}; `{}` needs {need} for its first firing", never.name);
                let warning = warning(message).label(never.span, "this did not fire");
                warnings.push(warning.help("give a longer file, or make the filter's window shorter"));
            } else if let (Some(wanted), Some(left)) = (self.states_wanted, self.states_left)
                && left > 0
            {
                let message = format!("`{name}` ended after {items}, in steady state {} of {wanted}", wanted - left + 1);
                warnings.push(
                    warning(message).help("ask for fewer steady states (`-i`), or for none: the run then ends with the input"),
                );
            }
        }
        warnings.into_iter().for_each(|warning| self.warn(warning));
    }
}
