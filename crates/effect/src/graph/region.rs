//! Regions: the part of an image that a part of a result needs.

use crate::Rect;
use crate::functor::{Boundary, Reach};

fn rect(left: i64, top: i64, right: i64, bottom: i64) -> Option<Rect> {
    let extent = |from: i64, to: i64| u32::try_from(to - from).ok().filter(|extent| *extent > 0);
    Some(Rect::new(i32::try_from(left).ok()?, i32::try_from(top).ok()?, extent(left, right)?, extent(top, bottom)?))
}

/// Returns the pixels whose windows lie inside a region; `None` if there are none.
pub fn shrunk(region: Rect, reach: Reach) -> Option<Rect> {
    rect(
        i64::from(region.x) + i64::from(reach.left),
        i64::from(region.y) + i64::from(reach.above),
        region.right() - i64::from(reach.right),
        region.bottom() - i64::from(reach.below),
    )
}

/// Returns a region with a margin around it; `None` if it exceeds the range of coordinates.
pub fn with_margin(region: Rect, margin: Reach) -> Option<Rect> {
    rect(
        i64::from(region.x) - i64::from(margin.left),
        i64::from(region.y) - i64::from(margin.above),
        region.right() + i64::from(margin.right),
        region.bottom() + i64::from(margin.below),
    )
}

/// Returns the pixels of an image that windows around a region read.
///
/// A side that the windows exceed is the edge of the image, so the boundary rule can be applied to the part.
/// A window that wraps around an axis needs the whole axis.
pub fn grown(region: Rect, reach: Reach, bounds: Rect, boundary: Boundary) -> Rect {
    let wraps = boundary == Boundary::Wrap;
    let along = |from: i64, to: i64, before: u32, behind: u32, low: i64, high: i64| {
        // Pixels of a margin may read any pixel, depending on the rule.
        let beyond = from < low || to > high;
        let (from, to) = (from - i64::from(before), to + i64::from(behind));
        match beyond || wraps && (from < low || to > high) {
            true => (low, high),
            false => (from.max(low).min(high - 1), to.min(high).max(low + 1)),
        }
    };
    let (left, right) = along(region.x.into(), region.right(), reach.left, reach.right, bounds.x.into(), bounds.right());
    let (top, bottom) = along(region.y.into(), region.bottom(), reach.above, reach.below, bounds.y.into(), bounds.bottom());
    rect(left, top, right, bottom).unwrap_or(bounds)
}

/// Alignment of columns of regions: samples per cache line.
const ALIGNMENT: i64 = 16;

/// Returns the region with its left and right sides moved outwards to aligned columns, within the image.
pub fn aligned(region: Rect, bounds: Rect) -> Rect {
    let origin = i64::from(bounds.x);
    let left = origin + (i64::from(region.x) - origin).div_euclid(ALIGNMENT) * ALIGNMENT;
    let right = origin - (origin - region.right()).div_euclid(ALIGNMENT) * ALIGNMENT;
    rect(left.max(origin), region.y.into(), right.min(bounds.right()), region.bottom()).unwrap_or(region)
}
