//! Shapes: the extents of an array along its axes. The last axis varies fastest in memory.

use crate::expr::amount::Amount;
use crate::expr::terms::TermList;
use crate::expr::tracing::Tracing;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Maximum number of axes of an array.
pub const MAX_RANK: usize = 8;

/// Maximum number of elements of an array.
pub const MAX_COUNT: usize = 1 << 40;

/// Axes of an array, in order.
pub type Axes = SmallVec<[u8; 4]>;

/// Extents of an array. A shape without axes has a single element.
///
/// Inside a traced function a shape also knows how its extents depend on those of the inputs: see [`Amount`].
/// Passing a shape to an operation keeps that. Reading its extents as numbers makes the trace valid for these
/// numbers only.
#[derive(Clone, Default)]
pub struct Shape {
    extents: SmallVec<[usize; 4]>,
    origin: Option<Arc<ShapeTerms>>,
}

/// Terms of extents that depend on those of the inputs of a function.
struct ShapeTerms {
    tracing: Arc<Tracing>,
    terms: TermList,
}

impl Shape {
    /// Creates a shape from extents.
    pub fn new(extents: &[usize]) -> Shape {
        Shape { extents: SmallVec::from_slice(extents), origin: None }
    }

    /// Creates a shape from amounts, none of which is negative.
    pub fn from_amounts(amounts: &[Amount]) -> Shape {
        let extents = amounts.iter().map(|amount| usize::try_from(amount.value()).unwrap_or(0)).collect();
        let traced = amounts.iter().find(|amount| amount.is_traced()).and_then(Amount::tracing);
        let origin = traced.map(|tracing| {
            let terms = amounts.iter().map(|amount| amount.term_in(tracing)).collect();
            Arc::new(ShapeTerms { tracing: tracing.clone(), terms })
        });
        Shape { extents, origin }
    }

    /// Returns the shape of an input of a traced function.
    pub(crate) fn of_input(&self, number: usize, tracing: &Arc<Tracing>) -> Shape {
        let terms = tracing.terms().as_mut().map(|terms| terms.input(number, &self.extents));
        let origin = terms.map(|terms| Arc::new(ShapeTerms { tracing: tracing.clone(), terms }));
        Shape { extents: self.extents.clone(), origin }
    }

    /// Removes the terms of the extents.
    pub(crate) fn plain(mut self) -> Shape {
        self.origin = None;
        self
    }

    /// Returns whether the extents depend on those of the inputs of a function being traced.
    pub(crate) fn is_traced(&self) -> bool {
        self.tracing().is_some()
    }

    /// Returns the trace that the extents belong to, while it is under way.
    pub(crate) fn tracing(&self) -> Option<&Arc<Tracing>> {
        self.origin.as_ref().map(|origin| &origin.tracing).filter(|tracing| tracing.terms().is_some())
    }

    /// Returns the extent along an axis. The axis must exist.
    pub fn amount(&self, axis: usize) -> Amount {
        let value = self.extents[axis] as i64;
        match &self.origin {
            Some(origin) => Amount::of_term(value, &origin.tracing, origin.terms[axis]),
            None => Amount::from(value),
        }
    }

    /// Returns all extents.
    pub fn amounts(&self) -> SmallVec<[Amount; 4]> {
        (0..self.rank()).map(|axis| self.amount(axis)).collect()
    }

    /// Returns the number of elements.
    pub fn size(&self) -> Amount {
        match &self.origin {
            Some(_) => self.amounts().iter().fold(Amount::from(1), |product, amount| product.times(amount)),
            None => Amount::from(self.product()),
        }
    }

    /// Returns the number of axes.
    pub fn rank(&self) -> usize {
        self.extents.len()
    }

    /// Returns the extents. During tracing, the trace becomes valid for these numbers only: a call with
    /// others traces the function again.
    pub fn extents(&self) -> &[usize] {
        self.fix();
        &self.extents
    }

    /// Returns the extents without recording a condition. The caller records the conditions that it relies
    /// on.
    pub(crate) fn numbers(&self) -> &[usize] {
        &self.extents
    }

    /// Records the condition that the extents of a trace have these values.
    pub(crate) fn fix(&self) {
        if self.origin.is_some() {
            (0..self.rank()).for_each(|axis| self.fix_axis(axis));
        }
    }

    /// Records the condition that an extent of a trace has this value.
    pub(crate) fn fix_axis(&self, axis: usize) {
        if self.origin.is_some() {
            self.amount(axis).get();
        }
    }

    /// Returns the number of elements; `usize::MAX` if there are more. During tracing, the trace becomes
    /// valid for these extents only.
    pub fn count(&self) -> usize {
        self.fix();
        self.product()
    }

    /// Returns the number of elements without recording a condition. The caller records the conditions that
    /// it relies on.
    pub(crate) fn product(&self) -> usize {
        if self.extents.contains(&0) {
            return 0;
        }
        self.extents.iter().fold(1usize, |count, extent| count.saturating_mul(*extent))
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        if self.origin.is_some() {
            // The conditions: no extent is zero, or the first zero extent is zero.
            let zero = Amount::from(0);
            return (0..self.rank()).any(|axis| self.amount(axis).equals(&zero));
        }
        self.extents.contains(&0)
    }

    /// Returns whether an array can have this shape: the numbers of axes and elements are within the limits.
    /// Extents of 0 count as 1.
    pub fn is_possible(&self) -> bool {
        let is_possible = self.rank() <= MAX_RANK
            && self
                .extents
                .iter()
                .try_fold(1usize, |count, e| count.checked_mul((*e).max(1)))
                .is_some_and(|count| count <= MAX_COUNT);
        if !is_possible {
            // Possible shapes are checked again for other extents.
            self.fix();
        }
        is_possible
    }

    /// Returns the strides: the distance of neighbours along each axis, in elements.
    pub fn strides(&self) -> SmallVec<[usize; 4]> {
        let extents = self.extents();
        let mut strides: SmallVec<[usize; 4]> = SmallVec::from_elem(1, self.rank());
        for axis in (1..self.rank()).rev() {
            strides[axis - 1] = strides[axis].saturating_mul(extents[axis]);
        }
        strides
    }

    /// Returns the broadcast shape of two: axes of extent 1 are repeated, missing leading axes are added.
    /// `None` if there is none.
    pub fn broadcast(&self, other: &Shape) -> Option<Shape> {
        let (long, short) = if self.rank() >= other.rank() { (self, other) } else { (other, self) };
        let missing = long.rank() - short.rank();
        if self.origin.is_some() || other.origin.is_some() {
            let (mut amounts, one) = (long.amounts(), Amount::from(1));
            for axis in 0..short.rank() {
                let (own, theirs) = (&mut amounts[missing + axis], short.amount(axis));
                if own.equals(&theirs) {
                    continue;
                }
                if own.equals(&one) {
                    *own = theirs;
                } else if !theirs.equals(&one) {
                    return None;
                }
            }
            return Some(Shape::from_amounts(&amounts));
        }
        let mut extents = long.extents.clone();
        for (axis, extent) in short.extents.iter().enumerate() {
            let own = &mut extents[missing + axis];
            match (*own, *extent) {
                (a, b) if a == b => {}
                (1, b) => *own = b,
                (_, 1) => {}
                _ => return None,
            }
        }
        Some(Shape { extents, origin: None })
    }

    /// Removes some axes, or sets their extent to 1.
    #[must_use]
    pub fn without(&self, axes: &[u8], keep: bool) -> Shape {
        let gone = |axis: usize| axes.contains(&(axis as u8));
        if self.origin.is_some() {
            let all = self.amounts().into_iter().enumerate();
            let left = all.filter(|(axis, _)| keep || !gone(*axis));
            let left = left.map(|(axis, amount)| if gone(axis) { Amount::from(1) } else { amount });
            return Shape::from_amounts(&left.collect::<SmallVec<[Amount; 4]>>());
        }
        let all = self.extents.iter().enumerate().filter(|(axis, _)| keep || !gone(*axis));
        let extents = all.map(|(axis, extent)| if gone(axis) { 1 } else { *extent }).collect();
        Shape { extents, origin: None }
    }

    /// Replaces the extent of an axis.
    #[must_use]
    pub fn with(&self, axis: usize, extent: Amount) -> Shape {
        let mut amounts = self.amounts();
        amounts[axis] = extent;
        Shape::from_amounts(&amounts)
    }

    /// Returns whether both have equal extents for all extents of the inputs of a function. Records no
    /// condition.
    pub(crate) fn is_identical(&self, other: &Shape) -> bool {
        self.extents == other.extents
            && match (&self.origin, &other.origin) {
                (None, None) => true,
                (Some(a), Some(b)) => Arc::ptr_eq(a, b) || Arc::ptr_eq(&a.tracing, &b.tracing) && a.terms == b.terms,
                (Some(_), None) | (None, Some(_)) => false,
            }
    }
}

/// Comparison of shapes. During tracing, the outcome becomes a condition of the trace.
impl PartialEq for Shape {
    fn eq(&self, other: &Shape) -> bool {
        let is_equal = self.extents == other.extents;
        if (self.origin.is_some() || other.origin.is_some()) && self.rank() == other.rank() {
            // The conditions: all extents are equal, or the first that differs differs.
            let differs = (0..self.rank()).find(|axis| self.extents[*axis] != other.extents[*axis]);
            let axes = differs.map_or(0..self.rank(), |axis| axis..axis + 1);
            axes.for_each(|axis| {
                self.amount(axis).equals(&other.amount(axis));
            });
        }
        is_equal
    }
}

impl Eq for Shape {}

impl Hash for Shape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.extents().hash(state);
    }
}

impl PartialOrd for Shape {
    fn partial_cmp(&self, other: &Shape) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Shape {
    fn cmp(&self, other: &Shape) -> Ordering {
        self.extents().cmp(other.extents())
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shape").field(&self.extents()).finish()
    }
}

impl From<&[usize]> for Shape {
    fn from(extents: &[usize]) -> Shape {
        Shape::new(extents)
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(extents: [usize; N]) -> Shape {
        Shape::new(&extents)
    }
}

impl<const N: usize> From<&[usize; N]> for Shape {
    fn from(extents: &[usize; N]) -> Shape {
        Shape::new(extents)
    }
}

impl From<usize> for Shape {
    fn from(extent: usize) -> Shape {
        Shape::new(&[extent])
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Shape {
        shape.clone()
    }
}

impl From<Vec<usize>> for Shape {
    fn from(extents: Vec<usize>) -> Shape {
        Shape::new(&extents)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.extents())
    }
}
