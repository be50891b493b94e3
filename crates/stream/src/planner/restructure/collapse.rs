//! Collapse of equal branches.
//!
//! Branches of a round-robin splitjoin that run the same stateless code become one actor with as many firings
//! as all of them together. The splitter, the joiner and the copies of the code disappear. Branches that are
//! pipelines collapse filter by filter. The tapes between their filters become one tape, on which the
//! branches alternate.
//!
//! Splitjoins within the branches collapse first. Their filters then read the branch through a permutation,
//! which becomes the inner step of the permutation that the outer splitjoin leaves.
//!
//! The actors to look at are a work list: a merge adds the actors whose tapes it changed. Actors with equal
//! steps up to the branch are found by a hash table.

use super::section::{Actor, Buffer, Port, Role, Section};
use super::wiring::{Step, lcm};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

use std::sync::Arc;

/// The way collapsed branches alternate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alternation {
    /// Each branch takes one round of the splitter. Its items are contiguous, and so are those of the joiner.
    Rounds,
    /// Each branch takes this number of firings. If the splitter deals fewer items than these take, the input
    /// is permuted.
    Firings(i64),
}

/// Equal branches that are merged into one actor.
struct Group {
    /// The actors, in the order of the branches.
    actors: Vec<usize>,
    /// Items that the splitter gives a branch at a time.
    weight: i64,
    turns: Alternation,
}

/// A port as a branch of a splitter or joiner: permutations within the branch, and the step of the branch.
#[derive(Clone, Copy)]
struct BranchPort<'s> {
    inner: &'s [Step],
    weight: i64,
    total: i64,
    offset: i64,
    /// The steps outside of the splitjoin.
    outer: &'s [Step],
}

impl<'s> BranchPort<'s> {
    fn of(port: &'s Port) -> Option<BranchPort<'s>> {
        let place = port.steps.iter().position(|step| step.period().is_none())?;
        match port.steps[place] {
            Step::Spread { weight, total, offset } => {
                Some(BranchPort { inner: &port.steps[..place], weight, total, offset, outer: &port.steps[place + 1..] })
            }
            Step::Shuffle { .. } | Step::Select { .. } => None,
        }
    }

    /// Returns the branch with this number of a splitter with equal weights, if this is its first branch.
    fn beside(self, number: i64) -> BranchPort<'s> {
        BranchPort { offset: self.weight * number, ..self }
    }

    /// Returns the number of branches of equal weights, if this is the first of several.
    fn branches(self) -> Option<i64> {
        let first = self.offset == 0 && self.weight > 0 && self.total % self.weight == 0 && self.total != self.weight;
        first.then(|| self.total / self.weight)
    }

    fn key(self, buffer: usize) -> BranchKey {
        (buffer, self.inner.to_vec(), [self.weight, self.total, self.offset], self.outer.to_vec())
    }
}

/// A buffer and the steps of a branch from it, with the weight, total and offset of the branch.
type BranchKey = (usize, Vec<Step>, [i64; 3], Vec<Step>);

/// Returns the weight of a port if it is branch `number` of `branches` equal ones.
fn branch_weight(port: &Port, number: usize, branches: usize) -> Option<i64> {
    let branch = BranchPort::of(port)?;
    let fits = branch.total == branch.weight * branches as i64 && branch.offset == branch.weight * number as i64;
    (fits && port.rate > 0 && port.seen == port.rate).then_some(branch.weight)
}

/// Collapses all equal branches.
pub(super) fn collapse(section: &mut Section) {
    for actor in &mut section.actors {
        for port in [&mut actor.input, &mut actor.output].into_iter().flatten() {
            port.steps.retain(|step| !step.is_identity());
        }
    }
    let actors = std::mem::take(&mut section.actors);
    let mut collapser = Collapser::new(actors, &mut section.buffers);
    while let Some(index) = collapser.waiting.pop_first() {
        if let Some(group) = collapser.find(index) {
            collapser.merge(&group);
        }
    }
    section.actors = collapser.actors.into_iter().flatten().collect();
}

/// The actors of a section while branches are merged.
struct Collapser<'s> {
    /// The actors. A merged actor has the first place of its branches. The others are empty.
    actors: Vec<Option<Actor>>,
    buffers: &'s mut [Buffer],
    /// Readers and writers of each buffer.
    readers: Vec<BTreeSet<usize>>,
    writers: Vec<BTreeSet<usize>>,
    /// Actors by the branch that they read.
    by_branch: FxHashMap<BranchKey, BTreeSet<usize>>,
    /// Actors that may be the first of equal branches.
    waiting: BTreeSet<usize>,
}

impl Collapser<'_> {
    fn new(actors: Vec<Actor>, buffers: &mut [Buffer]) -> Collapser<'_> {
        let none = vec![BTreeSet::new(); buffers.len()];
        let waiting = (0..actors.len()).collect();
        let actors: Vec<Option<Actor>> = actors.into_iter().map(Some).collect();
        let (readers, writers) = (none.clone(), none);
        let mut collapser = Collapser { actors, buffers, readers, writers, by_branch: FxHashMap::default(), waiting };
        (0..collapser.actors.len()).for_each(|index| collapser.note(index));
        collapser
    }

    fn actor(&self, index: usize) -> Option<&Actor> {
        self.actors[index].as_ref()
    }

    fn input(&self, index: usize) -> Option<&Port> {
        self.actor(index)?.input.as_ref()
    }

    fn output(&self, index: usize) -> Option<&Port> {
        self.actor(index)?.output.as_ref()
    }

    fn branch_key(&self, index: usize) -> Option<BranchKey> {
        let input = self.input(index)?;
        Some(BranchPort::of(input)?.key(input.buffer))
    }

    /// Enters an actor into the tables.
    fn note(&mut self, index: usize) {
        if let Some(key) = self.branch_key(index) {
            self.by_branch.entry(key).or_default().insert(index);
        }
        if let Some(buffer) = self.input(index).map(|port| port.buffer) {
            self.readers[buffer].insert(index);
        }
        if let Some(buffer) = self.output(index).map(|port| port.buffer) {
            self.writers[buffer].insert(index);
        }
    }

    /// Removes an actor from the tables.
    fn forget(&mut self, index: usize) {
        if let Some(found) = self.branch_key(index).and_then(|key| self.by_branch.get_mut(&key)) {
            found.remove(&index);
        }
        if let Some(buffer) = self.input(index).map(|port| port.buffer) {
            self.readers[buffer].remove(&index);
        }
        if let Some(buffer) = self.output(index).map(|port| port.buffer) {
            self.writers[buffer].remove(&index);
        }
    }

    /// Adds the first of the branches to which an actor belongs to the work list.
    fn look_again(&mut self, index: usize) {
        let Some(input) = self.input(index) else { return };
        let Some(first) = BranchPort::of(input).map(|branch| branch.beside(0).key(input.buffer)) else { return };
        self.waiting.extend(self.by_branch.get(&first).into_iter().flatten());
    }

    /// Returns the actors of equal branches of which this actor is the first.
    fn find(&self, index: usize) -> Option<Group> {
        let input = self.input(index)?;
        let branch = BranchPort::of(input)?;
        let mut actors = vec![index];
        for number in 1..branch.branches()? {
            let found = self.by_branch.get(&branch.beside(number).key(input.buffer))?;
            actors.push(found.iter().copied().find(|other| self.input(*other).is_some_and(is_whole))?);
        }
        let turns = self.turns(&actors, branch)?;
        Some(Group { actors, weight: branch.weight, turns })
    }

    /// Returns how equal branches alternate if they can be one actor.
    fn turns(&self, group: &[usize], branch: BranchPort<'_>) -> Option<Alternation> {
        let actors: Vec<&Actor> = group.iter().map(|index| self.actor(*index)).collect::<Option<_>>()?;
        let (first, weight) = (actors[0], branch.weight);
        let (Some(input), Some(output)) = (&first.input, &first.output) else { return None };
        if !is_whole(input) || first.code.numbered || output.rate == 0 {
            return None;
        }
        let alike = actors.iter().all(|actor| {
            let (Some(own_in), Some(own_out)) = (&actor.input, &actor.output) else { return false };
            (Arc::ptr_eq(&actor.code, &first.code) || actor.code == first.code)
                && !actor.has_prework
                && !actor.nodes.is_empty()
                && actor.firings == first.firings
                && actor.before == first.before
                && (own_in.start, own_in.rate) == (input.start, input.rate)
                && (own_out.start, own_out.rate) == (output.start, output.rate)
        });
        if !alike {
            return None;
        }
        let privates = actors.iter().all(|actor| self.is_private(actor));
        let joins = |weight: i64| {
            let joined = |(number, actor): (usize, &&Actor)| {
                actor.output.as_ref().is_some_and(|port| is_joined(port, output, number, group.len(), weight))
            };
            actors.iter().enumerate().all(joined)
        };
        let is_direct = |port: &Port| BranchPort::of(port).is_none_or(|branch| branch.inner.is_empty());
        let out_weight = weight / input.rate * output.rate;
        let whole = weight % input.rate == 0 && input.start % weight == 0 && output.start % out_weight.max(1) == 0;
        if whole && branch.inner.is_empty() && is_direct(output) && (privates || joins(out_weight)) {
            return Some(Alternation::Rounds);
        }
        // The items that permutations within the branch exchange stay together.
        let period = branch.inner.iter().try_fold(input.rate, |all, step| Some(lcm(all, step.period()?)))?;
        let firings = period / input.rate;
        // Whole rounds of splitter, firings and joiner precede the first firing.
        let starts = |port: &Port, weight: i64| port.start % (port.rate * firings) == 0 && port.start % weight == 0;
        let join = branch_weight(output, 0, group.len());
        let fits = starts(input, weight) && starts(output, join.unwrap_or(1)) && first.firings % firings == 0;
        (fits && (privates || join.is_some_and(joins))).then_some(Alternation::Firings(firings))
    }

    /// Returns whether the output of an actor goes to one reader by a tape of its own.
    fn is_private(&self, actor: &Actor) -> bool {
        let Some(output) = &actor.output else { return false };
        let readers = &self.readers[output.buffer];
        let first = readers.first().and_then(|index| self.input(*index));
        self.buffers[output.buffer].role == Role::Inner
            && output.steps.is_empty()
            && first.is_some_and(|port| port.steps.is_empty())
            && readers.len() == 1
            && self.writers[output.buffer].len() == 1
    }

    /// Merges the actors of a group.
    fn merge(&mut self, group: &Group) {
        let branches = group.actors.len() as i64;
        let Some((mut merged, out_weight)) = self.actor(group.actors[0]).and_then(|first| merged(first, group)) else { return };
        merged.nodes = group.actors.iter().filter_map(|index| self.actor(*index)).flat_map(|own| own.nodes.clone()).collect();
        let outputs: Vec<usize> = group.actors.iter().filter_map(|index| Some(self.output(*index)?.buffer)).collect();
        for index in &group.actors {
            self.forget(*index);
            self.actors[*index] = None;
        }
        if outputs.iter().any(|buffer| *buffer != outputs[0]) {
            // The tapes of the branches become one tape, on which their readers alternate.
            self.buffers[outputs[0]].items *= branches;
            self.buffers[outputs[0]].start *= branches;
            for (number, buffer) in outputs.iter().enumerate() {
                let total = out_weight * branches;
                let step = Step::Spread { weight: out_weight, total, offset: out_weight * number as i64 };
                for index in self.readers[*buffer].clone() {
                    self.forget(index);
                    if let Some(port) = self.actors[index].as_mut().and_then(|actor| actor.input.as_mut()) {
                        port.steps.push(step.clone());
                        port.buffer = outputs[0];
                    }
                    self.note(index);
                }
            }
        }
        let place = group.actors.iter().copied().min().unwrap_or(0);
        let from = merged.input.as_ref().map(|port| port.buffer);
        self.actors[place] = Some(merged);
        self.note(place);
        // The readers are branches now, and the writers before may have one reader now.
        let near: Vec<usize> =
            self.readers[outputs[0]].iter().chain(from.iter().flat_map(|buffer| &self.writers[*buffer])).copied().collect();
        near.into_iter().chain([place]).for_each(|index| self.look_again(index));
    }
}

/// Returns whether the firings of a port use each item once.
fn is_whole(port: &Port) -> bool {
    port.rate > 0 && port.seen == port.rate
}

/// Returns whether a port is branch `number` of the joiner to which the first port belongs.
fn is_joined(port: &Port, first: &Port, number: usize, branches: usize, weight: i64) -> bool {
    let steps = |port: &Port| BranchPort::of(port).map(|branch| (branch.inner.to_vec(), branch.outer.to_vec()));
    port.buffer == first.buffer && steps(port) == steps(first) && branch_weight(port, number, branches) == Some(weight)
}

/// Returns the actor for all branches and the items that each pushes at a time.
fn merged(first: &Actor, group: &Group) -> Option<(Actor, i64)> {
    let branches = group.actors.len() as i64;
    let mut merged = first.clone();
    merged.firings *= branches;
    merged.before *= branches;
    merged.first *= branches;
    let (Some(input), Some(output)) = (&mut merged.input, &mut merged.output) else { return None };
    let out_weight = match group.turns {
        Alternation::Rounds => group.weight / input.rate * output.rate,
        Alternation::Firings(firings) => firings * output.rate,
    };
    for port in [input, output] {
        port.start *= branches;
        let Some(BranchPort { inner, weight, outer, .. }) = BranchPort::of(port) else { continue };
        let step = match group.turns {
            Alternation::Rounds => None,
            Alternation::Firings(firings) => {
                Some(Step::Shuffle { branches, split: Some(weight), join: firings * port.rate, inner: inner.to_vec() })
            }
        };
        port.steps = step.filter(|step| !step.is_identity()).into_iter().chain(outer.iter().cloned()).collect();
    }
    Some((merged, out_weight))
}
