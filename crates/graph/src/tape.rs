//! Tapes: the canonical form of an expression, and the key of its plan.
//!
//! A [`Tape`] lists the nodes that outputs depend on, inputs first, equal nodes once. It omits everything that does not shape the code:
//! values of scalars, extents, large offsets and strides, and which buffer is which. The [`Bindings`] hold what was omitted, in the order of
//! the slots that the tape names. Two expressions with equal tapes share a plan.
//!
//! The tape keeps small offsets and strides (neighbours of a stencil are part of its code), which shapes are equal, whether a last axis is long
//! and the one before it not short, how much a view enlarges (in classes), and whether some index, or a sum of them, needs 64 bits.

use crate::chain::Chains;
use crate::op::Elementwise;
use crate::operation::{Applied, Joining, Site};
use crate::shape::Shape;
use crate::template::Symbols;
use crate::view::Rule;
use broadloom_device::Buffer;
use broadloom_scalar::{Lanes, Literal, Precision, Type};
use broadloom_skeleton::cost;
use smallvec::SmallVec;

/// The number of a node of a tape.
pub type Id = u32;

/// Arrays with at least this many elements use 64-bit indices. With fewer, indices of 32 bits are exact a little beyond both ends of an array.
pub(crate) const FAR: usize = (1 << 31) - (1 << 24);

/// So long an axis has positions of which not many may be added up in 32 bits.
pub(crate) const DISTANT: usize = 1 << 26;

/// The number of a shape of a tape.
pub type ShapeId = u32;

/// An integer of the code: part of it, or given when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Int {
    /// Part of the code.
    Known(i64),
    /// A slot of [`Bindings::integers`].
    Given(u32),
}

/// The map from a position to an index along an axis of the input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Along {
    pub(crate) source: Option<u8>,
    pub(crate) offset: Int,
    pub(crate) stride: Int,
    pub(crate) rule: Rule,
}

/// Classes of how much a view enlarges.
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
    pub(crate) fn of(factor: usize) -> Growth {
        match factor {
            0..2 => Growth::None,
            2..8 => Growth::Some,
            8..64 => Growth::Much,
            _ => Growth::Huge,
        }
    }

    /// Returns the least factor by which elements become more.
    pub(crate) fn factor(self) -> u64 {
        match self {
            Growth::None => 1,
            Growth::Some => 2,
            Growth::Much => 8,
            Growth::Huge => 64,
        }
    }
}

/// Kinds of nodes of a tape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A slot of [`Bindings::buffers`].
    Leaf(u32),
    /// A slot of [`Bindings::values`].
    Fill(u32),
    Elementwise(Elementwise),
    /// The maps, a slot of [`Bindings::values`] for what is outside, how much it enlarges.
    View(SmallVec<[Along; 4]>, Option<u32>, Growth),
    /// Into how many axes each axis is split, where that is all; else nothing.
    Reshape(SmallVec<[u8; 4]>),
    Position(u8),
    Gather(Rule, Option<u32>, Growth),
    Concatenate(u8),
    Pattern(Applied),
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) ty: Type,
    pub(crate) shape: ShapeId,
    pub(crate) inputs: SmallVec<[Id; 3]>,
}

impl Entry {
    /// Returns the operation behind it, if it combines elements of several positions.
    pub(crate) fn applied(&self) -> Option<&Applied> {
        match &self.kind {
            Kind::Pattern(applied) => Some(applied),
            Kind::Leaf(_)
            | Kind::Fill(_)
            | Kind::Elementwise(_)
            | Kind::View(..)
            | Kind::Reshape(_)
            | Kind::Position(_)
            | Kind::Gather(..)
            | Kind::Concatenate(_) => None,
        }
    }

    /// Returns whether it is more than a function of a position.
    pub(crate) fn is_pattern(&self) -> bool {
        self.applied().is_some()
    }
}

/// Facts about a shape that code depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ShapeClass {
    pub(crate) rank: u8,
    /// True if the last axis is long.
    pub(crate) rows: bool,
    /// True if there are enough rows along the axis before it for a strip of them.
    pub(crate) tall: bool,
    /// True if all axes above the last two have one position.
    pub(crate) flat: bool,
    /// True if arrays do not stay in the caches of cores from one kernel to the next, where there are long and many rows.
    pub(crate) large: bool,
    /// The node that holds the first extent, where only the device knows it. The extents of a run are bounds then.
    pub(crate) length: Option<Id>,
}

impl ShapeClass {
    /// The class of a shape, and the node that holds its first extent.
    pub(crate) fn of(shape: &Shape, length: Option<Id>) -> ShapeClass {
        let extents = shape.numbers();
        let rows = shape.rank() < 2 || extents.last().is_some_and(|last| *last >= LONG);
        let tall = shape.rank() >= 2 && extents[shape.rank() - 2] >= TALL;
        let flat = extents.iter().rev().skip(2).all(|extent| *extent == 1);
        let large = rows && tall && length.is_none() && shape.count() >= cost::LARGE;
        ShapeClass { rank: shape.rank() as u8, rows, tall, flat, large, length }
    }

    /// Returns the least extent, unless the shape has no elements.
    pub(crate) fn least(self, axis: usize) -> u64 {
        let rank = usize::from(self.rank);
        if axis == 0 && self.length.is_some() {
            return 1;
        }
        match rank.checked_sub(axis) {
            Some(1) if rank >= 2 && self.rows => LONG as u64,
            Some(2) if self.tall => TALL as u64,
            _ => 1,
        }
    }
}

/// The canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tape {
    pub(crate) entries: Vec<Entry>,
    pub(crate) outputs: SmallVec<[Id; 2]>,
    pub(crate) shapes: Vec<ShapeClass>,
    /// True if indices have 64 bits.
    pub(crate) wide: bool,
    /// True if an axis is so long that sums of positions along it may need more than 32 bits.
    pub(crate) distant: bool,
    /// Precision of elementary functions.
    pub(crate) precision: Precision,
    /// True if kernels over one domain become one although they share nothing.
    pub(crate) joins: bool,
    /// Values that are part of the code, by their slots.
    pub(crate) literals: Vec<(u32, Literal)>,
    /// Rule for joining kernels to chains.
    pub(crate) chains: Chains,
    /// True if each thread has one position where there are many threads.
    pub(crate) alone: bool,
}

/// Returns whether code becomes shorter where a value is known: 0, 1, 2, a half, their negatives, and bools.
pub(crate) fn is_simple(value: Literal) -> bool {
    match (value.as_f64(), value.as_i128()) {
        (Some(number), _) => [0.0, 0.5, 1.0, 2.0].contains(&number.abs()),
        (None, Some(number)) => number.abs() <= 2,
        (None, None) => value.as_bool().is_some(),
    }
}

/// The part of an expression that its tape leaves out.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    /// Memory; none where a function is traced that will be given it.
    pub(crate) buffers: Vec<Option<Buffer<u8>>>,
    pub values: Vec<Lanes>,
    pub(crate) integers: Vec<i64>,
    pub shapes: Vec<Shape>,
    /// Values that come with a call of a function.
    pub(crate) symbols: Symbols,
}

/// Returns whether an index along an axis of the input of a view needs 64 bits before its rule.
pub(crate) fn is_far(offset: i64, stride: i64, source: Option<u8>, shape: &Shape) -> bool {
    let last = source.map_or(0, |axis| shape.numbers()[usize::from(axis)].saturating_sub(1) as i64);
    let end = offset.saturating_add(stride.saturating_mul(last));
    offset.abs().max(end.abs()).max(stride.abs()) >= 1 << 30
}

/// Offsets and strides up to this are part of the code.
pub(crate) const SMALL: i64 = 16;

/// Elements from which on a last axis is long.
pub(crate) const LONG: usize = cost::LANES as usize;

/// Rows from which on the axis before the last has strips of them.
pub(crate) const TALL: usize = cost::TALL;

impl Tape {
    /// Nothing, to be written to.
    pub fn empty(precision: Precision, joins: bool) -> Tape {
        let (entries, outputs, shapes, literals) = (vec![], SmallVec::new(), vec![], vec![]);
        let (chains, alone) = (Chains::default(), false);
        Tape { entries, outputs, shapes, wide: false, distant: false, precision, joins, literals, chains, alone }
    }

    /// Returns whether an expression that differs in sizes alone would have this tape: extents, offsets and strides are in its classes. Ranks are the same.
    pub(crate) fn accepts(&self, bindings: &Bindings) -> bool {
        let mut classes = self.shapes.iter().zip(&bindings.shapes);
        if !classes.all(|(class, shape)| *class == ShapeClass::of(shape, class.length)) {
            return false;
        }
        let shape_of = |id: Id| &bindings.shapes[self.entry(id).shape as usize];
        let value = |int: Int| match int {
            Int::Known(value) => value,
            Int::Given(slot) => bindings.integers[slot as usize],
        };
        let mut wide = bindings.shapes.iter().any(|shape| shape.count() >= FAR);
        let distant = bindings.shapes.iter().flat_map(|shape| shape.extents()).any(|extent| *extent >= DISTANT);
        for entry in &self.entries {
            let shape = &bindings.shapes[entry.shape as usize];
            let is_grown = |own: Growth, maps: &[Along]| {
                let factor = shape.count() / shape_of(entry.inputs[0]).count().max(1);
                own == Growth::of(factor) || !self.grows(entry.inputs[0], maps)
            };
            match &entry.kind {
                Kind::View(maps, _, growth) => {
                    wide |= maps.iter().any(|map| is_far(value(map.offset), value(map.stride), map.source, shape));
                    if !is_grown(*growth, maps) {
                        return false;
                    }
                }
                Kind::Gather(_, _, growth) if !is_grown(*growth, &[]) => return false,
                Kind::Pattern(applied) => {
                    let inputs: SmallVec<[&Shape; 4]> = entry.inputs.iter().map(|input| shape_of(*input)).collect();
                    wide |= applied.operation().counted(&inputs) >= FAR;
                }
                Kind::Leaf(_)
                | Kind::Fill(_)
                | Kind::Elementwise(_)
                | Kind::Reshape(_)
                | Kind::Position(_)
                | Kind::Gather(..)
                | Kind::Concatenate(_) => {}
            }
        }
        (wide, distant) == (self.wide, self.distant)
    }

    /// Returns whether code depends on how much a view with these maps or a gather enlarges an input: something is computed again for it, or its indices
    /// go around.
    pub(crate) fn grows(&self, mut input: Id, maps: &[Along]) -> bool {
        if maps.iter().any(|map| matches!(map.rule, Rule::Wrap | Rule::Mirror)) {
            return true;
        }
        loop {
            match &self.entry(input).kind {
                Kind::View(..) | Kind::Reshape(_) => input = self.entry(input).inputs[0],
                Kind::Elementwise(_) | Kind::Gather(..) | Kind::Concatenate(_) => return true,
                Kind::Leaf(_) | Kind::Fill(_) | Kind::Position(_) | Kind::Pattern(_) => return false,
            }
        }
    }

    pub(crate) fn entry(&self, id: Id) -> &Entry {
        &self.entries[id as usize]
    }

    pub(crate) fn rank(&self, id: Id) -> usize {
        usize::from(self.shapes[self.entry(id).shape as usize].rank)
    }

    /// The node that holds the first extent of another, where only the device knows it.
    pub(crate) fn length(&self, id: Id) -> Option<Id> {
        self.shapes[self.entry(id).shape as usize].length
    }

    /// The operation behind a node, if it combines elements of several positions.
    pub(crate) fn applied(&self, id: Id) -> Option<&Applied> {
        self.entry(id).applied()
    }

    /// Returns whether threads can compute a node in patches of rows and columns: scalars that accesses of 16 bytes take four of, in long and many rows whose
    /// number the host knows.
    pub(crate) fn fits_patches(&self, id: Id) -> bool {
        let entry = self.entry(id);
        let class = self.shapes[entry.shape as usize];
        let has_room = class.rows && class.tall && class.length.is_none();
        has_room && entry.ty.is_scalar() && entry.ty.bytes() == cost::PATCH_BYTES
    }

    /// Returns whether a node is a trap: it is the memory of its second input, written where an element of the first is true.
    pub(crate) fn is_trap(&self, id: Id) -> bool {
        self.applied(id).is_some_and(|applied| applied.operation().is_trap())
    }

    /// Facts about an application of an operation.
    pub(crate) fn site(&self, id: Id) -> Site {
        let entry = self.entry(id);
        let wanted = match self.applied(id).filter(|applied| applied.operation().joining() == Joining::Results) {
            None => SmallVec::new(),
            Some(applied) => self.results(applied, &entry.inputs).collect(),
        };
        Site {
            types: entry.inputs.iter().map(|input| self.entry(*input).ty).collect(),
            ranks: entry.inputs.iter().map(|input| self.rank(*input)).collect(),
            positions: entry.inputs.iter().map(|input| matches!(self.entry(*input).kind, Kind::Position(_))).collect(),
            ty: entry.ty,
            wide: self.wide,
            wanted,
        }
    }

    /// The results of an operation on these inputs that are in the tape.
    fn results<'t>(&'t self, applied: &'t Applied, inputs: &'t [Id]) -> impl Iterator<Item = u8> + 't {
        let own = move |entry: &'t Entry| match &entry.kind {
            Kind::Pattern(other) if entry.inputs.as_slice() == inputs => Some(other),
            _ => None,
        };
        self.entries.iter().filter_map(own).filter(move |other| other.is_same_operation(applied)).map(Applied::result)
    }
}
