//! Alpha: whether colours are multiplied by it.

use super::{Image, ImageError, Plane, SampleType, Samples, reserved};

/// Relation of the colours of an image to its alpha.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Alpha {
    /// Nothing is known. Colours are written as they are.
    #[default]
    Unknown,
    /// Colours are not multiplied by alpha, as in a PNG.
    Straight,
    /// Colours are multiplied by alpha, as in an EXR. Also called premultiplied.
    Associated,
}

impl Image {
    /// Returns the image with straight alpha: associated colours are divided by alpha. Colours where alpha is 0 stay.
    /// Divided colours are `f32`, or `f16` where they were.
    pub fn straight(&self) -> Result<Image, ImageError> {
        match self.alpha() {
            Alpha::Associated => self.recoloured(|color, alpha| if alpha == 0.0 { color } else { color / alpha }),
            Alpha::Straight | Alpha::Unknown => Ok(self.clone()),
        }
        .map(|image| image.with_alpha(Alpha::Straight))
    }

    /// Returns the image with associated alpha: straight colours are multiplied by alpha. Multiplied colours are
    /// `f32`, or `f16` where they were.
    ///
    /// ```
    /// use broadloom_effect::Image;
    /// use broadloom_effect::image::Alpha;
    ///
    /// let image = Image::from_f32(1, 1, [("Y", vec![0.8]), ("A", vec![0.5])])?.with_alpha(Alpha::Straight);
    /// assert_eq!(image.associated()?.plane("Y").unwrap().to_f32(), [0.4]);
    /// # Ok::<(), broadloom_effect::ImageError>(())
    /// ```
    pub fn associated(&self) -> Result<Image, ImageError> {
        match self.alpha() {
            Alpha::Straight => self.recoloured(|color, alpha| color * alpha),
            Alpha::Associated | Alpha::Unknown => Ok(self.clone()),
        }
        .map(|image| image.with_alpha(Alpha::Associated))
    }

    /// Returns whether a plane has alpha and colours beside it.
    pub fn has_alpha(&self) -> bool {
        self.planes().iter().any(|plane| self.alpha_of(plane).is_some())
    }

    /// Returns the plane of alpha of a colour: `A` of its layer. Alpha, depth and integers have none.
    pub(super) fn alpha_of(&self, color: &Plane) -> Option<&Plane> {
        if matches!(color.channel(), "A" | "Z") || color.sample_type() == SampleType::U32 {
            return None;
        }
        self.planes().iter().find(|plane| plane.channel() == "A" && plane.layer() == color.layer())
    }

    /// Returns the number of pixels with an alpha of 0 and a colour other than 0.
    pub(crate) fn colors_without_alpha(&self) -> u64 {
        let without = |color: &Plane, alpha: &Plane| {
            let pairs = (0..self.height()).flat_map(|y| (0..self.width()).map(move |x| (x, y)));
            pairs.filter(|(x, y)| alpha.value(*x, *y) == Some(0.0) && color.value(*x, *y) != Some(0.0)).count() as u64
        };
        self.planes().iter().filter_map(|color| Some(without(color, self.alpha_of(color)?))).max().unwrap_or(0)
    }

    /// Applies a function to each colour and its alpha.
    fn recoloured(&self, function: impl Fn(f32, f32) -> f32) -> Result<Image, ImageError> {
        let planes = self.planes().iter().map(|plane| match self.alpha_of(plane) {
            None => Ok(plane.clone()),
            Some(alpha) => {
                let mut samples = reserved::<f32>(self.bounds().area())?;
                for y in 0..self.height() {
                    let values = (0..self.width()).filter_map(|x| Some((plane.value(x, y)?, alpha.value(x, y)?)));
                    samples.extend(values.map(|(color, alpha)| function(color, alpha)));
                }
                let width = self.width();
                let plane_of_f32 =
                    Plane::from_samples(plane.name(), width, self.height(), width as usize, Samples::new(samples))?;
                let is_half = plane.sample_type() == SampleType::F16;
                Ok(if is_half { plane_of_f32.converted(SampleType::F16) } else { plane_of_f32 })
            }
        });
        self.with_planes(planes.collect::<Result<_, _>>()?)
    }
}
