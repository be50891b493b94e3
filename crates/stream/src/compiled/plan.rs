//! Stages: host and device by turns.
//!
//! A stage holds nodes of one place. The number of a stage grows where a tape crosses between host and device, so
//! a stage needs nothing from later ones. Within a host stage nodes fire in the order of the schedule.

use crate::classify::{Class, Classified, Placement, classify, feedback_members};
use crate::core;
use crate::graph::{Graph, NodeId};
use crate::restructure::{Section, section};
use crate::schedule::Schedule;
use cranelift_entity::EntityRef;

/// A stage.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    /// Nodes that the evaluator fires.
    Host(Vec<NodeId>),
    /// Sections of the device.
    Device(Vec<Section>),
}

/// Classes of nodes, and stages in order.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) classified: Vec<Classified>,
    /// The stages; none where everything stays on the host.
    pub(crate) stages: Vec<Stage>,
}

/// Plans a program. Without a schedule everything stays on the host.
pub(crate) fn plan(program: &core::Program, graph: &Graph, schedule: Option<&Schedule>) -> Plan {
    let mut classified = classify(program, graph);
    let Some(schedule) = schedule else {
        all_on_host(&mut classified, "the program has dynamic rates");
        return Plan { classified, stages: vec![] };
    };
    if classified.iter().any(|node| node.class == Class::Messages) {
        all_on_host(&mut classified, "the program sends messages, whose times follow from all firings");
        return Plan { classified, stages: vec![] };
    }
    loop {
        wires_without_filters(graph, &mut classified);
        let numbers = stages(graph, &classified);
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
        for stage in 0..=numbers.iter().copied().max().unwrap_or(0) {
            let nodes: Vec<NodeId> = graph.nodes.keys().filter(|node| numbers[node.index()] == stage).collect();
            let on_device = |node: &NodeId| !matches!(classified[node.index()].placement, Placement::Host(_));
            let (device, host): (Vec<NodeId>, Vec<NodeId>) = nodes.into_iter().partition(on_device);
            if !host.is_empty() {
                made.push(Stage::Host(host));
            }
            let mut sections = vec![];
            for part in components(graph, &device) {
                match section(graph, schedule, &classified, &part) {
                    Ok(found) => sections.push(found),
                    Err(reason) => {
                        refused = true;
                        part.iter().for_each(|node| classified[node.index()].placement = Placement::Host(reason.clone()));
                    }
                }
            }
            if !sections.is_empty() {
                made.push(Stage::Device(sections));
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

/// Leaves everything on the host.
fn all_on_host(classified: &mut [Classified], reason: &str) {
    for node in classified {
        if !matches!(node.placement, Placement::Host(_)) {
            node.placement = Placement::Host(reason.to_owned());
        }
    }
}

/// Connected parts of a set of nodes.
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

/// Leaves splitters, joiners and identities on the host where no filter of the device is connected with them.
fn wires_without_filters(graph: &Graph, classified: &mut [Classified]) {
    let device: Vec<NodeId> =
        graph.nodes.keys().filter(|node| !matches!(classified[node.index()].placement, Placement::Host(_))).collect();
    for part in components(graph, &device) {
        if !part.iter().any(|node| matches!(classified[node.index()].placement, Placement::Kernel(_))) {
            part.iter().for_each(|node| {
                classified[node.index()].placement = Placement::Host("no filter beside it runs on the device".into());
            });
        }
    }
}

/// Numbers the stages of nodes.
fn stages(graph: &Graph, classified: &[Classified]) -> Vec<u32> {
    let loops = feedback_members(graph);
    let on_device = |node: NodeId| !matches!(classified[node.index()].placement, Placement::Host(_));
    let mut numbers: Vec<u32> = graph.nodes.keys().map(|node| u32::from(on_device(node))).collect();
    // Numbers only grow, and none can exceed the number of nodes, so this ends.
    loop {
        let mut changed = false;
        for tape in graph.tapes.values() {
            let (from, to) = (tape.from.0, tape.to.0);
            if tape.is_back_edge {
                continue;
            }
            let crosses = on_device(from) != on_device(to);
            let least = numbers[from.index()] + u32::from(crosses);
            if numbers[to.index()] < least {
                numbers[to.index()] = least;
                changed = true;
            }
        }
        // A loop stays together.
        for tape in graph.tapes.values().filter(|tape| loops[tape.from.0.index()] && loops[tape.to.0.index()]) {
            let (from, to) = (tape.from.0.index(), tape.to.0.index());
            let both = numbers[from].max(numbers[to]);
            changed |= numbers[from] != both || numbers[to] != both;
            numbers[from] = both;
            numbers[to] = both;
        }
        if !changed {
            return numbers;
        }
    }
}
