//! Values of one plane, in `f64`.

use crate::image::{ImageError, Plane};
use broadloom_skeleton::Rule;

/// Values of the pixels outside of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    /// The boundary rule.
    pub(crate) rule: Rule,
    /// The value where the rule is a constant.
    pub(crate) border: f64,
}

impl Edge {
    /// Returns the index inside of an axis that stands for any index; `None` where the constant does.
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
    /// The values.
    pub(crate) values: Vec<f64>,
}

impl Field {
    /// Returns the values of a plane.
    pub(crate) fn of(plane: &Plane) -> Field {
        let values = plane.to_f32().into_iter().map(f64::from).collect();
        Field { width: i64::from(plane.width()), height: i64::from(plane.height()), values }
    }

    /// Makes a field of a function of the column and the row.
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

    /// Returns the value at a place inside.
    pub(crate) fn get(&self, x: i64, y: i64) -> f64 {
        self.values[(y * self.width + x) as usize]
    }

    /// Returns the value at any place.
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

    /// Returns a field whose value at a place is a function of the place; the size stays.
    pub(crate) fn around(&self, function: impl FnMut(i64, i64) -> f64) -> Field {
        Field::from_fn(self.width, self.height, function)
    }
}
