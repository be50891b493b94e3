//! Pictures from sensor values: `demosaic`, `camera`.

use super::blur;
use super::field::{Edge, Field};
use crate::declaration::{EffectError, Pattern, ReferenceCall, Settings, levels};
use crate::image::{Image, Plane};

/// Computes red, green and blue by the filters of Malvar, He and Cutler.
fn colors_of(x: &Field, edge: Edge, pattern: Pattern) -> [Field; 3] {
    let red = pattern.red();
    let red = (i64::from(red.0), i64::from(red.1));
    let mut result = [x.clone(), x.clone(), x.clone()];
    for row in 0..x.height {
        for column in 0..x.width {
            let s = |dx: i64, dy: i64| x.at(column + dx, row + dy, edge);
            let here = s(0, 0);
            let (horizontal, vertical) = (s(-1, 0) + s(1, 0), s(0, -1) + s(0, 1));
            let diagonal = s(-1, -1) + s(1, -1) + s(-1, 1) + s(1, 1);
            let (far_h, far_v) = (s(-2, 0) + s(2, 0), s(0, -2) + s(0, 2));
            let green = (4.0 * here + 2.0 * (horizontal + vertical) - far_h - far_v) / 8.0;
            let along_row = (5.0 * here + 4.0 * horizontal - diagonal - far_h + 0.5 * far_v) / 8.0;
            let along_column = (5.0 * here + 4.0 * vertical - diagonal - far_v + 0.5 * far_h) / 8.0;
            let opposite = (6.0 * here + 2.0 * diagonal - 1.5 * (far_h + far_v)) / 8.0;
            let (in_red_column, in_red_row) = (column % 2 == red.0, row % 2 == red.1);
            let [r, g, b] = match (in_red_column, in_red_row) {
                (true, true) => [here, green, opposite],
                (false, true) => [along_row, here, along_column],
                (true, false) => [along_column, here, along_row],
                (false, false) => [opposite, green, here],
            };
            let place = (row * x.width + column) as usize;
            for (field, value) in result.iter_mut().zip([r, g, b]) {
                field.values[place] = value;
            }
        }
    }
    result
}

fn sensor(settings: &Settings, image: &Image) -> Result<Field, EffectError> {
    match image.planes() {
        [plane] => Ok(Field::of(plane)),
        planes => Err(EffectError::Inputs {
            effect: settings.effect().name,
            reason: format!("it needs one plane with the values of a sensor; the image has {}", planes.len()),
        }),
    }
}

fn picture(image: &Image, fields: &[Field; 3]) -> Result<Image, EffectError> {
    let planes = fields.iter().zip(["R", "G", "B"]).map(|(field, name)| field.plane(name));
    Ok(image.with_planes(planes.collect::<Result<Vec<Plane>, _>>()?)?)
}

/// Computes `demosaic`.
pub(crate) fn demosaic(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let (ReferenceCall { settings, image, .. }, edge) = (*call, call.edge());
    let x = sensor(settings, image)?;
    picture(image, &colors_of(&x, edge, settings.chosen("pattern")))
}

/// Computes `camera`: hot pixels, levels, white balance, demosaicing, matrix, curve, sharpening.
pub(crate) fn camera(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let (ReferenceCall { settings, image, .. }, edge) = (*call, call.edge());
    let raw = sensor(settings, image)?;
    let (black, white) = levels(settings)?;
    let pattern: Pattern = settings.chosen("pattern");
    let red = pattern.red();
    let red = (i64::from(red.0), i64::from(red.1));
    let balanced = raw.around(|i, j| {
        let near = [(-2, 0), (2, 0), (0, -2), (0, 2)].map(|(dx, dy)| raw.at(i + dx, j + dy, edge));
        let value = raw.get(i, j).min(near.into_iter().fold(f64::NEG_INFINITY, f64::max));
        let gain = match (i % 2 == red.0, j % 2 == red.1) {
            (true, true) => settings.number("red"),
            (false, false) => settings.number("blue"),
            _ => 1.0,
        };
        (value - black) / (white - black) * gain
    });
    let fields = colors_of(&balanced, edge, pattern);
    let matrix = settings.numbers("matrix");
    let b = 2.0 - settings.number("contrast").exp2();
    let a = 2.0 - 2.0 * b;
    let gamma = settings.number("gamma");
    let curve = |x: f64| {
        let v = x.clamp(0.0, 1.0).powf(1.0 / gamma);
        if v > 0.5 { 1.0 - a * (1.0 - v).powi(2) - b * (1.0 - v) } else { a * v * v + b * v }
    };
    let sharpen = settings.number("sharpen");
    let rgb = [0, 1, 2].map(|row| {
        let mixed = fields[0].around(|i, j| {
            let sum: f64 = (0..3).map(|column| matrix[3 * row + column] * fields[column].get(i, j)).sum();
            curve(sum)
        });
        let soft = blur::binomial(&mixed, edge);
        mixed.zip(&soft, |v, soft| v + sharpen * (v - soft))
    });
    Ok(picture(image, &rgb)?.with_gamma(gamma))
}
