//! Collapse of equal branches.
//!
//! Branches of a round-robin splitjoin that run the same stateless code become one actor with as many firings as all
//! of them together: the splitter, the joiner and the copies of the code are gone. Branches that are pipelines
//! collapse filter by filter; the tapes between their filters become one tape, on which the branches take turns.

use super::section::{Actor, Port, Section};
use super::wiring::Step;

/// Returns the weight of a port that is branch `number` of `branches` equal ones.
fn branch_weight(port: &Port, number: usize, branches: usize) -> Option<i64> {
    match port.steps.first()? {
        Step::Spread { weight, total, offset } => {
            let fits = *total == weight * branches as i64 && *offset == weight * number as i64;
            // Whole rounds of the branch lie before the first firing.
            (fits && weight % port.rate == 0 && port.start % weight == 0 && port.seen == port.rate).then_some(*weight)
        }
        Step::Shuffle { .. } => None,
    }
}

/// Collapses what can be collapsed.
pub(super) fn collapse(section: &mut Section) {
    while let Some((group, weight)) = find(section) {
        merge(section, &group, weight);
    }
}

/// Finds the actors of equal branches, in the order of the branches, and the weight of their splitter.
fn find(section: &Section) -> Option<(Vec<usize>, i64)> {
    for (index, first) in section.actors.iter().enumerate() {
        let Some(input) = &first.input else { continue };
        let Some(Step::Spread { weight, total, offset: 0 }) = input.steps.first() else { continue };
        if *weight == 0 || total % weight != 0 || total == weight {
            continue;
        }
        let branches = (total / weight) as usize;
        let mut group = vec![index];
        for number in 1..branches {
            let found = section.actors.iter().position(|other| {
                other.input.as_ref().is_some_and(|port| {
                    port.buffer == input.buffer
                        && port.steps[..].get(1..) == input.steps.get(1..)
                        && branch_weight(port, number, branches) == Some(*weight)
                })
            });
            match found {
                Some(found) => group.push(found),
                None => break,
            }
        }
        if group.len() == branches && fits(section, &group, *weight) {
            return Some((group, *weight));
        }
    }
    None
}

fn fits(section: &Section, group: &[usize], weight: i64) -> bool {
    let actors: Vec<&Actor> = group.iter().map(|index| &section.actors[*index]).collect();
    let first = actors[0];
    let (Some(input), Some(output)) = (&first.input, &first.output) else { return false };
    if branch_weight(input, 0, group.len()) != Some(weight) || first.code.numbered {
        return false;
    }
    let out_weight = weight / input.rate * output.rate;
    let alike = actors.iter().enumerate().all(|(number, actor)| {
        let (Some(own_in), Some(own_out)) = (&actor.input, &actor.output) else { return false };
        actor.code == first.code
            && !actor.has_prework
            && !actor.nodes.is_empty()
            && actor.firings == first.firings
            && actor.before == first.before
            && own_in.start == input.start
            && own_out.start == output.start
            && own_out.start % out_weight == 0
            && (joined(own_out, output, number, group.len(), out_weight) || private(section, actor))
    });
    let joins = actors
        .iter()
        .enumerate()
        .all(|(number, actor)| actor.output.as_ref().is_some_and(|port| joined(port, output, number, group.len(), out_weight)));
    let privates = actors.iter().all(|actor| private(section, actor));
    alike && (joins || privates)
}

/// Whether a port is the branch of a joiner that the first port belongs to.
fn joined(port: &Port, first: &Port, number: usize, branches: usize, weight: i64) -> bool {
    port.buffer == first.buffer
        && port.steps.get(1..) == first.steps.get(1..)
        && branch_weight(port, number, branches) == Some(weight)
}

/// Whether the output of an actor goes to one reader by a tape of its own.
fn private(section: &Section, actor: &Actor) -> bool {
    let Some(output) = &actor.output else { return false };
    let role = section.buffers[output.buffer].role;
    let mut readers = section.actors.iter().filter_map(|other| other.input.as_ref()).filter(|port| port.buffer == output.buffer);
    let first = readers.next();
    let writers = section.actors.iter().filter_map(|other| other.output.as_ref());
    role == super::Role::Inner
        && output.steps.is_empty()
        && first.is_some_and(|port| port.steps.is_empty())
        && readers.next().is_none()
        && writers.filter(|port| port.buffer == output.buffer).count() == 1
}

fn merge(section: &mut Section, group: &[usize], weight: i64) {
    let branches = group.len() as i64;
    let mut merged = section.actors[group[0]].clone();
    merged.nodes = group.iter().flat_map(|index| section.actors[*index].nodes.clone()).collect();
    merged.firings *= branches;
    merged.before *= branches;
    merged.first *= branches;
    let out_weight = match (&mut merged.input, &mut merged.output) {
        (Some(input), Some(output)) => {
            input.steps.remove(0);
            input.start *= branches;
            let out_weight = weight / input.rate * output.rate;
            output.start *= branches;
            if !output.steps.is_empty() {
                output.steps.remove(0);
            }
            out_weight
        }
        _ => return,
    };
    let outputs: Vec<usize> =
        group.iter().filter_map(|index| section.actors[*index].output.as_ref().map(|port| port.buffer)).collect();
    if outputs.iter().any(|buffer| *buffer != outputs[0]) {
        // The tapes of the branches become one, on which their readers take turns.
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
