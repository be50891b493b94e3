//! Islands: parts of the graph whose firings run one after the other in one kernel.
//!
//! A stateful filter is an island, and so is a feedbackloop with all its nodes. The kernel has one block. It
//! runs the units of a batch one after the other. In a unit it runs the *steps* of a schedule; a step is a
//! node and a number of its firings. Fields that firings write and the items of tapes within the island stay
//! in device memory between batches.
//!
//! If no node has state and the items of a loop's tapes allow it, a *round* takes several units at once. The
//! threads of the block then share the firings of a step.

use crate::language::core::{Layout, Program, Type};
use crate::language::graph::{Graph, NodeId, TapeId};
use crate::language::schedule::{Schedule, gcd};
use crate::planner::translate::{CLASSES, Reason, Words, class_of, element, leaves, written_fields};
use broadloom_scalar::Element;
use broadloom_skeleton::cost::{LANES, dataflow};
use cranelift_entity::EntityRef;
use std::collections::BTreeSet;

/// Consecutive firings of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The position of the node in the list of the island.
    pub node: usize,
    /// The number of the first firing, within its repetition of the round.
    pub first: i64,
    /// Number of firings.
    pub count: i64,
}

/// Steps of a round of units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Number of units.
    pub units: i64,
    /// Number of repetitions of the steps.
    pub times: i64,
    /// Firings and copies of the round, in order.
    pub steps: Vec<Step>,
}

/// A tape on the border of an island.
#[derive(Clone, Copy, Debug)]
pub struct BorderTape {
    /// The tape that crosses the border.
    pub tape: TapeId,
    /// Words of an item.
    pub words: Words,
    /// Items in a unit.
    pub items: i64,
}

/// The place of words in state memory. Words of one type share a buffer.
#[derive(Clone, Copy, Debug)]
pub struct StateWords {
    /// The type of a word.
    pub element: Element,
    /// The first word.
    pub start: u64,
    /// Number of words.
    pub words: u64,
}

/// A tape within an island.
#[derive(Clone, Copy, Debug)]
pub struct InnerTape {
    /// The tape, its words and items.
    pub crossing: BorderTape,
    /// Items on the tape between units.
    pub remaining: i64,
    /// True if the items of a unit stay in the thread. Otherwise the tape is a ring in memory, and its length
    /// is a power of two.
    pub local: bool,
    /// The place of the items.
    pub stored: StateWords,
}

/// A leaf of a field that firings write.
#[derive(Clone, Debug)]
pub struct StateLeaf {
    /// The type.
    pub ty: Type,
    /// True if it is a variable of the thread.
    pub scalar: bool,
    /// True if it is a local array of the thread.
    pub local: bool,
    /// The place.
    pub stored: StateWords,
}

/// A field that firings write.
#[derive(Clone, Debug)]
pub struct Field {
    /// The position of the node in the list of the island.
    pub node: usize,
    /// Number of the field in its filter.
    pub field: usize,
    /// Type and extents of the field.
    pub layout: Layout,
    /// The scalars that the field consists of.
    pub leaves: Vec<StateLeaf>,
}

/// A part of the graph that one block runs in order.
#[derive(Clone, Debug)]
pub struct Island {
    /// The nodes, producers before consumers, except along back edges.
    pub nodes: Vec<NodeId>,
    /// Firings of each node in a unit.
    pub firings: Vec<i64>,
    /// The number that the code of each node sees in its first firing of the first unit.
    pub first: Vec<i64>,
    /// Units in a steady state.
    pub units: u64,
    /// Input tapes.
    pub inputs: Vec<BorderTape>,
    /// Output tapes.
    pub outputs: Vec<BorderTape>,
    /// Tapes within the island.
    pub inner: Vec<InnerTape>,
    /// Fields that firings write.
    pub fields: Vec<Field>,
    /// Words of state for each type of [`CLASSES`].
    pub state_words: [u64; 3],
    /// Threads of the block.
    pub threads: u32,
    /// A round of several units, and one of a single unit.
    pub rounds: Vec<Round>,
}

/// Makes an island from nodes.
pub(crate) fn island(
    program: &Program,
    graph: &Graph,
    schedule: &Schedule,
    nodes: &[NodeId],
    many_threads: bool,
) -> Result<Island, Reason> {
    let nodes = order(graph, nodes);
    let mut is_inside = vec![false; graph.nodes.len()];
    nodes.iter().for_each(|node| is_inside[node.index()] = true);
    let inside = |node: NodeId| is_inside[node.index()];
    let units = nodes.iter().fold(0, |shared, node| gcd(shared, schedule.repetition(*node))).max(1);
    let firings: Vec<i64> = nodes.iter().map(|node| (schedule.repetition(*node) / units) as i64).collect();
    let first = nodes.iter().map(|node| {
        let prework = i64::from(graph.nodes[*node].first_flow().is_some());
        schedule.init_firings[node.index()] as i64 - prework
    });
    let mut made = Island {
        first: first.collect(),
        firings,
        units,
        inputs: vec![],
        outputs: vec![],
        inner: vec![],
        fields: vec![],
        state_words: [0; 3],
        threads: 1,
        rounds: vec![],
        nodes: nodes.clone(),
    };
    for (number, node) in nodes.iter().enumerate() {
        let Some((filter, instance)) = graph.nodes[*node].filter(program) else { continue };
        for (field, layout) in written_fields(program, filter, instance)? {
            let mut found = vec![];
            leaves(&layout, 1, &mut |ty, count| found.push((ty.clone(), count)));
            let is_array = matches!(layout, Layout::Array(..));
            let mut kept = vec![];
            for (ty, count) in found {
                let scalar = count == 1 && !is_array;
                let stored = made.store(element(&ty)?, count)?;
                kept.push(StateLeaf { ty, scalar, local: !scalar && count <= dataflow::ISLAND_ELEMENTS, stored });
            }
            made.fields.push(Field { node: number, field, layout, leaves: kept });
        }
    }
    made.plan_rounds(graph, schedule, many_threads)?;
    let most = made.rounds.iter().map(|round| round.units).max().unwrap_or(1);
    for (id, tape) in graph.tapes.iter().filter(|(_, tape)| inside(tape.from.0) || inside(tape.to.0)) {
        let words = Words::of(&tape.layout).ok_or("its tapes carry items that kernels do not have")?;
        let push = i64::from(graph.nodes[tape.from.0].flow().push[tape.from.1].known().ok_or("its rates are dynamic")?);
        let items = schedule.repetition(tape.from.0) as i64 * push / units as i64;
        let crossing = BorderTape { tape: id, words, items };
        match (inside(tape.from.0), inside(tape.to.0)) {
            (true, true) => {
                let remaining = schedule.remaining[id.index()] as i64;
                let held = (remaining + most * items) as u64 * u64::from(words.count);
                let local = most == 1 && held <= dataflow::ISLAND_WORDS;
                let length = if local { remaining as u64 * u64::from(words.count) } else { held.next_power_of_two() };
                let stored = made.store(words.element, length)?;
                made.inner.push(InnerTape { crossing, remaining, local, stored });
            }
            (true, false) => made.outputs.push(crossing),
            (false, _) => made.inputs.push(crossing),
        }
    }
    Ok(made)
}

impl Island {
    /// Allocates words of the state.
    fn store(&mut self, element: Element, words: u64) -> Result<StateWords, Reason> {
        let class = class_of(element);
        let start = self.state_words[class];
        self.state_words[class] += words;
        if self.state_words[class] > dataflow::STATE_WORDS {
            return Err("its state is too large".into());
        }
        Ok(StateWords { element: CLASSES[class], start, words })
    }

    /// Returns whether the nodes keep nothing but the items of tapes.
    pub fn is_stateless(&self) -> bool {
        self.fields.is_empty()
    }

    fn plan_rounds(&mut self, graph: &Graph, schedule: &Schedule, many_threads: bool) -> Result<(), Reason> {
        let single = self.round(graph, schedule, 1).ok_or("its firings have no order that repeats")?;
        if many_threads && self.is_stateless() {
            // The delay of the loop allows several units in parallel. The chosen number keeps the steps few.
            for units in dataflow::ISLAND_ROUNDS {
                let Some(round) = self.round(graph, schedule, units) else { continue };
                let least = round.steps.iter().map(|step| step.count).min().unwrap_or(0);
                if round.times == 1 && dataflow::shares_steps(round.steps.len(), self.nodes.len(), least) {
                    self.threads =
                        round.steps.iter().map(|step| step.count).max().unwrap_or(1).min(dataflow::ISLAND_THREADS) as u32;
                    self.threads = self.threads.max(1).next_multiple_of(LANES);
                    self.rounds.push(round);
                    break;
                }
            }
        }
        self.rounds.push(single);
        Ok(())
    }

    /// Orders the firings of `units` units: each node in turn fires as often as its items allow.
    fn round(&self, graph: &Graph, schedule: &Schedule, units: i64) -> Option<Round> {
        let mut inside = vec![false; graph.nodes.len()];
        self.nodes.iter().for_each(|node| inside[node.index()] = true);
        let mut items: Vec<i64> = schedule.remaining.iter().map(|items| *items as i64).collect();
        let mut fired = vec![0; self.nodes.len()];
        let mut steps: Vec<Step> = vec![];
        let flows: Vec<_> = self.nodes.iter().map(|node| graph.nodes[*node].flow()).collect();
        loop {
            let before = steps.len();
            for (number, node) in self.nodes.iter().enumerate() {
                let (own, flow) = (&graph.nodes[*node], &flows[number]);
                let mut count = self.firings[number] * units - fired[number];
                for (port, tape) in own.inputs.iter().enumerate() {
                    if !inside[graph.tapes[*tape].from.0.index()] {
                        continue;
                    }
                    let (pop, peek) = (i64::from(flow.pop[port].known()?), i64::from(flow.peek[port].known()?).max(0));
                    let there = items[tape.index()];
                    let allowed = match (there < peek.max(pop), pop) {
                        (true, _) => 0,
                        (false, 0) => count,
                        (false, pop) => (there - peek.max(pop)) / pop + 1,
                    };
                    count = count.min(allowed);
                }
                if count <= 0 {
                    continue;
                }
                for (port, tape) in own.inputs.iter().enumerate() {
                    items[tape.index()] -= count * i64::from(flow.pop[port].known()?);
                }
                for (port, tape) in own.outputs.iter().enumerate() {
                    items[tape.index()] += count * i64::from(flow.push[port].known()?);
                }
                steps.push(Step { node: number, first: fired[number], count });
                fired[number] += count;
            }
            if fired.iter().zip(&self.firings).all(|(fired, firings)| *fired == firings * units) {
                break;
            }
            if steps.len() == before || steps.len() > dataflow::ISLAND_SEARCH {
                return None;
            }
        }
        // Repeated steps are written once.
        let repeats = |period: usize| {
            steps.len().is_multiple_of(period)
                && steps.iter().zip(&steps[period..]).all(|(a, b)| a.node == b.node && a.count == b.count)
        };
        let period = (1..=steps.len()).find(|period| repeats(*period))?;
        let times = (steps.len() / period) as i64;
        steps.truncate(period);
        (period <= dataflow::ISLAND_STEPS).then_some(Round { units, times, steps })
    }

    /// Returns the firings of a node in one repetition of a round.
    pub fn fired_in(&self, round: &Round, node: usize) -> i64 {
        self.firings[node] * round.units / round.times
    }
}

/// Returns the nodes with producers first, ignoring back edges.
pub(crate) fn order(graph: &Graph, nodes: &[NodeId]) -> Vec<NodeId> {
    let mut place = vec![usize::MAX; graph.nodes.len()];
    nodes.iter().enumerate().for_each(|(at, node)| place[node.index()] = at);
    let behind = |node: NodeId| {
        let tapes = graph.nodes[node].outputs.iter().map(|tape| &graph.tapes[*tape]).filter(|tape| !tape.is_back_edge);
        tapes.map(|tape| place[tape.to.0.index()]).filter(|at| *at != usize::MAX)
    };
    // The tapes that each node waits for, and the nodes that wait for none, by their places.
    let mut waits = vec![0; nodes.len()];
    nodes.iter().flat_map(|node| behind(*node)).for_each(|at| waits[at] += 1);
    let mut ready: BTreeSet<usize> = (0..nodes.len()).filter(|at| waits[*at] == 0).collect();
    let mut left: BTreeSet<usize> = (0..nodes.len()).collect();
    let mut done: Vec<NodeId> = vec![];
    while let Some(next) = ready.pop_first().or_else(|| left.first().copied()) {
        left.remove(&next);
        done.push(nodes[next]);
        for at in behind(nodes[next]) {
            waits[at] -= 1;
            if waits[at] == 0 && left.contains(&at) {
                ready.insert(at);
            }
        }
    }
    done
}
