//! What one thread of a fused kernel does, as a list: which nodes it computes at which places.
//!
//! A trace starts at the position of the thread and follows inputs down to what is in memory. Views only change the *place*: so they always end
//! at the leaves, and a constant for what is outside is chosen right where its view was, whatever stands above or below
//! (`papers/accelerator` §5.3 has to break there). A node at a place is computed once, however often it is used. The cost model counts the
//! items of a trace, the emitter writes code for them: both see the same.
//!
//! Most positions are far from all edges. A trace can be made *for the interior*: boundary rules along axes of the thread's own position
//! are then left out, and noted as conditions on the position instead.

use crate::number::Number;
use crate::op::Elementwise;
use crate::tape::{Along, Growth, Id, Kind, ShapeId, Tape};
use crate::view::Rule;
use broadloom_scalar::Op as ScalarOp;
use smallvec::{SmallVec, smallvec};
use std::collections::HashMap;

/// The number of an index expression.
pub(crate) type IndexId = u32;
/// The number of an item.
pub(crate) type ItemId = u32;

/// An integer that a thread computes from its position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Index {
    /// `offset + stride * position[axis]`, or `offset`.
    Affine { axis: Option<u8>, stride: Number, offset: Number },
    /// The same of another index.
    Scaled { base: IndexId, stride: Number, offset: Number },
    /// Held to `0..extent`.
    Clamp(IndexId, Number),
    /// Modulo the extent.
    Wrap(IndexId, Number),
    /// Back and forth in the extent.
    Mirror(IndexId, Number),
    /// The number of a place in a shape.
    Ravel(SmallVec<[IndexId; 4]>, ShapeId),
    /// The index along an axis of the place with a number in a shape.
    Unravel(IndexId, ShapeId, u8),
    /// An element of an index array.
    Data(ItemId),
    /// `base + offset`, within a part of a concatenation: each time another one, so that what is computed at it is not taken for something that is
    /// there for other parts.
    Part { base: IndexId, offset: Number, part: u32 },
}

/// Where an element is: indices along all axes, or its number in memory order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    At(SmallVec<[IndexId; 4]>),
    Number(IndexId),
}

/// A step of a thread.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    /// An element of something in memory.
    Read { node: Id, place: Place },
    /// A scalar: a slot of the values.
    Fill(u32),
    /// An index as a value of the node's type.
    Position(IndexId),
    /// An operation on elements.
    Apply(Id, SmallVec<[ItemId; 3]>),
    /// The item where all indices lie within their extents, else a scalar.
    Guard { inside: SmallVec<[(IndexId, Number); 2]>, item: ItemId, fill: u32 },
    /// A value that the pattern in front gives, by its number, as the node.
    Given(u8, Id),
    /// The first item where the index is less than the limit, else the second; only one of them is computed.
    Before { index: IndexId, limit: Number, first: ItemId, second: ItemId },
}

/// That an affine index of the thread's position lies within an extent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Condition {
    pub(crate) axis: u8,
    pub(crate) stride: Number,
    pub(crate) offset: Number,
    pub(crate) extent: Number,
}

/// The list.
pub(crate) struct Trace<'t> {
    tape: &'t Tape,
    /// What is in memory when the kernel runs.
    kept: &'t [bool],
    interior: bool,
    pub(crate) indices: Vec<Index>,
    interned: HashMap<Index, IndexId>,
    pub(crate) items: Vec<Item>,
    done: HashMap<(Id, Place), ItemId>,
    pub(crate) conditions: Vec<Condition>,
    /// What it costs, in simple operations.
    pub(crate) cost: u64,
    depth: usize,
    parts: u32,
}

/// Items of one kernel, at most.
pub(crate) const MAX_ITEMS: usize = 700;
/// How deep items may depend on each other.
const MAX_DEPTH: usize = 160;
/// What a read that a cache answers costs.
pub(crate) const READ: u64 = 1;

/// What an operation costs, in simple operations.
fn cost_of(op: &Elementwise) -> u64 {
    use broadloom_scalar::BinaryOp;
    match op {
        Elementwise::Unary(op) => match op.name() {
            "sqrt" => 6,
            _ => 1,
        },
        Elementwise::Binary(BinaryOp::Div | BinaryOp::Rem) => 6,
        Elementwise::Binary(_) | Elementwise::Compare(_) | Elementwise::Select | Elementwise::Fma | Elementwise::Convert(_) => 1,
        Elementwise::Math(..) => 20,
        Elementwise::Vector | Elementwise::Lane(_) => 0,
        Elementwise::Call(function, _) => function
            .body()
            .nodes()
            .map(|(_, node)| match &node.op {
                ScalarOp::Literal(_) | ScalarOp::Parameter(_) => 0,
                ScalarOp::Math(..) => 20,
                _ => 1,
            })
            .sum(),
    }
}

impl<'t> Trace<'t> {
    pub(crate) fn new(tape: &'t Tape, kept: &'t [bool], interior: bool) -> Trace<'t> {
        Trace {
            tape,
            kept,
            interior,
            indices: vec![],
            interned: HashMap::new(),
            items: vec![],
            done: HashMap::new(),
            conditions: vec![],
            cost: 0,
            depth: 0,
            parts: 0,
        }
    }

    /// The position of the thread along an axis.
    pub(crate) fn axis(&mut self, axis: usize) -> IndexId {
        self.index(Index::Affine { axis: Some(axis as u8), stride: Number::Known(1), offset: Number::Known(0) })
    }

    /// The place of the thread in a domain of so many axes; by number if it is taken as one line.
    pub(crate) fn start(&mut self, rank: usize, line: bool) -> Place {
        if line {
            return Place::Number(self.axis(0));
        }
        Place::At((0..rank).map(|axis| self.axis(axis)).collect())
    }

    /// The place so many rows below that of the thread.
    pub(crate) fn below(&mut self, rank: usize, row: u32) -> Place {
        let down = |axis: usize| if axis + 2 == rank { row.into() } else { 0 };
        let index =
            |axis: usize| Index::Affine { axis: Some(axis as u8), stride: Number::Known(1), offset: Number::Known(down(axis)) };
        Place::At((0..rank).map(|axis| self.index(index(axis))).collect())
    }

    pub(crate) fn index(&mut self, index: Index) -> IndexId {
        if let Some(known) = self.interned.get(&index) {
            return *known;
        }
        let id = self.indices.len() as IndexId;
        self.indices.push(index.clone());
        self.interned.insert(index, id);
        id
    }

    /// At this place a node is a value that the pattern in front gives.
    pub(crate) fn give(&mut self, value: u8, node: Id, place: &Place) {
        let place = self.plain(node, place);
        self.items.push(Item::Given(value, node));
        self.done.insert((node, place), (self.items.len() - 1) as ItemId);
    }

    fn item(&mut self, item: Item, cost: u64) -> Option<ItemId> {
        if self.items.len() >= MAX_ITEMS {
            return None;
        }
        self.cost += cost;
        self.items.push(item);
        Some((self.items.len() - 1) as ItemId)
    }

    /// The nodes that are read from memory.
    pub(crate) fn reads(&self) -> Vec<Id> {
        let mut reads: Vec<Id> = vec![];
        for item in &self.items {
            if let Item::Read { node, .. } = item
                && !reads.contains(node)
            {
                reads.push(*node);
            }
        }
        reads
    }

    /// The nodes that are computed, with how many places each.
    pub(crate) fn computed(&self) -> HashMap<Id, u64> {
        let mut places = HashMap::new();
        for (node, _) in self.done.keys() {
            *places.entry(*node).or_insert(0) += 1;
        }
        places
    }

    /// A node at a place, whether it is kept or not; `None` if that is too much for one kernel.
    pub(crate) fn compute(&mut self, node: Id, place: &Place) -> Option<ItemId> {
        let place = &self.plain(node, place);
        let key = (node, place.clone());
        if let Some(known) = self.done.get(&key) {
            return Some(*known);
        }
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let item = self.compute_new(node, place);
        self.depth -= 1;
        let item = item?;
        self.done.insert(key, item);
        Some(item)
    }

    /// A node at a place: read if it is in memory, else computed.
    pub(crate) fn at(&mut self, node: Id, place: &Place) -> Option<ItemId> {
        let leaf = matches!(self.tape.entry(node).kind, Kind::Leaf(_));
        if !leaf && !self.kept[node as usize] {
            return self.compute(node, place);
        }
        let place = self.plain(node, place);
        // What this kernel keeps and has computed at the very place need not be read.
        let key = (node, place);
        if let Some(known) = self.done.get(&key) {
            return Some(*known);
        }
        let (node, place) = key;
        let read = Item::Read { node, place };
        match self.items.iter().position(|item| *item == read) {
            Some(known) => Some(known as ItemId),
            None => self.item(read, READ),
        }
    }

    /// One index is the same as a number along one axis.
    fn plain(&self, node: Id, place: &Place) -> Place {
        match place {
            Place::Number(index) if self.tape.rank(node) == 1 => Place::At(smallvec![*index]),
            place => place.clone(),
        }
    }

    fn compute_new(&mut self, node: Id, place: &Place) -> Option<ItemId> {
        let entry = self.tape.entry(node);
        match &entry.kind {
            Kind::Leaf(_)
            | Kind::Reduce(..)
            | Kind::Extreme(..)
            | Kind::Scan(..)
            | Kind::Product
            | Kind::Sort(..)
            | Kind::Histogram(_)
            | Kind::Scatter(_)
            | Kind::SegmentedScan(..)
            | Kind::SegmentedReduce(_)
            | Kind::Pack(_) => self.at(node, place),
            Kind::Fill(slot) => self.item(Item::Fill(*slot), 0),
            Kind::Elementwise(op) => {
                let mut inputs = SmallVec::new();
                for input in &entry.inputs {
                    inputs.push(self.at(*input, place)?);
                }
                self.item(Item::Apply(node, inputs), cost_of(op))
            }
            Kind::Reshape => {
                let number = self.number(node, place);
                self.at(entry.inputs[0], &Place::Number(number))
            }
            Kind::Position(axis) => {
                let index = self.along(node, place)[usize::from(*axis)];
                self.item(Item::Position(index), 0)
            }
            Kind::View(maps, fill, growth) => self.view(node, place, maps, *fill, *growth),
            Kind::Gather(rule, fill, _) => self.gather(node, place, *rule, *fill),
            Kind::Concatenate(axis) => self.concatenate(node, place, *axis),
        }
    }

    /// The indices of a place along all axes.
    fn along(&mut self, node: Id, place: &Place) -> SmallVec<[IndexId; 4]> {
        match place {
            Place::At(indices) => indices.clone(),
            Place::Number(number) => {
                let (shape, rank) = (self.tape.entry(node).shape, self.tape.rank(node));
                if rank == 1 {
                    return smallvec![*number];
                }
                (0..rank).map(|axis| self.index(Index::Unravel(*number, shape, axis as u8))).collect()
            }
        }
    }

    /// The number of a place.
    fn number(&mut self, node: Id, place: &Place) -> IndexId {
        match place {
            Place::Number(number) => *number,
            Place::At(indices) if indices.len() == 1 => indices[0],
            Place::At(indices) => self.index(Index::Ravel(indices.clone(), self.tape.entry(node).shape)),
        }
    }

    fn scaled(&mut self, base: IndexId, stride: Number, offset: Number) -> IndexId {
        if stride == Number::Known(1) && offset == Number::Known(0) {
            return base;
        }
        let index = match &self.indices[base as usize] {
            Index::Affine { axis, stride: s, offset: o } => Index::Affine {
                axis: *axis,
                stride: Number::product(&stride, s),
                offset: Number::sum(&Number::product(&stride, o), &offset),
            },
            _ => Index::Scaled { base, stride, offset },
        };
        self.index(index)
    }

    fn view(&mut self, node: Id, place: &Place, maps: &[Along], fill: Option<u32>, growth: Growth) -> Option<ItemId> {
        let input = self.tape.entry(node).inputs[0];
        let shape = self.tape.entry(input).shape;
        let own = self.along(node, place);
        let mut indices: SmallVec<[IndexId; 4]> = SmallVec::new();
        let mut inside: SmallVec<[(IndexId, Number); 2]> = SmallVec::new();
        for (axis, map) in maps.iter().enumerate() {
            let (offset, stride) = (Number::from(map.offset), Number::from(map.stride));
            let index = match map.source {
                None => self.index(Index::Affine { axis: None, stride: Number::Known(0), offset }),
                Some(source) => self.scaled(own[usize::from(source)], stride, offset),
            };
            let extent = Number::Extent(shape, axis as u8);
            indices.push(self.bounded(index, map.rule, extent, growth, &mut inside));
        }
        let place = Place::At(indices);
        let item = self.at(input, &place)?;
        self.guarded(inside, item, fill)
    }

    fn guarded(&mut self, inside: SmallVec<[(IndexId, Number); 2]>, item: ItemId, fill: Option<u32>) -> Option<ItemId> {
        match fill {
            Some(fill) if !inside.is_empty() => {
                let cost = 3 * inside.len() as u64;
                self.item(Item::Guard { inside, item, fill }, cost)
            }
            _ => Some(item),
        }
    }

    /// An index under a rule; for a constant, what has to be looked at is noted.
    fn bounded(
        &mut self,
        index: IndexId,
        rule: Rule,
        extent: Number,
        growth: Growth,
        inside: &mut SmallVec<[(IndexId, Number); 2]>,
    ) -> IndexId {
        if rule == Rule::Inside {
            return index;
        }
        // What wraps around many times has no interior worth the name.
        let droppable = !matches!(rule, Rule::Wrap | Rule::Mirror) || growth == Growth::None;
        if self.interior
            && droppable
            && let Index::Affine { axis: Some(axis), stride, offset } = &self.indices[index as usize]
        {
            let condition = Condition { axis: *axis, stride: stride.clone(), offset: offset.clone(), extent };
            if !self.conditions.contains(&condition) {
                self.conditions.push(condition);
            }
            return index;
        }
        match rule {
            Rule::Inside => index,
            Rule::Clamp => self.index(Index::Clamp(index, extent)),
            Rule::Wrap => self.index(Index::Wrap(index, extent)),
            Rule::Mirror => self.index(Index::Mirror(index, extent)),
            Rule::Constant => {
                inside.push((index, extent.clone()));
                self.index(Index::Clamp(index, extent))
            }
        }
    }

    fn gather(&mut self, node: Id, place: &Place, rule: Rule, fill: Option<u32>) -> Option<ItemId> {
        let entry = self.tape.entry(node);
        let (data, positions) = (entry.inputs[0], &entry.inputs[1..]);
        let shape = self.tape.entry(data).shape;
        let mut indices: SmallVec<[IndexId; 4]> = SmallVec::new();
        let mut inside = SmallVec::new();
        for (axis, position) in positions.iter().enumerate() {
            let item = self.at(*position, place)?;
            let index = self.index(Index::Data(item));
            let extent = Number::Extent(shape, axis as u8);
            indices.push(self.bounded(index, rule, extent, Growth::None, &mut inside));
        }
        let item = self.at(data, &Place::At(indices))?;
        self.guarded(inside, item, fill)
    }

    fn concatenate(&mut self, node: Id, place: &Place, axis: u8) -> Option<ItemId> {
        let entry = self.tape.entry(node);
        let own = self.along(node, place);
        let mut start = Number::Known(0);
        let mut parts: Vec<(ItemId, Number)> = vec![];
        for input in &entry.inputs {
            let extent = Number::Extent(self.tape.entry(*input).shape, axis);
            let mut indices = own.clone();
            self.parts += 1;
            let offset = Number::product(&Number::Known(-1), &start);
            indices[usize::from(axis)] = self.index(Index::Part { base: own[usize::from(axis)], offset, part: self.parts });
            let item = self.at(*input, &Place::At(indices))?;
            start = Number::sum(&start, &extent);
            parts.push((item, start.clone()));
        }
        let mut parts = parts.into_iter().rev();
        let (mut item, _) = parts.next()?;
        for (first, limit) in parts {
            item = self.item(Item::Before { index: own[usize::from(axis)], limit, first, second: item }, 2)?;
        }
        Some(item)
    }
}

/// A side of an [`Item::Before`]: its number, and whether it is the first.
pub(crate) type Side = (ItemId, bool);

impl Trace<'_> {
    /// The items that an index needs.
    fn needed_by_index(&self, index: IndexId, found: &mut Vec<ItemId>) {
        match &self.indices[index as usize] {
            Index::Affine { .. } => {}
            Index::Scaled { base, .. }
            | Index::Clamp(base, _)
            | Index::Wrap(base, _)
            | Index::Mirror(base, _)
            | Index::Part { base, .. } => {
                self.needed_by_index(*base, found);
            }
            Index::Ravel(indices, _) => indices.iter().for_each(|index| self.needed_by_index(*index, found)),
            Index::Unravel(number, ..) => self.needed_by_index(*number, found),
            Index::Data(item) => found.push(*item),
        }
    }

    /// The sides of choices that each item is needed in only, from the outermost in; items that are needed whatever is chosen have none.
    pub(crate) fn sides(&self, roots: &[ItemId]) -> Vec<Vec<Side>> {
        // The common start of the ways to all uses; `None` where there has been no use.
        let mut ways: Vec<Option<Vec<Side>>> = vec![None; self.items.len()];
        let meet = |ways: &mut Vec<Option<Vec<Side>>>, item: ItemId, way: &[Side]| {
            let known = &mut ways[item as usize];
            *known = Some(match known.take() {
                None => way.to_vec(),
                Some(known) => known.iter().zip(way).take_while(|(a, b)| a == b).map(|(a, _)| *a).collect(),
            });
        };
        roots.iter().for_each(|root| meet(&mut ways, *root, &[]));
        for number in (0..self.items.len()).rev() {
            let way = ways[number].clone().unwrap_or_default();
            let mut needed: Vec<ItemId> = vec![];
            match &self.items[number] {
                Item::Read { place, .. } => match place {
                    Place::At(indices) => indices.iter().for_each(|index| self.needed_by_index(*index, &mut needed)),
                    Place::Number(index) => self.needed_by_index(*index, &mut needed),
                },
                Item::Fill(_) | Item::Given(..) => {}
                Item::Position(index) => self.needed_by_index(*index, &mut needed),
                Item::Apply(_, inputs) => needed.extend(inputs),
                Item::Guard { inside, item, .. } => {
                    inside.iter().for_each(|(index, _)| self.needed_by_index(*index, &mut needed));
                    needed.push(*item);
                }
                Item::Before { index, first, second, .. } => {
                    self.needed_by_index(*index, &mut needed);
                    for (item, is_first) in [(*first, true), (*second, false)] {
                        let side: Vec<Side> = way.iter().copied().chain([(number as ItemId, is_first)]).collect();
                        meet(&mut ways, item, &side);
                    }
                }
            }
            needed.into_iter().for_each(|item| meet(&mut ways, item, &way));
        }
        ways.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// The type of each item.
    pub(crate) fn types(&self) -> Vec<broadloom_scalar::Type> {
        let mut types: Vec<broadloom_scalar::Type> = Vec::with_capacity(self.items.len());
        let nodes: HashMap<ItemId, Id> = self.done.iter().map(|((node, _), item)| (*item, *node)).collect();
        for (number, item) in self.items.iter().enumerate() {
            types.push(match item {
                Item::Read { node, .. } | Item::Apply(node, _) | Item::Given(_, node) => self.tape.entry(*node).ty,
                Item::Guard { item, .. } | Item::Before { first: item, .. } => types[*item as usize],
                // Views change no type, so whichever node stands for the item has it.
                Item::Fill(_) | Item::Position(_) => {
                    nodes.get(&(number as ItemId)).map_or(broadloom_scalar::Type::I32, |node| self.tape.entry(*node).ty)
                }
            });
        }
        types
    }
}
