//! Values of one plane, in `f64`.

use crate::image::{ImageError, Plane};
use broadloom_skeleton::Rule;

/// Rule for the values of pixels outside a field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    /// Boundary rule.
    pub(crate) rule: Rule,
    /// Value for a constant rule.
    pub(crate) border: f64,
}

impl Edge {
    /// Maps any index of an axis to an index inside; `None` if the constant applies.
    pub(crate) fn index(self, index: i64, extent: i64) -> Option<i64> {
        match self.rule {
            Rule::Constant => (0..extent).contains(&index).then_some(index),
            Rule::Clamp | Rule::Inside => Some(index.max(0).min(extent - 1)),
            Rule::Wrap => Some(index.rem_euclid(extent)),
            Rule::Mirror if extent == 1 => Some(0),
            Rule::Mirror => {
                let period = 2 * (extent - 1);
                let place = index.rem_euclid(period);
                Some(if place < extent { place } else { period - place })
            }
        }
    }
}

/// Values of one plane, row by row.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// Number of columns.
    pub(crate) width: i64,
    /// Number of rows.
    pub(crate) height: i64,
    /// Values, row by row.
    pub(crate) values: Vec<f64>,
}

impl Field {
    /// Returns the values of a plane.
    pub(crate) fn of(plane: &Plane) -> Field {
        let values = plane.to_f32().into_iter().map(f64::from).collect();
        Field { width: i64::from(plane.width()), height: i64::from(plane.height()), values }
    }

    /// Creates a field from a function of the column and the row.
    pub(crate) fn from_fn(width: i64, height: i64, mut function: impl FnMut(i64, i64) -> f64) -> Field {
        let mut values = Vec::with_capacity((width * height) as usize);
        for y in 0..height {
            for x in 0..width {
                values.push(function(x, y));
            }
        }
        Field { width, height, values }
    }

    /// Returns a plane of `f32` with these values.
    pub(crate) fn plane(&self, name: &str) -> Result<Plane, ImageError> {
        let samples: Vec<f32> = self.values.iter().map(|value| *value as f32).collect();
        Plane::new(name, self.width as u32, self.height as u32, samples)
    }

    /// Returns the value at a position inside the field.
    pub(crate) fn get(&self, x: i64, y: i64) -> f64 {
        self.values[(y * self.width + x) as usize]
    }

    /// Returns the value at any position.
    pub(crate) fn at(&self, x: i64, y: i64, edge: Edge) -> f64 {
        match (edge.index(x, self.width), edge.index(y, self.height)) {
            (Some(x), Some(y)) => self.get(x, y),
            _ => edge.border,
        }
    }

    /// Applies a function to every value.
    pub(crate) fn map(&self, function: impl Fn(f64) -> f64) -> Field {
        Field { values: self.values.iter().map(|value| function(*value)).collect(), ..*self }
    }

    /// Applies a function to the values of two fields of one size.
    pub(crate) fn zip(&self, other: &Field, function: impl Fn(f64, f64) -> f64) -> Field {
        let values = self.values.iter().zip(&other.values).map(|(a, b)| function(*a, *b)).collect();
        Field { values, ..*self }
    }

    /// Returns a field of equal size. Each value is a function of its position.
    pub(crate) fn around(&self, function: impl FnMut(i64, i64) -> f64) -> Field {
        Field::from_fn(self.width, self.height, function)
    }
}
