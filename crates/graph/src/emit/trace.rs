//! Traces: the work of one thread of a fused kernel, as a list of nodes, each computed at a place.
//!
//! A trace starts at the position of the thread and follows inputs down to memory. Views only change the
//! *place*, so they always end at the leaves. A constant for indices outside is selected where its view
//! stands, whatever is above or below it (`papers/accelerator` §5.3 must cut there). A node at a place is
//! computed once, however often it is used. The cost model counts the items of a trace and the emitter writes
//! code for them, so both see the same work.
//!
//! Most positions are far from all edges. A trace can be made *for the interior*: it omits boundary rules
//! along axes of the thread's own position, and records them as conditions on the position instead.

mod uses;

use crate::expr::elementwise::Elementwise;
use crate::hash::{QuickMap, QuickSet};
use crate::limits::{MAX_DEPTH, MAX_EMITTED, MAX_ITEMS, MAX_LEVELS};
use crate::tape::entries::{Growth, Id, Kind, RecordedAxisMap, ShapeId, Tape};
use crate::tape::number::Number;
use broadloom_scalar::{BinaryOp, Function, Type};
use broadloom_skeleton::{Rule, cost};
use smallvec::{SmallVec, smallvec};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

/// The number of an index expression.
pub(crate) type IndexId = u32;
/// The number of an item.
pub(crate) type ItemId = u32;

/// An integer that a thread computes from its position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the formulas of the variants name the fields")]
pub(crate) enum Index {
    /// `offset + stride * position[axis]`, or `offset`.
    Affine { axis: Option<u8>, stride: Number, offset: Number },
    /// The sum of two affine indices along different axes, the second times a factor.
    Plus(IndexId, IndexId, i64),
    /// Another index times a stride, plus an offset.
    Scaled { base: IndexId, stride: Number, offset: Number },
    /// Clamped to `0..extent`.
    Clamp(IndexId, Number),
    /// Modulo the extent.
    Wrap(IndexId, Number),
    /// Mirrored at the ends of the extent.
    Mirror(IndexId, Number),
    /// The linear index of a position in a shape.
    Ravel(SmallVec<[IndexId; 4]>, ShapeId),
    /// The index along an axis of the position with a linear index in a shape.
    Unravel(IndexId, ShapeId, u8),
    /// An element of an index array.
    Data(ItemId),
    /// `high * extent + low`: an index along an axis that is split into two.
    Joined { high: IndexId, low: IndexId, extent: Number },
    /// `base + offset`, within a part of a concatenation. Each part has its own, so that values of one part
    /// are not reused for another.
    Part { base: IndexId, offset: Number, part: u32 },
}

impl Index {
    /// Returns the position along an axis.
    pub(super) fn of_axis(axis: usize) -> Index {
        Index::Affine { axis: Some(axis as u8), stride: Number::Known(1), offset: Number::Known(0) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ElementIndex {
    /// Indices along all axes.
    Axes(SmallVec<[IndexId; 4]>),
    /// Number in memory order.
    Linear(IndexId),
}

impl ElementIndex {
    /// Returns the indices along the first axes.
    pub(crate) fn first(&self, rank: usize) -> ElementIndex {
        match self {
            ElementIndex::Axes(indices) => ElementIndex::Axes(indices.iter().take(rank).copied().collect()),
            ElementIndex::Linear(_) => self.clone(),
        }
    }
}

/// A step of a thread.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    /// An element of an array in memory.
    Read { node: Id, place: ElementIndex },
    /// A scalar: a slot of the values.
    Fill(u32),
    /// An index as a value of the node's type.
    Position(IndexId),
    /// An operation on elements.
    Apply(Id, SmallVec<[ItemId; 3]>),
    /// The item where all indices lie within their extents, else a scalar.
    Guard { inside: SmallVec<[(IndexId, Number); 2]>, item: ItemId, fill: u32 },
    /// The value of a node that the preceding pattern passes, by its number.
    Given(u8, Id),
    /// An item of another thread, by its distance in lanes.
    Shift { item: ItemId, by: i64 },
    /// The first item where the index is less than the limit, else the second; only one of them is computed.
    Before { index: IndexId, limit: Number, first: ItemId, second: ItemId },
}

/// Condition on the position of a thread: an affine index lies within an extent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ExtentCondition {
    /// Axis of the position.
    pub axis: u8,
    /// Stride of the index along the axis.
    pub stride: Number,
    /// Index of position 0.
    pub offset: Number,
    /// Extent in which the index lies.
    pub extent: Number,
    /// Least and greatest number that may be added.
    pub others: (Number, Number),
}

/// Work of one thread, as a list of items.
pub(crate) struct Trace<'t> {
    tape: &'t Tape,
    /// Nodes that are in memory when the kernel runs.
    kept: &'t [bool],
    interior: bool,
    /// The axis along which boundary rules are kept in the interior.
    pub(crate) ruled: Option<u8>,
    /// The shape of the positions, if they are not one line.
    pub(crate) domain: Option<ShapeId>,
    /// The remainder of the length of a row, divided by the columns of patches whose rows start at aligned
    /// columns.
    pub(crate) skew: u32,
    /// Neighbouring columns of a thread.
    pub(crate) columns: u32,
    /// Nodes that come from the lane that has their column; `None` if each thread computes all that it needs.
    pub(crate) windowed: Option<Rc<[bool]>>,
    /// Nodes that are taken from neighbouring lanes.
    pub(crate) sliding: &'t [bool],
    is_sliding: bool,
    /// Lanes before and behind its own that it reads.
    pub(crate) reach: (i64, i64),
    pub(crate) indices: Vec<Index>,
    interned: QuickMap<Index, IndexId>,
    pub(crate) items: Vec<Item>,
    done: QuickMap<(Id, ElementIndex), ItemId>,
    /// Elements that are read, with their items.
    known: QuickMap<(Id, ElementIndex), ItemId>,
    /// Functions of several results that are called, and on what.
    called: QuickSet<(Function, SmallVec<[ItemId; 4]>)>,
    pub(crate) conditions: Vec<ExtentCondition>,
    /// Nodes that hold lengths which the code reads.
    pub(crate) lengths: Vec<Id>,
    /// Cost, in simple operations.
    pub(crate) cost: u64,
    /// Part of the cost that only changes signs.
    pub(crate) signs: u64,
    /// Estimated number of emitted operations.
    pub(crate) size: u64,
    /// Maximum number of items.
    pub(crate) most: usize,
    depth: usize,
    parts: u32,
}

/// Returns the cost of an operation, in simple operations.
fn cost_of(op: &Elementwise) -> u64 {
    match op {
        Elementwise::Unary(op) => cost::unary(*op),
        Elementwise::Binary(op) => cost::binary(*op),
        Elementwise::Compare(_) | Elementwise::Select | Elementwise::Fma | Elementwise::Convert(_) => 1,
        Elementwise::Math(..) => cost::MATH,
        Elementwise::Vector | Elementwise::Lane(_) => 0,
        Elementwise::Call(function, _) => cost::function(function),
    }
}

/// Returns the estimated number of emitted operations.
fn size_of(op: &Elementwise) -> u64 {
    match op {
        Elementwise::Math(function, precision) => function.operations(*precision),
        Elementwise::Call(function, _) => function.operations(),
        Elementwise::Unary(_)
        | Elementwise::Binary(_)
        | Elementwise::Compare(_)
        | Elementwise::Select
        | Elementwise::Fma
        | Elementwise::Convert(_)
        | Elementwise::Vector
        | Elementwise::Lane(_) => 1,
    }
}

impl<'t> Trace<'t> {
    /// Creates an empty trace. `kept`: the nodes in memory; `interior`: boundary rules are omitted.
    pub(crate) fn new(tape: &'t Tape, kept: &'t [bool], interior: bool) -> Trace<'t> {
        Trace {
            tape,
            kept,
            interior,
            ruled: None,
            domain: None,
            skew: 0,
            columns: 1,
            windowed: None,
            sliding: &[],
            is_sliding: false,
            reach: (0, 0),
            indices: vec![],
            interned: QuickMap::default(),
            items: vec![],
            done: QuickMap::default(),
            known: QuickMap::default(),
            called: QuickSet::default(),
            conditions: vec![],
            lengths: vec![],
            cost: 0,
            signs: 0,
            size: 0,
            most: MAX_ITEMS,
            depth: 0,
            parts: 0,
        }
    }

    /// Returns the position of the thread along an axis.
    pub(crate) fn axis(&mut self, axis: usize) -> IndexId {
        self.index(Index::Affine { axis: Some(axis as u8), stride: Number::Known(1), offset: Number::Known(0) })
    }

    /// Returns the indices of the thread in a domain with `rank` axes. With `line`, that is one linear index.
    pub(crate) fn start(&mut self, rank: usize, line: bool) -> ElementIndex {
        if line {
            return ElementIndex::Linear(self.axis(0));
        }
        ElementIndex::Axes((0..rank).map(|axis| self.axis(axis)).collect())
    }

    /// Returns the indices of the position `row` rows below and `column` columns behind the thread's.
    pub(crate) fn near(&mut self, rank: usize, row: i64, column: i64) -> ElementIndex {
        let offset = |axis: usize| match rank - axis {
            1 => column,
            2 => row,
            _ => 0,
        };
        let index =
            |axis: usize| Index::Affine { axis: Some(axis as u8), stride: Number::Known(1), offset: Number::Known(offset(axis)) };
        ElementIndex::Axes((0..rank).map(|axis| self.index(index(axis))).collect())
    }

    /// Returns the indices of the first position of the row of other indices.
    pub(crate) fn first_of_row(&mut self, place: &ElementIndex) -> ElementIndex {
        let ElementIndex::Axes(mut indices) = place.clone() else { return place.clone() };
        if let Some(last) = indices.last_mut() {
            *last = self.index(Index::Affine { axis: None, stride: Number::Known(0), offset: Number::Known(0) });
        }
        ElementIndex::Axes(indices)
    }

    /// Returns the number of an index expression, added if it is new.
    pub(crate) fn index(&mut self, index: Index) -> IndexId {
        if let Some(known) = self.interned.get(&index) {
            return *known;
        }
        let id = self.indices.len() as IndexId;
        self.indices.push(index.clone());
        self.interned.insert(index, id);
        id
    }

    /// Records that a node at these indices is a value that the preceding pattern passes.
    pub(crate) fn give(&mut self, value: u8, node: Id, place: &ElementIndex) {
        let place = self.plain(node, place);
        self.items.push(Item::Given(value, node));
        self.done.insert((node, place), (self.items.len() - 1) as ItemId);
    }

    /// Returns an extent of a shape.
    fn extent(&mut self, shape: ShapeId, axis: usize) -> Number {
        match self.tape.shapes[shape as usize].length.filter(|_| axis == 0) {
            None => Number::Extent(shape, axis as u8),
            Some(length) => {
                if !self.lengths.contains(&length) {
                    self.lengths.push(length);
                }
                Number::Length(length)
            }
        }
    }

    /// Returns the cost of an operation on these items, and the part of it that only changes signs. Further
    /// results of the same call cost nothing.
    fn cost_here(&mut self, op: &Elementwise, ty: Type, inputs: &[ItemId]) -> (u64, u64) {
        match op {
            Elementwise::Call(function, _) => {
                let is_first = function.results().len() <= 1 || self.called.insert((function.clone(), inputs.into()));
                if is_first { (cost_of(op), cost::signs(function)) } else { (0, 0) }
            }
            Elementwise::Unary(unary) if cost::is_sign(*unary, ty) => (cost_of(op), cost_of(op)),
            _ => (cost_of(op), 0),
        }
    }

    fn item(&mut self, item: Item, cost: u64) -> Option<ItemId> {
        if self.items.len() >= self.most {
            return None;
        }
        self.cost += cost;
        self.items.push(item);
        Some((self.items.len() - 1) as ItemId)
    }

    pub(crate) fn tape(&self) -> &Tape {
        self.tape
    }

    /// Returns the nodes that are read from memory.
    pub(crate) fn reads(&self) -> Vec<Id> {
        let mut reads: Vec<Id> = self.lengths.clone();
        for item in &self.items {
            if let Item::Read { node, .. } = item
                && !reads.contains(node)
            {
                reads.push(*node);
            }
        }
        reads
    }

    /// Returns the nodes that are computed, each with the number of its positions.
    pub(crate) fn computed(&self) -> HashMap<Id, u64> {
        let mut places = HashMap::new();
        for (node, _) in self.done.keys() {
            *places.entry(*node).or_insert(0) += 1;
        }
        places
    }

    /// Computes a node at some indices, even if it is in memory. Returns `None` if the kernel would be too
    /// large.
    pub(crate) fn compute(&mut self, node: Id, place: &ElementIndex) -> Option<ItemId> {
        let place = &self.plain(node, place);
        let key = (node, place.clone());
        if let Some(known) = self.done.get(&key) {
            return Some(*known);
        }
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let item = match self.slide(node, place) {
            None => self.compute_new(node, place),
            Some((own, by)) if self.windowed.is_some() => {
                let item = self.compute(node, &own);
                item.and_then(|item| self.item(Item::Shift { item, by }, cost::EXCHANGE))
            }
            Some((own, by)) => {
                self.is_sliding = true;
                let item = self.compute(node, &own);
                self.is_sliding = false;
                match item {
                    Some(item) if by != 0 => {
                        self.reach = (self.reach.0.max(-by), self.reach.1.max(by));
                        self.item(Item::Shift { item, by }, 1)
                    }
                    item => item,
                }
            }
        };
        self.depth -= 1;
        let item = item?;
        self.done.insert(key, item);
        Some(item)
    }

    /// Finds the lane of the warp that computes a node at some indices. Returns the indices at that lane's
    /// own column, and its distance in lanes. Lanes beyond the last column are clamped to it, so rules that
    /// clamp an index there are already applied.
    fn slide(&mut self, node: Id, place: &ElementIndex) -> Option<(ElementIndex, i64)> {
        let ElementIndex::Axes(indices) = place else { return None };
        if self.windowed.is_some() {
            return self.exchanged(node, indices);
        }
        let shape = self.tape.entry(node).shape;
        if self.is_sliding || !self.sliding.get(node as usize).copied().unwrap_or(false) || self.domain != Some(shape) {
            return None;
        }
        let last = indices.len() - 1;
        let column = match &self.indices[*indices.last()? as usize] {
            Index::Clamp(base, extent) if *extent == Number::Extent(shape, last as u8) => &self.indices[*base as usize],
            index => index,
        };
        let Index::Affine { axis: Some(axis), stride: Number::Known(1), offset: Number::Known(by) } = column else { return None };
        if usize::from(*axis) != last {
            return None;
        }
        let (by, mut own) = (*by, indices.clone());
        own[last] = self.axis(last);
        Some((ElementIndex::Axes(own), by))
    }

    /// Returns an index array as an index, if it is a position or a sum or difference of two such arrays, up
    /// to a number of levels.
    fn position(&mut self, node: Id, place: &ElementIndex, levels: u32) -> Option<IndexId> {
        let entry = self.tape.entry(node);
        // A conversion has changed positions that are no `i32`.
        let is_exact = entry.ty == Type::I64 || entry.ty == Type::I32 && !self.tape.wide;
        if !is_exact || self.kept[node as usize] {
            return None;
        }
        let factor = match &entry.kind {
            Kind::Position(axis) => {
                let index = self.along(node, place)[usize::from(*axis)];
                return matches!(self.indices[index as usize], Index::Affine { .. }).then_some(index);
            }
            Kind::Elementwise(Elementwise::Binary(BinaryOp::Add)) => 1,
            Kind::Elementwise(Elementwise::Binary(BinaryOp::Sub)) => -1,
            _ => return None,
        };
        let levels = levels.checked_sub(1).filter(|_| self.tape.wide || !self.tape.distant)?;
        let (a, b) = (self.position(entry.inputs[0], place, levels)?, self.position(entry.inputs[1], place, levels)?);
        let pair = (self.indices[a as usize].clone(), self.indices[b as usize].clone());
        let (Index::Affine { axis: x, stride: s, offset: o }, Index::Affine { axis: y, stride: t, offset: p }) = pair else {
            return None;
        };
        let times = Number::Known(factor);
        let offset = Number::sum(&o, &Number::product(&times, &p));
        let (Some(x), Some(y)) = (x, y) else { return None };
        let (t, none) = (Number::product(&times, &t), Number::Known(0));
        Some(match x.cmp(&y) {
            Ordering::Equal => self.index(Index::Affine { axis: Some(x), stride: Number::sum(&s, &t), offset }),
            Ordering::Greater => {
                let a = self.index(Index::Affine { axis: Some(x), stride: s, offset });
                let b = self.index(Index::Affine { axis: Some(y), stride: t, offset: none });
                self.index(Index::Plus(a, b, 1))
            }
            Ordering::Less => {
                let a = self.index(Index::Affine { axis: Some(y), stride: t, offset });
                let b = self.index(Index::Affine { axis: Some(x), stride: s, offset: none });
                self.index(Index::Plus(a, b, 1))
            }
        })
    }

    /// Notes the condition that an index lies within an extent, if it is affine.
    fn condition(&self, index: IndexId, extent: &Number) -> Option<ExtentCondition> {
        let none = Number::Known(0);
        let (index, others) = match &self.indices[index as usize] {
            Index::Plus(index, other, 1) => {
                let Index::Affine { axis: Some(axis), stride: Number::Known(stride), .. } = &self.indices[*other as usize] else {
                    return None;
                };
                let domain = self.domain.filter(|domain| *axis > 0 || self.tape.shapes[*domain as usize].length.is_none())?;
                let last = Number::sum(&Number::Extent(domain, *axis), &Number::Known(-1));
                let far = Number::product(&Number::Known(*stride), &last);
                (*index, if *stride < 0 { (far, none) } else { (none, far) })
            }
            _ => (index, (none.clone(), none)),
        };
        let Index::Affine { axis: Some(axis), stride, offset } = &self.indices[index as usize] else { return None };
        if [stride, offset, extent].iter().any(|number| number.is_on_device()) {
            // The host computes the bounds of the interior.
            return None;
        }
        let (stride, offset, extent) = (stride.clone(), offset.clone(), extent.clone());
        Some(ExtentCondition { axis: *axis, stride, offset, extent, others })
    }

    /// Returns the item of a node at some indices: a read if it is in memory, else its computation.
    pub(crate) fn at(&mut self, node: Id, place: &ElementIndex) -> Option<ItemId> {
        let leaf = matches!(self.tape.entry(node).kind, Kind::Leaf(_));
        if !leaf && !self.kept[node as usize] {
            return self.compute(node, place);
        }
        let place = self.plain(node, place);
        // A kept node that this kernel has computed at the same indices need not be read.
        let key = (node, place);
        if let Some(known) = self.done.get(&key) {
            return Some(*known);
        }
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let item = self.item(Item::Read { node: key.0, place: key.1.clone() }, cost::READ)?;
        self.known.insert(key, item);
        Some(item)
    }

    /// A single index is a linear index.
    fn plain(&self, node: Id, place: &ElementIndex) -> ElementIndex {
        match place {
            ElementIndex::Linear(index) if self.tape.rank(node) == 1 => ElementIndex::Axes(smallvec![*index]),
            place => place.clone(),
        }
    }

    fn compute_new(&mut self, node: Id, place: &ElementIndex) -> Option<ItemId> {
        let entry = self.tape.entry(node);
        match &entry.kind {
            Kind::Leaf(_) | Kind::Pattern(_) => self.at(node, place),
            Kind::Fill(slot) => self.item(Item::Fill(*slot), 0),
            Kind::Elementwise(op) => {
                let mut inputs = SmallVec::new();
                for input in &entry.inputs {
                    inputs.push(self.at(*input, place)?);
                }
                self.size += size_of(op);
                if self.size > MAX_EMITTED {
                    return None;
                }
                let (cost, signs) = self.cost_here(op, entry.ty, &inputs);
                self.signs += signs;
                self.item(Item::Apply(node, inputs), cost)
            }
            Kind::Reshape(splits) if !splits.is_empty() => {
                let place = self.joined(node, place, splits);
                self.at(entry.inputs[0], &place)
            }
            Kind::Reshape(_) => {
                let number = self.number(node, place);
                self.at(entry.inputs[0], &ElementIndex::Linear(number))
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

    /// Returns the indices of an element of a reshaped node in its input, of which each axis is split into a
    /// number of axes.
    fn joined(&mut self, node: Id, place: &ElementIndex, splits: &[u8]) -> ElementIndex {
        let shape = self.tape.entry(node).shape;
        let ElementIndex::Axes(indices) = place else { return place.clone() };
        let mut own = indices.iter().copied().zip(0u8..);
        let mut join = |count: &u8| {
            let mut own = own.by_ref().take((*count).into());
            let first = own.next().map(|(index, _)| index);
            own.fold(first, |high, (low, axis)| {
                let extent = Number::Extent(shape, axis);
                high.map(|high| self.index(Index::Joined { high, low, extent }))
            })
        };
        ElementIndex::Axes(splits.iter().filter_map(&mut join).collect())
    }

    /// Returns the indices along all axes.
    fn along(&mut self, node: Id, place: &ElementIndex) -> SmallVec<[IndexId; 4]> {
        match place {
            ElementIndex::Axes(indices) => indices.clone(),
            ElementIndex::Linear(number) => {
                let (shape, rank) = (self.tape.entry(node).shape, self.tape.rank(node));
                if rank == 1 {
                    return smallvec![*number];
                }
                (0..rank).map(|axis| self.index(Index::Unravel(*number, shape, axis as u8))).collect()
            }
        }
    }

    /// Returns the linear index.
    fn number(&mut self, node: Id, place: &ElementIndex) -> IndexId {
        match place {
            ElementIndex::Linear(number) => *number,
            ElementIndex::Axes(indices) if indices.len() == 1 => indices[0],
            ElementIndex::Axes(indices) => self.index(Index::Ravel(indices.clone(), self.tape.entry(node).shape)),
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

    fn view(
        &mut self,
        node: Id,
        place: &ElementIndex,
        maps: &[RecordedAxisMap],
        fill: Option<u32>,
        growth: Growth,
    ) -> Option<ItemId> {
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
            let extent = self.extent(shape, axis);
            indices.push(self.bounded(index, map.rule, extent, growth, &mut inside));
        }
        let place = ElementIndex::Axes(indices);
        let item = self.at(input, &place)?;
        self.guarded(inside, item, fill)
    }

    fn guarded(&mut self, inside: SmallVec<[(IndexId, Number); 2]>, item: ItemId, fill: Option<u32>) -> Option<ItemId> {
        match fill {
            Some(fill) if !inside.is_empty() => {
                let cost = cost::GUARD * inside.len() as u64;
                self.item(Item::Guard { inside, item, fill }, cost)
            }
            _ => Some(item),
        }
    }

    /// Returns an index under a rule. For a constant, records the condition that has to be tested.
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
        // An index that wraps around many times has a tiny interior.
        let droppable = !matches!(rule, Rule::Wrap | Rule::Mirror) || growth == Growth::None;
        if self.interior
            && droppable
            && let Some(condition) = self.condition(index, &extent)
            && self.ruled != Some(condition.axis)
        {
            if !self.conditions.contains(&condition) {
                self.conditions.push(condition);
            }
            return index;
        }
        match rule {
            Rule::Inside => index,
            // An index that is clamped to the extent stays there.
            Rule::Clamp if matches!(&self.indices[index as usize], Index::Clamp(_, known) if *known == extent) => index,
            Rule::Clamp => self.index(Index::Clamp(index, extent)),
            Rule::Wrap => self.index(Index::Wrap(index, extent)),
            Rule::Mirror => self.index(Index::Mirror(index, extent)),
            Rule::Constant => {
                inside.push((index, extent.clone()));
                self.index(Index::Clamp(index, extent))
            }
        }
    }

    fn gather(&mut self, node: Id, place: &ElementIndex, rule: Rule, fill: Option<u32>) -> Option<ItemId> {
        let entry = self.tape.entry(node);
        let (data, positions) = (entry.inputs[0], &entry.inputs[1..]);
        let shape = self.tape.entry(data).shape;
        let mut indices: SmallVec<[IndexId; 4]> = SmallVec::new();
        let mut inside = SmallVec::new();
        for (axis, position) in positions.iter().enumerate() {
            let index = match self.position(*position, place, MAX_LEVELS) {
                Some(index) => index,
                None => {
                    let item = self.at(*position, place)?;
                    self.index(Index::Data(item))
                }
            };
            let extent = self.extent(shape, axis);
            indices.push(self.bounded(index, rule, extent, Growth::None, &mut inside));
        }
        let item = self.at(data, &ElementIndex::Axes(indices))?;
        self.guarded(inside, item, fill)
    }

    fn concatenate(&mut self, node: Id, place: &ElementIndex, axis: u8) -> Option<ItemId> {
        let entry = self.tape.entry(node);
        let own = self.along(node, place);
        let mut start = Number::Known(0);
        let mut parts: Vec<(ItemId, Number)> = vec![];
        for input in &entry.inputs {
            let extent = self.extent(self.tape.entry(*input).shape, axis.into());
            let mut indices = own.clone();
            self.parts += 1;
            let offset = Number::product(&Number::Known(-1), &start);
            indices[usize::from(axis)] = self.index(Index::Part { base: own[usize::from(axis)], offset, part: self.parts });
            let item = self.at(*input, &ElementIndex::Axes(indices))?;
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
pub(crate) type SelectionBranch = (ItemId, bool);

#[cfg(test)]
mod tests {
    use super::*;
    use broadloom_scalar::Precision;

    #[test]
    fn places_lie_apart_in_other_rows_and_some_elements_from_each_other() {
        let tape = Tape::empty(Precision::Fast, false);
        let mut trace = Trace::new(&tape, &[], false);
        let (i, j) = (trace.axis(0), trace.axis(1));
        let scaled = |stride: i64| Index::Scaled { base: j, stride: Number::Known(stride), offset: Number::Known(1) };
        let (two, sixteen) = (trace.index(scaled(2)), trace.index(scaled(-16)));
        let extent = Number::Extent(0, 0);
        let in_block = trace.index(Index::Joined { high: i, low: j, extent: extent.clone() });
        let of_block = trace.index(Index::Joined { high: j, low: i, extent: extent.clone() });
        let sum = trace.index(Index::Plus(i, j, 1));
        let held = trace.index(Index::Clamp(sum, extent.clone()));
        let anything = trace.index(Index::Unravel(j, 0, 1));
        for near in [[i, j], [i, two], [i, in_block], [i, sum], [i, held], [i, i], [anything, j]] {
            assert!(!trace.is_apart(&near, 1), "{near:?}");
        }
        for apart in [[j, i], [i, sixteen], [i, of_block], [of_block, j], [held, i]] {
            assert!(trace.is_apart(&apart, 1), "{apart:?}");
        }
        assert!(!trace.is_apart(&[], 1));
    }
}
