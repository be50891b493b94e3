//! Effects on the colour of single pixels: `color_matrix`, `curves`, `lut`, `key`.

use super::field::Field;
use super::replaced;
use crate::declaration::{Curve, EffectError, Interpolation, KeyFactor, Premultiply, ReferenceCall, colors, levels};
use crate::file::Cube;
use crate::image::{Alpha, Image, Plane};

/// Applies a function to red, green and blue together. Other planes are not changed.
fn each_pixel(call: &ReferenceCall<'_>, function: impl Fn([f64; 3]) -> [f64; 3]) -> Result<Image, EffectError> {
    let ReferenceCall { settings, image, .. } = *call;
    let indices = colors(settings.effect().name, &image.names().collect::<Vec<&str>>())?;
    let mut fields = indices.map(|index| Field::of(&image.planes()[index]));
    for place in 0..fields[0].values.len() {
        let result = function([0, 1, 2].map(|channel| fields[channel].values[place]));
        for (field, value) in fields.iter_mut().zip(result) {
            field.values[place] = value;
        }
    }
    replaced(image, &indices.into_iter().zip(fields).collect::<Vec<_>>())
}

/// Computes `color_matrix`: matrix · rgb.
pub(crate) fn matrix(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let matrix = call.settings.numbers("matrix");
    each_pixel(call, |rgb| [0, 3, 6].map(|row| (0..3).map(|column| matrix[row + column] * rgb[column]).sum()))
}

/// Computes `lut`: a table of a `.cube` file.
pub(crate) fn lut(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let cube = Cube::read(call.settings.file("file"))?;
    let interpolation: Interpolation = call.settings.chosen("interpolation");
    each_pixel(call, |rgb| match interpolation {
        Interpolation::Tetrahedral => cube.tetrahedral(rgb),
        Interpolation::Trilinear => cube.trilinear(rgb),
    })
}

impl Curve {
    /// Returns the ordinate at an abscissa.
    pub(crate) fn at(&self, x: f64) -> f64 {
        let last = self.xs.len() - 1;
        let upper = self.xs.partition_point(|point| *point <= x).clamp(1, last);
        let lower = upper - 1;
        let width = self.xs[upper] - self.xs[lower];
        let secant = (self.ys[upper] - self.ys[lower]) / width;
        let t = (x - self.xs[lower]) / width;
        if self.slopes.is_empty() {
            return self.ys[lower] + secant * (x - self.xs[lower]);
        }
        if x < self.xs[0] {
            return self.ys[0] + self.slopes[0] * (x - self.xs[0]);
        }
        if x > self.xs[last] {
            return self.ys[last] + self.slopes[last] * (x - self.xs[last]);
        }
        let (t2, t3) = (t * t, t * t * t);
        (2.0 * t3 - 3.0 * t2 + 1.0) * self.ys[lower]
            + (t3 - 2.0 * t2 + t) * width * self.slopes[lower]
            + (3.0 * t2 - 2.0 * t3) * self.ys[upper]
            + (t3 - t2) * width * self.slopes[upper]
    }
}

/// Computes `curves`: a curve through points.
pub(crate) fn curves(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let curve = Curve::new(call.settings)?;
    call.each_color(|x, _| x.map(|value| curve.at(value)))
}

/// Computes `tone_map`: e·x / (1 + e·x).
pub(crate) fn tone_map(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let gain = call.number("exposure").exp2();
    call.each_color(|x, _| x.map(|value| gain * value / (1.0 + gain * value)))
}

/// Computes `grayscale`: a weighted sum of red, green and blue.
pub(crate) fn grayscale(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let names: Vec<&str> = call.image.names().collect();
    let indices = colors(call.settings.effect().name, &names)?;
    let weights = call.settings.numbers("weights");
    let [r, g, b] = indices.map(|index| Field::of(&call.image.planes()[index]));
    let grey = r.zip(&g, |r, g| weights[0] * r + weights[1] * g).zip(&b, |sum, b| sum + weights[2] * b);
    let kept = call.image.planes().iter().enumerate().filter(|(index, _)| !indices.contains(index));
    let mut planes: Vec<Plane> = kept.map(|(_, plane)| plane.clone()).collect();
    let name = match call.image.planes()[indices[0]].layer() {
        "" => "Y".to_owned(),
        layer => format!("{layer}.Y"),
    };
    planes.push(grey.plane(&name)?);
    Ok(call.image.with_planes(planes)?)
}

/// Computes `levels`: a range that is stretched to another one.
pub(crate) fn change_levels(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let (black, white) = levels(call.settings)?;
    let (gamma, low, high) = (call.number("gamma"), call.number("low"), call.number("high"));
    call.each_color(|x, _| {
        x.map(|value| low + (high - low) * ((value - black) / (white - black)).clamp(0.0, 1.0).powf(1.0 / gamma))
    })
}

/// Weights of red, green and blue in brightness.
const LUMA: [f64; 3] = [0.299, 0.587, 0.114];

/// Returns brightness and chroma: y, 0.564·(b − y), 0.713·(r − y).
fn luma_chroma([r, g, b]: [f64; 3]) -> (f64, [f64; 2]) {
    let y = LUMA[0] * r + LUMA[1] * g + LUMA[2] * b;
    (y, [0.564 * (b - y), 0.713 * (r - y)])
}

/// Computes `key`: alpha from the chroma distance, and colours without the chroma of the screen.
pub(crate) fn key(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let ReferenceCall { settings, image, .. } = *call;
    let effect = settings.effect().name;
    let color = settings.numbers("color");
    let (_, screen) = luma_chroma([color[0], color[1], color[2]]);
    let length = screen[0].hypot(screen[1]);
    if length < 1e-9 {
        return Err(EffectError::BadValue {
            effect: effect.to_owned(),
            name: "color".to_owned(),
            value: settings.value("color").to_string(),
            reason: "it must not be grey".to_owned(),
        });
    }
    let unit = screen.map(|part| part / length);
    let (tolerance, softness) = (settings.number("tolerance"), settings.number("softness"));
    let (spill, premultiply) = (settings.number("spill"), settings.chosen::<Premultiply>("premultiply") == Premultiply::Yes);
    let factor = KeyFactor::new(image.alpha(), premultiply);
    let alpha_of_result = if premultiply { Alpha::Associated } else { Alpha::Straight };
    let indices = colors(effect, &image.names().collect::<Vec<&str>>())?;
    let mut fields = indices.map(|index| Field::of(&image.planes()[index]));
    let layer = image.planes()[indices[0]].layer();
    let alpha_name = if layer.is_empty() { "A".to_owned() } else { format!("{layer}.A") };
    let alpha_index = image.planes().iter().position(|plane| plane.name() == alpha_name);
    let mut alpha = match alpha_index {
        Some(index) => Field::of(&image.planes()[index]),
        None => fields[0].map(|_| 1.0),
    };
    for place in 0..alpha.values.len() {
        let (y, chroma) = luma_chroma([0, 1, 2].map(|channel| fields[channel].values[place]));
        let distance = (chroma[0] - screen[0]).hypot(chroma[1] - screen[1]);
        let opacity = ((distance - tolerance) / softness).clamp(0.0, 1.0);
        let along = (chroma[0] * unit[0] + chroma[1] * unit[1]).max(0.0) * spill;
        let [cb, cr] = [chroma[0] - along * unit[0], chroma[1] - along * unit[1]];
        let (b, r) = (y + cb / 0.564, y + cr / 0.713);
        let g = (y - LUMA[0] * r - LUMA[2] * b) / LUMA[1];
        let old = alpha.values[place];
        alpha.values[place] *= opacity;
        let factor = match factor {
            KeyFactor::One => 1.0,
            KeyFactor::Opacity => opacity,
            KeyFactor::NewAlpha => alpha.values[place],
            KeyFactor::PerOldAlpha => {
                if old == 0.0 {
                    1.0
                } else {
                    1.0 / old
                }
            }
        };
        for (field, value) in fields.iter_mut().zip([r, g, b]) {
            field.values[place] = value * factor;
        }
    }
    let mut changed: Vec<(usize, Field)> = indices.into_iter().zip(fields).collect();
    if let Some(index) = alpha_index {
        changed.push((index, alpha));
        return Ok(replaced(image, &changed)?.with_alpha(alpha_of_result));
    }
    let mut planes: Vec<Plane> = replaced(image, &changed)?.planes().to_vec();
    planes.push(alpha.plane(&alpha_name)?);
    Ok(image.with_planes(planes)?.with_alpha(alpha_of_result))
}
