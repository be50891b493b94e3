//! Images without samples: they stand for images that are read or computed band by band.
//!
//! All rows of a placeholder are one row in memory, which no two planes share. A plane of a placeholder can therefore
//! be recognised in an image that some of its planes were selected for.

use super::{Image, ImageError, Plane, Rect, Sample, SampleType, Samples, reserved, with_samples};
use std::ops::Range;
use std::sync::Arc;

impl Image {
    /// Creates an image whose samples are 0, in the memory of one row.
    pub(crate) fn placeholder(bounds: Rect, planes: &[(String, SampleType)]) -> Result<Image, ImageError> {
        let plane = |(name, ty): &(String, SampleType)| Plane::placeholder(name, bounds.width, bounds.height, *ty);
        Image::new(bounds, planes.iter().map(plane).collect())
    }

    /// Returns an image whose rows are all the first row of this one, in the memory of one row.
    pub(crate) fn repeated(&self, bounds: Rect) -> Result<Image, ImageError> {
        let planes = self.planes.iter().map(|plane| plane.repeated(bounds.height)).collect();
        self.replaced(bounds, planes)
    }

    /// Returns a placeholder with the planes and the metadata of this image.
    pub(crate) fn as_placeholder(&self) -> Image {
        let plane = |plane: &Plane| Plane::placeholder(plane.name(), self.width(), self.height(), plane.sample_type());
        Image { planes: Arc::new(self.planes.iter().map(plane).collect()), ..self.clone() }
    }

    /// Returns rows of the image, counted from its first one. They must lie inside the image.
    pub(crate) fn rows(&self, rows: Range<u32>) -> Image {
        let height = rows.end - rows.start;
        let part = |plane: &Plane| plane.part(0, rows.start as usize, self.width() as usize, height as usize);
        let bounds = Rect { y: self.bounds.y + rows.start as i32, height, ..self.bounds };
        Image { bounds, planes: Arc::new(self.planes.iter().map(part).collect()), ..self.clone() }
    }

    /// Returns a placeholder of the image that a function makes of this placeholder. The function changes samples by
    /// themselves, and takes one row.
    pub fn changed_placeholder<E: From<ImageError>>(&self, change: impl FnOnce(Image) -> Result<Image, E>) -> Result<Image, E> {
        let row = change(self.view(Rect { height: 1, ..self.bounds })?)?;
        let bounds = Rect { height: self.height(), ..row.bounds };
        let planes = row.planes.iter().map(|plane| plane.repeated(self.height())).collect();
        Ok(Image { bounds, planes: Arc::new(planes), ..row })
    }

    /// Returns the rows of an image that bands hold together, in the order of the bands.
    pub fn of_bands(bounds: Rect, bands: &[Image]) -> Result<Image, ImageError> {
        if let Some(band) = bands.iter().find(|band| band.bounds.contains(bounds)) {
            return band.view(bounds);
        }
        let Some(first) = bands.first() else { return Err(ImageError::Planes(0)) };
        let parts: Vec<Image> = bands
            .iter()
            .filter_map(|band| {
                let (top, bottom) = (bounds.y.max(band.bounds.y), bounds.bottom().min(band.bounds.bottom()));
                let height = u32::try_from(bottom - i64::from(top)).ok().filter(|height| *height > 0)?;
                band.view(Rect { y: top, height, ..bounds }).ok()
            })
            .collect();
        fn joined<T: Sample>(_: &[T], parts: &[Image], index: usize, area: u64) -> Result<Samples, ImageError> {
            let mut samples = reserved::<T>(area)?;
            for plane in parts.iter().map(|part| &part.planes[index]) {
                (0..plane.height()).filter_map(|y| plane.row::<T>(y)).for_each(|row| samples.extend_from_slice(row));
            }
            Ok(Samples::new(samples))
        }
        let plane = |(index, plane): (usize, &Plane)| {
            let samples = with_samples!(plane.samples(), own => joined(own, &parts, index, bounds.area()))?;
            Plane::from_samples(plane.name(), bounds.width, bounds.height, bounds.width as usize, samples)
        };
        let planes = first.planes.iter().enumerate().map(plane).collect::<Result<Vec<Plane>, ImageError>>()?;
        Ok(Image { bounds, planes: Arc::new(planes), ..first.clone() })
    }
}
