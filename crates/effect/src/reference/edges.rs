//! Gradients and effects that use them: `sobel`, `harris`, `canny`.

use super::field::{Edge, Field};
use super::{blur, mean_of_planes};
use crate::declaration::{EffectError, ReferenceCall, thresholds};
use crate::image::Image;

/// Computes the gradients by [1 2 1]ᵀ·[−1 0 1] and its transpose.
fn gradients(x: &Field, edge: Edge) -> (Field, Field) {
    let weights = [(-1, 1.0), (0, 2.0), (1, 1.0)];
    let along_x =
        x.around(|i, j| weights.iter().map(|(d, weight)| weight * (x.at(i + 1, j + d, edge) - x.at(i - 1, j + d, edge))).sum());
    let along_y =
        x.around(|i, j| weights.iter().map(|(d, weight)| weight * (x.at(i + d, j + 1, edge) - x.at(i + d, j - 1, edge))).sum());
    (along_x, along_y)
}

/// Computes `sobel`: √(gx² + gy²).
pub(crate) fn sobel(x: &Field, edge: Edge) -> Field {
    let (gx, gy) = gradients(x, edge);
    gx.zip(&gy, |gx, gy| (gx * gx + gy * gy).sqrt())
}

/// Computes `harris`: det − k·trace² of the sums of gradient products over the square.
pub(crate) fn harris(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let (ReferenceCall { settings, image, .. }, edge) = (*call, call.edge());
    let (gx, gy) = gradients(&mean_of_planes(image), edge);
    let radius = settings.integer("radius");
    let count = ((2 * radius + 1) * (2 * radius + 1)) as f64;
    let sums = |products: Field| blur::mean(&products, edge, radius).map(|mean| mean * count);
    let (a, b, c) = (sums(gx.zip(&gx, |p, q| p * q)), sums(gy.zip(&gy, |p, q| p * q)), sums(gx.zip(&gy, |p, q| p * q)));
    let k = settings.number("k");
    let det = a.zip(&b, |a, b| a * b).zip(&c, |ab, c| ab - c * c);
    let trace = a.zip(&b, |a, b| a + b);
    Ok(image.with_planes(vec![det.zip(&trace, |det, trace| det - k * trace * trace).plane("Y")?])?)
}

/// Computes `canny`: thin edges, by thresholds with hysteresis.
pub(crate) fn canny(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let (ReferenceCall { settings, image, .. }, edge) = (*call, call.edge());
    let soft = blur::gaussian(&mean_of_planes(image), edge, settings.number("sigma"));
    let (gx, gy) = gradients(&soft, edge);
    let size = gx.zip(&gy, |gx, gy| (gx * gx + gy * gy).sqrt());
    let inside = |x: i64, y: i64| (0..size.width).contains(&x) && (0..size.height).contains(&y);
    let at = |x: i64, y: i64| if inside(x, y) { size.get(x, y) } else { 0.0 };
    let (low, high) = thresholds(settings)?;
    let tan = (std::f64::consts::PI / 8.0).tan();
    let thin = size.around(|x, y| {
        let (dx, dy) = (gx.get(x, y), gy.get(x, y));
        // The nearest of four directions: a step along the gradient to the right, or downwards if the
        // gradient is vertical.
        let (i, j) = if dy.abs() <= tan * dx.abs() {
            (1, 0)
        } else if dx.abs() <= tan * dy.abs() {
            (0, 1)
        } else if (dx < 0.0) == (dy < 0.0) {
            (1, 1)
        } else {
            (-1, 1)
        };
        let here = size.get(x, y);
        if here > at(x - i, y - j) && here >= at(x + i, y + j) { here } else { 0.0 }
    });
    let mut edges = thin.map(|size| f64::from(size > high && size > low));
    let mut open: Vec<(i64, i64)> =
        (0..thin.height).flat_map(|y| (0..thin.width).map(move |x| (x, y))).filter(|(x, y)| edges.get(*x, *y) > 0.0).collect();
    while let Some((x, y)) = open.pop() {
        for (i, j) in (y - 1..=y + 1).flat_map(|j| (x - 1..=x + 1).map(move |i| (i, j))) {
            if inside(i, j) && edges.get(i, j) == 0.0 && thin.get(i, j) > low {
                edges.values[(j * thin.width + i) as usize] = 1.0;
                open.push((i, j));
            }
        }
    }
    Ok(image.with_planes(vec![edges.plane("Y")?])?)
}
