//! Linear filters.

use super::field::{Edge, Field};

/// Convolves rows and then columns with a symmetric kernel: `kernel[d]` is the weight at distance `d`.
fn separable(x: &Field, edge: Edge, kernel: &[f64]) -> Field {
    let radius = kernel.len() as i64 - 1;
    let weight = |d: i64| kernel[d.unsigned_abs() as usize];
    let rows = x.around(|i, j| (-radius..=radius).map(|d| weight(d) * x.at(i + d, j, edge)).sum());
    rows.around(|i, j| (-radius..=radius).map(|d| weight(d) * rows.at(i, j + d, edge)).sum())
}

/// Returns weights exp(−d² / 2σ²) up to distance ⌈5σ⌉, whose sum over both sides is 1.
pub(crate) fn gaussian_kernel(sigma: f64) -> Vec<f64> {
    if sigma == 0.0 {
        return vec![1.0];
    }
    let radius = (5.0 * sigma).ceil() as i64;
    let kernel: Vec<f64> = (0..=radius).map(|d| (-0.5 * (d as f64 / sigma).powi(2)).exp()).collect();
    let sum = 2.0 * kernel.iter().sum::<f64>() - kernel[0];
    kernel.into_iter().map(|weight| weight / sum).collect()
}

/// Computes `gaussian`: Σ w·x(q) / Σ w along rows and columns, w = exp(−d² / 2σ²).
pub(crate) fn gaussian(x: &Field, edge: Edge, sigma: f64) -> Field {
    separable(x, edge, &gaussian_kernel(sigma))
}

/// Computes `box`: Σ x(q) / (2r+1)² over the square.
pub(crate) fn mean(x: &Field, edge: Edge, radius: i64) -> Field {
    let taps = (2 * radius + 1) as f64;
    separable(x, edge, &vec![1.0 / taps; radius as usize + 1])
}

/// Computes the mean of a line of 2r+1 pixels along rows, or else along columns.
pub(crate) fn line_mean(x: &Field, edge: Edge, radius: i64, along_rows: bool) -> Field {
    let taps = (2 * radius + 1) as f64;
    x.around(|i, j| {
        let sum: f64 = (-radius..=radius).map(|d| if along_rows { x.at(i + d, j, edge) } else { x.at(i, j + d, edge) }).sum();
        sum / taps
    })
}

/// Computes the blur by [1 2 1]/4 along rows and columns.
pub(crate) fn binomial(x: &Field, edge: Edge) -> Field {
    separable(x, edge, &[0.5, 0.25])
}

/// Computes `unsharp`: x + amount · (x − gaussian(x)).
pub(crate) fn unsharp(x: &Field, edge: Edge, sigma: f64, amount: f64) -> Field {
    let soft = gaussian(x, edge, sigma);
    x.zip(&soft, |value, soft| value + amount * (value - soft))
}
