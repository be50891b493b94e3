//! Collapse of equal branches.
//!
//! Branches of a round-robin splitjoin that run the same stateless code become one actor with as many firings
//! as all of them together. The splitter, the joiner and the copies of the code disappear. Branches that are
//! pipelines collapse filter by filter. The tapes between their filters become one tape, on which the
//! branches alternate.

use super::section::{Actor, Port, Role, Section};
use super::wiring::Step;

/// The way collapsed branches alternate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alternation {
    /// Each branch takes one round of the splitter. Its items are contiguous, and so are those of the joiner.
    Rounds,
    /// Each branch takes one firing. If the splitter deals fewer items than a firing takes, the input is
    /// permuted.
    Firings,
}

/// Equal branches that are merged into one actor.
struct Group {
    /// The actors, in the order of the branches.
    actors: Vec<usize>,
    /// Items that the splitter gives a branch at a time.
    weight: i64,
    turns: Alternation,
}

/// Returns the weight of a port if it is branch `number` of `branches` equal ones.
fn branch_weight(port: &Port, number: usize, branches: usize) -> Option<i64> {
    match port.steps.first()? {
        Step::Spread { weight, total, offset } => {
            let fits = *total == weight * branches as i64 && *offset == weight * number as i64;
            (fits && port.rate > 0 && port.seen == port.rate).then_some(*weight)
        }
        Step::Shuffle { .. } | Step::Select { .. } => None,
    }
}

/// Collapses all equal branches.
pub(super) fn collapse(section: &mut Section) {
    while let Some(group) = find(section) {
        merge(section, &group);
    }
}

/// Finds the actors of equal branches.
fn find(section: &Section) -> Option<Group> {
    for (index, first) in section.actors.iter().enumerate() {
        let Some(input) = &first.input else { continue };
        let Some(Step::Spread { weight, total, offset: 0 }) = input.steps.first() else { continue };
        if *weight == 0 || total % weight != 0 || total == weight {
            continue;
        }
        let branches = (total / weight) as usize;
        let mut actors = vec![index];
        for number in 1..branches {
            let found = section.actors.iter().position(|other| {
                other.input.as_ref().is_some_and(|port| {
                    port.buffer == input.buffer
                        && port.steps[..].get(1..) == input.steps.get(1..)
                        && branch_weight(port, number, branches) == Some(*weight)
                })
            });
            match found {
                Some(found) => actors.push(found),
                None => break,
            }
        }
        if actors.len() == branches
            && let Some(turns) = turns(section, &actors, *weight)
        {
            return Some(Group { actors, weight: *weight, turns });
        }
    }
    None
}

/// Returns how equal branches alternate if they can be one actor.
fn turns(section: &Section, group: &[usize], weight: i64) -> Option<Alternation> {
    let actors: Vec<&Actor> = group.iter().map(|index| &section.actors[*index]).collect();
    let first = actors[0];
    let (Some(input), Some(output)) = (&first.input, &first.output) else { return None };
    if branch_weight(input, 0, group.len()) != Some(weight) || first.code.numbered || output.rate == 0 {
        return None;
    }
    let alike = actors.iter().all(|actor| {
        let (Some(own_in), Some(own_out)) = (&actor.input, &actor.output) else { return false };
        actor.code == first.code
            && !actor.has_prework
            && !actor.nodes.is_empty()
            && actor.firings == first.firings
            && actor.before == first.before
            && own_in.start == input.start
            && own_out.start == output.start
    });
    let privates = actors.iter().all(|actor| private(section, actor));
    let joins = |weight: i64| {
        actors
            .iter()
            .enumerate()
            .all(|(number, actor)| actor.output.as_ref().is_some_and(|port| joined(port, output, number, group.len(), weight)))
    };
    if !alike {
        return None;
    }
    let out_weight = weight / input.rate * output.rate;
    let whole = weight % input.rate == 0 && input.start % weight == 0 && output.start % out_weight.max(1) == 0;
    if whole && (privates || joins(out_weight)) {
        return Some(Alternation::Rounds);
    }
    // Whole rounds of splitter, firings and joiner precede the first firing.
    let starts = |port: &Port, weight: i64| port.start % port.rate == 0 && port.start % weight == 0;
    let join = branch_weight(output, 0, group.len());
    let fits = starts(input, weight) && join.map_or(output.start % output.rate == 0, |join| starts(output, join));
    (fits && (privates || join.is_some_and(joins))).then_some(Alternation::Firings)
}

/// Returns whether a port is branch `number` of the joiner to which the first port belongs.
fn joined(port: &Port, first: &Port, number: usize, branches: usize, weight: i64) -> bool {
    port.buffer == first.buffer
        && port.steps.get(1..) == first.steps.get(1..)
        && branch_weight(port, number, branches) == Some(weight)
}

/// Returns whether the output of an actor goes to one reader by a tape of its own.
fn private(section: &Section, actor: &Actor) -> bool {
    let Some(output) = &actor.output else { return false };
    let role = section.buffers[output.buffer].role;
    let mut readers = section.actors.iter().filter_map(|other| other.input.as_ref()).filter(|port| port.buffer == output.buffer);
    let first = readers.next();
    let writers = section.actors.iter().filter_map(|other| other.output.as_ref());
    role == Role::Inner
        && output.steps.is_empty()
        && first.is_some_and(|port| port.steps.is_empty())
        && readers.next().is_none()
        && writers.filter(|port| port.buffer == output.buffer).count() == 1
}

fn merge(section: &mut Section, group: &Group) {
    let (weight, group, turns) = (group.weight, &group.actors, group.turns);
    let branches = group.len() as i64;
    let mut merged = section.actors[group[0]].clone();
    merged.nodes = group.iter().flat_map(|index| section.actors[*index].nodes.clone()).collect();
    merged.firings *= branches;
    merged.before *= branches;
    merged.first *= branches;
    let (Some(input), Some(output)) = (&mut merged.input, &mut merged.output) else { return };
    let out_weight = match turns {
        Alternation::Rounds => weight / input.rate * output.rate,
        Alternation::Firings => output.rate,
    };
    for port in [input, output] {
        port.start *= branches;
        if let Some(Step::Spread { weight, .. }) = port.steps.first().cloned() {
            match turns {
                Alternation::Rounds => drop(port.steps.remove(0)),
                Alternation::Firings => {
                    port.steps[0] = Step::Shuffle { branches, split: Some(weight), join: port.rate, inner: vec![] };
                }
            }
        }
    }
    let outputs: Vec<usize> =
        group.iter().filter_map(|index| section.actors[*index].output.as_ref().map(|port| port.buffer)).collect();
    if outputs.iter().any(|buffer| *buffer != outputs[0]) {
        // The tapes of the branches become one tape, on which their readers alternate.
        section.buffers[outputs[0]].items *= branches;
        section.buffers[outputs[0]].start *= branches;
        for (number, buffer) in outputs.iter().enumerate() {
            for port in section.actors.iter_mut().filter_map(|actor| actor.input.as_mut()) {
                if port.buffer == *buffer && port.steps.is_empty() {
                    let total = out_weight * branches;
                    port.steps.push(Step::Spread { weight: out_weight, total, offset: out_weight * number as i64 });
                    port.buffer = outputs[0];
                }
            }
        }
    }
    let first = group.iter().copied().min().unwrap_or(0);
    section.actors[first] = merged;
    let mut index = 0;
    section.actors.retain(|_| {
        let keeps = !group.contains(&index) || index == first;
        index += 1;
        keeps
    });
}
