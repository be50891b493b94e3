//! The bilateral filter by a grid in space and value.
//!
//! The grid is a picture with as many rows as the grid. A row holds the cells of a row of the image, each
//! with its values side by side. Neighbouring pixels therefore read neighbouring cells.

use crate::functor::{Indexer, Output, Primitive, Real, Whole};
use crate::{Boundary, Error, Picture, Result};

/// Settings of the filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridSettings {
    /// Side of a cell, in pixels.
    pub cell: u32,
    /// Extent of a cell in value.
    pub range: f64,
    /// Minimum value.
    pub low: f64,
    /// Maximum value.
    pub high: f64,
}

/// Number of cells before the first pixel and after the last.
const MARGIN: i32 = 2;
/// Maximum number of cells of a grid.
const MAX_CELLS: u64 = 1 << 28;
/// Maximum number of planes of values.
const MAX_VALUES: f64 = 4096.0;

impl GridSettings {
    /// Returns the position of a value along the axis of values: the index of the cell below, and the weight
    /// of the next cell.
    ///
    /// The interpolated result is continuous, so the rounding of `f32` does not show. The exception is a
    /// lower end of the axis that is itself rounded.
    fn level<'k>(&self, value: Real<'k>) -> (Whole<'k>, Real<'k>) {
        let GridSettings { range, low, high, .. } = *self;
        if f64::from(low as f32) == low {
            let level = (value.max(low as f32).min(high as f32) - low as f32) * (1.0 / range) as f32;
            return (level.floor().cast::<i32>(), level - level.floor());
        }
        let level = (value.cast::<f64>().max(low).min(high) - low) / range;
        (level.floor().cast::<i32>(), (level - level.floor()).cast::<f32>())
    }

    /// Returns the samples at the ends of the axis of values, rounded outwards. Samples beyond them are in
    /// the same cells.
    fn ends(&self) -> [f32; 2] {
        let (low, high) = (self.low as f32, self.high as f32);
        let is_inside = |end: f32| f64::from(end) > self.low && f64::from(end) < self.high;
        [if is_inside(low) { low.next_down() } else { low }, if is_inside(high) { high.next_up() } else { high }]
    }

    /// Returns the smallest sample of each cell, and infinity after the last cell. Comparisons with these
    /// samples find the nearest cell as exactly as `f64` does.
    fn starts(&self, values: i32) -> Vec<f32> {
        let GridSettings { range, low, high, .. } = *self;
        let cell = |value: f32| ((f64::from(value).max(low).min(high) - low) / range + 0.5).floor();
        // Finite samples have the order of these numbers.
        let sample = |number: i32| f32::from_bits(if number < 0 { i32::MAX.wrapping_sub(number) } else { number } as u32);
        let least = i64::from(i32::MAX.wrapping_sub(f32::MIN.to_bits() as i32));
        let start = |own: i32| {
            let (mut low, mut high) = (least, i64::from(f32::INFINITY.to_bits()));
            while low < high {
                let middle = (low + high).div_euclid(2);
                match cell(sample(middle as i32)) >= f64::from(own) {
                    true => high = middle,
                    false => low = middle + 1,
                }
            }
            sample(low as i32)
        };
        let inner = (1..values).map(start);
        std::iter::once(f32::NEG_INFINITY).chain(inner).chain([f32::INFINITY]).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GridAxis {
    Values,
    Columns,
    Rows,
}

/// Blurs a grid with `values` values per cell by [1 4 6 4 1] along an axis.
fn blurred(grid: &Picture, values: i32, along: GridAxis) -> Result<Picture> {
    let [x, y] = match along {
        GridAxis::Values => [1, 0],
        GridAxis::Columns => [values, 0],
        GridAxis::Rows => [0, 1],
    };
    let offsets = [-2, -1, 0, 1, 2].map(|d| [d * x, d * y]);
    let functor = Primitive::from_kernel("blur_grid", &[Indexer::sparse(&offsets)], &[Output::Component], &[], |k| {
        let at = |d: i32| {
            let there = k.input(0).at(d * x, d * y);
            if along != GridAxis::Values {
                return there;
            }
            let value = k.x() % values + d;
            value.ge(0).and(value.lt(values)).select::<f32>(there, 0.0)
        };
        vec![(at(-2) + at(2)) + (at(-1) + at(1)) * 4.0 + at(0) * 6.0]
    })?;
    functor.with_boundary(Boundary::Constant(0.0)).one(&[grid])
}

/// Computes the filter of every component.
pub fn bilateral_grid(picture: &Picture, settings: &GridSettings, boundary: Boundary) -> Result<Picture> {
    let GridSettings { cell, range, low, high } = *settings;
    let values = ((high - low) / range).round() + 2.0;
    let bounds = picture.bounds();
    let cells = |extent: u32| u64::from((extent - 1) / cell.max(1)) + 2 + 2 * MARGIN as u64;
    let (columns, rows) = (cells(bounds.width), cells(bounds.height));
    let bad = |reason: &str| Error::Functor { name: "bilateral_grid".into(), reason: reason.to_owned() };
    if cell == 0 || !(2.0..=MAX_VALUES).contains(&values) {
        return Err(bad("a cell has at least a pixel, and there are at most 4096 cells along the axis of values"));
    }
    let values = values as u64;
    if columns.saturating_mul(rows).saturating_mul(values) > MAX_CELLS {
        return Err(bad("the grid has too many cells; choose larger ones"));
    }
    let (side, values) = (cell as i32, values as i32);
    let (starts, [least, most]) = (settings.starts(values), settings.ends());
    let gather = Primitive::from_kernel("gather", &[Indexer::anywhere()], &[Output::Component; 2], &[], |k| {
        let (first, end) = (k.table(&starts, k.x() % values), k.table(&starts, k.x() % values + 1));
        let (sum, count) = (k.local(0.0f32), k.local(0.0f32));
        let (left, top) = (corner(k.x() / values, side), corner(k.y(), side));
        k.repeat(0, side, |j| {
            // Sums of rows keep the rounding error of large cells small.
            let of_row = k.local(0.0f32);
            k.repeat(0, side, |i| {
                let sample = k.input(0).pick(left + i, top + j).max(least).min(most);
                let own = sample.ge(first).and(sample.lt(end));
                let value = match [least, most] == [low as f32, high as f32] {
                    true => sample,
                    false => sample.max(low as f32).min(high as f32),
                };
                of_row.set(of_row.get() + own.select::<f32>(value, 0.0));
                count.set(count.get() + own.select::<f32>(1.0, 0.0));
            });
            sum.set(sum.get() + of_row.get());
        });
        vec![sum.get(), count.get()]
    })?;
    let gather = gather.with_boundary(boundary).with_size(columns as usize * values as usize, rows as usize)?;
    let [sum, count] = gather.call([picture])?;
    let soften = |grid: &Picture| -> Result<Picture> {
        let grid = blurred(grid, values, GridAxis::Values)?;
        blurred(&blurred(&grid, values, GridAxis::Columns)?, values, GridAxis::Rows)
    };
    let (sum, count) = (soften(&sum)?, soften(&count)?);
    let inputs = [Indexer::point(), Indexer::anywhere(), Indexer::anywhere()];
    let slice = Primitive::from_kernel("slice", &inputs, &[Output::Component], &[], |k| {
        let (z, above) = settings.level(k.input(0).centre());
        let shares = [share(k.x(), side), share(k.y(), side), above];
        let (x, y) = (k.x() / side + MARGIN, k.y() / side + MARGIN);
        // The two values of a cell are adjacent.
        let mixed = |input: usize| {
            let mut total = k.constant(0.0f32);
            for corner in 0..8 {
                let steps = [corner >> 1 & 1, corner >> 2, corner & 1];
                let mut weight = k.constant(1.0f32);
                for (step, share) in steps.iter().zip(shares) {
                    weight = weight * if *step == 1 { share } else { 1.0 - share };
                }
                total = total + weight * k.input(input).pick((x + steps[0]) * values + z + steps[2], y + steps[1]);
            }
            total
        };
        vec![mixed(1) / mixed(2)]
    })?;
    // All positions are inside the grid, so clamped reads need no bounds check.
    slice.with_boundary(Boundary::Clamp).one(&[picture, &sum, &count])
}

/// Returns the first pixel of a cell.
fn corner(place: Whole<'_>, side: i32) -> Whole<'_> {
    (place - MARGIN) * side - side / 2
}

/// Returns the weight of the next cell at a position.
fn share(place: Whole<'_>, side: i32) -> Real<'_> {
    (place % side).cast::<f32>() * (1.0 / side as f32)
}
