//! Effects on the colour of single pixels: `color_matrix`, `curves`, `lut`, `key`.

use super::field::Field;
use super::{colors, replaced};
use crate::catalogue::{EffectError, Settings};
use crate::file::Cube;
use crate::image::{Alpha, Image, Plane};

/// Applies a function to red, green and blue together. Other planes are not changed.
fn each_pixel(settings: &Settings, image: &Image, function: impl Fn([f64; 3]) -> [f64; 3]) -> Result<Image, EffectError> {
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
pub(super) fn matrix(settings: &Settings, image: &Image) -> Result<Image, EffectError> {
    let matrix = settings.numbers("matrix");
    each_pixel(settings, image, |rgb| [0, 3, 6].map(|row| (0..3).map(|column| matrix[row + column] * rgb[column]).sum()))
}

/// Computes `lut`: a table of a `.cube` file.
pub(super) fn lut(settings: &Settings, image: &Image) -> Result<Image, EffectError> {
    let cube = Cube::read(settings.file("file"))?;
    let tetrahedral = settings.choice("interpolation") == "tetrahedral";
    each_pixel(settings, image, |rgb| if tetrahedral { cube.tetrahedral(rgb) } else { cube.trilinear(rgb) })
}

/// A curve through points, with its slopes at the points.
pub(crate) struct Curve {
    /// Abscissas in ascending order.
    pub(crate) xs: Vec<f64>,
    /// Ordinates.
    pub(crate) ys: Vec<f64>,
    /// Slopes at the points; empty if the curve consists of straight lines.
    pub(crate) slopes: Vec<f64>,
}

impl Curve {
    /// Creates the curve from the settings of `curves`.
    pub(crate) fn new(settings: &Settings) -> Result<Curve, EffectError> {
        let points = settings.numbers("points");
        let xs: Vec<f64> = points.iter().step_by(2).copied().collect();
        let ys: Vec<f64> = points.iter().skip(1).step_by(2).copied().collect();
        if let Some(at) = xs.windows(2).position(|pair| pair[0] as f32 >= pair[1] as f32) {
            return Err(EffectError::BadValue {
                effect: settings.effect().name.to_owned(),
                name: "points".to_owned(),
                value: settings.value("points").to_string(),
                reason: format!("x must ascend as f32, and {} is followed by {}", xs[at], xs[at + 1]),
            });
        }
        let slopes = if settings.choice("interpolation") == "cubic" { slopes(&xs, &ys) } else { vec![] };
        Ok(Curve { xs, ys, slopes })
    }

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

/// Computes slopes by Fritsch and Carlson: means of the secants, limited so that the curve is monotonic
/// between points.
fn slopes(xs: &[f64], ys: &[f64]) -> Vec<f64> {
    let secants: Vec<f64> = xs.windows(2).zip(ys.windows(2)).map(|(x, y)| (y[1] - y[0]) / (x[1] - x[0])).collect();
    let last = secants.len();
    let mut slopes: Vec<f64> = (0..=last)
        .map(|i| match i {
            0 => secants[0],
            i if i == last => secants[last - 1],
            i if secants[i - 1] * secants[i] <= 0.0 => 0.0,
            i => (secants[i - 1] + secants[i]) / 2.0,
        })
        .collect();
    for (i, secant) in secants.iter().enumerate() {
        if *secant == 0.0 {
            (slopes[i], slopes[i + 1]) = (0.0, 0.0);
            continue;
        }
        let (a, b) = (slopes[i] / secant, slopes[i + 1] / secant);
        let size = (a * a + b * b).sqrt();
        if size > 3.0 {
            (slopes[i], slopes[i + 1]) = (3.0 * a / size * secant, 3.0 * b / size * secant);
        }
    }
    slopes
}

/// Weights of red, green and blue in brightness.
const LUMA: [f64; 3] = [0.299, 0.587, 0.114];

/// Returns brightness and chroma: y, 0.564·(b − y), 0.713·(r − y).
fn luma_chroma([r, g, b]: [f64; 3]) -> (f64, [f64; 2]) {
    let y = LUMA[0] * r + LUMA[1] * g + LUMA[2] * b;
    (y, [0.564 * (b - y), 0.713 * (r - y)])
}

/// Factor of the colours of a keyed image, in which alpha is the old alpha times the opacity of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFactor {
    /// Colours stay: straight alpha from straight alpha.
    One,
    /// Colours are multiplied by the opacity: associated alpha from associated alpha.
    Opacity,
    /// Colours are multiplied by the new alpha: associated alpha from straight alpha.
    NewAlpha,
    /// Colours are divided by the old alpha: straight alpha from associated alpha.
    PerOldAlpha,
}

impl KeyFactor {
    /// Returns the factor for the alpha of an image, and for associated or straight alpha of the result. Unknown alpha
    /// counts as straight.
    pub fn new(alpha: Alpha, is_associated: bool) -> KeyFactor {
        match (alpha, is_associated) {
            (Alpha::Straight | Alpha::Unknown, false) => KeyFactor::One,
            (Alpha::Straight | Alpha::Unknown, true) => KeyFactor::NewAlpha,
            (Alpha::Associated, true) => KeyFactor::Opacity,
            (Alpha::Associated, false) => KeyFactor::PerOldAlpha,
        }
    }
}

/// Computes `key`: alpha from the chroma distance, and colours without the chroma of the screen.
pub(super) fn key(settings: &Settings, image: &Image) -> Result<Image, EffectError> {
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
    let (spill, premultiply) = (settings.number("spill"), settings.choice("premultiply") == "yes");
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
