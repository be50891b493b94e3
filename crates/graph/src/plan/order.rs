//! Order of the kernels of a plan.

use crate::plan::group::Group;
use crate::tape::bindings::Bindings;
use crate::tape::entries::{Id, Tape};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Returns an order of kernels with little live memory. Of the kernels whose inputs are ready, the one after
/// which the least memory is live runs first. Of equal ones, the one that makes such a kernel ready runs
/// first.
pub(crate) fn order(tape: &Tape, groups: &[Group], bindings: &Bindings) -> Vec<usize> {
    let bytes = |id: Id| {
        let entry = tape.entry(id);
        bindings.shapes[entry.shape as usize].count() as i128 * i128::from(entry.ty.bytes())
    };
    let home: HashMap<Id, usize> =
        groups.iter().enumerate().flat_map(|(index, group)| group.made().map(move |made| (made, index))).collect();
    let mut readers: HashMap<Id, usize> = HashMap::new();
    groups.iter().flat_map(|group| &group.reads).for_each(|read| *readers.entry(*read).or_default() += 1);
    let results: HashSet<Id> = tape.outputs.iter().map(|output| tape.behind(*output)).collect();
    // For each kernel, the kernels that it waits for, and those that wait for it.
    let waits: Vec<BTreeSet<usize>> =
        groups.iter().map(|group| group.reads.iter().filter_map(|read| home.get(read).copied()).collect()).collect();
    let mut followers: Vec<Vec<usize>> = vec![vec![]; groups.len()];
    waits.iter().enumerate().for_each(|(index, waits)| waits.iter().for_each(|producer| followers[*producer].push(index)));
    let mut reading: HashMap<Id, Vec<usize>> = HashMap::new();
    for (index, group) in groups.iter().enumerate() {
        group.reads.iter().for_each(|read| reading.entry(*read).or_default().push(index));
    }
    let mut missing: Vec<usize> = waits.iter().map(BTreeSet::len).collect();
    let cost = |index: usize, readers: &HashMap<Id, usize>| {
        let group = &groups[index];
        let made: i128 = group.roots.iter().map(|root| bytes(*root)).sum();
        let freed: i128 = group
            .reads
            .iter()
            .filter(|read| home.contains_key(read) && readers[read] == 1 && !results.contains(read))
            .map(|read| bytes(*read))
            .sum();
        made - freed
    };
    let rank = |index: usize, readers: &HashMap<Id, usize>, missing: &[usize]| {
        let next = followers[index].iter().filter(|next| missing[**next] == 1);
        let then = next.map(|next| cost(*next, readers)).min();
        (cost(index, readers), then.unwrap_or(0).min(0), index)
    };
    let mut is_done = vec![false; groups.len()];
    let mut ranks: Vec<Option<(i128, i128, usize)>> = vec![None; groups.len()];
    let mut ready: BTreeSet<(i128, i128, usize)> = BTreeSet::new();
    for index in (0..groups.len()).filter(|index| missing[*index] == 0) {
        let own = rank(index, &readers, &missing);
        ranks[index] = Some(own);
        ready.insert(own);
    }
    let mut order = vec![];
    while let Some((.., next)) = ready.pop_first() {
        ranks[next] = None;
        // Kernels whose rank changes: those that are ready now, the last reader of a node, and the kernels
        // that such kernels wait for.
        let mut changed: BTreeSet<usize> = BTreeSet::new();
        for read in &groups[next].reads {
            if let Some(left) = readers.get_mut(read) {
                *left -= 1;
                if *left == 1 {
                    changed.extend(&reading[read]);
                }
            }
        }
        for follower in &followers[next] {
            missing[*follower] -= 1;
            changed.insert(*follower);
        }
        let behind: Vec<usize> = changed.iter().flat_map(|index| &waits[*index]).copied().collect();
        changed.extend(behind);
        order.push(next);
        is_done[next] = true;
        for index in changed.into_iter().filter(|index| missing[*index] == 0 && !is_done[*index]) {
            if let Some(old) = ranks[index].take() {
                ready.remove(&old);
            }
            let own = rank(index, &readers, &missing);
            ranks[index] = Some(own);
            ready.insert(own);
        }
    }
    order
}
