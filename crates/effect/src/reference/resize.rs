//! `resize`.

use super::field::{Edge, Field};
use crate::declaration::{EffectError, Filter, ReferenceCall, new_size};
use crate::image::{Image, Rect};
use broadloom_skeleton::Rule;

/// Function of a distance, and the distance beyond which it is 0.
type Kernel = (fn(f64) -> f64, f64);

/// Returns the function of a filter; `None` for the nearest pixel.
fn kernel(filter: Filter) -> Option<Kernel> {
    match filter {
        Filter::Lanczos => Some((lanczos, 3.0)),
        Filter::Bicubic => Some((cubic, 2.0)),
        Filter::Bilinear => Some((|x| (1.0 - x.abs()).max(0.0), 1.0)),
        Filter::Nearest => None,
    }
}

/// Returns the cubic of Keys with a = −0.5.
fn cubic(x: f64) -> f64 {
    let (x, a) = (x.abs(), -0.5);
    if x < 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * a
    } else {
        0.0
    }
}

/// Returns sinc(x) · sinc(x/3) up to distance 3.
fn lanczos(x: f64) -> f64 {
    let sinc = |x: f64| if x == 0.0 { 1.0 } else { (std::f64::consts::PI * x).sin() / (std::f64::consts::PI * x) };
    if x.abs() < 3.0 { sinc(x) * sinc(x / 3.0) } else { 0.0 }
}

/// Returns the first input pixel of an output pixel and the weights of its input pixels. The sum of the
/// weights is 1.
fn weights(filter: Filter, index: i64, old: i64, new: i64) -> (i64, Vec<f64>) {
    let scale = old as f64 / new as f64;
    let Some((filter, support)) = kernel(filter) else {
        return ((((index as f64 + 0.5) * scale).floor() as i64).min(old - 1), vec![1.0]);
    };
    let wide = scale.max(1.0);
    let centre = (index as f64 + 0.5) * scale;
    let first = (centre - support * wide - 0.5).ceil() as i64;
    let last = (centre + support * wide - 0.5).floor() as i64;
    let weights: Vec<f64> = (first..=last).map(|j| filter((j as f64 + 0.5 - centre) / wide)).collect();
    let sum: f64 = weights.iter().sum();
    (first, weights.into_iter().map(|weight| weight / sum).collect())
}

/// Computes `resize`: rows, then columns.
pub(crate) fn resize(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let ReferenceCall { settings, image, .. } = *call;
    let (width, height) = new_size(settings, image.bounds())?;
    let bounds = Rect { width: width as u32, height: height as u32, ..image.bounds() }.checked()?;
    crate::image::reserved::<f64>(bounds.area())?;
    crate::image::reserved::<f64>(u64::from(bounds.width).saturating_mul(u64::from(image.height())))?;
    let filter: Filter = settings.chosen("filter");
    let edge = Edge { rule: Rule::Clamp, border: 0.0 };
    let planes = image.planes().iter().map(|plane| {
        let x = Field::of(plane);
        let taps: Vec<_> = (0..width).map(|i| weights(filter, i, x.width, width)).collect();
        let rows = Field::from_fn(width, x.height, |i, j| {
            let (first, weights) = &taps[i as usize];
            weights.iter().enumerate().map(|(k, weight)| weight * x.at(first + k as i64, j, edge)).sum()
        });
        let taps: Vec<_> = (0..height).map(|j| weights(filter, j, x.height, height)).collect();
        let result = Field::from_fn(width, height, |i, j| {
            let (first, weights) = &taps[j as usize];
            weights.iter().enumerate().map(|(k, weight)| weight * rows.at(i, first + k as i64, edge)).sum()
        });
        result.plane(plane.name())
    });
    Ok(image.replaced(bounds, planes.collect::<Result<_, _>>()?)?)
}
