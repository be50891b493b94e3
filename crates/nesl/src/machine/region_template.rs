//! Templates of regions: what they depend on, and what they leave on the stack.

use super::frame::Frame;
use crate::run::{Charged, Count, Entry, OffsetsResult, Reading, SegdesPart, Segments, VectorPart, VectorResult};
use crate::vcode::{FuncId, Type};
use broadloom_diag::Span;
use broadloom_graph::Template;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// Maximum number of failed traces of regions with the same start.
pub(super) const MAX_REFUSED: u32 = 2;

/// Number of rounds without a template after which a start is abandoned, if they are the majority.
const MAX_MISSED: u64 = 64;

/// Instruction of a function.
pub(super) type InstPosition = (FuncId, usize);

/// Entry at the start of a region, as far as a template depends on it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum EntryPart {
    /// An int of the host, and whether it is negative.
    Int(bool),
    /// A descriptor of the host of one segment.
    Single,
    Ints(Vec<i64>),
    Bytes(Arc<[u8]>),
    /// Floats of the host, as bits.
    Floats(Vec<u64>),
    Bools(Vec<bool>),
    Segments(Vec<usize>),
    /// A longer vector of the host, by identity.
    Long(WeakVector),
    /// Equal elements with a value that the host knows.
    Equal(Type, Box<EntryPart>),
    /// An arithmetic progression: its start and its step.
    Progression(i64, i64),
    Vector(Type, VectorPart),
    Segdes(SegdesPart),
    Pair(Box<(EntryPart, EntryPart)>),
    /// An entry that equals one further below.
    Again(usize),
}

/// Vector of the host that a template depends on. The template does not keep it alive.
#[derive(Clone, Debug)]
pub(super) enum WeakVector {
    Int(Weak<Charged<Vec<i64>>>),
    Bytes(Weak<Charged<Arc<[u8]>>>),
    Float(Weak<Charged<Vec<f64>>>),
    Bool(Weak<Charged<Vec<bool>>>),
    Segdes(Weak<Charged<Segments>>),
}

impl PartialEq for WeakVector {
    fn eq(&self, other: &WeakVector) -> bool {
        match (self, other) {
            (WeakVector::Int(a), WeakVector::Int(b)) => Weak::ptr_eq(a, b),
            (WeakVector::Bytes(a), WeakVector::Bytes(b)) => Weak::ptr_eq(a, b),
            (WeakVector::Float(a), WeakVector::Float(b)) => Weak::ptr_eq(a, b),
            (WeakVector::Bool(a), WeakVector::Bool(b)) => Weak::ptr_eq(a, b),
            (WeakVector::Segdes(a), WeakVector::Segdes(b)) => Weak::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl WeakVector {
    pub(super) fn of(entry: &Entry) -> Option<WeakVector> {
        Some(match entry {
            Entry::Int(values) => WeakVector::Int(Rc::downgrade(values)),
            Entry::Bytes(values) => WeakVector::Bytes(Rc::downgrade(values)),
            Entry::Float(values) => WeakVector::Float(Rc::downgrade(values)),
            Entry::Bool(values) => WeakVector::Bool(Rc::downgrade(values)),
            Entry::Segdes(segments) => WeakVector::Segdes(Rc::downgrade(segments)),
            Entry::Pair(_) | Entry::Device(_) | Entry::DeviceSegdes(_) => return None,
        })
    }

    pub(super) fn entry(&self) -> Option<Entry> {
        match self {
            WeakVector::Int(values) => values.upgrade().map(Entry::Int),
            WeakVector::Bytes(values) => values.upgrade().map(Entry::Bytes),
            WeakVector::Float(values) => values.upgrade().map(Entry::Float),
            WeakVector::Bool(values) => values.upgrade().map(Entry::Bool),
            WeakVector::Segdes(segments) => segments.upgrade().map(Entry::Segdes),
        }
    }
}

/// Entry at the end of a region.
#[derive(Debug)]
pub(super) enum EntryResult {
    /// An entry of the start.
    Same(usize),
    /// The constant of an instruction, whose copy on the device is kept.
    Constant(InstPosition),
    Int(usize),
    Single(usize),
    Ints(Vec<i64>),
    Bytes(Arc<[u8]>),
    Floats(Vec<f64>),
    Bools(Vec<bool>),
    Segments(Vec<usize>),
    /// One int or bool that the host reads.
    Value(Type, usize),
    /// Equal elements: the value, their number, and the index of the amount of elements charged to the run.
    Equal(Type, Box<EntryResult>, Count, usize),
    /// An arithmetic progression: its start and its step, the number of elements, and the index of the amount
    /// of those that are charged.
    Progression(i64, i64, Count, usize),
    /// A descriptor of one segment with this number of elements.
    One(Count),
    Vector(VectorResult),
    /// The lengths of segments, and their offsets if those were computed.
    Segdes(VectorResult, Option<OffsetsResult>),
    /// Segments whose lengths are derived from their offsets.
    Offsets(OffsetsResult),
    Pair(Box<(EntryResult, EntryResult)>),
    /// An entry of the end that equals one further below.
    Again(usize),
}

/// Region that was traced.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) site: Span,
    pub(super) parts: Vec<EntryPart>,
    pub(super) template: Template,
    pub(super) end: End,
}

/// End of a region.
#[derive(Debug)]
pub(super) struct End {
    pub(super) place: InstPosition,
    /// Callers inside the region, with stack positions relative to its start.
    pub(super) frames: Vec<Frame>,
    pub(super) base: usize,
    pub(super) site: Span,
    /// Maximum number of callers inside the region.
    pub(super) depth: usize,
    pub(super) answers: Vec<EntryResult>,
    pub(super) reading: Reading,
    /// The amounts of steps and of bytes.
    pub(super) steps: usize,
    pub(super) peaks: Vec<usize>,
}

/// Regions with the same start.
#[derive(Debug, Default)]
pub(super) struct Start {
    pub(super) met: u32,
    pub(super) refused: u32,
    pub(super) missed: u64,
    pub(super) served: u64,
    pub(super) regions: Vec<Rc<Region>>,
    /// The instructions that waited when the machine executed the region, each with the number of kernels
    /// launched until then in the last round.
    pub(super) walked: Vec<(InstPosition, u64)>,
    /// The last known int of each entry, and whether it has changed.
    pub(super) ints: Vec<(Option<i64>, bool)>,
}

impl Start {
    /// Records the ints of entries. An int that has never changed is a constant of templates; others are
    /// terms.
    pub(super) fn note(&mut self, ints: impl Iterator<Item = Option<i64>>) {
        for (index, int) in ints.enumerate() {
            match self.ints.get_mut(index) {
                Some((known, has_changed)) => {
                    *has_changed |= known.is_some() && int.is_some() && *known != int;
                    *known = int.or(*known);
                }
                None => self.ints.push((int, false)),
            }
        }
    }

    /// Tells whether templates for this start are no longer tried.
    pub(super) fn is_closed(&self) -> bool {
        self.regions.is_empty() && self.refused >= MAX_REFUSED || self.missed > MAX_MISSED && self.missed > self.served
    }
}

/// Templates of the regions of a program.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    pub(super) starts: HashMap<InstPosition, Start>,
    pub(super) templates: usize,
    pub(super) walk: Option<ExecutedRegion>,
    /// The start of the last region, if a template served it.
    pub(super) served: Option<InstPosition>,
}

/// Region executed by the machine.
#[derive(Debug)]
pub(super) struct ExecutedRegion {
    pub(super) start: InstPosition,
    /// The number of kernels launched before.
    pub(super) launches: u64,
    /// The start of the previous region, if a template served it.
    pub(super) behind: Option<InstPosition>,
}
