//! Stages: host and device in turn.
//!
//! A stage holds nodes of one placement: the host, sections of the device, or an island. The stage number
//! increases where a tape crosses between placements, so a stage needs nothing from later ones. Within a host
//! stage, nodes fire in the order of the schedule.

use super::program::Options;
use super::regions::regions;
use crate::language::core;
use crate::language::graph::{Graph, NodeId};
use crate::language::schedule::Schedule;
use crate::planner::classify::{Class, ClassifiedNode, Placement, classify, feedback_members, runs_in_order};
use crate::planner::disjoint_sets::DisjointSets;
use crate::planner::restructure::island::{island, order};
use crate::planner::restructure::{Island, Restructuring, Section, section};
use crate::planner::translate::{Reason, Words};
use broadloom_device::Machine;
use broadloom_scalar::Precision;
use broadloom_skeleton::cost::{self, Costs, dataflow};
use cranelift_entity::EntityRef;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// The reason why nodes with a long tape stay on the host.
const TOO_LONG: &str = "a steady state has more items than indices of 32 bits reach";

#[derive(Clone, Debug)]
pub(crate) enum Stage {
    /// Nodes that the evaluator fires.
    Host(Vec<NodeId>),
    /// Parts on the device.
    Device(Vec<Piece>),
}

/// A part of the graph on the device.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// Firings that run in parallel.
    Section(Section),
    /// Firings that run one after the other.
    Island(Island),
}

/// Classes of nodes, and stages in order.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) classified: Vec<ClassifiedNode>,
    /// The stages. Empty if everything stays on the host.
    pub(crate) stages: Vec<Stage>,
}

/// Plans a program. Without a schedule everything stays on the host. Nodes that were refused before also stay
/// there.
pub(crate) fn plan(
    program: &core::Program,
    graph: &Graph,
    schedule: Option<&Schedule>,
    refused: &[(NodeId, Reason)],
    machine: &Machine,
    options: Options,
) -> Plan {
    let mut classified = classify(program, graph);
    let costs = Costs::of(machine);
    let is_ordered = options.precision == Precision::Accurate && !costs.pick(dataflow::SHARES_FLOAT_SUMS);
    for node in &mut classified {
        if let Placement::Scan(recurrence) = &node.placement
            && (!costs.scans_states(cost::function(&recurrence.function)) || is_ordered && recurrence.adds_floats())
        {
            node.placement = Placement::Sequential;
        }
    }
    for (node, reason) in refused {
        classified[node.index()].placement = Placement::Host(reason.clone());
    }
    let Some(schedule) = schedule else {
        all_on_host(&mut classified, "the program has dynamic rates");
        return Plan { classified, stages: vec![] };
    };
    let regions = regions(program, graph, &mut classified);
    if !options.straight {
        absorb(program, graph, schedule, &mut classified, Costs::of(machine).pick(dataflow::ABSORBED_OPERATIONS));
    }
    let restructuring = match (options.straight, options.precision) {
        (true, _) => Restructuring::Straight,
        (false, Precision::Accurate) => Restructuring::Exact,
        (false, Precision::Fast) => Restructuring::Reassociating,
    };
    loop {
        let islands = islands(graph, &mut classified);
        wires_without_filters(graph, &mut classified);
        let numbers = stages(graph, &classified, &islands, &regions);
        let draws: Vec<u32> = (graph.nodes.keys().zip(&numbers))
            .filter(|(node, _)| classified[node.index()].class == Class::Random)
            .map(|(_, stage)| *stage)
            .collect();
        if draws.windows(2).any(|pair| pair[0] != pair[1]) {
            all_on_host(&mut classified, "filters on both sides of it draw random numbers from one generator");
            return Plan { classified, stages: vec![] };
        }
        let mut made = vec![];
        let mut refused = false;
        for nodes in nodes_of_stages(graph, &numbers) {
            let is_host = |node: &NodeId| matches!(classified[node.index()].placement, Placement::Host(_));
            let (host, device): (Vec<NodeId>, Vec<NodeId>) = nodes.into_iter().partition(is_host);
            let (parallel, ordered): (Vec<NodeId>, Vec<NodeId>) =
                device.into_iter().partition(|node| islands[node.index()].is_none());
            if !host.is_empty() {
                made.push(Stage::Host(host));
            }
            let (mut pieces, mut problems) = (vec![], vec![]);
            for part in components(graph, &parallel) {
                match section(graph, schedule, &classified, &part, restructuring) {
                    Ok(found) if found.buffers.iter().any(|own| is_too_long(own.items, found.units, own.words)) => {
                        problems.push((part, TOO_LONG.into()));
                    }
                    Ok(found) => pieces.push(Piece::Section(found)),
                    Err(reason) => problems.push((part, reason)),
                }
            }
            for group in parts_of(&ordered, &islands) {
                match island(program, graph, schedule, &group, true) {
                    Ok(found)
                        if found
                            .inputs
                            .iter()
                            .chain(&found.outputs)
                            .any(|own| is_too_long(own.items, found.units, own.words)) =>
                    {
                        problems.push((group, TOO_LONG.into()));
                    }
                    Ok(found) => pieces.push(Piece::Island(found)),
                    Err(reason) => problems.push((group, reason)),
                }
            }
            for (part, reason) in problems {
                refused = true;
                part.iter().for_each(|node| classified[node.index()].placement = Placement::Host(reason.clone()));
            }
            if !pieces.is_empty() {
                made.push(Stage::Device(pieces));
            }
        }
        if !refused {
            if !made.iter().any(|stage| matches!(stage, Stage::Device(_))) {
                made.clear();
            }
            return Plan { classified, stages: made };
        }
    }
}

/// Adds stateless filters beside stateful filters to their island if they are cheap: the firings of the
/// island wait for each other in any case. Chains of filters are added as a whole, which saves a kernel.
fn absorb(program: &core::Program, graph: &Graph, schedule: &Schedule, classified: &mut [ClassifiedNode], most: u64) {
    let is_parallel = |node: &NodeId| matches!(classified[node.index()].placement, Placement::Kernel(_) | Placement::Wire);
    let parallel: Vec<NodeId> = graph.nodes.keys().filter(is_parallel).collect();
    for part in components(graph, &parallel) {
        let cost = |node: &NodeId| match &classified[node.index()].placement {
            Placement::Kernel(code) => cost::function(&code.function).checked_mul(schedule.repetition(*node)),
            _ => None,
        };
        let Some(costs) = part.iter().map(cost).collect::<Option<Vec<u64>>>() else { continue };
        let beside: Vec<NodeId> = part.iter().flat_map(|node| neighbours(graph, *node)).collect();
        // The threads of a block share the firings of a feedbackloop, as long as nothing in its island has
        // state.
        if beside.iter().any(|node| classified[node.index()].class == Class::Feedback) {
            continue;
        }
        let in_order = |node: &&NodeId| matches!(classified[node.index()].placement, Placement::Sequential);
        let ordered: u64 = beside.iter().filter(in_order).map(|node| schedule.repetition(*node)).sum();
        let cheap = costs.iter().fold(0u64, |all, cost| all.saturating_add(*cost)) <= ordered.saturating_mul(most);
        if ordered > 0 && cheap && part.iter().all(|node| runs_in_order(program, graph, *node)) {
            part.iter().for_each(|node| classified[node.index()].placement = Placement::Sequential);
        }
    }
}

/// Returns the nodes at the other ends of a node's tapes.
fn neighbours(graph: &Graph, node: NodeId) -> impl Iterator<Item = NodeId> {
    let own = &graph.nodes[node];
    let from = own.inputs.iter().map(|tape| graph.tapes[*tape].from.0);
    from.chain(own.outputs.iter().map(|tape| graph.tapes[*tape].to.0))
}

/// Returns whether a filter of an island has no state.
fn is_absorbed(node: &ClassifiedNode) -> bool {
    let free = matches!(node.class, Class::Stateless | Class::Peeking | Class::Counting | Class::Source);
    free && matches!(node.placement, Placement::Sequential)
}

/// Returns whether a tape has more words in a steady state than indices of 32 bits reach.
fn is_too_long(items: i64, units: u64, words: Words) -> bool {
    items.saturating_mul(units as i64).saturating_mul(i64::from(words.count)) > dataflow::BUFFER_WORDS
}

/// Moves everything to the host.
fn all_on_host(classified: &mut [ClassifiedNode], reason: &'static str) {
    for node in classified {
        if !matches!(node.placement, Placement::Host(_)) {
            node.placement = Placement::Host(reason.into());
        }
    }
}

/// Returns the connected components of a set of nodes.
fn components(graph: &Graph, nodes: &[NodeId]) -> Vec<Vec<NodeId>> {
    let mut part_of = vec![usize::MAX; graph.nodes.len()];
    nodes.iter().for_each(|node| part_of[node.index()] = usize::MAX - 1);
    let mut parts: Vec<Vec<NodeId>> = vec![];
    for start in nodes {
        if part_of[start.index()] != usize::MAX - 1 {
            continue;
        }
        let mut waiting = vec![*start];
        let mut part = vec![];
        while let Some(node) = waiting.pop() {
            if part_of[node.index()] != usize::MAX - 1 {
                continue;
            }
            part_of[node.index()] = parts.len();
            part.push(node);
            let node = &graph.nodes[node];
            waiting.extend(node.inputs.iter().map(|tape| graph.tapes[*tape].from.0));
            waiting.extend(node.outputs.iter().map(|tape| graph.tapes[*tape].to.0));
        }
        part.sort_unstable();
        parts.push(part);
    }
    parts
}

/// Returns the islands of a stage.
fn parts_of(nodes: &[NodeId], islands: &[Option<NodeId>]) -> Vec<Vec<NodeId>> {
    let mut parts: Vec<Vec<NodeId>> = vec![];
    let mut numbers: FxHashMap<Option<NodeId>, usize> = FxHashMap::default();
    for node in nodes {
        let number = *numbers.entry(islands[node.index()]).or_insert(parts.len());
        if number == parts.len() {
            parts.push(vec![]);
        }
        parts[number].push(*node);
    }
    parts
}

/// Returns the nodes of each stage.
fn nodes_of_stages(graph: &Graph, numbers: &[u32]) -> Vec<Vec<NodeId>> {
    let mut stages = vec![vec![]; numbers.iter().max().map_or(1, |last| *last as usize + 1)];
    graph.nodes.keys().for_each(|node| stages[numbers[node.index()] as usize].push(node));
    stages
}

/// Returns the island of each node, named by one of its nodes. Neighbours whose firings run one after the
/// other form one island: a filter has one input, so no other path leads into it. A long row of filters becomes
/// several islands, because the order of the firings of an island is written out.
///
/// An island stays on the host if all its neighbours are there, or if a node of its feedbackloop must stay
/// there.
fn islands(graph: &Graph, classified: &mut [ClassifiedNode]) -> Vec<Option<NodeId>> {
    let loops = feedback_members(graph);
    loop {
        let in_order = |node: NodeId| matches!(classified[node.index()].placement, Placement::Sequential);
        let ordered = |node: NodeId| in_order(node) || matches!(classified[node.index()].placement, Placement::Scan(_));
        let mut sets = DisjointSets::new(graph.nodes.len());
        let mut sizes = vec![1; graph.nodes.len()];
        for tape in graph.tapes.values().filter(|tape| in_order(tape.from.0) && in_order(tape.to.0)) {
            let (from, to) = (tape.from.0.index(), tape.to.0.index());
            let (one, other) = (sets.first(from), sets.first(to));
            let size = sizes[one] + sizes[other];
            // Outside of loops an island is a row of filters, which may end anywhere.
            if one != other && (size <= dataflow::ISLAND_FILTERS || (loops[from] && loops[to])) {
                sets.unite(from, to);
                sizes[one.min(other)] = size;
            }
        }
        let mut first = |node: NodeId| NodeId::new(sets.first(node.index()));
        let found: Vec<Option<NodeId>> = graph.nodes.keys().map(|node| ordered(node).then(|| first(node))).collect();
        let far = without_neighbours(graph, classified, &found);
        let mut left: Vec<(NodeId, &'static str)> = vec![];
        for (node, own) in graph.nodes.keys().zip(&found).filter_map(|(node, own)| own.map(|own| (node, own))) {
            // A loop runs in one placement.
            let tapes = graph.nodes[node].inputs.iter().chain(&graph.nodes[node].outputs).map(|tape| &graph.tapes[*tape]);
            let broken = tapes.clone().any(|tape| {
                let other = if tape.from.0 == node { tape.to.0 } else { tape.from.0 };
                loops[node.index()] && loops[other.index()] && found[other.index()].is_none()
            });
            if broken {
                left.push((node, "a node of its feedbackloop runs on the host"));
                continue;
            }
            if far.contains(&own) {
                left.push((node, "its neighbours run on the host, and the copies would cost more than it"));
            }
        }
        if left.is_empty() {
            return found;
        }
        for (node, reason) in left {
            classified[node.index()].placement = Placement::Host(reason.into());
        }
    }
}

/// Returns the islands whose neighbours all run on the host, and that took in no other filters.
fn without_neighbours(graph: &Graph, classified: &[ClassifiedNode], islands: &[Option<NodeId>]) -> FxHashSet<NodeId> {
    let mut far: FxHashSet<NodeId> = islands.iter().flatten().copied().collect();
    for node in graph.nodes.keys() {
        let Some(own) = islands[node.index()] else { continue };
        let near = |other: NodeId| {
            let found = &classified[other.index()];
            let on_device = !matches!(found.placement, Placement::Host(_)) || found.class == Class::File;
            islands[other.index()] != Some(own) && on_device
        };
        if far.contains(&own) && (is_absorbed(&classified[node.index()]) || neighbours(graph, node).any(near)) {
            far.remove(&own);
        }
    }
    far
}

/// Moves splitters, joiners and identities to the host if no node on the device is connected with them,
/// unless they only lead from files to files: items pass between files and kernels in blocks.
fn wires_without_filters(graph: &Graph, classified: &mut [ClassifiedNode]) {
    let wires: Vec<NodeId> = graph
        .nodes
        .keys()
        .filter(|node| matches!(classified[node.index()].placement, Placement::Kernel(_) | Placement::Wire))
        .collect();
    for part in components(graph, &wires) {
        let on_device = |node: NodeId| {
            matches!(classified[node.index()].placement, Placement::Kernel(_) | Placement::Sequential | Placement::Scan(_))
        };
        let inside: FxHashSet<NodeId> = part.iter().copied().collect();
        let outside = || part.iter().flat_map(|node| neighbours(graph, *node)).filter(|node| !inside.contains(node));
        let between_files = outside().all(|node| classified[node.index()].class == Class::File);
        if !between_files && !part.iter().copied().chain(outside()).any(on_device) {
            part.iter().for_each(|node| {
                classified[node.index()].placement = Placement::Host("no filter beside it runs on the device".into());
            });
        }
    }
}

/// Returns the stage number of each node.
fn stages(graph: &Graph, classified: &[ClassifiedNode], islands: &[Option<NodeId>], regions: &[Option<usize>]) -> Vec<u32> {
    let loops = feedback_members(graph);
    let on_device = |node: NodeId| !matches!(classified[node.index()].placement, Placement::Host(_));
    // Nodes that run together: those of a loop, of an island, and those that messages keep together.
    let together = |from: NodeId, to: NodeId| {
        if regions[from.index()].is_some() && regions[from.index()] == regions[to.index()] {
            return true;
        }
        let (own, other) = (islands[from.index()], islands[to.index()]);
        (own.is_some() && own == other) || (loops[from.index()] && loops[to.index()] && own == other)
    };
    let mut sets = DisjointSets::new(graph.nodes.len());
    for tape in graph.tapes.values().filter(|tape| together(tape.from.0, tape.to.0)) {
        sets.unite(tape.from.0.index(), tape.to.0.index());
    }
    let order = order(graph, &graph.nodes.keys().collect::<Vec<_>>());
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, node)| place[node.index()] = at);
    let mut numbers = vec![0; order.len()];
    let mut members: Vec<Vec<NodeId>> = vec![vec![]; order.len()];
    for node in &order {
        let first = sets.first(node.index());
        members[first].push(*node);
        numbers[first] = numbers[first].max(u32::from(on_device(*node)));
    }
    // Sets whose number has grown, in the order of their first nodes. Numbers only grow, and none can exceed
    // the number of nodes, so this ends.
    let begin = |set: &Vec<NodeId>| set.first().map(|node| (place[node.index()], *node));
    let mut waiting: BTreeSet<(usize, NodeId)> = members.iter().filter_map(begin).collect();
    while let Some((_, first)) = waiting.pop_first() {
        let first = sets.first(first.index());
        for from in &members[first] {
            for tape in graph.nodes[*from].outputs.iter().map(|tape| &graph.tapes[*tape]).filter(|tape| !tape.is_back_edge) {
                let (to, behind) = (tape.to.0, sets.first(tape.to.0.index()));
                let crosses = on_device(*from) != on_device(to) || islands[from.index()] != islands[to.index()];
                let least = numbers[first] + u32::from(crosses);
                if numbers[behind] < least {
                    numbers[behind] = least;
                    waiting.extend(begin(&members[behind]));
                }
            }
        }
    }
    graph.nodes.keys().map(|node| numbers[sets.first(node.index())]).collect()
}
