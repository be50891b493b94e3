//! Displacement of pixels by a field.

use crate::functor::{Indexer, Output, Primitive};
use crate::{Boundary, Picture, Result};

/// Maximum displacement. Larger displacements and NaN are replaced by it.
const FAR: f32 = 1e9;

/// Displaces pixels: x(p + scale · d(p)), with bilinear interpolation. The field has two components, the
/// displacements along x and y in pixels.
pub fn warp(picture: &Picture, field: &Picture, scale: f32, boundary: Boundary) -> Result<Picture> {
    let inputs = [Indexer::anywhere(), Indexer::point().pixel(2)];
    let functor = Primitive::from_kernel("warp", &inputs, &[Output::Component], &[scale], |k| {
        let displacement = |component: usize| {
            let by = k.input(1).component(component).centre() * k.parameter(0);
            let by = by.ne(by).select::<f32>(FAR, by.max(-FAR).min(FAR));
            let whole = by.floor();
            (whole.cast::<i32>(), by - whole)
        };
        let ((dx, fx), (dy, fy)) = (displacement(0), displacement(1));
        let (x, y) = (k.x() + dx, k.y() + dy);
        let line = |down: i32| {
            let at = |right: i32| k.input(0).pick(x + right, y + down);
            (1.0 - fx) * at(0) + fx * at(1)
        };
        vec![(1.0 - fy) * line(0) + fy * line(1)]
    })?;
    functor.with_boundary(boundary).one(&[picture, field])
}
