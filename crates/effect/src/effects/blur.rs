//! Blurs of any radius at a cost that does not depend on it.
//!
//! `box` is two moving averages. `gaussian` has exact taps if they are few. Otherwise it is a sliding Fourier
//! series. Over a window of 2R + 1 pixels with R = 3.7·sigma, the Gaussian is a sum of cosines, aₖ·cos(2πk·d
//! / (2R+1)) for k from 0 to 4. The error is up to 3·10⁻⁴ of its mass. Each step along a line rotates the sum
//! for each k, adds the pixel that enters and subtracts the pixel that leaves.

use crate::functor::{Axis, Indexer, Kernel, Moving, Output, Precise, Primitive, Real};
use crate::{Boundary, Picture, Result};

/// Maximum radius for which a mean is computed from its taps. The taps come from a cache, so the traffic of
/// the image itself limits the time.
const FEW_TAPS: u32 = 12;

/// The change of a window that moves by one pixel. A NaN or an infinity would stay in a running sum, so samples that are not
/// finite count as 0 there, and are counted.
struct WindowChange<'k> {
    /// Change of the sum.
    sum: Precise<'k>,
    /// Change of the number of samples that make a sum +∞ or NaN, and of those that make it −∞ or NaN.
    outliers: [Precise<'k>; 2],
}

/// Number of states that count samples that are not finite.
const COUNTS: usize = 2;

impl<'k> WindowChange<'k> {
    /// Returns the change by a pixel that enters.
    fn entering(x: Real<'k>) -> WindowChange<'k> {
        let [below, above] = [x.lt(f32::INFINITY), x.gt(f32::NEG_INFINITY)];
        let sum = below.and(above).select::<f32>(x, 0.0).cast::<f64>();
        WindowChange { sum, outliers: [below, above].map(|is_fine| is_fine.select::<f32>(0.0, 1.0).cast::<f64>()) }
    }

    /// Returns the change by a pixel that enters and one that leaves.
    fn moving(enters: Real<'k>, leaves: Real<'k>) -> WindowChange<'k> {
        let (more, less) = (WindowChange::entering(enters), WindowChange::entering(leaves));
        let [up, down] = [0, 1].map(|end| more.outliers[end] - less.outliers[end]);
        WindowChange { sum: more.sum - less.sum, outliers: [up, down] }
    }

    /// Returns the numbers of samples after the change.
    fn counts(&self, before: &[Precise<'k>]) -> Vec<Precise<'k>> {
        self.outliers.iter().zip(before).map(|(change, count)| *count + *change).collect()
    }
}

/// Returns a weighted sum of a window with the samples that were left out of it.
fn with_outliers<'k>(sum: Real<'k>, counts: &[Precise<'k>]) -> Real<'k> {
    let infinity = |count: Precise<'k>, value: f32| count.gt(0.0).select::<f32>(value, 0.0);
    sum + infinity(counts[0], f32::INFINITY) + infinity(counts[1], f32::NEG_INFINITY)
}

/// Mean of a line, carried along it.
struct LineMean {
    axis: Axis,
    radius: u32,
}

impl Moving for LineMean {
    fn name(&self) -> String {
        "line_mean".into()
    }

    fn axis(&self) -> Axis {
        self.axis
    }

    fn inputs(&self) -> Vec<Indexer> {
        vec![Indexer::stretch(self.axis, self.radius + 1, self.radius)]
    }

    fn start<'k>(&self, k: Kernel<'k>) -> Vec<Precise<'k>> {
        let radius = self.radius as i32;
        let states = [0; 1 + COUNTS].map(|_| k.local(0.0f64));
        k.repeat(-radius - 1, radius, |i| {
            let change = WindowChange::entering(k.input(0).along(i));
            let counts = change.counts(&[states[1].get(), states[2].get()]);
            let next = std::iter::once(states[0].get() + change.sum).chain(counts);
            states.iter().zip(next).for_each(|(state, value)| state.set(value));
        });
        states.iter().map(|state| state.get()).collect()
    }

    fn step<'k>(&self, k: Kernel<'k>, state: &[Precise<'k>]) -> (Vec<Precise<'k>>, Vec<Real<'k>>) {
        let (input, radius) = (k.input(0), self.radius as i32);
        let change = WindowChange::moving(input.along(radius), input.along(-radius - 1));
        let (sum, counts) = (state[0] + change.sum, change.counts(&state[1..]));
        let mean = (sum * (1.0 / f64::from(2 * self.radius + 1))).cast::<f32>();
        let result = with_outliers(mean, &counts);
        (std::iter::once(sum).chain(counts).collect(), vec![result])
    }
}

/// Returns the sum of `taps` pixels along a line. An even number of pixels is split into two halves.
/// Neighbouring sums share most of these halves.
fn sum_of<'k>(k: &Kernel<'k>, first: i32, taps: i32) -> Real<'k> {
    match taps {
        ..=1 => k.input(0).along(first),
        _ if taps % 2 == 0 => sum_of(k, first, taps / 2) + sum_of(k, first + taps / 2, taps / 2),
        _ => sum_of(k, first, taps - 1) + k.input(0).along(first + taps - 1),
    }
}

/// Computes the mean of 2·radius + 1 pixels along an axis.
pub fn line_mean(picture: &Picture, axis: Axis, radius: u32, boundary: Boundary) -> Result<Picture> {
    if radius == 0 {
        return Ok(picture.clone());
    }
    if radius > FEW_TAPS {
        return LineMean { axis, radius }.build()?.with_boundary(boundary).one(&[picture]);
    }
    let inputs = [Indexer::line(axis, radius)];
    let functor = Primitive::from_kernel("line_mean", &inputs, &[Output::Component], &[], |k| {
        let (radius, taps) = (radius as i32, 2 * radius as i32 + 1);
        vec![sum_of(&k, -radius, taps) * (1.0 / taps as f32)]
    })?;
    functor.with_boundary(boundary).one(&[picture])
}

/// Computes the mean of a square of (2·radius + 1)² pixels.
pub fn box_blur(picture: &Picture, radius: u32, boundary: Boundary) -> Result<Picture> {
    let rows = line_mean(picture, Axis::Horizontal, radius, boundary)?;
    line_mean(&rows, Axis::Vertical, radius, boundary)
}

/// Maximum standard deviation for which a Gaussian is computed from its taps.
const EXACT_SIGMA: f64 = 7.0;
/// Number of cosines.
const COSINES: usize = 4;
/// Radius of a window, in standard deviations.
const WINDOW: f64 = 3.7;

/// Gaussian along a line, as a sum of cosines.
struct SlidingGaussian {
    axis: Axis,
    radius: u32,
    /// Weights of the cosines.
    weights: [f64; COSINES + 1],
}

impl SlidingGaussian {
    fn new(axis: Axis, sigma: f64) -> SlidingGaussian {
        let radius = (WINDOW * sigma).ceil() as i64;
        let period = (2 * radius + 1) as f64;
        let gaussian = |d: i64| (-0.5 * (d as f64 / sigma).powi(2)).exp();
        let sum: f64 = (-radius..=radius).map(gaussian).sum();
        let mut weights = [0.0; COSINES + 1];
        for (k, weight) in weights.iter_mut().enumerate() {
            let angle = 2.0 * std::f64::consts::PI * k as f64 / period;
            let projected: f64 = (-radius..=radius).map(|d| gaussian(d) * (angle * d as f64).cos()).sum();
            *weight = projected / sum / period * if k == 0 { 1.0 } else { 2.0 };
        }
        SlidingGaussian { axis, radius: radius as u32, weights }
    }

    /// Moves the sums by one pixel: rotates each by its angle and adds the change of the window.
    fn moved<'k>(&self, sums: &[Precise<'k>], change: Precise<'k>) -> Vec<Precise<'k>> {
        let period = f64::from(2 * self.radius + 1);
        let mut next = vec![sums[0] + change];
        for k in 1..=COSINES {
            let angle = 2.0 * std::f64::consts::PI * k as f64 / period;
            let (sin, cos) = angle.sin_cos();
            // The pixel that enters is at the end of the window.
            let (enter_sin, enter_cos) = (-angle * f64::from(self.radius)).sin_cos();
            let (re, im) = (sums[2 * k - 1], sums[2 * k]);
            next.push(re * cos - im * sin + change * enter_cos);
            next.push(re * sin + im * cos + change * enter_sin);
        }
        next
    }
}

impl Moving for SlidingGaussian {
    fn name(&self) -> String {
        "sliding_gaussian".into()
    }

    fn axis(&self) -> Axis {
        self.axis
    }

    fn inputs(&self) -> Vec<Indexer> {
        vec![Indexer::stretch(self.axis, self.radius + 1, self.radius)]
    }

    fn start<'k>(&self, k: Kernel<'k>) -> Vec<Precise<'k>> {
        let states: Vec<_> = (0..2 * COSINES + 1 + COUNTS).map(|_| k.local(0.0f64)).collect();
        let radius = self.radius as i32;
        k.repeat(-radius - 1, radius, |i| {
            let now: Vec<Precise<'k>> = states.iter().map(|state| state.get()).collect();
            let (sums, counts) = now.split_at(2 * COSINES + 1);
            let change = WindowChange::entering(k.input(0).along(i));
            let next = self.moved(sums, change.sum).into_iter().chain(change.counts(counts));
            states.iter().zip(next).for_each(|(state, value)| state.set(value));
        });
        states.iter().map(|state| state.get()).collect()
    }

    fn step<'k>(&self, k: Kernel<'k>, state: &[Precise<'k>]) -> (Vec<Precise<'k>>, Vec<Real<'k>>) {
        let (input, radius) = (k.input(0), self.radius as i32);
        let change = WindowChange::moving(input.along(radius), input.along(-radius - 1));
        let (sums, counts) = state.split_at(2 * COSINES + 1);
        let (sums, counts) = (self.moved(sums, change.sum), change.counts(counts));
        let mut result = sums[0] * self.weights[0];
        for number in 1..=COSINES {
            result = result + sums[2 * number - 1] * self.weights[number];
        }
        let result = with_outliers(result.cast::<f32>(), &counts);
        (sums.into_iter().chain(counts).collect(), vec![result])
    }
}

fn gaussian_line(picture: &Picture, axis: Axis, sigma: f64, boundary: Boundary) -> Result<Picture> {
    if sigma > EXACT_SIGMA {
        return SlidingGaussian::new(axis, sigma).build()?.with_boundary(boundary).one(&[picture]);
    }
    let radius = ((4.3 * sigma).ceil() as i32).max(1);
    let weights: Vec<f64> = (0..=radius).map(|d| (-0.5 * (f64::from(d) / sigma).powi(2)).exp()).collect();
    let sum = 2.0 * weights.iter().sum::<f64>() - weights[0];
    let weights: Vec<f32> = weights.iter().map(|weight| (weight / sum) as f32).collect();
    let inputs = [Indexer::line(axis, radius as u32)];
    let functor = Primitive::from_kernel("gaussian", &inputs, &[Output::Component], &weights, |k| {
        let mut sum = k.input(0).centre() * k.parameter(0);
        for d in 1..=radius {
            sum = sum + (k.input(0).along(-d) + k.input(0).along(d)) * k.parameter(d as usize);
        }
        vec![sum]
    })?;
    functor.with_boundary(boundary).one(&[picture])
}

/// Computes the Gaussian blur. Its error is below 10⁻³ of the range of values for every `sigma`.
pub fn gaussian(picture: &Picture, sigma: f64, boundary: Boundary) -> Result<Picture> {
    if sigma < 0.05 {
        return Ok(picture.clone());
    }
    let rows = gaussian_line(picture, Axis::Horizontal, sigma, boundary)?;
    gaussian_line(&rows, Axis::Vertical, sigma, boundary)
}

/// Computes the unsharp mask: x + amount · (x − gaussian(x)).
pub fn unsharp(picture: &Picture, sigma: f64, amount: f32, boundary: Boundary) -> Result<Picture> {
    let soft = gaussian(picture, sigma, boundary)?;
    let inputs = [Indexer::point(), Indexer::point()];
    let functor = Primitive::from_kernel("unsharp", &inputs, &[Output::Component], &[amount], |k| {
        let (x, soft) = (k.input(0).centre(), k.input(1).centre());
        vec![x + k.parameter(0) * (x - soft)]
    })?;
    functor.one(&[picture, &soft])
}
