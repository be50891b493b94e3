//! Uses within a trace: the items that an index or an item needs, the branches of selections that need an
//! item, and the strides of indices.

use super::{ElementIndex, Index, IndexId, Item, ItemId, SelectionBranch, Trace};
use crate::expr::elementwise::Elementwise;
use crate::hash::{QuickMap, QuickSet};
use crate::tape::entries::{Id, Kind};
use crate::tape::number::Number;
use broadloom_scalar::Type;
use broadloom_skeleton::cost;
use smallvec::{SmallVec, smallvec};
use std::collections::HashSet;

impl Trace<'_> {
    /// Returns the items that an index needs.
    pub(super) fn needed_by_index(&self, index: IndexId, found: &mut Vec<ItemId>) {
        match &self.indices[index as usize] {
            // The parts of a sum are affine.
            Index::Affine { .. } | Index::Plus(..) => {}
            Index::Scaled { base, .. }
            | Index::Clamp(base, _)
            | Index::Wrap(base, _)
            | Index::Mirror(base, _)
            | Index::Part { base, .. } => {
                self.needed_by_index(*base, found);
            }
            Index::Joined { high, low, .. } => {
                self.needed_by_index(*high, found);
                self.needed_by_index(*low, found);
            }
            Index::Ravel(indices, _) => indices.iter().for_each(|index| self.needed_by_index(*index, found)),
            Index::Unravel(number, ..) => self.needed_by_index(*number, found),
            Index::Data(item) => found.push(*item),
        }
    }

    /// Returns the extents that only the device knows and that the indices are clamped to, including those of
    /// index arrays that are read. If one is 0, there is no element at these indices.
    pub(crate) fn device_extents(&self, place: &ElementIndex) -> SmallVec<[Number; 2]> {
        let mut found = SmallVec::new();
        let mut left: SmallVec<[IndexId; 8]> = match place {
            ElementIndex::Axes(indices) => indices.iter().copied().collect(),
            ElementIndex::Linear(index) => smallvec![*index],
        };
        let mut seen: HashSet<IndexId> = HashSet::new();
        while let Some(index) = left.pop() {
            if !seen.insert(index) {
                continue;
            }
            match &self.indices[index as usize] {
                Index::Affine { .. } | Index::Plus(..) => {}
                Index::Data(item) => match &self.items[*item as usize] {
                    Item::Read { place: ElementIndex::Axes(indices), .. } => left.extend(indices.iter().copied()),
                    Item::Read { place: ElementIndex::Linear(index), .. } => left.push(*index),
                    _ => {}
                },
                Index::Scaled { base, .. } | Index::Part { base, .. } | Index::Unravel(base, ..) => left.push(*base),
                Index::Joined { high, low, .. } => left.extend([*high, *low]),
                Index::Ravel(indices, _) => left.extend(indices.iter().copied()),
                Index::Clamp(base, extent) | Index::Wrap(base, extent) | Index::Mirror(base, extent) => {
                    left.push(*base);
                    if extent.is_on_device() && !found.contains(extent) {
                        found.push(extent.clone());
                    }
                }
            }
        }
        found
    }

    /// Returns the items that an item needs.
    pub(crate) fn needed_by_item(&self, item: &Item, found: &mut Vec<ItemId>) {
        match item {
            Item::Read { place: ElementIndex::Axes(indices), .. } => {
                indices.iter().for_each(|index| self.needed_by_index(*index, found));
            }
            Item::Read { place: ElementIndex::Linear(index), .. } | Item::Position(index) => self.needed_by_index(*index, found),
            Item::Fill(_) | Item::Given(..) => {}
            Item::Apply(_, inputs) => found.extend(inputs),
            Item::Shift { item, .. } => found.push(*item),
            Item::Guard { inside, item, .. } => {
                inside.iter().for_each(|(index, _)| self.needed_by_index(*index, found));
                found.push(*item);
            }
            Item::Before { index, first, second, .. } => {
                self.needed_by_index(*index, found);
                found.extend([*first, *second]);
            }
        }
    }

    /// Returns whether neighbouring threads along an axis read strided elements: in other rows, or several
    /// elements from each other.
    pub(crate) fn is_apart(&self, indices: &[IndexId], axis: u8) -> bool {
        let Some((last, above)) = indices.split_last() else { return false };
        let step = |index: &IndexId| self.step(*index, axis).unwrap_or(0);
        above.iter().any(|index| step(index) != 0) || step(last).abs() > cost::NEIGHBOURS
    }

    /// Returns the stride of an index along an axis of positions, if it is known. Factors that are not known
    /// count as large ones.
    pub(crate) fn step(&self, index: IndexId, axis: u8) -> Option<i64> {
        const LARGE: i64 = 1 << 32;
        let of = |number: &Number| match number {
            Number::Known(known) => *known,
            _ => LARGE,
        };
        match &self.indices[index as usize] {
            Index::Affine { axis: own, stride, .. } => Some(if *own == Some(axis) { of(stride) } else { 0 }),
            Index::Plus(a, b, times) => Some(self.step(*a, axis)?.saturating_add(self.step(*b, axis)?.saturating_mul(*times))),
            Index::Scaled { base, stride, .. } => Some(self.step(*base, axis)?.saturating_mul(of(stride))),
            Index::Joined { high, low, extent } => {
                Some(self.step(*high, axis)?.saturating_mul(of(extent)).saturating_add(self.step(*low, axis)?))
            }
            Index::Clamp(base, _) | Index::Wrap(base, _) | Index::Mirror(base, _) | Index::Part { base, .. } => {
                self.step(*base, axis)
            }
            Index::Ravel(..) | Index::Unravel(..) | Index::Data(_) => None,
        }
    }

    /// Returns whether an index of neighbouring threads can be anything: it depends on elements in memory, or
    /// was rounded from a float.
    pub(crate) fn is_anywhere(&self, index: IndexId) -> bool {
        let (mut needed, mut seen) = (vec![], QuickSet::default());
        self.needed_by_index(index, &mut needed);
        while let Some(number) = needed.pop() {
            let item = &self.items[number as usize];
            if matches!(item, Item::Read { .. }) || matches!(item, Item::Apply(node, _) if self.is_rounded(*node)) {
                return true;
            }
            if seen.insert(number) {
                self.needed_by_item(item, &mut needed);
            }
        }
        false
    }

    /// Returns whether a node converts floats to integers.
    pub(super) fn is_rounded(&self, node: Id) -> bool {
        let entry = self.tape.entry(node);
        let is_float = |ty: Type| ty.element().is_float();
        let from_float = entry.inputs.first().is_some_and(|input| is_float(self.tape.entry(*input).ty));
        matches!(entry.kind, Kind::Elementwise(Elementwise::Convert(_))) && from_float && !is_float(entry.ty)
    }

    /// Returns for each item the branches of selections that it is needed in, from the outermost in. Items
    /// that are always needed have none. Items without a user are `None`, such as an index along an axis that
    /// a view removes.
    pub(crate) fn sides(&self, roots: &[ItemId]) -> Vec<Option<Vec<SelectionBranch>>> {
        // The common start of the ways to all uses.
        let mut ways: Vec<Option<Vec<SelectionBranch>>> = vec![None; self.items.len()];
        let meet = |ways: &mut Vec<Option<Vec<SelectionBranch>>>, item: ItemId, way: &[SelectionBranch]| {
            let known = &mut ways[item as usize];
            *known = Some(match known.take() {
                None => way.to_vec(),
                Some(known) => known.iter().zip(way).take_while(|(a, b)| a == b).map(|(a, _)| *a).collect(),
            });
        };
        roots.iter().for_each(|root| meet(&mut ways, *root, &[]));
        for number in (0..self.items.len()).rev() {
            let Some(way) = ways[number].clone() else { continue };
            let mut needed: Vec<ItemId> = vec![];
            match &self.items[number] {
                Item::Before { index, first, second, .. } => {
                    self.needed_by_index(*index, &mut needed);
                    for (item, is_first) in [(*first, true), (*second, false)] {
                        let side: Vec<SelectionBranch> = way.iter().copied().chain([(number as ItemId, is_first)]).collect();
                        meet(&mut ways, item, &side);
                    }
                }
                item => self.needed_by_item(item, &mut needed),
            }
            needed.into_iter().for_each(|item| meet(&mut ways, item, &way));
        }
        ways
    }

    /// Returns the type of each item.
    pub(crate) fn types(&self) -> Vec<broadloom_scalar::Type> {
        let mut types: Vec<broadloom_scalar::Type> = Vec::with_capacity(self.items.len());
        let nodes: QuickMap<ItemId, Id> = self.done.iter().map(|((node, _), item)| (*item, *node)).collect();
        for (number, item) in self.items.iter().enumerate() {
            types.push(match item {
                Item::Read { node, .. } | Item::Apply(node, _) | Item::Given(_, node) => self.tape.entry(*node).ty,
                Item::Guard { item, .. } | Item::Before { first: item, .. } | Item::Shift { item, .. } => types[*item as usize],
                // Views change no type, so whichever node stands for the item has it.
                Item::Fill(_) | Item::Position(_) => {
                    nodes.get(&(number as ItemId)).map_or(broadloom_scalar::Type::I32, |node| self.tape.entry(*node).ty)
                }
            });
        }
        types
    }
}
