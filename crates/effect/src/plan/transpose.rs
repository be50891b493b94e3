//! Transposition: horizontal moving averages and vertical filters on images whose rows and columns are
//! exchanged.
//!
//! Neighbouring threads have neighbouring columns. The accesses of a moving average along rows are therefore
//! not coalesced. A vertical filter cannot share a row of shared memory between threads. Both run better on a
//! transposed image. [`insert`] puts a transposition before and after each. [`cancel`] removes pairs that
//! undo each other, also across point functors, which work in either orientation.

use super::items::{Item, Items, Port, Work};
use super::lower::moving::stepped;
use super::options::{Options, Switch};
use crate::functor::{AllowedOffsets, Axis, PixelDependence, Primitive};

/// Maximum extent of the step window of a moving average whose lines can be staged in shared memory.
const STAGED_HALO: u32 = 64;

/// Returns whether a functor runs better on a transposed image.
fn wants(primitive: &Primitive, options: &Options) -> bool {
    if primitive.reach().is_none() {
        return false;
    }
    match &primitive.code.nature {
        PixelDependence::Moving(motion) if motion.axis == Axis::Horizontal => {
            let reach = stepped(motion, primitive.reach().unwrap_or_default());
            // Without shared memory, the stride of reads along a line is the length of a row. With shared
            // memory, tiles are transposed there.
            let is_staged = options.stage != Switch::Off && reach.0 + reach.1 <= STAGED_HALO;
            options.carry != Switch::Off && options.transpose.decides(|| !is_staged)
        }
        PixelDependence::Moving(_) => false,
        PixelDependence::Parallel(_) => {
            let vertical = |freedom: &AllowedOffsets| matches!(freedom, AllowedOffsets::Line { axis: Axis::Vertical, .. });
            let is_line = |freedom: &AllowedOffsets| matches!(freedom, AllowedOffsets::Point) || vertical(freedom);
            let freedoms = || primitive.code.inputs.iter().map(|indexer| &indexer.freedom);
            // Rows of a vertical window are already coalesced, and tiles with a halo of rows share them. Two
            // additional passes over the image cost more than the gain.
            freedoms().any(vertical) && freedoms().all(is_line) && options.transpose == Switch::On
        }
    }
}

/// Inserts transpositions around functors that run better on transposed images.
pub(crate) fn insert(items: &mut Items, options: &Options, notes: &mut Vec<String>) {
    let mut places: Vec<Vec<Port>> = vec![];
    let mut changed: Vec<Item> = vec![];
    for item in std::mem::take(&mut items.items) {
        let mut item = item;
        item.inputs.iter_mut().for_each(|port| *port = places[port.item][port.output]);
        let name = match &item.work {
            Work::Functor(primitive) if wants(primitive, options) => Some(primitive.name().to_owned()),
            _ => None,
        };
        let Some(name) = name else {
            let outputs = 0..item.outputs.len();
            places.push(outputs.map(|output| Port { item: changed.len(), output }).collect());
            changed.push(item);
            continue;
        };
        notes.push(format!("{name}: transposed"));
        for port in &mut item.inputs {
            let source = &changed[port.item];
            let (bounds, components) = (source.bounds, source.outputs[port.output]);
            let turned = Item {
                work: Work::Transpose,
                inputs: vec![*port],
                outputs: vec![components],
                bounds,
                transposed: true,
                needed: None,
            };
            changed.push(turned);
            *port = Port { item: changed.len() - 1, output: 0 };
        }
        item.transposed = true;
        let (bounds, outputs, number) = (item.bounds, item.outputs.clone(), changed.len());
        changed.push(item);
        let mut own = vec![];
        for (output, components) in outputs.into_iter().enumerate() {
            own.push(Port { item: changed.len(), output: 0 });
            let inputs = vec![Port { item: number, output }];
            let (work, outputs) = (Work::Transpose, vec![components]);
            changed.push(Item { work, inputs, outputs, bounds, transposed: false, needed: None });
        }
        places.push(own);
    }
    items.items = changed;
    items.results.iter_mut().for_each(|port| *port = places[port.item][port.output]);
    items.sweep();
}

/// Returns the input of the transposition, if a port is the output of one.
fn undone(items: &Items, port: Port) -> Option<Port> {
    let item = &items.items[port.item];
    matches!(item.work, Work::Transpose).then(|| item.inputs[0])
}

/// Removes pairs of transpositions that undo each other.
pub(crate) fn cancel(items: &mut Items, notes: &mut Vec<String>) {
    let count = |items: &Items| items.items.iter().filter(|item| matches!(item.work, Work::Transpose)).count();
    let before = count(items);
    if before == 0 {
        return;
    }
    loop {
        let now = count(items);
        across_points(items);
        pairs(items);
        items.sweep();
        if count(items) >= now {
            break;
        }
    }
    let left = count(items);
    if left < before {
        notes.push(format!("{} of {before} transpositions cancelled", before - left));
    }
}

/// Replaces a transposition of a transposition by its original input.
fn pairs(items: &mut Items) {
    for number in 0..items.items.len() {
        for place in 0..items.items[number].inputs.len() {
            let port = items.items[number].inputs[place];
            if let Some(inner) = undone(items, port).and_then(|inner| undone(items, inner)) {
                items.items[number].inputs[place] = inner;
            }
        }
    }
    for place in 0..items.results.len() {
        if let Some(inner) = undone(items, items.results[place]).and_then(|inner| undone(items, inner)) {
            items.results[place] = inner;
        }
    }
}

/// Runs point functors on transposed images, if all their inputs are transpositions and all their consumers
/// transpose the result again.
fn across_points(items: &mut Items) {
    let mut consumers: Vec<Vec<usize>> = vec![vec![]; items.items.len()];
    for (number, item) in items.items.iter().enumerate() {
        item.inputs.iter().for_each(|port| consumers[port.item].push(number));
    }
    for (number, own) in consumers.iter().enumerate() {
        let item = &items.items[number];
        let is_point = matches!(&item.work, Work::Functor(primitive) if primitive.is_point());
        let is_result = items.results.iter().any(|port| port.item == number);
        let all_turn = !own.is_empty() && own.iter().all(|consumer| matches!(items.items[*consumer].work, Work::Transpose));
        let from_turned = item.inputs.iter().all(|port| undone(items, *port).is_some());
        if !is_point || is_result || !all_turn || !from_turned {
            continue;
        }
        let inputs: Vec<Port> = item.inputs.iter().filter_map(|port| undone(items, *port)).collect();
        let turned = !item.transposed;
        items.items[number].inputs = inputs;
        items.items[number].transposed = turned;
        // The consumers transposed it into its present orientation.
        for consumer in own {
            let output = items.items[*consumer].inputs[0];
            for other in &mut items.items {
                for port in &mut other.inputs {
                    if *port == (Port { item: *consumer, output: 0 }) {
                        *port = output;
                    }
                }
            }
            for port in &mut items.results {
                if *port == (Port { item: *consumer, output: 0 }) {
                    *port = output;
                }
            }
        }
    }
}
