//! Items: the graph of an effect as the optimiser sees it.
//!
//! Items stand in an order in which each comes behind its inputs. Equal calls of a functor are one item, because a call is one
//! object that its outputs share.

use crate::Rect;
use crate::functor::Primitive;
use crate::graph::{Origin, Picture};
use broadloom_graph::Node;
use std::collections::HashMap;
use std::sync::Arc;

/// An output of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Port {
    pub(crate) item: usize,
    pub(crate) output: usize,
}

/// The work of an item.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// An array that is there.
    Source(Node),
    /// A call.
    Functor(Primitive),
    /// The one input with rows and columns exchanged.
    Transpose,
}

/// An item of the graph.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) work: Work,
    pub(crate) inputs: Vec<Port>,
    /// The components of each output.
    pub(crate) outputs: Vec<usize>,
    /// The region of definition.
    pub(crate) bounds: Rect,
    /// Whether rows and columns of its outputs are exchanged.
    pub(crate) transposed: bool,
    /// The region that is needed.
    pub(crate) needed: Option<Rect>,
}

/// The graph of an effect.
#[derive(Clone, Debug, Default)]
pub(crate) struct Items {
    pub(crate) items: Vec<Item>,
    pub(crate) results: Vec<Port>,
}

impl Items {
    /// Lists the items of pictures.
    pub(crate) fn new(pictures: &[Picture]) -> Items {
        let mut items = Items::default();
        // Arrays by their pictures, calls by themselves.
        let (mut arrays, mut calls): (HashMap<usize, usize>, HashMap<usize, usize>) = Default::default();
        let find = |picture: &Picture, arrays: &HashMap<usize, usize>, calls: &HashMap<usize, usize>| match picture.origin() {
            Origin::Array(_) => arrays.get(&picture.identity()).map(|item| Port { item: *item, output: 0 }),
            Origin::Applied(call, output) => {
                calls.get(&(Arc::as_ptr(call) as usize)).map(|item| Port { item: *item, output: *output })
            }
        };
        let mut open: Vec<(Picture, bool)> = pictures.iter().rev().map(|picture| (picture.clone(), false)).collect();
        while let Some((picture, is_ready)) = open.pop() {
            if find(&picture, &arrays, &calls).is_some() {
                continue;
            }
            let number = items.items.len();
            let bounds = picture.bounds();
            match picture.origin() {
                Origin::Array(node) => {
                    arrays.insert(picture.identity(), number);
                    let (work, outputs) = (Work::Source(node.clone()), vec![picture.components()]);
                    items.items.push(Item { work, inputs: vec![], outputs, bounds, transposed: false, needed: None });
                }
                Origin::Applied(call, _) if !is_ready => {
                    let inputs = call.inputs.iter().rev().map(|input| (input.clone(), false)).collect::<Vec<_>>();
                    open.push((picture, true));
                    open.extend(inputs);
                }
                Origin::Applied(call, output) => {
                    calls.insert(Arc::as_ptr(call) as usize, number);
                    let inputs = call.inputs.iter().filter_map(|input| find(input, &arrays, &calls)).collect();
                    let each = call.primitive.code.outputs.iter().map(|declared| match declared {
                        crate::functor::Output::Component => picture.components(),
                        crate::functor::Output::Pixel(count) => *count,
                    });
                    let outputs: Vec<usize> = each.collect();
                    debug_assert!(*output < outputs.len(), "an output of its call");
                    let work = Work::Functor(call.primitive.clone());
                    items.items.push(Item { work, inputs, outputs, bounds, transposed: false, needed: None });
                }
            }
        }
        items.results = pictures.iter().filter_map(|picture| find(picture, &arrays, &calls)).collect();
        items
    }

    /// Returns how many inputs and results use each item.
    pub(crate) fn uses(&self) -> Vec<usize> {
        let mut uses = vec![0; self.items.len()];
        for port in self.items.iter().flat_map(|item| &item.inputs).chain(&self.results) {
            uses[port.item] += 1;
        }
        uses
    }

    /// Removes items that no result needs, and those that are the same as one before.
    pub(crate) fn sweep(&mut self) {
        let mut is_needed = vec![false; self.items.len()];
        for port in &self.results {
            is_needed[port.item] = true;
        }
        for number in (0..self.items.len()).rev().collect::<Vec<_>>() {
            if is_needed[number] {
                self.items[number].inputs.iter().for_each(|port| is_needed[port.item] = true);
            }
        }
        let mut places: Vec<usize> = vec![0; self.items.len()];
        let mut kept: Vec<Item> = vec![];
        let mut transposes: HashMap<Port, usize> = HashMap::new();
        for (number, mut item) in std::mem::take(&mut self.items).into_iter().enumerate() {
            if !is_needed[number] {
                continue;
            }
            item.inputs.iter_mut().for_each(|port| port.item = places[port.item]);
            if matches!(item.work, Work::Transpose) {
                let same = *transposes.entry(item.inputs[0]).or_insert(kept.len());
                if same < kept.len() {
                    places[number] = same;
                    continue;
                }
            }
            places[number] = kept.len();
            kept.push(item);
        }
        self.items = kept;
        self.results.iter_mut().for_each(|port| port.item = places[port.item]);
    }
}
