//! Colour spaces: linear light and sRGB.
//!
//! The colour space of an image says how its samples encode light. Reading, effects and writing never convert
//! on their own. [`Image::to_linear`](super::Image::to_linear) and [`Image::to_srgb`](super::Image::to_srgb)
//! convert.

use std::fmt;

/// Encoding of light in the samples of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ColorSpace {
    /// Samples are proportional to light. EXR and PFM files hold such images.
    #[default]
    Linear,
    /// Samples are encoded by the curve of sRGB (IEC 61966-2-1). PNG and JPEG files usually hold such images.
    Srgb,
}

impl ColorSpace {
    /// Returns the colour space of samples that are light to the power of 1/`gamma`: linear for 1, else taken for sRGB.
    pub(crate) fn of_gamma(gamma: f64) -> ColorSpace {
        if gamma == 1.0 { ColorSpace::Linear } else { ColorSpace::Srgb }
    }
}

impl fmt::Display for ColorSpace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            ColorSpace::Linear => "linear",
            ColorSpace::Srgb => "sRGB",
        })
    }
}

/// Decodes an sRGB sample: `x / 12.92` up to 0.04045, else `((x + 0.055) / 1.055)^2.4`. The function is odd,
/// so negative samples are preserved.
///
/// ```
/// use broadloom_effect::image::{linear_to_srgb, srgb_to_linear};
/// assert!((srgb_to_linear(0.5) - 0.214_041).abs() < 1e-6);
/// assert!((linear_to_srgb(srgb_to_linear(0.5)) - 0.5).abs() < 1e-6);
/// ```
pub fn srgb_to_linear(x: f32) -> f32 {
    let size = f64::from(x.abs());
    let light = if size <= 0.04045 { size / 12.92 } else { ((size + 0.055) / 1.055).powf(2.4) };
    (light as f32).copysign(x)
}

/// Encodes a sample in sRGB: `12.92 · x` up to 0.0031308, else `1.055 · x^(1/2.4) − 0.055`. The function is
/// odd, so negative samples are preserved.
pub fn linear_to_srgb(x: f32) -> f32 {
    let light = f64::from(x.abs());
    let size = if light <= 0.003_130_8 { light * 12.92 } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 };
    (size as f32).copysign(x)
}
