//! The local Laplacian filter.
//!
//! The copies of the brightness are the components of one picture, so a level of all pyramids is one call.

use crate::functor::{Axis, Indexer, Kernel, Output, Primitive, Real};
use crate::{Boundary, Error, Picture, Result};

fn sized(picture: &Picture, axis: Axis, extent: u32) -> (usize, usize) {
    let bounds = picture.bounds();
    match axis {
        Axis::Horizontal => (extent as usize, bounds.height as usize),
        Axis::Vertical => (bounds.width as usize, extent as usize),
    }
}

/// Reads a sample along an axis.
fn along<'k>(k: &Kernel<'k>, axis: Axis, place: crate::functor::Whole<'k>) -> Real<'k> {
    match axis {
        Axis::Horizontal => k.input(0).pick(place, k.y()),
        Axis::Vertical => k.input(0).pick(k.x(), place),
    }
}

fn place<'k>(k: &Kernel<'k>, axis: Axis) -> crate::functor::Whole<'k> {
    if axis == Axis::Horizontal { k.x() } else { k.y() }
}

/// Halves both sides, rounded up, with the filter [1 3 3 1]/8.
fn halved(picture: &Picture, boundary: Boundary) -> Result<Picture> {
    let mut result = picture.clone();
    for axis in [Axis::Horizontal, Axis::Vertical] {
        let functor = Primitive::from_kernel("halve", &[Indexer::anywhere()], &[Output::Component], &[], |k| {
            let first = place(&k, axis) * 2;
            let at = |step: i32| along(&k, axis, first + step);
            vec![(at(-1) + at(2)) * 0.125 + (at(0) + at(1)) * 0.375]
        })?;
        let bounds = result.bounds();
        let extent = if axis == Axis::Horizontal { bounds.width } else { bounds.height };
        let (width, height) = sized(&result, axis, extent.div_ceil(2));
        result = functor.with_boundary(boundary).with_size(width, height)?.one(&[&result])?;
    }
    Ok(result)
}

/// Doubles a picture to a given size: 3/4 of the nearest value and 1/4 of the next.
fn doubled(picture: &Picture, width: u32, height: u32, boundary: Boundary) -> Result<Picture> {
    let mut result = picture.clone();
    for (axis, extent) in [(Axis::Horizontal, width), (Axis::Vertical, height)] {
        let functor = Primitive::from_kernel("double", &[Indexer::anywhere()], &[Output::Component], &[], |k| {
            let i = place(&k, axis);
            let near = i / 2;
            let next = near - 1 + (i % 2) * 2;
            vec![along(&k, axis, near) * 0.75 + along(&k, axis, next) * 0.25]
        })?;
        let (width, height) = sized(&result, axis, extent);
        result = functor.with_boundary(boundary).with_size(width, height)?.one(&[&result])?;
    }
    Ok(result)
}

fn pyramid(picture: &Picture, count: u32, boundary: Boundary) -> Result<Vec<Picture>> {
    let mut levels = vec![picture.clone()];
    for level in 1..count as usize {
        levels.push(halved(&levels[level - 1], boundary)?);
    }
    Ok(levels)
}

/// Settings of the local Laplacian filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalLaplacian {
    /// Number of levels of brightness, from 2 to 64.
    pub copies: u32,
    /// Number of levels of the pyramids.
    pub pyramid: u32,
    /// Gain of details.
    pub alpha: f32,
    /// Gain of edges.
    pub beta: f32,
}

/// Filters brightness: a picture of one component.
pub fn local_laplacian(brightness: &Picture, settings: &LocalLaplacian, boundary: Boundary) -> Result<Picture> {
    let LocalLaplacian { copies, pyramid: count, alpha, beta } = *settings;
    if !(2..=64).contains(&copies) || count == 0 || count > 31 || brightness.components() != 1 {
        let reason = "expected 2 to 64 levels of brightness, 1 to 31 of pyramids and one component".to_owned();
        return Err(Error::Functor { name: "local_laplacian".into(), reason });
    }
    let steps = (copies - 1) as f32;
    let inputs = [Indexer::point().pixel(1)];
    let outputs = [Output::Pixel(copies as usize)];
    let remap = Primitive::from_kernel("remap", &inputs, &outputs, &[alpha / steps, beta], |k| {
        let y = k.input(0).centre();
        let copy = |number: u32| {
            let level = number as f32 / steps;
            let f = (y - level) * steps;
            k.parameter(1) * (y - level) + level + k.parameter(0) * f * (-(f * f) * 0.5).exp()
        };
        (0..copies).map(copy).collect()
    })?;
    let remapped = pyramid(&remap.one(&[brightness])?, count, boundary)?;
    let guide = pyramid(brightness, count, boundary)?;
    let subtract = Primitive::point("subtract", 2, |x| x[0] - x[1])?;
    let add = Primitive::point("sum", 2, |x| x[0] + x[1])?;
    let inputs = [Indexer::point().pixel(1), Indexer::point().pixel(copies as usize)];
    let choose = Primitive::from_kernel("choose", &inputs, &[Output::Pixel(1)], &[], |k| {
        let level = k.input(0).centre() * steps;
        let lower = level.floor().max(0.0).min((copies - 2) as f32);
        let share = level - lower;
        let mut found = k.input(1).component(0).centre();
        let mut next = k.input(1).component(1).centre();
        for number in 1..copies as usize - 1 {
            let is_it = lower.eq(number as f32);
            found = is_it.select(k.input(1).component(number).centre(), found);
            next = is_it.select(k.input(1).component(number + 1).centre(), next);
        }
        vec![(1.0 - share) * found + share * next]
    })?;
    let mut result: Option<Picture> = None;
    for level in (0..count as usize).rev() {
        let bounds = guide[level].bounds();
        let band = match remapped.get(level + 1) {
            Some(coarse) => {
                let coarse = doubled(coarse, bounds.width, bounds.height, boundary)?;
                subtract.one(&[&remapped[level], &coarse])?
            }
            None => remapped[level].clone(),
        };
        let detail = choose.one(&[&guide[level], &band])?;
        result = Some(match result {
            None => detail,
            Some(coarse) => add.one(&[&detail, &doubled(&coarse, bounds.width, bounds.height, boundary)?])?,
        });
    }
    Ok(result.unwrap_or_else(|| brightness.clone()))
}

/// Computes the brightness of red, green and blue.
pub fn luma(picture: &Picture) -> Result<Picture> {
    let inputs = [Indexer::point().pixel(3)];
    let functor = Primitive::from_kernel("luma", &inputs, &[Output::Pixel(1)], &[], |k| {
        let [r, g, b] = [0, 1, 2].map(|component| k.input(0).component(component).centre());
        vec![r * 0.299 + g * 0.587 + b * 0.114]
    })?;
    functor.one(&[picture])
}

/// Gives colours the brightness that the local Laplacian filter computes.
pub fn detail(picture: &Picture, brightness: &Picture, settings: &LocalLaplacian, boundary: Boundary) -> Result<Picture> {
    let bright = local_laplacian(brightness, settings, boundary)?;
    let functor = Primitive::point("recolour", 3, |x| x[1] / (x[2] + 0.01) * (x[0] + 0.01))?;
    functor.one(&[picture, &bright, brightness])
}
