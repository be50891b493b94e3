//! The canonical form of what is evaluated: the key under which plans are kept.
//!
//! A [`Tape`] lists the nodes that outputs depend on, inputs first, equal ones once, with everything left out that does not shape the code:
//! values of scalars, extents, large offsets and strides, which buffer is which. What was left out is in the [`Bindings`], in the order of the
//! slots that the tape names. Two expressions with equal tapes have one plan.
//!
//! What stays in the tape: small offsets and strides (neighbours of a stencil are part of its code), which shapes are equal, whether a last
//! axis is long and the one before it not short, how much a view enlarges (in classes), and whether some index needs 64 bits.

use crate::hash::{Quick, QuickMap};
use crate::node::{Expression, Node, State};
use crate::op::{Axes, Combine, Elementwise, Extreme, Op};
use crate::shape::Shape;
use crate::view::{Rule, View};
use broadloom_device::Buffer;
use broadloom_scalar::{Lanes, Precision, Type};
use broadloom_skeleton::{Histogram, SortKey};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The number of a node of a tape.
pub(crate) type Id = u32;

/// So many elements need indices of 64 bits. With fewer, indices of 32 bits are exact a little beyond both ends of an array.
const FAR: usize = (1 << 31) - (1 << 24);

/// The number of a shape of a tape.
pub(crate) type ShapeId = u16;

/// An integer of the code: part of it, or given when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Int {
    /// Part of the code.
    Known(i64),
    /// A slot of [`Bindings::integers`].
    Given(u32),
}

/// How an index along an axis of the input comes about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Along {
    pub(crate) source: Option<u8>,
    pub(crate) offset: Int,
    pub(crate) stride: Int,
    pub(crate) rule: Rule,
}

/// How much a view enlarges, in classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Growth {
    /// Less than twice.
    None,
    /// 2 to 7 times.
    Some,
    /// 8 to 63 times.
    Much,
    /// More.
    Huge,
}

impl Growth {
    fn of(factor: usize) -> Growth {
        match factor {
            0..2 => Growth::None,
            2..8 => Growth::Some,
            8..64 => Growth::Much,
            _ => Growth::Huge,
        }
    }

    /// How many times as many elements come out, at least.
    pub(crate) fn factor(self) -> u64 {
        match self {
            Growth::None => 1,
            Growth::Some => 2,
            Growth::Much => 8,
            Growth::Huge => 64,
        }
    }
}

/// What a node of a tape does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A slot of [`Bindings::buffers`].
    Leaf(u32),
    /// A slot of [`Bindings::values`].
    Fill(u32),
    Elementwise(Elementwise),
    /// The maps, a slot of [`Bindings::values`] for what is outside, how much it enlarges.
    View(SmallVec<[Along; 4]>, Option<u32>, Growth),
    Reshape,
    Position(u8),
    Gather(Rule, Option<u32>, Growth),
    Concatenate(u8),
    Reduce(Combine, Axes),
    Extreme(Extreme, Axes),
    /// Combination, axis, whether it is inclusive.
    Scan(Combine, u8, bool),
    Product,
    /// Keys, and which input comes out.
    Sort(SmallVec<[SortKey; 2]>, u8),
    /// How many bins there are room for in shared memory.
    Histogram(Option<u32>),
    /// Whether it is the number.
    Pack(bool),
    /// How what comes to one place is combined; the last stays where it is not.
    Scatter(Option<Combine>),
    /// Combination, axis.
    SegmentedScan(Combine, u8),
    SegmentedReduce(Combine),
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) ty: Type,
    pub(crate) shape: ShapeId,
    pub(crate) inputs: SmallVec<[Id; 3]>,
}

/// What is known of a shape in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ShapeClass {
    pub(crate) rank: u8,
    /// Whether the last axis is long.
    pub(crate) rows: bool,
    /// Whether there are enough rows along the axis before it for a strip of them.
    pub(crate) tall: bool,
}

impl ShapeClass {
    /// What an extent is at least, unless the shape has no elements.
    pub(crate) fn least(self, axis: usize) -> u64 {
        let rank = usize::from(self.rank);
        match rank.checked_sub(axis) {
            Some(1) if rank >= 2 && self.rows => LONG as u64,
            Some(2) if self.tall => TALL as u64,
            _ => 1,
        }
    }
}

/// The canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tape {
    pub(crate) entries: Vec<Entry>,
    pub(crate) outputs: SmallVec<[Id; 2]>,
    pub(crate) shapes: Vec<ShapeClass>,
    /// Whether indices have 64 bits.
    pub(crate) wide: bool,
    /// How exact elementary functions are.
    pub(crate) precision: Precision,
}

/// What the tape leaves out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bindings {
    pub(crate) buffers: Vec<Buffer<u8>>,
    pub(crate) values: Vec<Lanes>,
    pub(crate) integers: Vec<i64>,
    pub(crate) shapes: Vec<Shape>,
}

/// Offsets and strides up to this are part of the code.
const SMALL: i64 = 8;

/// From which length on a last axis is long.
const LONG: usize = 32;

/// From which length on the axis before the last has strips of rows.
const TALL: usize = 16;

/// Writes a tape.
struct Recorder {
    tape: Tape,
    bindings: Bindings,
    numbers: QuickMap<usize, Id>,
    buffers: QuickMap<(u64, usize), u32>,
    /// Slots of scalars.
    scalars: QuickMap<usize, u32>,
    /// Nodes by the hash of what they do, to find equal ones.
    known: QuickMap<u64, SmallVec<[Id; 1]>>,
    expressions: Vec<Option<Arc<Expression>>>,
}

impl Tape {
    /// The canonical form of some nodes, and what it leaves out. Nodes are kept alive by the expressions that are looked at.
    pub(crate) fn record(nodes: &[Node], precision: Precision) -> (Tape, Bindings) {
        let mut recorder = Recorder {
            tape: Tape { entries: vec![], outputs: SmallVec::new(), shapes: vec![], wide: false, precision },
            bindings: Bindings::default(),
            numbers: QuickMap::default(),
            buffers: QuickMap::default(),
            scalars: QuickMap::default(),
            known: QuickMap::default(),
            expressions: vec![],
        };
        for node in nodes {
            let id = recorder.visit(node);
            recorder.tape.outputs.push(id);
        }
        (recorder.tape, recorder.bindings)
    }

    pub(crate) fn entry(&self, id: Id) -> &Entry {
        &self.entries[id as usize]
    }

    pub(crate) fn rank(&self, id: Id) -> usize {
        usize::from(self.shapes[usize::from(self.entry(id).shape)].rank)
    }
}

enum Visit {
    Enter(Node),
    Leave(Node, Arc<Expression>),
}

impl Recorder {
    fn visit(&mut self, node: &Node) -> Id {
        let mut stack = vec![Visit::Enter(node.clone())];
        while let Some(visit) = stack.pop() {
            match visit {
                Visit::Enter(node) => {
                    if self.numbers.contains_key(&node.identity()) {
                        continue;
                    }
                    match node.state() {
                        State::Ready(buffer) => self.leaf(&node, buffer),
                        State::Pending(expression) if expression.inputs.is_empty() => self.add(&node, expression),
                        State::Pending(expression) => {
                            stack.push(Visit::Leave(node, expression.clone()));
                            stack.extend(expression.inputs.iter().rev().cloned().map(Visit::Enter));
                        }
                    }
                }
                Visit::Leave(node, expression) => {
                    if !self.numbers.contains_key(&node.identity()) {
                        self.add(&node, expression);
                    }
                }
            }
        }
        self.numbers[&node.identity()]
    }

    fn shape(&mut self, shape: &Shape) -> ShapeId {
        if let Some(known) = self.bindings.shapes.iter().position(|own| own == shape) {
            return known as ShapeId;
        }
        self.tape.wide |= shape.count() >= FAR;
        let rows = shape.rank() < 2 || shape.extents().last().is_some_and(|last| *last >= LONG);
        let tall = shape.rank() >= 2 && shape.extents()[shape.rank() - 2] >= TALL;
        self.tape.shapes.push(ShapeClass { rank: shape.rank() as u8, rows, tall });
        self.bindings.shapes.push(shape.clone());
        (self.bindings.shapes.len() - 1) as ShapeId
    }

    fn push(&mut self, node: &Node, kind: Kind, inputs: SmallVec<[Id; 3]>, expression: Option<Arc<Expression>>) -> Id {
        let shape = self.shape(node.shape());
        self.tape.entries.push(Entry { kind, ty: node.ty(), shape, inputs });
        self.expressions.push(expression);
        let id = (self.tape.entries.len() - 1) as Id;
        self.numbers.insert(node.identity(), id);
        id
    }

    fn leaf(&mut self, node: &Node, buffer: Buffer<u8>) {
        let next = self.bindings.buffers.len() as u32;
        let slot = *self.buffers.entry((buffer.address(), buffer.len())).or_insert(next);
        if slot == next {
            self.bindings.buffers.push(buffer);
        } else {
            // The same memory in the same shape is the same node.
            let shape = self.shape(node.shape());
            let same = self
                .tape
                .entries
                .iter()
                .position(|entry| entry.kind == Kind::Leaf(slot) && entry.ty == node.ty() && entry.shape == shape);
            if let Some(same) = same {
                self.numbers.insert(node.identity(), same as Id);
                return;
            }
        }
        self.push(node, Kind::Leaf(slot), SmallVec::new(), None);
    }

    fn value(&mut self, lanes: &Lanes) -> u32 {
        self.bindings.values.push(lanes.clone());
        (self.bindings.values.len() - 1) as u32
    }

    fn int(&mut self, value: i64) -> Int {
        if value.abs() <= SMALL {
            return Int::Known(value);
        }
        self.bindings.integers.push(value);
        Int::Given((self.bindings.integers.len() - 1) as u32)
    }

    fn view(&mut self, view: &View, input: &Shape) -> Kind {
        let mut maps = SmallVec::new();
        for map in &view.axes {
            let last = map.source.map_or(0, |axis| view.shape.extents()[usize::from(axis)].saturating_sub(1) as i64);
            let end = map.offset.saturating_add(map.stride.saturating_mul(last));
            self.tape.wide |= map.offset.abs().max(end.abs()).max(map.stride.abs()) >= 1 << 30;
            let (offset, stride) = (self.int(map.offset), self.int(map.stride));
            maps.push(Along { source: map.source, offset, stride, rule: map.rule });
        }
        let fill = view.fill.as_ref().map(|fill| self.value(fill));
        Kind::View(maps, fill, Growth::of(view.growth(input)))
    }

    fn add(&mut self, node: &Node, expression: Arc<Expression>) {
        let inputs: SmallVec<[Id; 3]> = expression.inputs.iter().map(|input| self.numbers[&input.identity()]).collect();
        let mut hasher = Quick::default();
        (&expression.op, &inputs).hash(&mut hasher);
        let hash = hasher.finish();
        let same = self.known.entry(hash).or_default();
        let found = same.iter().copied().find(|id| {
            let entry = &self.tape.entries[*id as usize];
            let known = self.expressions[*id as usize].as_ref();
            entry.inputs == inputs
                && entry.ty == node.ty()
                && self.bindings.shapes[usize::from(entry.shape)] == *node.shape()
                && known.is_some_and(|known| known.op == expression.op)
        });
        if let Some(id) = found {
            self.numbers.insert(node.identity(), id);
            return;
        }
        if let Op::Pack { count: true } = &expression.op
            && let Some(known) = self.packed_number(&inputs)
        {
            self.numbers.insert(node.identity(), known);
            return;
        }
        self.known.entry(hash).or_default().push(self.tape.entries.len() as Id);
        let kind = match &expression.op {
            Op::Fill(value) => {
                let known = self.scalars.get(&value.identity()).copied();
                let slot = known.unwrap_or_else(|| self.value(value.lanes()));
                self.scalars.insert(value.identity(), slot);
                Kind::Fill(slot)
            }
            Op::Elementwise(op) => Kind::Elementwise(op.clone()),
            Op::View(view) => self.view(view, expression.inputs[0].shape()),
            Op::Reshape => Kind::Reshape,
            Op::Position(axis) => Kind::Position(*axis),
            Op::Gather(rule, fill) => {
                let growth = Growth::of(node.shape().count() / expression.inputs[0].shape().count().max(1));
                Kind::Gather(*rule, fill.as_ref().map(|fill| self.value(fill)), growth)
            }
            Op::Concatenate(axis) => Kind::Concatenate(*axis),
            Op::Reduce(combine, axes) => Kind::Reduce(*combine, axes.clone()),
            Op::Extreme(extreme, axes) => Kind::Extreme(*extreme, axes.clone()),
            Op::Scan { combine, axis, inclusive } => Kind::Scan(*combine, *axis, *inclusive),
            Op::Product => Kind::Product,
            Op::Sort { keys, result } => Kind::Sort(keys.clone(), *result),
            Op::Histogram => Kind::Histogram(Histogram::room(node.shape().count() as u64)),
            Op::Pack { count } => Kind::Pack(*count),
            Op::Scatter(combine) => Kind::Scatter(*combine),
            Op::SegmentedScan(combine, axis) => Kind::SegmentedScan(*combine, *axis),
            Op::SegmentedReduce(combine) => {
                // Elements and segments are counted together.
                let both = expression.inputs.iter().map(|input| input.shape().count()).sum::<usize>();
                self.tape.wide |= both >= FAR;
                Kind::SegmentedReduce(*combine)
            }
        };
        let packs = kind == Kind::Pack(false);
        self.push(node, kind, inputs.clone(), Some(expression));
        // What is packed is always counted too.
        if packs && self.packed_number(&inputs).is_none() {
            let shape = self.shape(&Shape::from([]));
            self.tape.entries.push(Entry { kind: Kind::Pack(true), ty: Type::U32, shape, inputs });
            self.expressions.push(None);
        }
    }

    /// The node that says how many are packed of these inputs.
    fn packed_number(&self, inputs: &[Id]) -> Option<Id> {
        let found =
            self.tape.entries.iter().position(|entry| entry.kind == Kind::Pack(true) && entry.inputs.as_slice() == inputs);
        found.map(|id| id as Id)
    }
}
