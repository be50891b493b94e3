//! `local_laplacian`: contrast of details at all scales.
//!
//! Paris, Hasinoff and Kautz, *Local Laplacian Filters*, with the fast interpolation between levels of
//! brightness by Aubry and others. Pyramids are halved by [1 3 3 1]/8 along both axes and doubled by [1 3]/4.

use super::field::{Edge, Field};
use super::replaced;
use crate::declaration::{EffectError, ReferenceCall, colors};
use crate::image::Image;

/// Offset that keeps quotients of dark pixels finite.
const DARK: f64 = 0.01;

/// Halves both sides, rounded up, with (x(2i−1) + 3·x(2i) + 3·x(2i+1) + x(2i+2)) / 8.
fn halved(x: &Field, edge: Edge) -> Field {
    let taps = [(-1, 0.125), (0, 0.375), (1, 0.375), (2, 0.125)];
    let rows = Field::from_fn((x.width + 1) / 2, x.height, |i, j| {
        taps.iter().map(|(d, weight)| weight * x.at(2 * i + d, j, edge)).sum()
    });
    Field::from_fn(rows.width, (x.height + 1) / 2, |i, j| {
        taps.iter().map(|(d, weight)| weight * rows.at(i, 2 * j + d, edge)).sum()
    })
}

/// Doubles a field to a given size: 3/4 of the nearest value and 1/4 of the next.
fn doubled(x: &Field, width: i64, height: i64, edge: Edge) -> Field {
    let next = |i: i64| i / 2 - 1 + 2 * (i % 2);
    let rows = Field::from_fn(width, x.height, |i, j| 0.75 * x.at(i / 2, j, edge) + 0.25 * x.at(next(i), j, edge));
    Field::from_fn(width, height, |i, j| 0.75 * rows.at(i, j / 2, edge) + 0.25 * rows.at(i, next(j), edge))
}

/// Computes the Gaussian pyramid.
fn pyramid(x: Field, count: i64, edge: Edge) -> Vec<Field> {
    let mut levels = vec![x];
    for _ in 1..count {
        levels.push(halved(&levels[levels.len() - 1], edge));
    }
    levels
}

/// Replaces all levels except the last by their difference to the doubled next level.
fn differences(levels: &mut [Field], edge: Edge) {
    for index in 0..levels.len() - 1 {
        let coarse = doubled(&levels[index + 1], levels[index].width, levels[index].height, edge);
        levels[index] = levels[index].zip(&coarse, |fine, coarse| fine - coarse);
    }
}

/// Computes `local_laplacian` of the brightness.
fn filtered(y: &Field, edge: Edge, copies: i64, count: i64, alpha: f64, beta: f64) -> Field {
    let steps = (copies - 1) as f64;
    let remapped = |k: i64| {
        let level = k as f64 / steps;
        let mut levels = pyramid(
            y.map(|y| {
                let f = (y - level) * steps;
                beta * (y - level) + level + alpha / steps * f * (-f * f / 2.0).exp()
            }),
            count,
            edge,
        );
        differences(&mut levels, edge);
        levels
    };
    let remapped: Vec<Vec<Field>> = (0..copies).map(remapped).collect();
    let guide = pyramid(y.clone(), count, edge);
    let mut result: Option<Field> = None;
    for index in (0..guide.len()).rev() {
        let here = &guide[index];
        let detail = here.around(|i, j| {
            let level = here.get(i, j) * steps;
            let lower = (level.floor() as i64).clamp(0, copies - 2);
            let share = level - lower as f64;
            let of = |k: i64| remapped[k as usize][index].get(i, j);
            (1.0 - share) * of(lower) + share * of(lower + 1)
        });
        result = Some(match result {
            None => detail,
            Some(coarse) => detail.zip(&doubled(&coarse, here.width, here.height, edge), |detail, coarse| detail + coarse),
        });
    }
    result.unwrap_or_else(|| y.clone())
}

/// Computes `local_laplacian`. Brightness is 0.299·r + 0.587·g + 0.114·b, or the mean of the planes without
/// alpha if there are fewer than three.
pub(crate) fn local(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let (ReferenceCall { settings, image, .. }, edge) = (*call, call.edge());
    let planes: Vec<usize> = match colors(settings.effect().name, &image.names().collect::<Vec<&str>>()) {
        Ok(colors) => colors.to_vec(),
        Err(_) => (0..image.planes().len()).filter(|index| image.planes()[*index].channel() != "A").collect(),
    };
    let fields: Vec<Field> = planes.iter().map(|index| Field::of(&image.planes()[*index])).collect();
    let y = match &fields[..] {
        [r, g, b] => {
            let some = r.zip(g, |r, g| 0.299 * r + 0.587 * g);
            some.zip(b, |some, b| some + 0.114 * b)
        }
        [] => return replaced(image, &[]),
        [first, others @ ..] => {
            let sum = others.iter().fold(first.clone(), |sum, x| sum.zip(x, |sum, x| sum + x));
            sum.map(|sum| sum / fields.len() as f64)
        }
    };
    let (copies, count) = (settings.integer("levels"), settings.integer("pyramid"));
    let bright = filtered(&y, edge, copies, count, settings.number("alpha"), settings.number("beta"));
    let gain = bright.zip(&y, |bright, y| bright / (y + DARK));
    let changed = planes.iter().zip(&fields).map(|(index, x)| (*index, x.zip(&gain, |x, gain| (x + DARK) * gain)));
    replaced(image, &changed.collect::<Vec<_>>())
}
