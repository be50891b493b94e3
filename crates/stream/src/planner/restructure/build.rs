//! Construction of sections: the actors, buffers and index arithmetic of connected nodes of the graph.

use super::section::{Actor, Buffer, Port, Role, Section};
use super::wiring::Step;
use super::{collapse, linear};
use crate::language::graph::{Graph, NodeId, NodeKind, TapeId};
use crate::language::schedule::{Schedule, gcd};
use crate::planner::classify::{ClassifiedNode, Placement};
use crate::planner::translate::{FilterCode, Reason, Window, Words};
use broadloom_scalar::{AccessorKind, Builder, Type};
use broadloom_skeleton::cost::dataflow;
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::Arc;

struct SectionBuilder<'a> {
    graph: &'a Graph,
    schedule: &'a Schedule,
    member: Vec<bool>,
    units: u64,
    buffers: Vec<Buffer>,
    by_tape: FxHashMap<TapeId, usize>,
    /// A cache of joiners that are index arithmetic.
    shuffles: RefCell<FxHashMap<NodeId, Option<(Step, TapeId)>>>,
}

/// The producer or consumer at an end of a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TapeEnd {
    Host,
    Actor,
    Splitter,
    Joiner,
}

/// The changes that a section's actors may undergo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restructuring {
    /// None: the straight translation.
    Straight,
    /// Those that keep each bit of floats: equal branches become one actor.
    Exact,
    /// Those that round floats in other places, too: linear filters are combined, transformed and contracted.
    Reassociating,
}

/// Makes a section from nodes that run on the device.
pub(crate) fn section(
    graph: &Graph,
    schedule: &Schedule,
    classified: &[ClassifiedNode],
    nodes: &[NodeId],
    restructuring: Restructuring,
) -> Result<Section, Reason> {
    let mut member = vec![false; graph.nodes.len()];
    nodes.iter().for_each(|node| member[node.index()] = true);
    let units = nodes.iter().fold(0, |shared, node| gcd(shared, schedule.repetition(*node))).max(1);
    let mut maker = SectionBuilder {
        graph,
        schedule,
        member,
        units,
        buffers: vec![],
        by_tape: FxHashMap::default(),
        shuffles: RefCell::default(),
    };
    let mut actors = vec![];
    for id in in_order(graph, nodes) {
        let node = &graph.nodes[id];
        if let Placement::Kernel(code) = &classified[id.index()].placement {
            let input = node.inputs.first().map(|tape| maker.reader(*tape, id)).transpose()?;
            let output = node.outputs.first().map(|tape| maker.writer(*tape, id)).transpose()?;
            let before = schedule.init_firings[id.index()] as i64;
            let has_prework = node.first_flow().is_some();
            actors.push(Actor {
                nodes: vec![id],
                name: node.name.clone(),
                code: code.clone(),
                firings: (schedule.repetition(id) / units) as i64,
                first: before - i64::from(has_prework),
                has_prework,
                before,
                input,
                output,
                combined: false,
                taps: None,
            });
        }
        // Items that pass no filter are copied if they must be stored somewhere else.
        for tape in &node.outputs {
            let (tape, target) = maker.target(*tape);
            let passes = matches!(node.kind, NodeKind::Duplicate | NodeKind::Split(_))
                || (matches!(node.kind, NodeKind::Join(_)) && maker.shuffle(id).is_some());
            if passes && maker.origin(tape).0 == tape {
                let lies_elsewhere = match target {
                    (TapeEnd::Joiner, joiner) => maker.shuffle(joiner).is_none(),
                    (TapeEnd::Host, _) => true,
                    (TapeEnd::Actor | TapeEnd::Splitter, _) => false,
                };
                if lies_elsewhere && !maker.is_written_through(id) {
                    actors.push(maker.copy(tape, &node.name)?);
                }
            }
        }
        for tape in &node.inputs {
            let (origin, source) = maker.origin(*tape);
            let first = graph.tapes[origin].to.0 == id;
            if source == TapeEnd::Host && first && matches!(node.kind, NodeKind::Join(_)) && maker.shuffle(id).is_none() {
                let name = graph.nodes[graph.tapes[origin].from.0].name.clone();
                actors.push(maker.copy(*tape, &name)?);
            }
        }
    }
    // Identities alone between two tapes of the host.
    for id in nodes {
        let node = &graph.nodes[*id];
        if matches!(node.kind, NodeKind::Identity) {
            let (origin, source) = maker.origin(node.inputs[0]);
            let (_, target) = maker.target(node.outputs[0]);
            let is_first = graph.tapes[origin].to.0 == *id;
            let lies_elsewhere = match target {
                (TapeEnd::Host, _) => true,
                (TapeEnd::Joiner, joiner) => maker.shuffle(joiner).is_none(),
                (TapeEnd::Actor | TapeEnd::Splitter, _) => false,
            };
            if source == TapeEnd::Host && is_first && lies_elsewhere {
                actors.push(maker.copy(node.outputs[0], &node.name)?);
            }
        }
    }
    let mut made = Section { nodes: nodes.to_vec(), actors, buffers: maker.buffers, units };
    if restructuring != Restructuring::Straight {
        collapse::collapse(&mut made);
    }
    if restructuring == Restructuring::Reassociating {
        linear::combine(&mut made, classified);
        linear::find_taps(&mut made, classified);
        linear::contract(&mut made, classified);
    }
    made.actors = sorted(made.actors);
    Ok(made)
}

/// Orders actors so that producers come first, in rounds: a round has the actors whose producers are all
/// done.
fn sorted(actors: Vec<Actor>) -> Vec<Actor> {
    let mut writers: FxHashMap<usize, usize> = FxHashMap::default();
    let mut readers: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    for (index, actor) in actors.iter().enumerate() {
        if let Some(port) = &actor.output {
            *writers.entry(port.buffer).or_default() += 1;
        }
        if let Some(port) = &actor.input {
            readers.entry(port.buffer).or_default().push(index);
        }
    }
    let is_first = |actor: &Actor| actor.input.as_ref().is_none_or(|port| !writers.contains_key(&port.buffer));
    let mut round: Vec<usize> = (0..actors.len()).filter(|index| is_first(&actors[*index])).collect();
    let mut left: Vec<Option<Actor>> = actors.into_iter().map(Some).collect();
    let mut done = vec![];
    while !round.is_empty() {
        let mut next = vec![];
        for actor in round.iter().filter_map(|index| left[*index].take()) {
            if let Some(waiting) =
                actor.output.as_ref().and_then(|port| writers.get_mut(&port.buffer).map(|count| (port.buffer, count)))
            {
                *waiting.1 -= 1;
                if *waiting.1 == 0 {
                    next.extend(readers.get(&waiting.0).into_iter().flatten());
                }
            }
            done.push(actor);
        }
        next.sort_unstable();
        round = next;
    }
    done.extend(left.into_iter().flatten());
    done
}

/// Returns the nodes with producers first.
pub(crate) fn in_order(graph: &Graph, nodes: &[NodeId]) -> Vec<NodeId> {
    let mut found = vec![];
    let mut done = vec![false; graph.nodes.len()];
    let inside: std::collections::HashSet<NodeId> = nodes.iter().copied().collect();
    for start in nodes {
        let mut stack = vec![(*start, false)];
        while let Some((node, expanded)) = stack.pop() {
            if done[node.index()] {
                continue;
            }
            if expanded {
                done[node.index()] = true;
                found.push(node);
                continue;
            }
            stack.push((node, true));
            for tape in &graph.nodes[node].inputs {
                let from = graph.tapes[*tape].from.0;
                if inside.contains(&from) && !done[from.index()] {
                    stack.push((from, false));
                }
            }
        }
    }
    found
}

impl SectionBuilder<'_> {
    /// Returns the tape before identities, and the producer of its items.
    fn origin(&self, tape: TapeId) -> (TapeId, TapeEnd) {
        let mut tape = tape;
        loop {
            let from = self.graph.tapes[tape].from.0;
            if !self.member[from.index()] {
                return (tape, TapeEnd::Host);
            }
            match &self.graph.nodes[from].kind {
                NodeKind::Identity => tape = self.graph.nodes[from].inputs[0],
                NodeKind::Duplicate | NodeKind::Split(_) => return (tape, TapeEnd::Splitter),
                NodeKind::Join(_) => return (tape, TapeEnd::Joiner),
                NodeKind::Filter(_) | NodeKind::FileReader(..) | NodeKind::FileWriter(..) => return (tape, TapeEnd::Actor),
            }
        }
    }

    /// Returns the tape before identities, and the consumer of its items after them.
    fn target(&self, tape: TapeId) -> (TapeId, (TapeEnd, NodeId)) {
        let first = tape;
        let mut tape = tape;
        loop {
            let to = self.graph.tapes[tape].to.0;
            if !self.member[to.index()] {
                return (first, (TapeEnd::Host, to));
            }
            match &self.graph.nodes[to].kind {
                NodeKind::Identity => tape = self.graph.nodes[to].outputs[0],
                NodeKind::Duplicate | NodeKind::Split(_) => return (first, (TapeEnd::Splitter, to)),
                NodeKind::Join(_) => return (first, (TapeEnd::Joiner, to)),
                NodeKind::Filter(_) | NodeKind::FileReader(..) | NodeKind::FileWriter(..) => {
                    return (first, (TapeEnd::Actor, to));
                }
            }
        }
    }

    /// Returns the last tape after identities.
    fn last(&self, tape: TapeId) -> TapeId {
        let mut tape = tape;
        loop {
            let to = self.graph.tapes[tape].to.0;
            match &self.graph.nodes[to].kind {
                NodeKind::Identity if self.member[to.index()] => tape = self.graph.nodes[to].outputs[0],
                _ => return tape,
            }
        }
    }

    fn port_of(weights: &[u32], port: usize) -> Result<Step, Reason> {
        let total: i64 = weights.iter().map(|weight| i64::from(*weight)).sum();
        let offset: i64 = weights[..port].iter().map(|weight| i64::from(*weight)).sum();
        let weight = i64::from(weights[port]);
        if weight == 0 {
            return Err("items pass a port of weight 0".into());
        }
        Ok(Step::Spread { weight, total, offset })
    }

    /// Returns the index arithmetic of a joiner and the tape that its items come from. It is a permutation or
    /// repetition after a splitter, or a selection among paths to one tape.
    fn shuffle(&self, joiner: NodeId) -> Option<(Step, TapeId)> {
        if let Some(known) = self.shuffles.borrow().get(&joiner) {
            return known.clone();
        }
        let repeats = |(step, _): &(Step, TapeId)| step.repeats();
        let found = self.permutation(joiner).filter(repeats).or_else(|| self.choice(joiner).filter(repeats));
        self.shuffles.borrow_mut().insert(joiner, found.clone());
        found
    }

    /// Returns the selection of a joiner whose ports all lead to one tape.
    fn choice(&self, joiner: NodeId) -> Option<(Step, TapeId)> {
        let node = &self.graph.nodes[joiner];
        let NodeKind::Join(weights) = &node.kind else { return None };
        if !(2..=dataflow::JOINER_PORTS).contains(&weights.iter().filter(|weight| **weight > 0).count()) {
            return None;
        }
        let (mut ports, mut from, mut length) = (vec![], None, 0);
        for (weight, tape) in weights.iter().zip(&node.inputs).filter(|(weight, _)| **weight > 0) {
            let (origin, steps) = self.way(*tape)?;
            if *from.get_or_insert(origin) != origin {
                return None;
            }
            length += steps.len();
            ports.push((i64::from(*weight), steps));
        }
        let step = Step::select(ports).filter(|_| length <= dataflow::JOINER_STEPS)?;
        Some((step, from?))
    }

    /// Returns the tape that stores the items of a tape, and the steps to it.
    fn way(&self, tape: TapeId) -> Option<(TapeId, Vec<Step>)> {
        let (mut tape, mut steps) = (tape, vec![]);
        loop {
            let (origin, end) = self.origin(tape);
            let (from, port) = self.graph.tapes[origin].from;
            match end {
                TapeEnd::Host | TapeEnd::Actor => return Some((origin, steps)),
                TapeEnd::Splitter => {
                    if let NodeKind::Split(weights) = &self.graph.nodes[from].kind {
                        steps.push(Self::port_of(weights, port).ok()?);
                    }
                    tape = self.graph.nodes[from].inputs[0];
                }
                TapeEnd::Joiner => match self.shuffle(from) {
                    Some((step, input)) => {
                        steps.push(step);
                        tape = input;
                    }
                    None => return Some((origin, steps)),
                },
            }
        }
    }

    /// Returns the step through the permutation after a tape, and the tape after the permutation. The items
    /// of a unit are exchanged among themselves.
    fn through(&self, tape: TapeId) -> Option<(Step, TapeId)> {
        let (TapeEnd::Splitter, splitter) = self.target(tape).1 else { return None };
        let mut at = *self.graph.nodes[splitter].outputs.first()?;
        let (step, behind) = loop {
            match self.target(at).1 {
                (TapeEnd::Joiner, joiner) => {
                    let behind = *self.graph.nodes[joiner].outputs.first()?;
                    let (step, input) = self.shuffle(joiner)?;
                    if self.origin(input).0 == self.origin(tape).0 {
                        break (step, behind);
                    }
                    at = behind;
                }
                (TapeEnd::Splitter, inner) => at = *self.graph.nodes[inner].outputs.first()?,
                (TapeEnd::Host | TapeEnd::Actor, _) => return None,
            }
        };
        let (items, start) = self.flow(tape);
        let (back, period) = (step.inverse()?, step.period()?);
        (items % period == 0 && start % period == 0).then_some((back, behind))
    }

    /// Returns whether the items of a tape, after any further permutations, end at the host or in a joiner
    /// that holds items.
    fn ends_elsewhere(&self, tape: TapeId) -> bool {
        let mut tape = tape;
        loop {
            match self.target(tape).1 {
                (TapeEnd::Host, _) => return true,
                (TapeEnd::Joiner, joiner) => return self.shuffle(joiner).is_none(),
                (TapeEnd::Actor, _) => return false,
                (TapeEnd::Splitter, _) => match self.through(tape) {
                    Some((_, behind)) => tape = behind,
                    None => return false,
                },
            }
        }
    }

    /// Returns whether the filters before a permutation write their items after it.
    fn is_written_through(&self, joiner: NodeId) -> bool {
        let Some((_, input)) = self.shuffle(joiner) else { return false };
        let (tape, end) = self.origin(input);
        let from = self.graph.tapes[tape].from.0;
        let is_written = match end {
            TapeEnd::Actor => true,
            TapeEnd::Joiner => self.shuffle(from).is_none() || self.is_written_through(from),
            TapeEnd::Host | TapeEnd::Splitter => false,
        };
        is_written && self.through(tape).is_some_and(|(_, behind)| self.ends_elsewhere(behind))
    }

    /// Returns the permutation of a joiner, with the input of its splitter.
    fn permutation(&self, joiner: NodeId) -> Option<(Step, TapeId)> {
        let node = &self.graph.nodes[joiner];
        let NodeKind::Join(weights) = &node.kind else { return None };
        let join = *weights.first()?;
        if join == 0 || weights.iter().any(|weight| *weight != join) {
            return None;
        }
        let mut found: Option<(NodeId, Vec<Step>)> = None;
        for (port, tape) in node.inputs.iter().enumerate() {
            let (mut tape, mut end) = self.origin(*tape);
            let mut inner = vec![];
            // Permutations within the branch, innermost last.
            while end == TapeEnd::Joiner {
                let (step, input) = self.shuffle(self.graph.tapes[tape].from.0)?;
                inner.push(step);
                (tape, end) = self.origin(input);
            }
            if end != TapeEnd::Splitter || self.graph.tapes[tape].from.1 != port {
                return None;
            }
            let splitter = self.graph.tapes[tape].from.0;
            match &found {
                None => found = Some((splitter, inner)),
                Some(known) if *known == (splitter, inner) => {}
                Some(_) => return None,
            }
        }
        let (splitter, inner) = found?;
        let split = match &self.graph.nodes[splitter].kind {
            NodeKind::Split(weights) if weights.iter().all(|weight| *weight == weights[0] && *weight > 0) => Some(weights[0]),
            NodeKind::Duplicate => None,
            _ => return None,
        };
        if self.graph.nodes[splitter].outputs.len() != node.inputs.len() {
            return None;
        }
        let step =
            Step::Shuffle { branches: node.inputs.len() as i64, split: split.map(i64::from), join: i64::from(join), inner };
        Some((step, self.graph.nodes[splitter].inputs[0]))
    }

    /// Returns the buffer that a reader of a tape reads, and the steps to it.
    fn source(&mut self, tape: TapeId) -> Result<(usize, Vec<Step>), Reason> {
        let (origin, steps) = self.way(tape).ok_or("items pass a port of weight 0")?;
        Ok((self.buffer(origin)?, steps))
    }

    /// Returns the buffer that a writer of a tape writes, and the steps to it.
    fn sink(&mut self, tape: TapeId) -> Result<(usize, Vec<Step>), Reason> {
        let mut steps = vec![];
        let mut tape = tape;
        loop {
            match self.target(tape).1 {
                (TapeEnd::Joiner, joiner) if self.shuffle(joiner).is_none() => {
                    let port = self.graph.tapes[self.last(tape)].to.1;
                    if let NodeKind::Join(weights) = &self.graph.nodes[joiner].kind {
                        steps.push(Self::port_of(weights, port)?);
                    }
                    tape = self.graph.nodes[joiner].outputs[0];
                }
                (TapeEnd::Splitter, _) => match self.through(tape).filter(|(_, behind)| self.ends_elsewhere(*behind)) {
                    Some((step, behind)) => {
                        steps.push(step);
                        tape = behind;
                    }
                    None => return Ok((self.buffer(tape)?, steps)),
                },
                _ => return Ok((self.buffer(tape)?, steps)),
            }
        }
    }

    /// Returns the buffer of a tape. The buffer's tape is the one before identities.
    fn buffer(&mut self, tape: TapeId) -> Result<usize, Reason> {
        let (tape, source) = self.origin(tape);
        let (_, (target, _)) = self.target(tape);
        // A consumer on the host sees the tape after identities, a producer the one before them.
        let seen = if source != TapeEnd::Host && target == TapeEnd::Host { self.last(tape) } else { tape };
        if let Some(known) = self.by_tape.get(&tape) {
            return Ok(*known);
        }
        let words = Words::of(&self.graph.tapes[tape].layout).ok_or("its tapes carry items that kernels do not have")?;
        let role = match (source, target) {
            (TapeEnd::Host, _) => Role::Input,
            (_, TapeEnd::Host) => Role::Output,
            _ => Role::Inner,
        };
        let (items, start) = self.flow(seen);
        self.buffers.push(Buffer { tape: seen, role, words, items, start });
        self.by_tape.insert(tape, self.buffers.len() - 1);
        Ok(self.buffers.len() - 1)
    }

    /// Returns the number of items that a tape gets in a unit, and the number of the first.
    fn flow(&self, tape: TapeId) -> (i64, i64) {
        let (from, port) = self.graph.tapes[tape].from;
        let node = &self.graph.nodes[from];
        let rate = |flow: &crate::language::graph::Flow| i64::from(flow.push[port].max.unwrap_or(0));
        let push = rate(&node.flow());
        let shift = node.first_flow().map_or(0, |first| rate(&first) - push);
        let enqueued = self.graph.tapes[tape].enqueued.len() as i64;
        let before = self.schedule.init_firings[from.index()] as i64;
        let per_state = self.schedule.repetition(from) as i64 * push;
        (per_state / self.units as i64, before * push + shift + enqueued)
    }

    fn reader(&mut self, tape: TapeId, id: NodeId) -> Result<Port, Reason> {
        let (buffer, steps) = self.source(tape)?;
        let node = &self.graph.nodes[id];
        let flow = node.flow();
        let number = |rate: crate::language::graph::Rate| i64::from(rate.max.unwrap_or(0));
        let (pop, peek) = (number(flow.pop[0]), number(flow.peek[0]));
        let shift = node.first_flow().map_or(0, |first| number(first.pop[0]) - pop);
        let before = self.schedule.init_firings[id.index()] as i64;
        Ok(Port { buffer, steps, start: before * pop + shift, rate: pop, seen: peek.max(pop), absolute: false })
    }

    fn writer(&mut self, tape: TapeId, id: NodeId) -> Result<Port, Reason> {
        let (buffer, steps) = self.sink(tape)?;
        let node = &self.graph.nodes[id];
        let number = |flow: &crate::language::graph::Flow| i64::from(flow.push[0].max.unwrap_or(0));
        let push = number(&node.flow());
        let shift = node.first_flow().map_or(0, |first| number(&first) - push);
        let before = self.schedule.init_firings[id.index()] as i64;
        Ok(Port { buffer, steps, start: before * push + shift, rate: push, seen: push, absolute: false })
    }

    /// Makes an actor that copies the items of a tape to their buffer.
    fn copy(&mut self, tape: TapeId, name: &str) -> Result<Actor, Reason> {
        let (source, from) = self.source(tape)?;
        let (sink, to) = self.sink_of_copy(tape)?;
        let words = self.buffers[source].words;
        let (items, _) = self.flow(tape);
        let port = |buffer: usize, steps: Vec<Step>| Port { buffer, steps, start: 0, rate: 1, seen: 1, absolute: false };
        Ok(Actor {
            nodes: vec![],
            name: format!("{name} (copy)"),
            code: Arc::new(copying(words)?),
            firings: items,
            first: 0,
            has_prework: false,
            before: 0,
            input: Some(port(source, from)),
            output: Some(port(sink, to)),
            combined: false,
            taps: None,
        })
    }

    /// Returns the buffer that a copy writes: the one after the tape, never the one before it.
    fn sink_of_copy(&mut self, tape: TapeId) -> Result<(usize, Vec<Step>), Reason> {
        match self.target(tape).1 {
            (TapeEnd::Host, _) => {
                let last = self.last(tape);
                let words = Words::of(&self.graph.tapes[last].layout).ok_or("its tapes carry items that kernels do not have")?;
                let (items, start) = self.flow(last);
                self.buffers.push(Buffer { tape: last, role: Role::Output, words, items, start });
                Ok((self.buffers.len() - 1, vec![]))
            }
            _ => self.sink(tape),
        }
    }
}

/// Returns code that copies an item.
fn copying(words: Words) -> Result<FilterCode, Reason> {
    let b = Builder::function("copy");
    b.parameter("firing", Type::I32);
    let input = b.accessor("input", AccessorKind::Input, words.element, 1);
    let output = b.accessor("output", AccessorKind::Output, words.element, 1);
    b.for_range(0, b.literal(words.count as i32), |word| {
        let value = b.read(input, &[word.into()]);
        b.write(output, &[word.into()], value);
    });
    let function = b.finish_function(&[b.literal(false)])?;
    let function = function.simplify()?;
    let window = Window { pop: 1, peek: 1, push: 1 };
    Ok(FilterCode {
        function,
        input: Some(words),
        output: Some(words),
        window,
        fails: false,
        numbered: false,
        inductions: vec![],
        local_words: 0,
        adds_up: false,
        pushes_sums: false,
        adds_items: false,
        rounds: None,
    })
}
