//! Colours that a profile describes by tables, converted by the `moxcms` crate.

use super::Profile;
use moxcms::{BarycentricWeightScale, ColorProfile, InterpolationMethod, Layout, TransformOptions};

/// Number of pixels that are converted at a time.
const PIXELS: usize = 1 << 14;

/// Converts samples of a profile for RGB or CMYK to red, green and blue of another. `planes` are those of a colour, without
/// gaps; values are limited to 0 … 1. Returns `None` if the profiles have no such conversion.
pub(crate) fn converted(from: &Profile, to: &Profile, planes: &[Vec<f32>]) -> Option<[Vec<f32>; 3]> {
    let layout = match planes.len() {
        3 => Layout::Rgb,
        // Four samples of a pixel.
        4 => Layout::Rgba,
        _ => return None,
    };
    let profile = |profile: &Profile| ColorProfile::new_from_slice(&profile.bytes).ok();
    // Tetrahedra as in LittleCMS. The defaults of the library have weights of 8 bits.
    let options = TransformOptions {
        interpolation_method: InterpolationMethod::Tetrahedral,
        barycentric_weight_scale: BarycentricWeightScale::High,
        prefer_fixed_point: false,
        ..TransformOptions::default()
    };
    let transform = profile(from)?.create_transform_f32(layout, &profile(to)?, Layout::Rgb, options).ok()?;
    let (count, area) = (planes.len(), planes[0].len());
    let mut results = [(); 3].map(|()| Vec::with_capacity(area));
    let (mut source, mut result) = (vec![], vec![]);
    for first in (0..area).step_by(PIXELS) {
        let pixels = PIXELS.min(area - first);
        source.clear();
        source.extend((0..pixels * count).map(|at| {
            let value = planes[at % count][first + at / count];
            if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) }
        }));
        result.resize(3 * pixels, 0.0f32);
        transform.transform(&source, &mut result).ok()?;
        for (index, plane) in results.iter_mut().enumerate() {
            plane.extend(result.chunks_exact(3).map(|pixel| pixel[index]));
        }
    }
    Some(results)
}
