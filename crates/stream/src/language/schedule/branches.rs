//! Phases of splitjoins and feedbackloops.

use super::phased::{Entry, Phase, Scheduler, Stream, gcd, totals};
use crate::language::graph::{NodeId, Rate, Tree};
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A splitter or joiner: the phase that fires it, and the items of each branch.
struct Junction {
    phase: Arc<Phase>,
    weights: Vec<u64>,
    /// Firings in one steady state of the stream.
    firings: u64,
}

/// Items between the splitter and the branches, and between the branches and the joiner.
struct Buffers {
    split: Vec<u64>,
    join: Vec<u64>,
}

/// Phases that the branches run in one round of the joiner, with the items they peek, pop and push.
struct JoinerRound {
    runs: Vec<usize>,
    peeked: Vec<u64>,
    popped: Vec<u64>,
    pushed: Vec<u64>,
}

impl JoinerRound {
    /// Adds the next phase of a branch.
    fn run(&mut self, stream: &Stream, child: usize) {
        let phase = stream.phase(self.runs[child]);
        self.peeked[child] = self.peeked[child].max(self.popped[child].saturating_add(phase.peek));
        self.popped[child] = self.popped[child].saturating_add(phase.pop);
        self.pushed[child] = self.pushed[child].saturating_add(phase.push);
        self.runs[child] += 1;
    }
}

impl Scheduler<'_> {
    fn fire_phase(&self, node: NodeId) -> Arc<Phase> {
        let flow = self.graph.nodes[node].flow();
        let total = |rates: &[Rate]| rates.iter().map(|rate| u64::from(rate.min)).sum();
        let entries = vec![(Entry::Fire(node), 1)];
        Arc::new(Phase { entries, peek: total(&flow.peek), pop: total(&flow.pop), push: total(&flow.push) })
    }

    /// Returns the branch of each node in the branches of a splitjoin.
    fn branches(children: &[Tree]) -> FxHashMap<NodeId, usize> {
        let mut found = FxHashMap::default();
        for (branch, child) in children.iter().enumerate() {
            let mut waiting = vec![child];
            while let Some(tree) = waiting.pop() {
                match tree {
                    Tree::Node(node) => drop(found.insert(*node, branch)),
                    Tree::Pipeline(children) => waiting.extend(children),
                    Tree::SplitJoin(split, children, join) => {
                        found.extend(split.iter().chain(join).map(|node| (*node, branch)));
                        waiting.extend(children);
                    }
                    Tree::FeedbackLoop(join, body, split, back) => {
                        found.extend([(*join, branch), (*split, branch)]);
                        waiting.extend([&**body, &**back]);
                    }
                }
            }
        }
        found
    }

    pub(super) fn splitjoin(
        &mut self,
        split: Option<NodeId>,
        trees: &[Tree],
        mut children: Vec<Stream>,
        join: Option<NodeId>,
    ) -> Option<Stream> {
        let graph = self.graph;
        let junctions = split.iter().chain(&join).map(|node| self.repetitions[node.index()]);
        let rounds = children.iter().map(|child| child.rounds).chain(junctions).fold(0, gcd);
        let count = children.len();
        let branch_of = Self::branches(trees);
        let splitter = split.map(|node| {
            let mut weights = vec![0; count];
            for (rate, tape) in graph.nodes[node].flow().push.iter().zip(&graph.nodes[node].outputs) {
                if let Some(branch) = branch_of.get(&graph.tapes[*tape].to.0).copied() {
                    weights[branch] = u64::from(rate.min);
                }
            }
            // The splitter takes all of the input of the stream. Its output goes to the branches.
            Junction { phase: self.fire_phase(node), weights, firings: self.repetitions[node.index()] / rounds }
        });
        let joiner = join.map(|node| {
            let mut weights = vec![0; count];
            for (rate, tape) in graph.nodes[node].flow().pop.iter().zip(&graph.nodes[node].inputs) {
                if let Some(branch) = branch_of.get(&graph.tapes[*tape].from.0).copied() {
                    weights[branch] = u64::from(rate.min);
                }
            }
            Junction { phase: self.fire_phase(node), weights, firings: self.repetitions[node.index()] / rounds }
        });
        let mut buffers = Buffers { split: vec![0; count], join: vec![0; count] };
        let mut init_splits = 0;
        for (index, child) in children.iter().enumerate() {
            let weight = splitter.as_ref().map_or(0, |splitter| splitter.weights[index]);
            if weight > 0 {
                init_splits = init_splits.max(child.init_need().div_ceil(weight));
            }
            let weight = joiner.as_ref().map_or(0, |joiner| joiner.weights[index]);
            if weight > 0 && splitter.is_some() {
                let drained = totals(&child.init).push.div_ceil(weight);
                init_splits = init_splits.max(drained.saturating_sub(1));
            }
        }
        let stages = children.iter().map(|child| child.init.len() as u64).collect();
        let mut init = vec![];
        self.rounds_of_joiner(&mut children, [init_splits, 0], stages, [&splitter, &joiner], &mut buffers, &mut init)?;
        let stages = children.iter().map(|child| (child.steady.len() as u64).saturating_mul(child.rounds / rounds)).collect();
        let firings = [&splitter, &joiner].map(|junction| junction.as_ref().map_or(0, |junction| junction.firings));
        let mut steady = vec![];
        self.rounds_of_joiner(&mut children, firings, stages, [&splitter, &joiner], &mut buffers, &mut steady)?;
        (!steady.is_empty()).then_some(Stream { init, steady, rounds, used: 0 })
    }

    /// Makes one phase for each round of the joiner, and one phase for the remaining firings.
    fn rounds_of_joiner(
        &mut self,
        children: &mut [Stream],
        [mut splits, mut joins]: [u64; 2],
        mut wanted: Vec<u64>,
        [splitter, joiner]: [&Option<Junction>; 2],
        buffers: &mut Buffers,
        result: &mut Vec<Arc<Phase>>,
    ) -> Option<()> {
        let count = children.len();
        while let (Some(join), true) = (joiner, joins > 0) {
            let mut round =
                JoinerRound { runs: vec![0; count], peeked: vec![0; count], popped: vec![0; count], pushed: vec![0; count] };
            let mut joined = 1;
            // The joiner determines how far the branches run, and the branches determine how often the
            // splitter fires.
            for (child, stream) in children.iter().enumerate() {
                while buffers.join[child].saturating_add(round.pushed[child]) < join.weights[child] {
                    self.tick()?;
                    round.run(stream, child);
                }
            }
            let mut split = 0;
            if let Some(splitter) = splitter {
                for ((peeked, items), weight) in round.peeked.iter().zip(&buffers.split).zip(&splitter.weights) {
                    let lacking = peeked.saturating_sub(*items);
                    if lacking > 0 && *weight > 0 {
                        split = split.max(lacking.div_ceil(*weight));
                    }
                }
            }
            // Data moves on as far as possible.
            for (child, stream) in children.iter().enumerate() {
                let given = splitter.as_ref().map_or(0, |splitter| splitter.weights[child].saturating_mul(split));
                let have = buffers.split[child].saturating_add(given);
                while (round.runs[child] as u64) < wanted[child]
                    && have.saturating_sub(round.popped[child]) >= stream.phase(round.runs[child]).peek
                {
                    self.tick()?;
                    round.run(stream, child);
                }
            }
            while joins > joined
                && (0..count).all(|child| {
                    let taken = join.weights[child].saturating_mul(joined);
                    join.weights[child] <= buffers.join[child].saturating_add(round.pushed[child]).saturating_sub(taken)
                })
            {
                self.tick()?;
                joined += 1;
            }
            let runs = round.runs;
            let phase = self.splitjoin_phase(children, [split, joined], &runs, [splitter, joiner], buffers)?;
            splits = splits.saturating_sub(split);
            joins = joins.saturating_sub(joined);
            for (wanted, runs) in wanted.iter_mut().zip(&runs) {
                *wanted = wanted.saturating_sub(*runs as u64);
            }
            result.push(phase);
        }
        let runs: Vec<usize> = wanted.iter().map(|count| usize::try_from(*count).ok()).collect::<Option<_>>()?;
        let phase = self.splitjoin_phase(children, [splits, 0], &runs, [splitter, joiner], buffers)?;
        if !phase.entries.is_empty() {
            result.push(phase);
        }
        Some(())
    }

    /// Fires the splitter, the branches and the joiner, in this order. Returns `None` if there are not enough
    /// items.
    fn splitjoin_phase(
        &mut self,
        children: &mut [Stream],
        [splits, joins]: [u64; 2],
        runs: &[usize],
        [splitter, joiner]: [&Option<Junction>; 2],
        buffers: &mut Buffers,
    ) -> Option<Arc<Phase>> {
        let mut phase = Phase::default();
        if let Some(splitter) = splitter {
            for _ in 0..splits {
                self.tick()?;
                phase.append_child(&splitter.phase, true, false);
            }
            for (items, weight) in buffers.split.iter_mut().zip(&splitter.weights) {
                *items = items.saturating_add(weight.saturating_mul(splits));
            }
        }
        for (index, child) in children.iter_mut().enumerate() {
            for _ in 0..runs[index] {
                self.tick()?;
                let inner = child.phase(0).clone();
                (buffers.split[index] >= inner.peek).then_some(())?;
                buffers.split[index] = buffers.split[index].checked_sub(inner.pop)?;
                buffers.join[index] = buffers.join[index].saturating_add(inner.push);
                phase.append_child(&inner, false, false);
                child.used += 1;
            }
        }
        if let Some(joiner) = joiner {
            for _ in 0..joins {
                self.tick()?;
                phase.append_child(&joiner.phase, false, true);
            }
            for (items, weight) in buffers.join.iter_mut().zip(&joiner.weights) {
                *items = items.checked_sub(weight.saturating_mul(joins))?;
            }
        }
        Some(Arc::new(phase))
    }

    pub(super) fn feedbackloop(&mut self, join: NodeId, mut body: Stream, split: NodeId, mut back: Stream) -> Option<Stream> {
        let graph = self.graph;
        let junctions = [join, split].map(|node| self.repetitions[node.index()]);
        let rounds = [body.rounds, back.rounds, junctions[0], junctions[1]].into_iter().fold(0, gcd);
        let (join_flow, split_flow) = (graph.nodes[join].flow(), graph.nodes[split].flow());
        let back_tape = *graph.nodes[join].inputs.last()?;
        // The loop stream is connected to the last port of the joiner and of the splitter.
        let rates = Loop {
            join: self.loop_phase(join, join_flow.pop.len() > 1, false),
            split: self.loop_phase(split, false, split_flow.push.len() > 1),
            from_back: u64::from(join_flow.pop.last()?.min),
            to_body: u64::from(join_flow.push.first()?.min),
            from_body: u64::from(split_flow.pop.first()?.min),
            to_back: u64::from(split_flow.push.last()?.min),
            leaves: split_flow.push.len() > 1,
        };
        let mut items =
            Items { before_body: 0, after_body: 0, before_back: 0, after_back: graph.tapes[back_tape].enqueued.len() as u64 };
        let wanted = RemainingFirings {
            join: body.init_need().div_ceil(rates.to_body.max(1)),
            split: back.init_need().div_ceil(rates.to_back.max(1)),
            body: body.init.len() as u64,
            back: back.init.len() as u64,
        };
        let init = self.go_round(&rates, &mut body, &mut back, wanted, &mut items)?;
        let wanted = RemainingFirings {
            join: junctions[0] / rounds,
            split: junctions[1] / rounds,
            body: (body.steady.len() as u64).saturating_mul(body.rounds / rounds),
            back: (back.steady.len() as u64).saturating_mul(back.rounds / rounds),
        };
        let steady = self.go_round(&rates, &mut body, &mut back, wanted, &mut items)?;
        (!steady.is_empty()).then_some(Stream { init, steady, rounds, used: 0 })
    }

    /// Returns the phase that fires the joiner or splitter of a loop. Only an outer port belongs to the
    /// interface of the stream.
    fn loop_phase(&self, node: NodeId, outer_input: bool, outer_output: bool) -> Arc<Phase> {
        let flow = self.graph.nodes[node].flow();
        let first = |rates: &[Rate]| rates.first().map_or(0, |rate| u64::from(rate.min));
        let taken = if outer_input { first(&flow.pop) } else { 0 };
        let push = if outer_output { first(&flow.push) } else { 0 };
        Arc::new(Phase { entries: vec![(Entry::Fire(node), 1)], peek: taken, pop: taken, push })
    }

    /// Moves items through a loop, starting with the splitter, until all parts have run their wanted firings.
    fn go_round(
        &mut self,
        rates: &Loop,
        body: &mut Stream,
        back: &mut Stream,
        mut wanted: RemainingFirings,
        items: &mut Items,
    ) -> Option<Vec<Arc<Phase>>> {
        let mut result = vec![];
        let mut phase = Phase::default();
        while wanted.split > 0 || wanted.join > 0 || wanted.body > 0 || wanted.back > 0 {
            self.tick()?;
            if wanted.split > 0 {
                if rates.from_body <= items.after_body {
                    wanted.split -= 1;
                    phase.append_child(&rates.split, false, rates.leaves);
                    items.after_body -= rates.from_body;
                    items.before_back += rates.to_back;
                    if rates.leaves {
                        result.push(Arc::new(std::mem::take(&mut phase)));
                    }
                    continue;
                }
                wanted.body = wanted.body.max(1);
            }
            if wanted.body > 0 {
                let next = body.phase(0).clone();
                if next.peek <= items.before_body {
                    wanted.body -= 1;
                    phase.append_child(&next, false, false);
                    body.used += 1;
                    items.before_body -= next.pop;
                    items.after_body += next.push;
                    continue;
                }
                wanted.join = wanted.join.max(1);
            }
            if wanted.join > 0 {
                if rates.from_back <= items.after_back {
                    wanted.join -= 1;
                    phase.append_child(&rates.join, true, false);
                    items.after_back -= rates.from_back;
                    items.before_body += rates.to_body;
                    continue;
                }
                wanted.back = wanted.back.max(1);
            }
            if wanted.back > 0 {
                let next = back.phase(0).clone();
                if next.peek <= items.before_back {
                    wanted.back -= 1;
                    phase.append_child(&next, false, false);
                    back.used += 1;
                    items.before_back -= next.pop;
                    items.after_back += next.push;
                    continue;
                }
            }
            return None;
        }
        if !phase.entries.is_empty() {
            result.push(Arc::new(phase));
        }
        Some(result)
    }
}

/// The joiner and splitter of a feedbackloop.
struct Loop {
    join: Arc<Phase>,
    split: Arc<Phase>,
    from_back: u64,
    to_body: u64,
    from_body: u64,
    to_back: u64,
    /// True if items leave the loop.
    leaves: bool,
}

/// Numbers of items on the four tapes of a feedbackloop.
struct Items {
    before_body: u64,
    after_body: u64,
    before_back: u64,
    after_back: u64,
}

/// Firings and phases that still have to run.
struct RemainingFirings {
    join: u64,
    split: u64,
    body: u64,
    back: u64,
}
