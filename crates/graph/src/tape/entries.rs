//! Tapes: the canonical form of an expression, and the key of its plan.
//!
//! A [`Tape`] lists the nodes that outputs depend on, inputs first, equal nodes once. It omits everything
//! that does not affect the code: values of scalars, extents, large offsets and strides, and the identity of
//! buffers. The [`Bindings`] hold the omitted parts, in the order of the slots that the tape names. Two
//! expressions with equal tapes share a plan.
//!
//! The tape keeps:
//!
//! - small offsets and strides, since neighbours of a stencil are part of its code;
//! - the equality of shapes;
//! - whether the last axis is long, and whether the one before it is not short;
//! - the extents of short last axes, if arrays are large: index arithmetic with constants takes less time;
//! - the growth factor of a view, as a class;
//! - whether an index, or a sum of indices, needs 64 bits.

use crate::expr::elementwise::Elementwise;
use crate::expr::kernel_settings::KernelSettings;
use crate::expr::operation::{Application, OperationResult, SharedKernel};
use crate::expr::shape::Shape;
use crate::tape::bindings::Bindings;
use broadloom_scalar::{Literal, Precision, Type};
use broadloom_skeleton::{Rule, cost};
use smallvec::SmallVec;

/// Number of a node of a tape.
pub(crate) type Id = u32;

/// Arrays with at least this many elements use 64-bit indices. Below it, 32-bit indices remain exact a little
/// beyond both ends of an array.
pub(crate) const FAR: usize = (1 << 31) - (1 << 24);

/// Axes with at least this extent: a sum of only a few positions along them fits 32 bits.
pub(crate) const DISTANT: usize = 1 << 26;

/// Number of a shape of a tape.
pub(crate) type ShapeId = u32;

/// Integer of the code: a part of it, or given in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Int {
    /// Part of the code.
    Known(i64),
    /// Slot of [`Bindings::integers`].
    Given(u32),
}

/// Map from a position to an index along an axis of the input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecordedAxisMap {
    pub(crate) source: Option<u8>,
    pub(crate) offset: Int,
    pub(crate) stride: Int,
    pub(crate) rule: Rule,
}

/// Class of the growth factor of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Growth {
    /// Factor below 2.
    None,
    /// Factor of 2 to 7.
    Some,
    /// Factor of 8 to 63.
    Much,
    /// Factor of 64 or more.
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

    /// Returns the minimum growth factor of the class.
    pub(crate) fn factor(self) -> u64 {
        match self {
            Growth::None => 1,
            Growth::Some => 2,
            Growth::Much => 8,
            Growth::Huge => 64,
        }
    }
}

/// Kind of a node of a tape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Slot of [`Bindings::buffers`].
    Leaf(u32),
    /// Slot of [`Bindings::values`].
    Fill(u32),
    Elementwise(Elementwise),
    /// View: its maps, a slot of [`Bindings::values`] for the constant outside, and its growth.
    View(SmallVec<[RecordedAxisMap; 4]>, Option<u32>, Growth),
    /// Reshape: the number of axes that each axis is split into; an empty list if it does anything else.
    Reshape(SmallVec<[u8; 4]>),
    Position(u8),
    Gather(Rule, Option<u32>, Growth),
    Concatenate(u8),
    Pattern(OperationResult),
}

impl Kind {
    /// Returns the name in plans.
    pub(crate) fn name(&self) -> String {
        match self {
            Kind::Leaf(_) => "input".into(),
            Kind::Fill(_) => "fill".into(),
            Kind::Elementwise(op) => op.to_string(),
            Kind::View(..) => "view".into(),
            Kind::Reshape(_) => "reshape".into(),
            Kind::Position(axis) => format!("position {axis}"),
            Kind::Gather(..) => "gather".into(),
            Kind::Concatenate(axis) => format!("concatenate {axis}"),
            Kind::Pattern(applied) => applied.operation().name(),
        }
    }
}

/// Node of a tape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) ty: Type,
    pub(crate) shape: ShapeId,
    pub(crate) inputs: SmallVec<[Id; 3]>,
}

impl Entry {
    /// Returns the operation of the entry if it combines elements of several positions.
    pub(crate) fn applied(&self) -> Option<&OperationResult> {
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

    /// Returns whether it combines elements of several positions.
    pub(crate) fn is_pattern(&self) -> bool {
        self.applied().is_some()
    }
}

/// Facts about a shape that affect the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ShapeClass {
    pub(crate) rank: u8,
    /// True if the last axis is long.
    pub(crate) rows: bool,
    /// True if the axis before the last has enough rows for a strip.
    pub(crate) tall: bool,
    /// True if all axes before the last two have extent 1.
    pub(crate) flat: bool,
    /// True if the shape has long and many rows, and its arrays do not stay in the caches of cores between
    /// kernels.
    pub(crate) large: bool,
    /// Extents of the short axes at the end that are part of the code, the last axis first. 0 where an extent is
    /// given in a run.
    pub(crate) short: [u8; SHORT_AXES],
    /// Node of the first extent if only the device knows it. The extents of a run are then bounds.
    pub(crate) length: Option<Id>,
}

/// Maximum number of axes whose extents are part of the code.
pub(crate) const SHORT_AXES: usize = 3;

/// Minimum elements of an array for which extents of short axes are part of the code.
const SPECIALISED: usize = 1 << 14;

/// Returns whether extents of short axes are part of the code of an expression with these shapes.
pub(crate) fn is_specialised<'s>(mut shapes: impl Iterator<Item = &'s Shape>) -> bool {
    shapes.any(|shape| shape.rank() > 1 && shape.product() >= SPECIALISED)
}

impl ShapeClass {
    /// Returns the class of a shape. `length` is the node of its first extent. If `specialised`, extents of short
    /// axes are part of the code.
    pub(crate) fn of(shape: &Shape, length: Option<Id>, specialised: bool) -> ShapeClass {
        let extents = shape.numbers();
        let rows = shape.rank() < 2 || extents.last().is_some_and(|last| *last >= LONG);
        let tall = shape.rank() >= 2 && extents[shape.rank() - 2] >= TALL;
        let flat = extents.iter().rev().skip(2).all(|extent| *extent == 1);
        let large = rows && tall && length.is_none() && shape.count() >= cost::LARGE;
        let mut short = [0; SHORT_AXES];
        if specialised {
            // The first axis is usually the number of something.
            let last = extents.iter().skip(1).rev().take_while(|extent| (1..LONG).contains(*extent));
            short.iter_mut().zip(last).for_each(|(short, extent)| *short = *extent as u8);
        }
        ShapeClass { rank: shape.rank() as u8, rows, tall, flat, large, short, length }
    }

    /// Returns the extent of an axis if it is part of the code.
    pub(crate) fn known(self, axis: usize) -> Option<u64> {
        let back = usize::from(self.rank).checked_sub(axis + 1)?;
        self.short.get(back).filter(|extent| **extent > 0).map(|extent| u64::from(*extent))
    }

    /// Returns the minimum extent along an axis, unless the shape has no elements.
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

/// Canonical form of an expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tape {
    pub(crate) entries: Vec<Entry>,
    pub(crate) outputs: SmallVec<[Id; 2]>,
    pub(crate) shapes: Vec<ShapeClass>,
    /// True if indices have 64 bits.
    pub(crate) wide: bool,
    /// True if an axis is so long that sums of positions along it may need more than 32 bits.
    pub(crate) distant: bool,
    /// Precision of elementary functions.
    pub(crate) precision: Precision,
    /// True if kernels over one domain are joined even if they share nothing.
    pub(crate) joins: bool,
    /// Values that are part of the code, by their slots.
    pub(crate) literals: Vec<(u32, Literal)>,
    /// Settings of the kernels.
    pub(crate) kernels: KernelSettings,
}

/// Returns whether a known value makes the code shorter: 0, 1, 2, a half, their negatives, and bools.
pub(crate) fn is_simple(value: Literal) -> bool {
    match (value.as_f64(), value.as_i128()) {
        (Some(number), _) => [0.0, 0.5, 1.0, 2.0].contains(&number.abs()),
        (None, Some(number)) => number.abs() <= 2,
        (None, None) => value.as_bool().is_some(),
    }
}

/// Returns whether an index along an axis of the input of a view needs 64 bits before its boundary rule.
pub(crate) fn is_far(offset: i64, stride: i64, source: Option<u8>, shape: &Shape) -> bool {
    let last = source.map_or(0, |axis| shape.numbers()[usize::from(axis)].saturating_sub(1) as i64);
    let end = offset.saturating_add(stride.saturating_mul(last));
    offset.abs().max(end.abs()).max(stride.abs()) >= 1 << 30
}

/// Maximum absolute value of offsets and strides that are part of the code.
pub(crate) const SMALL: i64 = 16;

/// Minimum extent of a long last axis.
pub(crate) const LONG: usize = cost::LANES as usize;

/// Minimum number of rows along the axis before the last for strips.
pub(crate) const TALL: usize = cost::TALL;

impl Tape {
    /// Creates an empty tape for recording.
    pub(crate) fn empty(precision: Precision, joins: bool) -> Tape {
        let (entries, outputs, shapes, literals) = (vec![], SmallVec::new(), vec![], vec![]);
        let kernels = KernelSettings::default();
        Tape { entries, outputs, shapes, wide: false, distant: false, precision, joins, literals, kernels }
    }

    /// Returns whether an expression that differs only in its sizes would have this tape: extents, offsets
    /// and strides are in the same classes. The ranks must be equal.
    pub(crate) fn accepts(&self, bindings: &Bindings) -> bool {
        let mut classes = self.shapes.iter().zip(&bindings.shapes);
        let specialised = is_specialised(bindings.shapes.iter());
        if !classes.all(|(class, shape)| *class == ShapeClass::of(shape, class.length, specialised)) {
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
            let is_grown = |own: Growth, maps: &[RecordedAxisMap]| {
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

    /// Returns whether the code depends on the growth of a view with these maps, or of a gather: the input is
    /// recomputed for it, or an index wraps around or is mirrored.
    pub(crate) fn grows(&self, mut input: Id, maps: &[RecordedAxisMap]) -> bool {
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

    /// Returns the node behind reshapes.
    pub(crate) fn behind(&self, id: Id) -> Id {
        match &self.entry(id).kind {
            Kind::Reshape(_) => self.behind(self.entry(id).inputs[0]),
            _ => id,
        }
    }

    pub(crate) fn rank(&self, id: Id) -> usize {
        usize::from(self.shapes[self.entry(id).shape as usize].rank)
    }

    /// Returns the node of the first extent of another node, if only the device knows that extent.
    pub(crate) fn length(&self, id: Id) -> Option<Id> {
        self.shapes[self.entry(id).shape as usize].length
    }

    /// Returns the operation of a node if it combines elements of several positions.
    pub(crate) fn applied(&self, id: Id) -> Option<&OperationResult> {
        self.entry(id).applied()
    }

    /// Returns whether threads can compute a node in patches of rows and columns. Its elements must be
    /// scalars of 4 bytes, so that an access of 16 bytes takes four. Its rows must be long and many, and the
    /// host must know their number.
    pub(crate) fn fits_patches(&self, id: Id) -> bool {
        let entry = self.entry(id);
        let class = self.shapes[entry.shape as usize];
        let has_room = class.rows && class.tall && class.length.is_none();
        has_room && entry.ty.is_scalar() && entry.ty.bytes() == cost::PATCH_BYTES
    }

    /// Returns whether a node is a trap: the memory of its second input, written if an element of the first
    /// is true.
    pub(crate) fn is_trap(&self, id: Id) -> bool {
        self.applied(id).is_some_and(|applied| applied.operation().is_trap())
    }

    /// Returns facts about an application of an operation.
    pub(crate) fn application(&self, id: Id) -> Application {
        let entry = self.entry(id);
        let wanted = match self.applied(id).filter(|applied| applied.operation().joining() == SharedKernel::Results) {
            None => SmallVec::new(),
            Some(applied) => self.results(applied, &entry.inputs).collect(),
        };
        Application {
            types: entry.inputs.iter().map(|input| self.entry(*input).ty).collect(),
            ranks: entry.inputs.iter().map(|input| self.rank(*input)).collect(),
            positions: entry.inputs.iter().map(|input| matches!(self.entry(*input).kind, Kind::Position(_))).collect(),
            ty: entry.ty,
            wide: self.wide,
            wanted,
        }
    }

    /// Returns the results of an operation on these inputs that are in the tape.
    fn results<'t>(&'t self, applied: &'t OperationResult, inputs: &'t [Id]) -> impl Iterator<Item = u8> + 't {
        let own = move |entry: &'t Entry| match &entry.kind {
            Kind::Pattern(other) if entry.inputs.as_slice() == inputs => Some(other),
            _ => None,
        };
        self.entries.iter().filter_map(own).filter(move |other| other.is_same_operation(applied)).map(OperationResult::result)
    }
}
