//! Items: the graph of an effect as the optimiser sees it.
//!
//! Items are in topological order: each follows its inputs. All outputs of a functor call share one object,
//! so a call is one item.

use crate::functor::{Axis, Output, PixelDependence, Primitive};
use crate::graph::{Origin, Picture, WholeCall};
use crate::{Image, Rect};
use broadloom_graph::Node;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of components of an image that are computed one by one.
const MOST_APART: usize = 4;

/// An output of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Port {
    pub(crate) item: usize,
    pub(crate) output: usize,
}

/// Work of an item.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// An array in memory.
    Source(Node),
    /// An image of the host.
    Host(Image),
    /// A call of a functor.
    Functor(Primitive),
    /// An operation on whole images.
    Whole(Arc<WholeCall>),
    /// Exchanges rows and columns of the only input.
    Transpose,
}

/// An item of the graph.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) work: Work,
    pub(crate) inputs: Vec<Port>,
    /// Number of components of each output.
    pub(crate) outputs: Vec<usize>,
    /// Region of definition.
    pub(crate) bounds: Rect,
    /// True if rows and columns of its outputs are exchanged.
    pub(crate) transposed: bool,
    /// Region that the consumers need.
    pub(crate) needed: Option<Rect>,
}

/// The graph of an effect.
#[derive(Clone, Debug, Default)]
pub(crate) struct Items {
    pub(crate) items: Vec<Item>,
    pub(crate) results: Vec<Port>,
}

impl Items {
    /// Lists the items behind pictures.
    pub(crate) fn new(pictures: &[Picture]) -> Items {
        let mut items = Items::default();
        // Keys: arrays by their pictures, calls by their own identity.
        let (mut arrays, mut calls): (HashMap<usize, usize>, HashMap<usize, usize>) = Default::default();
        let find = |picture: &Picture, arrays: &HashMap<usize, usize>, calls: &HashMap<usize, usize>| match picture.origin() {
            Origin::Array(_) | Origin::Host(_) | Origin::Whole(_) => {
                arrays.get(&picture.identity()).map(|item| Port { item: *item, output: 0 })
            }
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
            let known = match picture.origin() {
                Origin::Whole(whole) => whole.known(),
                Origin::Array(_) | Origin::Host(_) | Origin::Applied(..) => None,
            };
            match known.as_ref().unwrap_or(&picture).origin() {
                Origin::Array(node) => {
                    arrays.insert(picture.identity(), number);
                    let (work, outputs) = (Work::Source(node.clone()), vec![picture.components()]);
                    items.items.push(Item { work, inputs: vec![], outputs, bounds, transposed: false, needed: None });
                }
                Origin::Host(image) => {
                    arrays.insert(picture.identity(), number);
                    let (work, outputs) = (Work::Host(image.clone()), vec![picture.components()]);
                    items.items.push(Item { work, inputs: vec![], outputs, bounds, transposed: false, needed: None });
                }
                Origin::Whole(whole) if !is_ready => {
                    let inputs = whole.inputs.iter().rev().map(|input| (input.clone(), false)).collect::<Vec<_>>();
                    open.push((picture, true));
                    open.extend(inputs);
                }
                Origin::Whole(whole) => {
                    arrays.insert(picture.identity(), number);
                    let inputs = whole.inputs.iter().filter_map(|input| find(input, &arrays, &calls)).collect();
                    let (work, outputs) = (Work::Whole(whole.clone()), vec![picture.components()]);
                    items.items.push(Item { work, inputs, outputs, bounds, transposed: false, needed: None });
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

    /// Returns the bytes of the images that an item produces.
    pub(super) fn images(&self, number: usize) -> u64 {
        let item = &self.items[number];
        let region = item.needed.unwrap_or(item.bounds);
        match item.work {
            Work::Source(_) => 0,
            Work::Host(_) | Work::Functor(_) | Work::Whole(_) | Work::Transpose => {
                (4 * item.outputs.iter().sum::<usize>() as u64).saturating_mul(region.area())
            }
        }
    }

    /// Returns the bytes of temporary arrays during the computation of an item.
    fn scratch(&self, number: usize) -> u64 {
        let item = &self.items[number];
        let region = item.needed.unwrap_or(item.bounds);
        match &item.work {
            Work::Whole(whole) => (whole.scratch)(item.outputs[0], [region.height as usize, region.width as usize]),
            Work::Source(_) | Work::Host(_) | Work::Functor(_) | Work::Transpose => 0,
        }
    }

    /// Returns the bytes that an item needs in addition to its inputs.
    pub(crate) fn bytes(&self, number: usize) -> u64 {
        self.images(number).saturating_add(self.scratch(number))
    }

    /// Returns an upper bound of the bytes alive at any time, if each item is computed on its own in this
    /// order.
    pub(crate) fn peak(&self) -> u64 {
        self.peak_with(|number| self.scratch(number))
    }

    /// Returns the maximum of the bytes of images alive at any time, if each item is computed on its own in
    /// this order.
    pub(crate) fn least(&self) -> u64 {
        self.peak_with(|_| 0)
    }

    fn peak_with(&self, scratch: impl Fn(usize) -> u64) -> u64 {
        let mut uses = self.uses();
        let (mut alive, mut peak) = (0u64, 0u64);
        for (number, item) in self.items.iter().enumerate() {
            alive = alive.saturating_add(self.images(number));
            peak = peak.max(alive.saturating_add(scratch(number)));
            for port in &item.inputs {
                uses[port.item] -= 1;
                if uses[port.item] == 0 {
                    alive -= self.images(port.item).min(alive);
                }
            }
        }
        peak
    }

    /// Returns for each item whether its components are computed one by one up to the results. Such an item
    /// reads images anywhere, component by component, and so do all its consumers. An intermediate image of
    /// one component is more likely to stay in the cache.
    pub(crate) fn apart(&self) -> Vec<bool> {
        let mut apart = vec![false; self.items.len()];
        for number in (0..self.items.len()).rev() {
            let Work::Functor(primitive) = &self.items[number].work else { continue };
            let in_components = |output: &Output| matches!(output, Output::Component);
            let reads_single = |reader: &Item, place: usize| match &reader.work {
                Work::Functor(primitive) => {
                    primitive.code.slots.iter().all(|slot| slot.picture != place || slot.component.is_none())
                }
                Work::Source(_) | Work::Host(_) | Work::Whole(_) | Work::Transpose => false,
            };
            let is_read_apart = |(reader, item): (usize, &Item)| {
                let own = item.inputs.iter().enumerate().filter(|(_, port)| port.item == number);
                own.into_iter().all(|(place, _)| apart[reader] && reads_single(item, place))
            };
            apart[number] = primitive.reach().is_none()
                && primitive.code.outputs.iter().all(in_components)
                && self.items[number].outputs.iter().all(|components| *components <= MOST_APART)
                && self.items.iter().enumerate().all(is_read_apart);
        }
        apart
    }

    /// Returns for each item whether its lines can be computed on demand. Such an item reads images anywhere,
    /// and its only consumer reads along rows.
    pub(crate) fn lines(&self) -> Vec<bool> {
        let uses = self.uses();
        let is_computed = |item: &Item| match &item.work {
            Work::Functor(primitive) => {
                matches!(primitive.code.nature, PixelDependence::Parallel(_)) && primitive.reach().is_none()
            }
            Work::Source(_) | Work::Host(_) | Work::Whole(_) | Work::Transpose => false,
        };
        let mut lines = vec![false; self.items.len()];
        for item in self.items.iter().filter(|item| is_computed(item) && !item.transposed) {
            let Work::Functor(primitive) = &item.work else { continue };
            for (place, port) in item.inputs.iter().enumerate() {
                lines[port.item] |= primitive.along_in(place) == Some(Axis::Horizontal)
                    && uses[port.item] == 1
                    && is_computed(&self.items[port.item]);
            }
        }
        lines
    }

    /// Returns the number of inputs and results that use each item.
    pub(crate) fn uses(&self) -> Vec<usize> {
        let mut uses = vec![0; self.items.len()];
        for port in self.items.iter().flat_map(|item| &item.inputs).chain(&self.results) {
            uses[port.item] += 1;
        }
        uses
    }

    /// Removes items that no result needs, and repeated transpositions of one port.
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
