//! `degrain`, `diffusion` and `temporal_degrain`.

use super::field::{Edge, Field};
use super::{blur, mean_of_planes};
use crate::declaration::{EffectError, ReferenceCall, Threshold};
use crate::image::Image;

/// Splits by the wavelet of the paper along an axis: high = (x − (x(−r) + x(r))/2)/2, low = x − high.
fn split(x: &Field, edge: Edge, dx: i64, dy: i64) -> (Field, Field) {
    let high = x.around(|i, j| (x.get(i, j) - (x.at(i + dx, j + dy, edge) + x.at(i - dx, j - dy, edge)) * 0.5) * 0.5);
    let low = x.zip(&high, |x, high| x - high);
    (high, low)
}

/// Thresholds of the high bands: that of the first level, the factor to the next, and their kind.
#[derive(Clone, Copy)]
pub(crate) struct Shrinkage {
    pub(crate) threshold: f64,
    pub(crate) decay: f64,
    pub(crate) kind: Threshold,
}

impl Shrinkage {
    /// Moves a value towards 0: by a threshold, or by the square of the threshold over the value.
    fn shrunk(self, value: f64, level: i32) -> f64 {
        let threshold = self.threshold * self.decay.powi(level);
        let is_kept = value.abs() > threshold;
        match self.kind {
            _ if !is_kept => 0.0,
            Threshold::Soft => value - threshold.copysign(value),
            Threshold::Garrote => value - threshold * threshold / value,
        }
    }
}

/// Computes `degrain`: thresholds of the high bands of an undecimated wavelet transform.
pub(crate) fn degrain(x: &Field, edge: Edge, levels: i64, shrinkage: Shrinkage) -> Field {
    degrain_level(x, edge, 0, levels as i32, shrinkage)
}

fn degrain_level(x: &Field, edge: Edge, level: i32, levels: i32, shrinkage: Shrinkage) -> Field {
    let radius = 1 << level;
    let (hy, ly) = split(x, edge, radius, 0);
    let (hh, hl) = split(&hy, edge, 0, radius);
    let (lh, ll) = split(&ly, edge, 0, radius);
    let ll = if level + 1 < levels { degrain_level(&ll, edge, level + 1, levels, shrinkage) } else { ll };
    let shrunk = |value: f64| shrinkage.shrunk(value, level);
    let part = hh.zip(&lh, |hh, lh| shrunk(hh) + shrunk(lh)).zip(&hl, |sum, hl| sum + shrunk(hl));
    part.zip(&ll, |part, ll| part + ll)
}

/// Returns the taps of `diffusion`: offsets on a grid of four pixels within radius 12.6, and weights
/// exp(−r/1.5) whose sum is 1.
pub(crate) fn diffusion_taps() -> Vec<(i64, i64, f64)> {
    let places = (-3..=3i64).flat_map(|j| (-3..=3i64).map(move |i| (i, j))).filter(|(i, j)| i * i + j * j <= 10);
    let taps: Vec<_> = places.map(|(i, j)| (4 * i, 4 * j, (-((i * i + j * j) as f64).sqrt() / 1.5).exp())).collect();
    let sum: f64 = taps.iter().map(|(_, _, weight)| weight).sum();
    taps.into_iter().map(|(i, j, weight)| (i, j, weight / sum)).collect()
}

/// Computes `diffusion`: four moving averages, a sparse filter, and a mix with the input.
pub(crate) fn diffusion(x: &Field, edge: Edge, radius: i64, mix: f64) -> Field {
    let mut soft = x.clone();
    for along_rows in [true, false, true, false] {
        soft = blur::line_mean(&soft, edge, radius, along_rows);
    }
    let taps = diffusion_taps();
    let spread = soft.around(|i, j| taps.iter().map(|(dx, dy, weight)| weight * soft.at(i + dx, j + dy, edge)).sum());
    x.zip(&spread, |x, spread| x * (1.0 - mix) + spread * mix)
}

/// Finds the motion of each block: the offset with the smallest sum of absolute differences. The first in row
/// order wins a tie.
fn motion(current: &Field, other: &Field, edge: Edge, block: i64, search: i64) -> Vec<(i64, i64)> {
    let mut offsets = vec![];
    for top in (0..current.height).step_by(block as usize) {
        for left in (0..current.width).step_by(block as usize) {
            let mut best = (f64::INFINITY, (0, 0));
            for dy in -search..=search {
                for dx in -search..=search {
                    let mut sum = 0.0;
                    for y in top..(top + block).min(current.height) {
                        for x in left..(left + block).min(current.width) {
                            sum += (current.get(x, y) - other.at(x + dx, y + dy, edge)).abs();
                        }
                    }
                    if sum < best.0 {
                        best = (sum, (dx, dy));
                    }
                }
            }
            offsets.push(best.1);
        }
    }
    offsets
}

/// Computes `temporal_degrain`: a mean over frames along the motion, weighted by similarity.
pub(crate) fn temporal(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let (ReferenceCall { settings, inputs: frames, .. }, edge) = (*call, call.edge());
    let middle = frames.len() / 2;
    let (block, search) = (settings.integer("block"), settings.integer("search"));
    let strength = settings.number("strength");
    let current = mean_of_planes(&frames[middle]);
    let blocks = (current.width + block - 1) / block;
    let others: Vec<(&Image, Vec<(i64, i64)>)> = frames
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != middle)
        .map(|(_, frame)| (frame, motion(&current, &mean_of_planes(frame), edge, block, search)))
        .collect();
    let planes = frames[middle].planes().iter().enumerate().map(|(index, plane)| {
        let x = Field::of(plane);
        let fields: Vec<Field> = others.iter().map(|(frame, _)| Field::of(&frame.planes()[index])).collect();
        let result = x.around(|i, j| {
            let here = x.get(i, j);
            let (mut sum, mut weights) = (here, 1.0);
            for ((_, offsets), field) in others.iter().zip(&fields) {
                let (dx, dy) = offsets[(j / block * blocks + i / block) as usize];
                let there = field.at(i + dx, j + dy, edge);
                let weight = (-(there - here).powi(2) / (strength * strength)).exp();
                sum += weight * there;
                weights += weight;
            }
            sum / weights
        });
        result.plane(plane.name())
    });
    Ok(frames[middle].with_planes(planes.collect::<Result<_, _>>()?)?)
}
