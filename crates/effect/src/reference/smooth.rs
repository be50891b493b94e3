//! Filters that preserve edges: `bilateral`, `nlmeans`, `bilateral_grid`.

use super::field::{Edge, Field};

/// Computes `bilateral`: weights of distance and of difference, over the square.
pub(crate) fn bilateral(x: &Field, edge: Edge, radius: i64, space: f64, range: f64) -> Field {
    x.around(|column, row| {
        let here = x.get(column, row);
        let (mut sum, mut weights) = (0.0, 0.0);
        for j in -radius..=radius {
            for i in -radius..=radius {
                let there = x.at(column + i, row + j, edge);
                let distance = (i * i + j * j) as f64 / (2.0 * space * space);
                let difference = (there - here).powi(2) / (2.0 * range * range);
                let weight = (-distance - difference).exp();
                sum += weight * there;
                weights += weight;
            }
        }
        sum / weights
    })
}

/// Computes `nlmeans`: weights exp(−mean squared difference of patches / strength²) over the search square.
pub(crate) fn nlmeans(x: &Field, edge: Edge, search: i64, patch: i64, strength: f64) -> Field {
    let count = ((2 * patch + 1) * (2 * patch + 1)) as f64;
    x.around(|column, row| {
        let (mut sum, mut weights) = (0.0, 0.0);
        for j in -search..=search {
            for i in -search..=search {
                let mut distance = 0.0;
                for v in -patch..=patch {
                    for u in -patch..=patch {
                        let here = x.at(column + u, row + v, edge);
                        let there = x.at(column + i + u, row + j + v, edge);
                        distance += (here - there).powi(2);
                    }
                }
                let weight = (-distance / count / (strength * strength)).exp();
                sum += weight * x.at(column + i, row + j, edge);
                weights += weight;
            }
        }
        sum / weights
    })
}

/// Grid over space and value: sums and counts. The values of cells outside the image follow the boundary
/// rule.
struct Grid {
    columns: i64,
    rows: i64,
    values: i64,
    /// Number of cells before the first pixel, on every side.
    margin: i64,
    cells: Vec<[f64; 2]>,
}

impl Grid {
    /// Returns a cell. Cells outside the grid are empty.
    fn at(&self, x: i64, y: i64, z: i64) -> [f64; 2] {
        let (x, y) = (x + self.margin, y + self.margin);
        let is_inside = (0..self.columns).contains(&x) && (0..self.rows).contains(&y) && (0..self.values).contains(&z);
        if is_inside { self.cells[((y * self.columns + x) * self.values + z) as usize] } else { [0.0; 2] }
    }

    /// Blurs by [1 4 6 4 1] along an axis.
    fn blurred(&self, step: [i64; 3]) -> Grid {
        let mut cells = Vec::with_capacity(self.cells.len());
        for y in 0..self.rows {
            for x in 0..self.columns {
                for z in 0..self.values {
                    let mut sum = [0.0; 2];
                    for (d, weight) in (-2..=2).zip([1.0, 4.0, 6.0, 4.0, 1.0]) {
                        let [i, j, k] = step.map(|step| step * d);
                        let cell = self.at(x - self.margin + i, y - self.margin + j, z + k);
                        sum = [sum[0] + weight * cell[0], sum[1] + weight * cell[1]];
                    }
                    cells.push(sum);
                }
            }
        }
        Grid { cells, ..*self }
    }
}

/// Computes `bilateral_grid`: values gathered in cells, blurred, and interpolated at the position and value
/// of each pixel.
pub(crate) fn grid(x: &Field, edge: Edge, cell: i64, range: f64, low: f64, high: f64) -> Field {
    let level = |value: f64| (value.max(low).min(high) - low) / range;
    // Margin of cells that interpolation and the two blurs along x and y read: two before the first and three
    // after the last.
    let margin = 2;
    let mut grid = Grid {
        columns: (x.width - 1) / cell + 2 + 2 * margin,
        rows: (x.height - 1) / cell + 2 + 2 * margin,
        values: level(high).round() as i64 + 2,
        margin,
        cells: vec![],
    };
    grid.cells = vec![[0.0; 2]; (grid.columns * grid.rows * grid.values) as usize];
    for row in 0..grid.rows {
        for column in 0..grid.columns {
            for j in 0..cell {
                for i in 0..cell {
                    let (u, v) = ((column - margin) * cell + i - cell / 2, (row - margin) * cell + j - cell / 2);
                    let value = x.at(u, v, edge).max(low).min(high);
                    let z = (level(value) + 0.5).floor() as i64;
                    let place = &mut grid.cells[((row * grid.columns + column) * grid.values + z) as usize];
                    *place = [place[0] + value, place[1] + 1.0];
                }
            }
        }
    }
    let grid = grid.blurred([0, 0, 1]).blurred([1, 0, 0]).blurred([0, 1, 0]);
    x.around(|column, row| {
        let z = level(x.get(column, row));
        let (i, j, k) = (column / cell, row / cell, z.floor() as i64);
        let fractions = [(column % cell) as f64 / cell as f64, (row % cell) as f64 / cell as f64, z - z.floor()];
        let mut sum = [0.0; 2];
        for corner in 0..8i64 {
            let steps = [corner & 1, corner >> 1 & 1, corner >> 2];
            let weights = steps.iter().zip(fractions).map(|(step, f)| if *step == 1 { f } else { 1.0 - f });
            let weight: f64 = weights.product();
            let there = grid.at(i + steps[0], j + steps[1], k + steps[2]);
            sum = [sum[0] + weight * there[0], sum[1] + weight * there[1]];
        }
        sum[0] / sum[1]
    })
}
