//! Parts of the graph that messages keep together.
//!
//! A stage runs a whole batch before the next one begins. A message downstream waits for its receiver, so the
//! filters between may run anywhere. A message upstream must reach its receiver before a certain firing. All
//! nodes from the receiver to the sender then run on the host, in one stage, in the order of the schedule.
//! This also applies to messages whose latency may be below 0.

use crate::language::core::{Program, facts};
use crate::language::eval::correspondents;
use crate::language::graph::{Graph, NodeId};
use crate::planner::classify::{ClassifiedNode, Placement};
use cranelift_entity::EntityRef;

/// Puts the nodes of each region on the host. Returns the region of each node, named by a number.
pub(super) fn regions(program: &Program, graph: &Graph, classified: &mut [ClassifiedNode]) -> Vec<Option<usize>> {
    let sends_back =
        |sender: NodeId| graph.nodes[sender].filter(program).is_some_and(|(filter, _)| facts(program, filter).sends_back);
    let mut found: Vec<Vec<bool>> = vec![];
    for (sender, receiver) in correspondents(graph) {
        let (above, below) = (graph.reach(sender, false)[receiver.index()], graph.reach(sender, true)[receiver.index()]);
        if sender != receiver && (above || (below && sends_back(sender))) {
            let mut members = vec![false; graph.nodes.len()];
            members[sender.index()] = true;
            members[receiver.index()] = true;
            close(graph, &mut members);
            found.push(members);
        }
    }
    // Regions that share a node are merged, with all nodes between their nodes.
    while let Some((a, b)) = overlapping(&found) {
        let other = found.swap_remove(b);
        found[a].iter_mut().zip(other).for_each(|(own, other)| *own |= other);
        close(graph, &mut found[a]);
    }
    let mut region_of = vec![None; graph.nodes.len()];
    for (number, members) in found.iter().enumerate() {
        for node in graph.nodes.keys().filter(|node| members[node.index()]) {
            region_of[node.index()] = Some(number);
            if !matches!(classified[node.index()].placement, Placement::Host(_)) {
                let reason = "it stands between a sender of messages and a receiver above it, whose firings must not run ahead";
                classified[node.index()].placement = Placement::Host(reason.into());
            }
        }
    }
    region_of
}

/// Adds the nodes on all paths between members.
fn close(graph: &Graph, members: &mut [bool]) {
    let mut below = vec![false; graph.nodes.len()];
    let mut above = vec![false; graph.nodes.len()];
    for node in graph.nodes.keys().filter(|node| members[node.index()]) {
        below.iter_mut().zip(graph.reach(node, true)).for_each(|(own, reached)| *own |= reached);
        above.iter_mut().zip(graph.reach(node, false)).for_each(|(own, reached)| *own |= reached);
    }
    members.iter_mut().zip(below.iter().zip(&above)).for_each(|(member, (below, above))| *member |= *below && *above);
}

/// Returns two regions that share a node, the lower number first.
fn overlapping(found: &[Vec<bool>]) -> Option<(usize, usize)> {
    let pairs = (0..found.len()).flat_map(|a| (a + 1..found.len()).map(move |b| (a, b)));
    pairs.into_iter().find(|(a, b)| found[*a].iter().zip(&found[*b]).any(|(own, other)| *own && *other))
}
