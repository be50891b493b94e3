//! Views: which element of its input an element of a view is.
//!
//! A view has, for each axis of its *input*, an affine map from one axis of its output (or from none: then it is fixed), and a rule for
//! indices that leave the input (`papers/accelerator` §4.3): a constant comes instead, the nearest element, or the
//! index wraps around or is mirrored.
//! Section, shift, rotate, reverse, replicate, expand, pad, transpose, broadcasting, dropped and added axes are all such views, and views of
//! views are one view where the rules allow it (§5.3).

use crate::error::{Error, Result};
use crate::shape::Shape;
use broadloom_scalar::Lanes;
pub use broadloom_skeleton::{Boundary, Rule};
use smallvec::SmallVec;

/// Where the index along one axis of the input comes from: `offset + stride * position[source]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AxisMap {
    /// The axis of the output; `None` if the index is `offset`.
    pub source: Option<u8>,
    /// Where position 0 is.
    pub offset: i64,
    /// How far the next one is.
    pub stride: i64,
    /// What happens outside.
    pub rule: Rule,
}

impl AxisMap {
    /// The same index as the output's along an axis.
    pub const fn same(axis: usize) -> AxisMap {
        AxisMap { source: Some(axis as u8), offset: 0, stride: 1, rule: Rule::Inside }
    }

    /// One index.
    pub const fn fixed(offset: i64) -> AxisMap {
        AxisMap { source: None, offset, stride: 0, rule: Rule::Inside }
    }

    /// The least and the greatest index before the rule, for an output that has elements.
    fn range(&self, shape: &Shape) -> (i64, i64) {
        let last = self.source.map_or(0, |axis| shape.extents()[usize::from(axis)] as i64 - 1);
        let end = self.offset.saturating_add(self.stride.saturating_mul(last));
        (self.offset.min(end), self.offset.max(end))
    }
}

/// A view: maps for the axes of the input, the shape of the output, the constant for what is outside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// One for each axis of the input.
    pub axes: SmallVec<[AxisMap; 4]>,
    /// The shape that comes out.
    pub shape: Shape,
    /// What stands outside where a rule is [`Rule::Constant`].
    pub fill: Option<Lanes>,
}

/// Numbers beyond this are refused, so that index arithmetic cannot overflow.
const MAX_NUMBER: u64 = 1 << 40;

impl View {
    /// A view, its rules no stronger than needed. `input` is the shape that it is a view of.
    pub fn new(operation: &str, input: &Shape, axes: &[AxisMap], shape: Shape, fill: Option<Lanes>) -> Result<View> {
        let range = |reason: String| Error::Range { operation: operation.to_owned(), shape: input.clone(), reason };
        if !shape.is_possible() {
            return Err(range(format!("a result of shape {shape} is too large")));
        }
        if axes.len() != input.rank() {
            return Err(range(format!("{} axes are described", axes.len())));
        }
        let mut view = View { axes: SmallVec::from_slice(axes), shape, fill };
        for (axis, map) in view.axes.iter_mut().enumerate() {
            let extent = input.extents()[axis] as i64;
            if map.offset.unsigned_abs() > MAX_NUMBER || map.stride.unsigned_abs() > MAX_NUMBER {
                return Err(range(format!("a number along axis {axis} is too large")));
            }
            if map.source.is_none() {
                map.stride = 0;
            } else if map.stride == 0 || map.source.is_some_and(|source| view.shape.extents()[usize::from(source)] == 1) {
                // The axis stands still; of one that has a single position only the first counts.
                *map = AxisMap { source: None, stride: 0, ..*map };
            }
            if view.shape.is_empty() {
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

    /// Whether it is its input.
    pub fn is_identity(&self, input: &Shape) -> bool {
        self.shape == *input
            && self.axes.iter().enumerate().all(|(axis, map)| {
                map.rule == Rule::Inside
                    && (*map == AxisMap::same(axis) || input.extents()[axis] == 1 && map.source.is_none() && map.offset == 0)
            })
    }

    /// Whether every element is the constant.
    pub fn is_constant(&self, input: &Shape) -> bool {
        !self.shape.is_empty()
            && self.axes.iter().zip(input.extents()).any(|(map, extent)| {
                let (low, high) = map.range(&self.shape);
                map.rule == Rule::Constant && (*extent == 0 || high < 0 || low >= *extent as i64)
            })
    }

    /// Whether elements of the input are seen more than once: how many times as many come out, at least 1.
    pub fn growth(&self, input: &Shape) -> usize {
        (self.shape.count() / input.count().max(1)).max(1)
    }

    /// The view of a view as one view, where the rules compose: `self` looks at what `inner` makes of an array of shape `input`.
    pub fn after(&self, inner: &View, input: &Shape) -> Option<View> {
        if self.shape.is_empty() {
            return None;
        }
        let fill = match (&self.fill, &inner.fill) {
            (Some(a), Some(b)) if a != b => return None,
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        // A constant along one axis of the outer view stands for the whole element, so every such axis must still be looked at.
        let mut looked_at = 0u64;
        let mut axes: SmallVec<[AxisMap; 4]> = SmallVec::new();
        for (axis, map) in inner.axes.iter().enumerate() {
            let Some(middle) = map.source else {
                axes.push(*map);
                continue;
            };
            looked_at |= 1 << middle;
            let outer = self.axes[usize::from(middle)];
            let between = inner.shape.extents()[usize::from(middle)] as i64;
            let extent = input.extents()[axis] as i64;
            // Whether `inner` is the whole axis, moved: then its indices and the input's wrap together.
            let whole = map.stride == 1 && between == extent;
            let rule = match (outer.rule, map.rule) {
                (Rule::Inside, rule) => rule,
                (Rule::Wrap, Rule::Wrap) if whole => Rule::Wrap,
                (rule, Rule::Inside) if whole => rule,
                // Two shifts with the same constant in the same direction.
                (Rule::Constant, Rule::Constant)
                    if whole
                        && outer.stride == 1
                        && (outer.offset.signum() * map.offset.signum()) >= 0
                        && self.same_extent(outer, between) =>
                {
                    Rule::Constant
                }
                _ => return None,
            };
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
        View::new("view", input, &axes, self.shape.clone(), fill).ok()
    }

    fn same_extent(&self, map: AxisMap, extent: i64) -> bool {
        map.source.is_some_and(|axis| self.shape.extents()[usize::from(axis)] as i64 == extent)
    }

    /// Where the element at a position of the output is in the input; `None` where the constant stands.
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

#[cfg(test)]
mod tests {
    use super::*;
    use broadloom_scalar::Literal;
    use smallvec::smallvec;

    fn along(offset: i64, stride: i64, rule: Rule, length: usize, input: usize) -> Option<View> {
        let map = AxisMap { source: Some(0), offset, stride, rule };
        let fill = (rule == Rule::Constant).then(|| smallvec![Literal::from(7i32)]);
        View::new("test", &Shape::from(input), &[map], Shape::from(length), fill).ok()
    }

    /// Composed or not, the same elements are seen.
    #[test]
    fn views_of_views_see_the_same_elements() {
        let rules = [Rule::Inside, Rule::Clamp, Rule::Wrap, Rule::Mirror, Rule::Constant];
        let mut composed = 0;
        for input in [1usize, 2, 5] {
            for (inner_rule, outer_rule) in rules.iter().flat_map(|a| rules.iter().map(move |b| (*a, *b))) {
                for (a, b) in (-3..4).flat_map(|a| (-3..4).map(move |b| (a, b))) {
                    for (s, t) in [(1, 1), (2, 1), (-1, 1), (1, -1), (1, 2), (-1, -1)] {
                        for (m, n) in [(input, input), (3, 4), (1, 2), (6, 3)] {
                            let Some(inner) = along(a, s, inner_rule, m, input) else { continue };
                            let Some(outer) = along(b, t, outer_rule, n, m) else { continue };
                            let Some(both) = outer.after(&inner, &Shape::from(input)) else { continue };
                            composed += 1;
                            for i in 0..n {
                                let expected = outer
                                    .locate(&[i], &inner.shape)
                                    .and_then(|middle| inner.locate(&middle, &Shape::from(input)));
                                assert_eq!(both.locate(&[i], &Shape::from(input)), expected, "{outer:?} after {inner:?}");
                            }
                        }
                    }
                }
            }
        }
        assert!(composed > 1000, "{composed}");
    }

    #[test]
    fn rules_are_dropped_where_they_do_nothing() {
        assert_eq!(along(0, 1, Rule::Wrap, 5, 5).map(|view| view.is_identity(&Shape::from(5))), Some(true));
        assert_eq!(along(1, 1, Rule::Inside, 5, 5), None);
        assert_eq!(along(0, 1, Rule::Clamp, 3, 0), None);
        assert_eq!(along(6, 1, Rule::Constant, 3, 5).map(|view| view.is_constant(&Shape::from(5))), Some(true));
    }
}
