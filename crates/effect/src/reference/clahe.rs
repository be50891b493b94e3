//! `clahe`: equalisation of local histograms with limited contrast (Zuiderveld).

use super::field::{Edge, Field};
use crate::declaration::{EffectError, ReferenceCall, range};
use crate::image::Image;

/// Computes `clahe` of one plane.
pub(crate) fn equalise(x: &Field, edge: Edge, tiles: i64, clip: f64, bins: i64, range: (f64, f64)) -> Field {
    let (low, high) = range;
    let bin = |value: f64| {
        let place = (value - low) / (high - low) * bins as f64;
        (place.floor() as i64).clamp(0, bins - 1)
    };
    let (width, height) = ((x.width + tiles - 1) / tiles, (x.height + tiles - 1) / tiles);
    let area = (width * height) as f64;
    let limit = if clip > 0.0 { (clip * area / bins as f64).floor().max(1.0) } else { f64::INFINITY };
    let mut tables = vec![];
    for row in 0..tiles {
        for column in 0..tiles {
            let mut counts = vec![0.0f64; bins as usize];
            for j in 0..height {
                for i in 0..width {
                    counts[bin(x.at(column * width + i, row * height + j, edge)) as usize] += 1.0;
                }
            }
            let excess: f64 = counts.iter().map(|count| (count - limit).max(0.0)).sum();
            let mut sum = 0.0;
            let table: Vec<f64> = counts
                .iter()
                .map(|count| {
                    sum += count.min(limit) + excess / bins as f64;
                    low + (high - low) * sum / area
                })
                .collect();
            tables.push(table);
        }
    }
    // The nearest two tiles along an axis, and the weight of the second.
    let near = |place: i64, extent: i64| {
        let at = place as f64 / extent as f64 - 0.5;
        let first = at.floor();
        let inside = |tile: f64| (tile as i64).clamp(0, tiles - 1);
        (inside(first), inside(first + 1.0), at - first)
    };
    x.around(|i, j| {
        let bin = bin(x.get(i, j)) as usize;
        let ((left, right, fx), (top, bottom, fy)) = (near(i, width), near(j, height));
        let table = |column: i64, row: i64| tables[(row * tiles + column) as usize][bin];
        let line = |row: i64| (1.0 - fx) * table(left, row) + fx * table(right, row);
        (1.0 - fy) * line(top) + fy * line(bottom)
    })
}

/// Computes `clahe` of all planes but alpha.
pub(crate) fn clahe(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let range = range(call.settings)?;
    let (tiles, bins) = (call.integer("tiles"), call.integer("bins"));
    call.each_color(|x, edge| equalise(x, edge, tiles, call.number("clip"), bins, range))
}
