//! Phased schedules, after Karczmarek's *minimal latency* scheduling of hierarchical streams.
//!
//! Every stream has a list of initial phases and a list of steady phases, which repeat. A phase of a filter
//! is one firing.
//!
//! A pipeline makes each of its phases by pulling:
//!
//! - The last child runs one phase. A sink instead runs about the square root of the items it takes in a
//!   steady state.
//! - The children before it run what that needs.
//! - Data then moves on as far as possible.
//!
//! A splitjoin makes one phase for each round of its joiner. A feedbackloop moves whatever can move, from its
//! end to its start, and ends a phase when an item leaves.
//!
//! The order of firings decides the order of output of different filters, and what is printed before the
//! first steady state. Therefore it follows the original compiler. If this construction finds no schedule,
//! `super::pull` does.

use crate::language::graph::{Flow, Graph, NodeId, Rate, Tree};
use crate::language::limits::Limits;
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;
use std::ops::Rem;
use std::sync::Arc;

/// A sequence of firings.
#[derive(Clone, Debug, Default)]
pub struct Phase {
    /// Firings and phases, each with its number of repetitions.
    pub entries: Vec<(Entry, u64)>,
    /// Items that must be available at the input of the stream when the phase begins.
    pub peek: u64,
    /// Items popped from the input.
    pub pop: u64,
    /// Items pushed to the output.
    pub push: u64,
}

impl Phase {
    /// Returns the firings of the chosen nodes alone, in the same order.
    pub(crate) fn restricted_to(&self, chosen: &dyn Fn(NodeId) -> bool) -> Phase {
        self.restricted(chosen, &mut FxHashMap::default())
    }

    /// `known` has the inner phases that were restricted before, by address: phases share them.
    fn restricted(&self, chosen: &dyn Fn(NodeId) -> bool, known: &mut FxHashMap<*const Phase, Arc<Phase>>) -> Phase {
        let mut entries = vec![];
        for (entry, count) in &self.entries {
            match entry {
                Entry::Fire(node) => entries.extend(chosen(*node).then_some((Entry::Fire(*node), *count))),
                Entry::Phase(inner) => {
                    let own = match known.get(&Arc::as_ptr(inner)) {
                        Some(own) => own.clone(),
                        None => {
                            let own = Arc::new(inner.restricted(chosen, known));
                            known.insert(Arc::as_ptr(inner), own.clone());
                            own
                        }
                    };
                    if !own.entries.is_empty() {
                        entries.push((Entry::Phase(own), *count));
                    }
                }
            }
        }
        Phase { entries, ..*self }
    }
}

/// A part of a phase.
#[derive(Clone, Debug)]
pub enum Entry {
    /// One firing of a node.
    Fire(NodeId),
    /// A whole nested phase.
    Phase(Arc<Phase>),
}

impl Phase {
    /// Adds an entry. An entry equal to the last one increases its repetition count.
    pub(super) fn append(&mut self, entry: Entry) {
        match (self.entries.last_mut(), &entry) {
            (Some((Entry::Fire(last), count)), Entry::Fire(node)) if last == node => *count += 1,
            (Some((Entry::Phase(last), count)), Entry::Phase(phase)) if Arc::ptr_eq(last, phase) => *count += 1,
            _ => self.entries.push((entry, 1)),
        }
    }

    /// Adds a phase of a child. The child may be at the input and at the output of the stream.
    pub(super) fn append_child(&mut self, child: &Arc<Phase>, at_input: bool, at_output: bool) {
        if at_input {
            self.peek = self.peek.max(self.pop.saturating_add(child.peek));
            self.pop = self.pop.saturating_add(child.pop);
        }
        if at_output {
            self.push = self.push.saturating_add(child.push);
        }
        self.append(Entry::Phase(child.clone()));
    }
}

/// Phases in their order.
type Phases = Vec<Arc<Phase>>;

/// Makes the initial and the steady phases of a graph. Returns `None` if the construction finds no schedule.
pub(super) fn phases(graph: &Graph, repetitions: &[u64], limits: &Limits) -> Option<(Phases, Phases)> {
    let mut scheduler = Scheduler { graph, repetitions, left: limits.schedule };
    let stream = scheduler.stream(&graph.tree)?;
    Some((stream.init, stream.steady))
}

/// The phases of a stream, and the number of phases already used.
pub(super) struct Stream {
    pub(super) init: Vec<Arc<Phase>>,
    pub(super) steady: Vec<Arc<Phase>>,
    /// Greatest common divisor of the repetitions in the stream: the number of its steady states in one of
    /// the graph.
    pub(super) rounds: u64,
    pub(super) used: usize,
}

/// Items that a list of phases peeks, pops and pushes.
pub(super) struct Totals {
    pub(super) peek: u64,
    pub(super) pop: u64,
    pub(super) push: u64,
}

pub(super) fn totals(phases: &[Arc<Phase>]) -> Totals {
    let mut sum = Totals { peek: 0, pop: 0, push: 0 };
    for phase in phases {
        sum.peek = sum.peek.max(sum.pop.saturating_add(phase.peek));
        sum.pop = sum.pop.saturating_add(phase.pop);
        sum.push = sum.push.saturating_add(phase.push);
    }
    sum
}

impl Stream {
    /// Returns the phase at a distance from the next one: initial phases first, then the steady phases in a
    /// cycle.
    pub(super) fn phase(&self, ahead: usize) -> &Arc<Phase> {
        let index = self.used + ahead;
        self.init.get(index).unwrap_or_else(|| &self.steady[(index - self.init.len()) % self.steady.len()])
    }

    /// Returns the items that must be available at the input during and after the initial phases.
    pub(super) fn init_need(&self) -> u64 {
        let (init, steady) = (totals(&self.init), totals(&self.steady));
        let beyond = init.peek.saturating_sub(init.pop).max(steady.peek.saturating_sub(steady.pop));
        init.pop.saturating_add(beyond)
    }
}

/// Converts a number of items to a signed number, saturating.
fn number(items: u64) -> i64 {
    i64::try_from(items).unwrap_or(i64::MAX)
}

/// Returns the greatest common divisor.
pub(crate) fn gcd<T: Copy + Default + PartialEq + Rem<Output = T>>(a: T, b: T) -> T {
    if b == T::default() { a } else { gcd(b, a % b) }
}

pub(super) struct Scheduler<'a> {
    pub(super) graph: &'a Graph,
    pub(super) repetitions: &'a [u64],
    /// Steps left of the limit.
    left: u64,
}

impl Scheduler<'_> {
    /// Counts a step of the construction.
    pub(super) fn tick(&mut self) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        Some(())
    }

    fn stream(&mut self, tree: &Tree) -> Option<Stream> {
        match tree {
            Tree::Node(node) => {
                let known = |flow: Flow| {
                    let number = |rates: &[Rate]| rates.first().map_or(0, |rate| u64::from(rate.min));
                    let entries = vec![(Entry::Fire(*node), 1)];
                    Arc::new(Phase { entries, peek: number(&flow.peek), pop: number(&flow.pop), push: number(&flow.push) })
                };
                let found = &self.graph.nodes[*node];
                let init = found.first_flow().map(known).into_iter().collect();
                Some(Stream { init, steady: vec![known(found.flow())], rounds: self.repetitions[node.index()], used: 0 })
            }
            Tree::Pipeline(children) => {
                let mut streams = children.iter().map(|child| self.stream(child)).collect::<Option<Vec<_>>>()?;
                self.pipeline(&mut streams)
            }
            Tree::SplitJoin(split, children, join) => {
                let streams = children.iter().map(|child| self.stream(child)).collect::<Option<Vec<_>>>()?;
                self.splitjoin(*split, children, streams, *join)
            }
            Tree::FeedbackLoop(join, body, split, back) => {
                let (body, back) = (self.stream(body)?, self.stream(back)?);
                self.feedbackloop(*join, body, *split, back)
            }
        }
    }

    fn pipeline(&mut self, children: &mut [Stream]) -> Option<Stream> {
        let rounds = children.iter().fold(0, |rounds, child| gcd(rounds, child.rounds));
        let last = children.len().checked_sub(1)?;
        let mut items = vec![0i64; children.len() + 1];
        let mut stages: Vec<u64> = children.iter().map(|child| child.init.len() as u64).collect();
        for index in 0..last {
            // Each child has to provide the items that its successor peeks beyond those it pops.
            let next = totals(&children[index + 1].steady);
            let need = next.peek.saturating_sub(next.pop);
            let (mut count, mut pushed) = (0, 0u64);
            while pushed < need {
                self.tick()?;
                pushed = pushed.saturating_add(children[index].phase(count).push);
                count += 1;
            }
            stages[index] = stages[index].max(count as u64);
        }
        let at_once = stages[last];
        let init = self.pull_phases(children, stages, &mut items, at_once)?;
        let steady_stages: Vec<u64> =
            children.iter().map(|child| (child.steady.len() as u64).saturating_mul(child.rounds / rounds)).collect();
        let sink = totals(&children[last].steady);
        let mut at_once = steady_stages[last];
        if sink.push == 0 {
            let phases = ((children[last].rounds / rounds).saturating_mul(sink.pop) as f64).sqrt();
            if phases > 0.0 {
                at_once = (steady_stages[last] as f64 / phases).ceil() as u64;
            }
        }
        let steady = self.pull_phases(children, steady_stages, &mut items, at_once)?;
        Some(Stream { init, steady, rounds, used: 0 })
    }

    /// Makes phases of a pipeline until every child has run its number of phases.
    fn pull_phases(
        &mut self,
        children: &mut [Stream],
        mut wanted: Vec<u64>,
        items: &mut [i64],
        at_once: u64,
    ) -> Option<Vec<Arc<Phase>>> {
        let last = children.len() - 1;
        let mut at_once = at_once;
        let first_at_once = (wanted[0] as f32 * at_once as f32 / wanted[last] as f32) as u64;
        // A child without input could run forever.
        let takes_input: Vec<bool> = children.iter().map(|child| totals(&child.steady).pop > 0).collect();
        let mut result = vec![];
        while wanted.iter().any(|count| *count > 0) {
            let mut borrowed = vec![0i64; children.len() + 1];
            let mut runs = vec![0usize; children.len()];
            // From the end to the start: run the wanted phases and the phases they need.
            let mut child = last;
            at_once = at_once.min(wanted[last]).max(1);
            if wanted[last] == 0 {
                child = wanted.iter().rposition(|count| *count > 0)?;
                at_once = wanted[child];
            }
            let below = items[child + 1];
            while (runs[child] as u64) < at_once && items[child + 1] == below {
                self.advance(children, child, &mut runs, items, &mut borrowed)?;
            }
            for child in (0..child).rev() {
                while borrowed[child + 1] > 0 {
                    self.advance(children, child, &mut runs, items, &mut borrowed)?;
                }
            }
            // A source runs its share.
            while (runs[0] as u64) < wanted[0].min(first_at_once) && children[0].phase(runs[0]).peek == 0 {
                self.advance(children, 0, &mut runs, items, &mut borrowed)?;
            }
            // From the start to the end: data moves on as far as possible.
            for child in 1..children.len() {
                loop {
                    let need = children[child].phase(runs[child]).peek;
                    if !takes_input[child] || items[child] < number(need) {
                        break;
                    }
                    self.advance(children, child, &mut runs, items, &mut borrowed)?;
                }
            }
            let mut phase = Phase::default();
            for (index, child) in children.iter_mut().enumerate() {
                for _ in 0..runs[index] {
                    phase.append_child(&child.phase(0).clone(), index == 0, index == last);
                    child.used += 1;
                }
                wanted[index] = wanted[index].saturating_sub(runs[index] as u64);
            }
            result.push(Arc::new(phase));
        }
        Some(result)
    }

    /// Runs the next phase of a child on numbers of items. Missing items are borrowed from the child before
    /// it.
    fn advance(
        &mut self,
        children: &[Stream],
        child: usize,
        runs: &mut [usize],
        items: &mut [i64],
        borrowed: &mut [i64],
    ) -> Option<()> {
        self.tick()?;
        let phase = children[child].phase(runs[child]);
        // The number of items becomes negative while items are borrowed.
        borrowed[child] = borrowed[child].max(number(phase.peek).saturating_sub(items[child]));
        items[child] = items[child].saturating_sub(number(phase.pop));
        borrowed[child + 1] = borrowed[child + 1].saturating_sub(number(phase.push)).max(0);
        items[child + 1] = items[child + 1].saturating_add(number(phase.push));
        runs[child] += 1;
        Some(())
    }
}
