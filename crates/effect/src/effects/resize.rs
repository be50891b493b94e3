//! Resampling to another size.
//!
//! The weights of a row's pixels are computed on the host, once for all rows. They form an image of their
//! own.

use crate::declaration::Filter;
use crate::functor::{Axis, Indexer, Output, Primitive, Span};
use crate::{Boundary, Error, Picture, Result};
use broadloom_graph::{Node, Shape};
use broadloom_scalar::Type;
use broadloom_skeleton::cost::ROWS_FIRST_GAIN;
use std::f64::consts::PI;

impl Filter {
    fn support(self) -> f64 {
        match self {
            Filter::Lanczos => 3.0,
            Filter::Bicubic => 2.0,
            Filter::Bilinear => 1.0,
            Filter::Nearest => 0.0,
        }
    }

    fn at(self, x: f64) -> f64 {
        let x = x.abs();
        let sinc = |x: f64| if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) };
        match self {
            Filter::Lanczos if x < 3.0 => sinc(x) * sinc(x / 3.0),
            Filter::Bicubic if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
            Filter::Bicubic if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5,
            Filter::Bilinear if x < 1.0 => 1.0 - x,
            Filter::Lanczos | Filter::Bicubic | Filter::Bilinear | Filter::Nearest => 0.0,
        }
    }
}

/// Maximum number of pixels along an axis: their indices are exact in `f32`.
const MAX_EXTENT: usize = 1 << 24;
/// Maximum number of input pixels per output pixel for reads without a loop.
const FEW_TAPS: usize = 16;
/// Maximum number of input pixels per output pixel.
const MAX_TAPS: usize = 1 << 16;

/// Computes the first input pixel and the weights of each output pixel: one row with the first pixels, then
/// one row per weight. Also returns the number of weights.
fn weights(filter: Filter, old: usize, new: usize) -> Result<(usize, Vec<f32>)> {
    let bad = |reason: String| Error::Functor { name: "resize".into(), reason };
    if old > MAX_EXTENT || new > MAX_EXTENT {
        return Err(bad(format!("from {old} to {new} pixels is not possible: at most {MAX_EXTENT} are")));
    }
    let scale = old as f64 / new as f64;
    let wide = scale.max(1.0);
    let taps = (2.0 * filter.support() * wide).floor() as usize + 1;
    let size = (taps + 1).saturating_mul(new);
    let most = MAX_EXTENT * 4;
    if taps > MAX_TAPS || size > most {
        let (needed, advice) = match taps > MAX_TAPS {
            true => (format!("{taps} weights for a pixel, and at most {MAX_TAPS} are possible"), "resize in two steps"),
            false => (format!("{size} weights, and at most {most} are possible"), "choose a smaller size"),
        };
        return Err(bad(format!("from {old} to {new} pixels takes {needed}: {advice}")));
    }
    if filter == Filter::Nearest {
        let nearest = (0..new).map(|index| ((index as f64 + 0.5) * scale).floor().min(old as f64 - 1.0) as f32);
        return Ok((1, nearest.chain(std::iter::repeat_n(1.0, new)).collect()));
    }
    let mut table = vec![0.0f32; size];
    for index in 0..new {
        let centre = (index as f64 + 0.5) * scale;
        let first = (centre - filter.support() * wide - 0.5).ceil();
        let weight = |tap: usize| filter.at((first + tap as f64 + 0.5 - centre) / wide);
        let sum: f64 = (0..taps).map(weight).sum();
        table[index] = first as f32;
        for tap in 0..taps {
            table[(tap + 1) * new + index] = (weight(tap) / sum) as f32;
        }
    }
    // The last pixel of a window is usually outside the filter.
    let is_zero = |tap: &usize| table[tap * new..(tap + 1) * new].iter().all(|weight| *weight == 0.0);
    let taps = (2..=taps).rev().find(|tap| !is_zero(tap)).unwrap_or(1);
    table.truncate((taps + 1) * new);
    Ok((taps, table))
}

fn along(picture: &Picture, axis: Axis, new: usize, filter: Filter) -> Result<Picture> {
    let bounds = picture.bounds();
    let (width, height) = (bounds.width as usize, bounds.height as usize);
    let old = if axis == Axis::Horizontal { width } else { height };
    let (taps, table) = weights(filter, old, new)?;
    let scale = old as f64 / new as f64;
    let span = Span { scale, reach: filter.support() * scale.max(1.0) + 1.0 };
    let bytes: Vec<u8> = table.iter().flat_map(|value| value.to_le_bytes()).collect();
    let (width, height) = if axis == Axis::Horizontal { (new, height) } else { (width, new) };
    if taps <= FEW_TAPS {
        // The table is an image of the new size whose rows, or columns, are all equal. It is a broadcast
        // view at the place of the result, so every weight is read at the current pixel.
        let line = if axis == Axis::Horizontal { [taps + 1, 1, new] } else { [taps + 1, new, 1] };
        let table = Node::upload(picture.context(), Type::F32, Shape::from(line), &bytes)?;
        let table = Picture::from_node(table.broadcast_to(&Shape::from([taps + 1, height, width]))?, bounds.x, bounds.y)?;
        let inputs = [Indexer::along(axis), Indexer::point().pixel(taps + 1)];
        let functor = Primitive::from_kernel("resize", &inputs, &[Output::Component], &[], |k| {
            let entry = |number: usize| k.input(1).component(number).centre();
            let first = entry(0).cast::<i32>();
            let weighed = |tap: usize| entry(tap) * k.input(0).pick_along(first + (tap as i32 - 1));
            vec![(2..=taps).fold(weighed(1), |sum, tap| sum + weighed(tap))]
        })?;
        return functor.with_boundary(Boundary::Clamp).with_span(span).with_size(width, height)?.one(&[picture, &table]);
    }
    let table = Node::upload(picture.context(), Type::F32, Shape::from([1, taps + 1, new]), &bytes)?;
    let table = Picture::from_node(table, 0, 0)?;
    let inputs = [Indexer::along(axis), Indexer::anywhere().pixel(1)];
    let functor = Primitive::from_kernel("resize", &inputs, &[Output::Component], &[], |k| {
        let table = k.input(1);
        let place = if axis == Axis::Horizontal { k.x() } else { k.y() };
        let first = table.pick(place, 0).cast::<i32>();
        let sum = k.local(0.0f32);
        // The height of the table is the number of weights plus one.
        k.repeat(1, table.size()[1], |tap| sum.set(sum.get() + table.pick(place, tap) * k.input(0).pick_along(first + tap - 1)));
        vec![sum.get()]
    })?;
    functor.with_boundary(Boundary::Clamp).with_span(span).with_size(width, height)?.one(&[picture, &table])
}

/// Resamples to another size. Centres of pixels are aligned, and filters are widened if the image shrinks.
///
/// Columns are resampled first, so that rows can be resampled while they are in the cache. Rows are resampled
/// first if that leaves less than half as many intermediate pixels.
pub fn resize(picture: &Picture, width: usize, height: usize, filter: Filter) -> Result<Picture> {
    let bounds = picture.bounds();
    let rows_first = u128::from(bounds.height) * width as u128;
    let columns_first = height as u128 * u128::from(bounds.width);
    let order = match ROWS_FIRST_GAIN.pays(rows_first, columns_first) {
        true => [(Axis::Horizontal, width), (Axis::Vertical, height)],
        false => [(Axis::Vertical, height), (Axis::Horizontal, width)],
    };
    order.into_iter().try_fold(picture.clone(), |picture, (axis, new)| along(&picture, axis, new, filter))
}
