//! Order of the kernels of a plan.

use crate::plan::group::Group;
use crate::tape::bindings::Bindings;
use crate::tape::entries::{Id, Tape};
use std::collections::{BTreeSet, HashMap};

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
    let results: Vec<Id> = tape.outputs.iter().map(|output| tape.behind(*output)).collect();
    // For each kernel, the kernels that it waits for, and those that wait for it.
    let waits: Vec<BTreeSet<usize>> =
        groups.iter().map(|group| group.reads.iter().filter_map(|read| home.get(read).copied()).collect()).collect();
    let mut followers: Vec<Vec<usize>> = vec![vec![]; groups.len()];
    waits.iter().enumerate().for_each(|(index, waits)| waits.iter().for_each(|producer| followers[*producer].push(index)));
    let mut missing: Vec<usize> = waits.iter().map(BTreeSet::len).collect();
    let mut ready: BTreeSet<usize> = (0..groups.len()).filter(|index| missing[*index] == 0).collect();
    let mut order = vec![];
    loop {
        let cost = |index: usize| {
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
        let then = |index: usize| followers[index].iter().filter(|next| missing[**next] == 1).map(|next| cost(*next)).min();
        let Some(next) = ready.iter().copied().min_by_key(|index| (cost(*index), then(*index).unwrap_or(0).min(0), *index))
        else {
            break;
        };
        ready.remove(&next);
        for read in &groups[next].reads {
            if let Some(left) = readers.get_mut(read) {
                *left -= 1;
            }
        }
        for follower in &followers[next] {
            missing[*follower] -= 1;
            if missing[*follower] == 0 {
                ready.insert(*follower);
            }
        }
        order.push(next);
    }
    order
}
