//! Views: the element of the input that each element of a view reads.
//!
//! For each axis of its *input*, a view has an affine map from one axis of its output, or a fixed index. It
//! also has a boundary rule for indices outside the input (`papers/accelerator` §4.3): a constant, the
//! nearest element, or an index that wraps around or is mirrored. Section, shift, rotate, reverse, replicate,
//! expand, pad, transpose, broadcasting, dropped and added axes are all such views. A view of a view is one
//! view if the rules allow it (§5.3).

use crate::expr::amount::Amount;
use crate::expr::error::{Error, Result};
use crate::expr::shape::Shape;
use broadloom_scalar::Lanes;
use broadloom_skeleton::Rule;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// Index along one axis of the input: `offset + stride * position[source]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AxisMap {
    /// The axis of the output; `None` if the index is `offset`.
    pub source: Option<u8>,
    /// Index of position 0.
    pub offset: i64,
    /// Distance between the indices of neighbouring positions.
    pub stride: i64,
    /// Boundary rule.
    pub rule: Rule,
}

impl AxisMap {
    /// Maps an output index along an axis to the same input index.
    pub const fn same(axis: usize) -> AxisMap {
        AxisMap { source: Some(axis as u8), offset: 0, stride: 1, rule: Rule::Inside }
    }

    /// Maps each position to one index.
    pub const fn fixed(offset: i64) -> AxisMap {
        AxisMap { source: None, offset, stride: 0, rule: Rule::Inside }
    }

    /// Returns the minimum and maximum index before the boundary rule, for an output that is not empty.
    fn range(&self, shape: &Shape) -> (i64, i64) {
        let last = self.source.map_or(0, |axis| shape.numbers()[usize::from(axis)] as i64 - 1);
        let end = self.offset.saturating_add(self.stride.saturating_mul(last));
        (self.offset.min(end), self.offset.max(end))
    }
}

/// View: maps for the axes of the input, the shape of the output, and the constant outside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// Maps, one for each axis of the input.
    pub axes: SmallVec<[AxisMap; 4]>,
    /// Shape of the output.
    pub shape: Shape,
    /// Value outside if a rule is [`Rule::Constant`].
    pub fill: Option<Lanes>,
    /// Offsets that depend on the extents of a function's inputs; `None` if all are constants.
    traced: Option<Box<Offsets>>,
}

/// Offsets of a view, one for each axis of its input.
#[derive(Clone, Debug)]
struct Offsets(SmallVec<[Amount; 4]>);

impl PartialEq for Offsets {
    fn eq(&self, other: &Offsets) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| a.is_identical(b))
    }
}

impl Eq for Offsets {}

impl Hash for Offsets {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// Limit of numbers; larger ones are refused, so that index arithmetic cannot overflow.
const MAX_NUMBER: u64 = 1 << 40;

impl View {
    /// Creates a view and drops boundary rules that are not needed. `input` is the shape of the viewed array.
    pub fn new(operation: &str, input: &Shape, axes: &[AxisMap], shape: Shape, fill: Option<Lanes>) -> Result<View> {
        if !input.is_traced() && !shape.is_traced() {
            return View::of_numbers(operation, input, axes, shape, fill);
        }
        let offsets: SmallVec<[Amount; 4]> = axes.iter().map(|map| Amount::from(map.offset)).collect();
        View::with_offsets(operation, input, axes, &offsets, shape, fill)
    }

    /// Returns the number of elements if it is the start of a line, whatever the extents of a traced function.
    pub(crate) fn first_elements(&self) -> Option<usize> {
        let is_same = |map: &AxisMap| *map == AxisMap::same(0);
        let is_start = self.axes.len() == 1 && self.axes.iter().all(is_same) && self.traced.is_none();
        match self.shape.numbers() {
            [count] if is_start && !self.shape.is_traced() => Some(*count),
            _ => None,
        }
    }

    /// Creates a view whose offsets may depend on the extents of a function's inputs; the offsets of the maps
    /// are ignored. During tracing, the findings become conditions of the trace: dropped rules, and numbers
    /// of an error.
    pub(crate) fn with_offsets(
        operation: &str,
        input: &Shape,
        axes: &[AxisMap],
        offsets: &[Amount],
        shape: Shape,
        fill: Option<Lanes>,
    ) -> Result<View> {
        let maps: SmallVec<[AxisMap; 4]> =
            axes.iter().zip(offsets).map(|(map, offset)| AxisMap { offset: offset.value(), ..*map }).collect();
        let view = View::of_numbers(operation, input, &maps, shape.clone(), fill);
        let is_traced = input.is_traced() || shape.is_traced() || offsets.iter().any(Amount::is_traced);
        if !is_traced {
            return view;
        }
        let fix = || {
            input.fix();
            shape.fix();
            offsets.iter().for_each(|offset| {
                offset.get();
            });
        };
        let Ok(mut view) = view else {
            fix();
            return view;
        };
        if shape.numbers().contains(&0) {
            let _ = shape.is_empty();
            return Ok(view);
        }
        let mut own = SmallVec::new();
        for (axis, map) in view.axes.iter().enumerate() {
            let (offset, extent) = (&offsets[axis], input.amount(axis));
            match map.rule {
                Rule::Inside if map.offset != offset.value() => fix(),
                Rule::Inside => {
                    let count = map.source.map_or(Amount::from(1), |source| shape.amount(usize::from(source)));
                    let is_whole = map.offset == 0 && !offset.is_traced() && map.stride == 1 && count.is_identical(&extent);
                    let last = count.minus(&1.into()).times(&map.stride.into());
                    if is_whole {
                        own.push(offset.clone());
                        continue;
                    }
                    let end = offset.plus(&last);
                    let (low, high) = if map.stride < 0 { (&end, offset) } else { (offset, &end) };
                    // All indices are inside: the rule was dropped, or none is needed.
                    let _ = low.is_less(&0.into());
                    let _ = high.is_less(&extent);
                }
                Rule::Clamp | Rule::Wrap | Rule::Mirror => {
                    let _ = extent.equals(&0.into());
                }
                Rule::Constant => {}
            }
            own.push(if map.offset == offset.value() { offset.clone() } else { map.offset.into() });
        }
        if own.iter().any(Amount::is_traced) {
            view.traced = Some(Box::new(Offsets(own)));
        }
        Ok(view)
    }

    /// Returns the offset along an axis of the input.
    pub(crate) fn offset(&self, axis: usize) -> Amount {
        let known = || Amount::from(self.axes[axis].offset);
        self.traced.as_ref().map_or_else(known, |offsets| offsets.0[axis].clone())
    }

    /// Returns whether the offset along an axis of the input depends on the extents of a function's inputs.
    pub(crate) fn is_traced(&self, axis: usize) -> bool {
        self.traced.as_ref().is_some_and(|offsets| offsets.0[axis].is_traced())
    }

    /// Records the condition that the numbers of the view have these values.
    pub(crate) fn fix(&self) {
        self.shape.fix();
        (0..self.axes.len()).for_each(|axis| {
            self.offset(axis).get();
        });
    }

    /// Returns whether both are equal for all extents of a function's inputs. Records no condition.
    pub(crate) fn is_identical(&self, other: &View) -> bool {
        self.axes == other.axes && self.fill == other.fill && self.traced == other.traced && self.shape.is_identical(&other.shape)
    }

    fn of_numbers(operation: &str, input: &Shape, axes: &[AxisMap], shape: Shape, fill: Option<Lanes>) -> Result<View> {
        let range = |reason: String| Error::Range { operation: operation.to_owned(), shape: input.clone(), reason };
        if !shape.is_possible() {
            return Err(range(format!("a result of shape {shape} is too large")));
        }
        if axes.len() != input.rank() {
            return Err(range(format!("{} axes are described", axes.len())));
        }
        let is_empty = shape.numbers().contains(&0);
        let mut view = View { axes: SmallVec::from_slice(axes), shape, fill, traced: None };
        for (axis, map) in view.axes.iter_mut().enumerate() {
            let extent = input.numbers()[axis] as i64;
            if map.offset.unsigned_abs() > MAX_NUMBER || map.stride.unsigned_abs() > MAX_NUMBER {
                return Err(range(format!("a number along axis {axis} is too large")));
            }
            if map.source.is_none() {
                map.stride = 0;
            } else if map.stride == 0 {
                // The index is fixed. Extent 1 of the output axis does not fix it: it is treated like any
                // other extent.
                *map = AxisMap { source: None, stride: 0, ..*map };
            }
            if is_empty {
                *map = AxisMap { rule: Rule::Inside, ..*map };
                continue;
            }
            let (low, high) = map.range(&view.shape);
            if low >= 0 && high < extent {
                map.rule = Rule::Inside;
                continue;
            }
            match map.rule {
                Rule::Inside => return Err(range(format!("indices from {low} to {high} leave axis {axis}"))),
                Rule::Clamp | Rule::Wrap | Rule::Mirror if extent == 0 => {
                    return Err(range(format!("axis {axis} has no elements to take")));
                }
                Rule::Wrap if map.source.is_none() => *map = AxisMap::fixed(map.offset.rem_euclid(extent)),
                Rule::Clamp if map.source.is_none() => *map = AxisMap::fixed(map.offset.clamp(0, extent - 1)),
                Rule::Mirror if map.source.is_none() => {
                    *map = AxisMap::fixed(Rule::Mirror.index(map.offset, extent).unwrap_or(0));
                }
                Rule::Clamp | Rule::Wrap | Rule::Mirror | Rule::Constant => {}
            }
        }
        if !view.axes.iter().any(|map| map.rule == Rule::Constant) {
            view.fill = None;
        }
        Ok(view)
    }

    /// Creates the identity view of an array.
    pub(crate) fn whole(shape: &Shape) -> View {
        View { axes: (0..shape.rank()).map(AxisMap::same).collect(), shape: shape.clone(), fill: None, traced: None }
    }

    /// Returns whether the view is equal to its input.
    pub fn is_identity(&self, input: &Shape) -> bool {
        if self.shape.is_traced() || input.is_traced() {
            // It must be the identity for all extents of the inputs of the function. Any other view is
            // correct as it is.
            let is_same = |(axis, map): (usize, &AxisMap)| *map == AxisMap::same(axis) && !self.is_traced(axis);
            return self.shape.is_identical(input) && self.axes.iter().enumerate().all(is_same);
        }
        self.shape == *input
            && self.axes.iter().enumerate().all(|(axis, map)| {
                map.rule == Rule::Inside
                    && (*map == AxisMap::same(axis) || input.numbers()[axis] == 1 && map.source.is_none() && map.offset == 0)
            })
    }

    /// Returns whether every element is the constant outside.
    pub fn is_constant(&self, input: &Shape) -> bool {
        let is_constant = !self.shape.numbers().contains(&0)
            && self.axes.iter().zip(input.numbers()).any(|(map, extent)| {
                let (low, high) = map.range(&self.shape);
                map.rule == Rule::Constant && (*extent == 0 || high < 0 || low >= *extent as i64)
            });
        if is_constant {
            self.fix();
            input.fix();
        }
        is_constant
    }

    /// Returns the growth factor: the number of output elements per input element, rounded down and at least
    /// 1.
    pub(crate) fn growth(&self, input: &Shape) -> usize {
        (self.shape.product() / input.product().max(1)).max(1)
    }

    /// Composes two views into one if the rules allow it. `self` is a view of `inner`, which is a view of an
    /// array of shape `input`.
    pub fn after(&self, inner: &View, input: &Shape) -> Option<View> {
        if self.shape.numbers().contains(&0) {
            return None;
        }
        let fill = match (&self.fill, &inner.fill) {
            (Some(a), Some(b)) if a != b => return None,
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        // A constant along one axis of the outer view replaces the whole element, so the composed view must
        // still check each such axis.
        let mut looked_at = 0u64;
        let mut axes: SmallVec<[AxisMap; 4]> = SmallVec::new();
        let is_traced = self.shape.is_traced() || inner.shape.is_traced() || input.is_traced();
        let mut offsets: SmallVec<[Amount; 4]> = SmallVec::new();
        for (axis, map) in inner.axes.iter().enumerate() {
            let Some(middle) = map.source else {
                axes.push(*map);
                offsets.extend(is_traced.then(|| inner.offset(axis)));
                continue;
            };
            looked_at |= 1 << middle;
            let outer = self.axes[usize::from(middle)];
            let between = inner.shape.numbers()[usize::from(middle)] as i64;
            let extent = input.numbers()[axis] as i64;
            // True if `inner` is the whole axis, shifted. Then its indices and those of the input wrap
            // together.
            let whole = map.stride == 1
                && between == extent
                && (!is_traced || inner.shape.amount(usize::from(middle)).is_identical(&input.amount(axis)));
            let rule = match (outer.rule, map.rule) {
                (Rule::Inside, rule) => rule,
                (Rule::Wrap, Rule::Wrap) if whole => Rule::Wrap,
                (rule, Rule::Inside) if whole => rule,
                // Both shift with the same constant in the same direction.
                (Rule::Constant, Rule::Constant)
                    if whole
                        && outer.stride == 1
                        && (outer.offset.signum() * map.offset.signum()) >= 0
                        && self.same_extent(outer, &inner.shape, usize::from(middle)) =>
                {
                    Rule::Constant
                }
                _ => return None,
            };
            if is_traced {
                if outer.rule == Rule::Constant && map.rule == Rule::Constant {
                    // The result depends on the directions of the shifts.
                    self.offset(usize::from(middle)).get();
                    inner.offset(axis).get();
                }
                offsets.push(inner.offset(axis).plus(&self.offset(usize::from(middle)).times(&map.stride.into())));
            }
            axes.push(AxisMap {
                source: outer.source,
                offset: map.offset.checked_add(map.stride.checked_mul(outer.offset)?)?,
                stride: map.stride.checked_mul(outer.stride)?,
                rule,
            });
        }
        let all_looked_at =
            self.axes.iter().enumerate().all(|(axis, map)| map.rule != Rule::Constant || looked_at & (1 << axis) != 0);
        if !all_looked_at {
            return None;
        }
        match is_traced {
            true => View::with_offsets("view", input, &axes, &offsets, self.shape.clone(), fill).ok(),
            false => View::of_numbers("view", input, &axes, self.shape.clone(), fill).ok(),
        }
    }

    /// Returns whether an axis has the extent of another shape along its axis. In a traced function, this
    /// must hold for all extents of the inputs.
    fn same_extent(&self, map: AxisMap, shape: &Shape, axis: usize) -> bool {
        let own = map.source.map(|source| self.shape.amount(usize::from(source)));
        own.is_some_and(|own| own.is_identical(&shape.amount(axis)))
    }

    /// Returns the input index of the element at a position of the output; `None` for the constant.
    pub fn locate(&self, position: &[usize], input: &Shape) -> Option<SmallVec<[usize; 4]>> {
        let mut found = SmallVec::new();
        for (map, extent) in self.axes.iter().zip(input.extents()) {
            let extent = *extent as i64;
            let index = map.offset + map.stride * map.source.map_or(0, |axis| position[usize::from(axis)] as i64);
            let index = match map.rule {
                Rule::Inside => index,
                Rule::Clamp | Rule::Wrap | Rule::Mirror | Rule::Constant => map.rule.index(index, extent)?,
            };
            found.push(index as usize);
        }
        Some(found)
    }
}
