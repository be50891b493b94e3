//! The two effects of the paper: `degrain` and `diffusion`.

use super::blur::line_mean;
use crate::declaration::Threshold;
use crate::functor::{Axis, Functor, Indexer, Kernel, Output, Primitive, Real};
use crate::{Boundary, Picture, Result};

/// The one-dimensional discrete wavelet transform (Listing 2): twice the high band, and the low band.
///
/// Scaling by powers of two preserves the bits of a band. The factor of a high band is applied where bands
/// are added, at no cost.
struct Dwt1d {
    axis: Axis,
    radius: u32,
}

impl Functor for Dwt1d {
    fn name(&self) -> String {
        "dwt1d".into()
    }

    fn inputs(&self) -> Vec<Indexer> {
        vec![Indexer::line(self.axis, self.radius)]
    }

    fn outputs(&self) -> Vec<Output> {
        vec![Output::Component, Output::Component]
    }

    fn kernel<'k>(&self, k: Kernel<'k>) -> Vec<Real<'k>> {
        let (input, radius) = (k.input(0), self.radius as i32);
        let centre = input.centre();
        let high = centre - (input.along(radius) + input.along(-radius)) * 0.5;
        vec![high, centre - high * 0.5]
    }
}

/// Part of a band that a threshold removes.
struct RemovedPart {
    threshold: f32,
    kind: Threshold,
}

impl Functor for RemovedPart {
    fn name(&self) -> String {
        "removed".into()
    }

    fn inputs(&self) -> Vec<Indexer> {
        vec![Indexer::point()]
    }

    fn parameters(&self) -> Vec<f32> {
        vec![self.threshold]
    }

    fn kernel<'k>(&self, k: Kernel<'k>) -> Vec<Real<'k>> {
        let (x, threshold) = (k.input(0).centre(), k.parameter(0));
        vec![match self.kind {
            // The band, clamped to plus and minus the threshold.
            Threshold::Soft => x.min(threshold).max(-threshold),
            // x·min(1, (threshold/x)²): all of a small value, and little of a large one. The least size keeps
            // 0 from being divided by 0.
            Threshold::Garrote => {
                let ratio = threshold / x.abs().max(1e-30);
                x * (ratio * ratio).min(1.0)
            }
        }]
    }
}

/// Thresholds of the high bands of `degrain`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shrinkage {
    /// Threshold of the first level.
    pub threshold: f32,
    /// Factor from the threshold of a level to that of the next.
    pub decay: f32,
    /// Function that shrinks the values of a band.
    pub kind: Threshold,
}

impl Shrinkage {
    /// Returns the soft thresholds of the paper: each is half of the one before.
    pub fn soft(threshold: f32) -> Shrinkage {
        Shrinkage { threshold, decay: 0.5, kind: Threshold::Soft }
    }
}

/// Removes grain: thresholds of the high bands of a wavelet transform (Listing 1).
///
/// All bands of a level add up to its input. The result is therefore the input minus the removed parts, and
/// the low band of the last level is not computed.
pub fn degrain(input: &Picture, levels: u32, shrinkage: Shrinkage, boundary: Boundary) -> Result<Picture> {
    degrain_recurse(input, input, 0, levels, shrinkage, boundary)
}

/// Subtracts from `rest` the removed parts of the bands of `input`, and of all following levels.
fn degrain_recurse(
    input: &Picture,
    rest: &Picture,
    level: u32,
    levels: u32,
    shrinkage: Shrinkage,
    boundary: Boundary,
) -> Result<Picture> {
    if level == levels {
        return Ok(rest.clone());
    }
    let h_dwt = Dwt1d { axis: Axis::Horizontal, radius: 1 << level }.build()?.with_boundary(boundary);
    let v_dwt = Dwt1d { axis: Axis::Vertical, radius: 1 << level }.build()?.with_boundary(boundary);
    // `hh` is four times its band, `hl` and `lh` are twice theirs.
    let [hy, ly] = h_dwt.call([input])?;
    // Twice the band also has twice the constant outside the picture.
    let doubled = match boundary {
        Boundary::Constant(value) => Boundary::Constant(2.0 * value),
        rule => rule,
    };
    let [hh, hl] = v_dwt.clone().with_boundary(doubled).call([&hy])?;
    let [lh, ll] = v_dwt.call([&ly])?;

    let threshold = shrinkage.threshold * shrinkage.decay.powi(level as i32);
    let removed = |scale: f32| RemovedPart { threshold: scale * threshold, kind: shrinkage.kind }.build();
    let [hh] = removed(4.0)?.call([&hh])?;
    let [lh] = removed(2.0)?.call([&lh])?;
    let [hl] = removed(2.0)?.call([&hl])?;
    let rest = Primitive::point("remove", 4, |x| x[0] - (x[1] * 0.5 + (x[2] + x[3])) * 0.5)?.one(&[rest, &hh, &lh, &hl])?;

    // Go to the next level of recursion.
    degrain_recurse(&ll, &rest, level + 1, levels, shrinkage, boundary)
}

/// Returns the taps of the sparse filter: offsets on a grid of four pixels, and weights exp(−r/1.5) whose sum
/// is 1.
fn taps() -> (Vec<[i32; 2]>, Vec<f32>) {
    let places = (-3..=3i32).flat_map(|j| (-3..=3i32).map(move |i| (i, j))).filter(|(i, j)| i * i + j * j <= 10);
    let taps: Vec<([i32; 2], f64)> =
        places.map(|(i, j)| ([4 * i, 4 * j], (-f64::from(i * i + j * j).sqrt() / 1.5).exp())).collect();
    let sum: f64 = taps.iter().map(|(_, weight)| weight).sum();
    taps.into_iter().map(|(offset, weight)| (offset, (weight / sum) as f32)).unzip()
}

/// Diffuses light: moving averages along rows and columns, a sparse filter, and a mix with the input.
pub fn diffusion(input: &Picture, radius: u32, mix: f32, boundary: Boundary) -> Result<Picture> {
    let mut soft = input.clone();
    for axis in [Axis::Horizontal, Axis::Vertical, Axis::Horizontal, Axis::Vertical] {
        soft = line_mean(&soft, axis, radius, boundary)?;
    }
    let (offsets, weights) = taps();
    let sparse = Primitive::from_kernel("sparse", &[Indexer::sparse(&offsets)], &[Output::Component], &weights, |k| {
        let mut sum = k.input(0).tap(0) * k.parameter(0);
        for tap in 1..weights.len() {
            sum = sum + k.input(0).tap(tap as i32) * k.parameter(tap);
        }
        vec![sum]
    })?;
    let spread = sparse.with_boundary(boundary).one(&[&soft])?;
    let inputs = [Indexer::point(), Indexer::point()];
    let mixed = Primitive::from_kernel("mix", &inputs, &[Output::Component], &[mix], |k| {
        let (x, spread, mix) = (k.input(0).centre(), k.input(1).centre(), k.parameter(0));
        vec![x * (1.0 - mix) + spread * mix]
    })?;
    mixed.one(&[input, &spread])
}
