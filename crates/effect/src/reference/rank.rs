//! Filters that select a value of a square: `median`, `erode`, `dilate`.

use super::field::{Edge, Field};

fn square(x: &Field, edge: Edge, radius: i64, column: i64, row: i64) -> impl Iterator<Item = f64> + '_ {
    let side = move || -radius..=radius;
    side().flat_map(move |j| side().map(move |i| x.at(column + i, row + j, edge)))
}

/// Computes `median`: the median of the values of the square.
pub(crate) fn median(x: &Field, edge: Edge, radius: i64) -> Field {
    let mut values = vec![];
    x.around(|column, row| {
        values.clear();
        values.extend(square(x, edge, radius, column, row));
        let middle = values.len() / 2;
        *values.select_nth_unstable_by(middle, f64::total_cmp).1
    })
}

/// Computes `erode`: the minimum of the square; NaN if all values are NaN.
pub(crate) fn erode(x: &Field, edge: Edge, radius: i64) -> Field {
    x.around(|column, row| square(x, edge, radius, column, row).fold(f64::NAN, f64::min))
}

/// Computes `dilate`: the maximum of the square; NaN if all values are NaN.
pub(crate) fn dilate(x: &Field, edge: Edge, radius: i64) -> Field {
    x.around(|column, row| square(x, edge, radius, column, row).fold(f64::NAN, f64::max))
}

/// Computes `open`: dilate(erode(x)).
pub(crate) fn open(x: &Field, edge: Edge, radius: i64) -> Field {
    dilate(&erode(x, edge, radius), edge, radius)
}

/// Computes `close`: erode(dilate(x)).
pub(crate) fn close(x: &Field, edge: Edge, radius: i64) -> Field {
    erode(&dilate(x, edge, radius), edge, radius)
}
