//! Pictures from sensor values.

use crate::functor::{Axis, Indexer, Kernel, Output, Primitive, Truth};
use crate::{Boundary, Picture, Result};

/// Position of red in a Bayer pattern: its column and row, each 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bayer {
    /// Column of red: 0 or 1.
    pub column: i32,
    /// Row of red: 0 or 1.
    pub row: i32,
}

impl Bayer {
    /// Returns whether the current pixel is in a column and in a row with red.
    fn sites<'k>(self, k: &Kernel<'k>) -> (Truth<'k>, Truth<'k>) {
        ((k.x() % 2).eq(self.column), (k.y() % 2).eq(self.row))
    }
}

/// Computes red, green and blue by the filters of Malvar, He and Cutler.
pub fn demosaic(sensor: &Picture, pattern: Bayer, boundary: Boundary) -> Result<Picture> {
    let inputs = [Indexer::square(2).pixel(1)];
    let functor = Primitive::from_kernel("demosaic", &inputs, &[Output::Pixel(3)], &[], |k| {
        let s = |x: i32, y: i32| k.input(0).at(x, y);
        let here = s(0, 0);
        let (horizontal, vertical) = (s(-1, 0) + s(1, 0), s(0, -1) + s(0, 1));
        let diagonal = s(-1, -1) + s(1, -1) + s(-1, 1) + s(1, 1);
        let (far_h, far_v) = (s(-2, 0) + s(2, 0), s(0, -2) + s(0, 2));
        let green = (here * 4.0 + (horizontal + vertical) * 2.0 - far_h - far_v) * 0.125;
        let along_row = (here * 5.0 + horizontal * 4.0 - diagonal - far_h + far_v * 0.5) * 0.125;
        let along_column = (here * 5.0 + vertical * 4.0 - diagonal - far_v + far_h * 0.5) * 0.125;
        let opposite = (here * 6.0 + diagonal * 2.0 - (far_h + far_v) * 1.5) * 0.125;
        let (column, row) = pattern.sites(&k);
        let red = row.select::<f32>(column.select(here, along_row), column.select::<f32>(along_column, opposite));
        let blue = row.select::<f32>(column.select::<f32>(opposite, along_column), column.select(along_row, here));
        let is_green = column.and(!row).or((!column).and(row));
        vec![red, is_green.select(here, green), blue]
    })?;
    functor.with_boundary(boundary).one(&[sensor])
}

/// Settings of a camera.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Camera {
    /// Pattern of the sensor.
    pub pattern: Bayer,
    /// Sensor values of black and white.
    pub levels: [f32; 2],
    /// Gains of red and blue.
    pub gains: [f32; 2],
    /// Colour matrix, row by row.
    pub matrix: [f32; 9],
    /// Inverse of the curve's exponent.
    pub gamma: f32,
    /// Strength of the S curve.
    pub contrast: f32,
    /// Strength of sharpening.
    pub sharpen: f32,
}

/// Blurs by [1 2 1]/4 along an axis.
fn binomial(picture: &Picture, axis: Axis, boundary: Boundary) -> Result<Picture> {
    let functor = Primitive::from_kernel("binomial", &[Indexer::line(axis, 1)], &[Output::Component], &[], |k| {
        let x = k.input(0);
        vec![x.along(-1) * 0.25 + x.centre() * 0.5 + x.along(1) * 0.25]
    })?;
    functor.with_boundary(boundary).one(&[picture])
}

/// Computes a picture from sensor values: hot pixels, levels, white balance, demosaicing, matrix, curve,
/// sharpening.
pub fn camera(sensor: &Picture, camera: &Camera, boundary: Boundary) -> Result<Picture> {
    let [black, white] = camera.levels;
    let parameters = [black, 1.0 / (white - black), camera.gains[0], camera.gains[1]];
    let inputs = [Indexer::square(2)];
    let balance = Primitive::from_kernel("balance", &inputs, &[Output::Component], &parameters, |k| {
        let s = |x: i32, y: i32| k.input(0).at(x, y);
        let most = s(-2, 0).max(s(2, 0)).max(s(0, -2)).max(s(0, 2));
        let (column, row) = camera.pattern.sites(&k);
        let gain = column.and(row).select::<f32>(k.parameter(2), (!column).and(!row).select::<f32>(k.parameter(3), 1.0));
        vec![(s(0, 0).min(most) - k.parameter(0)) * k.parameter(1) * gain]
    })?;
    let balanced = balance.with_boundary(boundary).one(&[sensor])?;
    let rgb = demosaic(&balanced, camera.pattern, boundary)?;
    let b = 2.0 - camera.contrast.exp2();
    let parameters = [camera.matrix.as_slice(), &[1.0 / camera.gamma, 2.0 - 2.0 * b, b]].concat();
    let inputs = [Indexer::point().pixel(3)];
    let develop = Primitive::from_kernel("develop", &inputs, &[Output::Pixel(3)], &parameters, |k| {
        let rgb = [0, 1, 2].map(|component| k.input(0).component(component).centre());
        let (a, b) = (k.parameter(10), k.parameter(11));
        let mixed = |row: usize| {
            let p = |column: usize| k.parameter(3 * row + column) * rgb[column];
            let v = (p(0) + p(1) + p(2)).max(0.0).min(1.0).power_of_unit(k.parameter(9));
            let rest = 1.0 - v;
            v.gt(0.5).select(1.0 - a * rest * rest - b * rest, a * v * v + b * v)
        };
        (0..3).map(mixed).collect()
    })?;
    let developed = develop.one(&[&rgb])?;
    let soft = binomial(&binomial(&developed, Axis::Horizontal, boundary)?, Axis::Vertical, boundary)?;
    let inputs = [Indexer::point(), Indexer::point()];
    let sharpen = Primitive::from_kernel("sharpen", &inputs, &[Output::Component], &[camera.sharpen], |k| {
        let (v, soft) = (k.input(0).centre(), k.input(1).centre());
        vec![v + k.parameter(0) * (v - soft)]
    })?;
    sharpen.one(&[&developed, &soft])
}
