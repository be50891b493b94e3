//! Effects on single pixels.

use crate::declaration::KeyFactor;
use crate::functor::{Indexer, Kernel, Output, Primitive, Real};
use crate::{Picture, Result};

/// Multiplies pixels of three components by a matrix, given row by row.
pub fn color_matrix(picture: &Picture, matrix: [f32; 9]) -> Result<Picture> {
    let functor = Primitive::from_kernel("color_matrix", &[Indexer::point().pixel(3)], &[Output::Pixel(3)], &matrix, |k| {
        let rgb = [0, 1, 2].map(|component| k.input(0).component(component).centre());
        let row =
            |row: usize| k.parameter(3 * row) * rgb[0] + k.parameter(3 * row + 1) * rgb[1] + k.parameter(3 * row + 2) * rgb[2];
        (0..3).map(row).collect()
    })?;
    functor.one(&[picture])
}

/// Compresses high values: e·x / (1 + e·x) with e = 2^exposure.
pub fn tone_map(picture: &Picture, exposure: f32) -> Result<Picture> {
    let gain = exposure.exp2();
    let functor = Primitive::from_kernel("tone_map", &[Indexer::point()], &[Output::Component], &[gain], |k| {
        let scaled = k.input(0).centre() * k.parameter(0);
        vec![scaled / (scaled + 1.0)]
    })?;
    functor.one(&[picture])
}

/// A curve through points, linear beyond its ends.
#[derive(Clone, Debug, PartialEq)]
pub struct PointCurve {
    /// Abscissas in ascending order; at least two.
    pub xs: Vec<f32>,
    /// Ordinates.
    pub ys: Vec<f32>,
    /// Slopes at the points; empty for straight lines between them.
    pub slopes: Vec<f32>,
}

fn curve_at<'k>(k: &Kernel<'k>, curve: &PointCurve, x: Real<'k>) -> Real<'k> {
    let last = curve.xs.len() as i32 - 1;
    let below = k.local(0i32);
    k.repeat(0, last + 1, |point| {
        let passed = k.table(&curve.xs, point).le(x);
        below.set(below.get() + passed.select::<i32>(1, 0));
    });
    let upper = below.get().max(1).min(last);
    let lower = upper - 1;
    let (x0, y0, y1) = (k.table(&curve.xs, lower), k.table(&curve.ys, lower), k.table(&curve.ys, upper));
    let width = k.table(&curve.xs, upper) - x0;
    let beyond = x - x0;
    if curve.slopes.is_empty() {
        return y0 + (y1 - y0) / width * beyond;
    }
    let (s0, s1) = (k.table(&curve.slopes, lower), k.table(&curve.slopes, upper));
    let t = beyond / width;
    let (t2, t3) = (t * t, t * t * t);
    let inside =
        (t3 * 2.0 - t2 * 3.0 + 1.0) * y0 + (t3 - t2 * 2.0 + t) * width * s0 + (t2 * 3.0 - t3 * 2.0) * y1 + (t3 - t2) * width * s1;
    let before = y0 + s0 * beyond;
    let behind = y1 + s1 * (x - k.table(&curve.xs, upper));
    x.lt(curve.xs[0]).select(before, x.gt(curve.xs[last as usize]).select(behind, inside))
}

/// Applies a curve to every component.
pub fn curves(picture: &Picture, curve: &PointCurve) -> Result<Picture> {
    let is_whole = curve.xs.len() >= 2 && curve.ys.len() == curve.xs.len();
    if !is_whole || !(curve.slopes.is_empty() || curve.slopes.len() == curve.xs.len()) {
        let reason = "a curve has at least two points, and no slopes or one for each".to_owned();
        return Err(crate::Error::Functor { name: "curves".into(), reason });
    }
    let functor = Primitive::from_kernel("curves", &[Indexer::point()], &[Output::Component], &[], |k| {
        vec![curve_at(&k, curve, k.input(0).centre())]
    })?;
    functor.one(&[picture])
}

/// Settings of a chroma key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColourKey {
    /// Colour of the screen.
    pub color: [f32; 3],
    /// Chroma distance up to which alpha is 0.
    pub tolerance: f32,
    /// Chroma distance over which alpha grows from 0 to 1.
    pub softness: f32,
    /// Share of the screen's chroma that is removed.
    pub spill: f32,
    /// Factor of the colours.
    pub factor: KeyFactor,
}

const LUMA: [f32; 3] = [0.299, 0.587, 0.114];

/// Computes red, green, blue and alpha from red, green, blue and alpha.
pub fn key(picture: &Picture, key: &ColourKey) -> Result<Picture> {
    let [r, g, b] = key.color;
    let y = LUMA[0] * r + LUMA[1] * g + LUMA[2] * b;
    let screen = [0.564 * (b - y), 0.713 * (r - y)];
    let length = screen[0].hypot(screen[1]);
    let parameters = [screen[0], screen[1], screen[0] / length, screen[1] / length, key.tolerance, key.softness, key.spill];
    let inputs = [Indexer::point().pixel(4)];
    let functor = Primitive::from_kernel("key", &inputs, &[Output::Pixel(4)], &parameters, |k| {
        let [r, g, b, a] = [0, 1, 2, 3].map(|component| k.input(0).component(component).centre());
        let p = |number: usize| k.parameter(number);
        let y = r * LUMA[0] + g * LUMA[1] + b * LUMA[2];
        let (cb, cr) = ((b - y) * 0.564, (r - y) * 0.713);
        let (db, dr) = (cb - p(0), cr - p(1));
        let distance = (db * db + dr * dr).sqrt();
        let opacity = ((distance - p(4)) / p(5)).max(0.0).min(1.0);
        let along = (cb * p(2) + cr * p(3)).max(0.0) * p(6);
        let (cb, cr) = (cb - along * p(2), cr - along * p(3));
        let (b, r) = (y + cb / 0.564, y + cr / 0.713);
        let g = (y - r * LUMA[0] - b * LUMA[2]) / LUMA[1];
        let alpha = a * opacity;
        match key.factor {
            KeyFactor::One => vec![r, g, b, alpha],
            KeyFactor::Opacity => vec![r * opacity, g * opacity, b * opacity, alpha],
            KeyFactor::NewAlpha => vec![r * alpha, g * alpha, b * alpha, alpha],
            KeyFactor::PerOldAlpha => {
                let divisor = a.eq(0.0).select::<f32>(1.0, a);
                vec![r / divisor, g / divisor, b / divisor, alpha]
            }
        }
    })?;
    functor.one(&[picture])
}

/// Computes a weighted sum of three components.
pub fn weighted(picture: &Picture, weights: [f32; 3]) -> Result<Picture> {
    let inputs = [Indexer::point().pixel(3)];
    let functor = Primitive::from_kernel("weighted", &inputs, &[Output::Pixel(1)], &weights, |k| {
        let [r, g, b] = [0, 1, 2].map(|component| k.input(0).component(component).centre() * k.parameter(component));
        vec![r + g + b]
    })?;
    functor.one(&[picture])
}

/// Levels: a range of values that is stretched to another range along a power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    /// Value that becomes `low`.
    pub black: f32,
    /// Value that becomes `high`.
    pub white: f32,
    /// Exponent of the curve, inverted.
    pub gamma: f32,
    /// Lower end of the result.
    pub low: f32,
    /// Upper end of the result.
    pub high: f32,
}

/// Stretches a range of values to another one.
pub fn levels(picture: &Picture, levels: &Levels) -> Result<Picture> {
    let parameters = [levels.black, levels.white - levels.black, 1.0 / levels.gamma, levels.low, levels.high - levels.low];
    let functor = Primitive::from_kernel("levels", &[Indexer::point()], &[Output::Component], &parameters, |k| {
        let p = |number: usize| k.parameter(number);
        let share = ((k.input(0).centre() - p(0)) / p(1)).max(0.0).min(1.0);
        let share = if levels.gamma == 1.0 { share } else { share.power_of_unit(p(2)) };
        vec![share * p(4) + p(3)]
    })?;
    functor.one(&[picture])
}
