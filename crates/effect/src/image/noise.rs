//! Estimate of the noise of an image, by the median of the finest details (Donoho and Johnstone).
//!
//! The details are the band of `degrain` that is high along rows and columns. Pictures have little of it, and noise with a
//! standard deviation of 1 has a median size of 0.2529 in it.

use super::{Image, Plane};

/// Median size of the band for noise with a standard deviation of 1: 0.375 times the third quartile of the normal
/// distribution.
const MEDIAN: f64 = 0.375 * 0.674_489_75;
/// Approximate number of samples of a plane that are taken.
const TAKEN: u64 = 1 << 21;

/// Estimate of the noise of the planes of an image whose rows come in bands.
#[derive(Clone, Debug)]
pub struct NoiseEstimate {
    /// Names of the planes with sizes of details.
    planes: Vec<(String, Vec<f32>)>,
    /// Rows from one that is taken to the next.
    step: u32,
}

impl NoiseEstimate {
    /// Begins an estimate for an image, or for its placeholder. Alpha and depth have no noise.
    pub fn new(image: &Image) -> NoiseEstimate {
        let is_picture = |plane: &&Plane| !matches!(plane.channel(), "A" | "Z");
        let planes = image.planes().iter().filter(is_picture).map(|plane| (plane.name().to_owned(), vec![])).collect();
        let step = image.bounds().area().div_ceil(TAKEN).clamp(1, 1 << 16) as u32;
        NoiseEstimate { planes, step }
    }

    /// Adds rows of the image.
    pub fn add(&mut self, band: &Image) {
        for (name, sizes) in &mut self.planes {
            let Some(plane) = band.plane(name) else { continue };
            let (width, height) = (plane.width() as usize, plane.height());
            let values = plane.to_f32();
            let row = |y: u32| &values[y as usize * width..][..width];
            for y in (1..height.saturating_sub(1)).step_by(self.step as usize) {
                let column = |x: usize| f64::from(row(y)[x]) / 2.0 - (f64::from(row(y - 1)[x]) + f64::from(row(y + 1)[x])) / 4.0;
                for x in 1..width.saturating_sub(1) {
                    // Values at the ends of their range have lost their noise.
                    let value = row(y)[x];
                    let size = (column(x) / 2.0 - (column(x - 1) + column(x + 1)) / 4.0).abs() as f32;
                    if value != 0.0 && value != 1.0 && size.is_finite() {
                        sizes.push(size);
                    }
                }
            }
        }
    }

    /// Returns the standard deviation of the noise of each plane with its name. A plane without values between its ends
    /// has none.
    pub fn finish(self) -> Vec<(String, f64)> {
        let median = |mut sizes: Vec<f32>| {
            let middle = sizes.len() / 2;
            if sizes.is_empty() {
                return 0.0;
            }
            f64::from(*sizes.select_nth_unstable_by(middle, f32::total_cmp).1)
        };
        self.planes.into_iter().map(|(name, sizes)| (name, median(sizes) / MEDIAN)).collect()
    }
}
