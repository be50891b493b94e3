//! The order of functors, for minimum memory.
//!
//! Two orders are computed, and the one with the lowest peak is used. The original order is kept if neither
//! is better.
//!
//! - *Greedy*: among the items whose inputs are computed, the next item leaves the fewest bytes alive.
//! - *Depth first* (Sethi and Ullman): the inputs of an item are computed one after the other. The first
//!   input is the one that needs most memory while it is computed and leaves least.

use super::items::Items;

/// Reorders items to need little memory.
pub(crate) fn least_memory(items: &mut Items) {
    let others = [greedy(items), depth_first(items)];
    let others: Vec<Items> =
        others.iter().filter(|order| order.len() == items.items.len()).map(|order| arranged(items, order)).collect();
    for other in others {
        if other.peak() < items.peak() {
            *items = other;
        }
    }
}

/// Returns the sizes of items, as signed numbers. Their sums do not overflow.
fn sizes(items: &Items) -> Vec<i64> {
    let size = |number: usize| i64::try_from(items.bytes(number)).unwrap_or(i64::MAX).min(i64::MAX / 4096);
    (0..items.items.len()).map(size).collect()
}

fn greedy(items: &Items) -> Vec<usize> {
    let count = items.items.len();
    let sizes = sizes(items);
    let mut uses = items.uses();
    let mut waits: Vec<usize> = items.items.iter().map(|item| item.inputs.len()).collect();
    let mut consumers: Vec<Vec<usize>> = vec![vec![]; count];
    for (number, item) in items.items.iter().enumerate() {
        item.inputs.iter().for_each(|port| consumers[port.item].push(number));
    }
    let mut ready: Vec<usize> = (0..count).filter(|number| waits[*number] == 0).collect();
    let mut order = vec![];
    while !ready.is_empty() {
        let change = |number: &usize| {
            let inputs = &items.items[*number].inputs;
            let frees = |source: &usize| inputs.iter().filter(|port| port.item == *source).count() == uses[*source];
            sizes[*number]
                - sources(items, *number).iter().filter(|source| frees(source)).map(|source| sizes[*source]).sum::<i64>()
        };
        // Ties are broken by the order of the graph.
        let Some((place, number)) = ready.iter().copied().enumerate().min_by_key(|(_, number)| (change(number), *number)) else {
            break;
        };
        ready.swap_remove(place);
        for port in &items.items[number].inputs {
            uses[port.item] -= 1;
        }
        for consumer in &consumers[number] {
            waits[*consumer] -= 1;
            if waits[*consumer] == 0 {
                ready.push(*consumer);
            }
        }
        order.push(number);
    }
    order
}

/// Returns the distinct items that an item reads.
fn sources(items: &Items, number: usize) -> Vec<usize> {
    let mut seen: Vec<usize> = items.items[number].inputs.iter().map(|port| port.item).collect();
    seen.sort_unstable();
    seen.dedup();
    seen
}

fn depth_first(items: &Items) -> Vec<usize> {
    let sizes = sizes(items);
    let mut needs: Vec<i64> = vec![];
    let mut children: Vec<Vec<usize>> = vec![];
    for number in 0..items.items.len() {
        let mut own = sources(items, number);
        own.sort_by_key(|source| (sizes[*source] - needs[*source], *source));
        let (mut held, mut most) = (0i64, 0i64);
        for source in &own {
            most = most.max(held.saturating_add(needs[*source]));
            held = held.saturating_add(sizes[*source]);
        }
        needs.push(most.max(held.saturating_add(sizes[number])));
        children.push(own);
    }
    let (mut order, mut is_done) = (vec![], vec![false; items.items.len()]);
    let mut open: Vec<(usize, bool)> = items.results.iter().rev().map(|port| (port.item, false)).collect();
    while let Some((number, is_ready)) = open.pop() {
        if is_done[number] {
            continue;
        }
        if is_ready {
            is_done[number] = true;
            order.push(number);
            continue;
        }
        open.push((number, true));
        open.extend(children[number].iter().rev().map(|child| (*child, false)));
    }
    order
}

/// Returns the items in another order.
fn arranged(items: &Items, order: &[usize]) -> Items {
    let mut places = vec![0; items.items.len()];
    order.iter().enumerate().for_each(|(place, number)| places[*number] = place);
    let mut sorted: Vec<_> = order.iter().map(|number| items.items[*number].clone()).collect();
    for item in &mut sorted {
        item.inputs.iter_mut().for_each(|port| port.item = places[port.item]);
    }
    let mut results = items.results.clone();
    results.iter_mut().for_each(|port| port.item = places[port.item]);
    Items { items: sorted, results }
}
