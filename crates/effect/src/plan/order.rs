//! The order of functors, for least memory.
//!
//! Among the items whose inputs are there, the one comes next after which the fewest bytes are alive: it frees most, or makes
//! least.

use super::items::{Items, Work};

/// Brings items into an order that needs little memory.
pub(crate) fn least_memory(items: &mut Items) {
    let count = items.items.len();
    let size = |number: usize| -> i64 {
        let item = &items.items[number];
        match item.work {
            Work::Source(_) => 0,
            Work::Functor(_) | Work::Transpose => {
                let region = item.needed.unwrap_or(item.bounds);
                (item.outputs.iter().sum::<usize>() as i64).saturating_mul(region.area() as i64)
            }
        }
    };
    let sizes: Vec<i64> = (0..count).map(size).collect();
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
            let mut seen: Vec<usize> = inputs.iter().map(|port| port.item).collect();
            seen.sort_unstable();
            seen.dedup();
            let frees = |source: &usize| inputs.iter().filter(|port| port.item == *source).count() == uses[*source];
            sizes[*number] - seen.iter().filter(|source| frees(source)).map(|source| sizes[*source]).sum::<i64>()
        };
        // The first of several: the order of the graph decides.
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
    let mut places = vec![0; count];
    order.iter().enumerate().for_each(|(place, number)| places[*number] = place);
    let mut sorted: Vec<_> = order.iter().map(|number| items.items[*number].clone()).collect();
    for item in &mut sorted {
        item.inputs.iter_mut().for_each(|port| port.item = places[port.item]);
    }
    items.items = sorted;
    items.results.iter_mut().for_each(|port| port.item = places[port.item]);
}
